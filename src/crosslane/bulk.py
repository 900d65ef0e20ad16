# SPDX-License-Identifier: Apache-2.0
"""The trial ``bulk``: the self-test of libraries, many blocks in one call against the same blocks one at a time.

An implementation is held against itself: it needs neither the generic one nor any case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from crosslane.client import SharedMemory, SubjectEnded
from crosslane.describe import signal_name
from crosslane.desk import Desk
from crosslane.errors import BadInput, HarnessFault
from crosslane.execute import Executor, Station, sanitizer_report
from crosslane.manifest import Manifest
from crosslane.messages import BulkRequest, Compared, Difference
from crosslane.records import Finding
from crosslane.wire import Symptom, Verdict

__all__ = ["BULK", "bulk_requests", "read_bulk", "run_bulk", "see_bulk"]

BULK = "bulk"
_AAD_LEN = 20
_BULK_ID = re.compile(rf"{BULK}-([0-9a-f]{{16}})-(encrypt|decrypt)")
_COUNTERS = ("counter", "index")
_NO_BATCH_LEN = 4096
"""Bytes of the shared memory of a process that is asked for this trial alone."""
_SYMPTOMS = {
    Difference.STATUS: Symptom.NONE,
    Difference.OUTPUT: Symptom.OUTPUT,
    Difference.IV: Symptom.IV,
    Difference.TAG: Symptom.OUTPUT,
}


def bulk_requests(manifest: Manifest, direction: str) -> tuple[BulkRequest, ...]:
    """The requests to a shim: the longest key, then each other, whose bulk code is its own in some ciphers.

    All with the longest tag and the first length of iv that the mode names.
    """
    longest, *others = sorted(manifest.key_lens, reverse=True)
    return tuple(
        BulkRequest(
            seed=int(manifest.digest, 16),
            key_len=key_len * manifest.num_keys + manifest.key_extra_len,
            iv_len=manifest.iv_lens[0] if manifest.iv_lens else 0,
            aad_len=_AAD_LEN if manifest.aad else 0,
            tag_len=max(manifest.tag_lens, default=0),
            decrypting=direction == "decrypt",
            counts=manifest.iv in _COUNTERS,
            few=key_len != longest,
        )
        for key_len in (longest, *others)
    )


def read_bulk(text: str) -> tuple[str, str]:
    """The manifest's digest and the direction in a trial's id; raises BadInput."""
    match = _BULK_ID.fullmatch(text)
    if match is None:
        raise BadInput(
            f"{text!r} names no trial: give an id as `crosslane check` prints it, "
            f"such as {BULK}-0123456789abcdef-encrypt"
        )
    return match[1], match[2]


def run_bulk(manifest: Manifest, desks: Sequence[Desk]) -> None:
    """Run the trial in every cell that is alive, but for libraries, of which no single block can be asked."""
    for desk in desks:
        for direction in manifest.directions if not desk.plan.provider else ():
            if not desk.alive:
                break
            try:
                _judge(desk, f"{BULK}-{manifest.digest}-{direction}", bulk_requests(manifest, direction))
            except HarnessFault as fault:
                desk.fail(fault)


def _judge(desk: Desk, trial: str, requests: Sequence[BulkRequest]) -> None:
    """Until the first length of key with which something departs."""
    for request in requests:
        num_compared, verdict, symptom, text = _ask(desk.executor, request)
        desk.num_bulk += num_compared
        if text:
            again = see_bulk(desk.plan.station, [request])
            desk.num_departed += 1
            desk.findings[BULK, request.decrypting] = Finding(
                trial, verdict.name.lower(), symptom.name.lower(), "alone" if again else "flaky", 1, text
            )
            return


def see_bulk(station: Station, requests: Iterable[BulkRequest]) -> str:
    """What departs first in a fresh process; empty where nothing does."""
    memory = SharedMemory("crosslane-batch", _NO_BATCH_LEN, sealed=True)
    executor = Executor(station, memory)
    try:
        return next((text for *_, text in (_ask(executor, request) for request in requests) if text), "")
    finally:
        executor.release()
        memory.close()


def _ask(executor: Executor, request: BulkRequest) -> tuple[int, Verdict, Symptom, str]:
    """Messages compared, and how and with which words the trial departed."""
    doing = "decrypting" if request.decrypting else "encrypting"
    under = f"under a key of {request.key_len} bytes"
    try:
        seen = executor.bulk(request)
    except SubjectEnded as ended:
        record = ended.ended.record
        if record["verdict"] == Verdict.HANG:
            return 1, Verdict.HANG, Symptom.NONE, f"{doing} many blocks at once {under} does not come back"
        how = f"with {signal_name(int(record['signal']))}" if record["signal"] else "by ending the process"
        report = sanitizer_report(ended.said)
        text = " ".join((f"{doing} many blocks at once {under} crashes", *_parts(how, report)))
        return 1, Verdict.CRASH, Symptom.NONE, text
    if seen.what is Difference.NONE:
        return seen.num_compared, Verdict.RAN, Symptom.NONE, ""
    verdict = Verdict.REJECT if seen.what is Difference.STATUS else Verdict.DISAGREE
    return seen.num_compared, verdict, _SYMPTOMS[seen.what], " ".join(_sentence(doing, under, seen))


def _parts(how: str, report: str) -> Iterator[str]:
    yield how + (":" if report else "")
    if report:
        yield report


def _sentence(doing: str, under: str, seen: Compared) -> Iterator[str]:
    yield f"{doing} {seen.num_blocks} block{'s' if seen.num_blocks > 1 else ''} in one call {under}"
    if seen.wrap_bits:
        yield f"with a counter whose lower {seen.wrap_bits} bits wrap"
    if seen.what is Difference.STATUS:
        yield "is answered otherwise than one block at a time"
    else:
        place = {Difference.OUTPUT: "output", Difference.IV: "iv afterwards", Difference.TAG: "tag"}[seen.what]
        yield f"gives another {place} than one block at a time, from byte {seen.offset} on"
