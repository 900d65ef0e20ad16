# SPDX-License-Identifier: Apache-2.0
"""The verdict of a cell in a word or two."""

from __future__ import annotations

from crosslane.records import CellResult

__all__ = ["cell_verdict"]


def cell_verdict(cell: CellResult) -> str:
    """One word, or a few, for a cell."""
    if cell.state in ("void", "not_run"):
        return "VOID" if cell.state == "void" else "DID NOT RUN"
    if cell.state in ("unusable", "not_effective"):
        return "UNUSABLE" if cell.state == "unusable" else "not effective"
    if cell.red:
        return "FINDING"
    if cell.state == "declined":
        return "declined"
    return "agreed" if cell.comparisons else "not compared"
