# SPDX-License-Identifier: Apache-2.0
"""What a batch covers, counted by the dimensions in which optimised ciphers have gone wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosslane.manifest import Manifest
from crosslane.steer import BOUNDARY_BITS, LARGEST, length_grid
from crosslane.wire import Batch, Edge, Flag, Mark, OpKind

__all__ = ["Coverage", "coverage"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

NUM_ALIGNS = 64
_DISTINCT = "distinct_"
_EACH = "each_"
_TAMPERED = {
    "tag": Mark.TAG, "aad": Mark.AAD, "iv": Mark.IV, "data": Mark.DATA, "aad_len": Mark.AAD_LEN,
    "data_len": Mark.DATA_LEN, "tag_len": Mark.TAG_LEN,
}  # fmt: skip
_BUFFERS = {
    "key": (OpKind.SETKEY, "in"), "iv_in": (OpKind.SETIV, "in"), "iv": (OpKind.SETIV, "out"), "aad": (OpKind.AAD, "in"),
    "in": (OpKind.UPDATE, "in"), "out": (OpKind.UPDATE, "out"), "tag": (OpKind.TAG, "out"),
}  # fmt: skip


@dataclass(frozen=True)
class Coverage:
    """What batches of one manifest cover: counts, values that occur, and how often each value of a grid does.

    ``values`` are sorted, ``times`` have an entry for each value of a grid that does not change.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, Ints] = field(default_factory=dict)
    times: Mapping[str, Ints] = field(default_factory=dict)

    def numbers(self) -> dict[str, int]:
        """One number for each name: of ``values`` how many there are, of ``times`` the least."""
        return {
            **self.counts,
            **{name: len(values) for name, values in self.values.items()},
            **{name: int(times.min()) for name, times in self.times.items()},
        }

    def only(self, wanted: Callable[[str], bool]) -> Coverage:
        """The names that are wanted alone."""
        return Coverage(
            {name: count for name, count in self.counts.items() if wanted(name)},
            {name: values for name, values in self.values.items() if wanted(name)},
            {name: times for name, times in self.times.items() if wanted(name)},
        )

    def with_more(self, other: Coverage) -> Coverage:
        """That of the batches of both."""
        return Coverage(
            {name: self.counts.get(name, 0) + other.counts.get(name, 0) for name in {**self.counts, **other.counts}},
            _together(self.values, other.values, np.union1d),
            _together(self.times, other.times, np.add),
        )


def _together(
    one: Mapping[str, Ints], other: Mapping[str, Ints], both: Callable[[Ints, Ints], Ints]
) -> dict[str, Ints]:
    return {
        **one,
        **{name: both(one[name], value) if name in one else value for name, value in other.items()},
    }


def coverage(manifest: Manifest, batch: Batch) -> Coverage:
    """Count a finished batch of a manifest (its first cases where it was cut); keys are absent where the mode has none.

    Messages, unless said otherwise. Those whose name begins with ``distinct_`` say how many values occur, those that
    begin with ``each_`` how often the rarest value of a grid does, whole batches alone counted.

    - ``messages``, ``decrypting``; ``sessions`` counts cases
    - ``distinct_lengths``; ``each_length``, in a whole batch: how often the rarest length of the grid comes; ``tail_0``
      .. by length modulo the block; ``empty``; ``large`` of 1 MiB and more
    - ``counter_8`` .. ``counter_128``: the counter or index carries over that many bits within the message;
      ``j0_wrap``: GCM's 32-bit counter wraps; ``tweak_steered``: the first mask of XTS was chosen; ``unit_ff``: the
      lowest byte of its data unit's number is FF
    - ``splits_3``: in three calls or more; ``splits_empty``: with an empty call; ``splits_none``: without any call;
      ``reinit``, ``clone``, ``rekeyed`` (not the session's first), ``interleaved`` with another context's;
      ``iv_read_back``: calls after which the running iv is read
    - ``in_place``: one call at least (no MAC); ``overlap_refused``: calls to be refused for it
    - ``distinct_align_key``, ``_iv_in``, ``_iv``, ``_aad``, ``_in``, ``_out``, ``_tag``: offsets of buffers that lie in
      the middle; ``each_align_key`` .., in a whole batch: how many lie at the rarest of the 64
    - ``guard_end_key``, ``guard_start_key`` ..: calls with that buffer at a guard page; ``guard_end_ctx``,
      ``guard_start_ctx``: sessions
    - ``key_len_16`` ..: keys of each legal length of the whole key; ``key_len_refused``
    - ``weak_keys``: keys with a weak part; ``weak_keys_policy_0`` .. ``_3``: by the policies asked for
    - ``aad_len_0`` ..: each length up to 33; ``aad_len_long`` from 65,279 bytes on; ``tag_len_4`` .., ``iv_len_12`` ..;
      ``tag_len_refused``, ``iv_len_refused``
    - ``tamper_tag``, ``_aad``, ``_iv``, ``_data``: a bit; ``tamper_aad_len``, ``_data_len``: a byte less;
      ``tamper_tag_len``: a shorter tag
    - ``data_len_refused``: a length that the mode does not take; ``announced_wrong``: other lengths than announced
    """
    facts = _Facts(manifest, batch)
    found = [
        item for part in (_lengths, _counters, _courses, _places, _keys, _headers, _refused) for item in part(facts)
    ]
    arrays = {name: value for name, value in found if name.startswith((_DISTINCT, _EACH))}
    return Coverage(
        {name: int(value) for name, value in found if name not in arrays},
        {name: value for name, value in arrays.items() if name.startswith(_DISTINCT)},
        {name: value for name, value in arrays.items() if name.startswith(_EACH)},
    )


