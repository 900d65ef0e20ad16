# SPDX-License-Identifier: Apache-2.0
"""Sealed batches: decrypting cases carry what encryption gave; what is tampered with aside, nothing else changes."""

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
from crosslane.wire import Batch, Flag, Mark, OpKind, Results, batch_len, decode_batch, encode_batch_into

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
    owner: Any

    def ops(self, kind: OpKind, *, decrypting: int) -> list[int]:
        """The operations of a kind in the cases of one direction, of messages that nobody tampered with."""
        owner = np.repeat(self.drawn.cases["decrypting"], self.drawn.cases["num_ops"])
        marks = self.finished.marks
        assert marks is not None
        kept = (marks & ~np.uint16(Mark.SOLVED | Mark.INTERLEAVED)) == 0
        taken = ((self.drawn.ops["flags"] & Flag.OVERLAP) == 0) & kept[self.owner]
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
        return Sealed(drawn.batch, batch, results, finished, drawn.owner)

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
def test_decrypting_cases_are_given_the_oracles_tag(seal: Callable[..., Sealed], name: str) -> None:
    sealed = seal(name)
    tags = sealed.ops(OpKind.TAG, decrypting=1)
    assert len(tags) > 500
    for op in tags:
        assert sealed.given(op) == sealed.encrypted(op)


@pytest.mark.parametrize("name", sorted(AEADS))
def test_everything_else_is_as_it_was_drawn(seal: Callable[..., Sealed], name: str) -> None:
    sealed = seal(name)
    drawn, finished = sealed.drawn, sealed.finished
    assert finished.messages.tolist() == drawn.messages.tolist()
    for field in set(drawn.cases.dtype.names or ()) - {"tag_len"}:
        assert (finished.cases[field] == drawn.cases[field]).all(), field
    changing = {"in_off", "in_len", "out_off", "aux0", "aux1"}
    for field in set(drawn.ops.dtype.names or ()) - changing:
        assert (finished.ops[field] == drawn.ops[field]).all(), field
    encrypting = np.repeat(drawn.cases["decrypting"], drawn.cases["num_ops"]) == 0
    for field in changing - {"out_off"}:
        assert (finished.ops[field] == drawn.ops[field])[encrypting].all(), field
    for op in sealed.ops(OpKind.AAD, decrypting=1)[:50] + sealed.ops(OpKind.SETIV, decrypting=1)[:50]:
        start, length = int(drawn.ops["in_off"][op]), int(drawn.ops["in_len"][op])
        assert sealed.given(op) == drawn.blob[start : start + length].tobytes()


@pytest.mark.parametrize("name", sorted(AEADS))
def test_outputs_lie_one_behind_the_other_and_decrypting_tags_have_none(seal: Callable[..., Sealed], name: str) -> None:
    sealed = seal(name)
    every = np.arange(len(sealed.drawn.ops))
    owner = np.repeat(sealed.drawn.cases["decrypting"], sealed.drawn.cases["num_ops"])
    wanted = output_lens(sealed.drawn, every)
    wanted[(owner == 1) & (sealed.drawn.ops["kind"] == OpKind.TAG)] = 0
    updates = (owner == 1) & (sealed.drawn.ops["kind"] == OpKind.UPDATE)
    wanted[updates] -= (sealed.drawn.ops["in_len"] - sealed.finished.ops["in_len"])[updates].astype(np.int64)
    assert output_lens(sealed.finished, every).tolist() == wanted.tolist()
    assert sealed.finished.out_len == wanted.sum()
    target = bytearray(batch_len(sealed.finished))
    encode_batch_into(sealed.finished, memoryview(target))
    assert decode_batch(bytes(target)).messages.tolist() == sealed.finished.messages.tolist()


def test_a_sealed_batch_is_the_same_each_time_and_other_batches_are_tampered_elsewhere(
    seal: Callable[..., Sealed],
) -> None:
    first, again, other = seal("gcm"), seal("gcm"), seal("gcm", 2)
    assert first.finished.blob.tobytes() == again.finished.blob.tobytes()
    assert first.finished.ops.tobytes() == again.finished.ops.tobytes()
    assert first.finished.marks is not None
    assert other.finished.marks is not None
    assert first.finished.marks.tolist() != other.finished.marks.tolist()


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
