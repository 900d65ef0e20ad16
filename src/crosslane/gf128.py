# SPDX-License-Identifier: Apache-2.0
"""GF(2^128) in GCM's bit order (NIST SP 800-38D, section 6.3), many elements at once.

An array of elements is n x 2 words: the block's two halves read big-endian. The first bit, the most significant one of
the first word, is the coefficient of x^0, so that multiplication by x shifts to the right.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["elements_of", "inverse", "multiply", "square"]

Elements = NDArray[np.uint64]

_ONE_BYTE = 256
_REDUCTION = 0xE1 << 56
"""x^128 = 1 + x + x^2 + x^7, in the first word."""


def elements_of(blocks: NDArray[np.uint8]) -> Elements:
    """Blocks, n x 16 bytes, as elements; ``elements.astype('>u8').view(np.uint8)`` are the blocks again."""
    return np.ascontiguousarray(blocks).view(">u8").astype(np.uint64).reshape(-1, 2)


def _times_x(element: Elements) -> Elements:
    high, low = element[:, 0], element[:, 1]
    out = (low & np.uint64(1)) * np.uint64(_REDUCTION)
    return np.stack([high >> np.uint64(1) ^ out, low >> np.uint64(1) | high << np.uint64(63)], 1)


@lru_cache(maxsize=1)
def _pushed_out() -> Elements:
    """What four coefficients that a shift by x^4 pushes out come back as, in the first word."""
    made = np.zeros((16, 2), np.uint64)
    made[:, 1] = np.arange(16)
    for _ in range(4):
        made = _times_x(made)
    return made[:, 0].copy()


def _multiples(element: Elements) -> Elements:
    """16 x n x 2: each element times each polynomial below degree 4; bit 3 of the index is the coefficient of x^0."""
    table = np.zeros((16, *element.shape), np.uint64)
    power = element
    for bit in (8, 4, 2, 1):
        table[bit] = power
        power = _times_x(power)
    for bit in (2, 4, 8):
        table[bit + 1 : 2 * bit] = table[bit] ^ table[1:bit]
    return table


def multiply(one: Elements, other: Elements) -> Elements:
    """Products of elements, pair by pair: Horner's rule in x^4, from the last four coefficients to the first."""
    count, table, pushed = len(one), _multiples(one), _pushed_out()
    tables = table[:, :, 0].reshape(-1), table[:, :, 1].reshape(-1)
    nibbles = (other[:, ::-1, None] >> np.arange(0, 64, 4, dtype=np.uint64) & np.uint64(15)).view(np.int64)
    places = nibbles.reshape(count, 32).T * count + np.arange(count)
    four, most, last = np.uint64(4), np.uint64(60), np.uint64(15)
    high, low = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    for place in places:
        back = pushed.take((low & last).view(np.int64))
        low = (low >> four | high << most) ^ tables[1].take(place)
        high = high >> four ^ back ^ tables[0].take(place)
    return np.stack([high, low], 1)


@lru_cache(maxsize=8)
def _power_table(exponent: int) -> NDArray[np.uint64]:
    """x^(2^exponent) as a linear map: 16 x 256 x 2, the image of each value of each byte."""
    images = np.zeros((128, 2), np.uint64)
    bits = np.uint64(1) << np.arange(63, -1, -1, dtype=np.uint64)
    images[:64, 0], images[64:, 1] = bits, bits
    for _ in range(exponent):
        images = multiply(images, images) if exponent == 1 else square(images)
    table = np.zeros((16, _ONE_BYTE, 2), np.uint64)
    for byte in range(16):
        for bit in range(8):  # from the least significant one, which has the highest coefficient
            table[byte, 1 << bit : 2 << bit] = table[byte, : 1 << bit] ^ images[8 * byte + 7 - bit]
    return table


def _raise(element: Elements, exponent: int) -> Elements:
    """element^(2^exponent)."""
    table = _power_table(exponent)
    values = element.astype(">u8").view(np.uint8).reshape(-1, 16)
    powers: Elements = table[0][values[:, 0]]
    for byte in range(1, 16):
        powers ^= table[byte][values[:, byte]]
    return powers


def square(element: Elements) -> Elements:
    """Squares, through a linear map."""
    return _raise(element, 1)


def inverse(element: Elements) -> Elements:
    """Inverses; 0 of 0. Fermat, element^(2^128 - 2), by the chain of Itoh and Tsujii: a(n) = element^(2^n - 1)."""
    power, length = element, 1
    for _ in range(6):  # 127 has seven binary digits, all ones
        power = multiply(_raise(power, length), power)
        power, length = multiply(square(power), element), 2 * length + 1
    return square(power)
