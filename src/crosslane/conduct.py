# SPDX-License-Identifier: Apache-2.0
"""Conducts the plan of one algorithm: generates, executes everywhere, compares, confirms. Never stops at a finding."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from crosslane import wire
from crosslane.bulk import run_bulk
from crosslane.client import SharedMemory
from crosslane.compare import compare
from crosslane.coverage import coverage, merged
from crosslane.desk import Desk, Notify, confirm_departure, open_desk, result_of
from crosslane.errors import HarnessFault
from crosslane.execute import CAPACITY, Executor
from crosslane.known import judge_in_python, run_chains, run_vectors
from crosslane.large import run_large
from crosslane.manifest import CaseId, Manifest
from crosslane.plan import AlgorithmPlan
from crosslane.promises import kept
from crosslane.records import AlgorithmResult
from crosslane.refcheck import Sample, take_samples
from crosslane.seal import finished_batch
from crosslane.solve import Ask
from crosslane.trials import TrialBatch, run_threads, trial_batch
from crosslane.wire import Batch, Results, Watch

__all__ = ["Notify", "conduct", "conduct_seeds"]

_COVERAGE_BATCHES = 4
"""The coverage of the first batches stands for all: it is counted to see that nothing is missing."""


def conduct(plan: AlgorithmPlan, notify: Notify = lambda _: None) -> AlgorithmResult:
    """Run every cell of an algorithm; a cell whose shim breaks the protocol is void, the others go on."""
    return conduct_seeds([plan], notify)[0]


@dataclass
class _Run:
    """One plan of several that differ in their seeds: its desks, and what is left to be asked when its batches ran."""

    plan: AlgorithmPlan
    desks: list[Desk] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    trial: TrialBatch | None = None

    def take_desks(self, opened: list[Desk]) -> None:
        """Go on from what was learned before any seed mattered."""
        self.desks = [desk.for_seed(cell, self.plan.quorum) for desk, cell in zip(opened, self.plan.cells, strict=True)]

    def fail(self, opened: list[Desk], fault: HarnessFault) -> None:
        """The oracle failed: nothing that ran can be said to agree."""
        if not self.desks:
            self.take_desks(opened)
        for desk in self.desks:
            if desk.state in ("ran", "not_run"):
                desk.fail(HarnessFault(f"the oracle failed: {fault}"))


def conduct_seeds(plans: Sequence[AlgorithmPlan], notify: Notify = lambda _: None) -> list[AlgorithmResult]:
    """What ``conduct`` makes of each of some plans that differ in nothing but the seed, in the same processes.

    What no seed decides, opening and vectors, is done once and stands in every result.
    """
    begun = time.monotonic()
    cpu_before = _cpu_s()
    memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
    oracle, blocks = (Executor(station, memory, watch=Watch(0)) for station in (plans[0].oracle, plans[0].blocks))
    desks = [Desk(cell, Executor(cell.station, memory), plans[0].quorum) for cell in plans[0].cells]
    runs = [_Run(plan) for plan in plans]
    notes: list[str] = []
    try:
        notes += _run_common(plans[0], desks, oracle, memory, notify)
        for run in runs:
            run.take_desks(desks)
            _run_seed(run, (oracle, blocks), memory, notify)
        for run in runs:
            if run.trial is not None:
                run_threads(run.desks, run.trial, run.plan.manifest.digest, memory)
        for run in runs:
            judge_in_python(run.plan, run.desks, run.samples)
    except HarnessFault as fault:
        notes.append(f"the oracle failed: {fault}")
        for run in runs:
            run.fail(desks, fault)
    finally:
        for executor in (oracle, blocks, *(desk.executor for desk in desks)):
            executor.release()
        memory.close()
    took, cpu = ((now - before) / len(plans) for now, before in ((time.monotonic(), begun), (_cpu_s(), cpu_before)))
    return [_result(run, tuple(notes), took, cpu) for run in runs]


def _run_common(
    plan: AlgorithmPlan, desks: list[Desk], oracle: Executor, memory: SharedMemory, notify: Notify
) -> list[str]:
    """What no seed decides; returns notes."""
    for desk in desks:
        open_desk(desk, plan.manifest.block_len)
    notes = run_vectors(plan, desks, oracle, memory, notify)
    notes += run_chains(plan, desks, memory, notify)
    for desk in desks:
        desk.note_paths()
    return notes


def _run_seed(run: _Run, oracles: tuple[Executor, Executor], memory: SharedMemory, notify: Notify) -> None:
    """What leaves the processes as they were."""
    for desk in run.desks:
        desk.executor.begin_anew(desk.taken)
    run.samples, run.trial = _run_batches(run.plan, run.desks, oracles, memory, notify)
    run_large(run.plan, run.desks, oracles[0])
    run_bulk(run.plan.manifest, run.desks)
    for desk in run.desks:
        desk.note_paths()


def _result(run: _Run, notes: tuple[str, ...], took_s: float, cpu_s: float) -> AlgorithmResult:
    return AlgorithmResult(
        name=run.plan.name,
        algorithm=str(run.plan.algorithm),
        manifest=run.plan.manifest.to_json(),
        digest=run.plan.manifest.digest,
        cells=tuple(result_of(desk) for desk in run.desks),
        took_s=took_s,
        cpu_s=cpu_s,
        notes=notes,
    )


def _cpu_s() -> float:
    """CPU time of this process and its ended children."""
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _run_batches(
    plan: AlgorithmPlan, desks: list[Desk], oracles: tuple[Executor, Executor], memory: SharedMemory, notify: Notify
) -> tuple[list[Sample], TrialBatch | None]:
    """``oracles`` are the algorithm's and that of its block function."""
    oracle, blocks = oracles
    per_case = plan.manifest.messages_per_session
    most = max((desk.plan.comparisons for desk in desks if desk.alive), default=0)
    done, number = 0, 0
    samples: list[Sample] = []
    trial: TrialBatch | None = None

    def asking(executor: Executor) -> Ask:
        def ask(batch: Batch) -> Results:
            wire.encode_batch_into(batch, memory.view)
            executor.start(batch, len(batch))
            return executor.finish()

        return ask

    while done < most:
        batch = finished_batch(plan.manifest, number, asking(oracle), asking(blocks))
        trial = trial or trial_batch(batch, number)
        wire.encode_batch_into(batch, memory.view)
        started = []
        count = min(len(batch), -(-(most - done) // per_case))
        oracle.start(batch, count)
        for desk in desks:
            wanted = min(count, -(-(desk.plan.comparisons - done) // per_case))
            if desk.alive and wanted > 0:
                try:
                    desk.executor.start(batch, wanted)
                    started.append((desk, wanted))
                except HarnessFault as fault:
                    desk.fail(fault)
        reference = oracle.finish()
        if number < _COVERAGE_BATCHES:
            _note_coverage(plan.manifest, batch, started)
        if not plan.bounded:
            samples += take_samples(number, _prefix(batch, count), reference)
        for desk, wanted in started:
            _finish(plan, desk, _prefix(batch, wanted), reference, number, notify)
        done += count * per_case
        number += 1
    return samples, trial


def _note_coverage(manifest: Manifest, batch: Batch, started: list[tuple[Desk, int]]) -> None:
    """Count what a batch exercises, once for all cells that run as much of it, until nothing is left at none."""
    seen: dict[int, dict[str, int]] = {}
    for desk, wanted in started:
        if not desk.covered or not all(desk.covered.values()):
            if wanted not in seen:
                seen[wanted] = kept(manifest, coverage(manifest, _prefix(batch, wanted)))
            desk.covered = merged(desk.covered, seen[wanted])


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
        reference, results = _cut(batch, reference, results)

    def name(case: int) -> str:
        return str(CaseId(plan.manifest.digest, number, case))

    found = compare(batch, reference, results)
    desk.comparisons += found.comparisons
    desk.num_departed += found.num_departed
    desk.not_run += found.not_run
    notify(found.comparisons)
    for departure in found.departures:
        confirm_departure(desk, batch, departure, plan.oracle, name)


def _cut(batch: Batch, reference: Results, results: Results) -> tuple[Results, Results]:
    """Both results, cut to the operations and outputs of a batch's first cases."""
    last = batch.cases[-1]
    num_ops = int(last["first_op"]) + int(last["num_ops"])
    later = np.flatnonzero(np.isin(batch.ops["kind"][num_ops:], (wire.OpKind.UPDATE, wire.OpKind.TAG)))
    out_len = int(batch.ops["out_off"][num_ops + int(later[0])]) if len(later) else batch.out_len
    cut = [
        Results(item.header, item.cases[: len(batch)], item.statuses[:num_ops], item.out[:out_len])
        for item in (reference, results)
    ]
    return cut[0], cut[1]
