# SPDX-License-Identifier: Apache-2.0
"""What tampering changes: held message by message against the batch as it was sealed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from crosslane.generate import Drawn, draw_batch
from crosslane.manifest import Manifest
from crosslane.seal import sealed
from crosslane.tamper import tampered
from crosslane.wire import Batch, Flag, Mark, OpKind, Results

MakeManifest = Callable[..., Manifest]
MakeResults = Callable[[Batch], Results]

CCM: dict[str, Any] = {
    "algorithm": "ccm(toy)", "iv": "nonce", "iv_lens": tuple(range(7, 14)), "iv_out": "none", "aad": True,
    "tag_lens": (4, 6, 8, 16), "sessions_per_batch": 1024,
}  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """A batch before and after."""

    before: Drawn
    after: Batch

    @property
    def marks(self) -> Any:
        assert self.after.marks is not None
        return self.after.marks

    def parts(self, batch: Batch, message: int) -> dict[str, bytes]:
        """The bytes that a message is made of."""
        found = {"iv": b"", "aad": b"", "data": b"", "tag": b""}
        names = {OpKind.SETIV: "iv", OpKind.AAD: "aad", OpKind.UPDATE: "data", OpKind.TAG: "tag"}
        for op in batch.ops[self.before.owner == message]:
            name = names.get(OpKind(int(op["kind"])))
            if name and not op["flags"] & Flag.OVERLAP:
                found[name] += batch.blob[int(op["in_off"]) :][: int(op["in_len"])].tobytes()
        return found

    def of(self, mark: Mark) -> list[tuple[dict[str, bytes], dict[str, bytes]]]:
        """The messages with a mark, before and after."""
        messages = np.flatnonzero((self.marks & mark) != 0).tolist()
        return [(self.parts(self.before.batch, number), self.parts(self.after, number)) for number in messages]


@pytest.fixture
def pair(make_manifest: MakeManifest, make_results: MakeResults) -> Callable[..., Pair]:
    def make(**changes: Any) -> Pair:
        manifest = make_manifest(**{**CCM, **changes})
        before = sealed(draw_batch(manifest, 0), make_results)
        kept = replace(before, batch=replace(before.batch, blob=before.batch.blob.copy()))
        return Pair(kept, tampered(manifest, 0, before))

    return make


def changed_bits(one: bytes, other: bytes) -> list[tuple[int, int]]:
    assert len(one) == len(other)
    return [(at, a ^ b) for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]


@pytest.mark.parametrize(("mark", "part"), [(Mark.TAG, "tag"), (Mark.AAD, "aad"), (Mark.IV, "iv"), (Mark.DATA, "data")])
def test_a_bit_is_changed_and_nothing_else(pair: Callable[..., Pair], mark: Mark, part: str) -> None:
    """Where the session's tag is shorter too, tags are compared as far as they go."""
    found = pair().of(mark)
    assert len(found) > 30
    bits = set()
    for before, after in found:
        before["tag"] = before["tag"][: len(after["tag"])]
        [(_, bit)] = changed_bits(before[part], after[part])
        assert bit.bit_count() == 1
        bits.add(bit)
        assert {name: after[name] for name in after if name != part} == {
            name: before[name] for name in before if name != part
        }
    assert bits == {1 << bit for bit in range(8)}


@pytest.mark.parametrize(
    ("mark", "part", "announced"), [(Mark.AAD_LEN, "aad", "aux0"), (Mark.DATA_LEN, "data", "aux1")]
)
def test_the_last_byte_is_missing_and_not_announced(
    pair: Callable[..., Pair], mark: Mark, part: str, announced: str
) -> None:
    made = pair(refusals=())
    found = made.of(mark)
    assert len(found) > 30
    for before, after in found:
        assert after[part] == before[part][:-1]
        assert before[part]
    ivs = made.after.ops[made.after.ops["kind"] == OpKind.SETIV]
    for number in range(0, len(ivs), 7):
        assert int(ivs[number][announced]) == len(made.parts(made.after, number)[part])


