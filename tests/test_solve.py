# SPDX-License-Identifier: Apache-2.0
"""Solved ivs, held against the library cryptography, which computes GCM and XTS with nothing of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from crosslane import steer
from crosslane.errors import HarnessFault
from crosslane.generate import Drawn, draw_batch, select_cases
from crosslane.manifest import Manifest
from crosslane.seal import finished_batch
from crosslane.solve import solve_ivs
from crosslane.wire import CASE_RESULT, Batch, OpKind, Results, Verdict

MakeManifest = Callable[..., Manifest]

GCM: dict[str, Any] = {
    "algorithm": "gcm(aes)", "iv": "hashed", "iv_lens": (12, 1, 16, 64), "iv_out": "none", "aad": True,
    "tag_lens": (4, 12, 16), "sessions_per_batch": 256,
}  # fmt: skip
XTS: dict[str, Any] = {
    "algorithm": "xts(aes)", "split": "none", "partial": "stealing", "min_len_blocks": 1, "iv": "tweak",
    "iv_out": "none", "num_keys": 2, "sessions_per_batch": 256, "key_lens": (16, 32),
}  # fmt: skip


def ecb(key: bytes, block: bytes, *, decrypting: bool = False) -> bytes:
    cipher = Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305 - one block
    turn = cipher.decryptor() if decrypting else cipher.encryptor()
    return turn.update(block) + turn.finalize()


def aes_blocks(batch: Batch) -> Results:
    """An ECB batch's answer by the library."""
    out = b""
    for case in batch.cases:
        setkey, _, update, _ = batch.ops[int(case["first_op"]) :][:4]
        key, block = (batch.blob[int(op["in_off"]) :][: int(op["in_len"])].tobytes() for op in (setkey, update))
        out += ecb(key, block, decrypting=bool(case["decrypting"]))
    cases = np.zeros(len(batch), CASE_RESULT)
    cases["verdict"] = Verdict.RAN
    return Results(
        np.zeros(8, np.uint64), cases, np.zeros(len(batch.ops), np.uint8), np.frombuffer(out, np.uint8).copy()
    )


def given(batch: Batch, op: Any) -> bytes:
    record = batch.ops[op]
    return batch.blob[int(record["in_off"]) :][: int(record["in_len"])].tobytes()


def solved(manifest: Manifest, number: int = 1) -> Iterator[tuple[bytes, bytes, bytes, int]]:
    """Key, wanted block, iv, and length of the message in bytes, of each solved one."""
    drawn = draw_batch(manifest, number)
    wanted = [given(drawn.batch, op) for op in drawn.solved]
    solve_ivs(manifest, drawn, aes_blocks)
    for op, keyed, block in zip(drawn.solved, drawn.keyed, wanted, strict=True):
        yield given(drawn.batch, keyed), block, given(drawn.batch, op), int(drawn.batch.ops["aux1"][op])


def test_gcms_counter_wraps_where_it_is_steered_to(make_manifest: MakeManifest) -> None:
    """The keystream block under the counter 0 is where the point says, under the upper bits of J0, and is reached."""
    manifest = make_manifest(**GCM)
    seen = set()
    for key, j0, iv, length in solved(manifest):
        before = (1 << 32) - 1 - int.from_bytes(j0[12:], "big")
        stream = AESGCM(key).encrypt(iv, bytes(16 * (before + 2)), b"")
        assert stream[16 * before : 16 * before + 16] == ecb(key, j0[:12] + bytes(4))
        assert stream[16 * before + 16 : 16 * before + 32] == ecb(key, j0[:12] + bytes(3) + b"\1")
        assert length > 16 * before
        seen.add((before, j0[:12] == b"\xff" * 12))
    assert seen == {(j, ones) for j in range(manifest.ways + 2) for ones in (False, True)}


def test_half_of_the_counters_family_has_its_j0_steered_in_every_place_of_a_session(
    make_manifest: MakeManifest,
) -> None:
    drawn = draw_batch(make_manifest(**GCM), 0)
    begins = np.flatnonzero(drawn.batch.ops["kind"] == OpKind.SETIV)
    place = np.searchsorted(begins, drawn.solved)
    assert set((place % 8).tolist()) == set(range(8))
    assert len(drawn.solved) == 256 * 8 * 5 // 16 // 2


def tops(block: bytes) -> tuple[int, int]:
    """The block as a polynomial in both standards' bit orders, as numbers."""
    turned = bytes(int(f"{byte:08b}"[::-1], 2) for byte in block)
    return int.from_bytes(block, "little"), int.from_bytes(turned, "little")


def test_the_first_mask_of_xts_is_the_block_that_was_wanted(make_manifest: MakeManifest) -> None:
    for key, wanted, iv, length in solved(make_manifest(**XTS)):
        half = len(key) // 2
        if key[:half] != key[half:]:  # which the library refuses
            turn = Cipher(algorithms.AES(key), modes.XTS(iv)).encryptor()
            masked = ecb(key[:half], wanted)
            assert turn.update(bytes(16)) == bytes(a ^ b for a, b in zip(masked, wanted, strict=True))
        assert length >= 16


