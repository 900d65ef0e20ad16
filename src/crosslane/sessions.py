# SPDX-License-Identifier: Apache-2.0
"""What the messages of a batch are: lengths, pieces, keys, refusals; drawn here, laid out by ``generate``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosslane import steer
from crosslane.draws import U64, Draws, below, take_bits
from crosslane.manifest import Manifest

__all__ = ["Messages", "draw_messages"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_LARGEST_ONE_IN = 4
"""One batch in so many begins with a message of 1 MiB, where long ones are asked for."""
_MANY_WAYS = 64
"""Beyond this width the grid of lengths is so long that empty messages would be rare."""


@dataclass(frozen=True)
class Messages:
    """One entry a message, in order; sessions lie one behind the other. Lengths in bytes."""

    family: NDArray[np.int64]  # index into the manifest's distinct families
    counter: Ints  # point of the counter grid, or -1
    solved: Ints  # point of the grid of what an iv must come to (``solve``), or -1
    first: Mask  # first of its session
    length: Ints
    num_pieces: Ints
    pieces: Ints
    setkey: Mask
    reinit: Mask
    clone: Mask  # after the first piece
    bad_key: Mask
    bad_iv: Mask
    announced: Ints  # how announced lengths are wrong (``steer.WRONG_LENGTHS``), or -1
    interleaved: Mask  # run in turns with its neighbour, on another context
    overlap: Ints  # the piece before which a call on overlapping buffers is to be refused, or -1


def _ranks(selected: Mask, number: int) -> Ints:
    """Running numbers of the selected messages over all batches, so that a grid is walked without gaps."""
    return np.flatnonzero(selected) * 0 + np.arange(int(selected.sum())) + number * int(selected.sum())


def _draw_lengths(manifest: Manifest, number: int, families: dict[str, Mask], words: U64) -> Ints:
    grid, (sizes, large_sizes) = steer.length_grid(manifest), steer.size_grid(manifest)
    length = grid[below(words, 0, len(grid))]
    selected = families["lengths"]
    length[selected] = grid[_ranks(selected, number) % len(grid)]
    selected = families["sizes"]
    walked = sizes[_ranks(selected, number) % len(sizes)]
    large = take_bits(words[selected], 40, 6) == 0
    walked = np.where(large, large_sizes[below(words[selected], 0, len(large_sizes))], walked)
    if number == 0 and len(walked) and steer.takes_largest(manifest):
        walked[-1] = steer.LARGEST
    length[selected] = walked
    selected = families["long"]
    if selected.any():
        length[selected] = steer.long_lengths(manifest, words[selected])
        if number % _LARGEST_ONE_IN == 0 and not manifest.max_len:
            length[np.argmax(selected)] = steer.LARGEST
    return length


_TWEAKS_ONE_IN = 13
"""Shares no factor with the messages of a session, so that every place in it comes."""


def _draw_points(manifest: Manifest, number: int, families: dict[str, Mask], length: Ints) -> tuple[Ints, Ints]:
    """Points of the counter grid and of the grid of solved ivs; messages are made long enough that they show."""
    count = len(length)
    counter, solved = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    index = np.arange(count)
    if manifest.iv in ("counter", "index"):
        selected = families["counters"]
        counter[selected] = _ranks(selected, number) % steer.num_counters(manifest)
        longer = steer.beyond_the_carry(manifest, counter, length)
    elif manifest.iv == "hashed" and manifest.block_len in manifest.iv_lens:
        selected = families["counters"] & ((index + index // manifest.messages_per_session) % 2 == 0)
        solved[selected] = _ranks(selected, number) % steer.num_hashes(manifest)
        longer = steer.beyond_the_wrap(manifest, solved, length)
    elif manifest.iv == "tweak":
        selected = (index % _TWEAKS_ONE_IN == 0) & ~families["refusals"]
        solved[selected] = _ranks(selected, number) % steer.num_tweaks(manifest)
        longer = steer.beyond_the_wrap(manifest, solved, length)
        selected = selected & ~families["lengths"] & ~families["sizes"]
    else:
        return counter, solved
    fits = selected & ((longer <= manifest.max_len) | (manifest.max_len == 0))
    length[fits] = longer[fits]
    return counter, solved


def _fixed_messages(manifest: Manifest) -> Messages:
    """Messages of one length, each in one piece, under the session's first key."""
    count = manifest.sessions_per_batch * manifest.messages_per_session
    nothing, never = np.zeros(count, np.int64), np.zeros(count, bool)
    first = np.arange(count) % manifest.messages_per_session == 0
    length = np.full(count, manifest.fixed_len, np.int64)
    pieces = np.zeros((count, 5), np.int64)
    pieces[:, 0] = length
    return Messages(
        family=nothing - 1, counter=nothing - 1, solved=nothing - 1, first=first, length=length,
        num_pieces=nothing + 1, pieces=pieces, setkey=first, reinit=never, clone=never, bad_key=never, bad_iv=never,
        announced=nothing - 1, interleaved=never, overlap=nothing - 1,
    )  # fmt: skip


def draw_messages(manifest: Manifest, number: int, draws: Draws) -> Messages:
    """The messages of batch ``number`` of a manifest."""
    return _fixed_messages(manifest) if manifest.fixed_len else _steered_messages(manifest, number, draws)


