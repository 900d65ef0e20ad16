# SPDX-License-Identifier: Apache-2.0
"""Conducts the plan of one algorithm: generates, executes everywhere, compares, confirms. Never stops at a finding."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from crosslane import wire
from crosslane.bulk import run_bulk
from crosslane.client import SharedMemory
from crosslane.compare import compare
from crosslane.coverage import Coverage, coverage
from crosslane.desk import Desk, Notify, confirm_departure, open_desk, result_of
from crosslane.errors import HarnessFault
from crosslane.execute import CAPACITY, Executor
from crosslane.known import Published, judge_in_python, read_vectors, run_chains, run_vectors, vector_notes
from crosslane.large import run_large
from crosslane.layouts import laid_out
from crosslane.leaks import note_leak
from crosslane.manifest import CaseId
from crosslane.plan import AlgorithmPlan
from crosslane.promises import promised
from crosslane.records import AlgorithmResult
from crosslane.refcheck import Sample, take_samples
from crosslane.replays import run_regressions
from crosslane.seal import finished_batch
from crosslane.trials import NUM_CASES, TrialBatch, run_threads, trial_batch
from crosslane.wire import Batch, Results, Watch

__all__ = ["Notify", "conduct", "conduct_seeds"]

_COVERAGE_BATCHES = 4
"""The coverage of the first batches stands for all: it is counted to see that nothing is missing."""
_TRIAL_AMONG = 64
"""Cases among whose first ones the trial of two threads mostly finds its own."""
_GROUP = 12
"""Cells of few comparisons whose processes live side by side: an emulator takes 10 MiB and more."""


def conduct(plan: AlgorithmPlan, notify: Notify = lambda _: None) -> AlgorithmResult:
    """Run every cell of an algorithm; a cell whose shim breaks the protocol is void, the others go on."""
    return conduct_seeds([plan], notify)[0]


@dataclass
class _Run:
    """One plan of several that differ in their seeds: its desks by the number of their cell, and what is left to ask.

    ``first`` is the first batch, kept where several groups of cells begin with it; ``seen`` is what was counted.
    ``alike`` is the last batch whose data are its own, with its number among these.
    """

    plan: AlgorithmPlan
    desks: dict[int, Desk] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    trial: TrialBatch | None = None
    first: Batch | None = None
    alike: tuple[int, Batch] | None = None
    notes: list[str] = field(default_factory=list)
    seen: dict[tuple[int, int], Coverage] = field(default_factory=dict)

    def take_desks(self, group: Sequence[int], opened: Sequence[Desk]) -> list[Desk]:
        """Go on from what was learned of a group of cells before any seed mattered."""
        for index in group:
            self.desks[index] = opened[index].for_seed(self.plan.cells[index], self.plan.quorum)
        return [self.desks[index] for index in group]

    def num_cases(self, number: int) -> int:
        """Cases of a batch that are needed for the cell with the most comparisons."""
        manifest = self.plan.manifest
        before = (number - self.plan.first_batch) * manifest.messages_per_batch
        left = max(cell.comparisons for cell in self.plan.cells) - before
        return -(-left // manifest.messages_per_session)

    def fail(self, opened: Sequence[Desk], fault: HarnessFault) -> None:
        """The oracle failed: nothing that ran can be said to agree."""
        self.take_desks([index for index in range(len(opened)) if index not in self.desks], opened)
        for desk in self.desks.values():
            if desk.state in ("ran", "not_run"):
                desk.fail(HarnessFault(f"the oracle failed: {fault}"))


@dataclass(frozen=True)
class _Bench:
    """What all cells share: the algorithm's oracle, that of its block function, and the batches' memory."""

    oracle: Executor
    blocks: Executor
    memory: SharedMemory
    notify: Notify

    def batch(self, run: _Run, number: int) -> Batch:
        """A batch of a run, ready to be executed, as far as any cell of it runs."""
        if number == run.plan.first_batch and run.first is not None:
            return run.first
        count = run.num_cases(number)
        if run.plan.cases_only:
            return self._laid_out(run, number, count)
        if run.trial is not None:
            return self._finished(run, number, count)
        batch = self._finished(run, number, max(count, _TRIAL_AMONG))
        run.trial = trial_batch(batch, number)
        if len(run.trial.indexes) < NUM_CASES:
            batch = self._finished(run, number, None)  # the trial's cases stand farther behind
            run.trial = trial_batch(batch, number)
        return batch

    def _laid_out(self, run: _Run, number: int, count: int) -> Batch:
        """A batch, in a new layout where its data are those of the one before."""
        data, layout = divmod(number, run.plan.manifest.batches_alike)
        if layout and run.alike is not None and run.alike[0] == data:
            return laid_out(run.plan.manifest, number, run.alike[1])
        batch = self._finished(run, number, count)
        run.alike = (data, batch)
        return batch

    def _finished(self, run: _Run, number: int, count: int | None) -> Batch:
        return finished_batch(run.plan.manifest, number, partial(self._ask, self.oracle), self.ask_blocks, count)

    def ask_blocks(self, batch: Batch) -> Results:
        """Run a batch of ecb on the oracle's block function."""
        return self._ask(self.blocks, batch)

    def _ask(self, executor: Executor, batch: Batch) -> Results:
        wire.encode_batch_into(batch, self.memory.view)
        executor.start(batch, len(batch))
        return executor.finish()


