# SPDX-License-Identifier: Apache-2.0
"""Gives the same answer from every compiler and at every level of optimisation."""

from __future__ import annotations

from crosslane.checks import Outcome
from crosslane.records import CellResult

__all__ = ["judge"]


def judge(cell: CellResult) -> Outcome:
    """Red for a departure in a lane that exists for its compiler or its sanitizer."""
    if not cell.build_lane:
        return Outcome(None, "this lane is not one of compilers")
    if cell.state == "declined":
        return Outcome(None, "the CPU of this lane lacks what it needs")
    if cell.state != "ran":
        return Outcome(False, f"did not run: {cell.reason}")
    return Outcome(not cell.num_departed, cell.findings[0].text if cell.findings else "")