def _steered_messages(manifest: Manifest, number: int, draws: Draws) -> Messages:
    sessions, per_session = manifest.sessions_per_batch, manifest.messages_per_session
    count = sessions * per_session
    names = sorted(set(manifest.steering))
    turn = np.array([names.index(name) for name in manifest.steering])
    family = np.repeat(turn[(number * sessions + np.arange(sessions)) % len(turn)], per_session)
    families = {name: family == names.index(name) if name in names else np.zeros(count, bool)
                for name in ("lengths", "long", "sizes", "splits", "counters", "refusals")}  # fmt: skip
    words = draws.table(count, 7)
    length = _draw_lengths(manifest, number, families, words[0])
    counter, solved = _draw_points(manifest, number, families, length)
    refusals = families["refusals"]
    illegal = refusals & (take_bits(words[1], 0, 2) == 0) & ("data" in manifest.refusals)
    if manifest.partial == "refused":
        length = length + np.where(illegal, 1 + below(words[1], 32, manifest.block_len - 1), 0)
    elif manifest.min_len_blocks:
        length = np.where(illegal, below(words[1], 32, manifest.min_len_blocks * manifest.block_len), length)
    if manifest.empty and manifest.ways > _MANY_WAYS:
        length[families["splits"] & (take_bits(words[1], 54, 4) == 0)] = 0
    missing = refusals & (manifest.min_len_blocks > 0) & (take_bits(words[1], 51, 3) == 0)
    missing &= "missing" in manifest.refusals
    length[missing] = 0
    first = np.arange(count) % per_session == 0
    if manifest.split == "none":
        num_pieces = np.ones(count, np.int64)
    else:
        often = families["splits"] | (take_bits(words[1], 8, 2) == 0)
        num_pieces = np.where(often, 2 + take_bits(words[1], 10, 2), 1)
        num_pieces = np.where(families["lengths"] & (take_bits(words[1], 12, 1) == 0), 1, num_pieces)
        num_pieces[(length % manifest.block_len != 0) & (manifest.partial == "refused")] = 1
    if manifest.split != "none" and manifest.empty:
        num_pieces[(length == 0) & (take_bits(words[1], 14, 1) == 0)] = 0
    num_pieces[missing] = 0
    lengths, cuts = steer.two_pieces(manifest)
    walking = _walks_cuts(manifest) and len(cuts) > 0
    cut = np.flatnonzero(families["splits"] & (np.arange(count) % 4 == 0) & walking)
    walked = (np.arange(len(cut)) + number * len(cut)) % max(len(cuts), 1)
    length[cut], num_pieces[cut] = lengths[walked], 2
    pieces = steer.steer_pieces(manifest, length, num_pieces, words[2:7])
    pieces[cut, 0], pieces[cut, 1] = cuts[walked], length[cut] - cuts[walked]
    bad_key = refusals & ~first & (take_bits(words[1], 16, 1) == 0) & ("key" in manifest.refusals)
    bad_iv = refusals & ~bad_key & (take_bits(words[1], 27, 3) == 0) & ("iv" in manifest.refusals)
    interleaved = np.repeat(
        families["splits"][::per_session] & (take_bits(words[1][::per_session], 58, 1) == 0), per_session
    )
    interleaved &= per_session % 2 == 0
    return Messages(
        family=family,
        counter=counter,
        solved=solved,
        first=first,
        length=length,
        num_pieces=num_pieces,
        pieces=pieces,
        setkey=first | bad_key | interleaved | (take_bits(words[1], 18, 4) == 0),
        interleaved=interleaved,
        reinit=~first & (take_bits(words[1], 22, 3) == 0) & manifest.reinit,
        clone=(num_pieces > 1) & (take_bits(words[1], 25, 2) == 0) & manifest.clone,
        bad_key=bad_key,
        bad_iv=bad_iv,
        announced=_draw_announced(manifest, refusals & ~bad_iv, words[1]),
        overlap=_draw_overlaps(manifest, pieces, refusals & ~bad_iv, words[1]),
    )


def _walks_cuts(manifest: Manifest) -> bool:
    """Whether short messages are cut in every way: those of MACs, which hold back the last block."""
    return manifest.is_mac and manifest.split == "byte"


def _draw_announced(manifest: Manifest, selected: Mask, words: U64) -> Ints:
    """One message in four announces other lengths than come, in modes that are told them."""
    if manifest.iv != "nonce" or "announced" not in manifest.refusals:
        return np.full(len(words), -1, np.int64)
    chosen = selected & (take_bits(words, 54, 2) == 0)
    return np.where(chosen, below(words, 32, len(steer.WRONG_LENGTHS)), -1)


def _draw_overlaps(manifest: Manifest, pieces: Ints, selected: Mask, words: U64) -> Ints:
    """Half of the messages have a refused call: before a piece drawn, or the longest where that one is too short."""
    if manifest.is_mac or "overlap" not in manifest.refusals:
        return np.full(len(pieces), -1, np.int64)
    which, rows = take_bits(words, 48, 2), np.arange(len(pieces))
    which = np.where(pieces[rows, which] >= 2, which, np.argmax(pieces, axis=1))
    chosen = selected & (take_bits(words, 50, 1) == 0) & (pieces[rows, which] >= 2)
    return np.where(chosen, which, -1)
