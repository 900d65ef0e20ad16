# SPDX-License-Identifier: Apache-2.0
"""Messages that are no longer what was sealed: a bit of tag, associated data, iv or ciphertext, or a byte less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crosslane.draws import U64, Draws, below, take_bits
from crosslane.generate import Drawn, output_lens
from crosslane.manifest import Manifest
from crosslane.wire import Batch, Flag, Mark, OpKind

__all__ = ["tampered"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_STREAM = 1
_KINDS = (Mark.TAG, Mark.TAG, Mark.TAG, Mark.AAD, Mark.IV, Mark.DATA, Mark.AAD_LEN, Mark.DATA_LEN)
"""What is tampered with, equally likely each; the tag where a message lacks the other."""


def tampered(manifest: Manifest, number: int, sealed: Drawn) -> Batch:
    """A sealed batch with one decrypted message in eight tampered with, and one session in 16 with a shorter tag.

    Of the tags that are changed half are changed in the last byte, the others anywhere. Sessions whose contexts are
    interleaved stay as they are: what a wrong tag has withheld would be the neighbour's output too.
    """
    return _Tampering(manifest, number, sealed).batch()


class _Tampering:
    """The columns that change. Arrays have an entry for each message, operations aside; -1 where it has no such one."""

    def __init__(self, manifest: Manifest, number: int, sealed: Drawn) -> None:
        self.manifest, self.sealed = manifest, sealed.batch
        self.cases, self.ops = sealed.batch.cases.copy(), sealed.batch.ops.copy()
        self.blob, self.owner = sealed.batch.blob, sealed.owner
        self.setivs = np.flatnonzero(self.ops["kind"] == OpKind.SETIV)
        self.count = len(self.setivs)
        self.marks = np.zeros(self.count, np.uint16) if sealed.batch.marks is None else sealed.batch.marks.copy()
        draws = Draws(manifest.digest, number, stream=_STREAM)
        self.words = draws.table(manifest.messages_per_batch, 2)[:, : self.count]  # those of a whole batch
        self.case_words = draws.words(manifest.sessions_per_batch)[: len(self.cases)]
        self.case: Ints = np.arange(self.count) // manifest.messages_per_session
        apart = (self.marks & Mark.INTERLEAVED) == 0
        self.usable: Mask = (self.cases["decrypting"][self.case] == 1) & apart
        self.lens = output_lens(sealed.batch, np.arange(len(self.ops)))
        taken = (self.ops["flags"] & Flag.OVERLAP) == 0
        self.of_kind = {
            kind: np.flatnonzero((self.ops["kind"] == kind) & taken) for kind in (OpKind.AAD, OpKind.UPDATE, OpKind.TAG)
        }
        self.tags = self._last(self.of_kind[OpKind.TAG])
        self.added: list[NDArray[np.uint8]] = []

    def batch(self) -> Batch:
        """The batch, tampered with."""
        self._shorten_tags()
        aad, data = (self._last(self._filled(kind)) for kind in (OpKind.AAD, OpKind.UPDATE))
        kinds = self._kinds(aad, data)
        self._flip_tags(kinds == Mark.TAG)
        self._flip(kinds == Mark.IV, self.setivs)
        self._flip(kinds == Mark.DATA, data)
        self._flip_aad(np.flatnonzero(kinds == Mark.AAD), aad)
        self._shorten(kinds == Mark.AAD_LEN, aad, "aux0")
        self._shorten(kinds == Mark.DATA_LEN, data, "aux1")
        self.marks |= kinds.astype(np.uint16)
        self.ops["out_off"] = np.cumsum(self.lens) - self.lens
        blob = np.concatenate([self.blob, *self.added])
        return replace(
            self.sealed, cases=self.cases, ops=self.ops, blob=blob, out_len=int(self.lens.sum()), marks=self.marks
        )

    def _last(self, at: Ints) -> Ints:
        """The last of the operations ``at`` (in order) of each message."""
        last = np.full(self.count, -1, np.int64)
        last[self.owner[at]] = at
        return last

    def _filled(self, kind: OpKind) -> Ints:
        at = self.of_kind[kind]
        return at[self.ops["in_len"][at] > 0]

    def _kinds(self, aad: Ints, data: Ints) -> Ints:
        """What of each message is tampered with, a bit of ``Mark``; 0 for nothing."""
        chosen = self.usable & (take_bits(self.words[0], 0, 3) == 0)
        kinds = np.array([int(kind) for kind in _KINDS])[take_bits(self.words[0], 3, 3)]
        iv_len = self.ops["in_len"][self.setivs]
        shorter_aad = (aad >= 0) & self._may_shorten(OpKind.AAD, "aux0", 0 if self.manifest.empty else 2)
        least = max(self.manifest.min_len, 0 if self.manifest.empty else 1) + 1
        shorter_data = (data >= 0) & self._may_shorten(OpKind.UPDATE, "aux1", least)
        for kind, possible in (
            (Mark.AAD, aad >= 0),
            (Mark.IV, iv_len > 0),
            (Mark.DATA, data >= 0),
            (Mark.AAD_LEN, shorter_aad),
            (Mark.DATA_LEN, shorter_data),
        ):
            kinds[(kinds == kind) & ~possible] = int(Mark.TAG)
        kinds[(kinds == Mark.TAG) & (self.ops["in_len"][self.tags] == 0)] = 0
        return np.where(chosen, kinds, 0)

    def _may_shorten(self, kind: OpKind, announced: str, least: int) -> Mask:
        """Whether as many bytes come as were announced, ``least`` at least, and the last piece is not left empty.

        Where messages are cut at blocks, what follows the shortened piece would come behind a partial block.
        """
        at = self.of_kind[kind]
        total = np.bincount(self.owner[at], self.ops["in_len"][at].astype(np.float64), minlength=self.count)
        fits: Mask = (total == self.ops[announced][self.setivs]) & (total >= least)
        if kind == OpKind.UPDATE and self.manifest.split == "block":
            fits &= self._last(at) == self._last(self._filled(kind))
        return fits

    def _shorten_tags(self) -> None:
        legal = np.sort(np.array(self.manifest.tag_lens))
        lens = self.cases["tag_len"].astype(np.int64)
        rank = np.searchsorted(legal, lens)
        able = np.isin(lens, legal) & (rank > 0)
        able[self.case[~self.usable]] = False
        chosen = able & (take_bits(self.case_words, 0, 4) == 0)
        shorter = legal[below(self.case_words, 32, np.maximum(rank, 1))]
        self.cases["tag_len"] = np.where(chosen, shorter, lens)
        mine = chosen[self.case]
        self.ops["in_len"][self.tags[mine]] = self.cases["tag_len"][self.case[mine]]
        self.marks[mine] |= np.uint16(Mark.TAG_LEN)

    def _flip_tags(self, chosen: Mask) -> None:
        at = self.tags[chosen]
        words, lens = self.words[1][chosen], self.ops["in_len"][at].astype(np.int64)
        place = np.where(take_bits(words, 0, 1) == 0, lens - 1, below(words, 16, lens))
        self._flip_bits(at, place, words)

    def _flip(self, chosen: Mask, which: Ints) -> None:
        """Flip a bit anywhere in the operations ``which`` of the chosen messages, whose bytes are theirs alone."""
        at, words = which[chosen], self.words[1][chosen]
        self._flip_bits(at, below(words, 16, self.ops["in_len"][at].astype(np.int64)), words)

    def _flip_bits(self, at: Ints, place: Ints, words: U64) -> None:
        self.blob[self.ops["in_off"][at].astype(np.int64) + place] ^= (1 << take_bits(words, 8, 3)).astype(np.uint8)

    def _flip_aad(self, chosen: Ints, which: Ints) -> None:
        """Associated data are windows of a pool that others read too: the changed ones get a place of their own."""
        end = len(self.blob)
        words = self.words[1]
        for message in chosen.tolist():
            op = self.ops[which[message]]
            start, length = int(op["in_off"]), int(op["in_len"])
            copy = self.blob[start : start + length].copy()
            copy[below(words[message : message + 1], 16, length)] ^= 1 << int(words[message]) % 8
            op["in_off"] = end
            end += length
            self.added.append(copy)

    def _shorten(self, chosen: Mask, which: Ints, announced: str) -> None:
        """Without the last byte, as announced."""
        at = which[chosen]
        self.ops["in_len"][at] -= np.uint64(1)
        self.ops[announced][self.setivs[chosen]] -= np.uint64(1)
        if announced == "aux1":
            self.lens[at] -= 1
