# SPDX-License-Identifier: Apache-2.0
"""The main job from plan to exit status: what ``crosslane check`` does."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from crosslane import campaign
from crosslane.checks import load_checks
from crosslane.findings.run import Findings, status_with
from crosslane.isa import host_arch
from crosslane.model import Registry
from crosslane.plan import LARGE_LEN, Counts, RunPlan, Selection, make_plans, selected_cells
from crosslane.pss import PeakMemory
from crosslane.records import AlgorithmResult
from crosslane.report import print_report
from crosslane.results import RESULT_VERSION, RunResult, exit_status, write_json
from crosslane.toolchain import revision_of, versions
from crosslane.vectors import all_vectors

__all__ = ["Job", "assemble", "run_job"]

LINE_EVERY_S = 10.0


@dataclass(frozen=True)
class Job:
    """One run: what, with which seed and counts, on how many workers (None: one a core).

    Without ``imported`` only the vectors of ``corpora`` are judged by. ``findings`` is the folder that departures are
    kept in, shrunk; without it they are only reported. ``large_len`` are the bytes of each algorithm's large message.
    """

    registry: Registry
    selection: Selection
    seed: str
    counts: Counts
    imported: bool = True
    require_sandbox: bool = False
    num_workers: int | None = None
    findings: Path | None = None
    large_len: int = LARGE_LEN


def run_job(job: Job, console: Console, json_file: Path | None, impls: tuple[str, ...]) -> int:
    """Plan, build, run, report; returns the exit status."""
    checks = load_checks(job.registry.root)
    findings = Findings.at(job.findings, job.registry.root, impls) if job.findings is not None else None
    selected_cells(job.registry, job.selection)  # a mistyped name is said before the vectors are read
    vectors, notes = all_vectors(job.registry, imported=job.imported)
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
    campaign.keep_manifests(plans.algorithms)
    begun = time.monotonic()
    memory = PeakMemory()
    try:
        with memory:
            results = _run(job, plans, console)
    except campaign.Interrupted as stopped:
        partial = campaign.with_judgements(stopped.progress.finished, checks)
        done = assemble(job, plans, notes, partial, time.monotonic() - begun, memory.peak)
        if partial:
            print_report(done, console, impls=impls)
        if json_file is not None:
            write_json(done, json_file)
        console.print(
            f"interrupted: {stopped.progress.comparisons:,} comparisons were made, {len(partial)} of "
            f"{len(plans.algorithms)} algorithms are complete and shown above; the rest did not run",
            markup=False,
        )
        return 130
    judged = campaign.with_judgements(results, checks)
    result = assemble(job, plans, notes, judged, time.monotonic() - begun, memory.peak)
    print_report(result, console, impls=impls)
    if json_file is not None:
        write_json(result, json_file)
    return exit_status(list(result.cells())) if findings is None else _keep(job, plans, result, findings, console)


def _keep(job: Job, plans: RunPlan, result: RunResult, findings: Findings, console: Console) -> int:
    """Shrink and keep what departed, say it, and return the exit status, in which accepted findings do not count."""

    def say(text: str) -> None:
        console.print(text, style="dim", markup=False, highlight=False, soft_wrap=True)

    kept = findings.keep(job.registry, plans, result.algorithms, revision=result.revision, say=say)
    for line in findings.lines(kept):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if job.counts == Counts():
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
        notes=notes,
        algorithms=tuple(algorithms),
        took_s=took_s,
        cpu_s=sum(algorithm.cpu_s for algorithm in algorithms),
        peak_pss=peak_pss,
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