Counts = Iterator[tuple[str, Any]]
"""Names with a number each; ``distinct_`` with the values that occur, ``each_`` with the times of each of a grid."""


class _Facts:
    """A batch's operations with the messages that they belong to."""

    def __init__(self, manifest: Manifest, batch: Batch) -> None:
        self.manifest, self.batch = manifest, batch
        self.whole = len(batch) == manifest.sessions_per_batch
        counts = batch.cases["num_ops"].astype(np.int64)
        self.ops = batch.ops[: int(counts.sum())]
        self.case: Ints = np.repeat(np.arange(len(counts)), counts)
        self.kinds = self.ops["kind"]
        self.flags = self.ops["flags"]
        begins = self.kinds == OpKind.SETIV
        self.setivs = np.flatnonzero(begins)
        count = len(self.setivs)
        marks = batch.marks if batch.marks is not None else np.zeros(count, np.uint16)
        self.marks = marks[:count]
        self.message = self._owners()
        updates = self.kinds == OpKind.UPDATE
        self.overlapping: Mask = updates & ((self.flags & Flag.OVERLAP) != 0)
        self.updates = np.flatnonzero(updates & ~self.overlapping)
        self.in_len = self.ops["in_len"].astype(np.int64)
        self.num_updates = self.count(self.updates)
        self.length = self.total(self.updates)
        self.decrypting = batch.cases["decrypting"][self.case[self.setivs]] == 1

    def _owners(self) -> Ints:
        """The message of each operation, as its number among the setiv operations.

        A message ends with the tag or final that its session's others end with, and those of two contexts that are
        interleaved use slots 0 and 1, and 2 and 3.
        """
        last = OpKind.TAG if self.manifest.tag_lens else OpKind.FINAL
        number: Ints = np.cumsum(self.kinds == OpKind.SETIV) - 1
        mixed = np.zeros(len(self.batch), bool)
        mixed[self.case[self.setivs[(self.marks & Mark.INTERLEAVED) != 0]]] = True
        group = self.case * 2 + (mixed[self.case] & (self.ops["slot"] >= 2))
        order = np.argsort(group, kind="stable") if mixed.any() else np.arange(len(self.ops))
        ended = self.kinds[order] == last
        place = np.cumsum(ended) - ended
        setiv_of = np.zeros(len(self.setivs), np.int64)
        begins = order[self.kinds[order] == OpKind.SETIV]
        setiv_of[: len(begins)] = number[begins]
        owners = np.empty(len(self.ops), np.int64)
        owners[order] = setiv_of[place]
        return owners

    def count(self, at: Ints) -> Ints:
        """How many of the operations ``at`` each message has."""
        return np.bincount(self.message[at], minlength=len(self.setivs))

    def total(self, at: Ints) -> Ints:
        """Input bytes of the operations ``at`` for each message."""
        summed = np.bincount(self.message[at], self.in_len[at], minlength=len(self.setivs))
        return summed.astype(np.int64)

    def of_kind(self, kind: OpKind) -> Ints:
        return np.flatnonzero(self.kinds == kind)


