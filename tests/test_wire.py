# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import asdict, replace
from enum import IntEnum, IntFlag
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosslane import messages, wire
from crosslane.errors import HarnessFault
from crosslane.messages import Kind, Reason, RunFlag
from crosslane.wire import CASE, CASE_RESULT, OP, Batch, Flag, OpKind, Watch

U64 = st.integers(0, 2**64 - 1)


def encoded(batch: Batch) -> bytes:
    target = bytearray(wire.batch_len(batch))
    assert wire.encode_batch_into(batch, memoryview(target)) == len(target)
    return bytes(target)


def refusal(call: Callable[[], object]) -> str:
    """What HarnessFault says, or nothing; any other exception is an error of the engine."""
    try:
        call()
    except HarnessFault as fault:
        return str(fault)
    return ""


# --- record by record, against docs/reference/protocol.md ---


def case_bytes(first_op: int, num_ops: int, *, decrypting: int = 0, tag_len: int = 0) -> bytes:
    """first_op u64, num_ops u32, policy u32, decrypting u8, ctx_edge u8, zero u16, tag_len u32, zero u64."""
    return struct.pack("<QIIBBHIQ", first_op, num_ops, 0, decrypting, 0, 0, tag_len, 0)


def op_bytes(
    kind: int, data: tuple[int, int] = (0, 0), *, out_off: int = 0, aux: tuple[int, int] = (0, 0), flags: int = 0
) -> bytes:
    """kind, slot, flags, in_edge, in_align, out_edge, out_align, from_slot u8; in_off, in_len, out_off, aux0, aux1."""
    return struct.pack("<8B5Q", kind, 0, flags, 0, 0, 0, 0, 0, data[0], data[1], out_off, *aux)


Row = tuple[Any, ...]
# A session is rows of (kind, data, output length, aux0, aux1, flags), and what the page says its records are.
# CCM: nonce of 7 bytes, so L = 8; both lengths are announced with setiv; the tag comes last and is checked.
CCM_DECRYPTION: tuple[Row, ...] = (
    (OpKind.SETKEY, b"K" * 16, 0, 0, 0, 0),
    (OpKind.SETIV, b"N" * 7, 0, 20, 23, 0),
    (OpKind.AAD, b"A" * 1, 0, 0, 0, 0),
    (OpKind.AAD, b"B" * 19, 0, 0, 0, 0),
    (OpKind.UPDATE, b"C" * 16, 16, 0, 0, 0),
    (OpKind.UPDATE, b"D" * 7, 7, 0, 0, Flag.LAST),
    (OpKind.FINAL, b"", 0, 0, 0, 0),
    (OpKind.TAG, b"T" * 8, 0, 0, 0, 0),
)
CCM_RECORDS = (
    op_bytes(1, (0, 16)),
    op_bytes(2, (16, 7), aux=(20, 23)),
    op_bytes(3, (23, 1)),
    op_bytes(3, (24, 19)),
    op_bytes(4, (43, 16)),
    op_bytes(4, (59, 7), out_off=16, flags=2),
    op_bytes(5),
    op_bytes(6, (66, 8), out_off=23),
)
# A MAC's updates have no output; the empty one stands between the others; no iv but an empty setiv begins the message.
CMAC_EMPTY_UPDATE: tuple[Row, ...] = (
    (OpKind.SETKEY, b"K" * 24, 0, 0, 0, 0),
    (OpKind.SETIV, b"", 0, 0, 17, 0),
    (OpKind.UPDATE, b"M" * 16, 0, 0, 0, 0),
    (OpKind.UPDATE, b"", 0, 0, 0, 0),
    (OpKind.UPDATE, b"m", 0, 0, 0, Flag.LAST),
    (OpKind.FINAL, b"", 0, 0, 0, 0),
    (OpKind.TAG, b"", 16, 0, 0, 0),
)
CMAC_RECORDS = (
    op_bytes(1, (0, 24)),
    op_bytes(2, (24, 0), aux=(0, 17)),
    op_bytes(4, (24, 16)),
    op_bytes(4, (40, 0)),
    op_bytes(4, (40, 1), flags=2),
    op_bytes(5),
    op_bytes(6),
)
# Two messages under two keys in one context; the iv (16 bytes) follows the output of each update that observes it.
CTR_REKEYED: tuple[Row, ...] = (
    (OpKind.SETKEY, b"K" * 16, 0, 0, 0, 0),
    (OpKind.SETIV, b"I" * 16, 0, 0, 33, 0),
    (OpKind.UPDATE, b"P" * 33, 33 + 16, 0, 0, Flag.LAST | Flag.OBSERVE_IV),
    (OpKind.FINAL, b"", 0, 0, 0, 0),
    (OpKind.SETKEY, b"L" * 16, 0, 0, 0, 0),
    (OpKind.SETIV, b"J" * 16, 0, 0, 5, 0),
    (OpKind.UPDATE, b"Q" * 5, 5 + 16, 0, 0, Flag.LAST | Flag.OBSERVE_IV | Flag.IN_PLACE),
    (OpKind.FINAL, b"", 0, 0, 0, 0),
)
CTR_RECORDS = (
    op_bytes(1, (0, 16)),
    op_bytes(2, (16, 16), aux=(0, 33)),
    op_bytes(4, (32, 33), flags=6),
    op_bytes(5),
    op_bytes(1, (65, 16)),
    op_bytes(2, (81, 16), aux=(0, 5)),
    op_bytes(4, (97, 5), out_off=49, flags=7),
    op_bytes(5),
)


