# SPDX-License-Identifier: Apache-2.0
"""Shards: a split that every machine makes alike, and the join of what they wrote, which is the whole."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from resulting import LIBRARY, NATIVE, accepted, algorithm, cell, declined, red, run

from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.plan import Counts, RunPlan, Selection, make_plans
from crosslane.records import LibraryRow, Proof
from crosslane.registry import load_registry
from crosslane.results import RunResult
from crosslane.shards import Shard, merge_results, of_shard, parse_shard


@pytest.mark.parametrize("text", ["", "0/3", "4/3", "1", "1/0", "-1/3", "1/3/4", "one/two", "1 /3", "99999/99999"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=f"{re.escape(repr(text))} is no shard: write K/N"):
        parse_shard(text)


def test_a_shard_is_printed_as_it_is_read() -> None:
    assert str(parse_shard("2/3")) == "2/3"


@pytest.fixture(scope="module")
def plans() -> RunPlan:
    registry = load_registry(data_root())
    return make_plans(registry, Selection(("ctr(sm4)", "ecb(*)", "xts(aes)"), (NATIVE,)), counts=Counts.each(640))


@pytest.mark.parametrize("of", [1, 2, 3, 5])
def test_shards_have_every_plan_once_and_about_as_much_to_do(plans: RunPlan, of: int) -> None:
    parts = [of_shard(plans, Shard(number, of)) for number in range(1, of + 1)]
    names = [plan.name for part in parts for plan in part.algorithms]
    assert sorted(names) == sorted(plan.name for plan in plans.algorithms)
    totals = [sum(plan.total for plan in part.algorithms) for part in parts]
    assert max(totals) <= 2 * min(totals)


def test_more_shards_than_plans_are_refused(plans: RunPlan) -> None:
    with pytest.raises(BadInput, match=r"shard 900/900 has nothing to run: the selection has \d+ plans"):
        of_shard(plans, Shard(900, 900))


def row(**changes: Any) -> LibraryRow:
    facts: dict[str, Any] = {
        "name": "openssl", "lane": NATIVE, "backend": "", "place": "system", "library": LIBRARY,
        "algorithm": "ctr(toy)", "verdict": "agreed",
    }  # fmt: skip
    return LibraryRow(**{**facts, **changes})


def halves() -> tuple[RunResult, RunResult, RunResult]:
    """Two shards and the whole."""
    one, two = algorithm(cell(), declined()), algorithm(accepted(), name="ctr(toy) within openssl")
    three = algorithm(red(f"cbc(toy)/toy@{NATIVE}"), name="cbc(toy)")
    proofs = [Proof(f"fault-{n}", cell().cell, control=False, whole=False, holds=True) for n in (1, 2)]
    other = row(algorithm="xts(toy)")
    silent = replace(other, verdict="not promised", library=None)
    first = run(
        one, shard="1/2", took_s=2.0, cpu_s=1.0, peak_pss=5, proofs=(proofs[0],), notes=("n1",),
        libraries=(row(verdict="not promised", library=None), other), tools={NATIVE: {"compiler": "gcc 12"}},
    )  # fmt: skip
    second = run(
        three, two, shard="2/2", took_s=3.0, cpu_s=1.5, peak_pss=4, proofs=(proofs[1],), notes=("n1", "n2"),
        libraries=(row(), silent), tools={NATIVE: {"compiler": "gcc 12"}, "s390x": {"compiler": "x"}},
    )  # fmt: skip
    whole = run(
        three, one, two, took_s=3.0, cpu_s=2.5, peak_pss=5, proofs=tuple(proofs), notes=("n1", "n2"),
        libraries=(row(), other), tools={NATIVE: {"compiler": "gcc 12"}, "s390x": {"compiler": "x"}},
    )  # fmt: skip
    return first, second, whole


def test_shards_make_the_whole_in_either_order() -> None:
    first, second, whole = halves()
    assert merge_results({"a": first, "b": second}) == whole
    turned = merge_results({"b": second, "a": first})
    assert replace(turned, proofs=whole.proofs, notes=whole.notes) == whole


def test_machines_of_several_architectures_make_one_whole() -> None:
    other = run(algorithm(cell("ctr(toy)/toy-generic@aarch64_native")), host="aarch64")
    joined = merge_results({"a": run(cell()), "b": other})
    assert joined.host == "aarch64+x86_64"
    assert len(list(joined.cells())) == 2


def test_cells_of_one_plan_are_joined_and_said_once() -> None:
    left = run(algorithm(cell(), declined()))
    right = run(algorithm(replace(cell(), cpu_s=9.0), red(f"ctr(toy)/toy-bad@{NATIVE}")))
    joined = merge_results({"a": left, "b": right})
    (only,) = joined.algorithms
    assert [item.cell for item in only.cells] == [cell().cell, declined().cell, f"ctr(toy)/toy-bad@{NATIVE}"]
    assert only.took_s == 1.5


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"revision": "ffff"}, "a and b are not of one run: revision is 'abcdef0123456789' in the first and 'ffff'"),
        ({"seed": "other"}, "seed is 'a seed' in the first and 'other' in the second"),
        ({"version": 9}, "version is 4 in the first and 9"),
        ({"counts": {"native": 1}}, "counts is .* in the first and native 1 in the second"),
        ({"shard": "1/2"}, "a and b are both shard 1/2"),
        ({"shard": "2/3"}, "of different splits, 1/2, 2/3"),
        ({"shard": ""}, "shard 2/2 is missing beside 1/2"),
        ({"tools": {NATIVE: {"compiler": "gcc 13"}}}, "not of one machine: the tools of the lane x86_64_native are"),
        (
            {"proofs": (Proof("fault-1", cell().cell, control=False, whole=False, holds=False),)},
            "says otherwise of the planted fault fault-1",
        ),
    ],
)  # fmt: skip
def test_what_does_not_belong_together_is_refused_in_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    first, second, _ = halves()
    with pytest.raises(BadInput, match=sentence) as caught:
        merge_results({"a": first, "b": replace(second, **changes)})
    assert "\n" not in str(caught.value)


def test_cells_with_different_answers_are_refused() -> None:
    with pytest.raises(BadInput, match=r"a and b say different things of the cell ctr\(toy\)/toy-avx2"):
        merge_results({"a": run(cell()), "b": run(cell(comparisons=1))})
    with pytest.raises(BadInput, match=r"have different manifests of ctr\(toy\)"):
        merge_results({"a": run(algorithm(cell())), "b": run(algorithm(declined(), digest="f" * 16))})
    with pytest.raises(BadInput, match="name two or more"):
        merge_results({"a": run(cell())})


def test_what_an_interrupted_part_left_another_may_bring() -> None:
    part = run(algorithm(cell()), unfinished=("cbc(toy)", "xts(toy)"))
    rest = run(algorithm(red(f"cbc(toy)/toy@{NATIVE}"), name="cbc(toy)"))
    assert merge_results({"a": part, "b": rest}).unfinished == ("xts(toy)",)
