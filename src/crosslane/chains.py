# SPDX-License-Identifier: Apache-2.0
"""Vectors whose every step depends on the ones before: the full maintenance test of RFC 2144, appendix B.2, and the
Monte Carlo tests of modes with an iv.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from crosslane import wire
from crosslane.client import SharedMemory
from crosslane.corpora import MonteCarlo, Vector, VectorFile
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

    @property
    def num_messages(self) -> int:
        """Messages that are judged: the rounds of a Monte Carlo test, or one."""
        return len(self.vector.monte_carlo.rounds) if self.vector.monte_carlo else 1


def chains_of(files: Iterable[VectorFile], algorithm: str) -> tuple[Chain, ...]:
    """The chained vectors of an algorithm."""
    return tuple(
        Chain(f"{file.source}:{vector.id}", vector)
        for file in files
        if file.algorithm == algorithm
        for vector in file.vectors
        if vector.kind == "maintenance" or (vector.monte_carlo is not None and vector.monte_carlo.with_iv)
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
    verdicts = results.cases["verdict"]
    verdict = int(next((found for found in verdicts if found != Verdict.RAN), Verdict.RAN))
    refused = results.statuses[results.statuses != Status.OK]
    if verdict == Verdict.RAN:
        return {int(status): status.name.lower() for status in Status}.get(int(refused[0]), f"status {refused[0]}")
    return {int(known): known.name.lower() for known in Verdict}.get(verdict, "its results were written over")


def _monte_carlo_batch(chain: MonteCarlo, *, decrypting: bool) -> Batch:
    """Each round as a session of one message; the outputs of its last two updates stay, in their order."""
    num_rounds, num_inner, rounds = len(chain.rounds), chain.num_inner, chain.rounds
    key_len, block_len = len(rounds[0].key), len(rounds[0].input)
    ops = np.zeros((num_rounds, num_inner + 3), OP)
    updates, starts = ops[:, 2:-1], np.arange(num_rounds) * (key_len + 2 * block_len)
    ops["kind"][:, 0], ops["kind"][:, 1], ops["kind"][:, -1] = OpKind.SETKEY, OpKind.SETIV, OpKind.FINAL
    ops["in_len"][:, 0], ops["in_off"][:, 0] = key_len, starts
    ops["in_len"][:, 1], ops["in_off"][:, 1] = block_len, starts + key_len
    ops["aux1"][:, 1] = num_inner * block_len
    updates["kind"], updates["in_len"], updates["flags"] = OpKind.UPDATE, block_len, int(Flag.FEED)
    updates["flags"][:, :2] = 0
    updates["flags"][:, -1] |= int(Flag.LAST)
    updates["in_off"][:, 0], updates["in_off"][:, 1] = starts + key_len + block_len, starts + key_len
    # The last update stands second, so that the pair is in order whatever the number of updates.
    second = (num_inner - 1 - np.arange(num_inner)) % 2 == 0
    updates["out_off"] = np.arange(num_rounds)[:, None] * 2 * block_len + second * block_len
    cases = np.zeros(num_rounds, CASE)
    cases["num_ops"], cases["decrypting"] = num_inner + 3, int(decrypting)
    cases["first_op"] = np.arange(num_rounds) * (num_inner + 3)
    blob = b"".join(item.key + item.iv + item.input for item in rounds)
    out_len = 2 * num_rounds * block_len
    return Batch(cases, ops.reshape(-1), np.frombuffer(blob, np.uint8), out_len, np.ones(num_rounds, np.int64))


def _run_monte_carlo(vector: Vector, chain: MonteCarlo, executor: Executor, memory: SharedMemory) -> str:
    batch = _monte_carlo_batch(chain, decrypting=vector.direction == "decrypt")
    wire.encode_batch_into(batch, memory.view)
    executor.start(batch, len(batch))
    results = executor.finish()
    if (results.cases["verdict"] != Verdict.RAN).any() or bool(results.statuses.any()):
        return f"the chain broke off: {_ending(results)}"
    out, block_len = results.out.tobytes(), len(chain.rounds[0].input)
    for number, item in enumerate(chain.rounds):
        before, last = (out[(2 * number + half) * block_len :][:block_len] for half in (0, 1))
        if last != item.output or (item.before and before != item.before):
            return (
                f"round {item.index} ends with {before.hex()} and {last.hex()}, expected "
                f"{item.before.hex() or 'anything'} and {item.output.hex()}"
            )
    return ""


def run_chain(chain: Chain, executor: Executor, memory: SharedMemory) -> str:
    """Run a chain to its end; returns a sentence on what went wrong, or nothing."""
    vector = chain.vector
    if vector.monte_carlo is not None:
        return _run_monte_carlo(vector, vector.monte_carlo, executor, memory)
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
