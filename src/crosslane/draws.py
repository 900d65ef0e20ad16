# SPDX-License-Identifier: Apache-2.0
"""Random draws that every machine and every numpy repeats: raw Philox words and our own mapping of them.

numpy promises a stable stream for ``Philox.random_raw`` only, not for what a ``Generator`` makes of it.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

__all__ = ["Draws", "below", "take_bits"]

U64 = NDArray[np.uint64]


class Draws:
    """A stream of 64-bit words for one batch of one manifest."""

    def __init__(self, digest: str, batch: int, *, stream: int = 0) -> None:
        """``digest`` names the manifest (which holds the seed sentence); each batch has 2^112 words in every stream."""
        key = int.from_bytes(hashlib.sha256(f"crosslane draws {digest}".encode()).digest()[:16], "little")
        self._philox = np.random.Philox(key=key, counter=batch << 128 | stream << 112)

    def words(self, count: int) -> U64:
        """The next ``count`` words."""
        return self._philox.random_raw(count)

    def table(self, rows: int, columns: int) -> U64:
        """The next ``rows * columns`` words, by column: result[c] has ``rows`` words."""
        return self.words(rows * columns).reshape(columns, rows)

    def data(self, length: int) -> NDArray[np.uint8]:
        """``length`` bytes: words in little-endian order."""
        return self.words((length + 7) // 8).astype("<u8", copy=False).view(np.uint8)[:length]


def take_bits(words: U64, shift: int, count: int) -> NDArray[np.int64]:
    """``count`` bits of each word from bit ``shift`` on."""
    return ((words >> np.uint64(shift)) & np.uint64((1 << count) - 1)).astype(np.int64)


def below(words: U64, shift: int, limit: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers in [0, limit) from the 32 bits of each word from bit ``shift`` on, by multiplication.

    ``limit`` is at most 2^32; no number is more likely than another by more than limit / 2^32.
    """
    bits = (words >> np.uint64(shift)) & np.uint64(0xFFFFFFFF)
    return ((bits * np.asarray(limit, np.uint64)) >> np.uint64(32)).astype(np.int64)
