# SPDX-License-Identifier: Apache-2.0
"""Files that are whole or as they were: written beside their names, then renamed, all of them or none."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["NotWritten", "try_to_write", "write_files"]


class NotWritten(OSError):
    """A file could not be written: ``path`` is its name, ``strerror`` says why."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(error.errno, error.strerror or str(error))
        self.path = path


def _beside(path: Path) -> Path:
    whole = path.resolve()  # a link stays one, and what it leads to is replaced
    return whole.with_name(f".crosslane-{os.getpid()}-{whole.name}")


def _replaced(path: Path) -> bool:
    """Whether the name stands for a file; a device or a pipe is written to, never replaced."""
    return not path.exists() or path.is_file()


def try_to_write(path: Path) -> None:
    """Raise OSError where ``write_files`` could not begin to write the file."""
    if _replaced(path):
        trial = _beside(path)
        trial.touch()
        trial.unlink()


def write_files(texts: Mapping[Path, str]) -> None:
    """Write all files, or raise NotWritten and leave each as it was."""
    staged: list[tuple[Path, Path]] = []
    path = Path()
    try:
        for path, text in texts.items():
            made = path
            if _replaced(path):
                made = _beside(path)
                staged.append((made, path))
            with made.open("w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        for made, path in staged:
            made.replace(path.resolve())
    except OSError as error:
        raise NotWritten(path, error) from error
    finally:
        for made, _ in staged:
            with contextlib.suppress(OSError):
                made.unlink()
