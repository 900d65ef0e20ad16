# SPDX-License-Identifier: Apache-2.0
"""The Python references as judges of generic: samples are read rightly, wrong answers and wrong references are seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslane.data import data_root
from crosslane.directed import DirectedBuilder, Known
from crosslane.errors import BadInput, HarnessFault
from crosslane.model import Algorithm
from crosslane.oracles import Oracle
from crosslane.refcheck import Sample, judge_by_oracle, judge_samples, load_reference, take_samples
from crosslane.reference import Answer, Keyed, Message, blocks, xor
from crosslane.wire import CASE, CASE_RESULT, OP, Batch, OpKind, Results, Status, Verdict

BLOCK_LEN = 8


def toy(key: bytes, block: bytes, *, decrypting: bool) -> bytes:
    """A permutation of blocks under a key: xor and rotate."""
    if decrypting:
        return xor(block[1:] + block[:1], key)
    mixed = xor(block, key)
    return mixed[-1:] + mixed[:-1]


def execute(batch: Batch) -> Results:
    """What a shim would answer to the hub's ECB batches, with the toy cipher."""
    out = bytearray(batch.out_len)
    for case in batch.cases:
        first = int(case["first_op"])
        taken = {int(op["kind"]): op for op in batch.ops[first : first + int(case["num_ops"])]}
        key, update = taken[OpKind.SETKEY], taken[OpKind.UPDATE]
        values = [batch.blob[int(o["in_off"]) : int(o["in_off"]) + int(o["in_len"])].tobytes() for o in (key, update)]
        at = int(update["out_off"])
        out[at : at + BLOCK_LEN] = toy(*values, decrypting=bool(case["decrypting"]))
    ran = np.zeros(len(batch), CASE_RESULT)
    ran["verdict"] = Verdict.RAN
    statuses = np.zeros(len(batch.ops), np.uint8)
    return Results(np.zeros(8, np.uint64), ran, statuses, np.frombuffer(bytes(out), np.uint8))


def chained(key: bytes, iv: bytes, data: bytes) -> bytes:
    """CBC encryption with the toy cipher, written apart from the reference."""
    out = b""
    for start in range(0, len(data), BLOCK_LEN):
        iv = toy(key, xor(data[start : start + BLOCK_LEN], iv), decrypting=False)
        out += iv
    return out


KEY, IV = bytes(range(8)), bytes(range(40, 48))


def sample(length: int) -> Sample:
    data = bytes((7 * i + 3) % 256 for i in range(length))
    out = chained(KEY, IV, data)
    return Sample(0, 0, Message(False, KEY, IV, b"", data, 0), out, (IV + out)[-BLOCK_LEN:], b"", refused=False)


def test_right_answers_are_left_alone() -> None:
    run = load_reference(data_root() / "impls" / "modes" / "cbc")
    assert judge_samples(run, [sample(n) for n in (0, 8, 24, 64)], BLOCK_LEN, execute) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda s: replace(s, out=s.out[:9] + bytes([s.out[9] ^ 1]) + s.out[10:]), "byte 9 of the output"),
        (lambda s: replace(s, iv=bytes(BLOCK_LEN)), "the next iv is 0000000000000000"),
        (lambda s: replace(s, tag=b"\1"), "the tag is 01"),
    ],
)
def test_a_wrong_answer_is_seen(change: Callable[[Sample], Sample], sentence: str) -> None:
    run = load_reference(data_root() / "impls" / "modes" / "cbc")
    good, bad = sample(24), change(sample(24))
    [(found, text)] = judge_samples(run, [good, bad, good], BLOCK_LEN, execute)
    assert found is bad
    assert sentence in text


def test_a_wrong_reference_is_seen() -> None:
    def ecb_instead(keyed: Keyed, message: Message) -> Answer:
        cipher = keyed(message.key)
        return Answer(b"".join(cipher.encrypt(b) for b in blocks(message.data, BLOCK_LEN)), b"", b"")

    assert len(judge_samples(ecb_instead, [sample(24), sample(32)], BLOCK_LEN, execute)) == 2


