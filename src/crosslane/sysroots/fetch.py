# SPDX-License-Identifier: Apache-2.0
"""Makes a sysroot: packages of a release with all that they depend on, unpacked into one folder."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from crosslane.buildcache import digest
from crosslane.errors import BadInput, HarnessFault
from crosslane.fetched import ARCH_NAMES, find_sysroots, locked, new_tree, put_in_place
from crosslane.model import Package, Provider, Sysroot
from crosslane.sysroots.apt import Apt, Chosen, Mirror
from crosslane.sysroots.given import check_arch, check_mirror, check_packages, read_suite

__all__ = ["BASE_PACKAGES", "fetch"]

BASE_PACKAGES = ("libc6-dev", "libstdc++6")
"""What every adapter is linked with."""
_SCHEMA = "crosslane sysroot 1"
_MERGED = ("lib", "lib64")
"""Folders of old releases that are links to those below /usr in new ones: one form for all."""
_KEPT = ("include", "lib", "lib64")


def fetch(
    suite: str,
    arch: str,
    providers: Sequence[Provider],
    mirror: Mirror,
    *,
    force: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Sysroot, list[str]]:
    """Fetch the packages of some providers (``arch`` as Debian names it), beside those that were fetched before.

    What is there of the same packages stays as it is, unless ``force`` has it unpacked again. Returns the sysroot, and
    a sentence for each provider of which the release lacks a package. Raises BadInput where it lacks all, or for a name
    or URI that cannot be, before anything is written; MissingTool and HarnessFault.
    """
    read_suite(suite)
    check_arch(arch)
    check_packages(providers)
    for uri in (mirror.uri, *([mirror.security] if mirror.security else [])):
        check_mirror(uri)
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
        wanted = _sysroot(folder, suite, arch, [item.name for item in usable], chosen)
        same = [item for item in find_sysroots() if replace(item, root=folder) == wanted]
        if same and not force:
            return same[0], problems
        try:
            return _unpacked(folder, wanted, f"{suite}-{arch}", chosen, say), problems
        except OSError as error:
            raise HarnessFault(
                f"the packages of {suite} for {arch} cannot be unpacked into one folder ({error}): free some space, or "
                "fetch fewer providers"
            ) from None


def _sysroot(folder: Path, suite: str, arch: str, providers: Sequence[str], chosen: Sequence[Chosen]) -> Sysroot:
    """The record of these packages; its root is not yet known."""
    packages = sorted((_package(item) for item in chosen), key=lambda item: item.name)
    key = digest([_SCHEMA, arch, *(f"{item.name} {item.version} {item.sha256}" for item in packages)])
    return Sysroot(suite, ARCH_NAMES[arch], folder, tuple(sorted(providers)), tuple(packages), key)


def _unpacked(
    folder: Path, sysroot: Sysroot, name: str, chosen: Sequence[Chosen], say: Callable[[str], None]
) -> Sysroot:
    """Unpack packages into a new tree, and put it in the place of the one that is there."""
    with new_tree(folder) as made:
        root = made / "root"
        for item in chosen:
            _dpkg("-x", str(item.file), str(root))
            _contain(root)  # before the next one, which could write where a link leads
        _trim(root)
        for part in _MERGED:
            _merge(root / part, root / "usr" / part)
            (root / part).symlink_to(f"usr/{part}")
        _contain(root)
        if put_in_place(folder, made, sysroot, name):
            say("a run still reads what was there: that stays until the next fetch or removal")
    return replace(sysroot, root=(folder / name).resolve() / "root")


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
    """Leave only headers and libraries."""
    usr = root / "usr"
    for entry in [*root.iterdir(), *(usr.iterdir() if usr.is_dir() else ())]:
        if entry.name not in (*_KEPT, "usr"):
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def _links(folder: Path) -> Iterator[Path]:
    """Every link below a folder; none is followed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                yield Path(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                yield from _links(Path(entry.path))


def _contain(root: Path) -> None:
    """Let every link lead to what is below the root, as it would if that were the system's.

    An absolute target begins at the root, and the folder above the root is the root. Raises HarnessFault for a link
    that leads out by way of another one.
    """
    found = list(_links(root))
    for path in found:
        target, folder = str(path.readlink()), f"/{path.parent.relative_to(root)}"
        climbs = os.path.normpath(path.parent / target)
        if target.startswith("/") or not Path(climbs).is_relative_to(root):
            inside = os.path.normpath(Path(folder) / target).lstrip("/")
            path.unlink()
            path.symlink_to(os.path.relpath(root / inside, path.parent))
    whole = root.resolve()
    for path in found:
        try:
            inside_root = path.resolve().is_relative_to(whole)
        except (OSError, RuntimeError):  # a circle
            continue
        if not inside_root:
            raise HarnessFault(
                f"a package has the link {path.relative_to(root)} to {path.readlink()}, which leads out of the "
                "sysroot: leave out the provider that needs it, and tell the package's maintainer"
            )


def _merge(old: Path, new: Path) -> None:
    """Move all that is in one folder into another one, which is as deep or one deeper, and remove the first.

    Where the first is a link, as in the packages of new releases, there is nothing to move.
    """
    if old.is_symlink():
        target = Path(os.path.normpath(old.parent / old.readlink()))
        if target != new:
            raise HarnessFault(
                f"a package has {old.name} as a link to {old.readlink()}, not to usr/{old.name}: fetch another release"
            )
        old.unlink()
    new.mkdir(parents=True, exist_ok=True)
    for entry in sorted(old.iterdir()) if old.is_dir() else ():
        if entry.is_dir() and not entry.is_symlink():
            _merge(entry, new / entry.name)
            continue
        target_text = str(entry.readlink()) if entry.is_symlink() else ""
        if os.path.normpath(old / target_text) == str(new / entry.name):  # it leads to where it would be moved
            entry.unlink()
            continue
        if target_text.startswith(".."):
            entry.unlink()
            entry.symlink_to(os.path.relpath(os.path.normpath(old / target_text), new))
        entry.replace(new / entry.name)
    if old.is_dir():
        old.rmdir()