def session_batch(rows: tuple[Row, ...], *, decrypting: bool, tag_len: int) -> Batch:
    cases, ops, blob, out_len = np.zeros(1, CASE), np.zeros(len(rows), OP), b"", 0
    cases[0]["num_ops"], cases[0]["decrypting"], cases[0]["tag_len"] = len(rows), decrypting, tag_len
    for op, (kind, data, produced, aux0, aux1, flags) in zip(ops, rows, strict=True):
        op["kind"], op["flags"], op["in_len"], op["aux0"], op["aux1"] = kind, flags, len(data), aux0, aux1
        op["in_off"] = len(blob) if data or kind in (OpKind.SETIV, OpKind.UPDATE) else 0
        op["out_off"] = out_len if kind in (OpKind.UPDATE, OpKind.TAG) else 0
        blob, out_len = blob + data, out_len + produced
    return Batch(cases, ops, np.frombuffer(blob, np.uint8), out_len, np.ones(1, np.int64))


@pytest.mark.parametrize(
    ("rows", "records", "case", "out_len", "num_messages"),
    [
        (CCM_DECRYPTION, CCM_RECORDS, case_bytes(0, 8, decrypting=1, tag_len=8), 23, 1),
        (CMAC_EMPTY_UPDATE, CMAC_RECORDS, case_bytes(0, 7, tag_len=16), 16, 1),
        (CTR_REKEYED, CTR_RECORDS, case_bytes(0, 8), 70, 2),
    ],
    ids=["ccm_decryption_with_split_aad", "cmac_with_an_empty_update", "ctr_with_a_second_key"],
)
def test_sessions_have_the_records_of_the_protocol_page(
    rows: tuple[Row, ...], records: tuple[bytes, ...], case: bytes, out_len: int, num_messages: int
) -> None:
    batch = session_batch(rows, decrypting=case[16] == 1, tag_len=int.from_bytes(case[20:24], "little"))
    data = encoded(batch)
    blob = b"".join(row[1] for row in rows)
    ops_len, ops_off, blob_off = 48 * len(rows), 128, (128 + 48 * len(rows) + 63) // 64 * 64
    header = struct.pack("<8sIIQQQQQQ", b"XLBATCH1", 1, 0, len(rows), 64, ops_off, blob_off, len(blob), out_len)
    assert data[:64] == header
    assert data[64:96] == case
    for number, record in enumerate(records):
        assert data[ops_off + 48 * number :][:48] == record, f"operation {number}"
    assert data[blob_off:] == blob
    assert not any(data[96:128] + data[ops_off + ops_len : blob_off])
    read = wire.decode_batch(data)
    assert read.messages.tolist() == [num_messages]
    assert encoded(read) == data


