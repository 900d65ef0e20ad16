# SPDX-License-Identifier: Apache-2.0
"""The mutator of fuzz targets, and the form of their inputs."""

from __future__ import annotations

import numpy as np
import pytest

from crosslane.data import data_root
from crosslane.plan import native_lane
from crosslane.registry import load_registry
from crosslane.targets.mutator import GIVEN, HEADER_LEN, RECORD_LEN, Mutator, given_code, length_code, records
from crosslane.targets.rows import FAMILIES, choose

EMPTY = bytes(HEADER_LEN)


def record(kind: int, length: int, data: bytes) -> bytes:
    code, eightfold = length_code(length)
    given = given_code(len(data))
    return bytes((kind, 4 * eightfold, 128, 128, code & 255, code >> 8, given)) + data.ljust(GIVEN[given], b"\0")


@pytest.fixture(scope="module")
def mutator() -> Mutator:
    registry = load_registry(data_root())
    choice = choose(registry, "streaming", (), native_lane(registry))
    return Mutator([choice.rows[i] for i in choice.chosen], lambda data, _: data + b"engine")


def test_records_are_found_where_they_begin() -> None:
    first, second = record(0, 16, bytes(16)), record(1, 300, bytes(300))
    assert records(EMPTY + first + second) == [HEADER_LEN, HEADER_LEN + len(first)]
    assert records(EMPTY + first[: RECORD_LEN - 1]) == []


def test_codes_give_the_bytes_that_they_are_for() -> None:
    for length in range(2000):
        assert length <= GIVEN[given_code(length)] < length + 64
    assert [length_code(n) for n in (0, 255, 256, 2047)] == [
        (0, False), (255, False), ((248 << 8) + 256, False), (0xFFFF, False)
    ]  # fmt: skip
    assert length_code(8192) == ((248 << 8) + 1024, True)


def test_a_mutation_is_a_function_of_input_and_seed(mutator: Mutator) -> None:
    data = EMPTY + record(0, 64, bytes(range(64))) + record(3, 0, bytes(16))
    for seed in range(2000):
        assert mutator.mutate(data, 4096, seed) == mutator.mutate(data, 4096, seed)


def test_mutations_keep_to_the_size_and_differ(mutator: Mutator) -> None:
    data = EMPTY + record(0, 64, bytes(range(64))) + record(3, 0, bytes(16)) + record(0, 16, b"")
    made = {mutator.mutate(data, 120, seed) for seed in range(0, 4000, 2)}
    assert max(map(len, made)) <= 120
    assert len(made) > 400
    assert {len(records(item)) for item in made} >= {2, 3, 4}


def test_every_second_mutation_is_the_engines_own(mutator: Mutator) -> None:
    data = EMPTY + record(0, 64, bytes(64))
    assert all(mutator.mutate(data, 4096, seed).endswith(b"engine") for seed in range(1, 100, 2))
    assert not any(mutator.mutate(data, 4096, seed).endswith(b"engine") for seed in range(0, 100, 2))


def test_garbage_is_mutated_and_crossed_as_anything_else(mutator: Mutator) -> None:
    drawn = np.random.default_rng(1)
    for seed in range(3000):
        one, other = (drawn.bytes(int(drawn.integers(60))) for _ in range(2))
        assert len(mutator.mutate(one, 64, seed)) <= 70  # the engine's own keeps to it itself
        assert 0 < len(mutator.cross_over(one, other, 64, seed)) <= 64


def test_a_crossover_joins_records_of_both(mutator: Mutator) -> None:
    one = EMPTY + record(0, 16, b"a" * 16) + record(0, 16, b"b" * 16)
    other = EMPTY + record(0, 16, b"c" * 16) + record(0, 16, b"d" * 16)
    made = {mutator.cross_over(one, other, 4096, seed) for seed in range(1024)}
    assert EMPTY + one[HEADER_LEN : HEADER_LEN + 23] + other[HEADER_LEN + 23 :] in made
    assert all(len(records(item)) in (1, 2, 3) for item in made)


def test_each_family_has_a_target_and_cells() -> None:
    registry = load_registry(data_root())
    for family in FAMILIES:
        assert (data_root() / "fuzz" / "targets" / f"{family}.py").is_file()
        assert choose(registry, family, (), native_lane(registry)).cells
