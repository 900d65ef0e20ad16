# SPDX-License-Identifier: Apache-2.0
"""Makes a sysroot: packages of a release with all that they depend on, unpacked into one folder."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from crosslane.buildcache import digest
from crosslane.errors import BadInput, HarnessFault
from crosslane.fetched import ARCH_NAMES, find_sysroots, locked, new_tree, put_in_place
from crosslane.model import Package, Provider, Sysroot
from crosslane.sysroots.apt import Apt, Chosen, Mirror

__all__ = ["BASE_PACKAGES", "fetch", "read_suite"]

BASE_PACKAGES = ("libc6-dev", "libstdc++6")
"""What every adapter is linked with."""
_SCHEMA = "crosslane sysroot 1"
_MERGED = ("lib", "lib64")
"""Folders of old releases that are links to those below /usr in new ones: one form for all."""
_KEPT = ("include", "lib", "lib64")
_SUITE = "[a-z][a-z0-9-]*"


def read_suite(text: str) -> str:
    """The name of a release; raises BadInput for what can be none."""
    if not re.fullmatch(_SUITE, text):
        raise BadInput(f"--suite has {text!r}; write the name of a release, such as bookworm, in a-z 0-9 -")
    return text


def fetch(
    suite: str, arch: str, providers: Sequence[Provider], mirror: Mirror, *, say: Callable[[str], None] = lambda _: None
) -> tuple[Sysroot, list[str]]:
    """Fetch the packages of some providers (``arch`` as Debian names it), beside those that were fetched before.

    Returns the sysroot, and a sentence for each provider of which the release lacks a package. Raises BadInput where
    it lacks all, MissingTool and HarnessFault.
    """
    with locked() as folder:
        apt = Apt(suite, arch, mirror)
        say(f"asking for the packages of {suite} for {arch}")
        apt.update()
        usable, problems = [], []
        for provider in providers:
            there = [release for release in provider.releases if not apt.lacks(release.packages)]
            if not there:
                lacking = apt.lacks(provider.packages)
                problems.append(
                    f"the release {suite} has no package {lacking[0]} for {arch}, which the provider {provider.name} "
                    "needs: it is left out"
                )
            else:
                usable.append(there[0])
        if not usable:
            raise BadInput(f"{'; '.join(problems)}; nothing is left to fetch")
        packages = dict.fromkeys((*BASE_PACKAGES, *(name for item in usable for name in item.packages)))
        chosen = apt.fetch(list(packages))
        say(f"fetched {len(chosen)} packages, signed by Debian")
        return _unpacked(folder, suite, arch, [item.name for item in usable], chosen), problems


def _unpacked(folder: Path, suite: str, arch: str, providers: Sequence[str], chosen: Sequence[Chosen]) -> Sysroot:
    """The sysroot of these packages: the one that is there, where it is of the same, else a new one in its place."""
    packages = sorted((_package(item) for item in chosen), key=lambda item: item.name)
    key = digest([_SCHEMA, arch, *(f"{item.name} {item.version} {item.sha256}" for item in packages)])
    sysroot = Sysroot(suite, ARCH_NAMES[arch], folder, tuple(sorted(providers)), tuple(packages), key)
    for there in find_sysroots():
        if (there.suite, there.arch, there.digest, there.providers) == (suite, sysroot.arch, key, sysroot.providers):
            return there
    with new_tree(folder) as made:
        root = made / "root"
        for item in chosen:
            _dpkg("-x", str(item.file), str(root))
        _trim(root)
        for name in _MERGED:
            _merge(root / name, root / "usr" / name)
            (root / name).symlink_to(f"usr/{name}")
        put_in_place(folder, made, sysroot, f"{suite}-{arch}")
    return replace(sysroot, root=(folder / f"{suite}-{arch}").resolve() / "root")


def _dpkg(*words: str) -> str:
    done = subprocess.run(
        ["dpkg-deb", *words],  # noqa: S607 - the user's dpkg
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
    )  # fmt: skip
    if done.returncode != 0:
        why = done.stderr.strip().splitlines()[-1:] or ["it says nothing"]
        raise HarnessFault(f"{words[1]}: cannot be unpacked ({why[0]}): free some space and run the same command again")
    return done.stdout


def _package(item: Chosen) -> Package:
    names = [line.split()[5] for line in _dpkg("-c", str(item.file)).splitlines() if line.startswith("-")]
    libraries = sorted(Path(name).name for name in names if re.search(r"/[^/]+\.so(\.[0-9.]+)?$", name))
    with item.file.open("rb") as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
    return Package(item.name, item.version, checksum, tuple(libraries))


def _trim(root: Path) -> None:
    """Leave only headers and libraries, and let every link lead to what is below the root."""
    for entry in [*root.iterdir(), *(root / "usr").iterdir()]:
        if entry.name not in (*_KEPT, "usr") and not entry.is_symlink():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for folder, folders, files in os.walk(root):
        for path in (Path(folder) / name for name in [*folders, *files]):
            target = str(path.readlink()) if path.is_symlink() else ""
            if target.startswith("/"):
                path.unlink()
                path.symlink_to(os.path.relpath(root / target.lstrip("/"), path.parent))


def _merge(old: Path, new: Path) -> None:
    """Move all that is in one folder into another one, which is as deep or one deeper, and remove the first."""
    new.mkdir(parents=True, exist_ok=True)
    for entry in sorted(old.iterdir()) if old.is_dir() else ():
        if entry.is_dir() and not entry.is_symlink():
            _merge(entry, new / entry.name)
            continue
        target = str(entry.readlink()) if entry.is_symlink() else ""
        if target.startswith(".."):
            entry.unlink()
            entry.symlink_to(os.path.relpath(os.path.normpath(old / target), new))
        entry.replace(new / entry.name)
    if old.is_dir():
        old.rmdir()
