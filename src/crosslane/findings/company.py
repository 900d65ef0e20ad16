# SPDX-License-Identifier: Apache-2.0
"""Departures that need company: which sessions before a case they need, and what is left of those when shrunk.

A leaf that keeps something in a static variable answers wrongly only behind the session that set it. Every candidate
runs in a process of its own, so that nothing survives from one to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from crosslane.compare import Departure
from crosslane.findings.case import Case, case_of
from crosslane.findings.classify import Classified, prefix_of
from crosslane.findings.fresh import FreshJudge
from crosslane.findings.gather import Fault, Suspect
from crosslane.findings.judge import Judge, normalised
from crosslane.findings.shrink import same_symptom, shrink
from crosslane.findings.steps import STEPS, Step
from crosslane.manifest import Manifest
from crosslane.wire import Batch

__all__ = ["fault_in_company"]


def fault_in_company(
    judge: Judge, suspect: Suspect, batch: Batch, index: int, *, wanted: Callable[[Departure], bool], name: str
) -> Fault | None:
    """The fault behind case ``index`` of a batch, which departs there and not alone; None where it cannot be seen.

    ``wanted`` says whether a departure is the one that the run saw.
    """
    fresh = FreshJudge(judge, suspect.subject)
    algorithm = suspect.manifest.algorithm
    victim = case_of(batch, index, algorithm)
    before = [case_of(batch, i, algorithm) for i in range(index)]

    def departs(neighbours: Sequence[Case]) -> bool:
        found = fresh.departure_of_sealed(replace(victim, neighbours=tuple(neighbours)))
        return found is not None and wanted(found)

    needed = _needed(before, departs)
    if needed is None:
        return None
    made = _unsealed(judge, replace(victim, neighbours=tuple(needed)))
    departure = fresh.departure(made) if made is not None else None
    if made is None or departure is None:
        return None
    found = shrink(fresh, made, departure, same_symptom(departure), steps=(_fewer_neighbours, *STEPS, *_NEIGHBOURS))
    words = prefix_of(found.departure, suspect.arch) + (["neighbours"] if found.case.neighbours else [])
    text = "+".join(words) or "any"
    return Fault(fresh.sealed(found.case), found.departure, Classified((), text), name, fresh.num_tried)


def _needed(before: Sequence[Case], departs: Callable[[Sequence[Case]], bool]) -> list[Case] | None:
    """The sessions that the departure needs: the last ones that are enough, then without every one that can go."""
    count = 0
    while not departs(before[len(before) - count :]):
        if count == len(before):
            return None
        count = min(max(1, 2 * count), len(before))
    kept = list(before[len(before) - count :])
    size = len(kept) // 2
    while size:
        at = 0
        while at < len(kept):
            fewer = kept[:at] + kept[at + size :]
            if departs(fewer):
                kept = fewer
            else:
                at += size
        size //= 2
    return kept


def _unsealed(judge: Judge, case: Case) -> Case | None:
    """A case and its neighbours in the form in which they are shrunk."""
    made = [judge.unsealed(item) for item in case.sessions]
    if any(item is None for item in made):
        return None
    *neighbours, last = [item for item in made if item is not None]
    return replace(last, neighbours=tuple(neighbours))


def _fewer_neighbours(case: Case, _: Manifest) -> Iterator[Case]:
    """Without all, then without one."""
    yield replace(case, neighbours=())
    for at in range(len(case.neighbours)):
        yield replace(case, neighbours=case.neighbours[:at] + case.neighbours[at + 1 :])


def _of_neighbours(step: Step) -> Step:
    """A step that simplifies each of the neighbours in turn."""

    def simpler(case: Case, manifest: Manifest) -> Iterator[Case]:
        for at, item in enumerate(case.neighbours):
            for made in step(item, manifest):
                changed = normalised(made, manifest)
                yield replace(case, neighbours=(*case.neighbours[:at], changed, *case.neighbours[at + 1 :]))

    return simpler


_NEIGHBOURS = tuple(_of_neighbours(step) for step in STEPS)
