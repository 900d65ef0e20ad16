# SPDX-License-Identifier: Apache-2.0
"""Trials: what a cell is asked beside its cases, in requests of their own; each finding's id repeats its trial."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosslane import wire
from crosslane.client import SharedMemory, SubjectEnded
from crosslane.compare import Departure
from crosslane.describe import departure_text
from crosslane.desk import GETTER, Desk, getter_text
from crosslane.errors import BadInput, HarnessFault
from crosslane.execute import CAPACITY, Executor, Station, sanitizer_report
from crosslane.generate import select_cases
from crosslane.leaks import MEMORY
from crosslane.manifest import CaseId, parse_case_id
from crosslane.messages import Ended
from crosslane.records import Finding
from crosslane.wire import Batch, Buffer, Flag, Symptom, Verdict

__all__ = [
    "NUM_CASES",
    "THREADS",
    "TrialBatch",
    "is_trial",
    "read_trial",
    "run_threads",
    "see_getter",
    "see_threads",
    "trial_batch",
]

THREADS = "threads"
NUM_ROUNDS = 4
"""How often each case meets another one in two threads at once."""
NUM_REPLAYS = 3
REPLAY_ROUNDS = 64
NUM_CASES = 8
"""Cases of this trial, where a batch has so many of short messages."""
_MAX_LEN = 4096
"""Bytes of data in all messages of a case of this trial: many short calls meet more often than a long one."""

_TRIAL = re.compile(rf"({THREADS})-(.*)")


@dataclass(frozen=True)
class TrialBatch:
    """Cases that are run in two threads at once; ``indexes`` are theirs in batch ``number`` of the manifest."""

    number: int
    batch: Batch
    indexes: tuple[int, ...]


def is_trial(case_id: str) -> bool:
    """Whether an id is that of a trial, not of a case or a vector."""
    return case_id in (GETTER, MEMORY) or case_id.startswith((f"{THREADS}-", "large-", "bulk-"))


def read_trial(text: str) -> CaseId:
    """The case that a trial's id names; raises BadInput."""
    match = _TRIAL.fullmatch(text)
    if match is None:
        raise BadInput(f"{text!r} names no trial: give an id as `crosslane check` prints it, such as {THREADS}-CASE")
    return parse_case_id(match[2])


def trial_batch(batch: Batch, number: int) -> TrialBatch:
    """The first cases of a batch whose messages are short and may overlap nothing, behind each other."""
    owner = np.repeat(np.arange(len(batch)), batch.cases["num_ops"].astype(np.int64))
    lens = np.bincount(owner, weights=batch.ops["in_len"].astype(np.float64), minlength=len(batch))
    lens[owner[(batch.ops["flags"] & Flag.OVERLAP) != 0]] = np.inf
    indexes = np.flatnonzero(lens <= _MAX_LEN)[:NUM_CASES]
    if not len(indexes):
        indexes = np.argsort(lens, kind="stable")[:1]
    return TrialBatch(number, select_cases(batch, indexes), tuple(int(i) for i in indexes))


def run_threads(desks: Sequence[Desk], trial: TrialBatch, digest: str, memory: SharedMemory) -> list[str]:
    """Run the trial in every cell that is alive; the processes serve for nothing but further ones then. Returns notes.

    A crash under an emulator that does not come again is a note and no finding: with two threads qemu-user ends
    by itself now and then.
    """
    notes: list[str] = []
    for desk in desks:
        if not desk.alive or desk.hello is None or THREADS not in desk.hello.watchers:
            continue
        wire.encode_batch_into(trial.batch, memory.view)
        try:
            seen = _ask(desk.executor, trial, desk.plan.arch, NUM_ROUNDS)
            if seen.text:
                desk.executor.close()
                case_id = f"{THREADS}-{CaseId(digest, trial.number, trial.indexes[seen.case])}"
                again = see_threads(desk.plan.station, trial, desk.plan.arch, NUM_REPLAYS)
                if desk.plan.emulated and seen.verdict is Verdict.CRASH and not any(again):
                    desk.num_threaded += int(trial.batch.messages.sum())
                    notes.append(
                        f"{desk.plan.cell}: {seen.text}; not again in {NUM_REPLAYS} processes with {REPLAY_ROUNDS} "
                        "rounds each, so it is laid to the emulator"
                    )
                    continue
                verdict, symptom = seen.verdict.name.lower(), seen.symptom.name.lower()
                desk.num_departed += 1
                desk.findings[THREADS,] = Finding(
                    case_id, verdict, symptom, "alone" if all(again) else "flaky", 1, seen.text
                )
        except HarnessFault as fault:
            desk.fail(fault)
            continue
        desk.num_threaded += int(trial.batch.messages.sum())
    return notes


def see_threads(station: Station, trial: TrialBatch, arch: str, times: int) -> list[str]:
    """What departs in each of so many trials, each in a fresh process with many rounds; empty where nothing does."""
    memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
    executor = Executor(station, memory)
    try:
        wire.encode_batch_into(trial.batch, memory.view)
        texts = []
        for _ in range(times):
            texts.append(_ask(executor, trial, arch, REPLAY_ROUNDS).text)
            executor.close()
        return texts
    finally:
        executor.release()
        memory.close()


@dataclass(frozen=True)
class _Seen:
    """What a trial showed; no text where nothing departed. ``case`` is the case's place in the trial."""

    case: int
    verdict: Verdict
    symptom: Symptom
    text: str


def _ask(executor: Executor, trial: TrialBatch, arch: str, num_rounds: int) -> _Seen:
    report = ""
    try:
        departed = executor.threads(trial.batch, num_rounds).departed
    except SubjectEnded as ended:
        departed, report = ended.ended, sanitizer_report(ended.said)
    if departed is None:
        return _Seen(0, Verdict.RAN, Symptom.NONE, "")
    departure = _departure(trial, departed, report)
    text = departure_text(trial.batch, departure, arch)
    if departure.verdict in (Verdict.CRASH, Verdict.HANG):
        if not departure.registers:
            return _Seen(departure.case, departure.verdict, departure.symptom, text)
        text += ", with another thread beside it"
    return _Seen(departure.case, departure.verdict, Symptom.NONDETERMINISM, text)


def _departure(trial: TrialBatch, departed: Ended, report: str) -> Departure:
    """A record of the shim as a departure; raises HarnessFault for one that no shim writes."""
    record, case = departed.record, departed.case
    try:
        verdict, symptom = Verdict(int(record["verdict"])), Symptom(int(record["symptom"]))
        buffer = Buffer(int(record["buffer"]))
        first, num_ops = (int(trial.batch.cases[name][case]) for name in ("first_op", "num_ops"))
        op = min(max(int(record["op"]) - first, 0), num_ops - 1)
    except (ValueError, IndexError) as error:
        raise HarnessFault(f"the shim answered garbage: {record} of case {case} of {len(trial.batch)}") from error
    offset, signal, registers, pc = (int(record[name]) for name in ("offset", "signal", "registers", "pc"))
    return Departure(case, verdict, symptom, op, buffer, offset, signal, registers, pc, b"", b"", report)


def see_getter(station: Station) -> str:
    """What the getter does in a fresh process; empty where it returns."""
    memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
    executor = Executor(station, memory)
    try:
        executor.open()
    except SubjectEnded as ended:
        return getter_text(ended)[1]
    finally:
        executor.release()
        memory.close()
    return ""