def _lengths(facts: _Facts) -> Counts:
    length, bs = facts.length, facts.manifest.block_len
    yield "messages", len(length)
    yield "sessions", len(facts.batch)
    yield "decrypting", facts.decrypting.sum()
    by_length = np.bincount(length, minlength=int(length_grid(facts.manifest).max()) + 1)
    yield "distinct_lengths", np.flatnonzero(by_length)
    if facts.whole:
        yield "each_length", by_length[length_grid(facts.manifest)]
    for tail, count in enumerate(np.bincount(length % bs, minlength=bs).tolist()):
        yield f"tail_{tail}", count
    yield "empty", (length == 0).sum()
    yield "large", (length >= LARGEST).sum()


def _counters(facts: _Facts) -> Counts:
    manifest, bs = facts.manifest, facts.manifest.block_len
    solved = (facts.marks & Mark.SOLVED) != 0
    if manifest.iv == "hashed":
        yield "j0_wrap", solved.sum()
    if manifest.iv not in ("counter", "index", "tweak"):
        return
    whole = np.flatnonzero(facts.in_len[facts.setivs] == bs)
    starts = facts.ops["in_off"][facts.setivs[whole]].astype(np.int64)
    ivs = facts.batch.blob[starts[:, None] + np.arange(bs)]
    if manifest.iv == "tweak":
        yield "tweak_steered", solved.sum()
        yield "unit_ff", (ivs[:, 0] == 0xFF).sum()
        return
    words = ivs.reshape(-1).view(">u8").astype(np.uint64).reshape(-1, bs // 8)
    blocks = (-(-facts.length[whole] // bs)).astype(np.uint64)
    for bits in BOUNDARY_BITS:
        if bits <= 8 * bs:
            yield f"counter_{bits}", _carries(words, blocks, bits).sum()


def _carries(words: NDArray[np.uint64], blocks: NDArray[np.uint64], bits: int) -> Mask:
    """Which counters (big-endian words, the last one lowest) come to a multiple of 2^bits behind their first block."""
    ones = np.uint64((1 << min(bits, 64)) - 1)
    left = (~words[:, -1] & ones) + np.uint64(1)  # blocks to the carry; 0 stands for 2^64
    upper = np.uint64((1 << max(bits - 64, 0)) - 1)
    full = (words[:, 0] & upper) == upper if bits > 64 else np.ones(len(words), bool)
    carries: Mask = (blocks > left) & (left != 0) & full
    return carries


def _courses(facts: _Facts) -> Counts:
    yield "splits_3", (facts.num_updates >= 3).sum()
    empty = facts.updates[facts.in_len[facts.updates] == 0]
    yield "splits_empty", (facts.count(empty) > 0).sum()
    yield "splits_none", (facts.num_updates == 0).sum()
    yield "reinit", len(facts.of_kind(OpKind.REINIT))
    yield "clone", len(facts.of_kind(OpKind.CLONE))
    yield "rekeyed", len(facts.of_kind(OpKind.SETKEY)) - len(facts.batch)
    yield "interleaved", ((facts.marks & Mark.INTERLEAVED) != 0).sum()
    if facts.manifest.iv_out != "none":
        yield "iv_read_back", ((facts.flags[facts.updates] & Flag.OBSERVE_IV) != 0).sum()
    if not facts.manifest.is_mac:
        in_place = facts.updates[(facts.flags[facts.updates] & Flag.IN_PLACE) != 0]
        yield "in_place", (facts.count(in_place) > 0).sum()
        yield "overlap_refused", facts.overlapping.sum()


def _places(facts: _Facts) -> Counts:
    for name, (kind, side) in _BUFFERS.items():
        at = facts.of_kind(kind)
        if side == "out" and kind is OpKind.UPDATE:
            at = facts.updates if not facts.manifest.is_mac else at[:0]
        elif name == "in" and not facts.manifest.is_mac:
            at = at[(facts.flags[at] & Flag.IN_PLACE) == 0]
        if not len(at):
            continue
        edges, aligns = facts.ops[f"{side}_edge"][at], facts.ops[f"{side}_align"][at]
        by_align = np.bincount(aligns[edges == Edge.MIDDLE], minlength=NUM_ALIGNS)
        yield f"distinct_align_{name}", np.flatnonzero(by_align)
        if facts.whole:
            yield f"each_align_{name}", by_align
        yield f"guard_end_{name}", (edges == Edge.END).sum()
        yield f"guard_start_{name}", (edges == Edge.START).sum()
    yield "guard_end_ctx", (facts.batch.cases["ctx_edge"] == Edge.END).sum()
    yield "guard_start_ctx", (facts.batch.cases["ctx_edge"] == Edge.START).sum()


def _keys(facts: _Facts) -> Counts:
    manifest, at = facts.manifest, facts.of_kind(OpKind.SETKEY)
    lens = facts.in_len[at]
    legal = [n * manifest.num_keys + manifest.key_extra_len for n in manifest.key_lens]
    by_len = np.bincount(lens, minlength=max(legal) + 1)
    for length in legal:
        yield f"key_len_{length}", by_len[length]
    yield "key_len_refused", len(lens) - by_len[legal].sum()
    if not manifest.weak_keys:
        return
    whole = at[np.isin(lens, legal)]
    weak = _weak(facts, whole)
    policies = facts.batch.cases["policy"][facts.case[whole[weak]]].astype(np.int64)
    yield "weak_keys", weak.sum()
    for policy, count in enumerate(np.bincount(policies, minlength=4).tolist()):
        yield f"weak_keys_policy_{policy}", count


def _weak(facts: _Facts, at: Ints) -> Mask:
    """Which of the keys set by the operations ``at`` have a weak part, whatever the bits that the cipher ignores."""
    manifest = facts.manifest
    longest = max(manifest.key_lens)
    kept = np.uint8(~manifest.ignored_bits & 0xFF)
    part = len(manifest.weak_keys[0]) // 2
    starts = facts.ops["in_off"][at].astype(np.int64)
    parts = (facts.batch.blob[starts[:, None] + np.arange(longest)] & kept).reshape(-1, part)
    weak = {bytes(byte & kept for byte in bytes.fromhex(key)) for key in manifest.weak_keys}
    hits = np.array([row.tobytes() in weak for row in parts], bool)
    any_part: Mask = np.logical_or.reduce(hits.reshape(len(at), -1), axis=1)
    return any_part


def _headers(facts: _Facts) -> Counts:
    manifest = facts.manifest
    setivs = facts.setivs
    yield from _by_len("iv_len", facts.in_len[setivs], manifest.iv_lens or (0,))
    if manifest.tag_lens:
        tag_lens = facts.batch.cases["tag_len"][facts.case[setivs]].astype(np.int64)
        yield from _by_len("tag_len", tag_lens, manifest.tag_lens)
    if not manifest.aad:
        return
    aad_len = facts.total(facts.of_kind(OpKind.AAD))
    for length in range(34):
        yield f"aad_len_{length}", (aad_len == length).sum()
    yield "aad_len_long", (aad_len >= 0xFEFF).sum()
    for name, mark in _TAMPERED.items():
        yield f"tamper_{name}", ((facts.marks & mark) != 0).sum()


def _by_len(name: str, lens: Ints, legal: tuple[int, ...]) -> Counts:
    for length in legal:
        yield f"{name}_{length}", (lens == length).sum()
    yield f"{name}_refused", (~np.isin(lens, legal)).sum()


def _refused(facts: _Facts) -> Counts:
    manifest, length = facts.manifest, facts.length
    short = length < manifest.min_len_blocks * manifest.block_len
    ragged = length % manifest.block_len != 0
    yield "data_len_refused", (short | ragged if manifest.partial == "refused" else short).sum()
    announced = facts.ops["aux1"][facts.setivs].astype(np.int64)
    wrong = announced != length
    if manifest.aad:
        wrong |= facts.ops["aux0"][facts.setivs].astype(np.int64) != facts.total(facts.of_kind(OpKind.AAD))
    yield "announced_wrong", wrong.sum()