def conduct_seeds(plans: Sequence[AlgorithmPlan], notify: Notify = lambda _: None) -> list[AlgorithmResult]:
    """What ``conduct`` makes of each of some plans that differ in nothing but the seed, in the same processes.

    What no seed decides, opening and vectors, is done once and stands in every result; so are trials, with the first.
    """
    begun = time.monotonic()
    cpu_before = _cpu_s()
    memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
    oracle, blocks = (Executor(station, memory, watch=Watch(0)) for station in (plans[0].oracle, plans[0].blocks))
    opened = [Desk(cell, Executor(cell.station, memory, watch=cell.watch), plans[0].quorum) for cell in plans[0].cells]
    bench = _Bench(oracle, blocks, memory, notify)
    runs = [_Run(plan) for plan in plans]
    notes: list[str] = []
    try:
        published = read_vectors(plans[0], oracle, memory)
        for group in _groups(plans):
            _run_group(group, opened, runs, published, bench)
        judge_in_python([(run.plan, _in_order(run), run.samples) for run in runs], bench.ask_blocks)
        notes += vector_notes(plans[0], published, _in_order(runs[0]))
    except HarnessFault as fault:
        notes.append(f"the oracle failed: {fault}")
        for run in runs:
            run.fail(opened, fault)
    finally:
        for executor in (oracle, blocks, *(desk.executor for desk in opened)):
            executor.release()
        memory.close()
    took, cpu = ((now - before) / len(plans) for now, before in ((time.monotonic(), begun), (_cpu_s(), cpu_before)))
    return [_result(run, (*notes, *run.notes), took, cpu) for run in runs]


def _in_order(run: _Run) -> list[Desk]:
    return [run.desks[index] for index in range(len(run.plan.cells))]


def _groups(plans: Sequence[AlgorithmPlan]) -> list[list[int]]:
    """The cells, by their numbers, whose processes live at the same time; those with the full grids are the last.

    Several seeds have one group: none is worth opening every process again for each. So has a round of a campaign,
    whose cells are few.
    """
    cells = plans[0].cells
    if len(plans) > 1 or plans[0].cases_only:
        return [list(range(len(cells)))]
    few, full = ([index for index, cell in enumerate(cells) if cell.full is where] for where in (False, True))
    groups = [few[begin : begin + _GROUP] for begin in range(0, len(few), _GROUP)]
    return [*groups, full] if full else groups


def _run_group(
    group: Sequence[int], opened: Sequence[Desk], runs: Sequence[_Run], published: Published, bench: _Bench
) -> None:
    """Run some cells with every seed, and end their processes."""
    plan, desks = runs[0].plan, [opened[index] for index in group]
    for desk in desks:
        open_desk(desk, plan.manifest.block_len)
    run_regressions(plan, desks, bench.oracle, bench.memory, bench.notify)
    run_vectors(published, desks, bench.memory, bench.notify)
    run_chains(plan, desks, bench.memory, bench.notify)
    for desk in desks:
        desk.note_paths()
    for run in runs:
        _run_seed(run, run.take_desks(group, opened), bench, sampling=len(run.desks) == len(opened))
    if not plan.cases_only:
        _run_trials(group, runs, bench)
    for desk in desks:
        desk.executor.hang_up()
    for desk in desks:
        desk.executor.release()


def _run_seed(run: _Run, desks: list[Desk], bench: _Bench, *, sampling: bool) -> None:
    """The batches of a seed. With ``sampling`` the references are to judge some of the answers."""
    for desk in desks:
        desk.executor.begin_anew(desk.taken)
    _run_batches(run, desks, bench, sampling=sampling)
    for desk in desks:
        desk.note_paths()


