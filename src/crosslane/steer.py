# SPDX-License-Identifier: Apache-2.0
"""Where bugs live: lengths, counters, keys and pieces that cases are steered to (``docs/explanation/steering.md``)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosslane.draws import U64, below, take_bits
from crosslane.manifest import Manifest

__all__ = [
    "BOUNDARY_BITS",
    "LARGEST",
    "WRONG_LENGTHS",
    "beyond_the_carry",
    "beyond_the_wrap",
    "counter_grid",
    "length_grid",
    "long_lengths",
    "num_counters",
    "num_hashes",
    "num_tweaks",
    "size_grid",
    "steer_aad_lens",
    "steer_announced",
    "steer_counters",
    "steer_hashes",
    "steer_keys",
    "steer_overlaps",
    "steer_parts",
    "steer_pieces",
    "steer_tweaks",
    "steer_units",
    "steer_weak",
    "two_pieces",
]

Ints = NDArray[np.int64]

BOUNDARY_BITS = (8, 16, 24, 32, 40, 48, 56, 64, 96, 120, 128)
_LARGE = (1024, 4095, 4096, 4097, 8192, 24577)
LARGEST = 1 << 20
_LONG = 1 << 16
_SHORTER = 1 << 11
_ALL_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


def takes_largest(manifest: Manifest) -> bool:
    """Whether a message may have ``LARGEST`` bytes."""
    return not manifest.max_len or manifest.max_len >= LARGEST


def _legal(manifest: Manifest, lengths: Ints) -> Ints:
    """Rounds lengths down to what the mode takes; where none of them is legal, the least length that is."""
    step = manifest.block_len if manifest.partial == "refused" else 1
    lengths = lengths // step * step
    least = max(manifest.min_len_blocks * manifest.block_len, manifest.min_len, 0 if manifest.empty else 1)
    most = manifest.max_len or int(lengths.max(initial=0))
    legal = np.unique(lengths[(lengths >= least) & (lengths <= most)])
    return legal if len(legal) else np.array([-(-least // step) * step])


@lru_cache(maxsize=64)
def length_grid(manifest: Manifest) -> Ints:
    """Every legal length in bytes from 0 to beyond twice the parallel width."""
    return _legal(manifest, np.arange((2 * manifest.ways + 2) * manifest.block_len + 1))


@lru_cache(maxsize=64)
def size_grid(manifest: Manifest) -> tuple[Ints, Ints]:
    """Lengths in bytes about multiples of the width, each with every tail; and some large ones."""
    bs = manifest.block_len
    around = {
        blocks * bs + tail
        for multiple in range(1, 6)
        for step in (manifest.ways, max(1, manifest.ways // 2), max(1, manifest.ways // 4))
        for blocks in (multiple * step - 1, multiple * step, multiple * step + 1)
        for tail in range(bs)
    }
    return _legal(manifest, np.array(sorted(around))), _legal(manifest, np.array(_LARGE))


def long_lengths(manifest: Manifest, words: U64) -> Ints:
    """Lengths in bytes for ``words``: one in eight anywhere from 0 to 64 KiB, the others below 2 KiB, all legal."""
    most = np.where(take_bits(words, 40, 3) == 0, _LONG + 1, _SHORTER)
    step = manifest.block_len if manifest.partial == "refused" else 1
    least = max(manifest.min_len_blocks * manifest.block_len, manifest.min_len, 0 if manifest.empty else 1)
    drawn = below(words, 0, most)
    lengths: Ints = np.minimum(drawn, manifest.max_len or _LONG) // step * step
    return np.maximum(lengths, -(-least // step) * step)


@lru_cache(maxsize=64)
def counter_grid(manifest: Manifest) -> tuple[U64, U64, Ints]:
    """Values, masks and distances, one row for each carry boundary b and j = 0 .. ways + 1.

    A row's counter has its low b bits (big-endian) equal to 2^b - j; the mask is set where the value counts. Both are
    given as the words that the counter's bytes make in memory, block_len / 8 a row. The distance is j, the number of
    blocks to the carry. An index has a row for each number of trailing ones besides, which pick an entry of the tables
    that tweaks are computed with, and one more block before all ones.
    """
    bs = manifest.block_len
    rows = [
        (((1 << bits) - j) % (1 << bits), bits, j)
        for bits in BOUNDARY_BITS
        for j in range(manifest.ways + 2)
        if bits <= 8 * bs
    ]
    if manifest.iv == "index":
        rows += [((1 << ones) - 1, ones + 1, 1) for ones in range(8 * bs)]
        rows.append(((1 << 8 * bs) - (manifest.ways + 2), 8 * bs, manifest.ways + 2))
    values = b"".join(low.to_bytes(bs, "big") for low, _, _ in rows)
    masks = b"".join(((1 << bits) - 1).to_bytes(bs, "big") for _, bits, _ in rows)
    value, mask = (np.frombuffer(words, np.uint64).reshape(len(rows), bs // 8) for words in (values, masks))
    return value, mask, np.array([j for _, _, j in rows], np.int64)


_UPPER_KINDS = 3
_BYTE_ORDERS = 2


def num_counters(manifest: Manifest) -> int:
    """Points of the whole counter grid: every row, with upper bits random, ones or zeros, in both byte orders."""
    return len(counter_grid(manifest)[2]) * _UPPER_KINDS * _BYTE_ORDERS


def steer_counters(manifest: Manifest, points: Ints, ivs: U64) -> U64:
    """Counters at ``points`` of the grid; ``ivs`` (n x block_len / 8 words) are random bytes.

    The byte-reversed ones have their carry where an implementation that counts in the other order has it.
    """
    values, masks, distances = counter_grid(manifest)
    rows, kind = points % len(distances), points // len(distances) % _UPPER_KINDS
    ones = np.where(kind == 1, _ALL_ONES, np.uint64(0))[:, None]
    keep = np.where(kind == 2, np.uint64(0), _ALL_ONES)[:, None]
    steered = (((ivs | ones) & keep) & ~masks[rows]) | values[rows]
    turned = points >= len(distances) * _UPPER_KINDS
    steered[turned] = steered[turned].byteswap()[:, ::-1]
    return steered


def beyond_the_carry(manifest: Manifest, points: Ints, lengths: Ints) -> Ints:
    """``lengths`` in bytes, made longer where the counter at its point would not be carried within the message."""
    _, _, distances = counter_grid(manifest)
    before = distances[points % len(distances)] * manifest.block_len
    return np.where(lengths <= before, lengths + before + manifest.block_len, lengths)


_NARROW_COUNTER = 1 << 32


def num_hashes(manifest: Manifest) -> int:
    """Points of the grid of GCM's J0: 0 .. ways + 1 blocks before the counter wraps, upper bits random or ones."""
    return (manifest.ways + 2) * 2


