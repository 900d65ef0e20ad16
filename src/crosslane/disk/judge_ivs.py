# SPDX-License-Identifier: Apache-2.0
"""Makes the ivs of sectors and holds each against the reference: a wrong generator is a finding of its own.

All cells go on with the ivs as they were made. Those of images depart then too, since somebody else made these.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crosslane import wire
from crosslane.client import SharedMemory
from crosslane.disk.ivs import U64, Bytes, Generate
from crosslane.disk.reference import essiv_question, reference_iv
from crosslane.disk.sectors import Request, answer_of, sector_batch
from crosslane.errors import HarnessFault
from crosslane.execute import Executor, execute_unless_declined
from crosslane.oracles import Oracle, load_oracles
from crosslane.plan import AlgorithmPlan
from crosslane.reference import Message
from crosslane.wire import Batch, Verdict, Watch

__all__ = ["IvJudge"]

_BLOCK_MODE = "ecb"
_MOST_ASKED = 64
"""Ivs of essiv that each library in Python is asked for, of each disk; those in C are asked for all."""


class IvJudge:
    """Makes ivs with the oracle's block function, and judges them by plain Python and by libraries."""

    def __init__(self, plan: AlgorithmPlan, blocks: Executor, memory: SharedMemory) -> None:
        """Nothing is asked yet."""
        self._plan, self._blocks, self._memory = plan, blocks, memory
        self._oracles: tuple[Oracle, ...] | None = None
        self._agreed: dict[str, int] = {}
        self.wrong: dict[tuple[str, str], str] = {}
        """By generator and judge: the first iv that departs, in a sentence."""
        self._num_essiv = 0

    def ivs(self, generate: Generate, generator: str, key: bytes, numbers: U64) -> Bytes:
        """The ivs of sectors with these numbers, as ``generate`` makes them; a judge that has others is noted."""
        block_len = self._plan.manifest.block_len
        made = generate(generator, key, numbers, block_len, self._encrypt)
        if generator.startswith("essiv"):
            self._judge_essiv(key, numbers, made)
            return made
        for at, number in enumerate(numbers.tolist()):
            if made[at].tobytes() != reference_iv(generator, number, block_len):
                self._depart(generator, number, "the reference")
        return made

    def _depart(self, generator: str, number: int, judge: str) -> None:
        text = f"the iv of sector {number} under {generator} is not that of {judge}: correct crosslane.disk.ivs"
        self.wrong.setdefault((generator, judge), text)

    def _encrypt(self, key: bytes, data: Bytes) -> Bytes:
        """The block cipher of the oracle."""
        batch = _block_batch(key, data)
        wire.encode_batch_into(batch, self._memory.view)
        self._blocks.start(batch, 1)
        results = self._blocks.finish()
        if results.cases["verdict"][0] != Verdict.RAN or bool(results.statuses[: len(batch.ops)].any()):
            raise HarnessFault("the generic block function does not take the key or the blocks of essiv")
        return answer_of(batch, results, 0).reshape(data.shape).copy()

    def _judge_essiv(self, key: bytes, numbers: U64, made: Bytes) -> None:
        """Ask every library that has the block cipher."""
        block_len = self._plan.manifest.block_len
        asked = [essiv_question(key, number, block_len) for number in numbers.tolist()]
        batch = _block_batch(asked[0][0], np.frombuffer(b"".join(block for _, block in asked), np.uint8))
        self._num_essiv += len(asked)
        for name, answers in self._answers(asked, batch):
            wrong = np.flatnonzero((made[: len(answers)] != answers).any(axis=1))
            if len(wrong):
                self._depart("essiv:sha256", int(numbers[wrong[0]]), name)
            else:
                self._agreed[name] = self._agreed.get(name, 0) + len(answers)

    def _answers(self, asked: list[tuple[bytes, bytes]], batch: Batch) -> Iterator[tuple[str, Bytes]]:
        block_len, cipher = self._plan.manifest.block_len, self._plan.algorithm.cipher
        for member in self._plan.quorum:
            results = execute_unless_declined(member.station.blocks, batch, watch=Watch(0))
            if results is not None and results.cases["verdict"][0] == Verdict.RAN and not results.statuses.any():
                yield member.name, answer_of(batch, results, 0).reshape(-1, block_len)
        if self._oracles is None:
            self._oracles = load_oracles(self._plan.root, self._plan.without)
        some = asked[:_MOST_ASKED]
        for oracle in self._oracles:
            found = [oracle.run(_BLOCK_MODE, cipher, Message(False, key, b"", b"", block, 0)) for key, block in some]
            outs = [answer.data for answer in found if answer is not None]
            if len(outs) == len(some):
                yield oracle.name, np.frombuffer(b"".join(outs), np.uint8).reshape(-1, block_len)

    def notes(self) -> list[str]:
        """Who agreed on essiv, or that nobody could be asked."""
        if not self._num_essiv:
            return []
        agreed = ", ".join(f"{name} on {count:,}" for name, count in self._agreed.items())
        return [f"{self._num_essiv:,} ivs of essiv rest on generic, and agree with {agreed or 'nobody else'}"]


def _block_batch(key: bytes, data: Bytes) -> Batch:
    rows = data.reshape(1, -1)
    return sector_batch([Request(key, False, np.zeros((1, 0), np.uint8), rows, (rows.size,))])
