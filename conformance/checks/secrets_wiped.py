# SPDX-License-Identifier: Apache-2.0
"""Leaves no secret in registers and on the stack, where it claims so."""

from __future__ import annotations

from crosslane.checks import Outcome
from crosslane.records import CellResult

__all__ = ["judge"]


def judge(cell: CellResult) -> Outcome:
    """Red for a secret that was found after a call; applies to implementations with ``wipes = true`` alone."""
    if not cell.wipes:
        return Outcome(None, "impl.toml does not claim it")
    if cell.state == "declined":
        return Outcome(None, "the CPU of this lane lacks what it needs")
    if cell.state != "ran":
        return Outcome(False, f"did not run: {cell.reason}")
    if "wipe" in cell.unwatched:
        return Outcome(None, "what a call leaves behind cannot be observed in this lane")
    left = [finding for finding in cell.findings if finding.symptom == "wipe"]
    if not left and cell.comparisons == 0:
        return Outcome(None, "nothing was run")
    return Outcome(False, left[0].text) if left else Outcome(True)
