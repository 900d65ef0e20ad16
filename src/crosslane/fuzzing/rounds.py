# SPDX-License-Identifier: Apache-2.0
"""One round of a campaign, in a worker: some cells of an algorithm on its next batches, and what departed, shrunk."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from crosslane.buildcache import digest
from crosslane.campaign import begin_worker
from crosslane.conduct import conduct
from crosslane.disk.conduct import DiskJob, conduct_disks, planned_comparisons
from crosslane.findings.gather import Raw
from crosslane.findings.keep import left_trials, look_into
from crosslane.fuzzing.choose import Candidate, Choice
from crosslane.fuzzing.facts import CellOutcome, Outcome
from crosslane.manifest import Manifest
from crosslane.plan import AlgorithmPlan, CellPlan
from crosslane.records import AlgorithmResult, CellResult, Finding
from crosslane.wire import Watch

__all__ = ["Task", "begin_round_worker", "candidates_of", "run_round", "task_of"]

_CONFIRMED, _CONFIRMED_KNOWN = 8, 2
"""Departures of one kind that are replayed, of a cell that shows it first and of one that is known for some kind."""
_MESSAGES_OF_DISKS = 8192
"""Comparisons of a round that stand for one batch of sectors, which has fewer and longer messages."""


@dataclass(frozen=True)
class Task:
    """A round as a worker gets it: the plan with the cells that were chosen, and what of them is known already."""

    number: int
    plan: AlgorithmPlan
    next_batch: int
    known: Mapping[str, frozenset[str]]
    workload: str

    @property
    def planned(self) -> int:
        """Comparisons asked for."""
        return self.plan.total


def begin_round_worker() -> None:
    """What a worker process does first."""
    begin_worker(None)


def _num_batches(manifest: Manifest, comparisons: int, workload: str) -> int:
    if workload == "disk":
        return max(1, comparisons // _MESSAGES_OF_DISKS)
    alike = manifest.batches_alike
    return -(-comparisons // (alike * manifest.messages_per_batch)) * alike


def _program(cell: CellPlan) -> str:
    """The digest of what runs: the program's place in the build cache is one of all that it is made of."""
    station = cell.station
    return digest([*station.command, station.symbol, station.mode, station.cipher, str(station.hide)])[:16]


def candidates_of(plans: Sequence[AlgorithmPlan], workload: str) -> tuple[Candidate, ...]:
    """The cells that can be chosen: a library that cannot be used, and a switch without effect, are left out."""
    return tuple(
        Candidate(
            str(cell.cell),
            index,
            f"{cell.cell.algorithm}/{cell.cell.driver}:{cell.cell.backend or ''}",
            _program(cell),
            cell.paths,
            _num_batches(plan.manifest, cell.comparisons, workload),
            cell.emulated,
        )
        for index, plan in enumerate(plans)
        for cell in plan.cells
        if not cell.problem and cell.switched
    )


def task_of(plans: Sequence[AlgorithmPlan], choice: Choice, workload: str) -> Task:
    """What a choice asks of a worker."""
    plan = plans[choice.plan]
    cells = tuple(_as_chosen(cell, choice) for cell in plan.cells if str(cell.cell) in choice.cells)
    stored = plan.regressions if choice.fresh else None
    plan = replace(
        plan, cells=cells, vectors=(), regressions=stored, large_len=0, first_batch=choice.first_batch, cases_only=True
    )
    if workload == "disk":
        job = _disk_job(plan, choice.next_batch - choice.first_batch)
        cells = tuple(
            replace(cell, comparisons=planned_comparisons(job, large=cell.large), full=False, paths=())
            for cell in cells
        )
        plan = replace(plan, cells=cells)
    return Task(choice.number, plan, choice.next_batch, choice.known, workload)


def _as_chosen(cell: CellPlan, choice: Choice) -> CellPlan:
    """A cell as a round runs it: with fewer replays of departures than ``check`` makes, of known ones fewer still."""
    name = str(cell.cell)
    watch = Watch.ALL & ~Watch.PATHS if name in choice.settled else Watch.ALL
    return replace(cell, watch=watch, most_confirmed=_CONFIRMED_KNOWN if choice.known[name] else _CONFIRMED)


def _disk_job(plan: AlgorithmPlan, num_batches: int) -> DiskJob:
    return DiskJob(plan, (), num_batches)


def _conducted(task: Task) -> tuple[AlgorithmResult, Mapping[str, Sequence[Raw]]]:
    if task.workload == "disk":
        done = conduct_disks(_disk_job(task.plan, task.next_batch - task.plan.first_batch))
        return done.result, done.raws
    return conduct(task.plan), {}


def run_round(task: Task) -> Outcome:
    """Run a round. A cell whose shim breaks the protocol is void, the others go on."""
    begun = time.monotonic()
    result, raws = _conducted(task)
    looked = look_into(task.plan, _news_of(task, result), raws)
    places = {str(cell.cell): cell for cell in task.plan.cells}
    return Outcome(
        number=task.number,
        plan=task.plan.name,
        next_batch=task.next_batch,
        planned=task.planned,
        cells=tuple(_cell_outcome(places[cell.cell], cell) for cell in result.cells),
        took_s=time.monotonic() - begun,
        cpu_s=result.cpu_s,
        notes=result.notes,
        looked=tuple(looked),
        failed=tuple(left_trials([result], [])),
    )


def _kind(finding: Finding) -> str:
    return f"{finding.verdict} {finding.symptom} {finding.repeats}"


def _news_of(task: Task, result: AlgorithmResult) -> AlgorithmResult:
    """The result with those departures alone that have to be looked into: kinds that their cells did not show yet."""

    def left(cell: CellResult) -> CellResult:
        known = task.known.get(cell.cell, frozenset())
        return replace(cell, findings=tuple(item for item in cell.findings if _kind(item) not in known))

    return replace(result, cells=tuple(left(cell) for cell in result.cells))


def _cell_outcome(place: CellPlan, cell: CellResult) -> CellOutcome:
    kinds: dict[str, int] = {}
    for finding in cell.findings:
        kinds[_kind(finding)] = kinds.get(_kind(finding), 0) + finding.count
    return CellOutcome(
        cell=cell.cell,
        digest=_program(place),
        state=cell.state,
        reason=cell.reason,
        comparisons=cell.comparisons,
        departed=cell.num_departed,
        taken=tuple(sorted((path, name) for path, names in cell.paths.items() for name in names)),
        kinds=tuple(sorted(kinds.items())),
        cpu_s=cell.cpu_s,
    )
