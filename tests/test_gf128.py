# SPDX-License-Identifier: Apache-2.0
"""The field against the bit-by-bit algorithm of SP 800-38D and the values of its test cases."""

from __future__ import annotations

import numpy as np
import pytest

from crosslane.gf128 import elements_of, inverse, multiply, square

ONE = 1 << 127


def by_the_standard(one: int, other: int) -> int:
    """Algorithm 1 of SP 800-38D, section 6.3."""
    product, shifted = 0, other
    for bit in range(128):
        if one >> (127 - bit) & 1:
            product ^= shifted
        shifted = shifted >> 1 ^ (0xE1 << 120 if shifted & 1 else 0)
    return product


def pack(values: list[int]) -> np.ndarray:
    return elements_of(np.frombuffer(b"".join(value.to_bytes(16, "big") for value in values), np.uint8).reshape(-1, 16))


def unpack(elements: np.ndarray) -> list[int]:
    return [int.from_bytes(row.astype(">u8").tobytes(), "big") for row in elements]


def numbers(count: int, seed: int) -> list[int]:
    raw = np.random.default_rng(seed).bytes(16 * count)
    return [0, ONE, 1, (1 << 128) - 1, *(int.from_bytes(raw[i : i + 16], "big") for i in range(0, 16 * count, 16))]


def test_products_are_those_of_the_standard() -> None:
    one, other = numbers(60, 1), numbers(60, 2)[::-1]
    assert unpack(multiply(pack(one), pack(other))) == [by_the_standard(a, b) for a, b in zip(one, other, strict=True)]


def test_a_published_product() -> None:
    """McGrew and Viega, The Galois/Counter Mode of Operation, test case 2: X1 * H of one block of ciphertext."""
    h, c = 0x66E94BD4EF8A2C3B884CFA59CA342B2E, 0x0388DACE60B6A392F328C2B971B2FE78
    assert unpack(multiply(pack([c]), pack([h]))) == [0x5E2EC746917062882C85B0685353DEB7]


def test_squares_are_products() -> None:
    values = numbers(60, 3)
    assert unpack(square(pack(values))) == [by_the_standard(a, a) for a in values]


@pytest.mark.parametrize("count", [1, 300])
def test_an_inverse_times_its_element_is_one(count: int) -> None:
    values = numbers(count, 4)[1:]
    assert set(unpack(multiply(inverse(pack(values)), pack(values)))) == {ONE}


def test_zero_has_itself() -> None:
    assert unpack(inverse(pack([0]))) == [0]
    assert inverse(pack([])).shape == (0, 2)
