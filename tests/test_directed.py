# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslane.compare import compare
from crosslane.corpora import Vector, VectorFile, VectorGroup, load_vectors
from crosslane.data import data_root
from crosslane.directed import DirectedBatch, vector_batch
from crosslane.generate import output_lens
from crosslane.wire import Edge, Flag, OpKind, batch_len, decode_batch, encode_batch_into


def vector(**changes: Any) -> Vector:
    facts: dict[str, Any] = {
        "id": "1", "line": 3, "kind": "message", "key": b"K" * 16, "iv": b"I" * 16, "aad": b"", "plaintext": b"plain",
        "ciphertext": b"cipher"[:5], "tag": b"", "direction": "both", "expect": "ok", "iterations": 1, "final_key": b"",
        "monte_carlo": None,
    }  # fmt: skip
    return Vector(**{**facts, **changes})


def file_of(*vectors: Vector, algorithm: str = "ctr(toy)", source: str = "paper") -> VectorFile:
    return VectorFile(Path("toy.json"), source, algorithm, (), (VectorGroup("page 1", (), 1, vectors),))


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
        at = int(batch.ops["out_off"][first + 2])
        yield (
            name,
            int(case["decrypting"]),
            ops,
            directed.expected.out[at:][: output_lens(batch, which).sum()].tobytes(),
        )


def test_a_vector_becomes_both_directions_in_two_layouts() -> None:
    directed = vector_batch([file_of(vector())], "ctr(toy)")
    begin = [(OpKind.SETKEY, b"K" * 16, 0), (OpKind.SETIV, b"I" * 16, 0)]
    end = [(OpKind.FINAL, b"", 0)]
    forwards, backwards = [(OpKind.UPDATE, b"plain", 0)], [(OpKind.UPDATE, b"ciphe", 0)]
    assert list(told(directed)) == [
        ("paper:1:encrypt", 0, begin + forwards + end, b"ciphe"),
        ("paper:1:decrypt", 1, begin + backwards + end, b"plain"),
        ("paper:1:encrypt:in_place", 0, begin + forwards + end, b"ciphe"),
        ("paper:1:decrypt:in_place", 1, begin + backwards + end, b"plain"),
    ]
    updates = directed.batch.ops[directed.batch.ops["kind"] == OpKind.UPDATE]
    assert [bool(flags & Flag.IN_PLACE) for flags in updates["flags"]] == [False, False, True, True]
    assert all(flags & Flag.LAST for flags in updates["flags"])
    assert updates["in_edge"].tolist() == [Edge.END, Edge.END, Edge.MIDDLE, Edge.MIDDLE]
    assert directed.batch.messages.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("direction", ["encrypt", "decrypt"])
def test_a_vector_for_one_direction_stays_there(direction: str) -> None:
    directed = vector_batch([file_of(vector(direction=direction))], "ctr(toy)")
    assert directed.names == (f"paper:1:{direction}", f"paper:1:{direction}:in_place")
    assert set(directed.batch.cases["decrypting"].tolist()) == {int(direction == "decrypt")}


@pytest.mark.parametrize(
    ("iterations", "names"),
    [(1_000_000, ["encrypt"]), (10_001, ["encrypt"]), (10_000, ["encrypt", "decrypt"]), (2, ["encrypt", "decrypt"])],
)
def test_a_repeated_vector_runs_once_and_backwards_only_where_that_is_quick(iterations: int, names: list[str]) -> None:
    directed = vector_batch([file_of(vector(iterations=iterations))], "ctr(toy)")
    assert list(directed.names) == [f"paper:1:{name}" for name in names]
    updates = directed.batch.ops[directed.batch.ops["kind"] == OpKind.UPDATE]
    assert set(updates["aux0"].tolist()) == {iterations}


def test_only_messages_of_the_algorithm_are_taken() -> None:
    files = [
        file_of(vector(id="a")),
        file_of(vector(id="b"), algorithm="cbc(toy)"),
        file_of(vector(id="c", kind="monte_carlo"), vector(id="d", kind="maintenance"), vector(id="e")),
    ]
    names = vector_batch(files, "ctr(toy)").names
    assert {name.split(":")[1] for name in names} == {"a", "e"}
    assert len(names) == 8


def test_without_vectors_the_batch_is_empty() -> None:
    directed = vector_batch([], "ctr(toy)")
    assert len(directed.batch) == len(directed.names) == len(directed.expected.cases) == 0
    assert compare(directed.batch, directed.expected, directed.expected.copy()).comparisons == 0


def test_an_answer_is_judged_byte_by_byte() -> None:
    directed = vector_batch([file_of(vector(), vector(id="2", plaintext=b"", ciphertext=b""))], "ctr(toy)")
    answers = directed.expected.copy()
    assert compare(directed.batch, directed.expected, answers).comparisons == 8
    for at in range(len(answers.out)):
        wrong = answers.copy()
        wrong.out[at] ^= 1
        found = compare(directed.batch, directed.expected, wrong)
        assert [(one.case, one.op, one.offset) for one in found.departures] == [(at // 5, 2, at % 5)]


def test_all_published_vectors_make_batches_that_the_wire_allows() -> None:
    files = load_vectors(data_root() / "corpora" / "vectors")
    algorithms = {file.algorithm for file in files}
    assert {"ecb(sm4)", "cbc(sm4)", "ctr(sm4)"} <= algorithms
    for algorithm in algorithms:
        batch = vector_batch(files, algorithm).batch
        target = bytearray(batch_len(batch))
        encode_batch_into(batch, memoryview(target))
        assert decode_batch(bytes(target)).messages.tolist() == batch.messages.tolist()
