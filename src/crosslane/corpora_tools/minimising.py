# SPDX-License-Identifier: Apache-2.0
"""The few cases of a corpus that cover all that the whole of it does: code paths by length class, and features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from crosslane import wire
from crosslane.client import SharedMemory
from crosslane.corpora_tools.sound import manifests
from crosslane.corpora_tools.stats import features_of
from crosslane.corpora_tools.stored import Entry, line_of
from crosslane.errors import HarnessFault
from crosslane.execute import CAPACITY, Executor, Station
from crosslane.findings.case import Case, whole_batch
from crosslane.model import Registry
from crosslane.plan import AlgorithmPlan, Counts, Selection, make_plans
from crosslane.wire import NUM_CLASSES, Verdict, class_name

__all__ = ["Minimised", "Observer", "least", "minimise", "observed", "observers_of", "size_of"]

_NOTHING_TAKEN = (0,) * NUM_CLASSES


class Observer:
    """Says which code paths of a subject a case takes. The process lives from case to case; use ``release``."""

    def __init__(self, cell: str, station: Station) -> None:
        """Nothing is started before the first case."""
        self.cell = cell
        self._memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
        self._executor = Executor(station, self._memory)

    @property
    def can_observe(self) -> bool:
        """Whether the subject runs here and its code paths can be seen."""
        shim = self._executor.open()
        return not shim.opened.declined and "paths" in shim.hello.watchers and bool(shim.opened.paths)

    def words(self, case: Case) -> set[str]:
        """A word for each code path that the case takes, by length class, and one where it ends the process."""
        names = self._executor.open().opened.paths
        batch = whole_batch(case)
        wire.encode_batch_into(batch, self._memory.view)
        self._executor.begin_anew(_NOTHING_TAKEN)
        self._executor.start(batch, len(batch))
        verdicts = {int(item) for item in self._executor.finish().cases["verdict"]} - {int(Verdict.RAN)}
        words = {f"{self.cell} ends:{item}" for item in verdicts}
        for number, taken in enumerate(self._executor.taken):
            words |= {f"{self.cell} {name}:{class_name(number)}" for bit, name in enumerate(names) if taken >> bit & 1}
        return words

    def release(self) -> None:
        """End the process and give the memory back."""
        self._executor.release()
        self._memory.close()


@dataclass(frozen=True)
class Minimised:
    """The entries that are kept, what all cover, and the cells whose code paths could not be observed."""

    entries: tuple[Entry, ...]
    words: frozenset[str]
    blind: tuple[str, ...]


def size_of(entry: Entry) -> int:
    """What makes a case small: the bytes that it takes as a line of a packed corpus, data and operations alike."""
    return len(line_of(entry))


def least(covered: Sequence[tuple[Entry, set[str]]]) -> list[Entry]:
    """Some entries that together cover what all cover, small ones first; deterministic, whatever their order.

    Greedy twice: the entry that costs least bytes for each word that is not covered yet is kept, again and again, and
    one is dropped where those that were kept after it cover all of it too.
    """
    queue = [(0.0, entry.digest, number) for number, (entry, _) in enumerate(covered)]
    heapify(queue)
    kept: list[tuple[Entry, set[str]]] = []
    seen: set[str] = set()
    while queue:
        cost, digest, number = heappop(queue)
        entry, words = covered[number]
        new = len(words - seen)
        now = size_of(entry) / new if new else 0.0  # costs only rise, so that what is first at its true cost is least
        if new and now > cost:
            heappush(queue, (now, digest, number))
        elif new:
            kept.append((entry, words))
            seen |= words
    times: dict[str, int] = {}
    for _, words in kept:
        for word in words:
            times[word] = times.get(word, 0) + 1
    left = []
    for entry, words in reversed(kept):
        if all(times[word] > 1 for word in words):
            for word in words:
                times[word] -= 1
        else:
            left.append(entry)
    return sorted(left, key=lambda entry: entry.digest)


def observers_of(plan: AlgorithmPlan, blind: list[str]) -> list[Observer]:
    """One for each cell whose code paths can be observed; why not goes into ``blind``."""
    found: list[Observer] = []
    for cell in plan.cells:
        if not cell.declared:
            continue
        observer = Observer(str(cell.cell), cell.station)
        try:
            if observer.can_observe:
                found.append(observer)
                continue
            blind.append(f"{cell.cell}: its code paths cannot be observed here")
        except HarnessFault as fault:
            blind.append(f"{cell.cell}: {fault}")
        observer.release()
    return found


def minimise(registry: Registry, entries: Iterable[Entry], selection: Selection) -> Minimised:
    """Minimise a corpus by the code paths of the selected cells, and by the features of its cases."""
    by_name: dict[str, list[Entry]] = {}
    for entry in entries:
        by_name.setdefault(entry.case.algorithm, []).append(entry)
    run = make_plans(registry, selection, counts=Counts.each(0))
    plans = {str(plan.algorithm): plan for plan in run.algorithms if not plan.bounded}
    known = manifests(registry)
    kept: list[Entry] = []
    words: set[str] = set()
    blind: list[str] = []
    for name, mine in sorted(by_name.items()):
        if name not in plans:
            blind.append(f"{name}: none of its cells is selected, features alone decide")
        observers = observers_of(plans[name], blind) if name in plans else []
        try:
            found = [(entry, features_of(entry.case, known[name]) | observed(entry.case, observers)) for entry in mine]
        finally:
            for observer in observers:
                observer.release()
        words |= {f"{name} {word}" for _, some in found for word in some}
        kept += least(found)
    return Minimised(tuple(kept), frozenset(words), tuple(blind))


def observed(case: Case, observers: Sequence[Observer]) -> set[str]:
    """The words of all observers for a case."""
    return {word for observer in observers for word in observer.words(case)}
