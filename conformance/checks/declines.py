# SPDX-License-Identifier: Apache-2.0
"""Declines on a CPU without the features it needs, and only there."""

from __future__ import annotations

from crosslane.checks import Outcome
from crosslane.records import CellResult

__all__ = ["judge"]


def judge(cell: CellResult) -> Outcome:
    """Red where code ran without its features, or declined although all are there."""
    if cell.state not in ("ran", "declined"):
        return Outcome(False, f"did not run: {cell.reason}")
    missing = sorted(set(cell.needed_features) - set(cell.cpu_features))
    if missing and cell.state != "declined":
        return Outcome(False, f"runs on a CPU without {', '.join(missing)}")
    if cell.optional and cell.state == "declined":
        return Outcome(None, "the installed library was built without it, which provider.toml allows for")
    if cell.provider and cell.state == "declined":
        return Outcome(
            False,
            "the installed library lacks what provider.toml promises: install that part, or take it out of the domain",
        )
    if not missing and cell.state == "declined":
        return Outcome(False, "declines although the CPU has all that impl.toml asks for")
    return Outcome(True)
