# SPDX-License-Identifier: Apache-2.0
"""Turns the raw departures of one cell into its faults: each shrunk, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosslane.compare import Departure, compare
from crosslane.execute import Station, execute_alone
from crosslane.findings.case import Case, case_of, whole_batch
from crosslane.findings.classify import Classified, class_unasked, classify, same_face
from crosslane.findings.fresh import FreshJudge
from crosslane.findings.judge import Judge, Tries
from crosslane.findings.probes import depends_on_tweak, depends_on_watcher, holds_refusal
from crosslane.findings.shrink import ends_process, kind_of_answer, same_symptom, shrink
from crosslane.findings.size import measure
from crosslane.findings.without import without
from crosslane.generate import select_cases
from crosslane.manifest import Manifest
from crosslane.wire import Batch, Symptom, Watch

__all__ = ["Fault", "Raw", "Suspect", "classes_of", "faults_of", "first_departure", "raw_departures", "replays"]

MOST_FAULTS = 8
"""Faults told apart in one cell; what is left then is said, and comes up when these are mended."""
_MOST_RAW = 384
_MOST_RAW_BYTES = 1 << 20
_MOST_ENDING = 32
_MOST_ROUNDS = 3
_REPLAYS = 3
_PATIENCE = 3
_ORDER = (
    Symptom.ABI, Symptom.CONTEXT, Symptom.INPUT, Symptom.CANARY, Symptom.GUARD_WRITE, Symptom.GUARD_READ, Symptom.NONE,
    Symptom.IV, Symptom.OUTPUT,
)  # fmt: skip


@dataclass(frozen=True)
class Suspect:
    """One cell under investigation: its subject, the oracle, the manifest; ``arch`` names registers.

    ``bounded`` is whether the manifest keeps to the domain of a provider.
    """

    manifest: Manifest
    oracle: Station
    subject: Station
    arch: str
    bounded: bool = False

    def judge(self) -> Judge:
        """A judge of this cell, to be used as a context manager."""
        return Judge(self.manifest, self.oracle, self.subject, bounded=self.bounded)


@dataclass(frozen=True)
class Raw:
    """A case as it departed: unsealed, with its id or that of the vector."""

    case: Case
    departure: Departure
    name: str


@dataclass(frozen=True)
class Fault:
    """One fault of a cell. ``case`` is shrunk and sealed, ready to run; ``departure`` is its own when it runs alone.

    ``name`` is the case that it was shrunk from; ``shrunk`` False where it departs only in company or not always, and
    ``rate`` is how often it departs when it runs alone.
    """

    case: Case
    departure: Departure
    classified: Classified
    name: str
    num_tried: int = 0
    shrunk: bool = True
    rate: float = 1.0


def raw_departures(judge: Judge, number: int, count: int) -> list[Raw]:
    """Departures of batch ``number`` among its first ``count`` cases, as far as processes can be spent on them."""
    batch = judge.generated(number)
    algorithm = judge.manifest.algorithm
    found: list[Raw] = []
    begin = 0
    for _ in range(_MOST_ROUNDS):
        if begin >= min(count, len(batch)):
            break
        part = select_cases(batch, np.arange(begin, min(count, len(batch))))
        departures = judge.compare(part, len(part))
        for item in departures[:_MOST_RAW]:
            case = judge.unsealed(case_of(part, item.case, algorithm))
            if case is not None:
                name = f"{judge.manifest.digest}-{number}-{begin + item.case}"
                found.append(Raw(case, item, name))
        if not departures or not ends_process(departures[-1]):
            break
        begin += departures[-1].case + 1
    return found


def _rank(raw: Raw) -> tuple[object, ...]:
    """Which departure is looked at first: by what the watchers saw, then by size, then by name."""
    symptom = raw.departure.symptom
    order = _ORDER.index(symptom) if symptom in _ORDER else len(_ORDER)
    size = measure(raw.case)[:3]
    return (order, raw.departure.registers.bit_count(), size[2], size, raw.name)


def replays(station: Station, case: Case, expected: Station, count: int) -> list[Departure | None]:
    """What a sealed case comes to, alone in a fresh process, so many times."""
    batch = whole_batch(case)
    return [first_departure(batch, station, expected) for _ in range(count)]


def first_departure(batch: Batch, subject: Station, oracle: Station, *, watch: Watch = Watch.ALL) -> Departure | None:
    """The departure of the last case of a batch in a fresh process, whose results are locked while a call runs."""
    expected = execute_alone(oracle, batch, watch=Watch(0))
    found = compare(batch, expected, execute_alone(subject, batch, watch=watch, strict=True), limit=len(batch) + 1)
    return next((item for item in found.departures if item.case == len(batch) - 1), None)


def faults_of(judge: Judge, suspect: Suspect, raws: Sequence[Raw], known: Sequence[Fault] = ()) -> list[Fault]:
    """Tell the faults behind some departures apart. Deterministic in the departures and the subject.

    ``known`` are faults that the implementation showed in another lane; those that show here too come first. A
    departure that does not repeat alone, or turns out to be of a fault that was met, is passed over; three of a kind,
    and the kind is.
    """
    left = _limited(sorted(raws, key=_rank))
    faults: list[Fault] = []
    for fault in known:
        (again,) = replays(suspect.subject, fault.case, suspect.oracle, 1)
        if again is not None and same_face(fault.departure, again):
            faults.append(fault)
            left = sorted(_others(judge, fault, left), key=_rank)
    passed_over: dict[tuple[object, ...], int] = {}
    while left and len(faults) < MOST_FAULTS:
        raw, left = left[0], left[1:]
        sealed = judge.sealed([raw.case])[0]
        (again,) = replays(suspect.subject, sealed, suspect.oracle, 1)
        found: Fault | None = None
        if again is not None and again.key == raw.departure.key:
            met = [item.departure for item in faults]
            found = _one_fault(judge, suspect, replace(raw, departure=again), met)
        if found is None or any(_same_class(found, other) for other in faults):
            kind = _kind(raw.departure)
            passed_over[kind] = passed_over.get(kind, 0) + 1
            if passed_over[kind] >= _PATIENCE:
                left = [item for item in left if _kind(item.departure) != kind]
        else:
            faults.append(found)
        if found is None:
            continue
        left = sorted(_others(judge, found, left), key=_rank)
    return faults


def _kind(departure: Departure) -> tuple[object, ...]:
    """What departures share that are passed over together; a refused tag is a wrong one."""
    return ("output", kind_of_answer(departure)) if departure.symptom is Symptom.OUTPUT else departure.key


def _same_class(one: Fault, other: Fault) -> bool:
    return (one.departure.symptom, one.classified.text) == (other.departure.symptom, other.classified.text)


def _limited(raws: Sequence[Raw]) -> list[Raw]:
    """So many that each may be asked about: fewer of those that cost a process each."""
    ending = [raw for raw in raws if ends_process(raw.departure)][:_MOST_ENDING]
    others: list[Raw] = []
    left = _MOST_RAW_BYTES
    for raw in [raw for raw in raws if not ends_process(raw.departure)][:_MOST_RAW]:
        left -= sum(item.in_len for item in raw.case.operations)
        if left > 0 or not others:
            others.append(raw)
    return ending + others


def _one_fault(judge: Judge, suspect: Suspect, raw: Raw, met: Sequence[Departure]) -> Fault:
    """Shrink a departure that repeats alone, and class it."""
    known = 0
    for item in met:
        known |= item.registers
    registers = raw.departure.registers & ~known
    accept = same_symptom(raw.departure, registers=registers)
    found = shrink(judge, raw.case, raw.departure, accept)
    sealed = judge.sealed([found.case])[0]
    again = replays(suspect.subject, sealed, suspect.oracle, _REPLAYS)
    asked: Tries = judge
    if not all(item is not None and accept(item) for item in again):
        # It needed the candidates before it: none may be before another.
        asked = fresh = FreshJudge(judge, suspect.subject)
        found = shrink(fresh, raw.case, raw.departure, accept)
        sealed = fresh.sealed(found.case)
        again = replays(suspect.subject, sealed, suspect.oracle, _REPLAYS)
    if not all(item is not None and accept(item) for item in again):
        sealed = judge.sealed([raw.case])[0]
        return Fault(sealed, raw.departure, Classified((), "unshrunk"), raw.name, found.num_tried, shrunk=False)
    seen = _seen_of(asked, judge, suspect, (found.case, sealed), found.departure, again)
    classified = classify(asked, found.case, found.departure, arch=suspect.arch, registers=registers, seen=seen)
    return Fault(sealed, again[0] or found.departure, classified, raw.name, found.num_tried)


def _seen_of(
    asked: Tries,
    judge: Judge,
    suspect: Suspect,
    forms: tuple[Case, Case],
    departure: Departure,
    again: Sequence[Departure | None],
) -> list[str]:
    """What further runs of a shrunk case (its ``forms`` are unsealed and sealed) say of its departure."""
    case, sealed = forms
    return [
        *(["tweak"] if depends_on_tweak(asked, case, departure) else []),
        *(["refused"] if holds_refusal(judge, sealed, departure) else []),
        *(["dirty_state"] if _needs(Watch.REGISTERS, suspect, sealed, again) else []),
        *(["other_context"] if _needs(Watch.CONTEXT, suspect, sealed, again) else []),
    ]


def classes_of(suspect: Suspect, sealed: Case, departure: Departure) -> Iterator[str]:
    """The class of a case that was shrunk before, as far as it can be said without a run, with some, and with more.

    Each text holds the words of those before it unless runs speak against them. The last one tries every case beside
    this one in a process of its own, for subjects that keep something between sessions.
    """
    with suspect.judge() as judge:
        case = judge.unsealed(sealed)
        if case is None:
            return
        yield class_unasked(case, departure, suspect.manifest, suspect.arch).text
        for asked in (judge, FreshJudge(judge, suspect.subject)):
            seen = _seen_of(asked, judge, suspect, (case, sealed), departure, [departure])
            yield classify(asked, case, departure, arch=suspect.arch, seen=seen).text


def _needs(watcher: Watch, suspect: Suspect, case: Case, again: Sequence[Departure | None]) -> bool:
    """Whether a case departs otherwise, or not, without what a watcher does to registers, stack or other contexts."""
    if suspect.bounded or (watcher is Watch.CONTEXT and not any(item.slot for item in case.operations)):
        return False
    batch, without_it = whole_batch(case), Watch.ALL & ~watcher
    return depends_on_watcher(again, first_departure(batch, suspect.subject, suspect.oracle, watch=without_it))


def _others(judge: Judge, fault: Fault, left: Sequence[Raw]) -> Iterable[Raw]:
    """Departures that are not of this fault, each without what this fault needs, so that it cannot turn into it."""
    if not fault.shrunk:
        return [raw for raw in left if raw.departure.key != fault.departure.key]
    features = fault.classified.features
    if not features and fault.departure.symptom is Symptom.IV:
        features = ("chaining",)
    if not features:
        return [raw for raw in left if not same_face(fault.departure, raw.departure)]
    strangers = [raw for raw in left if not _judged_by_features(fault, raw)]
    asked = [raw for raw in left if _judged_by_features(fault, raw)]
    variants = [without(raw.case, feature, judge.manifest) for raw in asked for feature in features]
    answers = judge.all(variants)
    led_astray = _led_astray(judge, fault, asked)
    for number, raw in enumerate(asked):
        mine = range(number * len(features), (number + 1) * len(features))
        still = [i for i in mine if answers[i] is not None]
        if still and raw.name not in led_astray:
            departure = answers[still[0]]
            assert departure is not None
            strangers.append(Raw(variants[still[0]], departure, raw.name))
    return strangers


def _led_astray(judge: Judge, fault: Fault, raws: Sequence[Raw]) -> set[str]:
    """Names of cases with wrong output that are right where no call goes on from the iv that another left wrong."""
    if fault.departure.symptom is not Symptom.IV:
        return set()
    asked = [raw for raw in raws if raw.departure.symptom is Symptom.OUTPUT]
    answers = judge.all([without(raw.case, "chaining", judge.manifest) for raw in asked])
    return {raw.name for raw, answer in zip(asked, answers, strict=True) if answer is None}


def _judged_by_features(fault: Fault, raw: Raw) -> bool:
    """Whether taking the fault's features out of a case can tell: not where it changed registers of its own."""
    return not raw.departure.registers & ~fault.departure.registers
