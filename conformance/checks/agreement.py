# SPDX-License-Identifier: Apache-2.0
"""Agrees with the generic implementation on every input and touches nothing it should not touch."""

from __future__ import annotations

from crosslane.checks import Outcome
from crosslane.records import CellResult

__all__ = ["judge"]


def judge(cell: CellResult) -> Outcome:
    """Red for any departure, and for a cell with fewer comparisons than promised."""
    if cell.state == "declined":
        return Outcome(None, "the CPU of this lane lacks what it needs")
    if cell.state != "ran":
        return Outcome(False, f"did not run: {cell.reason}")
    if cell.num_departed:
        return Outcome(False, cell.findings[0].text if cell.findings else f"{cell.num_departed} cases depart")
    if cell.skipped:
        return Outcome(False, f"{cell.skipped} cases were not judged: the subject or the oracle ended before them")
    if cell.comparisons == 0:
        return Outcome(None, "nothing was compared: no vector is at hand and no comparison was asked for")
    made = cell.comparisons - cell.num_vectors - cell.num_regressions
    few = made < cell.wanted
    return Outcome(not few, f"only {made} comparisons of the {cell.wanted} promised" if few else "")
