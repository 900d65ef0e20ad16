# SPDX-License-Identifier: Apache-2.0
"""What `crosslane bench fuzz` measures by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from planting import CTR, NATIVE, Plant, lay_out

from crosslane.data import data_root
from crosslane.errors import BadInput, HarnessFault
from crosslane.fuzzing import bench
from crosslane.fuzzing.bench import Rates, message_lens, report_fuzz
from crosslane.generate import generate_batch
from crosslane.plan import AlgorithmPlan, Counts, Selection, make_plans
from crosslane.registry import load_registry
from crosslane.wire import Flag, OpKind


def plan_of(driver: str, *impls: Path) -> AlgorithmPlan:
    registry = load_registry(data_root(), impls)
    selection = Selection((f"{CTR}/{driver}@{NATIVE}",), (NATIVE,))
    return make_plans(registry, selection, counts=Counts.each(64)).algorithms[0]


def test_the_lengths_of_messages_are_those_of_their_updates() -> None:
    batch = generate_batch(plan_of("sm4-generic").manifest, 1)
    lens, at = [], -1
    for op in batch.ops:
        if op["kind"] == OpKind.SETIV:
            lens.append(0)
            at += 1
        elif op["kind"] == OpKind.UPDATE and not op["flags"] & Flag.OVERLAP:
            lens[at] += int(op["in_len"])
    assert message_lens(batch).tolist() == lens
    fixed = generate_batch(replace(plan_of("sm4-generic").manifest, fixed_len=64), 0)
    assert set(message_lens(fixed).tolist()) == {64}


def test_the_libfuzzer_target_runs_both_implementations(tmp_path: Path) -> None:
    registry = load_registry(data_root())
    program = tmp_path / "pair"
    bench._build_target(registry, plan_of("sm4-generic"), 64, program)
    assert bench._fuzzer_ns(program, 5000, 1) > 0


def test_the_libfuzzer_target_ends_where_they_differ(tmp_path: Path) -> None:
    impls = lay_out(tmp_path / "impls", [Plant("rare", "wrong_at_one_len")])
    registry = load_registry(data_root(), [impls])
    plan = plan_of("planted-rare", impls)
    bench._build_target(registry, plan, 53, tmp_path / "wrong")
    with pytest.raises(HarnessFault, match="the libFuzzer target ended with status"):
        bench._fuzzer_ns(tmp_path / "wrong", 1000, 1)
    bench._build_target(registry, plan, 54, tmp_path / "right")
    assert bench._fuzzer_ns(tmp_path / "right", 1000, 1) > 0


def test_a_bare_loop_costs_more_for_longer_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_BARE_MESSAGES", 20_000)
    monkeypatch.setattr(bench, "_BARE_GROUPS", 2)
    bare = bench._Bare(plan_of("sm4-generic"))
    try:
        short, long = (bare.ns_of(np.full(2000, length)) for length in (256, 4096))
    finally:
        bare.release()
    assert 0 < 4 * short < long


def test_a_subject_that_departs_is_not_measured(tmp_path: Path) -> None:
    impls = lay_out(tmp_path / "impls", [Plant("rare", "wrong_at_one_len")])
    plan = plan_of("planted-rare", impls)
    whole = tuple(replace(cell, comparisons=8192) for cell in plan.cells)
    with pytest.raises(HarnessFault, match="departs from generic or does not run: run `crosslane check` first"):
        bench._round(replace(plan, cells=whole), 0)


def test_each_bound_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = load_registry(data_root())
    said: list[str] = []
    names = ("against_bare", "against_fuzzer", "two_workers")
    for missed in (None, *names):
        for name in names:
            rates = Rates(10.0, 5.0, 0.5 if name == missed else 2.0)
            monkeypatch.setattr(bench, name, lambda *_, rates=rates: rates)
        said.clear()
        assert report_fuzz(registry, said.append) is (missed is None)
        assert len(said) == 4
        assert sum(": 0.50 x, misses at least " in line for line in said) == (0, 2, 1, 1)[[None, *names].index(missed)]


def test_a_host_without_a_table_is_refused() -> None:
    with pytest.raises(BadInput, match="has nothing for vax; hosts are x86_64, aarch64; add a table"):
        bench._targets("vax")