def test_lengths_are_64_bits_wide() -> None:
    record = np.zeros(1, OP)
    record["in_len"] = record["aux1"] = 2**63 + 1
    assert record.tobytes() == op_bytes(0, (0, 2**63 + 1), aux=(0, 2**63 + 1))


def test_every_code_is_that_of_the_protocol_page() -> None:
    names: dict[type[IntEnum | IntFlag], str] = {
        OpKind: "setkey=1 setiv=2 aad=3 update=4 final=5 tag=6 reinit=7 clone=8",
        Kind: "open=1 run=2 bare=3 threads=4 large=5 bulk=6 hello=129 opened=130 done=131 timed=132 ended=133 "
        "threaded=134 digests=135 compared=136 error=255",
        Flag: "in_place=1 last=2 observe_iv=4 feed=8 overlap=16",
        wire.Edge: "end=0 start=1 middle=2",
        Watch: "layout=1 canary=2 registers=4 context=8 paths=16 wipe=32",
        RunFlag: "strict=1 inline=2 anew=4",
        Reason: "done=0 departure=1",
        wire.Verdict: "not_run=0 ran=1 disagree=2 reject=3 crash=4 hang=5 void=6",
        wire.Symptom: "none=0 output=1 iv=2 canary=3 guard_read=4 guard_write=5 abi=6 input=7 context=8 wipe=9 "
        "nondeterminism=10 path=11",
        wire.Buffer: "none=0 key=1 iv_in=2 in=3 out=4 iv=5 aad=6 tag=7 ctx=8 ctx2=9 results=10 batch=11",
        wire.Status: "ok=0 bad_key_len=1 weak_key=2 bad_iv_len=3 bad_tag_len=4 bad_data_len=5 bad_aad_len=6 "
        "bad_order=7 overlap=8 bad_tag=9 unsupported=10",
    }
    for codes, text in names.items():
        found = [f"{code.name.lower()}={int(code)}" for code in codes if code.name and code is not Watch.ALL]
        assert " ".join(found) == text
    assert sum(int(watch) for watch in Watch if watch is not Watch.ALL) == int(Watch.ALL)


def test_length_classes_are_named_after_their_blocks() -> None:
    assert [wire.class_name(number) for number in (0, 1, 4, 5, 15)] == ["0", "0+", "2-3", "2-3+", "64..+"]
    assert len({wire.class_name(number) for number in range(wire.NUM_CLASSES)}) == 16


# --- batches ---


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    counts = draw(st.lists(st.integers(0, 4), max_size=6))
    blob = draw(st.binary(max_size=200))
    out_len = draw(st.integers(0, 500))
    cases, ops = np.zeros(len(counts), CASE), np.zeros(sum(counts), OP)
    cases["first_op"], cases["num_ops"] = np.cumsum([0, *counts])[:-1], counts
    for case in cases:
        case["policy"], case["decrypting"] = draw(st.integers(0, 3)), draw(st.integers(0, 1))
        case["ctx_edge"], case["tag_len"] = draw(st.sampled_from([0, 1, 2])), draw(st.integers(0, 64))
    for op in ops:
        op["kind"], op["flags"] = draw(st.sampled_from(OpKind)), draw(st.integers(0, 15))
        op["slot"], op["from_slot"] = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        for side in ("in", "out"):
            op[f"{side}_edge"], op[f"{side}_align"] = draw(st.integers(0, 2)), draw(st.integers(0, 63))
        op["in_off"] = draw(st.integers(0, len(blob)))
        op["in_len"] = draw(st.integers(0, len(blob) - int(op["in_off"])))
        op["out_off"], op["aux0"], op["aux1"] = draw(st.integers(0, out_len)), draw(U64), draw(U64)
    begun = [sum(op["kind"] == OpKind.SETIV for op in ops[c["first_op"] :][: c["num_ops"]]) for c in cases]
    return Batch(cases, ops, np.frombuffer(blob, np.uint8), out_len, np.array(begun, np.int64))


