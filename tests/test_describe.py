# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from crosslane.compare import Departure
from crosslane.describe import departure_text, session_lines
from crosslane.wire import CASE, OP, Batch, Buffer, Edge, Flag, OpKind, Symptom, Verdict

# (kind, data length, flags, edges and alignments) of two messages, the second under a new key and with a clone
ROWS = (
    (OpKind.SETKEY, 16, 0, Edge.END, 0, 0, 0),
    (OpKind.SETIV, 16, 0, Edge.MIDDLE, 9, Edge.START, 0),
    (OpKind.UPDATE, 40, 0, Edge.MIDDLE, 3, Edge.END, 0),
    (OpKind.UPDATE, 0, Flag.LAST | Flag.IN_PLACE, Edge.START, 0, 0, 0),
    (OpKind.FINAL, 0, 0, 0, 0, 0, 0),
    (OpKind.SETKEY, 16, 0, 0, 0, 0, 0),
    (OpKind.REINIT, 0, 0, 0, 0, 0, 0),
    (OpKind.SETIV, 16, 0, 0, 0, 0, 0),
    (OpKind.CLONE, 0, 0, 0, 0, 0, 0),
    (OpKind.UPDATE, 17, Flag.LAST, 0, 0, 0, 0),
)


@pytest.fixture(params=[0, 1])
def place(request: pytest.FixtureRequest) -> tuple[Batch, int]:
    """A batch of two sessions alike, and which of them is meant."""
    cases, ops = np.zeros(2, CASE), np.zeros(2 * len(ROWS), OP)
    cases["first_op"], cases["num_ops"], cases["decrypting"], cases["policy"] = (0, len(ROWS)), len(ROWS), (0, 1), 3
    blob = np.arange(256, dtype=np.uint8)
    for number, (kind, length, flags, in_edge, in_align, out_edge, out_align) in enumerate(ROWS * 2):
        op = ops[number]
        op["kind"], op["in_len"], op["flags"], op["in_off"] = kind, length, flags, number
        op["in_edge"], op["in_align"], op["out_edge"], op["out_align"] = in_edge, in_align, out_edge, out_align
        op["slot"], op["from_slot"] = (3, 2) if kind == OpKind.CLONE else (0, 0)
    return Batch(cases, ops, blob, 200, np.array([2, 2])), int(request.param)


def departure(case: int, **changes: Any) -> Departure:
    facts: dict[str, Any] = {
        "case": case, "verdict": Verdict.DISAGREE, "symptom": Symptom.OUTPUT, "op": 2, "buffer": Buffer.OUT,
        "offset": 5, "signal": 0, "registers": 0, "pc": 0, "expected": b"\x01\x02", "got": b"\xff",
    }  # fmt: skip
    return Departure(**{**facts, **changes})


