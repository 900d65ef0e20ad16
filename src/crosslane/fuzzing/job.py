# SPDX-License-Identifier: Apache-2.0
"""A campaign from its file to the exit status: what ``crosslane fuzz`` does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from crosslane.campaign import default_workers, keep_manifests
from crosslane.corpora_tools.regressions import load_regressions, with_regressions
from crosslane.data import data_root, shown
from crosslane.disk.job import plans_for_disks
from crosslane.errors import BadInput
from crosslane.fetched import held_sysroots
from crosslane.findings.run import Findings
from crosslane.findings.store import Store
from crosslane.fuzzing.choose import Board
from crosslane.fuzzing.engine import MOST_WORKERS, Engine, Limits, Work
from crosslane.fuzzing.facts import KeptFinding, Snapshot
from crosslane.fuzzing.rounds import candidates_of
from crosslane.fuzzing.spec import Campaign
from crosslane.fuzzing.state import State, read_state
from crosslane.fuzzing.status import Reporter, end_lines, number_of, status_lines
from crosslane.job import Job
from crosslane.memory import return_freed_memory
from crosslane.model import Registry
from crosslane.plan import AlgorithmPlan, RunPlan, make_plans
from crosslane.registry import load_registry
from crosslane.toolchain import revision_of

__all__ = ["FuzzJob", "as_stored", "log_of", "run_campaign", "show_status", "work_of"]


@dataclass(frozen=True)
class FuzzJob:
    """One run of a campaign. ``patterns`` narrow its cells; ``seed`` None: whatever the state was begun with."""

    campaign: Campaign
    patterns: tuple[str, ...]
    seed: str | None
    state: Path
    seconds: float | None
    comparisons: int | None
    num_workers: int | None
    findings: Path
    impls: tuple[Path, ...]
    require_sandbox: bool = False


def run_campaign(job: FuzzJob) -> int:
    """Plan, build, and run until a limit or an interrupt; returns the exit status."""
    if job.seed is not None and not job.seed.strip():
        raise BadInput("the seed is empty; give any sentence with --seed, or leave the option out")
    log_of(job.state)
    workers = job.num_workers or min(default_workers(), MOST_WORKERS)
    if workers > MOST_WORKERS:
        raise BadInput(f"--jobs {workers}: a campaign has at most {MOST_WORKERS} workers; run several side by side")
    console = Console(soft_wrap=True)
    default_seed = f"campaign {job.campaign.name}, begun on {datetime.now(tz=UTC).date().isoformat()}"
    with held_sysroots() as held, State(job.state, job.campaign.name, job.seed, default_seed) as state:
        with state.tentative():
            registry = load_registry(data_root(), job.impls, sysroots=held)
            findings = Findings.at(job.findings, registry.root, tuple(str(folder) for folder in job.impls))
            work = work_of(job, registry, state.snapshot.seed, console)
        keep_manifests(work.plans)
        keeper = findings.keeper(registry, revision=revision_of(registry.root))
        board = Board(
            state.snapshot.seed,
            candidates_of(work.plans, work.workload),
            tuple(plan.name for plan in work.plans),
            job.campaign.num_cells,
        )
        board.load(state.snapshot)
        engine = Engine(work, board, state, keeper, num_workers=workers)
        return_freed_memory()  # sources and metadata as they were read
        title = f"{job.campaign.name}: {job.campaign.title}, seed {state.snapshot.seed!r}"
        with Reporter(console, title, log_of(job.state)) as reporter:
            reporter.say(f"campaign {title}, from round {state.snapshot.totals.rounds + 1:,}")
            for note in state.notes:
                reporter.say(note)
            try:
                engine.run(Limits(job.seconds, job.comparisons), reporter.tell)
            except KeyboardInterrupt:
                reporter.say(
                    f"interrupted, with {number_of(engine.view.rounds, 'round')} kept; the same command goes on"
                )
                return 130
    snapshot, _ = read_state(job.state)
    return _say_end(as_stored(snapshot, findings.store), console, job)


def log_of(state: Path) -> Path:
    """The log beside a state: of NAME.sqlite it is NAME.log, of any other name that name and .log.

    Raises BadInput for a state that could itself be the log of another.
    """
    if state.suffix == ".log":
        raise BadInput(f"{shown(state)}: has the name of a log: name a state NAME.sqlite with --state")
    return state.with_suffix(".log") if state.suffix == ".sqlite" else state.with_name(f"{state.name}.log")


def as_stored(snapshot: Snapshot, store: Store) -> Snapshot:
    """The same, each finding accepted where the store says so now; one that the store lacks is as it was seen.

    Raises BadInput where the folder of a finding is damaged.
    """
    stored = set(store.ids())

    def now(finding: KeptFinding) -> KeptFinding:
        if finding.id not in stored:
            return finding
        return replace(finding, accepted=store.read(finding.id).record.state == "accepted")

    return replace(snapshot, findings=tuple(map(now, snapshot.findings)))


def _say_end(snapshot: Snapshot, console: Console, job: FuzzJob) -> int:
    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    totals = snapshot.totals
    rounds, compared = number_of(totals.rounds, "round"), number_of(totals.comparisons, "comparison")
    say(f"{rounds}, {compared}, {number_of(len(snapshot.findings), 'finding')}")
    for line in end_lines(snapshot):
        say(line)
    if snapshot.findings:
        where = "" if shown(job.findings) == "findings" else f" --findings '{shown(job.findings)}'"
        say(f"see one again: crosslane repro ID{where}")
    return status_of(snapshot)


def status_of(snapshot: Snapshot) -> int:
    """3 where a cell was void when it ran last or none ran, 1 where something departed that is not accepted, else 0."""
    if not snapshot.totals.rounds or any(cell.state == "void" for cell in snapshot.cells.values()):
        return 3
    return int(bool(snapshot.left) or not all(finding.accepted for finding in snapshot.findings))


def work_of(job: FuzzJob, registry: Registry, seed: str, console: Console) -> Work:
    """Plan all cells of the campaign that the patterns select, and build what is missing; raises BadInput for none."""
    selection = job.campaign.selection(registry, job.patterns)

    def say(text: str) -> None:
        console.print(f"building: {text}", style="dim", markup=False, highlight=False)

    if job.campaign.workload == "disk":
        made = Job(registry, selection, seed, job.campaign.counts, require_sandbox=job.require_sandbox)
        plans = plans_for_disks(made, console)
    else:
        plans = make_plans(
            registry, selection, seed=seed, counts=job.campaign.counts, require_sandbox=job.require_sandbox,
            progress=say,
        )  # fmt: skip
        plans = with_regressions(plans, load_regressions(registry))
        plans = replace(plans, algorithms=tuple(job.campaign.with_layouts(plan) for plan in plans.algorithms))
    plans = _of_subjects(plans, job.campaign.subjects)
    if not candidates_of(plans.algorithms, job.campaign.workload):
        raise BadInput(
            f"no cell of the campaign {job.campaign.name} is left to run: widen --cell, or name another campaign"
        )
    return Work(plans.algorithms, plans.lanes, job.campaign.workload)


def _of_subjects(plans: RunPlan, subjects: str) -> RunPlan:
    def wanted(plan: AlgorithmPlan) -> bool:
        return subjects == "all" or plan.bounded == (subjects == "libraries")

    return replace(plans, algorithms=tuple(plan for plan in plans.algorithms if wanted(plan)))


def show_status(state: Path, findings: Path, say: Callable[[str], None]) -> None:
    """Print what a state holds, which another process may be at work on, and whether its findings are accepted."""
    snapshot, holder = read_state(state)
    for line in status_lines(as_stored(snapshot, Store(findings)), holder):
        say(line)