def steer_hashes(manifest: Manifest, points: Ints, blocks: NDArray[np.uint8]) -> None:
    """Make ``blocks`` (n x 16, random) the J0 at ``points``: its low 32 bits are 2^32 - 1 - j.

    The first block of data is encrypted under J0 + 1, so block j is the one whose 32-bit counter is 0.
    """
    blocks[points >= manifest.ways + 2, :12] = 0xFF
    low = _NARROW_COUNTER - 1 - points % (manifest.ways + 2)
    blocks[:, 12:] = low.astype(">u4").view(np.uint8).reshape(-1, 4)


def _top_bits(manifest: Manifest) -> int:
    """So many of a tweak's top bits are steered: those that doublings of the widest path push out, eight at least."""
    return max(manifest.ways, 8)


def num_tweaks(manifest: Manifest) -> int:
    """Points of the grid of encrypted tweaks: a single top bit or a run of them, in two bit orders; all ones."""
    return 3 * 2 * _top_bits(manifest) + 1


def steer_tweaks(manifest: Manifest, points: Ints, blocks: NDArray[np.uint8]) -> None:
    """Make ``blocks`` (n x 16, random) the first masks at ``points``.

    Of the W top bits one is set, the rest of the block zero or random; or the top ones are set, in a run of 1 to W,
    the rest random. The top bit is bit 7 of byte 15 (IEEE 1619) or bit 0 of it (GB/T 17964).
    """
    top = _top_bits(manifest)
    which, kind = points % top, points // top % 3
    numbers = np.unpackbits(blocks, axis=1, bitorder="little")[:, ::-1]  # the top bit of IEEE 1619 comes first
    numbers[kind == 0] = 0
    numbers[kind == 1, :top] = 0
    numbers[np.arange(len(points)), which] = 1
    run = (np.arange(top) <= which[:, None]) & (kind == 2)[:, None]
    numbers[:, :top] |= run
    numbers[points == num_tweaks(manifest) - 1] = 1
    made = np.packbits(numbers[:, ::-1], axis=1, bitorder="little")
    turned = points >= 3 * top
    made[turned] = np.packbits(np.unpackbits(made[turned], axis=1, bitorder="little"), axis=1)
    blocks[:] = made


