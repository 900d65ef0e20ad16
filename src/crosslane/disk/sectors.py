# SPDX-License-Identifier: Apache-2.0
"""Requests to a disk as sessions of the wire protocol: the key once, then iv, data and end of each sector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosslane.draws import U64, take_bits
from crosslane.generate import output_lens, select_cases
from crosslane.wire import CASE, OP, Batch, Edge, Flag, OpKind, Results

__all__ = ["Request", "answer_of", "one_case", "outputs_at", "sector_batch", "with_answers"]

_MIDDLE = int(Edge.MIDDLE)


@dataclass(frozen=True)
class Request:
    """One read (``decrypting``) or write of some sectors: ivs of shape (n, iv_len), data of shape (n, sector_len).

    ``pieces`` are the bytes of the buffers that each sector is scattered over. ``words``, one for each piece of each
    sector, decide where buffers lie and which are in place; without them all lie plainly in the middle.
    """

    key: bytes
    decrypting: bool
    ivs: NDArray[np.uint8]
    data: NDArray[np.uint8]
    pieces: tuple[int, ...]
    words: U64 | None = None

    @property
    def num_ops(self) -> int:
        """Operations of its session."""
        return 1 + len(self.ivs) * (2 + len(self.pieces))


def sector_batch(requests: Sequence[Request]) -> Batch:
    """A batch of one session a request, in their order."""
    num_ops = sum(request.num_ops for request in requests)
    cases, ops = np.zeros(len(requests), CASE), np.zeros(num_ops, OP)
    blob: list[NDArray[np.uint8]] = []
    at, blob_len, out_len = 0, 0, 0
    for index, request in enumerate(requests):
        cases[index] = (at, request.num_ops, 0, request.decrypting, _MIDDLE, 0, 0, 0)
        part = ops[at : at + request.num_ops]
        _write(part, request, blob_len, out_len)
        blob += [np.frombuffer(request.key, np.uint8), request.ivs.reshape(-1), request.data.reshape(-1)]
        at += request.num_ops
        blob_len += len(request.key) + request.ivs.size + request.data.size
        out_len += request.data.size
    messages = np.array([len(request.ivs) for request in requests], np.int64)
    return Batch(cases, ops, np.concatenate(blob), out_len, messages)


def _write(part: NDArray[np.void], request: Request, blob_at: int, out_at: int) -> None:
    """The operations of one session."""
    num, iv_len = request.ivs.shape
    sector_len = request.data.shape[1]
    part["in_edge"] = part["out_edge"] = _MIDDLE
    part[0]["kind"], part[0]["in_off"], part[0]["in_len"] = OpKind.SETKEY, blob_at, len(request.key)
    rows = part[1:].reshape(num, 2 + len(request.pieces))
    ivs_at = blob_at + len(request.key)
    data_at = ivs_at + request.ivs.size
    sectors = np.arange(num, dtype=np.uint64)
    begin = rows[:, 0]
    begin["kind"], begin["in_len"], begin["aux1"] = OpKind.SETIV, iv_len, sector_len
    begin["in_off"] = np.uint64(ivs_at) + sectors * np.uint64(iv_len)
    rows[:, -1]["kind"] = OpKind.FINAL
    words = None if request.words is None else request.words.reshape(num, len(request.pieces))
    done = 0
    for number, length in enumerate(request.pieces):
        piece = rows[:, 1 + number]
        piece["kind"], piece["in_len"] = OpKind.UPDATE, length
        piece["in_off"] = np.uint64(data_at + done) + sectors * np.uint64(sector_len)
        piece["out_off"] = np.uint64(out_at + done) + sectors * np.uint64(sector_len)
        piece["flags"] = Flag.LAST if number == len(request.pieces) - 1 else 0
        if words is not None:
            _lay_out(piece, words[:, number])
        done += length


def _lay_out(piece: NDArray[np.void], words: U64) -> None:
    """One buffer in four at each guard page, the rest anywhere; half of the pieces in place."""
    piece["in_edge"], piece["in_align"] = np.minimum(take_bits(words, 0, 2), 2), take_bits(words, 2, 6)
    piece["out_edge"], piece["out_align"] = np.minimum(take_bits(words, 8, 2), 2), take_bits(words, 10, 6)
    piece["flags"] |= (take_bits(words, 16, 1) * int(Flag.IN_PLACE)).astype(np.uint8)


def outputs_at(batch: Batch, index: int) -> slice:
    """Where the outputs of a case of such a batch lie, one sector behind the other."""
    first, count = int(batch.cases["first_op"][index]), int(batch.cases["num_ops"][index])
    ops = batch.ops[first : first + count]
    updates = ops[ops["kind"] == OpKind.UPDATE]
    start = int(updates["out_off"][0])
    return slice(start, start + int(updates["in_len"].sum()))


def answer_of(batch: Batch, results: Results, index: int) -> NDArray[np.uint8]:
    """The output bytes of a case."""
    return results.out[outputs_at(batch, index)]


def with_answers(batch: Batch, results: Results, known: dict[int, NDArray[np.uint8]]) -> Results:
    """A copy of results in which cases whose answers are known have these, whoever computed the rest."""
    made = results.copy()
    made = Results(made.header, made.cases[: len(batch)], made.statuses[: len(batch.ops)], made.out[: batch.out_len])
    for index, data in known.items():
        made.out[outputs_at(batch, index)] = data.reshape(-1)
    return made


def one_case(batch: Batch, expected: Results, index: int) -> tuple[Batch, Results]:
    """One case by itself with its expected results."""
    first, count = int(batch.cases["first_op"][index]), int(batch.cases["num_ops"][index])
    one = select_cases(batch, np.array([index]))
    assert int(output_lens(one, np.arange(count)).sum()) == one.out_len
    answers = Results(
        expected.header,
        expected.cases[index : index + 1],
        expected.statuses[first : first + count],
        answer_of(batch, expected, index),
    )
    return one, answers
