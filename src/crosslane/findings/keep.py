# SPDX-License-Identifier: Apache-2.0
"""After a run: tells the faults behind its departures apart, shrinks each, and keeps them in the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from crosslane.bulk import BULK
from crosslane.campaign import side_by_side
from crosslane.compare import Departure
from crosslane.data import shown
from crosslane.describe import departure_text
from crosslane.directed import vector_batch
from crosslane.errors import HarnessFault
from crosslane.execute import execute_alone
from crosslane.findings.answers import JudgeName, expected_of, published
from crosslane.findings.case import Case, case_of, whole_batch
from crosslane.findings.classify import Classified
from crosslane.findings.company import fault_in_company
from crosslane.findings.deviations import Deviation, Ran
from crosslane.findings.gather import Fault, Raw, Suspect, faults_of, raw_departures, replays
from crosslane.findings.judge import Judge
from crosslane.findings.record import Key, Record, State
from crosslane.findings.regressed import regression_place, regression_raws
from crosslane.findings.reproducer import Ingredients, harness_of, repro_text
from crosslane.findings.store import UPSTREAM, Kept, Store
from crosslane.findings.upstream import Upstream, program_text
from crosslane.findings.upstream_report import agreement_rows, report_text
from crosslane.generate import select_cases
from crosslane.instances import instances
from crosslane.large import LARGE
from crosslane.manifest import parse_case_id
from crosslane.model import Implementation, Lane, Provider, Registry
from crosslane.names import parse_cell
from crosslane.plan import AlgorithmPlan, CellPlan, RunPlan
from crosslane.records import AlgorithmResult, CellResult, Finding
from crosslane.registry import implementation_named, mode_named
from crosslane.toolchain import lane_toolchain
from crosslane.trials import THREADS, is_trial
from crosslane.wire import Buffer, Symptom, Verdict

__all__ = [
    "Keeper",
    "KeptRun",
    "Looked",
    "ingredients",
    "kept_lines",
    "left_trials",
    "look_into",
    "ran_of",
    "subject_of",
]

_MOST_BATCHES = 4
_RATE_RUNS = 10


@dataclass(frozen=True)
class KeptRun:
    """What a run left in the store: sightings by cell, and cells whose departures were not kept, with the reason."""

    sightings: tuple[tuple[str, Record], ...]
    failed: tuple[tuple[str, str], ...]

    @property
    def records(self) -> list[Record]:
        """Each finding once, in the order of sighting, as it was kept last."""
        return list({record.id: record for _, record in self.sightings}.values())


@dataclass(frozen=True)
class _Found:
    """A fault with what it was judged by; ``text`` says what departed where the fault's own departure does not."""

    fault: Fault
    judge: JudgeName = "generic"
    state: State = "open"
    text: str = ""


def subject_of(registry: Registry, driver: str) -> Implementation | Provider:
    """The implementation or the provider of that name."""
    for instance in instances(registry):
        if instance.name == driver:
            return instance.provider
    return implementation_named(registry, driver)


def ingredients(registry: Registry, driver: str, mode: str, lane: Lane) -> Ingredients:
    """What a reproducer for a lane is made of."""
    toolchain = lane_toolchain(lane)
    return Ingredients(registry.root, mode_named(registry, mode), subject_of(registry, driver), lane, toolchain)


