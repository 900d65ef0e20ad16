# SPDX-License-Identifier: Apache-2.0
"""Gives the same answer every time, beside other contexts and in two threads at once."""

from __future__ import annotations

from crosslane.checks import Outcome
from crosslane.records import CellResult

__all__ = ["CLASSES", "SYMPTOMS", "judge"]

SYMPTOMS = ("nondeterminism",)
CLASSES = ("interleaved", "neighbours", "unrepeatable")


def judge(cell: CellResult) -> Outcome:
    """Red for an answer that changed; does not apply where no message was run in two threads."""
    if cell.state == "declined":
        return Outcome(None, "the CPU of this lane lacks what it needs")
    if cell.state != "ran":
        return Outcome(False, f"did not run: {cell.reason}")
    changed = [finding for finding in cell.findings if finding.symptom == "nondeterminism"]
    if changed:
        return Outcome(False, changed[0].text)
    if cell.num_threaded == 0:
        return Outcome(None, "no message was run in two threads")
    return Outcome(True)
