# SPDX-License-Identifier: Apache-2.0
"""Where the content folders are: in a checkout, or inside the installed package."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from crosslane.errors import BadInput, HarnessFault

__all__ = ["CONTENT_FOLDERS", "checkout", "content_file", "data_root", "is_checkout", "read_files", "shown"]

CONTENT_FOLDERS = ("impls", "conformance", "corpora", "ci", "fuzz")


def data_root() -> Path:
    """Return the absolute folder that holds ``CONTENT_FOLDERS``.

    The copy that travels in the wheel (``crosslane/_suite``) comes first, the checkout next. Raises
    ``HarnessFault`` where neither exists.
    """
    package = Path(__file__).resolve().parent
    suite = package / "_suite"
    if (suite / "impls").is_dir():
        return suite
    for parent in package.parents:
        if (parent / "pyproject.toml").is_file() and (parent / "impls").is_dir():
            return parent
    raise HarnessFault(
        f"{package}: there is no folder impls in _suite or in a checkout above it; install the wheel again or run from "
        "a checkout"
    )


def is_checkout(root: Path) -> bool:
    """Whether ``root`` (see ``data_root``) is a checkout, and not the copy in an installed package."""
    return (root / "pyproject.toml").is_file()


def checkout(wish: str) -> Path:
    """Return ``data_root`` where it is a checkout, whose content may be changed.

    ``wish`` says what for, as the beginning of a sentence (``--store writes cases``). Raises ``BadInput`` for an
    installed copy: nothing is ever written there.
    """
    root = data_root()
    if not is_checkout(root):
        raise BadInput(f"{wish} into a checkout, but this crosslane is an installed copy: run it from a clone of git")
    return root


def content_file(root: Path, name: str) -> Path | None:
    """Return the file ``name``, a path as in a checkout, under ``root`` (see ``data_root``).

    In an installed copy the engine's sources lie above the content, and what else a checkout has is not there: None.
    """
    if is_checkout(root):
        return root / name
    inner = name.removeprefix("src/crosslane/")
    if inner != name:
        return root.parent / inner
    return root / name if name.split("/", maxsplit=1)[0] in CONTENT_FOLDERS else None


def shown(path: Path) -> str:
    """Return the path as messages print it: relative to the working folder where it lies below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def read_files(files: Iterable[Path]) -> tuple[bytes, ...]:
    """Return the contents of files; raises ``BadInput`` for one that cannot be read."""
    contents = []
    for path in files:
        try:
            contents.append(path.read_bytes())
        except OSError as error:
            why = error.strerror
            raise BadInput(f"{shown(path)}: cannot be read ({why}); restore it or make it readable") from None
    return tuple(contents)
