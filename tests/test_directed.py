# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslane import known
from crosslane.compare import compare
from crosslane.conduct import conduct
from crosslane.corpora import MonteCarlo, MonteCarloRound, Vector, VectorFile, VectorGroup, load_vectors
from crosslane.data import data_root
from crosslane.directed import DirectedBatch, select_directed, spread, vector_batch
from crosslane.generate import output_lens
from crosslane.manifest import Manifest
from crosslane.plan import Counts, Selection, make_plans
from crosslane.registry import load_registry
from crosslane.vectors import all_vectors
from crosslane.wire import Edge, Flag, OpKind, Status, batch_len, decode_batch, encode_batch_into

BatchOf = Callable[..., DirectedBatch]


def vector(**changes: Any) -> Vector:
    facts: dict[str, Any] = {
        "id": "1", "line": 3, "kind": "message", "key": b"K" * 16, "iv": b"I" * 16, "aad": b"", "plaintext": b"plain",
        "ciphertext": b"cipher"[:5], "tag": b"", "direction": "both", "expect": "ok", "iterations": 1, "final_key": b"",
        "monte_carlo": None,
    }  # fmt: skip
    return Vector(**{**facts, **changes})


def file_of(*vectors: Vector, algorithm: str = "ctr(toy)", source: str = "paper") -> VectorFile:
    return VectorFile(Path("toy.json"), source, algorithm, (), (VectorGroup("page 1", (), 1, vectors),))


@pytest.fixture
def batch_of(make_manifest: Callable[..., Manifest]) -> BatchOf:
    """The batch of some files for ctr(toy), or a manifest with changes."""

    def make(
        files: Iterable[VectorFile], *, bounded: bool = False, long: bool = False, **changes: Any
    ) -> DirectedBatch:
        return vector_batch(files, make_manifest(**changes), bounded=bounded, long=long)

    return make


def told(directed: DirectedBatch) -> Iterator[tuple[str, int, list[tuple[OpKind, bytes, int]], bytes]]:
    """Name, direction, (kind, data, repeats) of each operation, and the expected output of each case."""
    batch = directed.batch
    for name, case in zip(directed.names, batch.cases, strict=True):
        first, count = int(case["first_op"]), int(case["num_ops"])
        which = np.arange(first, first + count)
        ops = [
            (OpKind(int(op["kind"])), batch.blob[int(op["in_off"]) :][: int(op["in_len"])].tobytes(), int(op["aux0"]))
            for op in batch.ops[which]
        ]
        writes = which[output_lens(batch, which) > 0]
        at = int(batch.ops["out_off"][writes[0]]) if len(writes) else 0
        yield (
            name,
            int(case["decrypting"]),
            ops,
            directed.expected.out[at:][: output_lens(batch, which).sum()].tobytes(),
        )


def test_a_vector_becomes_both_directions_in_two_layouts(batch_of: BatchOf) -> None:
    directed = batch_of([file_of(vector())])
    begin = [(OpKind.SETKEY, b"K" * 16, 0), (OpKind.SETIV, b"I" * 16, 0)]
    end = [(OpKind.FINAL, b"", 0)]
    forwards, backwards = [(OpKind.UPDATE, b"plain", 0)], [(OpKind.UPDATE, b"ciphe", 0)]
    assert list(told(directed)) == [
        ("paper:1:encrypt", 0, begin + forwards + end, b"ciphe"),
        ("paper:1:encrypt:in_place", 0, begin + forwards + end, b"ciphe"),
        ("paper:1:decrypt", 1, begin + backwards + end, b"plain"),
        ("paper:1:decrypt:in_place", 1, begin + backwards + end, b"plain"),
    ]
    updates = directed.batch.ops[directed.batch.ops["kind"] == OpKind.UPDATE]
    assert [bool(flags & Flag.IN_PLACE) for flags in updates["flags"]] == [False, True, False, True]
    assert all(flags & Flag.LAST for flags in updates["flags"])
    assert updates["in_edge"].tolist() == [Edge.END, Edge.MIDDLE] * 2
    assert directed.batch.messages.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("direction", ["encrypt", "decrypt"])
def test_a_vector_for_one_direction_stays_there(batch_of: BatchOf, direction: str) -> None:
    directed = batch_of([file_of(vector(direction=direction))])
    assert directed.names == (f"paper:1:{direction}", f"paper:1:{direction}:in_place")
    assert set(directed.batch.cases["decrypting"].tolist()) == {int(direction == "decrypt")}