def test_tags_are_judged_both_ways() -> None:
    def run(keyed: Keyed, message: Message) -> Answer:
        return Answer(message.data, b"", b"good")

    taken = Sample(0, 0, Message(True, KEY, IV, b"", b"data", 4), b"data", None, b"good", refused=False)
    assert judge_samples(run, [taken], BLOCK_LEN, execute) == []
    assert judge_samples(run, [replace(taken, out=b"", tag=b"evil", refused=True)], BLOCK_LEN, execute) == []
    for wrong in (replace(taken, tag=b"evil"), replace(taken, out=b"", refused=True)):
        [(_, text)] = judge_samples(run, [wrong], BLOCK_LEN, execute)
        assert "a tag" in text


def test_samples_are_what_the_session_said() -> None:
    builder = DirectedBuilder()
    for number in range(3):
        builder.add(
            Known(
                f"v{number}",
                decrypting=False,
                key=KEY,
                iv=IV,
                data=b"abcdefgh",
                answer=b"ABCDEFGH",
                aad=b"x",
                tag=b"tag!",
            )
        )
    directed = builder.build()
    samples = list(take_samples(1, directed.batch, directed.expected))  # case 1 of a hundred
    assert [(s.case, s.message.data, s.message.aad, s.out, s.tag) for s in samples] == [
        (1, b"abcdefgh", b"x", b"ABCDEFGH", b"tag!")
    ]
    refused = directed.expected.copy()
    refused.statuses[directed.batch.ops["kind"] == OpKind.UPDATE] = Status.BAD_DATA_LEN
    [seen] = take_samples(1, directed.batch, refused)
    assert seen.status is Status.BAD_DATA_LEN


@pytest.mark.parametrize(
    ("mode", "changes", "status"),
    [
        ("cbc", {"data": bytes(9)}, Status.BAD_DATA_LEN),
        ("cbc", {"iv": bytes(7)}, Status.BAD_IV_LEN),
        ("ecb", {}, Status.BAD_IV_LEN),
        ("ctr", {"iv": b""}, Status.BAD_IV_LEN),
        ("cts_cbc", {"data": bytes(7)}, Status.BAD_DATA_LEN),
        ("cts_cbc", {"data": b""}, Status.BAD_DATA_LEN),
        ("cmac", {"iv": b"", "tag_len": 4}, Status.BAD_TAG_LEN),
        ("cmac", {"tag_len": 8}, Status.BAD_IV_LEN),
        ("ccm", {"iv": bytes(6), "tag_len": 4}, Status.BAD_IV_LEN),
        ("ccm", {"iv": bytes(13), "tag_len": 5}, Status.BAD_TAG_LEN),
        ("ccm", {"iv": bytes(13), "tag_len": 4, "announced": (0, 65536)}, Status.BAD_DATA_LEN),
        ("ccm", {"iv": bytes(12), "tag_len": 4, "announced": (0, 17)}, Status.BAD_DATA_LEN),
        ("ccm", {"iv": bytes(12), "tag_len": 4, "announced": (1, 16)}, Status.BAD_AAD_LEN),
        ("ccm", {"iv": bytes(12), "tag_len": 4, "aad": b"a", "announced": (0, 16)}, Status.BAD_AAD_LEN),
        ("gcm", {"iv": b"", "tag_len": 4}, Status.BAD_IV_LEN),
        ("gcm", {"tag_len": 5}, Status.BAD_TAG_LEN),
    ],
)
def test_a_message_that_the_mode_does_not_take_is_refused_with_the_status_of_the_contract(
    mode: str, changes: dict[str, Any], status: Status
) -> None:
    message = replace(Message(False, KEY, IV, b"", bytes(16), 0), **changes)
    run = load_reference(data_root() / "impls" / "modes" / mode)
    right = Sample(0, 0, message, b"", None, b"", refused=False, status=status)
    assert judge_samples(run, [right], BLOCK_LEN, execute) == []
    for other in (Status.OK, Status.BAD_ORDER):
        [(_, text)] = judge_samples(run, [replace(right, status=other)], BLOCK_LEN, execute)
        assert f"generic answers {other.name.lower()}, the Python reference {status.name.lower()}" in text


