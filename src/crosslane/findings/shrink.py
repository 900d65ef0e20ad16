# SPDX-License-Identifier: Apache-2.0
"""Shrinks a departing case to what its departure needs: deterministic, idempotent, never larger, the same symptom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from crosslane.compare import Departure
from crosslane.findings.case import Case
from crosslane.findings.judge import Tries, normalised
from crosslane.findings.size import measure
from crosslane.findings.steps import STEPS, Step
from crosslane.wire import Buffer, Status, Symptom, Verdict

__all__ = ["Shrunk", "ends_process", "kind_of_answer", "same_symptom", "shrink"]

Accept = Callable[[Departure], bool]

_MOST_HANGS = 12
"""Cases that hang cost seconds each: so many are tried, in order, and the case is then as small as it got."""


@dataclass(frozen=True)
class Shrunk:
    """A case, unsealed, with its departure; ``num_tried`` candidates were run for it."""

    case: Case
    departure: Departure
    num_tried: int


def ends_process(departure: Departure) -> bool:
    """Whether a case that departs so costs a process."""
    return departure.symptom not in (Symptom.OUTPUT, Symptom.IV)


def same_symptom(wanted: Departure, *, registers: int = 0) -> Accept:
    """Accepts what is the same departure to a user: watcher, buffer, side of it, signal, registers.

    ``registers`` are those that must be among the changed ones, all of ``wanted`` where 0.
    """
    needed = registers or wanted.registers

    def accept(found: Departure) -> bool:
        if (found.symptom, found.signal) != (wanted.symptom, wanted.signal):
            return False
        if wanted.symptom is Symptom.OUTPUT:
            return kind_of_answer(found) == kind_of_answer(wanted)
        if found.verdict != wanted.verdict:
            return False
        if wanted.symptom is Symptom.ABI:
            return found.registers & needed == needed
        if wanted.symptom in (Symptom.NONE, Symptom.IV):
            return True
        buffers = {found.buffer, wanted.buffer}
        if wanted.symptom is Symptom.GUARD_READ and buffers == {Buffer.IN, Buffer.OUT}:
            buffers = {Buffer.IN}  # the input of a call in place lies in the output
        return len(buffers) == 1 and (found.offset < 0) == (wanted.offset < 0)

    return accept


def kind_of_answer(departure: Departure) -> str:
    """A wrong answer, a legal input refused or an illegal one accepted: none of them is another.

    A true tag that is refused is a wrong answer: what the subject computed is another tag.
    """
    if departure.buffer or departure.got == bytes([Status.BAD_TAG]):
        return "answer"
    return "refuses" if departure.verdict is Verdict.REJECT else "accepts"


class _Budget:
    """Accepts as told, until too many candidates hung."""

    def __init__(self, accept: Accept) -> None:
        self._accept = accept
        self.num_hung = 0

    def __call__(self, departure: Departure) -> bool:
        self.num_hung += departure.verdict is Verdict.HANG
        return self._accept(departure)


def shrink(
    judge: Tries, case: Case, departure: Departure, accept: Accept | None = None, *, steps: Sequence[Step] = STEPS
) -> Shrunk:
    """Shrink an unsealed case that departs as ``departure``; goes through all steps until none helps any more."""
    budget = _Budget(accept or same_symptom(departure))
    before = judge.num_tried
    rejected: set[Case] = set()
    progress = True
    while progress:
        progress = False
        for step in steps:
            while budget.num_hung < _MOST_HANGS:
                candidates = _smaller(step(case, judge.manifest), case, judge, rejected)
                found = judge.first(candidates, budget, careful=ends_process(departure), rejected=rejected)
                if found is None:
                    break
                case, departure = found
                progress = True
    return Shrunk(case, departure, judge.num_tried - before)


def _smaller(candidates: Iterator[Case], case: Case, judge: Tries, rejected: set[Case]) -> Iterator[Case]:
    """Just the candidates that are smaller, in their canonical form, none twice."""
    size = measure(case)
    seen: set[Case] = set()
    for candidate in candidates:
        made = normalised(candidate, judge.manifest)
        if made not in seen and made not in rejected and measure(made) < size and judge.may_be_tried(made):
            seen.add(made)
            yield made
