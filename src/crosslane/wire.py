# SPDX-License-Identifier: Apache-2.0
"""The records of ``docs/reference/protocol.md``: batches and result regions. Pure: no process, no file."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosslane.errors import HarnessFault

__all__ = [
    "BATCH_MAGIC",
    "CASE",
    "CASE_RESULT",
    "NUM_CLASSES",
    "NUM_SLOTS",
    "OP",
    "Batch",
    "Buffer",
    "Edge",
    "Flag",
    "Mark",
    "OpKind",
    "Results",
    "Status",
    "Symptom",
    "Verdict",
    "Watch",
    "batch_len",
    "class_name",
    "decode_batch",
    "displacement",
    "encode_batch_into",
    "view_results",
]

BATCH_MAGIC = b"XLBATCH1"
_BATCH_HEADER_LEN = 64
NUM_CLASSES = 16
NUM_SLOTS = 4


class OpKind(IntEnum):
    """Operations of a session."""

    SETKEY = 1
    SETIV = 2
    AAD = 3
    UPDATE = 4
    FINAL = 5
    TAG = 6
    REINIT = 7
    CLONE = 8


class Flag(IntFlag):
    """Flags of an operation."""

    IN_PLACE = 1
    LAST = 2
    OBSERVE_IV = 4
    FEED = 8
    OVERLAP = 16


class Mark(IntFlag):
    """What generation did with a message: its iv solved for, its context interleaved, one part of it tampered with."""

    SOLVED = 1
    INTERLEAVED = 2
    TAG = 4
    AAD = 8
    IV = 16
    DATA = 32
    AAD_LEN = 64
    DATA_LEN = 128
    TAG_LEN = 256


class Edge(IntEnum):
    """Where a buffer lies in its guarded room."""

    END = 0
    START = 1
    MIDDLE = 2


class Watch(IntFlag):
    """Watchers that a shim can switch on."""

    LAYOUT = 1
    CANARY = 2
    REGISTERS = 4
    CONTEXT = 8
    PATHS = 16
    WIPE = 32
    ALL = 63


class Verdict(IntEnum):
    """Outcome of a case, as the shim and the engine record it."""

    NOT_RUN = 0
    RAN = 1
    DISAGREE = 2
    REJECT = 3
    CRASH = 4
    HANG = 5
    VOID = 6


class Symptom(IntEnum):
    """Which watcher objected."""

    NONE = 0
    OUTPUT = 1
    IV = 2
    CANARY = 3
    GUARD_READ = 4
    GUARD_WRITE = 5
    ABI = 6
    INPUT = 7
    CONTEXT = 8
    WIPE = 9
    NONDETERMINISM = 10
    PATH = 11


class Buffer(IntEnum):
    """Buffers that a departure can name."""

    NONE = 0
    KEY = 1
    IV_IN = 2
    IN = 3
    OUT = 4
    IV = 5
    AAD = 6
    TAG = 7
    CTX = 8
    CTX2 = 9
    RESULTS = 10
    BATCH = 11


class Status(IntEnum):
    """What an operation answered; everything but OK is a refusal."""

    OK = 0
    BAD_KEY_LEN = 1
    WEAK_KEY = 2
    BAD_IV_LEN = 3
    BAD_TAG_LEN = 4
    BAD_DATA_LEN = 5
    BAD_AAD_LEN = 6
    BAD_ORDER = 7
    OVERLAP = 8
    BAD_TAG = 9
    UNSUPPORTED = 10


CASE = np.dtype(
    [
        ("first_op", "<u8"),
        ("num_ops", "<u4"),
        ("policy", "<u4"),
        ("decrypting", "u1"),
        ("ctx_edge", "u1"),
        ("zero0", "<u2"),
        ("tag_len", "<u4"),
        ("zero1", "<u8"),
    ]
)
OP = np.dtype(
    [
        ("kind", "u1"),
        ("slot", "u1"),
        ("flags", "u1"),
        ("in_edge", "u1"),
        ("in_align", "u1"),
        ("out_edge", "u1"),
        ("out_align", "u1"),
        ("from_slot", "u1"),
        ("in_off", "<u8"),
        ("in_len", "<u8"),
        ("out_off", "<u8"),
        ("aux0", "<u8"),
        ("aux1", "<u8"),
    ]
)
CASE_RESULT = np.dtype(
    [
        ("verdict", "u1"),
        ("symptom", "u1"),
        ("buffer", "u1"),
        ("signal", "u1"),
        ("op", "<u4"),
        ("offset", "<i8"),
        ("registers", "<u8"),
        ("pc", "<u8"),
    ]
)

_BATCH_HEADER = struct.Struct("<8sIIQQQQQQ")


@dataclass(frozen=True)
class Batch:
    """Cases of one algorithm: ``cases`` of dtype CASE, ``ops`` of dtype OP, ``blob`` of bytes; ``out_len`` in bytes.

    ``messages`` holds the number of messages of each case (what a comparison counts), ``marks`` what generation did
    with each message, in the order of their setiv operations (bits of ``Mark``); they are not on the wire.
    """

    cases: NDArray[Any]
    ops: NDArray[Any]
    blob: NDArray[np.uint8]
    out_len: int
    messages: NDArray[np.int64]
    marks: NDArray[np.uint16] | None = None

    def __len__(self) -> int:
        return len(self.cases)


@dataclass(frozen=True)
class Results:
    """Views of a result region: ``cases`` of dtype CASE_RESULT, ``statuses`` and ``out`` of bytes.

    ``report`` is what a sanitizer said of the only case.
    """

    header: NDArray[np.uint64]
    cases: NDArray[Any]
    statuses: NDArray[np.uint8]
    out: NDArray[np.uint8]
    report: str = ""

    def copy(self) -> Results:
        """Return the same results in memory of their own."""
        return Results(self.header.copy(), self.cases.copy(), self.statuses.copy(), self.out.copy(), self.report)


def class_name(length_class: int) -> str:
    """Name of a length class, in whole blocks; a plus says that a partial block is left."""
    names = ("0", "1", "2-3", "4-7", "8-15", "16-31", "32-63", "64..")
    return names[length_class // 2] + ("+" if length_class % 2 else "")


def _align64(value: int) -> int:
    return (value + 63) & ~63


def batch_len(batch: Batch) -> int:
    """Length of the encoded batch in bytes."""
    ops_off = _align64(_BATCH_HEADER_LEN + batch.cases.nbytes)
    return _align64(ops_off + batch.ops.nbytes) + batch.blob.nbytes


def encode_batch_into(batch: Batch, target: memoryview) -> int:
    """Write the batch into ``target`` and return its length; raises HarnessFault where it does not fit."""
    total = batch_len(batch)
    if total > len(target):
        raise HarnessFault(f"a batch of {total} bytes does not fit the {len(target)} bytes shared with the shims")
    cases_off = _BATCH_HEADER_LEN
    ops_off = _align64(cases_off + batch.cases.nbytes)
    blob_off = _align64(ops_off + batch.ops.nbytes)
    _BATCH_HEADER.pack_into(
        target, 0, BATCH_MAGIC, len(batch.cases), 0, len(batch.ops), cases_off, ops_off, blob_off,
        batch.blob.nbytes, batch.out_len,
    )  # fmt: skip
    for offset, array in ((cases_off, batch.cases), (ops_off, batch.ops), (blob_off, batch.blob)):
        np.frombuffer(target, np.uint8, array.nbytes, offset)[:] = array.reshape(-1).view(np.uint8)
    return total


def decode_batch(data: bytes | memoryview) -> Batch:
    """Read an encoded batch, strictly; the message counts are recomputed from the operations."""
    if len(data) < _BATCH_HEADER_LEN:
        raise HarnessFault(f"a batch has {len(data)} bytes, fewer than its header of {_BATCH_HEADER_LEN}")
    magic, num_cases, zero, num_ops, cases_off, ops_off, blob_off, blob_len, out_len = _BATCH_HEADER.unpack_from(data)
    if magic != BATCH_MAGIC or zero != 0:
        raise HarnessFault(f"a batch begins with {magic!r}, not with {BATCH_MAGIC!r} and zero")
    for name, off, length in (
        ("cases", cases_off, num_cases * CASE.itemsize),
        ("ops", ops_off, num_ops * OP.itemsize),
        ("blob", blob_off, blob_len),
    ):
        if off < _BATCH_HEADER_LEN or off + length > len(data):
            raise HarnessFault(
                f"section {name} of a batch is at {off} to {off + length}, but the batch has room for sections at "
                f"{_BATCH_HEADER_LEN} to {len(data)}"
            )
    cases = np.frombuffer(data, CASE, num_cases, cases_off)
    ops = np.frombuffer(data, OP, num_ops, ops_off)
    blob = np.frombuffer(data, np.uint8, blob_len, blob_off)
    _check_cases(cases, num_ops)
    _check_ops(ops, blob_len, out_len)
    return Batch(cases, ops, blob, out_len, count_messages(cases, ops))


def _beyond(starts: NDArray[np.uint64], lengths: NDArray[Any], limit: int) -> NDArray[np.bool_]:
    """Which of the ranges do not lie within 0 to ``limit``; no sum, which could wrap around."""
    room = np.uint64(limit) - np.minimum(starts, np.uint64(limit))
    beyond: NDArray[np.bool_] = (starts > np.uint64(limit)) | (lengths > room)
    return beyond


def _refuse(what: str, wrong: NDArray[np.bool_], why: str) -> None:
    if wrong.any():
        raise HarnessFault(f"{what} {int(np.flatnonzero(wrong)[0])} of a batch {why}")


def _check_cases(cases: NDArray[Any], num_ops: int) -> None:
    beyond = _beyond(cases["first_op"], cases["num_ops"].astype(np.uint64), num_ops)
    _refuse("case", beyond, f"has operations beyond the {num_ops} there are")
    _refuse("case", cases["decrypting"] > 1, "has a direction other than 0 and 1")
    _refuse("case", cases["ctx_edge"] > Edge.MIDDLE, "has a ctx_edge other than 0, 1 and 2")
    _refuse("case", cases["policy"] > 3, "has a policy bit other than 1 and 2")
    _refuse("case", (cases["zero0"] != 0) | (cases["zero1"] != 0), "has a field that is not zero as it must be")


def _check_ops(ops: NDArray[Any], blob_len: int, out_len: int) -> None:
    _refuse("operation", ~np.isin(ops["kind"], [int(kind) for kind in OpKind]), "is of a kind that does not exist")
    _refuse("operation", ops["flags"] > int(~Flag(0)), "has a flag that does not exist")
    _refuse("operation", (ops["slot"] >= NUM_SLOTS) | (ops["from_slot"] >= NUM_SLOTS), "names a slot beyond 0 to 3")
    for side in ("in", "out"):
        edges, aligns = ops[f"{side}_edge"], ops[f"{side}_align"]
        _refuse(
            "operation", (edges > int(Edge.MIDDLE)) | (aligns > 63), f"has an {side}_edge or {side}_align too large"
        )
    from_blob = np.where(ops["flags"] & Flag.FEED, 0, ops["in_len"])  # fed data are not in the blob
    _refuse("operation", _beyond(ops["in_off"], from_blob, blob_len), f"reads beyond the blob of {blob_len} bytes")
    _refuse("operation", ops["out_off"] > out_len, f"writes beyond the output section of {out_len} bytes")
    _check_overlaps(ops)


def displacement(value: int) -> int:
    """The aux1 of an overlapping update as a signed number: bytes from the start of its input to that of its output."""
    return value - (1 << 64) if value >> 63 else value


def _check_overlaps(ops: NDArray[Any]) -> None:
    """Input and output of an overlapping update share bytes, and do not begin at the same one."""
    at = (ops["flags"] & Flag.OVERLAP) != 0
    some = ops[at]
    shift, length = some["aux1"].astype(np.int64), some["in_len"]
    distance = np.where(shift < 0, 0 - some["aux1"], some["aux1"])
    wrong = np.zeros(len(ops), bool)
    wrong[at] = (
        (some["kind"] != OpKind.UPDATE)
        | ((some["flags"] & (Flag.IN_PLACE | Flag.FEED)) != 0)
        | (some["aux0"] > 1)
        | (distance == 0)
        | (distance >= length)
    )
    _refuse("operation", wrong, "overlaps as none can")


def count_messages(cases: NDArray[Any], ops: NDArray[Any]) -> NDArray[np.int64]:
    """Messages of each case: its setiv operations."""
    begun = np.concatenate([[0], np.cumsum(ops["kind"] == OpKind.SETIV)]).astype(np.int64)
    first = cases["first_op"].astype(np.int64)
    counts: NDArray[np.int64] = begun[first + cases["num_ops"]] - begun[first]
    return counts


def view_results(region: memoryview, num_cases: int, num_ops: int, out_len: int) -> Results:
    """Views of a result region; raises HarnessFault where it is too short."""
    statuses_off = _BATCH_HEADER_LEN + _align64(num_cases * CASE_RESULT.itemsize)
    out_off = statuses_off + _align64(num_ops)
    if len(region) < out_off + out_len:
        raise HarnessFault(f"a result region has {len(region)} bytes, but its batch needs {out_off + out_len}")
    return Results(
        np.frombuffer(region, "<u8", 8, 0),
        np.frombuffer(region, CASE_RESULT, num_cases, _BATCH_HEADER_LEN),
        np.frombuffer(region, np.uint8, num_ops, statuses_off),
        np.frombuffer(region, np.uint8, out_len, out_off),
    )