def test_a_refusal_of_what_the_mode_takes_is_seen() -> None:
    run = load_reference(data_root() / "impls" / "modes" / "cbc")
    [(_, text)] = judge_samples(run, [replace(sample(8), status=Status.BAD_DATA_LEN)], BLOCK_LEN, execute)
    assert "generic answers bad_data_len, the Python reference ok" in text


def test_overlapping_output_has_to_be_refused() -> None:
    run = load_reference(data_root() / "impls" / "modes" / "cbc")
    refusing = replace(sample(8), overlaps=(int(Status.OVERLAP),))
    assert judge_samples(run, [refusing], BLOCK_LEN, execute) == []
    [(_, text)] = judge_samples(run, [replace(refusing, overlaps=(8, 0))], BLOCK_LEN, execute)
    assert "takes an update whose output overlaps its input" in text


def test_libraries_are_not_asked_about_refused_messages() -> None:
    def refusing(*_: object) -> Answer:
        raise AssertionError("asked")

    oracle = Oracle("stub", refusing)
    refused = replace(sample(8), status=Status.BAD_DATA_LEN)
    assert judge_by_oracle(oracle, Algorithm("cbc", "aes"), [refused]).judged == []


def test_interleaved_messages_are_read_by_their_contexts() -> None:
    """Two messages in turns on slots 0 and 2; a copy goes on with the first in slot 1."""
    pieces = [(0, b"first..."), (2, b"second.."), (1, b" goes on"), (2, b" as well")]
    rows: list[tuple[int, ...]] = []
    blob = KEY + IV
    out = b""

    def op(kind: OpKind, slot: int, data: tuple[int, int] = (0, 0), from_slot: int = 0) -> None:
        rows.append((kind, slot, 0, 2, 0, 2, 0, from_slot, *data, len(out), 0, 16 * (kind is OpKind.SETIV)))

    for slot in (0, 2):
        op(OpKind.SETKEY, slot, (0, 8))
    for slot in (2, 0):
        op(OpKind.SETIV, slot, (8, 8))
    for slot, piece in pieces:
        if slot == 1:
            op(OpKind.CLONE, 1, from_slot=0)
        op(OpKind.UPDATE, slot, (len(blob), 8))
        blob, out = blob + piece, out + piece.upper()
    for slot in (1, 2):
        op(OpKind.FINAL, slot)
    cases = np.zeros(1, CASE)
    cases["num_ops"] = len(rows)
    batch = Batch(cases, np.array(rows, OP), np.frombuffer(blob, np.uint8), len(out), np.array([2]))
    ran = np.zeros(1, CASE_RESULT)
    ran["verdict"] = Verdict.RAN
    results = Results(np.zeros(8, np.uint64), ran, np.zeros(len(rows), np.uint8), np.frombuffer(out, np.uint8))
    first, second = take_samples(0, batch, results)
    assert (first.message.data, first.out) == (b"first... goes on", b"FIRST... GOES ON")
    assert (second.message.data, second.out) == (b"second.. as well", b"SECOND.. AS WELL")
    assert first.message.key == second.message.key == KEY
    assert first.message.announced is second.message.announced is None


def test_a_refused_block_is_the_suites_own_fault() -> None:
    def refusing(batch: Batch) -> Results:
        results = execute(batch)
        results.statuses[:] = Status.BAD_KEY_LEN
        return results

    run = load_reference(data_root() / "impls" / "modes" / "cbc")
    with pytest.raises(HarnessFault, match="refused a key"):
        judge_samples(run, [sample(8)], BLOCK_LEN, refusing)


def test_a_reference_has_a_run(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text("x = 1\n")
    with pytest.raises(BadInput, match=r"run\(keyed, message\)"):
        load_reference(tmp_path)