def _run_trials(group: Sequence[int], runs: Sequence[_Run], bench: _Bench) -> None:
    """What cells are asked beside their cases, with the first seed alone: it stands in the results of all.

    Two threads are the last, since a process serves for nothing else after them.
    """
    alive = [[run.desks[index] for run in runs if run.desks[index].alive] for index in group]
    asked = [desks[0].for_trials() for desks in alive if desks]
    plan, trial = runs[0].plan, runs[0].trial
    run_large(plan, asked, bench.oracle)
    run_bulk(plan.manifest, asked)
    notes = run_threads(asked, trial, plan.manifest.digest, bench.memory) if trial is not None else []
    for desk, desks in zip(asked, filter(None, alive), strict=True):
        for other in desks:
            other.take_trials(desk)
    for run in runs:
        run.notes += notes


def _result(run: _Run, notes: tuple[str, ...], took_s: float, cpu_s: float) -> AlgorithmResult:
    return AlgorithmResult(
        name=run.plan.name,
        algorithm=str(run.plan.algorithm),
        manifest=run.plan.manifest.to_json(),
        digest=run.plan.manifest.digest,
        cells=tuple(result_of(desk) for desk in _in_order(run)),
        took_s=took_s,
        cpu_s=cpu_s,
        notes=notes,
    )


def _cpu_s() -> float:
    """CPU time of this process and its ended children."""
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _run_batches(run: _Run, desks: list[Desk], bench: _Bench, *, sampling: bool) -> None:
    plan, oracle = run.plan, bench.oracle
    per_case = plan.manifest.messages_per_session
    most = max((desk.plan.comparisons for desk in desks if desk.alive), default=0)
    done, number = 0, plan.first_batch
    answered: tuple[int, Batch] | None = None  # the batch whose answers in ``reference`` are those of others too
    reference: Results | None = None
    while done < most:
        batch = bench.batch(run, number)
        run.first = batch if number == plan.first_batch and not sampling else None
        wire.encode_batch_into(batch, bench.memory.view)
        started = []
        count = min(len(batch), -(-(most - done) // per_case))
        is_new = answered is None or answered is not run.alike
        if is_new:
            oracle.start(batch, count)
        for desk in desks:
            wanted = min(count, -(-(desk.plan.comparisons - done) // per_case))
            if desk.alive and wanted > 0:
                try:
                    desk.executor.start(batch, wanted)
                    started.append((desk, wanted))
                except HarnessFault as fault:
                    desk.fail(fault)
        if is_new or reference is None:
            reference, answered = oracle.finish(), run.alike
        if number < _COVERAGE_BATCHES and not plan.cases_only:
            _note_coverage(run, number, batch, started)
        if sampling and not plan.bounded and not (plan.cases_only and number != plan.first_batch):
            run.samples += take_samples(number, _prefix(batch, count), reference)
        for desk, wanted in started:
            _finish(plan, desk, _prefix(batch, wanted), reference, number, bench.notify)
        done += count * per_case
        number += 1


def _note_coverage(run: _Run, number: int, batch: Batch, started: list[tuple[Desk, int]]) -> None:
    """Count what a batch exercises, once for all cells that run as much of it, until nothing is left at none."""
    manifest = run.plan.manifest
    for desk, wanted in started:
        covered = desk.coverage.numbers()
        if not covered or not all(covered.values()):
            if (number, wanted) not in run.seen:
                found = coverage(manifest, _prefix(batch, wanted))
                run.seen[number, wanted] = found.only(partial(promised, manifest))
            desk.coverage = desk.coverage.with_more(run.seen[number, wanted])


def _prefix(batch: Batch, count: int) -> Batch:
    """The first cases of a batch, in place: operations and outputs are the first ones too."""
    if count == len(batch):
        return batch
    return replace(batch, cases=batch.cases[:count], messages=batch.messages[:count])


def _finish(plan: AlgorithmPlan, desk: Desk, batch: Batch, reference: Results, number: int, notify: Notify) -> None:
    try:
        results = desk.executor.finish()
    except HarnessFault as fault:
        desk.fail(fault)
        return
    if len(batch) < len(results.cases):
        reference, results = _cut(batch, reference), _cut(batch, results)

    def name(case: int) -> str:
        return str(CaseId(plan.manifest.digest, number, case))

    found = compare(batch, reference, results)
    desk.comparisons += found.comparisons
    desk.num_departed += found.num_departed
    desk.not_run += found.not_run
    notify(found.comparisons)
    for departure in found.departures:
        confirm_departure(desk, batch, departure, plan.oracle, name)
    note_leak(desk)


def _cut(batch: Batch, results: Results) -> Results:
    """Results of a generated batch, cut to the operations and outputs of its first cases, which ``batch`` has."""
    last = batch.cases[-1]
    num_ops = int(last["first_op"]) + int(last["num_ops"])
    out_len = int(batch.ops["out_off"][num_ops]) if num_ops < len(batch.ops) else batch.out_len
    return Results(results.header, results.cases[: len(batch)], results.statuses[:num_ops], results.out[:out_len])
