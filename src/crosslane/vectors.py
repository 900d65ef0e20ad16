# SPDX-License-Identifier: Apache-2.0
"""All vectors that a run judges by: those of ``corpora`` and those of the installed test packages."""

from __future__ import annotations

from pathlib import Path

from crosslane.corpora import VectorFile, load_vectors
from crosslane.importers.installed import imported_files

__all__ = ["all_vectors"]

_NOT_INSTALLED = "not installed"


def all_vectors(root: Path, *, imported: bool = True) -> tuple[tuple[VectorFile, ...], tuple[str, ...]]:
    """The vectors, and a note on each package that would bring more; raises BadInput for a damaged file.

    Without ``imported`` only ``corpora/vectors`` under ``root`` is read, which is quicker.
    """
    own = load_vectors(root / "corpora" / "vectors")
    if not imported:
        return own, ("only the vectors of corpora were judged by: leave --vectors away for all",)
    more = imported_files()
    missing = [item for item in more.not_applied if item.reason.startswith(_NOT_INSTALLED)]
    return own + tuple(more.files), tuple(f"vectors of {item.path.name}: {item.reason}" for item in missing)
