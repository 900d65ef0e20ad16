# SPDX-License-Identifier: Apache-2.0
"""Leaves nothing of the key in registers, on the stack or in memory that a library frees, as its metadata claims."""

from __future__ import annotations

from crosslane.checks import Outcome
from crosslane.records import CellResult

__all__ = ["SYMPTOMS", "judge"]

SYMPTOMS = ("wipe",)


def judge(cell: CellResult) -> Outcome:
    """Red for a secret that was found after a call; applies to those with ``wipes = true`` alone."""
    if not cell.wipes:
        return Outcome(None, "its metadata does not claim it")
    if cell.state != "ran":
        declined = cell.state == "declined"
        reason = "the CPU of this lane lacks what it needs" if declined else f"did not run: {cell.reason}"
        return Outcome(None if declined else False, reason)
    if "wipe" in cell.unwatched:
        return Outcome(None, "what a call leaves behind cannot be observed in this lane")
    left = [finding.text for finding in cell.findings if finding.symptom == "wipe"]
    if not left and cell.comparisons == 0:
        return Outcome(None, "nothing was run")
    return Outcome(not left, left[0] if left else "")
