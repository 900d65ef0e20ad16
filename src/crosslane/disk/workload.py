# SPDX-License-Identifier: Apache-2.0
"""Draws the sector workload: disks, the sectors that are written and read on them, and where buffers lie.

A pure function of the manifest and the number of a batch, like all cases. A disk has a cipher specification, a key, a
length of sector and a place near an edge of the sector numbers. Writes come first; reads then read what they wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosslane.disk.ivs import U64, EncryptBlocks, Generate, make_ivs, sector_numbers
from crosslane.disk.sectors import Request
from crosslane.disk.spec import SECTOR_LENS, CipherSpec, specs_of
from crosslane.draws import Draws, below, take_bits
from crosslane.manifest import Manifest

__all__ = ["EDGES", "SECTORS_PER_DISK", "Disk", "draw_disks", "num_disks", "reads", "writes"]

EDGES = (0, 1 << 32, 1 << 64, 1 << 31, 1 << 63, 1 << 8, 1 << 16, 1 << 48, 1 << 59)
"""Sector numbers that disks lie across, the two of the 32-bit and the 64-bit generators first."""
SECTORS_PER_DISK = 32
_REQUEST_LENS = (1, 2, 9, 16, 4)
"""Sectors of the requests of a disk, which are made in the order of the disk and read in another one."""
_READ_LENS = (16, 3, 1, 12)
_STREAM = 7
"""Of the draws of a batch: no other part of generation takes words from it."""


@dataclass(frozen=True)
class Disk:
    """One disk: ``data`` is what is written to it, of shape (SECTORS_PER_DISK, sector_len), and ``first`` its first
    sector in units of 512 bytes; ``words`` lay out buffers.
    """

    spec: CipherSpec
    key: bytes
    sector_len: int
    large: bool
    first: int
    data: NDArray[np.uint8]
    words: U64

    @property
    def numbers(self) -> U64:
        """The numbers of its sectors for the iv generator."""
        return sector_numbers(self.first, SECTORS_PER_DISK, self.sector_len, large=self.large)

    def ivs(self, block_len: int, encrypt: EncryptBlocks, generate: Generate = make_ivs) -> NDArray[np.uint8]:
        """The ivs of its sectors."""
        return generate(self.spec.generator, self.key, self.numbers, block_len, encrypt)


def num_disks(manifest: Manifest) -> int:
    """Disks of one batch: each generator with both lengths of sectors and both ways to count the large ones."""
    return len(_specs(manifest)) * 3


def _specs(manifest: Manifest) -> tuple[CipherSpec, ...]:
    mode, _, cipher = manifest.algorithm.rstrip(")").partition("(")
    return specs_of(cipher, mode, manifest.key_lens)


def draw_disks(manifest: Manifest, number: int) -> list[Disk]:
    """The disks of batch ``number``."""
    draws = Draws(manifest.digest, number, stream=_STREAM)
    specs = _specs(manifest)
    return [
        _disk(manifest, draws, spec, kind, number * num_disks(manifest) + index * 3 + kind)
        for index, spec in enumerate(specs)
        for kind in range(3)
    ]


def _disk(manifest: Manifest, draws: Draws, spec: CipherSpec, kind: int, turn: int) -> Disk:
    words = draws.words(4)
    legal = manifest.key_lens
    key_len = legal[int(below(words[:1], 0, len(legal))[0])] * manifest.num_keys + manifest.key_extra_len
    key = draws.data(key_len).tobytes()
    sector_len = SECTOR_LENS[kind > 0]
    step = sector_len // 512
    before = 1 + int(below(words[1:2], 0, SECTORS_PER_DISK)[0])
    edge = EDGES[(turn // 3 + turn) % len(EDGES)] * (step if kind == 2 else 1)
    first = (edge - before * step) % (1 << 64) if edge else 0
    data = draws.data(SECTORS_PER_DISK * sector_len).reshape(SECTORS_PER_DISK, sector_len)
    return Disk(spec, key, sector_len, kind == 2, first - first % step, data, draws.words(SECTORS_PER_DISK * 16))


def _pieces(manifest: Manifest, sector_len: int, word: int) -> tuple[int, ...]:
    """The buffers that a sector is scattered over: one where the mode takes no message in pieces."""
    if manifest.split == "none" or word % 2 == 0:
        return (sector_len,)
    if word % 4 == 1:
        return (sector_len // 4,) * 4
    first = manifest.block_len * (1 + (word >> 2) % (sector_len // manifest.block_len - 2))
    return (first, sector_len - first)


def _requests(
    manifest: Manifest,
    disk: Disk,
    ivs: NDArray[np.uint8],
    data: NDArray[np.uint8],
    ranges: Sequence[tuple[int, int]],
    *,
    decrypting: bool,
) -> list[Request]:
    made = []
    for at, (begin, end) in enumerate(ranges):
        word = int(take_bits(disk.words[at : at + 1], 20 + 10 * decrypting, 10)[0])
        pieces = _pieces(manifest, disk.sector_len, word)
        words = np.roll(disk.words, 64 * decrypting + at)[: (end - begin) * len(pieces)]
        made.append(Request(disk.key, decrypting, ivs[begin:end], data[begin:end], pieces, words))
    return made


def _ranges(lens: Sequence[int]) -> list[tuple[int, int]]:
    ends = np.cumsum(lens).tolist()
    return [(end - length, end) for end, length in zip(ends, lens, strict=True)]


def writes(manifest: Manifest, disk: Disk, ivs: NDArray[np.uint8]) -> list[Request]:
    """The writes of a disk, which cover it."""
    return _requests(manifest, disk, ivs, disk.data, _ranges(_REQUEST_LENS), decrypting=False)


def reads(manifest: Manifest, disk: Disk, ivs: NDArray[np.uint8], stored: NDArray[np.uint8]) -> list[Request]:
    """The reads of a disk that holds ``stored``, which cover it with other requests, the last ones first."""
    ranges = _ranges(_READ_LENS)[::-1]
    return _requests(manifest, disk, ivs, stored, ranges, decrypting=True)