@given(batch=batches())
def test_batches_come_back(batch: Batch) -> None:
    read = wire.decode_batch(encoded(batch))
    assert read.cases.tobytes() == batch.cases.tobytes()
    assert read.ops.tobytes() == batch.ops.tobytes()
    assert read.blob.tobytes() == batch.blob.tobytes()
    assert read.out_len == batch.out_len
    assert read.messages.tolist() == batch.messages.tolist()


@given(batch=batches(), data=st.data())
def test_a_truncated_batch_is_refused(batch: Batch, data: st.DataObject) -> None:
    whole = encoded(batch)
    sections = 64 + len(batch) * 32, 64 * (1 + (len(batch) * 32 + 63) // 64) + len(batch.ops) * 48
    needed = len(whole) if len(batch.blob) else max(*sections, int.from_bytes(whole[40:48], "little"))
    cut = whole[: data.draw(st.integers(0, needed - 1))]
    with pytest.raises(HarnessFault):
        wire.decode_batch(cut)


@given(garbage=st.binary(max_size=300))
def test_garbage_is_refused_as_a_batch(garbage: bytes) -> None:
    with pytest.raises(HarnessFault, match=r"header of 64|begins with"):
        wire.decode_batch(garbage)


@given(batch=batches(), data=st.data())
def test_a_changed_batch_is_refused_or_read_but_nothing_else(batch: Batch, data: st.DataObject) -> None:
    whole = bytearray(encoded(batch))
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    assert len(refusal(lambda: wire.decode_batch(bytes(whole))).splitlines()) <= 1


HEADER_FIELDS = {"cases": 8, "zero": 12, "ops": 16, "cases_off": 24, "ops_off": 32, "blob_off": 40, "blob_len": 48}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("zero", 1, "and zero"),
        ("cases", 2**32 - 1, "section cases"),
        ("ops", 2**60, "section ops"),
        ("ops", 7, "operations beyond the 7"),
        ("cases_off", 0, "section cases of a batch is at 0"),
        ("cases_off", 2**64 - 64, "section cases"),
        ("ops_off", 2**63, "section ops"),
        ("blob_off", 2**64 - 1, "section blob"),
        ("blob_len", 2**64 - 1, "section blob"),
        ("blob_len", 73, "operation 7 of a batch reads beyond the blob of 73 bytes"),
    ],
)
def test_wrong_counts_and_places_are_refused(field: str, value: int, message: str) -> None:
    data = bytearray(encoded(session_batch(CCM_DECRYPTION, decrypting=True, tag_len=8)))
    struct.pack_into("<I" if field in ("zero", "cases") else "<Q", data, HEADER_FIELDS[field], value)
    with pytest.raises(HarnessFault, match=message):
        wire.decode_batch(bytes(data))


@pytest.mark.parametrize(
    ("record", "field", "value", "message"),
    [
        ("cases", "first_op", 1, "case 0 of a batch has operations beyond the 8"),
        ("cases", "first_op", 2**64 - 1, "case 0 of a batch has operations beyond"),
        ("cases", "num_ops", 9, "case 0 of a batch has operations beyond"),
        ("cases", "policy", 4, "policy"),
        ("cases", "decrypting", 2, "direction"),
        ("cases", "ctx_edge", 3, "ctx_edge"),
        ("cases", "zero0", 1, "not zero"),
        ("cases", "zero1", 1, "not zero"),
        ("ops", "kind", 0, "operation 2 of a batch is of a kind"),
        ("ops", "kind", 9, "operation 2 of a batch is of a kind"),
        ("ops", "flags", 32, "flag"),
        ("ops", "flags", 16, "operation 2 of a batch overlaps as none can"),
        ("ops", "slot", 4, "slot"),
        ("ops", "from_slot", 4, "slot"),
        ("ops", "in_edge", 3, "in_edge"),
        ("ops", "out_edge", 3, "out_edge"),
        ("ops", "in_align", 64, "in_align"),
        ("ops", "out_align", 64, "out_align"),
        ("ops", "in_off", 75, "reads beyond the blob of 74"),
        ("ops", "in_off", 2**64 - 1, "reads beyond"),
        ("ops", "in_len", 2**64 - 1, "reads beyond"),
        ("ops", "out_off", 24, "writes beyond the output section of 23"),
    ],
)
def test_records_that_the_protocol_does_not_know_are_refused(record: str, field: str, value: int, message: str) -> None:
    batch = session_batch(CCM_DECRYPTION, decrypting=True, tag_len=8)
    getattr(batch, record)[2 if record == "ops" else 0][field] = value
    with pytest.raises(HarnessFault, match=message):
        wire.decode_batch(encoded(batch))


