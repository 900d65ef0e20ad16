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

__all__ = ["KEYRING", "Apt", "Chosen", "Mirror", "system_mirror"]

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_KEPT_OF_SYSTEM = re.compile(r"Acquire::(http|https|ftp|Retries|ForceIPv[46]|Proxy)\b.*")
_INSTALLED = re.compile(r"Inst (\S+?)(?::\S+)? \((\S+) .*\[(\S+)\]\)")
_TIME_LIMIT_S = 1800.0
_NO_SECURITY = ("sid", "unstable", "experimental", "rc-buggy")


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


class Apt:
    """apt for one release and architecture (``arch`` as Debian names it), with state of its own in the user's cache."""

    def __init__(self, suite: str, arch: str, mirror: Mirror) -> None:
        """Write the configuration; raises MissingTool where Debian's keyring, or a program, is missing."""
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
        signed = f"deb [arch={self._arch} signed-by={KEYRING}]"
        sources = [f"{signed} {self._mirror.uri} {self._suite} main"]
        if self._mirror.security and self._suite not in _NO_SECURITY:
            sources.append(f"{signed} {self._mirror.security} {self._suite}-security main")
        (self._folder / "sources.list").write_text("\n".join(sources) + "\n")
        kept = _run(["apt-config", "dump"]).stdout.splitlines()
        (self._folder / "apt.conf").write_text(
            "\n".join([*filter(_KEPT_OF_SYSTEM.fullmatch, kept), *self._settings(), ""])
        )

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
        return [f'{name} "{value}";' for name, value in values.items()]

    def _apt(self, *words: str) -> subprocess.CompletedProcess[str]:
        return _run(["apt-get", "-q", *words], APT_CONFIG=str(self._folder / "apt.conf"))

    def update(self) -> None:
        """Fetch the lists of packages; raises BadInput with apt's words where the mirror has no such release."""
        done = self._apt("update", "-o", "APT::Update::Error-Mode=any")
        if done.returncode != 0:
            raise BadInput(
                f"the release {self._suite} for {self._arch} cannot be had from {self._mirror.uri} "
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
    return "; ".join(dict.fromkeys(line.strip().rstrip(".") for line in lines))[:400] if done.returncode else ""
