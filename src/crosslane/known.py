# SPDX-License-Identifier: Apache-2.0
"""Published answers: vectors as sessions, chained vectors, and judges in Python for sampled cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosslane import wire
from crosslane.chains import Chain, chains_of, run_chain
from crosslane.client import SharedMemory
from crosslane.compare import compare
from crosslane.desk import Desk, Notify, confirm_departure, start_desk
from crosslane.directed import DirectedBatch, Known, select_directed, spread, vector_batch, within
from crosslane.errors import HarnessFault
from crosslane.execute import Executor
from crosslane.manifest import CaseId, Manifest
from crosslane.oracles import load_oracles
from crosslane.plan import AlgorithmPlan
from crosslane.records import Finding
from crosslane.refcheck import OracleVerdict, Sample, judge_by_oracle, judge_samples, load_reference
from crosslane.solve import Ask
from crosslane.wire import Results, Status

__all__ = [
    "MOST_ELSEWHERE",
    "Published",
    "judge_in_python",
    "read_vectors",
    "run_chains",
    "run_vectors",
    "vector_notes",
]


MOST_ELSEWHERE = 1024
"""Cases made of vectors that run where the full grids do not: with hundreds of thousands an emulator takes minutes."""


@dataclass(frozen=True)
class Published:
    """Cases made of an algorithm's vectors: all but those of very many iterations, some of these, and the very long."""

    every: DirectedBatch
    some: DirectedBatch
    long: DirectedBatch


def read_vectors(plan: AlgorithmPlan, oracle: Executor, memory: SharedMemory) -> Published:
    """The cases of an algorithm's vectors."""
    every, long = (
        _possible(vector_batch(plan.vectors, plan.manifest, bounded=plan.bounded, long=item), plan, oracle, memory)
        for item in (False, True)
    )
    return Published(every, spread(every, MOST_ELSEWHERE), long)


def run_vectors(published: Published, desks: Sequence[Desk], memory: SharedMemory, notify: Notify) -> None:
    """All vectors where the full grids run, elsewhere so many of them, and none of very many iterations."""
    full, elsewhere = ([desk for desk in desks if desk.plan.full is where] for where in (True, False))
    if published.some is published.every:
        _run_vectors(published.every, desks, memory, notify)
    else:
        _run_vectors(published.every, full, memory, notify)
        _run_vectors(published.some, elsewhere, memory, notify)
    _run_vectors(published.long, full, memory, notify)


def vector_notes(plan: AlgorithmPlan, published: Published, desks: Sequence[Desk]) -> list[str]:
    """Says which vectors did not run in which lanes."""
    ran = [desk for desk in desks if desk.state == "ran"]
    long = sorted({name.rpartition(":")[0] for name in published.long.names})
    chains = [chain.name for chain in chains_of(plan.vectors, str(plan.algorithm))]
    return [
        *_fewer(published, [desk for desk in ran if not desk.plan.full]),
        *_left_out(long, [desk for desk in ran if not desk.plan.full]),
        *_left_out(chains, [desk for desk in ran if not desk.plan.native]),
    ]


def _run_vectors(directed: DirectedBatch, desks: Sequence[Desk], memory: SharedMemory, notify: Notify) -> None:
    alive = [desk for desk in desks if desk.alive]
    if not alive or not len(directed.batch):
        return
    wire.encode_batch_into(directed.batch, memory.view)
    started = [desk for desk in alive if start_desk(desk, directed.batch)]
    for desk in started:
        try:
            _judge_vectors(desk, directed, desk.executor.finish())
            desk.executor.forget()
            notify(len(directed.batch))
        except HarnessFault as fault:
            desk.fail(fault)


def _fewer(published: Published, desks: Sequence[Desk]) -> list[str]:
    """Says in which lanes not all vectors run, or nothing where they run in all."""
    lanes = ", ".join(sorted({desk.plan.cell.lane for desk in desks}))
    if not lanes or published.some is published.every:
        return []
    every, some = len(published.every.batch), len(published.some.batch)
    return [f"of {every:,} cases made of vectors, {some:,} spread evenly over them run in {lanes}"]


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


def _left_out(names: Sequence[str], desks: Sequence[Desk]) -> list[str]:
    """Says in which lanes vectors do not run, or nothing where they run in all."""
    lanes = sorted({desk.plan.cell.lane for desk in desks})
    if not lanes or not names:
        return []
    what = f"the vector {names[0]} takes" if len(names) == 1 else f"the vectors {', '.join(names)} take"
    verb = "does" if len(names) == 1 else "do"
    return [f"{what} too long beside all else and {verb} not run in {', '.join(lanes)}"]