def test_a_batch_that_does_not_fit_its_memory_is_refused_before_it_is_written() -> None:
    batch = session_batch(CTR_REKEYED, decrypting=False, tag_len=0)
    target = bytearray(wire.batch_len(batch) - 1)
    with pytest.raises(HarnessFault, match="does not fit"):
        wire.encode_batch_into(batch, memoryview(target))
    assert not any(target)


# --- results ---


@given(num_cases=st.integers(0, 20), num_ops=st.integers(0, 200), out_len=st.integers(0, 300))
def test_views_of_results_lie_where_the_protocol_page_says(num_cases: int, num_ops: int, out_len: int) -> None:
    statuses_off = 64 + (num_cases * 32 + 63) // 64 * 64
    out_off = statuses_off + (num_ops + 63) // 64 * 64
    region = bytearray(np.random.default_rng(1).bytes(out_off + out_len))
    results = wire.view_results(memoryview(region), num_cases, num_ops, out_len)
    assert results.header.astype("<u8").tobytes() == region[:64]
    assert results.cases.tobytes() == region[64 : 64 + num_cases * 32]
    assert results.statuses.tobytes() == region[statuses_off : statuses_off + num_ops]
    assert results.out.tobytes() == region[out_off:]
    kept = results.copy()
    region[:] = bytes(len(region))
    assert not results.header.any()
    assert kept.header.any()
    with pytest.raises(HarnessFault, match="result region"):
        wire.view_results(memoryview(region)[:-1], num_cases, num_ops, out_len + (not out_len) * 64)


def test_a_case_result_has_the_fields_of_the_protocol_page() -> None:
    packed = struct.pack("<BBBBIqQQ", 4, 5, 4, 11, 77, -3, 0x40, 0x401000)
    record = np.frombuffer(packed, CASE_RESULT)[0]
    assert record.tolist() == (4, 5, 4, 11, 77, -3, 0x40, 0x401000)
    assert CASE_RESULT.names == ("verdict", "symptom", "buffer", "signal", "op", "offset", "registers", "pc")


# --- messages ---


@given(kind=st.sampled_from(Kind), payload=st.binary(max_size=50))
def test_messages_come_back(kind: Kind, payload: bytes) -> None:
    message = messages.encode_message(kind, payload)
    assert message[:8] == b"XLNE" + struct.pack("<HH", 1, kind)
    assert messages.decode_header(message[:16]) == (kind, len(payload))
    assert message[16:] == payload


@given(data=st.binary(max_size=40).filter(lambda data: data[:4] != b"XLNE"))
def test_garbage_is_refused_as_a_header(data: bytes) -> None:
    with pytest.raises(HarnessFault, match="answered garbage"):
        messages.decode_header(data)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (struct.pack("<4sHHQ", b"XLNE", 2, 0x81, 0), "version 2, this engine 1: run `crosslane build`"),
        (struct.pack("<4sHHQ", b"XLNE", 0, 0x81, 0), "version 0"),
        (struct.pack("<4sHHQ", b"XLNE", 1, 0x07, 0), "kind 0x7"),
        (struct.pack("<4sHHQ", b"XLNE", 1, 0x81, 2**32 + 1), "of 4294967297 bytes"),
        (b"XLNE", "header has 4 bytes"),
        (b"", "header has 0 bytes"),
    ],
)
def test_headers_that_are_not_of_this_protocol_are_refused(header: bytes, message: str) -> None:
    with pytest.raises(HarnessFault, match=message):
        messages.decode_header(header)


