# SPDX-License-Identifier: Apache-2.0
"""The Python references as judges of generic: samples are read rightly, wrong answers and wrong references are seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosslane.data import data_root
from crosslane.directed import DirectedBuilder, Known
from crosslane.errors import BadInput, HarnessFault
from crosslane.refcheck import Sample, judge_samples, load_reference, take_samples
from crosslane.reference import Answer, Keyed, Message, blocks, xor
from crosslane.wire import CASE_RESULT, Batch, OpKind, Results, Status, Verdict

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
    assert list(take_samples(1, directed.batch, refused)) == []


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