def test_every_top_bit_of_a_tweak_and_every_run_of_them_is_wanted_in_both_bit_orders(
    make_manifest: MakeManifest,
) -> None:
    manifest = make_manifest(**{**XTS, "sessions_per_batch": 1024, "ways": 16})
    wanted = {block for _, block, _, _ in solved(manifest)}
    assert b"\xff" * 16 in wanted
    for order in range(2):
        numbers = {tops(block)[order] for block in wanted}
        heads = {number >> 112 for number in numbers - {1 << bit for bit in range(128)}}
        assert {1 << bit for bit in range(112, 128)} <= numbers
        assert {1 << bit for bit in range(16)} <= heads  # random bits below a single one
        for length in range(1, 17):
            assert any(head >> (16 - length) == (1 << length) - 1 for head in heads)


def test_one_message_in_thirteen_of_xts_is_steered_and_comes_beyond_the_doubling_that_carries(
    make_manifest: MakeManifest,
) -> None:
    manifest = make_manifest(**{**XTS, "steering": ("splits", "counters")})
    drawn = draw_batch(manifest, 0)
    assert len(drawn.solved) == pytest.approx(256 * 8 / 13, abs=1)
    begins = np.flatnonzero(drawn.batch.ops["kind"] == OpKind.SETIV)
    assert set((np.searchsorted(begins, drawn.solved) % 8).tolist()) == set(range(8))
    for block, length in [(block, length) for _, block, _, length in solved(manifest, 0)]:
        number = max(tops(block), key=int.bit_length)
        if number.bit_count() == 1:
            assert length > (128 - number.bit_length() + 1) * 16


def test_some_ivs_of_xts_are_numbers_of_data_units_about_to_carry(make_manifest: MakeManifest) -> None:
    batch = draw_batch(make_manifest(**XTS), 0).batch
    ivs = {given(batch, op) for op in np.flatnonzero(batch.ops["kind"] == OpKind.SETIV)}
    for length in range(1, 9):
        head = b"\xff" * length
        assert any(iv[:length] == head and iv[length:] == bytes(16 - length) for iv in ivs)
        assert any(iv[:length] == head and iv[length:] not in (bytes(16 - length), b"") for iv in ivs)


def never(_: Batch) -> Results:
    raise AssertionError("asked")


def test_nothing_is_solved_where_the_iv_cannot_be_or_benchmarks_measure(make_manifest: MakeManifest) -> None:
    for changes in ({**GCM, "iv_lens": (12,)}, {**GCM, "fixed_len": 64}, {**XTS, "fixed_len": 64}, {}):
        manifest = make_manifest(**changes)
        drawn = draw_batch(manifest, 0)
        assert not len(drawn.solved)
        solve_ivs(manifest, drawn, never)


def test_refused_cases_are_not_solved(make_manifest: MakeManifest) -> None:
    for changes in (GCM, XTS):
        assert not len(draw_batch(make_manifest(**{**changes, "steering": ("refusals",)}), 0).solved)


def test_lengths_grow_only_within_a_domain(make_manifest: MakeManifest) -> None:
    manifest = make_manifest(**{**GCM, "max_len": 64})
    assert all(length <= 64 for _, _, _, length in solved(manifest))
    assert steer.beyond_the_wrap(manifest, np.array([3]), np.array([48])).tolist() == [48 + 48 + 16]


def test_a_finished_batch_has_the_solved_ivs(make_manifest: MakeManifest, make_results: Any) -> None:
    for changes in (GCM, XTS):
        manifest = make_manifest(**changes)
        wanted = [iv for _, _, iv, _ in solved(manifest)]
        batch = finished_batch(manifest, 1, make_results, aes_blocks)
        assert [given(batch, op) for op in draw_batch(manifest, 1).solved] == wanted


def test_a_refused_key_is_the_harness_own_fault(make_manifest: MakeManifest) -> None:
    def refusing(batch: Batch) -> Results:
        results = aes_blocks(batch)
        return replace(results, statuses=results.statuses + np.uint8(1))

    drawn: Drawn = draw_batch(make_manifest(**GCM), 0)
    with pytest.raises(HarnessFault, match="refused a key of a legal length"):
        solve_ivs(make_manifest(**GCM), drawn, refusing)


@pytest.mark.parametrize("facts", [GCM, XTS, {"algorithm": "ctr(aes)", "sessions_per_batch": 256}])
@pytest.mark.parametrize("count", [1, 37, 256, 1000])
def test_the_first_cases_of_a_batch_are_those_of_the_whole_one(
    make_manifest: MakeManifest, make_results: Any, facts: dict[str, Any], count: int
) -> None:
    manifest = make_manifest(**facts)
    asked: list[int] = []

    def encrypt(batch: Batch) -> Results:
        asked.append(len(batch))
        results: Results = make_results(batch)
        return results

    whole = finished_batch(manifest, 1, make_results, aes_blocks)
    fewer = finished_batch(manifest, 1, encrypt, aes_blocks, count)
    num_cases = min(count, 256)
    assert len(fewer) == num_cases
    assert asked == ([num_cases] if manifest.is_aead else [])
    one, other = (select_cases(batch, np.arange(num_cases)) for batch in (whole, fewer))
    assert [part.tobytes() for part in (one.cases, one.ops, one.blob, one.messages)] == [
        part.tobytes() for part in (other.cases, other.ops, other.blob, other.messages)
    ]
    assert fewer.out_len == one.out_len
    assert whole.marks is not None
    assert fewer.marks is not None
    assert fewer.marks.tolist() == whole.marks[: len(fewer.marks)].tolist()
    assert len(fewer.marks) == fewer.messages.sum()
