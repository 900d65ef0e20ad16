# SPDX-License-Identifier: Apache-2.0
"""Who agrees with whom: every cell of an algorithm runs one case, and equal answers are one group.

All cells of the registry take part, those of providers and of their backends too, each in the lanes of the gate and in
those that the finding was seen in. The group of the generic implementation is the first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from crosslane.client import SharedMemory
from crosslane.compare import Departure, compare
from crosslane.describe import departure_text
from crosslane.errors import BadInput, CrosslaneError, MissingTool
from crosslane.execute import CAPACITY, Executor, Station, execute_alone, execute_unless_declined
from crosslane.findings.case import Case, whole_batch
from crosslane.model import Algorithm, Cell, Registry
from crosslane.oracles import oracle_names
from crosslane.plan import AlgorithmPlan, CellPlan, Counts, Selection, make_plans
from crosslane.quorum import answer, case_within
from crosslane.registry import cells
from crosslane.wire import Batch, Flag, OpKind, Results, Watch

__all__ = ["AGREES", "Place", "Ran", "places_of", "run_everywhere"]

AGREES = "A"
"""The group that answers as the generic implementation does."""


@dataclass(frozen=True)
class Place:
    """One cell where the case can run. ``bounded`` plans know which cases their provider promises anything about."""

    plan: AlgorithmPlan
    cell: CellPlan

    @property
    def name(self) -> str:
        """The cell's id."""
        return str(self.cell.cell)


@dataclass(frozen=True)
class Ran:
    """What a cell came to. ``group`` is a letter, empty where it said nothing; ``text`` is why, or how it departed.

    ``version`` is that of the library, empty for implementations that the suite compiles.
    """

    cell: str
    lane: str
    group: str
    text: str
    version: str = ""

    @property
    def departs(self) -> bool:
        """Whether it answered otherwise than the generic implementation."""
        return self.group not in ("", AGREES)


@dataclass(frozen=True)
class _Answered:
    """A cell's answer before groups are named: ``key`` is equal for equal answers, None where there is none."""

    ran: Ran
    key: tuple[object, ...] | None


@dataclass(frozen=True)
class _Form:
    """A case as a batch, with the generic implementation's answer to it."""

    batch: Batch
    expected: Results


def places_of(
    registry: Registry, algorithm: Algorithm, subject: str, lanes: Sequence[str]
) -> tuple[list[Place], list[tuple[str, str]]]:
    """All cells of an algorithm in these lanes, and those that cannot run here, each with the reason.

    Of the implementations that ``--impls`` brought just the ``subject`` takes part. What is not installed, or does not
    build in a lane, is no error here: it says nothing.
    """
    kept = tuple(item for item in registry.implementations if item.origin == "own" or item.driver == subject)
    registry = replace(registry, implementations=kept)
    known = [cell for cell in cells(registry) if cell.algorithm == algorithm and cell.lane in lanes]
    found, missing = _planned(registry, known)
    if not missing:
        return found, missing
    compiled = {item.driver for item in kept}
    found, missing = _together(registry, [cell for cell in known if cell.driver in compiled], subject)
    for name in sorted({cell.driver for cell in known} - compiled):
        planned, lacking = _planned(registry, [cell for cell in known if cell.driver == name])
        found, missing = found + planned, missing + lacking
    return found, missing


def _together(registry: Registry, wanted: Sequence[Cell], subject: str) -> tuple[list[Place], list[tuple[str, str]]]:
    """Implementations of all lanes at once; where that fails lane by lane, and there the subject by itself."""
    found, missing = _planned(registry, wanted)
    if not missing:
        return found, missing
    others = tuple(item for item in registry.implementations if item.driver != subject)
    without = replace(registry, implementations=others) if len(others) < len(registry.implementations) else registry
    missing = []
    for lane in sorted({cell.lane for cell in wanted}):
        here = [cell for cell in wanted if cell.lane == lane]
        planned, lacking = _planned(registry, here)
        if lacking and any(cell.driver == subject for cell in here):
            planned, rest = _planned(without, [cell for cell in here if cell.driver != subject])
            lacking = [*rest, *(item for item in lacking if f"/{subject}@" in item[0])]
        found, missing = found + planned, missing + lacking
    return found, missing