class Keeper:
    """Keeps the findings of one run. ``say`` is told what is being worked on."""

    def __init__(
        self,
        registry: Registry,
        store: Store,
        *,
        revision: str,
        impls: Sequence[str] = (),
        deviations: Sequence[Deviation] = (),
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Nothing is written before ``keep``."""
        self._registry = registry
        self._store = store
        self._revision = revision
        self._impls = tuple(sorted(str(Path(folder).resolve()) for folder in impls))
        self._deviations = tuple(deviations)
        self._say = say

    def keep(
        self,
        plans: RunPlan,
        results: Sequence[AlgorithmResult],
        *,
        num_workers: int = 1,
        raws: Mapping[str, Sequence[Raw]] | None = None,
    ) -> KeptRun:
        """Look into every cell that departed, side by side. Raises HarnessFault where the store cannot be written.

        ``raws`` are the departures of cells whose cases no manifest makes, as they came, by cell.
        What is kept does not depend on the number of workers: the lanes of one implementation are one worker's.
        """
        by_name = {plan.name: plan for plan in plans.algorithms}
        jobs = [job for result in results for job in _jobs(by_name[result.name], result, raws or {})]
        for job in jobs:
            self._say("shrinking: " + ", ".join(str(place.cell) for place, _ in job.cells))
        looked = map(Looked, jobs, side_by_side(_look, jobs, num_workers=num_workers))
        kept = self.put(looked, plans.lanes)
        return replace(kept, failed=(*kept.failed, *left_trials(results, kept.sightings)))

    def put(self, looked: Iterable[Looked], lanes: Sequence[Lane]) -> KeptRun:
        """Write what was found, in order; ``lanes`` are those of the cells. Writing it once more changes nothing."""
        by_name = {lane.name: lane for lane in lanes}
        sightings: list[tuple[str, Record]] = []
        failed: list[tuple[str, str]] = []
        for item in looked:
            for (place, cell), (found, why) in zip(item.job.cells, item.found, strict=True):
                name, lane = str(place.cell), by_name[place.cell.lane]
                failed += [(name, why)] if why else []
                sightings += [(name, self._put(item.job.plan, place, lane, cell, fault)) for fault in found]
        return KeptRun(tuple(sightings), tuple(failed))

    def _put(self, plan: AlgorithmPlan, place: CellPlan, lane: Lane, cell: CellResult, found: _Found) -> Record:
        """Write one fault of one cell, and of a library's what its maintainers need."""
        fault, ran = found.fault, ran_of(cell)
        symptom = fault.departure.symptom
        name = symptom.name.lower() if symptom is not Symptom.NONE else fault.departure.verdict.name.lower()
        key = Key(ran.implementation, str(plan.algorithm), name, fault.classified.text)
        batch = whole_batch(fault.case)
        text = found.text or departure_text(batch, replace(fault.departure, case=len(batch) - 1), place.arch)
        expected = expected_of(plan, fault.case, found.judge, fault.name)
        made_of = ingredients(self._registry, place.cell.driver, plan.algorithm.mode, lane)
        is_accepted = any(item.accepts(key, ran) for item in self._deviations)
        state = "accepted" if is_accepted and found.state == "open" else found.state
        record = Record(
            key=key,
            state=state,
            verdict=fault.departure.verdict.name.lower(),
            text=text,
            cells=(str(place.cell),),
            judge=found.judge,
            shrunk=fault.shrunk,
            rate=fault.rate,
            from_case=fault.name,
            impls=self._impls,
            first_revision=self._revision,
            last_revision=self._revision,
            fixed_revision="",
            case_sha256="",
            repro_sha256="",
        )
        repro = repro_text(made_of, key, fault.case, fault.departure, expected=expected, text=text)
        stored = self._store.put(Kept(record, fault.case, repro, harness_of(made_of)))
        kept = stored.record
        if place.instance is not None and stored.case == fault.case:
            finding = Upstream(
                self._registry.root, key, place.instance, cell.library, fault.case, expected, text=text.rstrip(".")
            )
            self._store.attach(kept.id, _upstream_texts(finding, plan, place, found), UPSTREAM)
        if (kept.state == "accepted") != is_accepted and kept.state in ("accepted", "open"):
            kept = self._store.update(kept.id, state="accepted" if is_accepted else "open")
        return kept


def _upstream_texts(finding: Upstream, plan: AlgorithmPlan, place: CellPlan, found: _Found) -> dict[str, str]:
    """What a library's maintainers need of a finding, by the files' names."""
    judge = found.fault.name if found.judge == "vector" else f"{found.judge}, of Crosslane"
    try:
        subject = execute_alone(place.station, whole_batch(finding.case))
        rows = agreement_rows(finding, subject, plan.quorum, judge=judge)
    except HarnessFault as fault:
        rows = [(judge, "the expected answer"), ("the others", f"could not be asked: {fault}")]
    return {"upstream.md": report_text(finding, rows), finding.file_name: program_text(finding)}


def ran_of(result: CellResult) -> Ran:
    """A cell's result as deviations ask for it."""
    cell = parse_cell(result.cell)
    driver = cell.driver + (f":{cell.backend}" if cell.backend else "")
    return Ran(driver, str(cell.algorithm), cell.lane, result.library.version if result.library else "")


def left_trials(
    results: Sequence[AlgorithmResult], sightings: Sequence[tuple[str, Record]]
) -> Iterator[tuple[str, str]]:
    """Departures of trials, which no case shows.

    Of a cell whose cases depart too the self-test says nothing new. Nor do the long message and two threads where all
    of them are accepted: the one is in place and ends in a part of a block, the other are cases of the same batch.
    """
    states: dict[str, set[str]] = {}
    for name, record in sightings:
        states.setdefault(name, set()).add(record.state)
    for cell in (cell for result in results for cell in result.cells):
        told = [BULK] if cell.cell in states else []
        told += [LARGE, THREADS] if states.get(cell.cell) == {"accepted"} else []
        for item in cell.findings:
            if is_trial(item.case_id) and not any(item.case_id.startswith(f"{name}-") for name in told):
                yield cell.cell, _as_trial(item)


def _as_trial(finding: Finding) -> str:
    return f"{finding.case_id} is no case that could be shrunk: `crosslane repro` repeats it as a whole"


@dataclass(frozen=True)
class _Job:
    """The cells of one implementation that departed, native ones first: a fault of theirs is shrunk once."""

    plan: AlgorithmPlan
    cells: tuple[tuple[CellPlan, CellResult], ...]
    raws: tuple[tuple[Raw, ...], ...] = ()


@dataclass(frozen=True)
class Looked:
    """What came of looking into the departures of an implementation: each cell's faults, or why there are none."""

    job: _Job
    found: Sequence[tuple[Sequence[_Found], str]]


def look_into(
    plan: AlgorithmPlan, result: AlgorithmResult, raws: Mapping[str, Sequence[Raw]] | None = None
) -> list[Looked]:
    """Shrink what departed in one result, in this process; ``Keeper.put`` keeps it."""
    return [Looked(job, _look(job)) for job in _jobs(plan, result, raws or {})]


def _jobs(plan: AlgorithmPlan, result: AlgorithmResult, raws: Mapping[str, Sequence[Raw]]) -> Iterable[_Job]:
    places = {str(cell.cell): cell for cell in plan.cells}
    cases = [
        replace(cell, findings=tuple(item for item in cell.findings if not is_trial(item.case_id)))
        for cell in result.cells
    ]
    departed = [(places[cell.cell], cell) for cell in cases if cell.findings]
    by_subject: dict[tuple[str, str | None], list[tuple[CellPlan, CellResult]]] = {}
    for place, cell in sorted(departed, key=lambda pair: not pair[0].native):
        by_subject.setdefault((place.cell.driver, place.cell.backend), []).append((place, cell))
    return [
        _Job(plan, tuple(cells), tuple(tuple(raws.get(cell.cell, ())) for _, cell in cells))
        for cells in by_subject.values()
    ]


def _look(job: _Job) -> list[tuple[list[_Found], str]]:
    """The faults of each cell of a job, and why there are none; runs in a worker."""
    known: list[Fault] = []
    looked: list[tuple[list[_Found], str]] = []
    for (place, cell), given in zip(job.cells, job.raws, strict=True):
        try:
            found = list(_faults(job.plan, place, cell, known, given))
            looked.append((found, "" if found else "no departure of this cell could be seen again"))
        except HarnessFault as fault:
            looked.append(([], str(fault)))
    return looked


def _faults(
    plan: AlgorithmPlan, place: CellPlan, cell: CellResult, known: list[Fault], given: Sequence[Raw]
) -> Iterable[_Found]:
    """The faults of a cell; those that are new are added to ``known``."""
    suspect = Suspect(plan.manifest, plan.oracle, place.station, place.arch, plan.bounded)
    with suspect.judge() as judge:
        raws = _unsealed(judge, given) or [
            *regression_raws(judge, plan, cell), *_raw(judge, plan, place, cell), *_vector_raws(judge, plan, cell)
        ]  # fmt: skip
        faults = faults_of(judge, suspect, raws, known)
        known += [fault for fault in faults if fault not in known]
        yield from (_Found(fault) for fault in faults)
        seen = {fault.departure.symptom.name.lower() for fault in faults}
        for finding in cell.findings:
            if finding.repeats == "alone" and faults:
                continue
            if finding.symptom not in seen or finding.repeats != "alone":
                yield from _as_it_came(judge, plan, suspect, finding, given)


def _unsealed(judge: Judge, given: Sequence[Raw]) -> list[Raw]:
    """Departures as they are handled here, without those that would not be the same case again."""
    cases = [(raw, judge.unsealed(raw.case)) for raw in given]
    return [replace(raw, case=case) for raw, case in cases if case is not None]


def _raw(judge: Judge, plan: AlgorithmPlan, place: CellPlan, cell: CellResult) -> list[Raw]:
    """Departures of the batches that the run's findings lie in, and of the first ones."""
    per_case, per_batch = judge.manifest.messages_per_session, judge.manifest.sessions_per_batch
    cases, first = -(-place.comparisons // per_case), plan.first_batch
    ids = [parse_case_id(item.case_id) for item in cell.findings if ":" not in item.case_id]
    numbers = dict.fromkeys([*(item.batch for item in ids), *range(first, first - (-cases // per_batch))])
    found: list[Raw] = []
    for number in list(numbers)[:_MOST_BATCHES]:
        found += raw_departures(judge, number, max(1, cases - (number - first) * per_batch))
    return found


def _vector_raws(judge: Judge, plan: AlgorithmPlan, cell: CellResult) -> list[Raw]:
    """Vectors that a cell answers otherwise than generic does, as cases like any other."""
    wanted = {item.case_id for item in cell.findings if item.of_vector}
    found: list[Raw] = []
    for long in (False, True):
        directed = vector_batch(plan.vectors, plan.manifest, bounded=plan.bounded, long=long) if wanted else None
        if directed is None:
            break
        chosen = [i for i, name in enumerate(directed.names) if name in wanted]
        for index in chosen[: _MOST_BATCHES * 16]:
            case = judge.unsealed(case_of(directed.batch, index, plan.manifest.algorithm))
            departure = judge.one(case) if case is not None else None
            if case is not None and departure is not None:
                found.append(Raw(case, departure, directed.names[index]))
    return found


def _as_it_came(
    judge: Judge, plan: AlgorithmPlan, suspect: Suspect, finding: Finding, given: Sequence[Raw]
) -> Iterable[_Found]:
    """A departure that needs its neighbours, repeats at times, or has another judge than generic."""
    if finding.repeats == "in_batch":
        fault = _in_company(judge, plan, suspect, finding)
        if fault is not None:
            yield _Found(fault)
            return
    case, by = _case_named(judge, plan, finding, given)
    if case is None:
        return
    judged_by: JudgeName = "generic"
    word, state, rate = "neighbours", "open", 0.0
    departure = _told(finding)
    if finding.repeats == "alone" and suspect.oracle == suspect.subject:
        judged_by = "vector" if by == "vector" else "reference"
        word, rate = judged_by, 1.0
    elif finding.repeats != "in_batch":
        seen = replays(suspect.subject, case, suspect.oracle, _RATE_RUNS)
        departed = [item for item in seen if item is not None]
        rate = len(departed) / _RATE_RUNS
        word, state = ("unshrunk", "open") if rate == 1.0 else ("unrepeatable", "flaky")
        departure = departed[0] if departed else departure
    fault = Fault(case, departure, Classified((), word), finding.case_id, shrunk=False, rate=rate)
    yield _Found(fault, judged_by, "flaky" if state == "flaky" else "open", finding.text)


def _in_company(judge: Judge, plan: AlgorithmPlan, suspect: Suspect, finding: Finding) -> Fault | None:
    """The fault behind a departure that a run saw only behind other sessions of its batch."""

    def wanted(departure: Departure) -> bool:
        return (departure.verdict.name.lower(), departure.symptom.name.lower()) == (finding.verdict, finding.symptom)

    name = finding.case_id
    place = regression_place(plan, name)
    if place is not None:
        return fault_in_company(judge, suspect, *place, wanted=wanted, name=name)
    if ":" not in name:
        case_id = parse_case_id(name)
        batch = judge.generated(case_id.batch)
        return fault_in_company(judge, suspect, batch, case_id.index, wanted=wanted, name=name)
    for long in (False, True):
        directed = vector_batch(plan.vectors, plan.manifest, bounded=plan.bounded, long=long)
        if name in directed.names:
            index = directed.names.index(name)
            return fault_in_company(judge, suspect, directed.batch, index, wanted=wanted, name=name)
    return None


def _case_named(judge: Judge, plan: AlgorithmPlan, finding: Finding, given: Sequence[Raw]) -> tuple[Case | None, str]:
    """The case of a finding, sealed, and what kind it is."""
    algorithm = plan.manifest.algorithm
    came = next((raw.case for raw in given if raw.name == finding.case_id), None)
    if came is not None or finding.of_sectors:
        return came, "case"
    if ":" not in finding.case_id:
        case_id = parse_case_id(finding.case_id)
        batch = judge.generated(case_id.batch)
        return case_of(select_cases(batch, np.array([case_id.index])), 0, algorithm), "case"
    place = regression_place(plan, finding.case_id)
    if place is not None:
        return case_of(*place, algorithm), "case"
    directed = published(plan, finding.case_id)
    return (case_of(directed.batch, 0, algorithm), "vector") if directed is not None else (None, "")


def _told(finding: Finding) -> Departure:
    """A departure as far as a run's results tell it."""
    verdict = Verdict[finding.verdict.upper()]
    return Departure(0, verdict, Symptom[finding.symptom.upper()], 0, Buffer.OUT, 0, 0, 0, 0, b"", b"")


def kept_lines(kept: KeptRun, store: Store, impls: Sequence[str]) -> Iterable[str]:
    """What ``check`` prints of the findings: each once, with its id and the command that shows it again."""
    more = "".join(f" --impls '{folder}'" for folder in impls)
    where = "" if shown(store.folder) == "findings" else f" --findings '{shown(store.folder)}'"
    for record in kept.records:
        key = record.key
        yield (
            f"finding {record.id}: {key.implementation}, {key.algorithm}, {key.symptom}, {key.fault_class}: "
            f"{record.state}, in {len(record.cells)} cell{'s' if len(record.cells) > 1 else ''}: {record.text}"
        )
        yield f"    see it again: crosslane repro {record.id}{where}{more}"
    for cell, why in kept.failed:
        yield f"{cell}: its departures are in the report above and not among the findings: {why}"
