# SPDX-License-Identifier: Apache-2.0
"""Processes a message of more than a MiB in one call."""

from __future__ import annotations

from crosslane.checks import Outcome
from crosslane.records import CellResult

__all__ = ["judge"]


def judge(cell: CellResult) -> Outcome:
    """Red where a large message departed; does not apply where none was run."""
    if cell.state == "declined":
        return Outcome(None, "the CPU of this lane lacks what it needs")
    if cell.state != "ran":
        return Outcome(False, f"did not run: {cell.reason}")
    departed = [finding for finding in cell.findings if finding.case_id.startswith("large-")]
    if departed:
        return Outcome(False, departed[0].text)
    if cell.num_large == 0:
        return Outcome(None, "no large message was run in this lane, or the mode has none of that length")
    return Outcome(True)