def test_every_byte_of_a_tag_is_changed_the_last_one_most(pair: Callable[..., Pair]) -> None:
    found = pair(tag_lens=(16,)).of(Mark.TAG)
    places = [changed_bits(before["tag"], after["tag"])[0][0] for before, after in found]
    assert set(places) == set(range(16))
    assert 0.42 < np.mean(np.array(places) == 15) < 0.64


def test_one_message_in_eight_of_those_that_decrypt_is_tampered_with(pair: Callable[..., Pair]) -> None:
    made = pair(refusals=())
    kinds = made.marks & np.uint16(Mark.TAG | Mark.AAD | Mark.IV | Mark.DATA | Mark.AAD_LEN | Mark.DATA_LEN)
    decrypting = np.repeat(made.after.cases["decrypting"], 8) == 1
    apart = (made.marks & Mark.INTERLEAVED) == 0
    assert not kinds[~decrypting | ~apart].any()
    assert 0.11 < (kinds[decrypting & apart] != 0).mean() < 0.14
    assert {kind.bit_count() for kind in kinds.tolist()} == {0, 1}
    assert 0.6 > (kinds[kinds != 0] == Mark.TAG).mean() > 0.3


def test_some_sessions_have_a_shorter_tag_that_is_legal(pair: Callable[..., Pair]) -> None:
    made = pair(refusals=())
    shorter = np.flatnonzero(made.after.cases["tag_len"] != made.before.batch.cases["tag_len"])
    assert 10 < len(shorter) < 60
    marked = set((np.flatnonzero((made.marks & Mark.TAG_LEN) != 0) // 8).tolist())
    assert marked == set(shorter.tolist())
    for case in shorter.tolist():
        was, now = (int(batch.cases["tag_len"][case]) for batch in (made.before.batch, made.after))
        assert now < was
        assert now in CCM["tag_lens"]
        for message in range(8 * case, 8 * case + 8):
            assert len(made.parts(made.after, message)["tag"]) == now


def test_associated_data_of_others_are_left_alone(pair: Callable[..., Pair]) -> None:
    """They are windows of one pool: a changed one is copied first."""
    made = pair()
    tampered_with = {int(number) for number in np.flatnonzero((made.marks & (Mark.AAD | Mark.AAD_LEN)) != 0)}
    for number in range(0, len(made.marks), 5):
        if number not in tampered_with:
            before, after = (made.parts(batch, number)["aad"] for batch in (made.before.batch, made.after))
            assert before == after


@pytest.mark.parametrize("changes", [{"empty": False}, {"min_len": 16}, {"min_len": 16, "empty": False}])
def test_no_message_leaves_the_domain(pair: Callable[..., Pair], changes: dict[str, Any]) -> None:
    made = pair(**changes, refusals=(), steering=("lengths", "splits"))
    least = max(changes.get("min_len", 0), 0 if changes.get("empty", True) else 1)
    for _, after in made.of(Mark.DATA_LEN):
        assert len(after["data"]) >= least
    if not changes.get("empty", True):
        assert all(after["aad"] for _, after in made.of(Mark.AAD_LEN))


def test_a_message_that_is_cut_at_blocks_is_shortened_at_its_end_alone(pair: Callable[..., Pair]) -> None:
    """A piece that is shortened is the last one: an empty piece behind it would come after a partial block."""
    made = pair(split="block", refusals=(), steering=("splits",), sessions_per_batch=8192)
    assert len(made.of(Mark.DATA_LEN)) > 100
    data = (made.after.ops["kind"] == OpKind.UPDATE) & ((made.after.ops["flags"] & Flag.OVERLAP) == 0)
    pieces, owner = made.after.ops["in_len"][data], made.before.owner[data]
    order = np.argsort(owner, kind="stable")  # neighbours' operations may take turns
    pieces, owner = pieces[order], owner[order]
    is_last = np.append(np.diff(owner) != 0, True)
    assert not (pieces[~is_last] % 16).any()
