# SPDX-License-Identifier: Apache-2.0
"""Runs sessions on oracle and subject, each batch in fresh processes, and says of each how the answers differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosslane.execute import Station, execute_alone
from crosslane.findings.case import Case, batch_of
from crosslane.generate import output_lens
from crosslane.triage.observations import Answer
from crosslane.wire import Batch, Flag, OpKind, Results, Status, Symptom, Verdict, Watch

__all__ = ["FILL_BYTE", "Both", "ask", "ask_few"]

FILL_BYTE = 0xA5
"""What the shim fills outputs with before a call."""
_FEW = 12
"""Sessions of a batch of which all may end their process: a batch stands sixteen."""


@dataclass(frozen=True)
class Both:
    """The results of oracle and subject for one batch, from which answers are read. Lengths in bytes."""

    batch: Batch
    oracle: Results
    subject: Results
    lens: NDArray[np.int64]
    block_len: int

    def answer(self, index: int) -> Answer | None:
        """How the subject answered a case; None where it did not come to it or the oracle did not."""
        record = self.subject.cases[index]
        verdict = int(record["verdict"])
        if verdict == Verdict.NOT_RUN or self.oracle.cases["verdict"][index] != Verdict.RAN:
            return None
        if verdict != Verdict.RAN:
            return Answer(ended=_name(int(record["symptom"]), verdict))
        first, count = int(self.batch.cases["first_op"][index]), int(self.batch.cases["num_ops"][index])
        ours, theirs = (side.statuses[first : first + count] for side in (self.oracle, self.subject))
        bad_tag = bool(((ours == Status.OK) & (theirs == Status.BAD_TAG)).any())
        found = Answer(tag=bad_tag, status=not np.array_equal(ours, theirs) and not bad_tag)
        return self._outputs(found, first, count)

    def _outputs(self, found: Answer, first: int, count: int) -> Answer:
        """With what differs in the outputs of these operations."""
        wrong: set[int] = set()
        written: list[int] = []
        iv, tag, begun = False, found.tag, 0
        for number in range(first, first + count):
            record = self.batch.ops[number]
            kind, start, length = int(record["kind"]), int(record["out_off"]), int(self.lens[number])
            ours, theirs = (side.out[start : start + length] for side in (self.oracle, self.subject))
            if kind == OpKind.SETIV:
                begun = 0
            elif kind == OpKind.TAG:
                tag = tag or not np.array_equal(ours, theirs)
            elif kind == OpKind.UPDATE:
                data_len = length - (self.block_len if int(record["flags"]) & Flag.OBSERVE_IV else 0)
                at = np.flatnonzero(ours[:data_len] != theirs[:data_len])
                wrong.update(((at + begun) // self.block_len).tolist())
                written += theirs[at].tolist()
                iv = iv or not np.array_equal(ours[data_len:], theirs[data_len:])
                begun += int(record["in_len"])
        unwritten = bool(written) and set(written) == {FILL_BYTE}
        return Answer(tuple(sorted(wrong)), iv=iv, tag=tag, status=found.status, unwritten=unwritten)


def _name(symptom: int, verdict: int) -> str:
    try:
        return (Symptom(symptom).name if symptom else Verdict(verdict).name).lower()
    except ValueError:
        return "crash"


def ask(
    oracle: Station, subject: Station, cases: Sequence[Case], block_len: int, *, watch: Watch = Watch.ALL
) -> list[Answer | None]:
    """How the subject answers sealed sessions beside the oracle, all in one batch of fresh processes."""
    if not cases:
        return []
    batch = batch_of(cases)
    expected = execute_alone(oracle, batch, watch=Watch(0))
    got = execute_alone(subject, batch, watch=watch)
    both = Both(batch, expected, got, output_lens(batch, np.arange(len(batch.ops))), block_len)
    return [both.answer(index) for index in range(len(cases))]


def ask_few(oracle: Station, subject: Station, cases: Sequence[Case], block_len: int) -> list[Answer | None]:
    """The same where each session may end its process: a few in each batch."""
    parts = [cases[at : at + _FEW] for at in range(0, len(cases), _FEW)]
    return [answer for part in parts for answer in ask(oracle, subject, part, block_len)]