def steer_units(words: U64, blocks: NDArray[np.uint8]) -> None:
    """Make ``blocks`` (n x 16, random) numbers of data units with 1 to 8 low bytes FF, zero above or random."""
    index = np.arange(blocks.shape[1])
    num_ones = 1 + take_bits(words, 0, 3)[:, None]
    blocks[(index >= num_ones) & (take_bits(words, 3, 1) == 1)[:, None]] = 0
    blocks[index < num_ones] = 0xFF


def beyond_the_wrap(manifest: Manifest, points: Ints, lengths: Ints) -> Ints:
    """``lengths`` in bytes, made longer where what is steered at ``points`` would not show within the message."""
    if manifest.iv == "hashed":
        before = points % (manifest.ways + 2) * manifest.block_len
    else:
        before = (points % _top_bits(manifest) + 1) * manifest.block_len
    return np.where(lengths <= before, lengths + before + manifest.block_len, lengths)


_AAD_LENS = (0, 1, 13, 14, 15, 16, 17, 29, 30, 31, 32, 33)
_LONG_AAD_LENS = (0xFEFF, 0xFF00, 0xFF01, 0x10000)
LONGEST_AAD = max(_LONG_AAD_LENS)
LEAST_LONG_AAD = min(_LONG_AAD_LENS)


def steer_aad_lens(words: U64) -> Ints:
    """Lengths of associated data in bytes: about blocks and the headers that CCM puts before it; long ones rarely."""
    usual = np.array(_AAD_LENS)[below(words, 0, len(_AAD_LENS))]
    usual = np.where(take_bits(words, 32, 2) == 0, take_bits(words, 34, 6), usual)
    return np.where(take_bits(words, 40, 10) == 0, np.array(_LONG_AAD_LENS)[take_bits(words, 50, 2)], usual)


