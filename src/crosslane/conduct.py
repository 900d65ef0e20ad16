# SPDX-License-Identifier: Apache-2.0
"""Conducts the plan of one algorithm: generates, executes everywhere, compares, confirms. Never stops at a finding."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from crosslane import wire
from crosslane.chains import chains_of, run_chain
from crosslane.client import SharedMemory
from crosslane.compare import Departure, compare
from crosslane.confirm import confirm
from crosslane.describe import departure_text
from crosslane.directed import DirectedBatch, select_directed, vector_batch
from crosslane.errors import HarnessFault
from crosslane.execute import CAPACITY, Executor, Station, execute_alone
from crosslane.generate import select_cases
from crosslane.manifest import CaseId
from crosslane.messages import Hello, Opened
from crosslane.oracles import load_oracles
from crosslane.plan import AlgorithmPlan, CellPlan
from crosslane.quorum import Member, vote
from crosslane.records import AlgorithmResult, CellResult, Finding, State
from crosslane.refcheck import Sample, judge_by_oracle, judge_samples, load_reference, take_samples
from crosslane.seal import finished_batch
from crosslane.wire import Batch, Results, Status, Symptom, Watch, class_name

__all__ = ["Notify", "conduct"]

Notify = Callable[[int], None]
"""Told how many comparisons were just made."""

MAX_CONFIRMED = 48
"""Departures of one kind that are replayed for one cell; further ones are counted as more of the same."""


@dataclass
class _Desk:
    """What is being learned of one cell while its algorithm runs."""

    plan: CellPlan
    executor: Executor
    quorum: tuple[Member, ...] = ()
    state: State = "not_run"
    reason: str = ""
    hello: Hello | None = None
    opened: Opened | None = None
    comparisons: int = 0
    num_vectors: int = 0
    num_departed: int = 0
    num_sampled: int = 0
    judged_by: dict[str, int] = field(default_factory=dict)
    not_run: int = 0
    findings: dict[tuple[object, ...], Finding] = field(default_factory=dict)
    confirmed: dict[tuple[object, ...], int] = field(default_factory=dict)

    @property
    def alive(self) -> bool:
        return self.state == "ran"

    def fail(self, fault: HarnessFault) -> None:
        """The suite's own machinery failed for this cell: void, whatever was found before stays."""
        self.state, self.reason = "void", str(fault)
        self.executor.close()


def conduct(plan: AlgorithmPlan, notify: Notify = lambda _: None) -> AlgorithmResult:
    """Run every cell of an algorithm; a cell whose shim breaks the protocol is void, the others go on."""
    begun = time.monotonic()
    cpu_before = _cpu_s()
    memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
    oracle = Executor(plan.oracle, memory, watch=Watch(0))
    desks = [_Desk(cell, Executor(cell.station, memory), plan.quorum) for cell in plan.cells]
    notes: list[str] = []
    try:
        for desk in desks:
            _open(desk, plan.manifest.block_len)
        notes += _run_vectors(plan, desks, oracle, memory, notify)
        notes += _run_chains(plan, desks, memory, notify)
        samples = _run_batches(plan, desks, oracle, memory, notify)
        _judge_reference(plan, desks, samples)
    except HarnessFault as fault:
        notes.append(f"the oracle failed: {fault}")
        for desk in desks:
            if desk.state in ("ran", "not_run"):
                desk.fail(HarnessFault(f"the oracle failed: {fault}"))
    finally:
        for executor in (oracle, *(desk.executor for desk in desks)):
            executor.release()
        memory.close()
    return AlgorithmResult(
        name=plan.name,
        algorithm=str(plan.algorithm),
        manifest=plan.manifest.to_json(),
        digest=plan.manifest.digest,
        cells=tuple(_result(desk) for desk in desks),
        took_s=time.monotonic() - begun,
        cpu_s=_cpu_s() - cpu_before,
        notes=tuple(notes),
    )


def _cpu_s() -> float:
    """CPU time of this process and its ended children."""
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _open(desk: _Desk, block_len: int) -> None:
    try:
        shim = desk.executor.open()
    except HarnessFault as fault:
        desk.fail(fault)
        return
    if not shim.opened.declined and shim.opened.block_len != block_len:
        desk.fail(
            HarnessFault(
                f"{desk.plan.station.symbol} says block_len {shim.opened.block_len}, but cipher.toml says {block_len}: "
                "correct its struct subject_leaf"
            )
        )
        return
    desk.hello, desk.opened = shim.hello, shim.opened
    desk.state = "declined" if shim.opened.declined else "ran"
    if shim.opened.declined:
        desk.executor.close()


