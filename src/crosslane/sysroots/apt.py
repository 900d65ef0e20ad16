# SPDX-License-Identifier: Apache-2.0
"""apt with a configuration of its own: any release and architecture, no root, nothing of the system's state.

Of the system it takes the mirror, proxies and credentials; signatures are checked with Debian's keyring.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslane.buildcache import cache_folder
from crosslane.errors import BadInput, HarnessFault, MissingTool
from crosslane.sysroots.given import without_credentials

__all__ = ["KEYRING", "Apt", "Chosen", "Mirror", "source_lines", "system_mirror"]

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_KEPT_OF_SYSTEM = re.compile(r"Acquire::(http|https|ftp|Retries|ForceIPv[46]|Proxy)\b.*")
_INSTALLED = re.compile(r"Inst (\S+?)(?::\S+)? \((\S+) .*\[(\S+)\]\)")
_TIME_LIMIT_S = 1800.0
_NO_SECURITY = ("sid", "unstable")
_POCKET = re.compile("(.+?)-(backports(?:-sloppy)?|proposed-updates|updates|security)")
_ON_UNSTABLE = ("experimental", "rc-buggy")
"""Releases that hold only what differs from unstable, and that apt prefers to nothing."""


@dataclass(frozen=True)
class Mirror:
    """Where packages come from: a mirror of Debian, and one of its security updates or an empty text."""

    uri: str
    security: str = ""


@dataclass(frozen=True)
class Chosen:
    """A package that apt chose: its name, version and architecture, and the file it was fetched to."""

    name: str
    version: str
    arch: str
    file: Path


def _run(command: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_TIME_LIMIT_S,
            env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive", **environment},
        )
    except FileNotFoundError:
        raise MissingTool(
            f"the program {command[0]} is not installed, which fetching packages needs: run on Debian or a system "
            "derived from it, with the packages apt and dpkg"
        ) from None
    except subprocess.TimeoutExpired:
        raise HarnessFault(
            f"{command[0]} ran longer than {_TIME_LIMIT_S:.0f} s: try again, or name a nearer --mirror"
        ) from None


def _codename() -> str:
    try:
        lines = Path("/etc/os-release").read_text().splitlines()
    except OSError:
        return ""
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    return fields.get("VERSION_CODENAME", "").strip('"') if fields.get("ID", "").strip('"') == "debian" else ""


def system_mirror() -> Mirror:
    """The mirror that this system takes Debian from; raises BadInput where it takes it from none."""
    form = "$(CREATED_BY) $(REPO_URI) $(RELEASE) $(COMPONENT)"
    lines = _run(["apt-get", "indextargets", "--no-release-info", "--format", form]).stdout.splitlines()
    targets = [line.split()[1:] for line in lines if line.startswith("Packages ") and len(line.split()) == 4]
    name = _codename()
    plain = [uri for uri, release, component in targets if release == name and component == "main"]
    secure = [uri for uri, release, component in targets if release == f"{name}-security" and component == "main"]
    if not name or not plain:
        raise BadInput(
            "apt's configuration of this system names no mirror of Debian: give one with --mirror, such as the URI in "
            "a line `deb URI bookworm main`"
        )
    return Mirror(plain[0], secure[0] if secure else "")


def _parts(suite: str) -> tuple[str, str]:
    """The release that a suite adds to, itself where it stands alone, and which pocket of that it is."""
    if suite in _ON_UNSTABLE:
        return "unstable", suite
    pocket = _POCKET.fullmatch(suite)
    return (pocket[1], pocket[2]) if pocket else (suite, "")


def source_lines(suite: str, arch: str, mirror: Mirror) -> list[str]:
    """The lines of ``sources.list``: the release that a pocket adds to, the pocket, and security updates."""
    base, pocket = _parts(suite)
    sources = {base: mirror.uri}
    if mirror.security and base not in _NO_SECURITY:
        sources[f"{base}-security"] = mirror.security
    if pocket:
        sources.setdefault(suite, mirror.uri)
    return [f"deb [arch={arch} signed-by={KEYRING}] {uri} {name} main" for name, uri in sources.items()]


def _write_private(path: Path, lines: Sequence[str]) -> None:
    """Write a file that the user alone can read: it may hold passwords of mirrors and proxies."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(descriptor, 0o600)
        file.write("".join(f"{line}\n" for line in lines))


