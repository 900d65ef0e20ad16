# SPDX-License-Identifier: Apache-2.0
"""The trial ``large``: one long message in one update, in place, made in the shims and compared by a digest a MiB."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crosslane.client import SharedMemory, SubjectEnded
from crosslane.describe import signal_name
from crosslane.desk import Desk
from crosslane.errors import BadInput, HarnessFault
from crosslane.execute import Executor, Station, sanitizer_report
from crosslane.manifest import Manifest
from crosslane.messages import Digests, LargeRequest
from crosslane.plan import AlgorithmPlan
from crosslane.records import Finding
from crosslane.wire import Status, Symptom, Verdict

__all__ = ["LARGE", "LargeId", "read_large", "run_large", "see_large"]

LARGE = "large"
_AAD_LEN = 20
_LARGE_ID = re.compile(rf"{LARGE}-([0-9a-f]{{16}})-(encrypt|decrypt)-([0-9]{{1,12}})")
_NO_BATCH_LEN = 4096
"""Bytes of the shared memory of a process that is asked for this trial alone."""


@dataclass(frozen=True)
class LargeId:
    """Names one trial: ``large-<manifest digest>-<direction>-<bytes>``."""

    digest: str
    direction: str
    data_len: int

    def __str__(self) -> str:
        return f"{LARGE}-{self.digest}-{self.direction}-{self.data_len}"

    def request(self, manifest: Manifest) -> LargeRequest:
        """The request to a shim: the longest key and tag, the first length of iv that the mode names."""
        return LargeRequest(
            data_len=self.data_len,
            seed=int(self.digest, 16),
            key_len=max(manifest.key_lens) * manifest.num_keys + manifest.key_extra_len,
            iv_len=manifest.iv_lens[0] if manifest.iv_lens else 0,
            aad_len=_AAD_LEN if manifest.aad else 0,
            tag_len=max(manifest.tag_lens, default=0),
            decrypting=self.direction == "decrypt",
        )


def read_large(text: str) -> LargeId:
    """Read a trial's id; raises BadInput."""
    match = _LARGE_ID.fullmatch(text)
    if match is None:
        raise BadInput(
            f"{text!r} names no trial: give an id as `crosslane check` prints it, "
            f"such as {LARGE}-0123456789abcdef-encrypt-1048609"
        )
    return LargeId(match[1], match[2], int(match[3]))


def _ids(manifest: Manifest, data_len: int) -> Iterator[LargeId]:
    """The trials of an algorithm, none where it is not done in place.

    Authenticated decryption would need the tag of 4 GiB that nobody has encrypted.
    """
    if manifest.partial == "refused":
        data_len -= data_len % manifest.block_len
    if not manifest.in_place or (manifest.max_len and data_len > manifest.max_len):
        return
    for direction in manifest.directions:
        if direction == "encrypt" or not manifest.tag_lens:
            yield LargeId(manifest.digest, direction, data_len)


def run_large(plan: AlgorithmPlan, desks: Sequence[Desk], oracle: Executor) -> None:
    """Run the algorithm's trials in the cells whose plan has them."""
    asked = [desk for desk in desks if desk.alive and plan.large_len and desk.plan.large]
    for trial in _ids(plan.manifest, plan.large_len) if asked else ():
        request = trial.request(plan.manifest)
        try:
            expected = oracle.large(request)
        except SubjectEnded as ended:
            raise HarnessFault(f"the generic implementation does not survive {trial}: {ended}") from ended
        if expected.status != Status.OK:
            continue  # a length that the mode does not have
        for desk in asked:
            if not desk.alive:
                continue
            try:
                _judge(desk, trial, request, expected)
            except HarnessFault as fault:
                desk.fail(fault)


def _judge(desk: Desk, trial: LargeId, request: LargeRequest, expected: Digests) -> None:
    seen = _ask(desk.executor, request, expected)
    desk.num_large += 1
    if seen is None:
        return
    again = see_large(desk.plan.station, request, expected)
    desk.num_departed += 1
    desk.findings[LARGE, trial.direction] = Finding(
        str(trial), seen.verdict.name.lower(), seen.symptom.name.lower(), "alone" if again else "flaky", 1, seen.text
    )


def see_large(station: Station, request: LargeRequest, expected: Digests) -> str:
    """What departs in a fresh process; empty where nothing does."""
    memory = SharedMemory("crosslane-batch", _NO_BATCH_LEN, sealed=True)
    executor = Executor(station, memory)
    try:
        seen = _ask(executor, request, expected)
        return seen.text if seen else ""
    finally:
        executor.release()
        memory.close()


@dataclass(frozen=True)
class _Seen:
    """How a trial departed."""

    verdict: Verdict
    symptom: Symptom
    text: str


def _ask(executor: Executor, request: LargeRequest, expected: Digests) -> _Seen | None:
    doing = f"{'decrypting' if request.decrypting else 'encrypting'} {request.data_len:,} bytes in one update in place"
    try:
        got = executor.large(request)
    except SubjectEnded as ended:
        record = ended.ended.record
        if record["verdict"] == Verdict.HANG:
            return _Seen(Verdict.HANG, Symptom.NONE, f"{doing} does not come back")
        how = f"with {signal_name(int(record['signal']))}" if record["signal"] else "by ending the process"
        report = sanitizer_report(ended.said)
        return _Seen(Verdict.CRASH, Symptom.NONE, f"{doing} crashes {how}" + (f": {report}" if report else ""))
    return _compare(doing, got, expected)


def _compare(doing: str, got: Digests, expected: Digests) -> _Seen | None:
    if got.status != Status.OK:
        name = Status(got.status).name.lower() if got.status in set(Status) else f"status {got.status}"
        return _Seen(Verdict.REJECT, Symptom.OUTPUT, f"{doing} answers {name}, expected ok")
    if len(got.digests) != len(expected.digests):
        raise HarnessFault(f"the shim answered garbage: {len(got.digests)} digests, not {len(expected.digests)}")
    differs = [i for i, pair in enumerate(zip(got.digests, expected.digests, strict=True)) if pair[0] != pair[1]]
    if differs:
        text = f"{doing}: MiB {differs[0]} of the output differs, and {len(differs) - 1} behind it"
        return _Seen(Verdict.DISAGREE, Symptom.OUTPUT, text)
    if got.tag != expected.tag:
        return _Seen(Verdict.DISAGREE, Symptom.OUTPUT, f"{doing}: the tag differs")
    if got.iv and expected.iv and got.iv != expected.iv:
        return _Seen(Verdict.DISAGREE, Symptom.IV, f"{doing}: the iv afterwards differs")
    return None
