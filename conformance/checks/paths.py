# SPDX-License-Identifier: Apache-2.0
"""Takes every code path that it declares."""

from __future__ import annotations

from crosslane.checks import Outcome
from crosslane.records import CellResult

__all__ = ["judge"]

_LEAST = 500
"""Comparisons that each cell of the gate gets at least: fewer need not come to every path."""


def judge(cell: CellResult) -> Outcome:
    """Red for a path, of those declared for the cell's mode, that no case reached."""
    if cell.state == "declined":
        return Outcome(None, "the CPU of this lane lacks what it needs")
    if cell.state != "ran":
        return Outcome(False, f"did not run: {cell.reason}")
    if "paths" in cell.unwatched:
        return Outcome(None, "paths cannot be observed in this lane")
    if cell.wanted == 0:
        return Outcome(None, "only vectors were run")
    missing = [name for name in cell.declared_paths if not cell.paths.get(name)]
    if missing and cell.wanted < _LEAST:
        return Outcome(None, "so few cases need not take every declared path")
    return Outcome(False, f"no case took the declared path {', '.join(missing)}") if missing else Outcome(True)
