# SPDX-License-Identifier: Apache-2.0
"""What a finding is judged by when it runs again: generic's answer, a published one, or the judges in Python."""

from __future__ import annotations

from typing import Literal

import numpy as np

from crosslane.compare import Departure, compare
from crosslane.describe import departure_text
from crosslane.directed import DirectedBatch, select_directed, vector_batch
from crosslane.errors import BadInput
from crosslane.execute import execute_alone
from crosslane.findings.case import Case, whole_batch
from crosslane.findings.gather import first_departure
from crosslane.plan import AlgorithmPlan, CellPlan
from crosslane.repro import judges_of
from crosslane.wire import Results, Watch

__all__ = ["JudgeName", "expected_of", "published", "seen_again"]

JudgeName = Literal["generic", "vector", "reference"]


def published(plan: AlgorithmPlan, name: str) -> DirectedBatch | None:
    """A vector as a batch of one case with its answer; None where the plan has none of that name."""
    for long in (False, True):
        directed = vector_batch(plan.vectors, plan.manifest, bounded=plan.bounded, long=long)
        if name in directed.names:
            return select_directed(directed, np.array([directed.names.index(name)]))
    return None


def expected_of(plan: AlgorithmPlan, case: Case, judge: JudgeName, name: str) -> Results:
    """The answer that a sealed case is held against; raises BadInput where it is a vector's that is not there."""
    if judge != "vector":
        return execute_alone(plan.oracle, whole_batch(case), watch=Watch(0))
    directed = published(plan, name)
    if directed is None:
        raise BadInput(
            f"the vector {name}, whose answer the finding is judged by, is in no file of corpora and in no installed "
            "package: install the package that has it"
        )
    return directed.expected


def seen_again(plan: AlgorithmPlan, cell: CellPlan, case: Case, judge: JudgeName, name: str) -> str:
    """Run a case once more in a fresh process: the sentence of its departure, empty where it agrees."""
    batch = whole_batch(case)
    if judge == "reference":
        answered = execute_alone(cell.station, batch, watch=Watch(0))
        return next((text for _, agreed, text in judges_of(plan, batch, answered) if not agreed), "")
    found: Departure | None
    if judge == "vector":
        expected = expected_of(plan, case, judge, name)
        found = next(iter(compare(batch, expected, execute_alone(cell.station, batch)).departures), None)
    else:
        found = first_departure(batch, cell.station, plan.oracle)
    return departure_text(batch, found, cell.arch) if found is not None else ""
