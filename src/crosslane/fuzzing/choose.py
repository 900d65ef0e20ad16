# SPDX-License-Identifier: Apache-2.0
"""Which cells a round runs: weights by age, by changed sources and by paths not yet reached, and a draw by them.

The choice of a round is a function of the campaign's sentence, of the choices before it, and of what rounds showed that
lie ``HORIZON`` rounds back or more. So it depends neither on the number of workers, nor on which of the rounds under
way ends first, nor on a clock: a campaign that was killed and resumed makes the choices of one that was not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from crosslane.draws import Draws
from crosslane.fuzzing.facts import Outcome, Pair, Snapshot

__all__ = ["HORIZON", "WATCH_AGAIN", "Board", "Candidate", "Choice", "draw_one", "weights"]

HORIZON = 32
"""Rounds after which what a round showed counts; no more than so many are under way."""
_OLDEST = 1 << 16
_MOST_MISSING = 14
_CHANGED = 8
_STREAM = 11
"""Of the draws of a sentence: no part of generation takes words from it."""
_LOOK_AGAIN = 16
"""Departures of a kind that is known of its cell are looked into in one round of so many."""

WATCH_AGAIN = 4
"""Paths of a cell that misses none are watched in one round of so many, in which it may take one nobody knew of."""

Ints = NDArray[np.int64]


def weights(ages: Ints, changed: NDArray[np.bool_], missing: Ints) -> Ints:
    """The weight of each cell: the square of its age in rounds, more for changed sources and for paths not reached.

    ``ages`` are rounds since the cell ran, ``_OLDEST`` and more for one that never did; ``missing`` are paths in length
    classes in which it was not seen and can be. Eight times as much where the sources changed, up to eight times as
    much for what is missing: only age grows without end, so that no cell starves.
    """
    old: Ints = (1 + np.minimum(ages, _OLDEST)) ** 2
    weighted: Ints = old * np.where(changed, _CHANGED, 1) * (2 + np.minimum(missing, _MOST_MISSING))
    return weighted


def draw_one(weighted: Sequence[int], word: int) -> int:
    """The index that a 64-bit word draws, each in proportion to its weight; at least one weight is not 0."""
    point = (word * sum(weighted)) >> 64
    for index, weight in enumerate(weighted):
        point -= weight
        if point < 0:
            return index
    raise AssertionError(weighted)


@dataclass(frozen=True)
class Candidate:
    """A cell that may be chosen. ``plan`` is the index of its plan; cells of one ``family`` are the same code in other
    lanes; ``declared`` are its paths; ``batches`` is how far it moves its algorithm on; ``emulated``: under qemu.
    """

    cell: str
    plan: int
    family: str
    digest: str
    declared: tuple[str, ...]
    batches: int
    emulated: bool = False


@dataclass(frozen=True)
class Choice:
    """What a round runs: a plan and some of its cells, from a batch on; ``known`` are the kinds of departures of each
    cell that need not be looked into; the paths of ``settled`` ones need not be watched.
    ``fresh``: the code of one of the cells did not run yet, so that stored cases are replayed first.
    """

    number: int
    plan: int
    cells: tuple[str, ...]
    first_batch: int
    next_batch: int
    known: Mapping[str, frozenset[str]]
    settled: frozenset[str] = frozenset()
    fresh: bool = False


@dataclass(frozen=True)
class _News:
    """What a round showed of a cell: paths, kinds of departures, and whether it declined."""

    cell: int
    pairs: tuple[Pair, ...]
    kinds: tuple[str, ...]
    declined: bool


@dataclass
class Board:
    """All that choices are made by, in memory that grows with the number of cells alone."""

    seed: str
    candidates: tuple[Candidate, ...]
    plans: tuple[str, ...]
    num_cells: int
    last: Ints = field(init=False)
    changed: NDArray[np.bool_] = field(init=False)
    eligible: NDArray[np.bool_] = field(init=False)
    missing: Ints = field(init=False)
    batches: list[int] = field(init=False)
    _plan_of: Ints = field(init=False)
    _reached: list[set[Pair]] = field(init=False)
    _kinds: list[set[str]] = field(init=False)
    _since: list[int] = field(init=False)
    _index: dict[str, int] = field(init=False)
    _families: dict[str, list[int]] = field(init=False)
    _news: dict[int, list[_News]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        count = len(self.candidates)
        self.last, self.missing = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.changed, self.eligible = np.zeros(count, bool), np.ones(count, bool)
        self.batches = [0] * len(self.plans)
        self._reached, self._kinds = [set() for _ in range(count)], [set() for _ in range(count)]
        self._since = [0] * count
        self._index = {item.cell: at for at, item in enumerate(self.candidates)}
        self._plan_of = np.array([item.plan for item in self.candidates], np.int64)
        self._families = {}
        for at, item in enumerate(self.candidates):
            self._families.setdefault(item.family, []).append(at)
            self.missing[at] = len(item.declared)

    def load(self, snapshot: Snapshot) -> None:
        """Take what a state holds. What is too recent to count yet waits for its round."""
        for at, item in enumerate(self.candidates):
            facts = snapshot.cells.get(item.cell)
            if facts is None:
                continue
            self.last[at] = facts.last_round
            self.changed[at] = facts.digest != item.digest
            if self.changed[at]:
                continue  # what is known is of other code
            for pair, number in snapshot.reached.get(item.cell, {}).items():
                self._wait(number, _News(at, (pair,), (), declined=False))
            for kind, number in snapshot.kinds.get(item.cell, {}).items():
                self._wait(number, _News(at, (), (kind,), declined=False))
            if facts.declined:
                self._wait(facts.declined, _News(at, (), (), declined=True))
        for at, name in enumerate(self.plans):
            self.batches[at] = snapshot.batches.get(name, 0)

    def note(self, outcome: Outcome) -> None:
        """Take what a round showed, to count when its time comes."""
        for cell in outcome.cells:
            at = self._index[cell.cell]
            kinds = tuple(kind for kind, _ in cell.kinds)
            self._wait(outcome.number, _News(at, cell.taken, kinds, declined=cell.state == "declined"))

    def _wait(self, number: int, news: _News) -> None:
        self._news.setdefault(number, []).append(news)

    def choose(self, number: int) -> Choice | None:
        """The choice of a round, which has to be asked for in order; None where no cell is left that could run."""
        self._reveal(number - HORIZON)
        ages = np.where(self.last > 0, number - self.last, _OLDEST)
        weighted = np.where(self.eligible, weights(ages, self.changed, self.missing), 0)
        if not weighted.any():
            return None
        sentence = hashlib.sha256(self.seed.encode()).hexdigest()
        words = [int(word) for word in Draws(sentence, number, stream=_STREAM).words(1 + self.num_cells)]
        plan = self.candidates[draw_one(weighted.tolist(), words[0])].plan
        chosen = self._of_plan(plan, weighted, words[1:])
        first = self.batches[plan]
        self.batches[plan] = first + max(self.candidates[at].batches for at in chosen)
        look_again = words[0] % _LOOK_AGAIN == 0
        known = {self.candidates[at].cell: frozenset() if look_again else frozenset(self._kinds[at]) for at in chosen}
        settled = frozenset() if (words[0] >> 8) % WATCH_AGAIN == 0 else self._settled(chosen)
        fresh = any(self.changed[at] or self.last[at] == 0 for at in chosen)
        for at in chosen:
            self._note_choice(at, number)
        return Choice(number, plan, tuple(known), first, self.batches[plan], known, settled, fresh)

    def _settled(self, cells: Sequence[int]) -> frozenset[str]:
        """Those under an emulator, for which a trap is dear, that were seen to take all paths that any lane takes."""
        return frozenset(
            self.candidates[at].cell
            for at in cells
            if self.candidates[at].emulated and self.missing[at] == 0 and not self.changed[at]
        )

    def _of_plan(self, plan: int, weighted: Ints, words: Sequence[int]) -> list[int]:
        """Cells of a plan, drawn by weight, in their order."""
        left = np.flatnonzero((self._plan_of == plan) & (weighted > 0)).tolist()
        chosen = []
        for word in words:
            if not left:
                break
            chosen.append(left.pop(draw_one([int(weighted[at]) for at in left], word)))
        return sorted(chosen)

    def _note_choice(self, at: int, number: int) -> None:
        self.last[at] = number
        if self.changed[at]:
            self.changed[at], self._since[at] = False, number
            self._reached[at], self._kinds[at] = set(), set()
            self.eligible[at] = True

    def _reveal(self, until: int) -> None:
        """Let what rounds up to this one showed count."""
        for number in sorted(number for number in self._news if number <= until):
            families = set()
            for news in self._news.pop(number):
                if number < self._since[news.cell]:
                    continue
                if not self._reached[news.cell].issuperset(news.pairs):
                    self._reached[news.cell].update(news.pairs)
                    families.add(self.candidates[news.cell].family)
                self._kinds[news.cell].update(news.kinds)
                self.eligible[news.cell] = not news.declined or bool(self.changed[news.cell])
            for family in families:
                self._count_missing(self._families[family])

    def _count_missing(self, cells: Sequence[int]) -> None:
        """Paths that a cell takes in another lane and not here, and declared ones that it never took."""
        together = set().union(*(self._reached[at] for at in cells))
        for at in cells:
            mine = self._reached[at]
            never = set(self.candidates[at].declared) - {path for path, _ in mine | together}
            self.missing[at] = len(together - mine) + len(never)
