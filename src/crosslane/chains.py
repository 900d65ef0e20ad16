# SPDX-License-Identifier: Apache-2.0
"""Vectors whose every step depends on the one before: the full maintenance test of RFC 2144, appendix B.2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from crosslane import wire
from crosslane.client import SharedMemory
from crosslane.corpora import Vector, VectorFile
from crosslane.execute import Executor
from crosslane.wire import CASE, OP, Batch, Flag, OpKind, Results, Status, Verdict

__all__ = ["Chain", "chains_of", "run_chain"]

_STEPS_PER_BATCH = 100_000
_OPS_PER_HALF = 3


@dataclass(frozen=True)
class Chain:
    """A chained vector and its name."""

    name: str
    vector: Vector


def chains_of(files: Iterable[VectorFile], algorithm: str) -> tuple[Chain, ...]:
    """The chained vectors of an algorithm."""
    return tuple(
        Chain(f"{file.source}:{vector.id}", vector)
        for file in files
        if file.algorithm == algorithm
        for vector in file.vectors
        if vector.kind == "maintenance"
    )


def _maintenance_batch(first: bytes, second: bytes, num_steps: int) -> Batch:
    """``num_steps`` times a = E(b, a), b = E(a, b) as one session; both values end in the output, a first."""
    length = len(first)
    half = np.zeros((2 * num_steps, _OPS_PER_HALF), OP)
    half["kind"] = (OpKind.SETKEY, OpKind.SETIV, OpKind.UPDATE)
    half["flags"] = (Flag.FEED, 0, Flag.FEED | Flag.LAST)
    half["in_len"] = (length, 0, length)
    half["out_off"][1::2, 2] = length
    half["flags"][0, 0], half["flags"][:2, 2] = 0, int(Flag.LAST)
    half["in_off"][0, 0], half["in_off"][1, 2] = length, length
    ops = np.concatenate([half.reshape(-1), np.array([(OpKind.FINAL, *(0,) * 12)], OP)])
    case = np.zeros(1, CASE)
    case["num_ops"] = len(ops)
    return Batch(case, ops, np.frombuffer(first + second, np.uint8), 2 * length, np.ones(1, np.int64))


def _parts(total: int) -> Iterator[int]:
    while total > 0:
        yield min(total, _STEPS_PER_BATCH)
        total -= _STEPS_PER_BATCH


def _ending(results: Results) -> str:
    """How a case ended that did not run to its end, or what it answered to an operation that is none to refuse."""
    verdict, refused = int(results.cases["verdict"][0]), results.statuses[results.statuses != Status.OK]
    if verdict == Verdict.RAN:
        return {int(status): status.name.lower() for status in Status}.get(int(refused[0]), f"status {refused[0]}")
    return {int(known): known.name.lower() for known in Verdict}.get(verdict, "its results were written over")


def run_chain(chain: Chain, executor: Executor, memory: SharedMemory) -> str:
    """Run a chain to its end; returns a sentence on what went wrong, or nothing."""
    vector = chain.vector
    first, second = vector.plaintext, vector.key
    for num_steps in _parts(vector.iterations):
        batch = _maintenance_batch(first, second, num_steps)
        wire.encode_batch_into(batch, memory.view)
        executor.start(batch, 1)
        results = executor.finish()
        if results.cases["verdict"][0] != Verdict.RAN or bool(results.statuses.any()):
            return f"the chain broke off: {_ending(results)}"
        out = results.out.tobytes()
        first, second = out[: len(first)], out[len(first) :]
    if (first, second) != (vector.ciphertext, vector.final_key):
        return (
            f"after {vector.iterations:,} steps a = {first.hex()} and b = {second.hex()}, expected "
            f"{vector.ciphertext.hex()} and {vector.final_key.hex()}"
        )
    return ""