class Apt:
    """apt for one release and architecture (``arch`` as Debian names it), with state of its own in the user's cache."""

    def __init__(self, suite: str, arch: str, mirror: Mirror) -> None:
        """Write the configuration; the caller has checked what it gives (``given``).

        Raises MissingTool where Debian's keyring, or a program, is missing.
        """
        self._suite, self._arch, self._mirror = suite, arch, mirror
        for program, package in (("apt-get", "apt"), ("dpkg-deb", "dpkg")):
            if shutil.which(program) is None:
                raise MissingTool(f"the program {program} is not installed, which fetching needs; install {package}")
        if not KEYRING.is_file():
            raise MissingTool(
                f"{KEYRING} is not there, with which signatures are checked; install the package "
                "debian-archive-keyring (as root: apt-get install debian-archive-keyring)"
            )
        self._folder = cache_folder().parent / "apt" / f"{suite}-{arch}"
        self._archives = self._folder / "archives"
        self._write()

    def _write(self) -> None:
        for name in ("lists/partial", "archives/partial"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        (self._folder / "status").write_text("")
        _write_private(self._folder / "sources.list", source_lines(self._suite, self._arch, self._mirror))
        kept = _run(["apt-config", "dump"]).stdout.splitlines()
        _write_private(self._folder / "apt.conf", [*filter(_KEPT_OF_SYSTEM.fullmatch, kept), *self._settings()])

    def _settings(self) -> list[str]:
        nothing = ("main", "parts", "sourceparts", "preferences", "preferencesparts", "trusted", "trustedparts")
        values = {
            **{f"Dir::Etc::{name}": "/dev/null" for name in nothing},
            "Dir::Etc::sourcelist": self._folder / "sources.list",
            "Dir::State": self._folder,
            "Dir::State::lists": self._folder / "lists",
            "Dir::State::status": self._folder / "status",
            "Dir::Cache": self._folder,
            "Dir::Cache::archives": self._archives,
            "APT::Architecture": self._arch,
            "APT::Architectures": self._arch,
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
            "Acquire::AllowInsecureRepositories": "false",
            "Debug::NoLocking": "true",
        }
        if "backports" in _parts(self._suite)[1] or self._suite in _ON_UNSTABLE:
            values["APT::Default-Release"] = self._suite  # else apt takes nothing of it unasked
        return [f'{name} "{value}";' for name, value in values.items()]

    def _apt(self, *words: str) -> subprocess.CompletedProcess[str]:
        return _run(["apt-get", "-q", *words], APT_CONFIG=str(self._folder / "apt.conf"))

    def update(self) -> None:
        """Fetch the lists of packages; raises BadInput with apt's words where the mirror has no such release."""
        done = self._apt("update", "-o", "APT::Update::Error-Mode=any")
        if done.returncode != 0:
            raise BadInput(
                f"the release {self._suite} for {self._arch} cannot be had from "
                f"{without_credentials(self._mirror.uri)} "
                f"({_complaint(done)}): correct --suite or --arch, name another --mirror, or try again"
            )

    def lacks(self, packages: Sequence[str]) -> list[str]:
        """Those of the packages that the release does not have."""
        return [name for name in packages if self._apt("install", "-s", name).returncode != 0]

    def fetch(self, packages: Sequence[str]) -> list[Chosen]:
        """Fetch packages with all that they depend on; what is there already stays. Raises HarnessFault."""
        planned = self._apt("install", "-s", *packages)
        chosen = [
            Chosen(name, version, arch, self._archives / f"{name}_{version.replace(':', '%3a')}_{arch}.deb")
            for name, version, arch in _INSTALLED.findall(planned.stdout)
        ]
        done = self._apt("install", "-y", "--download-only", *packages)
        missing = [item.file.name for item in chosen if not item.file.is_file()]
        if planned.returncode or done.returncode or missing or not chosen:
            why = _complaint(done) or _complaint(planned) or f"{', '.join(missing) or 'nothing'} was not fetched"
            raise HarnessFault(f"packages of {self._suite} for {self._arch} cannot be fetched ({why}): try again")
        for path in set(self._archives.glob("*.deb")) - {item.file for item in chosen}:
            path.unlink()
        return chosen


def _complaint(done: subprocess.CompletedProcess[str]) -> str:
    """What apt says went wrong, in one line."""
    lines = [line[3:] for line in done.stderr.splitlines() if line.startswith(("E: ", "W: "))]
    words = "; ".join(dict.fromkeys(without_credentials(line).strip().rstrip(".") for line in lines))
    return words[:400] if done.returncode else ""
