# SPDX-License-Identifier: Apache-2.0
"""Where sysroots are kept: ``<XDG data>/crosslane/sysroots``.

``<suite>-<arch>`` is a link to a folder ``.trees/<suite>-<arch>-<digest>`` with ``root`` and ``sysroot.json``. A tree
is made beside its place and renamed, and the link is replaced in one step. A run locks the trees that it found, shared,
until it ends; a tree that no link leads to any more is removed where nobody holds it, else by a later fetch or removal.
So a run sees the old or the new one, whole.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from crosslane.data import shown
from crosslane.errors import BadInput, HarnessFault
from crosslane.model import Package, Sysroot

__all__ = [
    "ARCH_NAMES",
    "find_sysroots",
    "held_sysroots",
    "locked",
    "new_tree",
    "put_in_place",
    "remove",
    "sysroots_folder",
]

ARCH_NAMES = {"arm64": "aarch64", "amd64": "x86_64"}
"""Debian's names of architectures, and ours."""
_FORMAT = 1
_TREES = ".trees"
_TREE = re.compile(r"[a-z0-9-]+-[0-9a-f]{16}-[^-]*")
_RECORD = "sysroot.json"
_FIELDS = {"format", "suite", "arch", "digest", "providers", "packages"}
_PACKAGE_FIELDS = {"name", "version", "sha256", "libraries"}


def sysroots_folder() -> Path:
    """The folder: below ``XDG_DATA_HOME`` where that is absolute, else below ``~/.local/share``."""
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    home = base if base.is_absolute() else Path.home() / ".local" / "share"
    return home / "crosslane" / "sysroots"


def find_sysroots() -> tuple[Sysroot, ...]:
    """All that was fetched, by name; raises BadInput for a record that no fetch wrote."""
    return tuple(_read(link, tree) for link, tree in _trees().items())


@contextmanager
def held_sysroots() -> Iterator[tuple[Sysroot, ...]]:
    """All that was fetched, as ``find_sysroots`` gives it, kept from removal until the context ends."""
    with ExitStack() as held:
        trees = _hold(held)
        while trees != _trees():  # one was replaced or removed before it was held
            held.close()
            trees = _hold(held)
        yield tuple(_read(link, tree) for link, tree in trees.items())


def _trees() -> dict[Path, Path]:
    """By its link, each tree."""
    folder = sysroots_folder()
    links = sorted(path for path in folder.iterdir() if path.is_symlink()) if folder.is_dir() else []
    return {link: link.resolve() for link in links}


def _hold(held: ExitStack) -> dict[Path, Path]:
    """Lock each tree, shared; one that is not there is said when it is read."""
    trees = _trees()
    for tree in trees.values():
        with suppress(OSError):
            descriptor = os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            held.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
    return trees


def _read(link: Path, tree: Path) -> Sysroot:
    again = f"remove {shown(link)} and run `crosslane providers fetch` again"
    try:
        record: Any = json.loads((tree / _RECORD).read_text())
        next((tree / "root" / "usr" / "lib").iterdir(), None)  # raises where it is no folder
        return _sysroot(record, tree / "root")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(f"{shown(link)}: is no sysroot that was fetched whole ({error}): {again}") from None


def _sysroot(record: Any, root: Path) -> Sysroot:
    if not isinstance(record, dict) or set(record) != _FIELDS or record["format"] != _FORMAT:
        raise ValueError(f"{_RECORD} has not the fields {', '.join(sorted(_FIELDS))} of format {_FORMAT}")
    texts = [record["suite"], record["arch"], record["digest"], *record["providers"]]
    packages = []
    for item in record["packages"]:
        if set(item) != _PACKAGE_FIELDS:
            raise ValueError(f"a package has not the fields {', '.join(sorted(_PACKAGE_FIELDS))}")
        texts += [item["name"], item["version"], item["sha256"], *item["libraries"]]
        packages.append(Package(item["name"], item["version"], item["sha256"], tuple(item["libraries"])))
    if not all(isinstance(text, str) for text in texts) or record["arch"] not in ARCH_NAMES.values():
        raise ValueError(f"a value in {_RECORD} is no text, or its architecture is none of ours")
    return Sysroot(record["suite"], record["arch"], root, tuple(record["providers"]), tuple(packages), record["digest"])


@contextmanager
def locked() -> Iterator[Path]:
    """Hold the folder against other fetches and removals; gives the folder. Raises HarnessFault where it is taken."""
    folder = sysroots_folder()
    try:
        (folder / _TREES).mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise HarnessFault(
            f"{shown(folder)}: cannot be written ({error.strerror}): free some space, make it writable, or set "
            "XDG_DATA_HOME to another folder"
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    except BlockingIOError:
        raise HarnessFault(
            f"{shown(folder)}: another `crosslane providers` works there: wait until it has ended and run again"
        ) from None
    finally:
        os.close(descriptor)


@contextmanager
def new_tree(folder: Path) -> Iterator[Path]:
    """An empty folder for a tree; what is left of it is removed, and so is what an interrupted fetch left."""
    for left in (folder / _TREES).glob(".new-*"):
        shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=".new-", dir=folder / _TREES))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def put_in_place(folder: Path, made: Path, sysroot: Sysroot, name: str) -> bool:
    """Write the record into a tree, move it to its place, and let the link ``name`` lead there; forget the old one.

    Returns whether a run holds an old one, which stays.
    """
    record = {"format": _FORMAT, **asdict(sysroot)}
    del record["root"]
    (made / _RECORD).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    tree = folder / _TREES / f"{name}-{sysroot.digest[:16]}-{made.name.removeprefix('.new-')}"
    made.chmod(0o755)
    made.rename(tree)
    link, fresh = folder / name, folder / _TREES / f".link-{os.getpid()}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(tree.relative_to(folder))
    fresh.replace(link)
    return _forget(folder)


def remove(suite: str, arch: str) -> bool:
    """Remove a sysroot (``arch`` as Debian names it); raises BadInput where there is none.

    Returns whether a run holds a tree that no link leads to, which stays.
    """
    with locked() as folder:
        link = folder / f"{suite}-{arch}"
        if not link.is_symlink():
            known = ", ".join(sorted(path.name for path in folder.iterdir() if path.is_symlink())) or "none"
            raise BadInput(f"there is no sysroot of {suite} for {arch}: there are {known}; correct --suite or --arch")
        link.unlink()
        return _forget(folder)


def _forget(folder: Path) -> bool:
    """Remove the trees that no link leads to, but those that a run holds; returns whether there are such."""
    linked = set(_trees().values())
    trees = [
        tree for tree in (folder / _TREES).iterdir() if _TREE.fullmatch(tree.name) and tree.resolve() not in linked
    ]
    removed = [_removed(tree) for tree in trees]
    return not all(removed)


def _removed(tree: Path) -> bool:
    """Remove a tree that nobody holds; returns whether."""
    descriptor = os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(tree, ignore_errors=True)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