@given(hide=U64, capacities=st.tuples(U64, U64), fds=st.tuples(st.integers(-1, 2**31 - 1), st.integers(-1, 2**31 - 1)))
def test_open_has_the_fields_of_the_protocol_page(hide: int, capacities: tuple[int, int], fds: tuple[int, int]) -> None:
    message = messages.encode_open(
        "ctr", "sm4_generic", cipher="sm4", hide=hide, watch=Watch.ALL, batch_capacity=capacities[0],
        result_capacity=capacities[1], fds=fds,
    )  # fmt: skip
    payload = b"ctr".ljust(32, b"\0") + b"sm4_generic".ljust(64, b"\0") + b"sm4".ljust(32, b"\0")
    payload += struct.pack("<QQQQii", hide, 63, *capacities, *fds)
    assert message == messages.encode_message(Kind.OPEN, payload)


def test_a_name_too_long_for_the_protocol_is_refused() -> None:
    arguments: dict[str, Any] = {
        "cipher": "c",
        "hide": 0,
        "watch": Watch(0),
        "batch_capacity": 1,
        "result_capacity": 1,
        "fds": (-1, -1),
    }
    messages.encode_open("m" * 32, "s" * 64, **arguments)
    for mode, symbol in (("m" * 33, "s"), ("m", "s" * 65)):
        with pytest.raises(HarnessFault, match="is longer than the"):
            messages.encode_open(mode, symbol, **arguments)


@given(first=U64, count=U64, batch=st.binary(max_size=40))
def test_run_and_bare_have_the_fields_of_the_protocol_page(first: int, count: int, batch: bytes) -> None:
    run = messages.encode_run(first, count, RunFlag.INLINE | RunFlag.STRICT, memoryview(batch))
    assert run == messages.encode_message(Kind.RUN, struct.pack("<QQQ", first, count, 3) + batch)
    assert messages.encode_bare(first, count, 8) == messages.encode_message(
        Kind.BARE, struct.pack("<QQQQ", first, count, 8, 0)
    )


@given(
    next_case=U64, reason=st.sampled_from(Reason), cpu_ns=U64, calls=U64, results=st.binary(max_size=40),
    taken=st.lists(U64, min_size=16, max_size=16),
)  # fmt: skip
def test_done_is_read(
    next_case: int, reason: Reason, cpu_ns: int, calls: int, results: bytes, taken: list[int]
) -> None:
    for flags in (1, 0):
        fixed = struct.pack("<QIIQQ16Q", next_case, reason, flags, cpu_ns, calls, *taken)
        assert messages.decode_done(fixed + results) == messages.Done(
            next_case, reason, cpu_ns, calls, tuple(taken), results, printed=flags == 1
        )
    with pytest.raises(HarnessFault, match="DONE has"):
        messages.decode_done(fixed[:-1])
    for at, value in ((8, 2), (12, 2)):
        broken = bytearray(fixed)
        struct.pack_into("<I", broken, at, value)
        with pytest.raises(HarnessFault, match="DONE gives reason"):
            messages.decode_done(bytes(broken))


def test_opened_is_read() -> None:
    fixed = struct.pack("<IIIIQ", 0, 16, 8, 2, 0)
    names = b"8way".ljust(32, b"\0") + b"tail".ljust(32, b"\0")
    assert messages.decode_opened(fixed + names) == messages.Opened(False, 16, 8, ("8way", "tail"))
    assert messages.decode_opened(struct.pack("<IIIIQ", 1, 0, 0, 0, 0)).declined
    blind = messages.decode_opened(struct.pack("<IIIIQ", 0, 8, 1, 0, 28)).blind
    assert blind == Watch.REGISTERS | Watch.CONTEXT | Watch.PATHS
    for broken in (
        fixed, fixed + names[:-1], fixed + names + b"\0", fixed[:23], b"",
        struct.pack("<IIIIQ", 2, 16, 8, 0, 0), struct.pack("<IIIIQ", 0, 16, 8, 2**32 - 1, 0) + names,
        struct.pack("<IIIIQ", 0, 16, 8, 0, 64),
    ):  # fmt: skip
        with pytest.raises(HarnessFault, match="OPENED has"):
            messages.decode_opened(broken)


