# SPDX-License-Identifier: Apache-2.0
"""The main job from plan to exit status: what ``crosslane check`` does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from crosslane import campaign
from crosslane.checks import load_checks
from crosslane.corpora import VectorFile
from crosslane.corpora_tools.regressions import load_regressions, with_regressions
from crosslane.errors import HarnessFault
from crosslane.findings.gather import Raw
from crosslane.findings.keep import KeptRun
from crosslane.findings.run import Findings, status_with, with_acceptance, with_faults
from crosslane.isa import host_arch
from crosslane.libraries import library_rows, printing_lines
from crosslane.memory import return_freed_memory
from crosslane.model import Registry
from crosslane.outputs import Outputs
from crosslane.plan import LARGE_LEN, Counts, RunPlan, Selection, make_plans, selected_cells
from crosslane.planted.prove import prove
from crosslane.planted.spots import Spot, spots_of, unplaced
from crosslane.plants import check_cases, load_plants
from crosslane.pss import PeakMemory
from crosslane.records import AlgorithmResult
from crosslane.report import print_report
from crosslane.results import RESULT_VERSION, RunResult, exit_status
from crosslane.shards import Shard, of_shard
from crosslane.toolchain import revision_of, versions
from crosslane.vectors import all_vectors

__all__ = ["Ended", "Job", "assemble", "compare_all", "keep_findings", "plainly", "run_job", "status_of"]

LINE_EVERY_S = 10.0


@dataclass(frozen=True)
class Job:
    """One run: what, with which seed and counts, on how many workers (None: one a core).

    Without ``imported`` only the vectors of ``corpora`` are judged by. ``findings`` is the folder that departures are
    kept in, shrunk; without it they are only reported. ``prove``: the planted faults of the cells must be caught.
    ``large_len`` are the bytes of each algorithm's large message; ``shard`` is the part of the plans that is run.
    """

    registry: Registry
    selection: Selection
    seed: str
    counts: Counts
    imported: bool = True
    require_sandbox: bool = False
    num_workers: int | None = None
    findings: Path | None = None
    prove: bool = False
    large_len: int = LARGE_LEN
    shard: Shard | None = None


@dataclass(frozen=True)
class Ended:
    """What a run came to. ``kept`` is None where findings are only reported; ``interrupted`` says so, or is empty."""

    result: RunResult
    kept: KeptRun | None
    interrupted: str = ""


def run_job(job: Job, console: Console, outputs: Outputs, impls: tuple[str, ...]) -> int:
    """Plan, build, run, report; returns the exit status."""
    outputs.check()
    findings = Findings.at(job.findings, job.registry.root, impls) if job.findings is not None else None
    ended = compare_all(job, console, findings)
    result = ended.result
    if result.algorithms or not ended.interrupted:
        print_report(result, console, impls=impls, builds=job.registry.builds)
    outputs.write(result, say=plainly(console))
    if ended.interrupted:
        console.print(ended.interrupted, markup=False)
        return 130
    status = status_of(job, result, findings, ended.kept, console, complete=job.counts == Counts())
    return status if all(proof.holds for proof in result.proofs) else HarnessFault.exit_status


def compare_all(job: Job, console: Console, findings: Findings | None) -> Ended:
    """Plan, build and run: all that a run learns, judged. ``findings`` keeps what departs, shrunk."""
    checks = load_checks(job.registry.root)
    selected_cells(job.registry, job.selection)  # a mistyped name is said before the vectors are read
    regressions = load_regressions(job.registry)
    vectors, notes = all_vectors(job.registry, imported=job.imported)
    plans = with_regressions(_planned(job, vectors, console), regressions)
    spots = _spots(job, plans, console) if job.prove else []  # built, and their cases seen, before minutes are spent
    campaign.keep_manifests(plans.algorithms)
    return_freed_memory()  # sources and vectors as they were read
    begun = time.monotonic()
    memory = PeakMemory()
    try:
        with memory:
            results = _run(job, plans, console)
    except campaign.Interrupted as stopped:
        partial = campaign.with_judgements(stopped.progress.finished, checks)
        done = assemble(job, plans, notes, partial, time.monotonic() - begun, memory.peak)
        ended = {algorithm.name for algorithm in partial}
        done = replace(done, unfinished=tuple(plan.name for plan in plans.algorithms if plan.name not in ended))
        return Ended(
            done,
            None,
            f"interrupted: {stopped.progress.comparisons:,} comparisons were made, {len(partial)} of "
            f"{len(plans.algorithms)} algorithms are complete and shown above; the rest did not run",
        )
    kept = keep_findings(job, plans, results, findings, console) if findings is not None else None
    told = with_faults(results, kept, findings.deviations) if findings and kept else results
    judged = campaign.with_judgements(told, checks)
    judged = with_acceptance(judged, kept, checks) if kept else judged
    result = assemble(job, plans, notes, judged, time.monotonic() - begun, memory.peak)
    if job.prove:
        proofs = tuple(prove(spots, checks, job.registry.root))
        result = replace(result, proofs=proofs, unproven=_unproven(job))
    return Ended(result, kept)


def _planned(job: Job, vectors: Sequence[VectorFile], console: Console) -> RunPlan:
    plans = make_plans(
        job.registry,
        job.selection,
        seed=job.seed,
        counts=job.counts,
        vectors=vectors,
        require_sandbox=job.require_sandbox,
        large_len=job.large_len,
        progress=lambda text: console.print(f"building: {text}", style="dim", markup=False, highlight=False),
    )
    plans = of_shard(plans, job.shard) if job.shard else plans
    for problem in dict.fromkeys(cell.problem for plan in plans.algorithms for cell in plan.cells if cell.problem):
        console.print(f"unusable: {problem}", markup=False, highlight=False, soft_wrap=True)
    return plans


def plainly(console: Console) -> Callable[[str], None]:
    """Prints a line as it is, however long and whatever is in it."""
    return lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True)


def _spots(job: Job, plans: RunPlan, console: Console) -> list[Spot]:
    """The planted faults of the run's cells, by which it proves that the checks fire."""
    plants = load_plants(job.registry)
    check_cases(job.registry, plants)
    spots = spots_of(
        job.registry,
        [plant for plant in plants if not plant.large],
        seed=job.seed,
        lanes=plans.lanes,
        cells=frozenset(str(cell.cell) for plan in plans.algorithms for cell in plan.cells),
        require_sandbox=job.require_sandbox,
        progress=lambda text: console.print(f"building: {text}", style="dim", markup=False, highlight=False),
    )
    if not spots:
        console.print("no planted fault lies in these cells: nothing is proven", markup=False)
    return spots


