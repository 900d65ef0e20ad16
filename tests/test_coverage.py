# SPDX-License-Identifier: Apache-2.0
"""Counted again, operation by operation, and by what a batch was steered for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from crosslane.coverage import Coverage, coverage
from crosslane.generate import draw_batch, generate_batch
from crosslane.manifest import Manifest
from crosslane.promises import promised
from crosslane.steer import length_grid
from crosslane.wire import Batch, Edge, Flag, OpKind

MakeManifest = Callable[..., Manifest]

BLOCKS: dict[str, Any] = {"split": "block", "partial": "refused"}
MODES: dict[str, dict[str, Any]] = {
    "ctr": {"key_lens": (16, 24)},
    "ctr_8": {"block_len": 8, "iv_lens": (8,), "key_lens": (24,), "policies": ("degenerate", "weak_subkey")},
    "lrw": {**BLOCKS, "iv": "index", "key_extra_len": 16},
    "cbc": {**BLOCKS, "iv": "random"},
    "xts": {
        "split": "none", "partial": "stealing", "min_len_blocks": 1, "iv": "tweak", "iv_out": "none", "num_keys": 2,
    },
    "cmac": {"iv": "none", "iv_lens": (), "iv_out": "none", "directions": ("encrypt",), "tag_lens": (16,)},
    "gcm": {"iv": "hashed", "iv_lens": (1, 12, 16), "iv_out": "none", "aad": True, "tag_lens": (4, 16)},
}  # fmt: skip


class Recount:
    """A batch read as a person would read it."""

    def __init__(self, manifest: Manifest, batch: Batch) -> None:
        self.manifest, self.batch = manifest, batch
        self.found: Counter[str] = Counter()
        self.aligns: dict[str, set[int]] = {}
        self.read(batch.ops)

    def read(self, ops: Any) -> None:
        updates: list[Any] = []
        iv = b""
        for op in ops:
            kind, length = OpKind(int(op["kind"])), int(op["in_len"])
            self.found["reinit"] += kind is OpKind.REINIT
            self.found["clone"] += kind is OpKind.CLONE
            if kind is OpKind.SETIV:
                iv = self.batch.blob[int(op["in_off"]) :][:length].tobytes()
                updates = []
            if kind is OpKind.UPDATE and not op["flags"] & Flag.OVERLAP:
                updates.append(op)
            if kind is OpKind.FINAL:
                self.message(iv, updates)
            name = {OpKind.SETKEY: "key", OpKind.SETIV: "iv_in"}.get(kind)
            if name:
                self.place(name, int(op["in_edge"]), int(op["in_align"]))
            if kind is OpKind.SETIV:
                self.place("iv", int(op["out_edge"]), int(op["out_align"]))

    def place(self, name: str, edge: int, align: int) -> None:
        if edge == Edge.MIDDLE:
            self.aligns.setdefault(name, set()).add(align)
        else:
            self.found[f"guard_{Edge(edge).name.lower()}_{name}"] += 1

    def message(self, iv: bytes, updates: list[Any]) -> None:
        bs, found = self.manifest.block_len, self.found
        lens = [int(op["in_len"]) for op in updates]
        length = sum(lens)
        found["messages"] += 1
        found["empty"] += length == 0
        found[f"tail_{length % bs}"] += 1
        found["splits_3"] += len(lens) >= 3
        found["splits_empty"] += 0 in lens
        found["splits_none"] += not lens
        found["in_place"] += any(op["flags"] & Flag.IN_PLACE for op in updates)
        found[f"iv_len_{len(iv)}"] += 1
        if len(iv) != bs:
            return
        first = int.from_bytes(iv, "big")
        for bits in (8, 16, 24, 32, 40, 48, 56, 64, 96, 120, 128):
            last = first + -(-length // bs) - 1
            found[f"counter_{bits}"] += last >> bits > first >> bits


@pytest.mark.parametrize("name", sorted(MODES))
@pytest.mark.parametrize("number", [0, 3])
def test_the_counts_are_those_of_a_reader(make_manifest: MakeManifest, name: str, number: int) -> None:
    manifest = make_manifest(**{"sessions_per_batch": 128, **MODES[name]})
    drawn = draw_batch(manifest, number)
    turned = replace(drawn.batch, ops=drawn.batch.ops[np.argsort(drawn.owner, kind="stable")])
    counted, again = coverage(manifest, drawn.batch).numbers(), Recount(manifest, turned)
    shared = [key for key in again.found if key in counted]
    assert {key: counted[key] for key in shared} == {key: again.found[key] for key in shared}
    assert len(shared) > 20
    for buffer, aligns in again.aligns.items():
        assert counted[f"distinct_align_{buffer}"] == len(aligns)
    assert counted["messages"] == 128 * 8
    assert sum(count for key, count in counted.items() if key.startswith("tail_")) == 128 * 8
    assert sum(count for key, count in counted.items() if key.startswith("iv_len_")) == 128 * 8


@pytest.mark.parametrize("bits", [8, 16, 64, 96, 128])
@pytest.mark.parametrize(
    ("before", "length", "carries"), [(1, 17, 1), (1, 16, 0), (4, 65, 1), (4, 64, 0), (0, 4096, 0)]
)
def test_a_counter_carries_where_its_message_comes_beyond_the_boundary(
    make_manifest: MakeManifest, bits: int, before: int, length: int, carries: int
) -> None:
    """Counter and length put in by hand; 4,096 bytes from a multiple on carry over the lowest 8 bits alone."""
    manifest = make_manifest(sessions_per_batch=1, messages_per_session=1, fixed_len=length)
    batch = generate_batch(manifest, 0)
    at = int(batch.ops["in_off"][batch.ops["kind"] == OpKind.SETIV][0])
    batch.blob[at : at + 16] = np.frombuffer(
        ((1 << 128) - (1 << bits) + ((1 << bits) - before) % (1 << bits)).to_bytes(17, "big")[-16:], np.uint8
    )
    assert coverage(manifest, batch).numbers()[f"counter_{bits}"] == carries


def test_what_a_manifest_cannot_have_has_no_key(make_manifest: MakeManifest) -> None:
    counted = coverage(make_manifest(**MODES["cmac"]), generate_batch(make_manifest(**MODES["cmac"]), 0)).numbers()
    absent = {"in_place", "overlap_refused", "counter_8", "j0_wrap", "tweak_steered", "aad_len_0", "tamper_tag"}
    assert not absent & counted.keys()


def test_only_the_cases_that_are_there_count(make_manifest: MakeManifest) -> None:
    manifest = make_manifest(**MODES["gcm"])
    batch = generate_batch(manifest, 0)
    cut = replace(batch, cases=batch.cases[:20], messages=batch.messages[:20])
    whole, part = coverage(manifest, batch).numbers(), coverage(manifest, cut).numbers()
    assert part["messages"] == 160
    assert {key for key in whole if key not in part} == {key for key in whole if key.startswith("each_")}
    assert part.keys() < whole.keys()
    assert 0 < part["j0_wrap"] < whole["j0_wrap"]
    assert all(part[key] <= whole[key] for key in part)


@pytest.mark.parametrize("name", sorted(MODES))
def test_a_whole_batch_has_every_length_and_every_place(make_manifest: MakeManifest, name: str) -> None:
    manifest = make_manifest(**{"sessions_per_batch": 1024, **MODES[name]})
    counted = coverage(manifest, generate_batch(manifest, 0)).numbers()
    each = {key: count for key, count in counted.items() if key.startswith("each_")}
    assert {"each_length", "each_align_key", "each_align_iv_in"} <= each.keys()
    assert all(each.values())
    assert promised(manifest, "each_length")
    assert not promised(replace(manifest, ways=2048), "each_length")


def test_a_message_without_a_call_is_promised_where_empty_ones_are_many(make_manifest: MakeManifest) -> None:
    manifest = make_manifest(sessions_per_batch=1024)
    assert promised(replace(manifest, ways=8), "splits_none")
    assert not promised(replace(manifest, ways=16), "splits_none")
    assert not promised(replace(manifest, split="none"), "splits_none")
    assert not promised(replace(manifest, empty=False), "splits_none")


def test_a_wrap_of_j0_is_promised_where_an_iv_can_be_solved_for_it(make_manifest: MakeManifest) -> None:
    manifest = make_manifest(**MODES["gcm"])
    assert promised(replace(manifest, iv_lens=(12, 16)), "j0_wrap")
    assert not promised(replace(manifest, iv_lens=(12,)), "j0_wrap")


def test_a_length_and_a_place_that_never_come_are_missed(make_manifest: MakeManifest) -> None:
    manifest = make_manifest(**{"sessions_per_batch": 1024, **MODES["cmac"]})
    batch = generate_batch(manifest, 0)
    keys = batch.ops["kind"] == OpKind.SETKEY
    batch.ops["in_align"][keys] &= 0xFE
    counted = coverage(manifest, batch).numbers()
    assert (counted["distinct_align_key"], counted["each_align_key"]) == (32, 0)
    assert coverage(replace(manifest, ways=1024), batch).numbers()["each_length"] == 0


@pytest.mark.parametrize(("iv_out", "calls"), [("next", True), ("next_whole", True), ("none", False)])
def test_an_iv_that_is_never_read_back_is_missed(make_manifest: MakeManifest, iv_out: str, calls: bool) -> None:
    manifest = make_manifest(sessions_per_batch=64, iv_out=iv_out)
    batch = generate_batch(manifest, 0)
    counted = coverage(manifest, batch).numbers()
    assert ("iv_read_back" in counted) is calls
    read = (batch.ops["flags"] & (Flag.OBSERVE_IV | Flag.OVERLAP)) == Flag.OBSERVE_IV
    assert not calls or counted["iv_read_back"] == read.sum() > 0
    batch.ops["flags"] &= ~np.uint8(Flag.OBSERVE_IV)
    assert coverage(manifest, batch).numbers().get("iv_read_back", 0) == 0


def test_counts_are_added_and_values_put_together() -> None:
    one = Coverage({"empty": 2}, {"distinct_lengths": np.array([0, 3, 7])}, {"each_length": np.array([0, 2, 1])})
    other = Coverage(
        {"empty": 3, "large": 1}, {"distinct_lengths": np.array([3, 5])}, {"each_length": np.array([4, 0, 1])}
    )
    part = Coverage({"empty": 1}, {"distinct_align_key": np.array([9])})
    both = one.with_more(other).with_more(part)
    assert both.numbers() == {"empty": 6, "large": 1, "distinct_lengths": 4, "distinct_align_key": 1, "each_length": 2}
    assert (one.numbers()["each_length"], other.numbers()["each_length"]) == (0, 0)
    assert Coverage().with_more(one).numbers() == one.numbers()
    assert both.only(lambda name: name.endswith("lengths")).numbers() == {"distinct_lengths": 4}


def test_two_batches_cover_what_they_cover_together(make_manifest: MakeManifest) -> None:
    """Counted by hand: the lengths that occur in either, and the rarest length of both."""
    manifest = make_manifest(**{"sessions_per_batch": 64, **MODES["cmac"]})
    drawn = [draw_batch(manifest, number) for number in range(2)]
    lengths = []
    for item in drawn:
        ops = item.batch.ops
        updates = (ops["kind"] == OpKind.UPDATE) & ((ops["flags"] & Flag.OVERLAP) == 0)
        lengths.append(
            np.bincount(item.owner[updates], ops["in_len"][updates].astype(float), minlength=512).astype(int)
        )
    one, other = (coverage(manifest, item.batch) for item in drawn)
    both = one.with_more(other).numbers()
    assert both["distinct_lengths"] == len(set(np.concatenate(lengths).tolist())) > one.numbers()["distinct_lengths"]
    grid = Counter(np.concatenate(lengths).tolist())
    assert both["each_length"] == min(grid[length] for length in length_grid(manifest).tolist())
    assert both["messages"] == 2 * 512


def test_keys_with_a_weak_part_are_counted_by_policy(make_manifest: MakeManifest) -> None:
    weak = tuple(bytes([i, 0xF0 | i] * 4).hex() for i in range(2, 18, 2))
    manifest = make_manifest(
        **{**MODES["ctr_8"], "weak_keys": weak, "ignored_bits": 1, "sessions_per_batch": 1024, "refusals": ("key",)}
    )
    batch = generate_batch(manifest, 0)
    wanted: Counter[str] = Counter()
    owner = np.repeat(batch.cases["policy"], batch.cases["num_ops"])
    for op, policy in zip(batch.ops, owner, strict=True):
        if op["kind"] != OpKind.SETKEY or op["in_len"] != 24:
            continue
        key = batch.blob[int(op["in_off"]) :][:24] & 0xFE
        if any(key[8 * i : 8 * i + 8].tobytes().hex() in weak for i in range(3)):
            wanted["weak_keys"] += 1
            wanted[f"weak_keys_policy_{policy}"] += 1
    counted = coverage(manifest, batch).numbers()
    assert {key: count for key, count in counted.items() if key.startswith("weak")} == dict(wanted)
    assert wanted["weak_keys"] > 60
    assert len(wanted) == 5