@pytest.mark.parametrize(
    ("iterations", "names"),
    [(1_000_000, ["encrypt"]), (10_001, ["encrypt"]), (10_000, ["encrypt", "decrypt"]), (2, ["encrypt", "decrypt"])],
)
def test_a_repeated_vector_runs_once_and_backwards_only_where_that_is_quick(
    batch_of: BatchOf, iterations: int, names: list[str]
) -> None:
    directed = batch_of([file_of(vector(iterations=iterations))], long=iterations == 1_000_000)
    assert list(directed.names) == [f"paper:1:{name}" for name in names]
    updates = directed.batch.ops[directed.batch.ops["kind"] == OpKind.UPDATE]
    assert set(updates["aux0"].tolist()) == {iterations}


def test_long_vectors_stand_apart_and_none_is_lost(batch_of: BatchOf) -> None:
    files = [file_of(vector(id="short", iterations=99_999), vector(id="long", iterations=100_000))]
    names = [batch_of(files, long=long).names for long in (False, True)]
    assert names == [("paper:short:encrypt",), ("paper:long:encrypt",)]


def test_only_messages_of_the_algorithm_are_taken(batch_of: BatchOf) -> None:
    files = [
        file_of(vector(id="a")),
        file_of(vector(id="b"), algorithm="cbc(toy)"),
        file_of(vector(id="d", kind="maintenance"), vector(id="e")),
    ]
    names = batch_of(files).names
    assert {name.split(":")[1] for name in names} == {"a", "e"}
    assert len(names) == 8


BLOCK: dict[str, Any] = {"plaintext": b"p" * 16, "ciphertext": b"c" * 16}
MAC: dict[str, Any] = {"iv": b"", "tag": b"T" * 16, "ciphertext": b""}


@pytest.mark.parametrize(
    ("facts", "changes", "names"),
    [
        (BLOCK, {}, ["encrypt", "decrypt"]),
        (BLOCK, {"directions": ("decrypt",)}, ["decrypt"]),
        (BLOCK, {"key_lens": (24, 32)}, []),
        (BLOCK, {"key_lens": (8,), "num_keys": 2}, ["encrypt", "decrypt"]),
        (BLOCK, {"key_lens": (8,), "num_keys": 2, "equal_keys": False}, []),
        (
            {**BLOCK, "key": b"12345678" * 2 + b"x"},
            {"key_lens": (8,), "num_keys": 2, "key_extra_len": 1},
            ["encrypt", "decrypt"],
        ),
        (
            {**BLOCK, "key": b"12345678abcdefgh"},
            {"key_lens": (8,), "num_keys": 2, "equal_keys": False},
            ["encrypt", "decrypt"],
        ),
        (BLOCK, {"iv_lens": (12,)}, []),
        ({**BLOCK, "iv": b""}, {"iv_lens": ()}, ["encrypt", "decrypt"]),
        (BLOCK, {"min_len": 16, "max_len": 16}, ["encrypt", "decrypt"]),
        (BLOCK, {"min_len": 17}, []),
        (BLOCK, {"max_len": 15}, []),
        ({"plaintext": b"", "ciphertext": b""}, {}, ["encrypt", "decrypt"]),
        ({"plaintext": b"", "ciphertext": b""}, {"empty": False}, []),
        ({**BLOCK, "iterations": 7}, {}, ["encrypt", "decrypt"]),
        ({**BLOCK, "iterations": 7}, {"split": "none"}, []),
        (MAC, {"iv_lens": (), "tag_lens": (16,), "directions": ("encrypt",)}, ["encrypt"]),
        (MAC, {"iv_lens": (), "tag_lens": (12,), "directions": ("encrypt",)}, []),
        (
            {**BLOCK, "tag": b"T" * 16, "expect": "bad_tag"},
            {"tag_lens": (16,), "directions": ("encrypt",)},
            ["decrypt"],
        ),
    ],
)
def test_a_bounded_manifest_takes_only_vectors_within_it(
    batch_of: BatchOf, facts: dict[str, Any], changes: dict[str, Any], names: list[str]
) -> None:
    files = [file_of(vector(**facts))]
    found = [name for name in batch_of(files, bounded=True, **changes).names if not name.endswith("in_place")]
    assert found == [f"paper:1:{name}" for name in names]
    assert len(batch_of(files, bounded=False, **changes).names) >= len(names)


