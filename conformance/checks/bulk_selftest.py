# SPDX-License-Identifier: Apache-2.0
"""Answers many blocks at once as one at a time, with every length of key, and with a counter about to wrap."""

from __future__ import annotations

from crosslane.checks import Outcome
from crosslane.records import CellResult

__all__ = ["judge"]


def judge(cell: CellResult) -> Outcome:
    """Red where the self-test departed; does not apply to libraries, which cannot be asked for single blocks."""
    if cell.state == "declined":
        return Outcome(None, "the CPU of this lane lacks what it needs")
    if cell.state != "ran":
        return Outcome(False, f"did not run: {cell.reason}")
    departed = [finding.text for finding in cell.findings if finding.case_id.startswith("bulk-")]
    if departed:
        return Outcome(False, departed[0])
    if cell.num_bulk == 0:
        return Outcome(None, "single blocks cannot be asked of a library, or its cases ended the process")
    if cell.num_departed:
        return Outcome(None, "the cell departs otherwise: wrong answers may agree with each other")
    return Outcome(True)
