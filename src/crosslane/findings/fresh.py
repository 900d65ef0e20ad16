# SPDX-License-Identifier: Apache-2.0
"""Tries cases one by one, each in a process of its own: for subjects that keep something between sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from crosslane.compare import Departure, compare
from crosslane.execute import Station, execute_alone
from crosslane.findings.case import Case, whole_batch
from crosslane.findings.judge import Judge
from crosslane.manifest import Manifest

__all__ = ["FreshJudge"]

_MOST_TRIED = 1500
"""Each costs a process: a millisecond or two natively, thirty under an emulator."""
_ALL_BELOW = 80
"""So many candidates of one kind are all tried; of those behind them fewer and fewer."""


class FreshJudge:
    """A judge that shares nothing between candidates, with the oracle of another one. Neighbours run before a case."""

    def __init__(self, judge: Judge, subject: Station) -> None:
        """Nothing is started before the first case."""
        self._judge = judge
        self._subject = subject
        self.num_tried = 0

    @property
    def manifest(self) -> Manifest:
        """What the cases are of."""
        return self._judge.manifest

    def may_be_tried(self, case: Case) -> bool:
        """Whether the subject promises anything about the case and its neighbours."""
        return all(self._judge.may_be_tried(item) for item in case.sessions)

    def sealed(self, case: Case) -> Case:
        """The case and its neighbours as they run."""
        *neighbours, made = self._judge.sealed(case.sessions)
        return replace(made, neighbours=tuple(neighbours))

    def departure(self, case: Case) -> Departure | None:
        """The departure of an unsealed case behind its neighbours, in a fresh process whose results are locked."""
        return self.departure_of_sealed(self.sealed(case))

    def departure_of_sealed(self, case: Case) -> Departure | None:
        """The same of a sealed one."""
        self.num_tried += 1
        batch = whole_batch(case)
        expected = self._judge.encrypt(batch).copy()
        found = compare(batch, expected, execute_alone(self._subject, batch, strict=True), limit=len(batch) + 1)
        return next((item for item in found.departures if item.case == len(batch) - 1), None)

    def all(self, cases: Sequence[Case]) -> list[Departure | None]:
        """The departure of each case; None where one may not be tried."""
        return [self.departure(case) if self.may_be_tried(case) else None for case in cases]

    def first(
        self,
        cases: Iterable[Case],
        accept: Callable[[Departure], bool],
        *,
        careful: bool = False,
        rejected: set[Case] | None = None,
    ) -> tuple[Case, Departure] | None:
        """The first case whose departure is accepted, as far as processes can be spent on it."""
        del careful
        refused: set[Case] = set() if rejected is None else rejected
        for case in _spaced(cases):
            if self.num_tried >= _MOST_TRIED:
                return None
            departure = self.departure(case)
            if departure is not None and accept(departure):
                return case, departure
            refused.add(case)
        return None


def _spaced(cases: Iterable[Case]) -> Iterator[Case]:
    wanted = 0
    for number, case in enumerate(cases):
        if number >= wanted:
            yield case
            wanted = number + 1 if number < _ALL_BELOW else number * 5 // 4
