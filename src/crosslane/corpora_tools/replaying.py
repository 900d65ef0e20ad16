# SPDX-License-Identifier: Apache-2.0
"""Replays one regression, which reports name ``regression:`` and the first digits of its digest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from crosslane.corpora_tools.regressions import load_regressions, with_regressions
from crosslane.corpora_tools.stored import Entry
from crosslane.describe import session_lines
from crosslane.errors import BadInput
from crosslane.findings.case import whole_batch
from crosslane.model import Registry
from crosslane.plan import AlgorithmPlan, Counts, Selection, make_plans
from crosslane.records import REGRESSION
from crosslane.repro import Replay, replays_of

__all__ = ["regression_named", "replay_regression"]

_DIGITS = re.compile(rf"{REGRESSION}([0-9a-f]{{4,64}})(:neighbour_[0-9]+)?")
_BEYOND = "not judged: the case lies outside the library's domain"


def regression_named(name: str, entries: Sequence[Entry]) -> Entry:
    """The one regression of a name, or of one of its neighbours; raises BadInput where there is none."""
    match = _DIGITS.fullmatch(name)
    if match is None:
        raise BadInput(f"{name!r} is no regression: give {REGRESSION}DIGITS with 4 to 64 digits of its digest")
    found = [entry for entry in entries if entry.digest.startswith(match[1])]
    if not found:
        raise BadInput(
            f"{name!r} is no regression here: restore its file, or name with --impls the folder that has it in "
            "regressions"
        )
    if len(found) > 1:
        raise BadInput(f"{name!r} begins the digests of {len(found)} regressions: give more digits")
    return found[0]


def replay_regression(
    registry: Registry, name: str, selection: Selection, *, require_sandbox: bool
) -> tuple[list[str], Iterator[Replay]]:
    """The session's lines, and the replays to come, one for each selected cell of the regression's algorithm."""
    entry = regression_named(name, load_regressions(registry))
    algorithm = entry.case.algorithm
    patterns = selection.patterns or (f"{algorithm}/*",)
    run = make_plans(registry, Selection(patterns, selection.lanes), counts=Counts(), require_sandbox=require_sandbox)
    plans = [plan for plan in with_regressions(run, [entry]).algorithms if str(plan.algorithm) == algorithm]
    if not plans:
        raise BadInput(
            f"the cells given are not of {algorithm}, the regression's algorithm: name one such as '{algorithm}/*'"
        )
    batch = whole_batch(entry.case)
    return [algorithm, *session_lines(batch, len(batch) - 1)], _replays(plans)


def _replays(plans: Sequence[AlgorithmPlan]) -> Iterator[Replay]:
    for plan in plans:
        if plan.regressions is None:
            yield from (Replay(str(cell.cell), agreed=True, text=_BEYOND) for cell in plan.cells)
        else:
            yield from replays_of(plan, plan.regressions.batch)