CHANGED = (
    "update 1 of message 1 (40 bytes) answers otherwise the second time in one thread: byte 3 of the output differs"
)
CRASH: dict[str, Any] = {"verdict": Verdict.CRASH, "symptom": Symptom.NONE, "buffer": Buffer.NONE, "signal": 11}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "byte 5 of the output after update 1 of message 1 (40 bytes) differs: got ff, expected 0102"),
        (
            {"op": 3, "symptom": Symptom.IV, "buffer": Buffer.IV, "offset": 0},
            "byte 0 of the iv after update 2 of message 1 (0 bytes, in place) differs: got ff, expected 0102",
        ),
        ({"op": 9}, "byte 5 of the output after update 1 of message 2 (17 bytes) differs: got ff, expected 0102"),
        (
            {"op": 0, "verdict": Verdict.REJECT, "buffer": Buffer.NONE, "got": b"\x01", "expected": b"\x00"},
            "setkey before message 1 answers bad_key_len, expected ok",
        ),
        (
            {"op": 5, "buffer": Buffer.NONE, "got": b"\x00", "expected": b"\x02"},
            "setkey before message 2 answers ok, expected weak_key",
        ),
        (
            {"op": 7, "buffer": Buffer.NONE, "got": b"\xc8", "expected": b""},
            "setiv of message 2 answers status 200, expected nothing",
        ),
        (
            {"symptom": Symptom.GUARD_READ, "buffer": Buffer.IN, "offset": 40, "signal": 11},
            "update 1 of message 1 (40 bytes) reads where it may not, 40 bytes from the start of the input (SIGSEGV)",
        ),
        (
            {"symptom": Symptom.GUARD_WRITE, "buffer": Buffer.CTX, "offset": -1, "signal": 7, "op": 4},
            "final of message 1 writes where it may not, 1 bytes before the context (SIGBUS)",
        ),
        (
            {"symptom": Symptom.GUARD_WRITE, "buffer": Buffer.RESULTS, "offset": 64, "op": 6},
            "reinit before message 2 writes where it may not, 64 bytes from the start of the shim's results",
        ),
        (
            {"symptom": Symptom.GUARD_READ, "buffer": Buffer.NONE, "offset": 0x1000, "signal": 99},
            "update 1 of message 1 (40 bytes) reads where it may not, at address 0x1000 (signal 99)",
        ),
        (
            {"symptom": Symptom.CANARY, "offset": 41},
            "update 1 of message 1 (40 bytes) changes memory 41 bytes from the start of the output",
        ),
        (
            {"symptom": Symptom.INPUT, "buffer": Buffer.KEY, "op": 0},
            "setkey before message 1 changes byte 5 of the key, which is only read",
        ),
        (
            {"symptom": Symptom.CONTEXT, "buffer": Buffer.CTX2},
            "byte 5 of the second context changed outside an accepted setkey",
        ),
        ({"symptom": Symptom.ABI, "registers": 0b10000001}, "update 1 of message 1 (40 bytes) does not keep rbx, DF"),
        (CRASH, "update 1 of message 1 (40 bytes) crashes with SIGSEGV at address 0x5"),
        ({**CRASH, "signal": 0, "offset": 0}, "update 1 of message 1 (40 bytes) crashes by ending the process"),
        (
            {**CRASH, "verdict": Verdict.HANG},
            "update 1 of message 1 (40 bytes) does not come back (3 s of CPU time, and 1 s for each 128 KiB of data)",
        ),
        ({**CRASH, "verdict": Verdict.VOID, "op": 8}, "clone of message 2 could not be judged: the shim gave up on it"),
        ({"symptom": Symptom.PATH}, "update 1 of message 1 (40 bytes) departs: disagree, path"),
        (
            {"symptom": Symptom.WIPE, "buffer": Buffer.KEY, "registers": 1 << 34},
            "update 1 of message 1 (40 bytes) leaves bytes of the key behind, in rdx",
        ),
        (
            {"symptom": Symptom.WIPE, "buffer": Buffer.CTX, "offset": -640},
            "update 1 of message 1 (40 bytes) leaves bytes of the context behind, 640 bytes below the stack pointer",
        ),
        (
            {"symptom": Symptom.NONDETERMINISM, "buffer": Buffer.OUT, "offset": 3, "registers": 1},
            CHANGED,
        ),
    ],
)  # fmt: skip
def test_a_departure_is_one_sentence(place: tuple[Batch, int], changes: dict[str, Any], sentence: str) -> None:
    batch, case = place
    assert departure_text(batch, departure(case, **changes), "x86_64") == sentence


@pytest.mark.parametrize(
    ("arch", "registers", "names"),
    [
        ("x86_64", 0x7FF, "rbx, rbp, r12, r13, r14, r15, rsp, DF, MXCSR, x87 control word, x87 stack"),
        ("aarch64", 1 | 1 << 10 | 1 << 11 | 1 << 18 | 1 << 19 | 1 << 20, "x19, x29, d8, d15, sp, FPCR"),
    ],
)
def test_registers_are_named_as_the_protocol_page_numbers_them(
    place: tuple[Batch, int], arch: str, registers: int, names: str
) -> None:
    text = departure_text(place[0], departure(place[1], symptom=Symptom.ABI, registers=registers), arch)
    assert text.endswith(f"does not keep {names}")


@pytest.mark.parametrize("symptom", list(Symptom))
def test_every_record_that_a_shim_can_write_has_its_sentence(place: tuple[Batch, int], symptom: Symptom) -> None:
    for verdict, buffer in itertools.product([verdict for verdict in Verdict if verdict > Verdict.RAN], Buffer):
        about = departure(place[1], verdict=verdict, symptom=symptom, buffer=buffer, expected=b"", got=b"")
        text = departure_text(place[0], about, "aarch64")
        assert text
        assert "\n" not in text


def test_a_session_is_told_line_by_line(place: tuple[Batch, int]) -> None:
    batch, case = place
    lines = list(session_lines(batch, case))
    start = case * len(ROWS)
    assert lines[0] == f"session: {'decrypt' if case else 'encrypt'}, policy 3"
    assert lines[1] == f"  setkey, slot 0, 16 bytes {bytes(range(start, start + 16)).hex()}, in: ends at a guard page"
    assert lines[2].endswith("in: offset 9")
    assert lines[3] == (
        f"  update, slot 0, 40 bytes {bytes(range(start + 2, start + 34)).hex()}..., in: offset 3, "
        "out: ends at a guard page"
    )
    assert lines[4] == "  update, slot 0, 0 bytes, in: begins behind a guard page, in place"
    assert lines[5] == "  final, slot 0"
    assert lines[9] == "  clone, slot 3, from slot 2"
    assert len(lines) == 1 + len(ROWS)
