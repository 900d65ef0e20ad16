# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosslane.draws import Draws, below, take_bits

WORDS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20)


def array(words: list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    return np.array(words, np.uint64)


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [
        (0, 2**256 - 1, (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B)),
        (2**128 - 1, 2**256 - 2, (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0)),
    ],
)
def test_numpy_gives_the_philox4x64_10_of_its_authors(key: int, counter: int, words: tuple[int, ...]) -> None:
    # Random123, tests/kat_vectors: counter and key all zeros, all ones. numpy counts before it draws.
    assert np.random.Philox(key=key, counter=counter).random_raw(4).tolist() == list(words)


def test_the_first_words_of_two_batches_are_pinned() -> None:
    assert Draws("0123456789abcdef", 0).words(3).tolist() == [
        0xD797CDF65F5AF878,
        0xE58F660E9500D8C9,
        0xEA4CDC67E9214811,
    ]
    assert Draws("0123456789abcdef", 7).words(3).tolist() == [
        0xB9E275A2096AA958,
        0xFA053063030921CE,
        0x0DC9A9597F9B665E,
    ]


def test_a_stream_follows_from_digest_and_batch_as_documented() -> None:
    key = int.from_bytes(hashlib.sha256(b"crosslane draws d").digest()[:16], "little")
    expected = np.random.Philox(key=key, counter=5 << 128).random_raw(8)
    assert Draws("d", 5).words(8).tolist() == expected.tolist()
    for other in (Draws("d", 4), Draws("e", 5), Draws("d", 5, stream=1)):
        assert not set(other.words(8).tolist()) & set(expected.tolist())


def test_words_tables_and_data_continue_one_stream() -> None:
    whole = Draws("d", 1).words(20)
    draws = Draws("d", 1)
    assert draws.words(2).tolist() == whole[:2].tolist()
    assert draws.table(3, 2).tolist() == [whole[2:5].tolist(), whole[5:8].tolist()]
    data = draws.data(13)
    assert data.tobytes() == whole[8:10].astype("<u8").tobytes()[:13]
    assert draws.words(1)[0] == whole[10]
    assert len(draws.data(0)) == 0
    assert len(draws.words(0)) == 0


@given(words=WORDS, shift=st.integers(0, 63), count=st.integers(1, 32))
def test_take_bits_is_a_shift_and_a_mask(words: list[int], shift: int, count: int) -> None:
    assert take_bits(array(words), shift, count).tolist() == [word >> shift & ((1 << count) - 1) for word in words]


@given(words=WORDS, shift=st.integers(0, 32), limit=st.integers(1, 2**32))
def test_below_scales_32_bits(words: list[int], shift: int, limit: int) -> None:
    numbers = below(array(words), shift, limit).tolist()
    assert numbers == [(word >> shift & 0xFFFFFFFF) * limit >> 32 for word in words]
    assert all(0 <= number < limit for number in numbers)


def test_below_reaches_both_ends_and_takes_a_limit_for_each_word() -> None:
    assert below(array([0, 2**32 - 1]), 0, 10).tolist() == [0, 9]
    assert below(array([2**32 - 1] * 3), 0, np.array([1, 2, 1000])).tolist() == [0, 1, 999]


def test_below_is_even() -> None:
    counts = np.bincount(below(Draws("even", 0).words(60_000), 7, 6), minlength=6)
    assert abs(counts - 10_000).max() < 500