def test_where_nothing_is_done_in_place_vectors_have_one_layout(batch_of: BatchOf) -> None:
    assert batch_of([file_of(vector())], in_place=False).names == ("paper:1:encrypt", "paper:1:decrypt")


@pytest.mark.parametrize(("always", "bits"), [((), 0), (("weak_subkey",), 2), (("degenerate", "weak_subkey"), 3)])
def test_policies_that_are_always_in_force_are_asked_for(batch_of: BatchOf, always: tuple[str, ...], bits: int) -> None:
    assert set(batch_of([file_of(vector())], always_policies=always).batch.cases["policy"].tolist()) == {bits}


def test_some_cases_are_taken_out_with_names_and_answers(batch_of: BatchOf) -> None:
    directed = batch_of([file_of(vector(), vector(id="2", plaintext=b"other one", ciphertext=b"something"))])
    some = select_directed(directed, np.array([6, 1]))
    every = list(told(directed))
    assert list(told(some)) == [every[6], every[1]]
    assert compare(some.batch, some.expected, some.expected.copy()).num_departed == 0


def test_of_very_many_some_are_spread_over_all_sources(batch_of: BatchOf) -> None:
    many = [vector(id=str(number), plaintext=number.to_bytes(5, "big")) for number in range(700)]
    few = [vector(id=str(number)) for number in range(20)]
    directed = batch_of([file_of(*many), file_of(*few, source="book"), file_of(vector(), source="note")])
    assert len(directed.batch) == 4 * 721
    some = spread(directed, 288)
    by_name = {case[0]: case for case in told(directed)}
    kept = list(told(some))
    assert [case[0] for case in kept] == [name for name in directed.names if name in set(some.names)]
    assert all(case == by_name[case[0]] for case in kept)
    sources = [name.split(":")[0] for name in some.names]
    assert [sources.count(name) for name in ("paper", "book", "note")] == [4 * 69, 4 * 8, 4]
    numbers = [int(name.split(":")[1]) for name in some.names if name.startswith("paper:")][::4]
    assert numbers[0] == 0
    assert numbers[-1] > 680
    assert {10, 11} == {after - before for before, after in itertools.pairwise(numbers)}
    assert compare(some.batch, some.expected, some.expected.copy()).num_departed == 0
    assert spread(directed, len(directed.batch)) is directed


def test_all_vectors_run_where_the_full_grids_do_and_some_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = load_registry(data_root())
    vectors, _ = all_vectors(registry, imported=False)
    selection = Selection(("ecb(des3_ede)/des3_ede-generic",), ("x86_64_native", "x86_64_qemu_max"))
    (plan,) = make_plans(registry, selection, counts=Counts.each(0), vectors=vectors).algorithms
    monkeypatch.setattr(known, "MOST_ELSEWHERE", 1 << 20)
    every = conduct(plan)
    count = every.cells[0].num_vectors
    assert (every.cells[1].num_vectors, every.notes) == (count, ())
    monkeypatch.setattr(known, "MOST_ELSEWHERE", 100)
    some = conduct(plan)
    few = some.cells[1].num_vectors
    assert some.cells[0].num_vectors == count
    assert 50 < few < 200 < count
    assert some.notes == (f"of {count:,} cases made of vectors, {few} spread evenly over them run in x86_64_qemu_max",)


AEAD: dict[str, Any] = {"iv": b"N" * 12, "aad": b"head", "tag": b"T" * 8}
ALL_BUT_DATA = [(OpKind.SETKEY, b"K" * 16, 0), (OpKind.SETIV, b"N" * 12, 4), (OpKind.AAD, b"head", 0)]


