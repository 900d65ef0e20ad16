# SPDX-License-Identifier: Apache-2.0
"""Sealed batches: decrypting cases carry what encryption gave, one tag in eight is wrong, nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from crosslane.generate import draw_batch, generate_batch, output_lens
from crosslane.manifest import Manifest
from crosslane.seal import finished_batch
from crosslane.solve import solve_ivs
from crosslane.wire import Batch, Flag, OpKind, Results, batch_len, decode_batch, encode_batch_into

MakeManifest = Callable[..., Manifest]
MakeResults = Callable[[Batch], Results]

AEADS: dict[str, dict[str, Any]] = {
    "ccm": {"iv": "nonce", "iv_lens": tuple(range(7, 14)), "iv_out": "none", "aad": True, "tag_lens": (4, 6, 16)},
    "gcm": {"iv": "hashed", "iv_lens": (1, 12, 16, 64), "iv_out": "none", "aad": True, "tag_lens": (4, 12, 16)},
    "with_an_iv_to_see": {"aad": True, "tag_lens": (16,)},
    "decrypting_alone": {"iv_out": "none", "aad": True, "tag_lens": (1, 16), "directions": ("decrypt",)},
}


@dataclass(frozen=True)
class Sealed:
    """A batch as it was drawn, what the oracle made of it, and the batch as it was finished."""

    drawn: Batch
    asked: Batch
    answered: Results
    finished: Batch

    def ops(self, kind: OpKind, *, decrypting: int) -> list[int]:
        """The operations of a kind in the cases of one direction."""
        owner = np.repeat(self.drawn.cases["decrypting"], self.drawn.cases["num_ops"])
        taken = (self.drawn.ops["flags"] & Flag.OVERLAP) == 0
        return np.flatnonzero((owner == decrypting) & taken & (self.drawn.ops["kind"] == kind)).tolist()

    def encrypted(self, op: int) -> bytes:
        """What the oracle put out in an operation."""
        start = int(self.drawn.ops["out_off"][op])
        return self.answered.out[start : start + int(output_lens(self.drawn, np.array([op]))[0])].tobytes()

    def given(self, op: int) -> bytes:
        """What the finished batch gives to an operation."""
        start = int(self.finished.ops["in_off"][op])
        return self.finished.blob[start : start + int(self.finished.ops["in_len"][op])].tobytes()


@pytest.fixture
def seal(make_manifest: MakeManifest, make_results: MakeResults) -> Callable[..., Sealed]:
    def make(name: str, number: int = 1, **changes: Any) -> Sealed:
        manifest = make_manifest(**{"algorithm": f"{name}(toy)", "sessions_per_batch": 256, **AEADS[name], **changes})
        asked: list[tuple[Batch, Results]] = []

        def encrypt(batch: Batch) -> Results:
            asked.append((batch, make_results(batch)))
            return asked[0][1]

        finished = finished_batch(manifest, number, encrypt, make_results)
        [(batch, results)] = asked
        drawn = draw_batch(manifest, number)
        solve_ivs(manifest, drawn, make_results)
        return Sealed(drawn.batch, batch, results, finished)

    return make


@pytest.mark.parametrize("name", sorted(AEADS))
def test_the_oracle_encrypts_every_case(seal: Callable[..., Sealed], name: str) -> None:
    sealed = seal(name)
    assert not sealed.asked.cases["decrypting"].any()
    assert sealed.drawn.cases["decrypting"].any()
    assert sealed.asked.ops.tobytes() == sealed.drawn.ops.tobytes()
    assert sealed.asked.blob.tobytes() == sealed.drawn.blob.tobytes()


@pytest.mark.parametrize("name", sorted(AEADS))
def test_decrypting_cases_are_given_the_oracles_ciphertext(seal: Callable[..., Sealed], name: str) -> None:
    sealed = seal(name)
    updates = sealed.ops(OpKind.UPDATE, decrypting=1)
    assert len(updates) > 100
    for op in updates:
        length = int(sealed.drawn.ops["in_len"][op])
        assert sealed.given(op) == sealed.encrypted(op)[:length]
        assert len(sealed.given(op)) == length


@pytest.mark.parametrize("name", sorted(AEADS))
def test_decrypting_cases_are_given_the_oracles_tag_but_for_one_bit_of_one_in_eight(
    seal: Callable[..., Sealed], name: str
) -> None:
    sealed = seal(name)
    wrong, tampered = [], []
    tags = [op for op in sealed.ops(OpKind.TAG, decrypting=1) if sealed.encrypted(op)]
    for op in tags:
        given, right = sealed.given(op), sealed.encrypted(op)
        assert len(given) == len(right)
        changed = [(at, a ^ b) for at, (a, b) in enumerate(zip(given, right, strict=True)) if a != b]
        wrong.append(bool(changed))
        tampered += changed
        assert len(changed) <= 1
        assert all(bits.bit_count() == 1 for _, bits in changed)
    assert 0.09 < np.mean(wrong) < 0.16
    assert {bits for _, bits in tampered} == {1 << bit for bit in range(8)}
    assert len({at for at, _ in tampered}) > 8


@pytest.mark.parametrize("name", sorted(AEADS))
def test_everything_else_is_as_it_was_drawn(seal: Callable[..., Sealed], name: str) -> None:
    sealed = seal(name)
    drawn, finished = sealed.drawn, sealed.finished
    assert finished.cases.tobytes() == drawn.cases.tobytes()
    assert finished.blob[: len(drawn.blob)].tobytes() == drawn.blob.tobytes()
    assert finished.messages.tolist() == drawn.messages.tolist()
    moved = {*sealed.ops(OpKind.UPDATE, decrypting=1), *sealed.ops(OpKind.TAG, decrypting=1)}
    for field in drawn.ops.dtype.names or ():
        same = (finished.ops[field] == drawn.ops[field]) | (field == "out_off")
        if field in ("in_off", "in_len"):
            same |= np.isin(np.arange(len(same)), sorted(moved))
        assert same.all(), field


@pytest.mark.parametrize("name", sorted(AEADS))
def test_outputs_lie_one_behind_the_other_and_decrypting_tags_have_none(seal: Callable[..., Sealed], name: str) -> None:
    sealed = seal(name)
    every = np.arange(len(sealed.drawn.ops))
    wanted = output_lens(sealed.drawn, every)
    wanted[sealed.ops(OpKind.TAG, decrypting=1)] = 0
    assert output_lens(sealed.finished, every).tolist() == wanted.tolist()
    assert sealed.finished.out_len == wanted.sum()
    target = bytearray(batch_len(sealed.finished))
    encode_batch_into(sealed.finished, memoryview(target))
    assert decode_batch(bytes(target)).messages.tolist() == sealed.finished.messages.tolist()


def test_a_sealed_batch_is_the_same_each_time_and_other_batches_are_tampered_elsewhere(
    seal: Callable[..., Sealed],
) -> None:
    def wrong(sealed: Sealed) -> list[bool]:
        tags = sealed.ops(OpKind.TAG, decrypting=1)
        return [sealed.given(op) != sealed.encrypted(op) for op in tags]

    first, again, other = seal("gcm"), seal("gcm"), seal("gcm", 2)
    assert first.finished.blob.tobytes() == again.finished.blob.tobytes()
    assert wrong(first)[:200] != wrong(other)[:200]


def test_the_oracles_own_answer_is_not_written_to(seal: Callable[..., Sealed], make_results: MakeResults) -> None:
    sealed = seal("gcm")
    assert sealed.answered.out.tobytes() == make_results(sealed.asked).out.tobytes()


@pytest.mark.parametrize("changes", [{}, {"iv": "none", "iv_lens": (), "iv_out": "none", "tag_lens": (16,)}])
def test_other_modes_do_not_ask(make_manifest: MakeManifest, changes: dict[str, Any]) -> None:
    def encrypt(_: Batch) -> Results:
        raise AssertionError("asked")

    manifest = make_manifest(**changes)
    batch, drawn = finished_batch(manifest, 0, encrypt, encrypt), generate_batch(manifest, 0)
    assert (batch.ops.tobytes(), batch.blob.tobytes()) == (drawn.ops.tobytes(), drawn.blob.tobytes())
