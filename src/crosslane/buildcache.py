# SPDX-License-Identifier: Apache-2.0
"""The content-addressed cache of objects and programs: ``<XDG cache>/crosslane/build/<sha256>/<file>``.

A file appears by one rename, so that readers and other builders see all of it or nothing. Entries that nothing asked
for in ``_KEEP_S`` are removed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from crosslane.data import shown
from crosslane.errors import HarnessFault

__all__ = ["cache_folder", "cached", "digest", "entry_path", "scratch", "store", "store_text"]

_KEEP_S = 30 * 86400.0
_TOUCH_S = 86400.0
_SCRATCH_PREFIX = ".building-"


def cache_folder() -> Path:
    """Return the cache's folder: below ``XDG_CACHE_HOME`` where that is absolute, else below ``~/.cache``."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    home = base if base.is_absolute() else Path.home() / ".cache"
    return home / "crosslane" / "build"


def digest(parts: Iterable[str | bytes]) -> str:
    """Return the sha256, in hexadecimal, of a list of texts; each is hashed with its length, so none can run over."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(f"{len(data)}:".encode())
        state.update(data)
    return state.hexdigest()


def entry_path(folder: Path, key: str, name: str) -> Path:
    """Return where the file of a key lies, whether it exists or not."""
    return folder / key / name


def cached(path: Path) -> bool:
    """Whether an entry is there; marks it as used."""
    try:
        status = path.stat()
        now = time.time()
        if now - path.parent.stat().st_mtime > _TOUCH_S:
            os.utime(path.parent)
    except OSError:
        return False
    return status.st_size > 0


def store(made: Path, path: Path) -> None:
    """Move a finished file to its place; where another builder was quicker, its equal is replaced whole."""
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        made.replace(path)


def store_text(path: Path, text: str) -> None:
    """Write a small file beside the builds, whole or not at all."""
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".new-", delete=False) as made:
            made.write(text)
        Path(made.name).replace(path)


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Give a new folder on the cache's file system for the time of a build, and forget what is long unused."""
    with _explained(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        work = Path(tempfile.mkdtemp(prefix=_SCRATCH_PREFIX, dir=folder))
    try:
        _prune(folder)
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what the file system refuses into one sentence."""
    try:
        yield
    except OSError as error:
        cure = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "make it writable"
        raise HarnessFault(
            f"{shown(path)}: cannot write to the build cache ({error.strerror}); {cure}, or set XDG_CACHE_HOME to "
            "another folder"
        ) from None


def _prune(folder: Path) -> None:
    oldest = time.time() - _KEEP_S
    for entry in folder.iterdir():
        try:
            if entry.stat().st_mtime < oldest:
                shutil.rmtree(entry, ignore_errors=True)
        except OSError:
            continue
