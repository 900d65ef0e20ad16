# SPDX-License-Identifier: Apache-2.0
"""Batches with the same data in several layouts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from planting import NATIVE

from crosslane import wire
from crosslane.client import SharedMemory
from crosslane.conduct import conduct
from crosslane.data import data_root
from crosslane.execute import CAPACITY, Executor
from crosslane.layouts import laid_out
from crosslane.manifest import Manifest, parse_manifest
from crosslane.plan import AlgorithmPlan, Counts, Selection, make_plans
from crosslane.registry import load_registry
from crosslane.seal import finished_batch
from crosslane.wire import Batch, Edge, Flag, OpKind, Results, Watch

LAYOUT = ("in_edge", "in_align", "out_edge", "out_align")


def plan_of(algorithm: str, comparisons: int = 8192, layouts: int = 3) -> AlgorithmPlan:
    registry = load_registry(data_root())
    cell = f"{algorithm}/*-generic@{NATIVE}"
    (plan,) = make_plans(registry, Selection((cell,), (NATIVE,)), counts=Counts.each(comparisons)).algorithms
    return replace(plan, manifest=replace(plan.manifest, layouts=layouts))


class Asked:
    """A plan's oracle and its block function."""

    def __init__(self, plan: AlgorithmPlan) -> None:
        self.memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
        self.both = [Executor(station, self.memory, watch=Watch(0)) for station in (plan.oracle, plan.blocks)]
        self.manifest = plan.manifest

    def answer(self, which: int, batch: Batch) -> Results:
        wire.encode_batch_into(batch, self.memory.view)
        self.both[which].start(batch, len(batch))
        return self.both[which].finish()

    def batch(self, number: int, count: int | None = None) -> Batch:
        return finished_batch(self.manifest, number, partial(self.answer, 0), partial(self.answer, 1), count)

    def close(self) -> None:
        for executor in self.both:
            executor.release()
        self.memory.close()


@pytest.mark.parametrize("algorithm", ["ctr(sm4)", "gcm(aes)", "cmac(cast5)", "xts(twofish)"])
def test_the_data_are_the_same_and_the_answers_too(algorithm: str) -> None:
    asked = Asked(plan_of(algorithm))
    try:
        batches = [asked.batch(number) for number in range(3, 7)]
        answers = [asked.answer(0, batch).copy() for batch in batches]
    finally:
        asked.close()
    first, *alike, other = batches
    for batch, answer in zip(alike, answers[1:3], strict=True):
        assert np.array_equal(batch.blob, first.blob)
        for name in wire.OP.names or ():
            assert np.array_equal(batch.ops[name], first.ops[name]) is (name not in LAYOUT), name
        assert np.array_equal(answer.statuses, answers[0].statuses)
        assert np.array_equal(answer.out, answers[0].out)
        encoded = bytearray(wire.batch_len(batch))
        wire.encode_batch_into(batch, memoryview(encoded))
        assert len(wire.decode_batch(bytes(encoded))) == len(batch)
    assert not np.array_equal(alike[0].ops["in_align"], alike[1].ops["in_align"])
    assert not np.array_equal(other.blob[: len(first.blob)], first.blob)


def test_layouts_are_drawn_as_the_first_one_is() -> None:
    asked = Asked(plan_of("ctr(sm4)"))
    try:
        first, second = asked.batch(6), asked.batch(7)
    finally:
        asked.close()
    for kind, sides in ((OpKind.SETKEY, ("in",)), (OpKind.SETIV, ("in", "out")), (OpKind.UPDATE, ("in", "out"))):
        for batch in (first, second):
            at = (batch.ops["kind"] == kind) & ((batch.ops["flags"] & Flag.OVERLAP) == 0)
            for side in sides:
                shares = np.bincount(batch.ops[f"{side}_edge"][at], minlength=3) / at.sum()
                assert np.allclose(shares, [0.25, 0.25, 0.5], atol=0.05)
                assert len(np.unique(batch.ops[f"{side}_align"][at])) == 64
    overlapping = (first.ops["flags"] & Flag.OVERLAP) != 0
    assert overlapping.any()
    assert np.array_equal(first.ops[overlapping], second.ops[overlapping])
    assert set(np.unique(second.cases["ctx_edge"])) == {int(edge) for edge in Edge}


def test_the_first_cases_of_a_batch_are_laid_out_as_in_the_whole() -> None:
    asked = Asked(plan_of("gcm(aes)"))
    try:
        whole, some = asked.batch(4), asked.batch(4, 100)
        num_ops = len(some.ops)
        assert np.array_equal(some.ops[list(LAYOUT)], whole.ops[:num_ops][list(LAYOUT)])
        assert np.array_equal(some.cases, whole.cases[:100])
    finally:
        asked.close()


def test_generic_is_asked_once_for_all_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(plan_of("ctr(sm4)", 6 * 8192), first_batch=3, cases_only=True)
    started: list[tuple[str, Watch]] = []
    start = Executor.start

    def counted(self: Executor, batch: Batch, count: int, *, strict: bool = False) -> None:
        started.append((self.station.mode, self.watch))
        start(self, batch, count, strict=strict)

    monkeypatch.setattr(Executor, "start", counted)
    (cell,) = conduct(plan).cells
    assert (cell.state, cell.comparisons, cell.num_departed) == ("ran", 6 * 8192, 0)
    assert (started.count(("ctr", Watch.ALL)), started.count(("ctr", Watch(0)))) == (6, 2)
    started.clear()
    conduct(replace(plan, manifest=replace(plan.manifest, layouts=0)))
    assert (started.count(("ctr", Watch.ALL)), started.count(("ctr", Watch(0)))) == (6, 6)


def test_a_manifest_says_its_layouts_where_there_are_several() -> None:
    plain: Manifest = replace(plan_of("ctr(sm4)").manifest, layouts=0)
    several = replace(plain, layouts=2)
    assert "layouts" not in plain.to_json()
    assert parse_manifest(several.to_json(), "a file") == several
    assert several.digest != plain.digest
    batch = finished_batch(plain, 5, lambda _: None, lambda _: None)  # type: ignore[arg-type, return-value]
    assert laid_out(several, 11, batch).messages is batch.messages
