# SPDX-License-Identifier: Apache-2.0
"""Generation of batches: a pure function of manifest and batch number, vectorised over all messages of the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosslane import steer
from crosslane.draws import U64, Draws, below, take_bits
from crosslane.manifest import POLICY_BITS, Manifest
from crosslane.sessions import Messages, draw_messages
from crosslane.wire import CASE, OP, Batch, Flag, Mark, OpKind

__all__ = ["Drawn", "draw_batch", "generate_batch", "output_lens", "select_cases"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_NUM_SLOTS = 4
_DEGENERATE_PARTS = 3
"""The policy ``degenerate`` compares the three keys of a triple cipher."""
_LONG_KEY_LENS = (24, 32, 33, 40, 48, 56, 64, 96, 128, 255, 256)
"""Key lengths of other ciphers and of others' mistakes, which a cipher that does not have them refuses."""
_SPARE_LEN = 3
"""Illegal keys and ivs go this many bytes beyond the longest legal one."""
_SHORT_COUNTER_LEN = 0xFFFF
_POOL_LEN = 32768
"""Every piece of data is a window, at a random byte, of a pool of random bytes: the pool stays in the caches of the
shims that read it, and drawing fresh bytes for every message would cost more than all the rest of generation."""


@dataclass(frozen=True)
class Drawn:
    """A batch as it was drawn, before the oracle is asked for what it lacks.

    ``solved`` are setiv operations whose iv is not there yet: in its place lies the block that it must come to, GCM's
    J0 or the tweak of XTS after its encryption. ``keyed`` are the setkey operations whose keys are in force in them.
    ``owner`` is the message of each operation, by its number among the setiv operations.
    """

    batch: Batch
    solved: Ints
    keyed: Ints
    owner: Ints


def generate_batch(manifest: Manifest, number: int) -> Batch:
    """Batch ``number`` of a manifest as it is drawn: the same bytes on every machine."""
    return draw_batch(manifest, number).batch


def draw_batch(manifest: Manifest, number: int) -> Drawn:
    """Batch ``number`` of a manifest, with what has to be done before it can run (``seal.finished_batch``)."""
    draws = Draws(manifest.digest, number)
    return _Writer(manifest, draw_messages(manifest, number, draws), draws).drawn()