def _run_vectors(
    plan: AlgorithmPlan, desks: list[_Desk], oracle: Executor, memory: SharedMemory, notify: Notify
) -> list[str]:
    """All vectors everywhere, those of very many iterations only where the full grids run; returns notes on these."""
    notes = []
    for long in (False, True):
        directed = _possible(
            vector_batch(plan.vectors, plan.manifest, bounded=plan.bounded, long=long), plan, oracle, memory
        )
        if not len(directed.batch):
            continue
        wire.encode_batch_into(directed.batch, memory.view)
        chosen = [desk for desk in desks if desk.alive and (desk.plan.full or not long)]
        started = [desk for desk in chosen if _start(desk, directed.batch)]
        for desk in started:
            try:
                _judge_vectors(desk, directed, desk.executor.finish())
                notify(len(directed.batch))
            except HarnessFault as fault:
                desk.fail(fault)
        names = {name.rpartition(":")[0] for name in directed.names}
        notes += [_left_out(name, desks, chosen) for name in sorted(names) if long]
    return [note for note in notes if note]


def _possible(directed: DirectedBatch, plan: AlgorithmPlan, oracle: Executor, memory: SharedMemory) -> DirectedBatch:
    """Without the vectors whose key a policy refuses that is always in force: generic says which those are."""
    if not plan.manifest.always_policies or not len(directed.batch):
        return directed
    wire.encode_batch_into(directed.batch, memory.view)
    oracle.start(directed.batch, len(directed.batch))
    refused = oracle.finish().statuses == Status.WEAK_KEY
    owner = np.repeat(np.arange(len(directed.batch)), directed.batch.cases["num_ops"].astype(np.int64))
    left = np.setdiff1d(np.arange(len(directed.batch)), owner[refused])
    return select_directed(directed, left)


def _start(desk: _Desk, batch: Batch) -> bool:
    try:
        desk.executor.start(batch, len(batch))
    except HarnessFault as fault:
        desk.fail(fault)
        return False
    return True


def _left_out(name: str, desks: list[_Desk], chosen: list[_Desk]) -> str:
    """Says in which lanes a vector does not run, or nothing where it runs in all."""
    ran = {id(desk) for desk in chosen}
    lanes = sorted({desk.plan.cell.lane for desk in desks if desk.state == "ran" and id(desk) not in ran})
    return f"the vector {name} takes an emulator too long and does not run in {', '.join(lanes)}" if lanes else ""


def _run_chains(plan: AlgorithmPlan, desks: list[_Desk], memory: SharedMemory, notify: Notify) -> list[str]:
    """Chained vectors, natively: their millions of steps would take an emulator longer than all the rest of a run."""
    chains = chains_of(plan.vectors, str(plan.algorithm))
    for chain in chains:
        for desk in desks:
            if not desk.alive or not desk.plan.native:
                continue
            try:
                wrong = run_chain(chain, desk.executor, memory)
            except HarnessFault as fault:
                desk.fail(fault)
                continue
            desk.comparisons += 1
            desk.num_vectors += 1
            notify(1)
            if wrong:
                desk.num_departed += 1
                finding = Finding(f"{chain.name}:chain", "disagree", "output", "alone", 1, wrong)
                desk.findings[(chain.name,)] = finding
    native = [desk for desk in desks if desk.plan.native]
    return [note for chain in chains if (note := _left_out(chain.name, desks, native))]


def _judge_vectors(desk: _Desk, directed: DirectedBatch, results: Results) -> None:
    found = compare(directed.batch, directed.expected, results)
    desk.comparisons += found.comparisons
    desk.num_vectors += found.comparisons
    desk.num_departed += found.num_departed
    desk.not_run += found.not_run
    for departure in found.departures:
        one = select_directed(directed, np.array([departure.case]))
        _confirm(desk, directed.batch, departure, (one.batch, one.expected), directed.names.__getitem__)


def _judge_reference(plan: AlgorithmPlan, desks: list[_Desk], samples: list[Sample]) -> None:
    """Hold generic's sampled answers against the Python reference; the native cell of generic answers for them."""
    owners = [desk for desk in desks if desk.plan.station == plan.oracle and desk.alive]
    if not owners or not samples:
        return
    memory = SharedMemory("crosslane-blocks", CAPACITY, sealed=True)
    executor = Executor(plan.blocks, memory, watch=Watch(0))

    def execute(batch: Batch) -> Results:
        wire.encode_batch_into(batch, memory.view)
        executor.start(batch, len(batch))
        return executor.finish()

    try:
        wrong = judge_samples(load_reference(plan.reference), samples, plan.manifest.block_len, execute)
    finally:
        executor.release()
        memory.close()
    owners[0].num_sampled = len(samples)
    _keep(plan, owners[0], "reference", wrong)
    for oracle in load_oracles(plan.root, plan.without):
        verdict = judge_by_oracle(oracle, plan.algorithm, samples)
        if verdict.count:
            owners[0].judged_by[oracle.name] = verdict.count
        _keep(plan, owners[0], oracle.name, verdict.wrong)


def _keep(plan: AlgorithmPlan, desk: _Desk, judge: str, wrong: Sequence[tuple[Sample, str]]) -> None:
    """Samples in which generic departs from a judge in Python, as one finding."""
    desk.num_departed += len(wrong)
    for sample, text in wrong[:1]:
        case_id = str(CaseId(plan.manifest.digest, sample.batch, sample.case))
        desk.findings[judge,] = Finding(case_id, "disagree", "output", "alone", len(wrong), text)


