# SPDX-License-Identifier: Apache-2.0
"""Comparison of a subject's results with the oracle's: whole arrays first, single cases only where they differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosslane.generate import output_lens
from crosslane.wire import Batch, Buffer, Flag, OpKind, Results, Status, Symptom, Verdict

__all__ = ["Comparison", "Departure", "compare"]


@dataclass(frozen=True)
class Departure:
    """How one case departed. ``op`` is the operation's index within the case, ``offset`` is in bytes from the first
    byte of ``buffer`` (an address where ``buffer`` is NONE), ``registers`` a bit set as in the protocol page,
    ``report`` a sanitizer's words.
    """

    case: int
    verdict: Verdict
    symptom: Symptom
    op: int
    buffer: Buffer
    offset: int
    signal: int
    registers: int
    pc: int
    expected: bytes
    got: bytes
    report: str = ""

    @property
    def key(self) -> tuple[Verdict, Symptom, int]:
        """What two departures of the same kind share."""
        return (self.verdict, self.symptom, self.signal)


@dataclass(frozen=True)
class Comparison:
    """``comparisons`` counts messages judged; ``num_departed`` cases, of which the first are described.

    ``not_run`` are cases that nobody can judge: the subject did not come to them, or the oracle did not answer.
    """

    comparisons: int
    num_departed: int
    departures: tuple[Departure, ...]
    not_run: int


def _from_record(batch: Batch, results: Results, index: int) -> Departure:
    """What the shim recorded. A record that no shim writes was written over, which is a departure of its own."""
    record = results.cases[index]
    op = int(record["op"]) - int(batch.cases["first_op"][index])
    op = min(max(0, op), max(0, int(batch.cases["num_ops"][index]) - 1))
    try:
        verdict, symptom = Verdict(int(record["verdict"])), Symptom(int(record["symptom"]))
        buffer = Buffer(int(record["buffer"]))
    except ValueError:
        return Departure(
            index, Verdict.CRASH, Symptom.GUARD_WRITE, op, Buffer.RESULTS, 32 * index, 0, 0, 0, b"", record.tobytes()
        )
    return Departure(
        case=index,
        verdict=verdict,
        symptom=symptom,
        op=op,
        buffer=buffer,
        offset=int(record["offset"]),
        signal=int(record["signal"]),
        registers=int(record["registers"]),
        pc=int(record["pc"]),
        expected=b"",
        got=b"",
        report=results.report,
    )


def _first_status(batch: Batch, oracle: Results, subject: Results, index: int) -> Departure | None:
    first, count = int(batch.cases["first_op"][index]), int(batch.cases["num_ops"][index])
    ours, theirs = oracle.statuses[first : first + count], subject.statuses[first : first + count]
    differs = np.flatnonzero(ours != theirs)
    if not len(differs):
        return None
    op = int(differs[0])
    verdict = Verdict.REJECT if theirs[op] != Status.OK else Verdict.DISAGREE
    return Departure(
        index, verdict, Symptom.OUTPUT, op, Buffer.NONE, 0, 0, 0, 0, bytes([int(ours[op])]), bytes([int(theirs[op])])
    )


def _first_output(batch: Batch, oracle: Results, subject: Results, index: int) -> Departure | None:
    first, count = int(batch.cases["first_op"][index]), int(batch.cases["num_ops"][index])
    which = np.arange(first, first + count)
    lens = output_lens(batch, which)
    for op in np.flatnonzero(lens):
        record = batch.ops[first + op]
        start, length = int(record["out_off"]), int(lens[op])
        ours, theirs = oracle.out[start : start + length], subject.out[start : start + length]
        if np.array_equal(ours, theirs):
            continue
        at = int(np.flatnonzero(ours != theirs)[0])
        data_len = int(record["in_len"]) if record["kind"] == OpKind.UPDATE else length
        in_iv = at >= data_len and bool(record["flags"] & Flag.OBSERVE_IV)
        end = at + 16 if in_iv else min(at + 16, data_len)
        return Departure(
            case=index,
            verdict=Verdict.DISAGREE,
            symptom=Symptom.IV if in_iv else Symptom.OUTPUT,
            op=int(op),
            buffer=Buffer.IV if in_iv else Buffer.TAG if record["kind"] == OpKind.TAG else Buffer.OUT,
            offset=at - data_len if in_iv else at,
            signal=0,
            registers=0,
            pc=0,
            expected=ours[at:end].tobytes(),
            got=theirs[at:end].tobytes(),
        )
    return None


def _suspects(batch: Batch, oracle: Results, subject: Results, ran: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Indexes of cases that ran on both sides and differ in a status or an output byte."""
    wrong = np.zeros(len(batch) + 1, bool)
    if not np.array_equal(oracle.statuses, subject.statuses):
        at = np.flatnonzero(oracle.statuses != subject.statuses)
        wrong[np.searchsorted(batch.cases["first_op"], at, side="right") - 1] = True
    if not np.array_equal(oracle.out, subject.out):
        at = np.flatnonzero(oracle.out != subject.out)
        writes = np.isin(batch.ops["kind"], (int(OpKind.UPDATE), int(OpKind.TAG)))
        ops = np.flatnonzero(writes)
        owner = ops[np.searchsorted(batch.ops["out_off"][ops], at, side="right") - 1]
        wrong[np.searchsorted(batch.cases["first_op"], owner, side="right") - 1] = True
    return np.flatnonzero(wrong[:-1] & ran)


def compare(batch: Batch, oracle: Results, subject: Results, *, limit: int = 16) -> Comparison:
    """Judge every case of ``batch``; at most ``limit`` departures of each kind are described, the rest counted."""
    verdicts = subject.cases["verdict"]
    answered = oracle.cases["verdict"] == Verdict.RAN
    unjudged = (verdicts == Verdict.NOT_RUN) | ((verdicts == Verdict.RAN) & ~answered)
    comparisons = int(batch.messages[~unjudged].sum())
    clean = np.array_equal(oracle.statuses, subject.statuses) and np.array_equal(oracle.out, subject.out)
    if clean and bool((verdicts == Verdict.RAN).all() and answered.all()):
        return Comparison(comparisons, 0, (), 0)
    ran = (verdicts == Verdict.RAN) & answered
    ended = np.flatnonzero((verdicts != Verdict.RAN) & (verdicts != Verdict.NOT_RUN))
    suspects = _suspects(batch, oracle, subject, ran)
    departures: list[Departure] = []
    kinds: dict[tuple[Verdict, Symptom, int], int] = {}
    num_departed = 0
    for index in np.sort(np.concatenate([ended, suspects])).tolist():
        departure = (
            _from_record(batch, subject, index)
            if verdicts[index] != Verdict.RAN
            else _first_status(batch, oracle, subject, index) or _first_output(batch, oracle, subject, index)
        )
        if departure is None:
            continue  # bytes between outputs, which no operation owns
        num_departed += 1
        kinds[departure.key] = kinds.get(departure.key, 0) + 1
        if kinds[departure.key] <= limit:
            departures.append(departure)
        elif num_departed >= 64 * limit:
            num_departed += len(ended) + len(suspects) - num_departed
            break
    return Comparison(comparisons, num_departed, tuple(departures), int(unjudged.sum()))