def run_chains(plan: AlgorithmPlan, desks: list[Desk], memory: SharedMemory, notify: Notify) -> None:
    """Chained vectors, natively: their millions of steps would take an emulator longer than all the rest of a run."""
    for chain in chains_of(plan.vectors, str(plan.algorithm)):
        for desk in desks:
            if not desk.alive or not desk.plan.native or (plan.bounded and not _within(plan.manifest, chain)):
                continue
            try:
                wrong = run_chain(chain, desk.executor, memory)
            except HarnessFault as fault:
                desk.fail(fault)
                continue
            desk.comparisons += chain.num_messages
            desk.num_vectors += chain.num_messages
            notify(chain.num_messages)
            if wrong:
                desk.num_departed += 1
                finding = Finding(f"{chain.name}:chain", "disagree", "output", "alone", 1, wrong)
                desk.findings[(chain.name,)] = finding


def _within(manifest: Manifest, chain: Chain) -> bool:
    """Whether a provider's bounds allow what a chain is made of."""
    vector, inner = chain.vector, chain.vector.monte_carlo.num_inner if chain.vector.monte_carlo else 1
    known = Known("", vector.direction == "decrypt", vector.key, vector.iv, vector.plaintext, b"", repeats=inner)
    return within(manifest, known) and (not manifest.max_len or inner * len(vector.plaintext) <= manifest.max_len)


def _judge_vectors(desk: Desk, directed: DirectedBatch, results: Results) -> None:
    found = compare(directed.batch, directed.expected, results)
    desk.comparisons += found.comparisons
    desk.num_vectors += found.comparisons
    desk.num_departed += found.num_departed
    desk.not_run += found.not_run
    for departure in found.departures:
        one = select_directed(directed, np.array([departure.case]))
        confirm_departure(desk, directed.batch, departure, (one.batch, one.expected), directed.names.__getitem__)


def judge_in_python(asked: Sequence[tuple[AlgorithmPlan, Sequence[Desk], Sequence[Sample]]], blocks: Ask) -> None:
    """Hold generic's sampled answers, with every seed, against the Python reference and libraries in Python.

    The native cell of generic answers for them. ``blocks`` runs ECB batches on the oracle.
    """
    judged = [(plan, owner, samples) for plan, desks, samples in asked if samples for owner in _owners(plan, desks)]
    if not judged:
        return
    plan = judged[0][0]
    every = [sample for *_, samples in judged for sample in samples]
    wrong = judge_samples(load_reference(plan.reference), every, plan.manifest.block_len, blocks)
    oracles = load_oracles(plan.root, plan.without)
    for plan, owner, samples in judged:
        mine = {id(sample) for sample in samples}
        verdicts = [
            OracleVerdict("the Python reference", samples, tuple(item for item in wrong if id(item[0]) in mine)),
            *(judge_by_oracle(oracle, plan.algorithm, samples) for oracle in oracles),
        ]
        owner.num_sampled = len(samples)
        owner.judged_by |= {verdict.name: len(verdict.judged) for verdict in verdicts[1:] if verdict.judged}
        for verdict in verdicts:
            _keep(plan, owner, verdict, verdicts)


def _owners(plan: AlgorithmPlan, desks: Sequence[Desk]) -> list[Desk]:
    return [desk for desk in desks if desk.plan.station == plan.oracle and desk.alive][:1]


def _keep(plan: AlgorithmPlan, desk: Desk, verdict: OracleVerdict, verdicts: Sequence[OracleVerdict]) -> None:
    """Samples in which generic departs from a judge in Python, as one finding, with what the other judges say."""
    desk.num_departed += len(verdict.wrong)
    for sample, text in verdict.wrong[:1]:
        asked = [other for other in verdicts if any(item is sample for item in other.judged)]
        against = [other.name for other in asked if any(item is sample for item, _ in other.wrong)]
        agree = [other.name for other in asked if other.name not in against]
        quorum = f"generic departs from: {', '.join(against)}"
        if agree:
            quorum += f"; agree with generic: {', '.join(agree)}"
        elif len(against) > 1:
            quorum += "; generic stands alone: it is the suspect"
        case_id = str(CaseId(plan.manifest.digest, sample.batch, sample.case))
        desk.findings[verdict.name,] = Finding(case_id, "disagree", "output", "alone", len(verdict.wrong), text, quorum)
