# SPDX-License-Identifier: Apache-2.0
"""Random cases against planted faults: how soon each is caught, by which check, and how small its case becomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from crosslane.campaign import side_by_side
from crosslane.checks import Check, claimed_by, load_checks
from crosslane.errors import HarnessFault
from crosslane.execute import Station
from crosslane.findings.case import Case
from crosslane.findings.classify import Classified, prefix_of, same_face
from crosslane.findings.gather import Fault, Raw, Suspect, faults_of, raw_departures, replays
from crosslane.findings.judge import Judge
from crosslane.findings.shrink import ends_process
from crosslane.plan import Counts
from crosslane.planted.prove import WHOLE_COMPARISONS, same_kind, symptom_name
from crosslane.planted.spots import Spot
from crosslane.planted.wholes import caught_by, red_checks, run_whole
from crosslane.plants import WHOLE

__all__ = ["Tried", "case_size", "claimed", "try_spot", "try_spots", "try_whole"]

_MOST_RAWS = 12
_FIRST_CASES = 32


@dataclass(frozen=True)
class Tried:
    """What random cases said of one plant in one cell.

    ``comparisons`` messages were compared until the fault was caught (all, where it was not, and for a control);
    ``took_s`` is wall time until then, ``shrink_s`` what shrinking took after it. ``found`` are symptom and class of
    all that it came to, ``checks`` claim one of them. ``symptom``, ``fault_class`` and ``case`` are of the one
    expected. ``full`` is whether the lane has the full grids.
    """

    name: str
    cell: str
    full: bool
    control: bool
    wanted: str
    caught: bool
    symptom: str
    fault_class: str
    checks: tuple[str, ...]
    comparisons: int
    took_s: float
    shrink_s: float
    case: Case | None
    text: str = ""
    found: tuple[tuple[str, str], ...] = ()

    @property
    def holds(self) -> bool:
        """A fault was caught by its check; a control was not."""
        if self.control:
            return not self.caught and not self.text
        return self.caught and self.wanted in self.checks and not self.text

    def as_dict(self) -> dict[str, Any]:
        """For JSON, the case by its size alone."""
        values = {name: value for name, value in vars(self).items() if name != "case"}
        return values | {"holds": self.holds, "case_size": case_size(self.case)}


def case_size(case: Case | None) -> str:
    """The size of a case: its operations, and the bytes of data that they take."""
    if case is None:
        return ""
    return f"{len(case.operations)} operations, {sum(item.in_len for item in case.operations)} bytes"


def try_spots(
    spots: Sequence[Spot], checks: Sequence[Check], counts: Counts, *, num_workers: int, tell: Callable[[Tried], None],
    shrink_all: bool = False,
) -> list[Tried]:  # fmt: skip
    """Try all, so many side by side; results come, and are told, in the order of ``spots``.

    ``shrink_all``: also what an emulated lane need not. Raises HarnessFault where a worker dies.
    """
    wanted = [counts.of(spot.lane) for spot in spots]
    tried: list[Tried] = []
    trying = partial(_try, shrink_all=shrink_all)
    for item in side_by_side(trying, list(zip(spots, wanted, strict=True)), num_workers=num_workers):
        tried.append(claimed(item, checks))
        tell(tried[-1])
    return tried


def _try(asked: tuple[Spot, int], *, shrink_all: bool) -> Tried:
    return try_spot(*asked, shrink_all=shrink_all)


def claimed(item: Tried, checks: Sequence[Check]) -> Tried:
    """With the checks that the finding is of."""
    if item.symptom in ("", WHOLE):
        return item
    claims = {name for symptom, text in item.found for name in claimed_by(checks, symptom, text)}
    return replace(item, checks=tuple(sorted(claims)))


def try_whole(spot: Spot, count: int) -> Tried:
    """Run the whole cell of a plant that no single case shows; its checks are those that are red.

    A control is caught where its check is, or any departure.
    """
    begun = time.monotonic()
    red: tuple[str, ...] = ()
    comparisons, text = 0, ""
    try:
        cell = run_whole(spot, count)
        red, comparisons = red_checks(load_checks(spot.registry.root), cell), cell.comparisons
    except HarnessFault as failed:
        text = str(failed)
    took = time.monotonic() - begun
    plant = spot.plant
    caught = caught_by(plant, red)
    symptom = WHOLE if caught else ""
    return Tried(
        name=plant.name,
        cell=spot.cell,
        full=spot.lane.full,
        control=plant.control,
        wanted=plant.check,
        caught=caught,
        symptom=symptom,
        fault_class="",
        checks=red,
        comparisons=comparisons,
        took_s=took,
        shrink_s=0.0,
        case=None,
        text=text,
    )


def try_spot(spot: Spot, count: int, *, shrink_all: bool = False) -> Tried:
    """Run up to ``count`` comparisons of one plant; the first that departs, of the symptom it must show, is shrunk."""
    if spot.plant.symptom == WHOLE:
        return try_whole(spot, min(count, WHOLE_COMPARISONS))
    begun = time.monotonic()
    raws: list[Raw] = []
    faults: list[Fault] = []
    done, text = 0, ""
    try:
        with Judge(spot.manifest, spot.oracle, spot.subject) as judge:
            done, raws = _search(judge, count, spot.plant.symptom)
            took = time.monotonic() - begun
            if raws and not spot.plant.control:
                few = _smallest(raws)
                faults = ([] if shrink_all else _as_met(spot, raws)) or _from_near(spot, few)
                faults = faults or faults_of(judge, _suspect(spot, spot.subject), few)
    except HarnessFault as failed:
        took, text = time.monotonic() - begun, str(failed)
    fault = _wanted(faults, spot.plant.symptom)
    symptom = symptom_name(fault.departure) if fault else symptom_name(raws[0].departure) if raws else ""
    fault_class = fault.classified.text if fault else ""
    caught = bool(raws) if spot.plant.control else same_kind(symptom, spot.plant.symptom)
    return Tried(
        name=spot.plant.name,
        cell=spot.cell,
        full=spot.lane.full,
        control=spot.plant.control,
        wanted=spot.plant.check,
        caught=caught,
        symptom=symptom,
        fault_class=fault_class,
        checks=(),
        comparisons=done,
        took_s=took,
        shrink_s=time.monotonic() - begun - took,
        case=fault.case if fault and fault.shrunk else None,
        text=text,
        found=tuple((symptom_name(item.departure), item.classified.text) for item in faults),
    )


def _smallest(raws: Sequence[Raw]) -> list[Raw]:
    """The shortest few departures of each symptom: one plant is one fault, and long messages take an emulator long."""
    chosen: dict[str, list[Raw]] = {}
    for raw in sorted(raws, key=lambda raw: sum(item.in_len for item in raw.case.operations)):
        chosen.setdefault(symptom_name(raw.departure), []).append(raw)
    return [raw for same in chosen.values() for raw in same[:_MOST_RAWS]]


def _as_met(spot: Spot, raws: Sequence[Raw]) -> list[Fault]:
    """Under an emulator, a departure that ends its process is not shrunk: a thousand candidates would start one each.

    What the watcher saw is its class, which is what checks of such faults go by; the native lane shrinks it.
    """
    met = [raw for raw in raws if ends_process(raw.departure) and symptom_name(raw.departure) == spot.plant.symptom]
    if spot.lane.runner == "native" or not met or spot.plant.symptom in ("output", "iv"):
        return []
    text = "+".join(prefix_of(met[0].departure, spot.lane.arch))
    if spot.plant.check not in claimed_by(load_checks(spot.registry.root), spot.plant.symptom, text):
        return []
    return [Fault(met[0].case, met[0].departure, Classified((), text), met[0].name, shrunk=False)]


def _suspect(spot: Spot, subject: Station) -> Suspect:
    return Suspect(spot.manifest, spot.oracle, subject, spot.lane.arch)


def _from_near(spot: Spot, raws: Sequence[Raw]) -> list[Fault]:
    """What departures of an emulated lane come to natively, where candidates take a tenth of the time, as far as it
    departs alike in the lane itself. Nothing where it does not, or the host's CPU has not what the subject needs.
    """
    if spot.near is None:
        return []
    suspect = _suspect(spot, spot.near)
    try:
        with suspect.judge() as judge:
            found = faults_of(judge, suspect, raws)
    except HarnessFault:
        return []
    again = [replays(spot.subject, fault.case, spot.oracle, 1)[0] for fault in found]
    return [
        fault for fault, seen in zip(found, again, strict=True) if seen is not None and same_face(fault.departure, seen)
    ]


def _wanted(faults: Sequence[Fault], symptom: str) -> Fault | None:
    """The fault with the symptom, else the first: a fault may show in more ways than one."""
    return next((item for item in faults if symptom_name(item.departure) == symptom), faults[0] if faults else None)


def _search(judge: Judge, count: int, symptom: str) -> tuple[int, list[Raw]]:
    """Comparisons until the first departure with the symptom (all where there is none), and the departures met."""
    per_case, per_batch = judge.manifest.messages_per_session, judge.manifest.sessions_per_batch
    number, met = 0, []
    few = _FIRST_CASES  # most faults show at once, and every departure costs some time to look at
    while number * per_batch * per_case < count:
        cases = min(few, per_batch, -(-(count - number * per_batch * per_case) // per_case))
        raws = raw_departures(judge, number, cases)
        met += raws
        for raw in raws:
            if not symptom or same_kind(symptom_name(raw.departure), symptom):
                index = int(raw.name.rpartition("-")[2])
                return (number * per_batch + index + 1) * per_case, met
        if few < per_batch:
            few, met = per_batch, []
        else:
            number += 1
    return count, met
