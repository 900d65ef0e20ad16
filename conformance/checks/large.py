# SPDX-License-Identifier: Apache-2.0
"""Gives the right answer to very long messages."""

from __future__ import annotations

from crosslane.checks import Outcome
from crosslane.records import CellResult

__all__ = ["CLASSES", "judge"]

CLASSES = ("large",)


def judge(cell: CellResult) -> Outcome:
    """Red where a large message departed; does not apply where none was run."""
    if cell.state == "declined":
        return Outcome(None, "the CPU of this lane lacks what it needs")
    if cell.state != "ran":
        return Outcome(False, f"did not run: {cell.reason}")
    departed = [finding.text for finding in cell.findings if finding.case_id.startswith("large-")]
    departed += [fault.text for fault in cell.faults if CLASSES[0] in fault.fault_class.split("+")]
    if departed:
        return Outcome(False, departed[0])
    if cell.num_large == 0:
        return Outcome(None, "no large message was run in this lane, or the mode has none of that length")
    return Outcome(True)
