# SPDX-License-Identifier: Apache-2.0
"""Takes every code path that it declares."""

from __future__ import annotations

from crosslane.checks import Outcome
from crosslane.records import CellResult

__all__ = ["judge"]


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
    return Outcome(False, f"no case took the declared path {', '.join(missing)}") if missing else Outcome(True)