def steer_keys(words: U64, keys: NDArray[np.uint8], key_lens: Ints) -> None:
    """Replace one key in four (``keys`` is n x longest, random on entry).

    The others are zeros, ones, have one bit set, or the high bit of every byte.
    """
    kind = take_bits(words, 0, 4)
    keys[kind == 0] = 0
    keys[kind == 1] = 0xFF
    keys[kind == 3] |= 0x80
    single = np.flatnonzero((kind == 2) & (key_lens > 0))
    keys[single] = 0
    bit = below(words[single], 32, key_lens[single] * 8)
    keys[single, bit // 8] = (1 << (bit % 8)).astype(np.uint8)


def steer_parts(words: U64, keys: NDArray[np.uint8], key_len: int, num_parts: int, ignored_bits: int) -> None:
    """Make neighbouring parts of one key in eight alike, which the policy ``degenerate`` refuses.

    Half of them differ in the bits of each byte that the cipher ignores.
    """
    kind, part = take_bits(words, 4, 4), key_len // num_parts
    for index in range(1, num_parts):
        chosen = np.flatnonzero(kind == index)
        there = chosen[:, None], index * part + np.arange(part)
        before = keys[chosen[:, None], (index - 1) * part + np.arange(part)]
        keys[there] = _but_ignored(before, keys[there], words[chosen], ignored_bits)


def _but_ignored(wanted: NDArray[np.uint8], noise: NDArray[np.uint8], words: U64, ignored_bits: int) -> Any:
    """``wanted``, in half of the rows with the ignored bits of ``noise``."""
    mask = np.where(take_bits(words, 12, 1) == 1, ignored_bits, 0).astype(np.uint8)[:, None]
    return (wanted & ~mask) | (noise & mask)


def steer_weak(words: U64, keys: NDArray[np.uint8], manifest: Manifest, legal: NDArray[np.bool_]) -> None:
    """Put a weak part into one of 16 of the ``legal`` keys (random where one is put): each at each place, in turn.

    Half of them have other bits where the cipher ignores them.
    """
    weak = np.array([list(bytes.fromhex(key)) for key in manifest.weak_keys], np.uint8)
    chosen = np.flatnonzero((take_bits(words, 8, 4) == 0) & legal)
    if not len(chosen):
        return
    num_parts = max(manifest.key_lens) // weak.shape[1]
    turn = np.arange(len(chosen)) + int(below(words[:1], 16, len(weak) * num_parts)[0])
    places = turn // len(weak) % num_parts * weak.shape[1]
    there = chosen[:, None], places[:, None] + np.arange(weak.shape[1])
    noise = words[chosen].view(np.uint8).reshape(len(chosen), 8)[:, np.arange(weak.shape[1]) % 8]
    keys[there] = _but_ignored(weak[turn % len(weak)], noise, words[chosen], manifest.ignored_bits)


WRONG_LENGTHS = ("too_long", "more", "fewer", "more_aad", "fewer_aad")
"""How announced lengths are wrong: more data than the nonce leaves numbers for, or more or fewer bytes than come."""


def steer_announced(words: U64, kinds: Ints, lens: tuple[Ints, Ints, Ints]) -> tuple[Ints, Ints]:
    """Announced bytes of associated data and of data, wrong by ``kinds``; ``lens`` are what comes and the nonce's.

    None is negative: where no byte comes one more is announced. A nonce of 7 bytes leaves 8 to the length, which
    nothing exceeds: there 2^62 bytes are announced and do not come.
    """
    aad_len, data_len, iv_len = lens
    by, ways = 1 + take_bits(words, 0, 4), [kinds == index for index in range(len(WRONG_LENGTHS))]
    more = np.where(take_bits(words, 4, 1) == 0, 1, by)
    limit = np.int64(1) << np.minimum(8 * (15 - iv_len), 62)
    fewer_data, fewer_aad = (np.where(n > 0, n - np.minimum(more, n), n + more) for n in (data_len, aad_len))
    data = np.select(ways[:3], [limit + (more - 1), data_len + more, fewer_data], data_len)
    return np.select(ways[3:], [aad_len + more, fewer_aad], aad_len), data


def steer_overlaps(words: U64, lengths: Ints) -> Ints:
    """Bytes, signed, from input to output of calls on ``lengths`` bytes (2 at least) each, so that they overlap.

    Three of four are 1 to 16, the others as far apart as overlapping buffers can be, in either direction.
    """
    most = lengths - 1
    distance = np.where(take_bits(words, 0, 2) == 0, most, np.minimum(1 + take_bits(words, 2, 4), most))
    return np.where(take_bits(words, 6, 1) == 0, distance, -distance)


@lru_cache(maxsize=64)
def two_pieces(manifest: Manifest) -> tuple[Ints, Ints]:
    """Every way to cut a message of up to four blocks into two calls: its length and the first piece's, in bytes."""
    pairs = [(n, cut) for n in length_grid(manifest).tolist() if n <= 4 * manifest.block_len for cut in range(n + 1)]
    lengths, cuts = np.array(pairs, np.int64).reshape(-1, 2).T
    return lengths, cuts


def steer_pieces(manifest: Manifest, lengths: Ints, num_pieces: Ints, words: U64) -> Ints:
    """Cut messages into ``num_pieces`` (1..5): n x 5 piece lengths in bytes, the rest in the last piece.

    Pieces are empty, one byte, three, a block less or more one, a block, or random; whole blocks where the mode splits
    only there. ``words`` has five rows of n.
    """
    bs, whole = manifest.block_len, manifest.split == "block"
    table = np.array(
        [0, bs, 2 * bs, (manifest.ways - 1) * bs, manifest.ways * bs] if whole else [0, 1, 3, bs - 1, bs, bs + 1]
    )
    pieces = np.zeros((len(lengths), 5), np.int64)
    left = lengths.copy()
    for i in range(4):
        choice = below(words[i], 0, len(table) + 2)
        random_cut = below(words[i], 32, left + 1)
        cut = np.where(choice < len(table), table[np.minimum(choice, len(table) - 1)], random_cut)
        cut = np.minimum(cut, left)
        if whole:
            cut = cut // bs * bs
        cut = np.where(num_pieces > i + 1, cut, left)
        pieces[:, i] = np.where(num_pieces > i, cut, 0)
        left = left - pieces[:, i]
    pieces[:, 4] = left
    return pieces
