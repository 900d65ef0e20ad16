# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crosslane import steer
from crosslane.draws import Draws
from crosslane.manifest import Manifest

MakeManifest = Callable[..., Manifest]
BOUNDARIES = (8, 16, 24, 32, 40, 48, 56, 64, 96, 120, 128)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"ways": 8}, list(range(18 * 16 + 1))),
        ({"ways": 1, "block_len": 8}, list(range(4 * 8 + 1))),
        ({"ways": 8, "partial": "refused"}, list(range(0, 18 * 16 + 1, 16))),
        ({"ways": 16, "partial": "stealing", "min_len_blocks": 1}, list(range(16, 34 * 16 + 1))),
    ],
)
def test_the_length_grid_holds_every_legal_length_beyond_twice_the_width(
    make_manifest: MakeManifest, facts: dict[str, Any], expected: list[int]
) -> None:
    assert steer.length_grid(make_manifest(**facts)).tolist() == expected


@pytest.mark.parametrize("ways", [1, 2, 8, 16])
@pytest.mark.parametrize("block_len", [8, 16])
def test_the_size_grid_holds_the_neighbours_of_five_multiples_of_each_step_with_every_tail(
    make_manifest: MakeManifest, ways: int, block_len: int
) -> None:
    sizes, large = steer.size_grid(make_manifest(ways=ways, block_len=block_len))
    for step in {ways, max(1, ways // 2), max(1, ways // 4)}:
        for k in range(1, 6):
            for blocks in (k * step - 1, k * step, k * step + 1):
                assert set(range(blocks * block_len, (blocks + 1) * block_len)) <= set(sizes.tolist())
    assert sizes.max() == (5 * ways + 2) * block_len - 1
    assert large.tolist() == [1024, 4095, 4096, 4097, 8192, 24 * 1024 + 1]


def test_sizes_are_legal_for_the_mode(make_manifest: MakeManifest) -> None:
    sizes, large = steer.size_grid(make_manifest(partial="refused"))
    assert not np.any(sizes % 16)
    assert large.tolist() == [1024, 4080, 4096, 8192, 24576]
    assert steer.size_grid(make_manifest(partial="stealing", min_len_blocks=2))[0].min() == 32


@pytest.mark.parametrize("block_len", [8, 16])
def test_a_row_of_the_counter_grid_carries_after_as_many_blocks_as_it_says(
    make_manifest: MakeManifest, block_len: int
) -> None:
    values, masks, distances = steer.counter_grid(make_manifest(block_len=block_len, ways=4))
    rows = set()
    for value, mask, distance in zip(values, masks, distances.tolist(), strict=True):
        bits = int.from_bytes(mask.tobytes(), "big").bit_length()
        low = int.from_bytes(value.tobytes(), "big")
        assert (low + distance) % (1 << bits) == 0
        assert low < 1 << bits
        rows.add((bits, distance))
    assert rows == {(bits, j) for bits in BOUNDARIES if bits <= 8 * block_len for j in range(6)}


def as_bytes(words: Any) -> Any:
    return np.ascontiguousarray(words).view(np.uint8).reshape(len(words), -1)


@pytest.mark.parametrize("block_len", [8, 16])
def test_counters_are_at_their_point_of_the_grid(make_manifest: MakeManifest, block_len: int) -> None:
    manifest = make_manifest(block_len=block_len)
    values, masks, distances = steer.counter_grid(manifest)
    count, num_rows = steer.num_counters(manifest), len(distances)
    assert count == num_rows * 6  # upper bits random, ones, zeros; both byte orders
    random = Draws("counters", 0).words(count * block_len // 8).reshape(count, -1)
    steered = as_bytes(steer.steer_counters(manifest, np.arange(count), random.copy()))
    for point in range(count):
        row, kind, turned = point % num_rows, point // num_rows % 3, point // num_rows >= 3
        value, mask = (int.from_bytes(part[row].tobytes(), "big") for part in (values, masks))
        upper = (int.from_bytes(random[point].tobytes(), "big"), (1 << 8 * block_len) - 1, 0)[kind]
        expected = (upper & ~mask | value).to_bytes(block_len, "little" if turned else "big")
        assert steered[point].tobytes() == expected, f"point {point}"


def test_a_message_is_made_long_enough_for_its_counter_to_carry(make_manifest: MakeManifest) -> None:
    manifest = make_manifest()
    _, _, distances = steer.counter_grid(manifest)
    points = np.arange(steer.num_counters(manifest))
    before = distances[points % len(distances)] * 16
    for length in (0, 1, 16, 100, 1000):
        lengths = steer.beyond_the_carry(manifest, points, np.full(len(points), length))
        assert (lengths > before).all()
        assert (lengths % 16 == length % 16).all()
        assert (lengths[before < length] == length).all()


def test_one_key_in_four_is_steered_each_kind_is_there_and_the_rest_stay(make_manifest: MakeManifest) -> None:
    draws = Draws("keys", 0)
    lens = np.arange(4000) % 17
    before = draws.data(4000 * 20).reshape(4000, 20).copy()
    keys = before.copy()
    steer.steer_keys(draws.words(4000), keys, lens)
    untouched = (keys == before).all(axis=1)
    zeros = (keys == 0).all(axis=1)
    ones = (keys == 0xFF).all(axis=1)
    high = (keys == before | 0x80).all(axis=1) & ~untouched
    single = np.unpackbits(keys, axis=1).sum(axis=1) == 1
    assert (untouched | zeros | ones | high | single).all()
    for kind in (zeros, ones, high, single):
        assert 0.04 < kind.mean() < 0.09
    assert 0.70 < untouched.mean() < 0.80
    at = np.unpackbits(keys[single], axis=1, bitorder="little").argmax(axis=1)
    assert (at < 8 * lens[single]).all()  # the bit is in the key, not behind it
    assert len(set(at.tolist())) > 60


@pytest.mark.parametrize("split", ["byte", "block"])
def test_pieces_add_up_and_are_as_many_as_asked(make_manifest: MakeManifest, split: str) -> None:
    manifest = make_manifest(split=split)
    draws = Draws("pieces", 0)
    count = 4000
    lengths = np.arange(count) % 40 * 16
    wanted = 1 + np.arange(count) // 40 % 5
    pieces = steer.steer_pieces(manifest, lengths, wanted, draws.table(count, 5))
    assert (pieces.sum(axis=1) == lengths).all()
    assert (pieces >= 0).all()
    beyond = np.arange(5)[None, :] >= wanted[:, None]
    assert not pieces[beyond].any()
    if split == "block":
        assert not np.any(pieces % 16)
        assert {0, 16, 32, 7 * 16, 8 * 16} <= set(pieces[wanted == 5].ravel().tolist())
    else:
        assert {0, 1, 3, 15, 16, 17} <= set(pieces[wanted == 5][:, 0].tolist())
        assert np.any(pieces % 16)
    for place in range(5):
        empty = (pieces[:, place] == 0) & (wanted == 5) & (lengths > 0)
        assert empty.any()


def test_associated_data_has_the_lengths_where_headers_change_and_few_long_ones() -> None:
    lens = steer.steer_aad_lens(Draws("aad", 0).words(40_000))
    assert set(range(64)) | {0xFEFF, 0xFF00, 0xFF01, 0x10000} == set(lens.tolist())
    assert 0 < (lens > 63).mean() < 0.002
    assert steer.LONGEST_AAD == 0x10000
    for length in (0, 1, 13, 14, 15, 16, 17, 29, 30, 31, 32, 33):
        assert (lens == length).mean() > 0.05


def test_neighbouring_parts_of_a_key_are_made_alike() -> None:
    words = Draws("0" * 16, 0).words(4000)
    keys = Draws("0" * 16, 1).data(4000 * 24).reshape(4000, 24).copy()
    before = keys.copy()
    steer.steer_parts(words, keys, 24, 3, 0)
    first, second = (keys[:, :8] == keys[:, 8:16]).all(1), (keys[:, 8:16] == keys[:, 16:]).all(1)
    assert 150 < first.sum() < 350
    assert 150 < second.sum() < 350
    alike = first | second
    assert (keys[~alike] == before[~alike]).all()


def test_half_of_the_parts_made_alike_differ_in_the_bits_that_the_cipher_ignores() -> None:
    words = Draws("0" * 16, 0).words(4000)
    keys = Draws("0" * 16, 1).data(4000 * 24).reshape(4000, 24).copy()
    steer.steer_parts(words, keys, 24, 3, 0x01)
    exactly = (keys[:, :8] == keys[:, 8:16]).all(1)
    alike = ((keys[:, :8] | 1) == (keys[:, 8:16] | 1)).all(1)
    assert 150 < alike.sum() < 350
    assert 0.4 < exactly[alike].mean() < 0.6


WEAK: dict[str, Any] = {
    "block_len": 8, "key_lens": (24,), "policies": ("degenerate", "weak_subkey"), "ignored_bits": 1,
    "weak_keys": tuple(bytes([i, 0xF0 | i] * 4).hex() for i in range(2, 18, 2)),
}  # fmt: skip


def test_each_weak_part_is_put_at_each_place_with_and_without_the_bits_that_are_ignored(
    make_manifest: Callable[..., Manifest],
) -> None:
    manifest = make_manifest(**WEAK)
    words = Draws("0" * 16, 0).words(4000)
    keys = Draws("0" * 16, 1).data(4000 * 24).reshape(4000, 24).copy()
    before, legal = keys.copy(), np.arange(4000) % 4 != 0
    steer.steer_weak(words, keys, manifest, legal)
    changed = np.flatnonzero((keys != before).any(axis=1))
    assert 150 < len(changed) < 230
    assert legal[changed].all()
    found: dict[tuple[str, int], set[bool]] = {}
    for key in keys[changed]:
        for place in range(3):
            part = key[8 * place : 8 * place + 8]
            name = (part & 0xFE).tobytes().hex()
            if name in manifest.weak_keys:
                found.setdefault((name, place), set()).add(part.tobytes().hex() != name)
    assert found.keys() == {(name, place) for name in manifest.weak_keys for place in range(3)}
    assert sum(both == {False, True} for both in found.values()) > 20


def test_a_key_with_a_weak_part_is_otherwise_random(make_manifest: Callable[..., Manifest]) -> None:
    words = Draws("0" * 16, 0).words(4000)
    keys = Draws("0" * 16, 1).data(4000 * 24).reshape(4000, 24).copy()
    before = keys.copy()
    steer.steer_weak(words, keys, make_manifest(**WEAK), np.ones(4000, bool))
    for key, was in zip(keys, before, strict=True):
        assert sum((key[8 * i : 8 * i + 8] != was[8 * i : 8 * i + 8]).any() for i in range(3)) <= 1


def test_an_index_has_every_number_of_trailing_ones_and_comes_to_all_ones_from_everywhere(
    make_manifest: Callable[..., Manifest],
) -> None:
    manifest = make_manifest(iv="index")
    values, masks, distances = steer.counter_grid(manifest)
    rows = {
        (int.from_bytes(value.tobytes(), "big"), int.from_bytes(mask.tobytes(), "big"), distance)
        for value, mask, distance in zip(values, masks, distances.tolist(), strict=True)
    }
    for ones in range(128):
        assert ((1 << ones) - 1, (1 << ones + 1) - 1, 1) in rows
    full = (1 << 128) - 1
    for j in range(manifest.ways + 2):
        assert (full - j, full, j + 1) in rows
    points = np.arange(steer.num_counters(manifest))
    noise = np.random.default_rng(1).integers(0, 1 << 64, (len(points), 2), dtype=np.uint64)
    made = [int.from_bytes(row.tobytes(), "big") for row in steer.steer_counters(manifest, points, noise)]
    trailing = {(value ^ (value + 1)).bit_length() - 1 for value in made}
    assert trailing == set(range(129))
