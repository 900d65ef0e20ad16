# SPDX-License-Identifier: Apache-2.0
"""Regressions that depart again, as departures like any other."""

from __future__ import annotations

from crosslane.findings.case import case_of
from crosslane.findings.gather import Raw
from crosslane.findings.judge import Judge
from crosslane.plan import AlgorithmPlan
from crosslane.records import CellResult
from crosslane.wire import Batch

__all__ = ["regression_place", "regression_raws"]


def regression_place(plan: AlgorithmPlan, name: str) -> tuple[Batch, int] | None:
    """The batch of a plan's regressions and the place of one in it; None where it has none of that name."""
    named = plan.regressions
    return (named.batch, named.names.index(name)) if named is not None and name in named.names else None


def regression_raws(judge: Judge, plan: AlgorithmPlan, cell: CellResult) -> list[Raw]:
    """The regressions that a cell answers otherwise than generic does, each by itself."""
    found: list[Raw] = []
    for name in dict.fromkeys(item.case_id for item in cell.findings if item.of_regression):
        place = regression_place(plan, name)
        case = judge.unsealed(case_of(*place, plan.manifest.algorithm)) if place is not None else None
        departure = judge.one(case) if case is not None else None
        if case is not None and departure is not None:
            found.append(Raw(case, departure, name))
    return found
