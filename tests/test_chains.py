# SPDX-License-Identifier: Apache-2.0
"""Chained vectors: the batch that a chain is made of, and the chain through the real CAST5."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pytest
from Crypto.Cipher import AES, CAST
from planting import NATIVE

from crosslane import chains, wire
from crosslane.chains import Chain, chains_of, run_chain
from crosslane.client import SharedMemory
from crosslane.corpora import MonteCarlo, MonteCarloRound, Vector, VectorFile, VectorGroup, load_vectors
from crosslane.data import data_root
from crosslane.execute import CAPACITY, Executor
from crosslane.importers.imported import Place, monte_carlo
from crosslane.lanes import lane_named
from crosslane.registry import implementation_named, load_registry
from crosslane.stations import Stations, programs_for
from crosslane.wire import CASE_RESULT, Batch, Flag, OpKind, Results, Status, Verdict

FIRST, SECOND = bytes(range(16)), bytes(range(100, 116))


def library_chain(steps: int) -> tuple[bytes, bytes]:
    """RFC 2144, B.2, by PyCryptodome."""
    first, second = FIRST, SECOND
    for _ in range(steps):
        first = CAST.new(second, CAST.MODE_ECB).encrypt(first)
        second = CAST.new(first, CAST.MODE_ECB).encrypt(second)
    return first, second


def chain(steps: int, **changes: Any) -> Chain:
    ends = dict(zip(("ciphertext", "final_key"), library_chain(steps), strict=True))
    facts: dict[str, Any] = {
        "id": "b", "line": 1, "kind": "maintenance", "key": SECOND, "iv": b"", "aad": b"", "plaintext": FIRST,
        "tag": b"", "direction": "encrypt", "expect": "ok", "iterations": steps, "monte_carlo": None,
    }  # fmt: skip
    return Chain("paper:b", Vector(**{**facts, **ends, **changes}))


# --- which vectors are chains, and the batch ---


def test_chains_are_the_maintenance_tests_of_the_algorithm() -> None:
    vector = chain(1).vector
    message = replace(vector, id="m", kind="message")
    files = [
        VectorFile(Path("a.json"), "paper", "ecb(toy)", (), (VectorGroup("1", (), 1, (message, vector)),)),
        VectorFile(Path("b.json"), "other", "ecb(more)", (), (VectorGroup("1", (), 1, (vector,)),)),
    ]
    assert chains_of(files, "ecb(toy)") == (Chain("paper:b", vector),)
    assert chains_of(files, "cbc(toy)") == ()


def test_the_chain_of_the_rfc_is_in_the_corpora() -> None:
    [found] = chains_of(load_vectors(data_root() / "corpora" / "vectors"), "ecb(cast5)")
    assert (found.name, found.vector.iterations) == ("rfc2144:b_2", 1_000_000)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_every_half_step_takes_its_key_and_data_from_the_two_before(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(steps)
    assert not run_chain(chain(steps), cast("Executor", told), told.memory)
    [batch] = told.batches
    assert (len(batch), batch.out_len, batch.messages.tolist()) == (1, 32, [1])
    assert batch.blob.tobytes() == FIRST + SECOND
    ops = batch.ops
    assert ops["kind"].tolist() == [OpKind.SETKEY, OpKind.SETIV, OpKind.UPDATE] * (2 * steps) + [OpKind.FINAL]
    keys, data = ops[ops["kind"] == OpKind.SETKEY], ops[ops["kind"] == OpKind.UPDATE]
    fed = [[bool(op["flags"] & Flag.FEED) for op in side] for side in (keys, data)]
    assert fed == [[False] + [True] * (2 * steps - 1), [False, False] + [True] * (2 * steps - 2)]
    assert (keys["in_off"][0], data["in_off"][0], data["in_off"][1]) == (16, 0, 16)
    assert all((side["in_len"] == 16).all() for side in (keys, data))
    assert all(flags & Flag.LAST for flags in data["flags"])
    assert data["out_off"].tolist() == [0, 16] * steps
    told.memory.close()


class Told:
    """An executor that computes with the library, or answers something else."""

    def __init__(self, steps: int, *, verdict: int = Verdict.RAN, status: int = Status.OK) -> None:
        self.memory = SharedMemory("crosslane-test", 1 << 20, sealed=True)
        self.batches: list[Batch] = []
        self._out = b"".join(library_chain(steps))
        self._verdict, self._status = verdict, status

    def start(self, batch: Batch, count: int) -> None:
        assert count == 1
        assert wire.decode_batch(bytes(self.memory.view[: wire.batch_len(batch)])).ops.tobytes() == batch.ops.tobytes()
        self.batches.append(batch)

    def finish(self) -> Results:
        cases = np.zeros(1, CASE_RESULT)
        cases["verdict"] = self._verdict
        statuses = np.zeros(len(self.batches[-1].ops), np.uint8)
        statuses[3] = self._status
        return Results(np.zeros(8, np.uint64), cases, statuses, np.frombuffer(self._out, np.uint8))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"verdict": Verdict.CRASH}, "crash"),
        ({"verdict": Verdict.HANG}, "hang"),
        ({"verdict": 0xFF}, "its results were written over"),
        ({"status": Status.WEAK_KEY}, "weak_key"),
        ({"status": 77}, "status 77"),
    ],
)
def test_a_chain_that_breaks_off_says_how(changes: dict[str, Any], words: str) -> None:
    told = Told(1, **changes)
    assert run_chain(chain(1), cast("Executor", told), told.memory) == f"the chain broke off: {words}"
    told.memory.close()


# --- the real one ---


@pytest.fixture(scope="module")
def cast5() -> Iterator[tuple[Executor, SharedMemory]]:
    registry = load_registry(data_root())
    lane = lane_named(registry.lanes, NATIVE)
    stations = Stations(registry, programs_for(registry, [lane]), require_sandbox=False)
    memory = SharedMemory("crosslane-test", CAPACITY, sealed=True)
    executor = Executor(stations.of(implementation_named(registry, "cast5-generic"), lane, "ecb"), memory)
    yield executor, memory
    executor.release()
    memory.close()


@pytest.mark.parametrize("steps", [1, 299, 300, 301, 1000])
def test_the_generic_cast5_walks_a_chain_to_its_end(
    cast5: tuple[Executor, SharedMemory], steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains, "_STEPS_PER_BATCH", 300)
    assert not run_chain(chain(steps), *cast5)


@pytest.mark.parametrize("field", ["ciphertext", "final_key"])
def test_a_wrong_end_is_said(cast5: tuple[Executor, SharedMemory], field: str) -> None:
    first, second = library_chain(10)
    said = run_chain(chain(10, **{field: bytes(16)}), *cast5)
    assert said.startswith(f"after 10 steps a = {first.hex()} and b = {second.hex()}, expected ")
    assert bytes(16).hex() in said


def test_one_step_more_or_less_is_a_wrong_end(cast5: tuple[Executor, SharedMemory]) -> None:
    for steps in (9, 11):
        assert run_chain(chain(10, iterations=steps), *cast5).startswith(f"after {steps} steps")


def test_a_key_that_is_refused_breaks_the_chain_off(cast5: tuple[Executor, SharedMemory]) -> None:
    long = {"key": bytes(24), "plaintext": bytes(24), "ciphertext": bytes(24), "final_key": bytes(24)}
    assert run_chain(chain(1, **long), *cast5) == "the chain broke off: bad_key_len"


# --- Monte Carlo tests of modes with an iv, against PyCryptodome ---

LIBRARY_MODES: dict[str, Callable[[bytes, bytes], Any]] = {
    "cbc": lambda key, iv: AES.new(key, AES.MODE_CBC, iv),
    "ofb": lambda key, iv: AES.new(key, AES.MODE_OFB, iv),
    "cfb": lambda key, iv: AES.new(key, AES.MODE_CFB, iv, segment_size=128),
}


def library_rounds(mode: str, direction: str, num_inner: int, key_len: int = 24) -> tuple[MonteCarloRound, ...]:
    """Three rounds as AESAVS has them."""
    key, iv, data = bytes(range(key_len)), FIRST, SECOND
    rounds = []
    for index in range(3):
        stream = LIBRARY_MODES[mode](key, iv)
        outputs: list[bytes] = []
        for call in range(num_inner):
            block = data if call == 0 else iv if call == 1 else outputs[call - 2]
            outputs.append(getattr(stream, direction)(block))
        rounds.append(MonteCarloRound(index, key, data, outputs[-1], iv, outputs[-2]))
        added = (outputs[-2] + outputs[-1])[-key_len:]
        key, iv, data = bytes(a ^ b for a, b in zip(key, added, strict=True)), outputs[-1], outputs[-2]
    return tuple(rounds)


def monte_carlo_chain(rounds: tuple[MonteCarloRound, ...], direction: str, num_inner: int) -> Chain:
    last = replace(rounds[-1], before=b"")  # no next round publishes it
    test = MonteCarlo(num_outer=3, num_inner=num_inner, rounds=(*rounds[:-1], last))
    vector = monte_carlo(Place(direction, 1), cast("Literal['encrypt', 'decrypt']", direction), test)
    return Chain("file:it", vector)


@pytest.fixture(scope="module", params=["cbc", "ofb", "cfb"])
def aes(request: pytest.FixtureRequest) -> Iterator[tuple[str, Executor, SharedMemory]]:
    registry = load_registry(data_root())
    lane = lane_named(registry.lanes, NATIVE)
    stations = Stations(registry, programs_for(registry, [lane]), require_sandbox=False)
    memory = SharedMemory("crosslane-test", CAPACITY, sealed=True)
    executor = Executor(stations.of(implementation_named(registry, "aes-generic"), lane, request.param), memory)
    yield request.param, executor, memory
    executor.release()
    memory.close()


@pytest.mark.parametrize("num_inner", [2, 3, 10, 11])
@pytest.mark.parametrize("direction", ["encrypt", "decrypt"])
def test_the_generic_aes_walks_through_a_monte_carlo_test(
    aes: tuple[str, Executor, SharedMemory], direction: str, num_inner: int
) -> None:
    mode, place = aes[0], aes[1:]
    chain = monte_carlo_chain(library_rounds(mode, direction, num_inner), direction, num_inner)
    assert chain.num_messages == 3
    assert run_chain(chain, *place) == ""
    other = "decrypt" if direction == "encrypt" else "encrypt"
    if mode != "ofb":  # which is the same in both directions
        wrong = monte_carlo_chain(library_rounds(mode, other, num_inner), direction, num_inner)
        assert run_chain(wrong, *place).startswith("round 0 ends with ")
    longer = monte_carlo_chain(library_rounds(mode, direction, num_inner), direction, num_inner + 1)
    assert run_chain(longer, *place).startswith("round 0 ends with ")


@pytest.mark.parametrize(("index", "field"), [(0, "before"), (1, "before"), (1, "output"), (2, "output")])
def test_a_wrong_round_is_said(aes: tuple[str, Executor, SharedMemory], index: int, field: str) -> None:
    mode, place = aes[0], aes[1:]
    rounds = list(library_rounds(mode, "encrypt", 4))
    item = rounds[index]
    rounds[index] = replace(item, before=bytes(16)) if field == "before" else replace(item, output=bytes(16))
    said = run_chain(monte_carlo_chain(tuple(rounds), "encrypt", 4), *place)
    assert said.startswith(f"round {index} ends with ")
    assert bytes(16).hex() in said


def test_monte_carlo_tests_with_an_iv_are_chains_and_those_of_ecb_are_not() -> None:
    chain = monte_carlo_chain(library_rounds("cbc", "encrypt", 4), "encrypt", 4)
    assert chain.vector.monte_carlo is not None
    rounds = tuple(replace(item, iv=b"") for item in chain.vector.monte_carlo.rounds)
    plain = replace(chain.vector, id="plain", monte_carlo=replace(chain.vector.monte_carlo, rounds=rounds))
    files = [VectorFile(Path("a"), "file", "cbc(aes)", (), (VectorGroup("1", (), 1, (chain.vector, plain)),))]
    assert [found.vector for found in chains_of(files, "cbc(aes)")] == [chain.vector]


def test_the_published_chain_begins_as_it_must() -> None:
    """The steps of a batch continue those of the batch before."""
    counts = [list(chains._parts(total)) for total in (0, 1, 100_000, 100_001, 1_000_000)]
    assert counts == [[], [1], [100_000], [100_000, 1], [100_000] * 10]
    assert all(first >= second for part in counts for first, second in pairwise(part))
