# SPDX-License-Identifier: Apache-2.0
"""The iv generators of dm-crypt, for many sectors at once.

As the kernel's documentation of dm-crypt and the wiki of cryptsetup define them: ``plain`` is the number of the sector
in 32 bits, little-endian; ``plain64`` in 64 bits; ``plain64be`` in 64 bits, big-endian, at the end of the iv; ``benbi``
the number of the sector's first block in 64 bits, big-endian, counted from 1; ``essiv`` the number of ``plain64``,
encrypted by the cipher under the SHA-256 of the key. What is left of an iv is zero.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["EncryptBlocks", "Generate", "essiv_key", "make_ivs", "sector_numbers"]

Bytes = NDArray[np.uint8]
U64 = NDArray[np.uint64]
EncryptBlocks = Callable[[bytes, Bytes], Bytes]
"""A key, and blocks of shape (n, block_len): their encryptions, by the block cipher alone."""
Generate = Callable[[str, bytes, U64, int, EncryptBlocks], Bytes]
"""What ``make_ivs`` is."""
_SECTOR_LEN = 512


def sector_numbers(first: int, count: int, sector_len: int, *, large: bool) -> U64:
    """The numbers that ``count`` sectors behind each other have for their iv generator, modulo 2^64.

    ``first`` counts units of 512 bytes, as all sectors of a disk are counted. So do larger sectors, which go up by more
    than one, unless ``large`` (iv_large_sectors): then they are counted themselves.
    """
    step = sector_len // _SECTOR_LEN
    begin, by = (first // step, 1) if large else (first, step)
    return np.uint64(begin) + np.arange(count, dtype=np.uint64) * np.uint64(by)


def essiv_key(key: bytes) -> bytes:
    """The key of essiv:sha256 for the whole key of a mode."""
    return hashlib.sha256(key).digest()


def make_ivs(generator: str, key: bytes, numbers: U64, iv_len: int, encrypt: EncryptBlocks) -> Bytes:
    """The ivs, of shape (n, iv_len), of sectors with these numbers; ``encrypt`` is asked for essiv alone."""
    ivs = np.zeros((len(numbers), iv_len), np.uint8)
    if generator == "plain":
        ivs[:, :4] = (numbers & np.uint64(0xFFFFFFFF)).astype("<u4").view(np.uint8).reshape(-1, 4)
    elif generator == "plain64be":
        ivs[:, -8:] = numbers.astype(">u8").view(np.uint8).reshape(-1, 8)
    elif generator == "benbi":
        shift = np.uint64((_SECTOR_LEN // iv_len).bit_length() - 1)
        ivs[:, -8:] = ((numbers << shift) + np.uint64(1)).astype(">u8").view(np.uint8).reshape(-1, 8)
    else:
        ivs[:, :8] = numbers.astype("<u8").view(np.uint8).reshape(-1, 8)
    return encrypt(essiv_key(key), ivs) if generator == "essiv:sha256" else ivs