def test_a_tag_is_given_when_encrypting_and_taken_when_decrypting(batch_of: BatchOf) -> None:
    directed = batch_of([file_of(vector(**AEAD))])
    cases = [case for case in told(directed) if "in_place" not in case[0]]
    encrypted = [(OpKind.UPDATE, b"plain", 0), (OpKind.FINAL, b"", 0), (OpKind.TAG, b"", 0)]
    decrypted = [(OpKind.UPDATE, b"ciphe", 0), (OpKind.FINAL, b"", 0), (OpKind.TAG, b"T" * 8, 0)]
    assert cases == [
        ("paper:1:encrypt", 0, ALL_BUT_DATA + encrypted, b"ciphe" + b"T" * 8),
        ("paper:1:decrypt", 1, ALL_BUT_DATA + decrypted, b"plain"),
    ]
    assert set(directed.batch.cases["tag_len"].tolist()) == {8}
    begins = directed.batch.ops[directed.batch.ops["kind"] == OpKind.SETIV]
    assert {(4, 5)} == set(zip(begins["aux0"].tolist(), begins["aux1"].tolist(), strict=True))
    assert not directed.expected.statuses.any()


def test_a_wrong_tag_is_refused_and_nothing_put_out(batch_of: BatchOf) -> None:
    directed = batch_of([file_of(vector(**AEAD, expect="bad_tag"))])
    assert directed.names == ("paper:1:decrypt", "paper:1:decrypt:in_place")
    assert not directed.expected.out.any()
    tags = directed.batch.ops["kind"] == OpKind.TAG
    assert set(directed.expected.statuses[tags].tolist()) == {Status.BAD_TAG}
    assert not directed.expected.statuses[~tags].any()
    released = directed.expected.copy()
    released.out[3] = 1
    assert compare(directed.batch, directed.expected, released).num_departed == 1


def test_a_mac_puts_out_its_tag_alone(batch_of: BatchOf) -> None:
    directed = batch_of([file_of(vector(iv=b"", tag=b"T" * 16, ciphertext=b""))], directions=("encrypt",))
    assert [(case[0], case[3]) for case in told(directed)] == [
        ("paper:1:encrypt", b"T" * 16),
        ("paper:1:encrypt:in_place", b"T" * 16),
    ]
    assert directed.batch.out_len == 32


@pytest.mark.parametrize(("direction", "decrypting"), [("encrypt", 0), ("decrypt", 1)])
def test_every_listed_round_of_a_monte_carlo_test_is_a_case(batch_of: BatchOf, direction: str, decrypting: int) -> None:
    rounds = tuple(
        MonteCarloRound(
            index=number, key=bytes([number % 256]) * 16, input=b"i" * 16, output=bytes([number % 256]) * 16
        )
        for number in (0, 399)
    )
    chain = MonteCarlo(num_outer=400, num_inner=10_000, rounds=rounds)
    directed = batch_of([file_of(vector(kind="monte_carlo", direction=direction, monte_carlo=chain))])
    assert [(name, way, ops[0][1], ops[2], out) for name, way, ops, out in told(directed)] == [
        (
            f"paper:1:round_{number}:{direction}", decrypting, bytes([number % 256]) * 16,
            (OpKind.UPDATE, b"i" * 16, 10_000), bytes([number % 256]) * 16,
        )
        for number in (0, 399)
    ]  # fmt: skip


def test_without_vectors_the_batch_is_empty(batch_of: BatchOf) -> None:
    directed = batch_of([])
    assert len(directed.batch) == len(directed.names) == len(directed.expected.cases) == 0
    assert compare(directed.batch, directed.expected, directed.expected.copy()).comparisons == 0


def test_an_answer_is_judged_byte_by_byte(batch_of: BatchOf) -> None:
    directed = batch_of([file_of(vector(), vector(id="2", plaintext=b"", ciphertext=b""))])
    answers = directed.expected.copy()
    assert compare(directed.batch, directed.expected, answers).comparisons == 8
    for at in range(len(answers.out)):
        wrong = answers.copy()
        wrong.out[at] ^= 1
        found = compare(directed.batch, directed.expected, wrong)
        assert [(one.case, one.op, one.offset) for one in found.departures] == [(at // 5, 2, at % 5)]


def test_all_published_vectors_make_batches_that_the_wire_allows(batch_of: BatchOf) -> None:
    files = load_vectors(data_root() / "corpora" / "vectors")
    algorithms = {file.algorithm for file in files}
    assert {"ecb(sm4)", "cbc(sm4)", "ctr(sm4)"} <= algorithms
    for algorithm in algorithms:
        batch = batch_of(files, algorithm=algorithm).batch
        target = bytearray(batch_len(batch))
        encode_batch_into(batch, memoryview(target))
        assert decode_batch(bytes(target)).messages.tolist() == batch.messages.tolist()