def _equal_halves(keys: NDArray[np.uint8], key_lens: Ints) -> NDArray[np.uint8]:
    """1 for each key whose two halves are alike, 0 for the others."""
    whole = [key.tobytes() for key in keys]
    alike = [key[: n // 2] == key[n // 2 : n] for key, n in zip(whole, key_lens.tolist(), strict=True)]
    return np.array(alike, np.uint8)


def _whole_words(length: int) -> int:
    return (length + _SPARE_LEN + 7) // 8 * 8


def _in_turn(count: int, words: U64, limit: int) -> Ints:
    """``count`` numbers below ``limit``, one after the other from a random one on."""
    turns: Ints = (np.arange(count) + int(below(words[:1], 0, limit)[0])) % limit
    return turns


def _exclusive(lengths: Ints) -> Ints:
    return np.cumsum(lengths) - lengths


class _Writer:
    """Lays drawn messages out as operations, blob and output offsets."""

    def __init__(self, manifest: Manifest, messages: Messages, draws: Draws) -> None:
        self.manifest = manifest
        self.messages = messages
        self.draws = draws
        m = messages
        before_setiv = m.setkey.astype(np.int64) + m.reinit  # sums of two masks would be masks
        self.num_aad, self.aad_len = self._draw_aad()
        self.has_tag = bool(manifest.tag_lens)
        self.num_ops = before_setiv + 1 + self.num_aad + m.num_pieces + m.clone + (m.overlap >= 0) + 1 + self.has_tag
        self.base = _exclusive(self.num_ops)
        self.at_setiv = self.base + before_setiv
        self.at_data = self.at_setiv + 1 + self.num_aad
        total = int(self.num_ops.sum())
        self.ops = np.zeros(total, OP)
        self.table = self.ops.view("<u8").reshape(total, 6)  # head, in_off, in_len, out_off, aux0, aux1
        before: Ints = np.cumsum(m.clone) - m.clone
        start: Ints = np.repeat(before[m.first], manifest.messages_per_session)
        self.slot = np.where(m.interleaved, 2 * (np.arange(len(before)) % 2), (before - start) % _NUM_SLOTS)
        self.head = np.zeros(total, np.uint64)
        self.out_lens = np.zeros(total, np.int64)

    def drawn(self) -> Drawn:
        m, manifest = self.messages, self.manifest
        key_words = self.draws.table(int(m.setkey.sum()), 2)
        key_lens = self._key_lens(key_words[0])
        key_stride = _whole_words(max(*manifest.key_lens, 1) * manifest.num_keys + manifest.key_extra_len)
        iv_stride = _whole_words(max(manifest.iv_lens, default=0))
        num_keys, num_messages = len(key_lens), len(m.length)
        iv_at, data_at = num_keys * key_stride, num_keys * key_stride + num_messages * iv_stride
        pool_len = _POOL_LEN + max(int(m.length.max(initial=0)), int(self.aad_len.max(initial=0)))
        blob = self.draws.data(data_at + pool_len)
        keys = blob[:iv_at].reshape(num_keys, key_stride)
        with_room = np.minimum(key_lens, key_stride)
        steer.steer_keys(key_words[1], keys, with_room)
        if manifest.num_keys > 1 and not manifest.equal_keys:
            keys[np.arange(num_keys), with_room - 1] ^= _equal_halves(keys, with_room)
        if "degenerate" in manifest.policies:
            longest = max(manifest.key_lens)
            steer.steer_parts(key_words[1], keys, longest, _DEGENERATE_PARTS, manifest.ignored_bits)
        if manifest.weak_keys and not manifest.fixed_len:
            steer.steer_weak(key_words[1], keys, manifest, ~m.bad_key[m.setkey])
        self._steer_ivs(blob[iv_at:data_at].view(np.uint64).reshape(num_messages, iv_stride // 8))
        self._write_setkeys(key_lens, key_stride, data_at)
        self._write_setivs(iv_at, iv_stride)
        self._write_aad(data_at)
        self._write_updates(data_at)
        self._write_rest()
        cases = self._cases()
        if self.has_tag:
            self._write_tags(cases)
        self.table[:, 0] = self.head
        owner, place = self._interleave()
        self.table[:, 3] = _exclusive(self.out_lens).astype(np.uint64)
        solved = m.solved >= 0
        marks = np.zeros(num_messages, np.uint16)
        marks[owner[place[self.at_setiv]]] = solved * int(Mark.SOLVED) + m.interleaved * int(Mark.INTERLEAVED)
        batch = Batch(cases, self.ops, blob, int(self.out_lens.sum()), self._counts(), marks)
        keyed = self.base[m.setkey][np.cumsum(m.setkey) - 1]
        return Drawn(batch, place[self.at_setiv[solved]], place[keyed[solved]], owner)

    def _interleave(self) -> tuple[Ints, Ints]:
        """Let operations of neighbours that are interleaved take turns.

        Returns the message of each operation, numbered by setiv, and the place that each operation has gone to.
        """
        m, total = self.messages, len(self.ops)
        owner, place = np.repeat(np.arange(len(m.length)), self.num_ops), np.arange(total)
        at = np.flatnonzero(m.interleaved[owner])
        if not len(at):
            return owner, place
        who = owner[at]
        source = np.arange(total)
        source[at] = at[np.lexsort((who % 2, at - self.base[who], who // 2))]
        self.table[at], self.out_lens[at] = self.table[source[at]], self.out_lens[source[at]]
        place[source] = np.arange(total)
        number = np.empty(len(m.length), np.int64)
        number[np.argsort(place[self.at_setiv])] = np.arange(len(m.length))
        return number[owner[source]], place

    def _draw_aad(self) -> tuple[Ints, Ints]:
        """Operations and bytes of associated data for each message."""
        count = len(self.messages.length)
        if not self.manifest.aad:
            return np.zeros(count, np.int64), np.zeros(count, np.int64)
        words = self.draws.words(count)
        lens = steer.steer_aad_lens(words)
        if self.manifest.max_aad_len:
            lens = np.minimum(lens, self.manifest.max_aad_len)
        cut = take_bits(words, 60, 1) * (self.manifest.split != "none")
        return np.where(lens > 0, 1 + cut, take_bits(words, 61, 1) * self.manifest.empty), lens

    def _write_aad(self, data_at: int) -> None:
        """In one piece or two, cut anywhere; sometimes an empty piece where there is no associated data."""
        owner = np.repeat(np.arange(len(self.num_aad)), self.num_aad)
        if not len(owner):
            return
        piece = np.arange(len(owner)) - np.repeat(_exclusive(self.num_aad), self.num_aad)
        words = self.draws.table(len(owner), 2)
        total = self.aad_len[owner]
        cut = below(words[1][np.flatnonzero(piece == 0)], 32, self.aad_len[self.num_aad > 0] + 1)
        cut = np.repeat(cut, self.num_aad[self.num_aad > 0])
        whole = self.num_aad[owner] == 1
        length = np.where(whole, total, np.where(piece == 0, cut, total - cut))
        at = self.at_setiv[owner] + 1 + piece
        self._put(at, OpKind.AAD, self.slot[owner], self._layout(words[0], 0) << np.uint64(24))
        self.table[at, 1] = (data_at + below(words[0], 24, _POOL_LEN)).astype(np.uint64)
        self.table[at, 2] = length.astype(np.uint64)

    def _write_tags(self, cases: NDArray[Any]) -> None:
        """A tag of one length for a session; one in four of those that are to be refused asks for an illegal one."""
        manifest, m = self.manifest, self.messages
        words = self.draws.words(manifest.sessions_per_batch)
        legal = np.array(manifest.tag_lens)
        lens = legal[below(words, 0, len(legal))]
        names = sorted(set(manifest.steering))
        refusals = m.family[m.first] == names.index("refusals") if "refusals" in names else np.zeros(len(lens), bool)
        illegal = np.array([n for n in range(manifest.block_len + 2) if n not in manifest.tag_lens])
        refusals &= ("tag" in manifest.refusals) & (take_bits(words, 32, 2) == 0)
        lens[refusals] = illegal[_in_turn(int(refusals.sum()), words, len(illegal))]
        cases["tag_len"] = lens
        at = self.base + self.num_ops - 1
        layout = self._layout(self.draws.words(len(at)), 0) << np.uint64(40)
        self._put(at, OpKind.TAG, (self.slot + m.clone) % _NUM_SLOTS, layout)
        self.out_lens[at] = np.repeat(lens, manifest.messages_per_session)

    def _counts(self) -> Ints:
        return np.full(self.manifest.sessions_per_batch, self.manifest.messages_per_session, np.int64)

    def _key_lens(self, words: U64) -> Ints:
        manifest, m = self.manifest, self.messages
        legal = np.array(manifest.key_lens)
        lens = legal[below(words, 0, len(legal))] * manifest.num_keys + manifest.key_extra_len
        longest = int(legal.max()) * manifest.num_keys + manifest.key_extra_len
        whole = set((legal * manifest.num_keys + manifest.key_extra_len).tolist())
        tried = (*range(longest + _SPARE_LEN + 1), *_LONG_KEY_LENS)
        illegal = np.array([n for n in tried if n not in whole])
        bad = m.bad_key[m.setkey]
        lens[bad] = illegal[below(words[bad], 32, len(illegal))]
        return lens

    def _steer_ivs(self, ivs: U64) -> None:
        """Steer ivs (a row of words for each message, random) to the points of their grids."""
        manifest, m = self.manifest, self.messages
        if manifest.iv in ("counter", "index"):
            words = self.draws.table(len(m.length), 2)
            steered = m.counter >= 0
            points = np.where(steered, m.counter, below(words[0], 0, steer.num_counters(manifest)))
            chosen = np.flatnonzero(steered | (take_bits(words[1], 40, 2) == 0))
            num_words = manifest.block_len // 8
            ivs[chosen, :num_words] = steer.steer_counters(manifest, points[chosen], ivs[chosen, :num_words])
        elif bool((m.solved >= 0).any()):
            self._steer_blocks(ivs.view(np.uint8)[:, : manifest.block_len], m.solved >= 0)

    def _steer_blocks(self, blocks: NDArray[np.uint8], solved: Mask) -> None:
        """What ivs of GCM and XTS must come to, and numbers of data units."""
        manifest, points = self.manifest, self.messages.solved[solved]
        chosen = blocks[solved]
        if manifest.iv == "hashed":
            steer.steer_hashes(manifest, points, chosen)
        else:
            steer.steer_tweaks(manifest, points, chosen)
            words = self.draws.words(len(blocks))
            units = ~solved & (take_bits(words, 60, 4) == 0)
            numbers = blocks[units]
            steer.steer_units(words[units], numbers)
            blocks[units] = numbers
        blocks[solved] = chosen

    def _layout(self, words: U64, shift: int) -> U64:
        """Edge and alignment of one buffer as two bytes: one in four at each guard page, the rest in the middle."""
        edge = np.minimum(take_bits(words, shift, 2), 2)
        align = take_bits(words, shift + 2, 6)
        layout: U64 = (edge | (align << 8)).astype(np.uint64)
        return layout

    def _put(self, at: Ints, kind: OpKind, slot: Ints, rest: U64 | int = 0) -> None:
        self.head[at] = (int(kind) | (slot << 8)).astype(np.uint64) | np.asarray(rest, np.uint64)

    def _write_setkeys(self, key_lens: Ints, key_stride: int, data_at: int) -> None:
        m = self.messages
        at = self.base[m.setkey]
        layout = self._layout(self.draws.words(len(at)), 0)
        self._put(at, OpKind.SETKEY, self.slot[m.setkey], layout << np.uint64(24))
        beyond = key_lens > key_stride  # illegal ones, which have no room among the keys and are taken from the pool
        self.table[at, 1] = np.where(beyond, data_at, np.arange(len(at)) * key_stride).astype(np.uint64)
        self.table[at, 2] = key_lens.astype(np.uint64)

    def _write_setivs(self, iv_at: int, iv_stride: int) -> None:
        m, manifest = self.messages, self.manifest
        words = self.draws.words(len(m.length))
        rest = (self._layout(words, 0) << np.uint64(24)) | (self._layout(words, 8) << np.uint64(40))
        self._put(self.at_setiv, OpKind.SETIV, self.slot, rest)
        legal = np.array(manifest.iv_lens or (0,))
        lens = legal[below(words, 32, len(legal))]
        illegal = np.array(sorted({*range(int(legal.max()) + 2), 8, 16} - set(legal.tolist())))
        lens[m.bad_iv] = illegal[_in_turn(int(m.bad_iv.sum()), words, len(illegal))]
        if manifest.iv == "nonce":  # a longer message may not fit what a long nonce leaves of the counter
            lens = np.where(m.length > _SHORT_COUNTER_LEN, int(legal.min()), lens)
        lens = np.where(m.solved >= 0, manifest.block_len, lens)
        self.table[self.at_setiv, 1] = (iv_at + np.arange(len(lens)) * iv_stride).astype(np.uint64)
        self.table[self.at_setiv, 2] = lens.astype(np.uint64)
        announced = self.aad_len, m.length
        if bool((m.announced >= 0).any()):
            announced = steer.steer_announced(self.draws.words(len(lens)), m.announced, (*announced, lens))
        for column, lengths in zip((4, 5), announced, strict=True):
            self.table[self.at_setiv, column] = lengths.astype(np.uint64)

    def _write_updates(self, data_at: int) -> None:
        m, manifest = self.messages, self.manifest
        owner = np.repeat(np.arange(len(m.length)), m.num_pieces)
        piece = np.arange(len(owner)) - np.repeat(_exclusive(m.num_pieces), m.num_pieces)
        length = m.pieces[owner, piece]
        after_clone = m.clone[owner] & (piece > 0)
        at = self.at_data[owner] + piece + after_clone + ((m.overlap[owner] >= 0) & (m.overlap[owner] <= piece))
        words = self.draws.words(len(owner))
        last = piece == m.num_pieces[owner] - 1
        in_place = (take_bits(words, 16, 2) == 0) & manifest.in_place
        flags = np.where(last, int(Flag.LAST), 0) | np.where(in_place, int(Flag.IN_PLACE), 0)
        done = np.cumsum(length) - np.repeat(_exclusive(m.length), m.num_pieces)
        observed = self._observes(done)
        flags = (flags | np.where(observed, int(Flag.OBSERVE_IV), 0)).astype(np.uint64)
        layout = (self._layout(words, 0) << np.uint64(24)) | (self._layout(words, 8) << np.uint64(40))
        slot = (self.slot[owner] + after_clone) % _NUM_SLOTS
        self._put(at, OpKind.UPDATE, slot, (flags << np.uint64(16)) | layout)
        data_out = 0 if manifest.is_mac else length
        self.out_lens[at] = data_out + np.where(observed, manifest.block_len, 0)
        start = below(words, 24, _POOL_LEN)
        self.table[at, 1] = (data_at + start).astype(np.uint64)
        self.table[at, 2] = length.astype(np.uint64)
        self._write_overlaps(at[m.overlap[owner] == piece])

    def _write_overlaps(self, retried: Ints) -> None:
        """Before each of the updates ``retried`` the same call on overlapping buffers, which is refused."""
        if not len(retried):
            return
        before = retried - 1
        self.table[before] = self.table[retried]
        self.head[before] = self.head[retried] & ~np.uint64(int(Flag.IN_PLACE) << 16) | np.uint64(
            int(Flag.OVERLAP) << 16
        )
        self.out_lens[before] = self.out_lens[retried]
        shifts = steer.steer_overlaps(self.draws.words(len(before)), self.table[before, 2].astype(np.int64))
        self.table[before, 5] = shifts.astype(np.uint64)

    def _observes(self, done: Ints) -> Mask:
        if self.manifest.iv_out == "next":
            return np.ones(len(done), bool)
        if self.manifest.iv_out == "next_whole":
            whole: Mask = done % self.manifest.block_len == 0
            return whole
        return np.zeros(len(done), bool)

    def _write_rest(self) -> None:
        m = self.messages
        self._put((self.base + m.setkey)[m.reinit], OpKind.REINIT, self.slot[m.reinit])
        at = (self.at_data + 1 + (m.overlap == 0))[m.clone]
        from_slot = self.slot[m.clone]
        self._put(at, OpKind.CLONE, (from_slot + 1) % _NUM_SLOTS, from_slot.astype(np.uint64) << np.uint64(56))
        self._put(self.base + self.num_ops - 1 - self.has_tag, OpKind.FINAL, (self.slot + m.clone) % _NUM_SLOTS)

    def _cases(self) -> NDArray[np.void]:
        manifest, m = self.manifest, self.messages
        cases = np.zeros(manifest.sessions_per_batch, CASE)
        words = self.draws.words(manifest.sessions_per_batch)
        cases["first_op"] = self.base[m.first]
        cases["num_ops"] = np.diff(np.append(self.base[m.first], len(self.ops)))
        if len(manifest.directions) == 2:
            cases["decrypting"] = take_bits(words, 0, 1)
        elif "decrypt" in manifest.directions:
            cases["decrypting"] = 1
        cases["ctx_edge"] = np.minimum(take_bits(words, 6, 2), 2)
        known, always = (
            sum(POLICY_BITS[name] for name in names) for names in (manifest.policies, manifest.always_policies)
        )
        cases["policy"] = np.where(take_bits(words, 2, 2) == 0, take_bits(words, 4, 2) & known, 0) | always
        return cases


def select_cases(batch: Batch, indexes: Ints) -> Batch:
    """A batch of just some cases, with operations, blob and outputs of its own; order as given."""
    cases = batch.cases[indexes].copy()
    counts = cases["num_ops"].astype(np.int64)
    which = np.repeat(cases["first_op"].astype(np.int64) - _exclusive(counts), counts) + np.arange(int(counts.sum()))
    ops = batch.ops[which].copy()
    cases["first_op"] = _exclusive(counts)
    lengths = ops["in_len"].astype(np.int64)
    starts = ops["in_off"].astype(np.int64)
    new_starts = _exclusive(lengths)
    source = np.repeat(starts - new_starts, lengths) + np.arange(int(lengths.sum()))
    blob = batch.blob[source]
    ops["in_off"] = new_starts
    outs = output_lens(batch, which)
    ops["out_off"] = np.where(_writes(ops), _exclusive(outs), 0)
    return Batch(cases, ops, blob, int(outs.sum()), batch.messages[indexes])


def _writes(ops: NDArray[np.void]) -> Mask:
    """Which operations have output; an empty one has its place in the output section all the same."""
    return np.isin(ops["kind"], (int(OpKind.UPDATE), int(OpKind.TAG)))


def output_lens(batch: Batch, which: Ints) -> Ints:
    """Output bytes of each of the operations ``which``: the distance to the next operation's output."""
    ops = batch.ops
    at = np.flatnonzero(_writes(ops))
    offsets = ops["out_off"][at].astype(np.int64)
    lens = np.zeros(len(ops), np.int64)
    lens[at] = np.diff(np.append(offsets, batch.out_len))
    return lens[which]