def _planned(registry: Registry, wanted: Sequence[Cell]) -> tuple[list[Place], list[tuple[str, str]]]:
    """These cells, ready to run; or none of them, each with the reason."""
    if not wanted:
        return [], []
    quiet = tuple(oracle_names(registry.root))
    selection = Selection(tuple(map(str, wanted)), tuple(sorted({cell.lane for cell in wanted})), quiet)
    try:
        run = make_plans(registry, selection, counts=Counts())
    except (MissingTool, BadInput) as error:
        why = str(error).partition("\n")[0].partition("; install")[0].partition("; correct what")[0]
        return [], [(str(cell), why) for cell in wanted]
    return [Place(plan, cell) for plan in run.algorithms for cell in plan.cells], []


def run_everywhere(places: Sequence[Place], case: Case, missing: Iterable[tuple[str, str]] = ()) -> list[Ran]:
    """Run a sealed case in every cell, each in a fresh process; in the order of cells. Groups are named by size."""
    if not places:
        return []
    forms = tuple(_Form(batch, execute_alone(places[0].plan.oracle, batch, watch=Watch(0)))
                  for batch in (whole_batch(case), whole_batch(_unobserved(case))))  # fmt: skip
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)), thread_name_prefix="triage") as pool:
        answered = list(pool.map(lambda place: _run(place, *forms), places))
    named = _named(answered)
    silent = [Ran(cell, cell.rpartition("@")[2], "", why) for cell, why in missing]
    return sorted([*named, *silent], key=lambda item: item.cell)


def _unobserved(case: Case) -> Case:
    """The same case without a look at the running iv, which most libraries do not show."""
    hidden = [
        replace(item, flags=item.flags & ~Flag.OBSERVE_IV, out_len=min(item.out_len, item.in_len))
        if item.kind is OpKind.UPDATE and item.flags & Flag.OBSERVE_IV
        else item
        for item in case.operations
    ]
    return replace(case, operations=tuple(hidden), neighbours=tuple(_unobserved(item) for item in case.neighbours))


def _run(place: Place, whole: _Form, unobserved: _Form) -> _Answered:
    cell, manifest = place.cell, place.plan.manifest
    hidden = place.plan.bounded and manifest.iv_out == "none"
    form = unobserved if hidden else whole
    ran = Ran(place.name, cell.cell.lane, "", "")
    if place.plan.bounded and not case_within(manifest, form.batch):
        return _Answered(replace(ran, text="outside of the library's domain"), None)
    try:
        got = execute_unless_declined(cell.station, form.batch, strict=True)
        version = _version(cell.station) if cell.provider else ""
    except CrosslaneError as error:
        return _Answered(replace(ran, text=f"does not run: {error}"), None)
    if got is None:
        why = "the library as it is built has no such thing" if cell.provider else "declined: the CPU lacks a feature"
        return _Answered(replace(ran, text=why), None)
    ran = replace(ran, version=version)
    found = _last(form.batch, form.expected, got)
    if found is None:
        shown = ", as far as it shows: not the running iv" if hidden and _shows_iv(whole.batch) else ""
        return _Answered(replace(ran, group=AGREES, text=f"agrees{shown}"), ())
    seen = answer(form.batch, got, with_iv=not hidden) if not found.signal else b""
    key = (found.verdict, found.symptom, found.buffer, found.signal, seen)
    return _Answered(replace(ran, text=departure_text(form.batch, found, cell.arch)), key)


def _shows_iv(batch: Batch) -> bool:
    return bool((batch.ops["flags"] & Flag.OBSERVE_IV).any())


def _last(batch: Batch, expected: Results, got: Results) -> Departure | None:
    """The departure of the last case, which is the finding's; those before it are its neighbours."""
    departures = compare(batch, expected, got, limit=len(batch) + 1).departures
    return next((item for item in departures if item.case == len(batch) - 1), None)


def _version(station: Station) -> str:
    """Names and versions of the libraries in a shim, as it says them itself; printable and short."""
    memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
    executor = Executor(station, memory)
    try:
        said = executor.open().hello.libraries
    finally:
        executor.release()
        memory.close()
    return "".join(c for c in ", ".join(said) if c.isprintable())[:80]


def _named(answered: Sequence[_Answered]) -> list[Ran]:
    """Letters for groups of equal answers: B for the largest that departs, then C."""
    sizes: dict[tuple[object, ...], int] = {}
    for item in answered:
        if item.key:
            sizes[item.key] = sizes.get(item.key, 0) + 1
    ordered = sorted(sizes, key=lambda key: -sizes[key])
    letters = {key: chr(ord("B") + min(number, 24)) for number, key in enumerate(ordered)}
    return [replace(item.ran, group=letters[item.key]) if item.key else item.ran for item in answered]