def test_timed_is_read() -> None:
    assert messages.decode_timed(struct.pack("<QQ", 5, 2**64 - 1)) == (5, 2**64 - 1)
    for broken in (b"", bytes(15), bytes(17)):
        with pytest.raises(HarnessFault, match="TIMED has"):
            messages.decode_timed(broken)


HELLO = messages.Hello(
    protocol=1, arch="x86_64", byte_order="little", word_bits=64, page_len=4096, transports=("mapped", "inline"),
    max_message_len=1 << 21, num_slots=4, features=frozenset({"aes", "avx"}), watchers=frozenset({"canary"}),
    implementations=("sm4_generic",), libraries=("libtoy 1.2",), loaded=("/lib/libtoy.so.1",), modes=("ecb", "ctr"),
)  # fmt: skip


def hello_json(**changes: Any) -> bytes:
    return json.dumps({**asdict(HELLO), **changes}, default=sorted).encode()


def test_hello_is_read() -> None:
    assert messages.decode_hello(hello_json()) == HELLO
    assert messages.decode_hello(hello_json(byte_order="big", page_len=65536)) == replace(
        HELLO, byte_order="big", page_len=65536
    )


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "other fields"),
        (b"{}", "other fields"),
        (hello_json(more=1), "other fields"),
        (hello_json(protocol=2), "version 2, this engine 1"),
        (hello_json(protocol="1"), "protocol = '1'"),
        (hello_json(protocol=True), "protocol = True"),
        (hello_json(word_bits=64.0), r"word_bits = 64\.0"),
        (hello_json(modes="ecb"), "modes = 'ecb'"),
        (hello_json(features=["aes", 1]), "features = "),
        (hello_json(arch=None), "arch = None"),
    ],
)
def test_a_hello_of_another_kind_is_refused(payload: bytes, message: str) -> None:
    with pytest.raises(HarnessFault, match=message):
        messages.decode_hello(payload)


def json_values() -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    )


@given(field=st.sampled_from(sorted(asdict(HELLO))), value=json_values())
def test_any_other_value_in_a_hello_is_read_or_refused(field: str, value: Any) -> None:
    payload = hello_json(**{field: value})
    why = refusal(lambda: messages.decode_hello(payload))
    assert len(why.splitlines()) <= 1
    if not why:
        assert type(getattr(messages.decode_hello(payload), field)) is type(getattr(HELLO, field))


def test_bulk_and_its_answer_are_laid_out_as_the_protocol_says() -> None:
    request = messages.BulkRequest(
        seed=2**64 - 1, key_len=32, iv_len=16, aad_len=20, tag_len=12, decrypting=True, counts=True, few=False
    )
    for few, flags in ((False, 1), (True, 3)):
        payload = struct.pack("<Q6I", 2**64 - 1, 32, 16, 20, 12, 1, flags)
        assert messages.encode_bulk(replace(request, few=few)) == messages.encode_message(Kind.BULK, payload)
    answer = struct.pack("<QQQ4I", 9, 264, 17, 3, 33, 64, 0)
    seen = messages.Compared(num_compared=264, offset=17, what=messages.Difference.IV, num_blocks=33, wrap_bits=64)
    assert messages.decode_compared(answer) == seen


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (bytes(39), "COMPARED has 39 bytes, not 40"),
        (struct.pack("<QQQ4I", 0, 0, 0, 5, 0, 0, 0), "COMPARED says 5 differed and 0 as zero"),
        (struct.pack("<QQQ4I", 0, 0, 0, 0, 0, 0, 1), "COMPARED says 0 differed and 1 as zero"),
    ],
)
def test_an_answer_to_bulk_that_is_none_is_refused(answer: bytes, message: str) -> None:
    with pytest.raises(HarnessFault, match=message):
        messages.decode_compared(answer)
