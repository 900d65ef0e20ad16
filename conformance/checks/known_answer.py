# SPDX-License-Identifier: Apache-2.0
"""Gives the published answer to every published vector."""

from __future__ import annotations

from crosslane.checks import Outcome
from crosslane.records import CellResult

__all__ = ["judge"]


def judge(cell: CellResult) -> Outcome:
    """Red for a wrong answer; does not apply where nobody published a vector for the algorithm."""
    if cell.state == "declined":
        return Outcome(None, "the CPU of this lane lacks what it needs")
    if cell.state != "ran":
        return Outcome(False, f"did not run: {cell.reason}")
    wrong = [finding for finding in cell.findings if finding.of_vector]
    if wrong:
        return Outcome(False, f"{wrong[0].case_id}: {wrong[0].text}")
    if cell.num_vectors == 0:
        return Outcome(None, "neither corpora nor an installed package has a vector of this algorithm")
    return Outcome(True)