def _unproven(job: Job) -> tuple[str, ...]:
    """What no lane of the host shows, and what takes a message of more than 4 GiB, which a search is asked for."""
    plants = load_plants(job.registry)
    large = tuple(f"{plant.name} (selftest --large)" for plant in plants if plant.large)
    return (*unplaced(job.registry, [plant for plant in plants if not plant.large]), *large)


def keep_findings(
    job: Job,
    plans: RunPlan,
    results: Sequence[AlgorithmResult],
    findings: Findings,
    console: Console,
    *,
    raws: Mapping[str, Sequence[Raw]] | None = None,
) -> KeptRun:
    """Shrink and keep what departed; ``raws`` are the departures of cells whose cases no manifest makes."""

    def say(text: str) -> None:
        console.print(text, style="dim", markup=False, highlight=False, soft_wrap=True)

    workers = job.num_workers or campaign.default_workers()
    revision = revision_of(job.registry.root)
    return findings.keep(job.registry, plans, results, revision=revision, say=say, num_workers=workers, raws=raws)


def status_of(
    job: Job,
    result: RunResult,
    findings: Findings | None,
    kept: KeptRun | None,
    console: Console,
    *,
    complete: bool,
) -> int:
    """Say what was kept, and return the exit status, in which accepted findings do not count.

    ``complete``: the cells ran all cases that show what is accepted.
    """
    if findings is None or kept is None:
        return exit_status(list(result.cells()))
    for line in findings.lines(kept):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if complete:
        findings.check_unused(result.algorithms, kept)
    return status_with(list(result.cells()), kept, load_checks(job.registry.root))


def assemble(
    job: Job, plans: RunPlan, notes: tuple[str, ...], algorithms: list[AlgorithmResult], took_s: float, peak_pss: int
) -> RunResult:
    """The run's results with what they were made by."""
    return RunResult(
        version=RESULT_VERSION,
        revision=revision_of(job.registry.root),
        seed=job.seed,
        host=host_arch(),
        tools={lane.name: versions(lane) for lane in plans.lanes},
        sandbox_missing=plans.sandbox_missing,
        notes=(*notes, *printing_lines(algorithms)),
        algorithms=tuple(algorithms),
        took_s=took_s,
        cpu_s=sum(algorithm.cpu_s for algorithm in algorithms),
        peak_pss=peak_pss,
        libraries=library_rows(job.registry, plans, algorithms),
        shard=str(job.shard) if job.shard else "",
        counts=vars(job.counts),
    )


def _run(job: Job, plans: RunPlan, console: Console) -> list[AlgorithmResult]:
    total = sum(plan.total for plan in plans.algorithms)
    workers = job.num_workers or campaign.default_workers()
    if not console.is_terminal:
        return campaign.run_plans(plans.algorithms, num_workers=workers, tell=_Lines(console, total).tell)
    bar = Progress(
        SpinnerColumn(),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} comparisons"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task("", total=total)
    with bar:
        return campaign.run_plans(
            plans.algorithms,
            num_workers=workers,
            tell=lambda progress: bar.update(task, completed=progress.comparisons),
        )


class _Lines:
    """A plain line now and then, where there is no terminal."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._next = time.monotonic() + LINE_EVERY_S
        self._lock = threading.Lock()

    def tell(self, progress: campaign.Progress) -> None:
        with self._lock:
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + LINE_EVERY_S
        text = f"{progress.comparisons:,} comparisons made, {self._total:,} planned beside the vectors"
        self._console.print(text, markup=False, highlight=False)