def _run_batches(
    plan: AlgorithmPlan, desks: list[_Desk], oracle: Executor, memory: SharedMemory, notify: Notify
) -> list[Sample]:
    per_case = plan.manifest.messages_per_session
    most = max((desk.plan.comparisons for desk in desks if desk.alive), default=0)
    done, number = 0, 0
    samples: list[Sample] = []

    def encrypt(batch: Batch) -> Results:
        wire.encode_batch_into(batch, memory.view)
        oracle.start(batch, len(batch))
        return oracle.finish()

    while done < most:
        batch = finished_batch(plan.manifest, number, encrypt)
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
        if not plan.bounded:
            samples += take_samples(number, _prefix(batch, count), reference)
        for desk, wanted in started:
            _finish(plan, desk, _prefix(batch, wanted), reference, number, notify)
        done += count * per_case
        number += 1
    return samples


def _prefix(batch: Batch, count: int) -> Batch:
    """The first cases of a batch, in place: operations and outputs are the first ones too."""
    if count == len(batch):
        return batch
    return Batch(batch.cases[:count], batch.ops, batch.blob, batch.out_len, batch.messages[:count])


def _finish(plan: AlgorithmPlan, desk: _Desk, batch: Batch, reference: Results, number: int, notify: Notify) -> None:
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
        _confirm(desk, batch, departure, plan.oracle, name)


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


def _confirm(
    desk: _Desk,
    batch: Batch,
    departure: Departure,
    oracle: Station | tuple[Batch, Results],
    name: Callable[[int], str],
) -> None:
    """Look at a departure again and keep it; ``name`` gives the id of a case of ``batch``."""
    key = departure.key
    desk.confirmed[key] = desk.confirmed.get(key, 0) + 1
    if desk.confirmed[key] > MAX_CONFIRMED:
        _count(desk, key)
        return
    try:
        seen, repeats = confirm(batch, departure, desk.plan.station, oracle)
    except HarnessFault as fault:
        desk.fail(fault)
        return
    found_key = (*seen.key, repeats)
    if found_key in desk.findings:
        _count(desk, found_key)
        return
    text = departure_text(batch, seen, desk.plan.arch)
    quorum = _ask(desk, batch, seen, oracle) if repeats == "alone" and isinstance(oracle, Station) else ""
    desk.findings[found_key] = Finding(
        name(seen.case), seen.verdict.name.lower(), seen.symptom.name.lower(), repeats, 1, text, quorum
    )


def _ask(desk: _Desk, batch: Batch, seen: Departure, oracle: Station) -> str:
    """What the libraries say of a case whose answers differ; nothing where it is about more than answers."""
    members = [member for member in desk.quorum if member.station != desk.plan.station]
    if not members or seen.symptom not in (Symptom.OUTPUT, Symptom.IV):
        return ""
    one = select_cases(batch, np.array([seen.case]))
    try:
        generic = execute_alone(oracle, one, watch=Watch(0))
        return vote(one, generic, execute_alone(desk.plan.station, one), members)
    except HarnessFault:
        return ""  # the replay that confirmed the departure worked; this one is only about who else agrees


def _count(desk: _Desk, key: tuple[object, ...]) -> None:
    for found_key, finding in desk.findings.items():
        if found_key[:3] == key[:3]:
            desk.findings[found_key] = Finding(**{**vars(finding), "count": finding.count + 1})
            return


def _result(desk: _Desk) -> CellResult:
    hello, opened = desk.hello, desk.opened
    taken = desk.executor.taken
    expected = desk.plan.paths
    names = opened.paths if opened else ()
    paths = {
        name: tuple(class_name(c) for c in range(wire.NUM_CLASSES) if taken[c] >> bit & 1)
        for bit, name in enumerate(names)
        if name in expected or any(taken[c] >> bit & 1 for c in range(wire.NUM_CLASSES))
    }
    watchers = {"layout", "canary", "registers", "context", "paths"}
    blind = {str(watch.name).lower() for watch in opened.blind} if opened else set()
    return CellResult(
        cell=str(desk.plan.cell),
        state=desk.state,
        reason=desk.reason,
        comparisons=desk.comparisons,
        wanted=0 if desk.state == "declined" else desk.plan.comparisons,
        skipped=desk.not_run,
        num_vectors=desk.num_vectors,
        num_departed=desk.num_departed,
        num_sampled=desk.num_sampled,
        judged_by=desk.judged_by,
        findings=tuple(desk.findings.values()),
        needed_features=desk.plan.needed_features,
        cpu_features=tuple(sorted(hello.features)) if hello else (),
        declared_paths=expected,
        paths=paths,
        unwatched=tuple(sorted(watchers - hello.watchers | blind)) if hello else (),
        cpu_s=desk.executor.cpu_ns / 1e9,
        provider=desk.plan.provider,
    )
