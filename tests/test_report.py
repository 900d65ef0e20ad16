# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from crosslane.records import AlgorithmResult, CellResult, Finding, Judgement
from crosslane.report import print_report
from crosslane.results import RunResult
from crosslane.verdicts import cell_verdict

MakeCell = Callable[..., CellResult]

CELL = "ctr(toy)/toy-avx2-x86_64@x86_64_native"
PASSED = (Judgement("agreement", "Agrees.", True, ""),)
FOUND = Finding("0123456789abcdef-3-17", "disagree", "output", "alone", 2, "byte 5 of the [red] output differs")
WRONG_ANSWER = Finding("paper:1:encrypt", "disagree", "output", "in_batch", 1, "byte 0 of the output differs")


def failed(check: str, reason: str) -> tuple[Judgement, ...]:
    return (Judgement(check, "A sentence.", False, reason),)


def report(*cells: CellResult, width: int = 60, impls: tuple[str, ...] = (), **changes: Any) -> list[str]:
    result = RunResult(
        version=1, revision="abc", seed="a seed", host="x86_64", tools={}, sandbox_missing=(), notes=(),
        algorithms=(AlgorithmResult("ctr(toy)", "ctr(toy)", "{}", "0123456789abcdef", cells, 1.0),),
        took_s=2.0, cpu_s=1.0,
    )  # fmt: skip
    console = Console(file=io.StringIO(), width=width)
    print_report(replace(result, **changes), console, impls=impls)
    assert console.width == width
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"judgements": PASSED}, "agreed"),
        ({"state": "declined", "judgements": PASSED}, "declined"),
        ({"judgements": failed("paths", "no")}, "FINDING"),
        ({"state": "declined", "judgements": failed("declines", "no")}, "FINDING"),
        ({"state": "void", "judgements": failed("agreement", "no")}, "VOID"),
        ({"state": "not_run"}, "DID NOT RUN"),
    ],
)
def test_a_cell_has_one_verdict(make_cell: MakeCell, changes: dict[str, Any], verdict: str) -> None:
    cell = make_cell(**changes)
    assert cell_verdict(cell) == verdict
    assert any(verdict in line for line in report(cell) if line.startswith(CELL))


def test_a_green_run_is_a_table_and_the_totals(make_cell: MakeCell) -> None:
    other = make_cell(cell="ecb(toy)/toy-generic@x86_64_native", comparisons=1352, num_vectors=0, paths={})
    lines = report(make_cell(judgements=PASSED), other)
    assert lines[0].split() == ["cell", "verdict", "comparisons", "vectors", "paths"]
    assert lines[1].split() == [CELL, "agreed", "648", "8", "2", "of", "2"]
    assert lines[2].split() == ["ecb(toy)/toy-generic@x86_64_native", "agreed", "1,352", "-", "-"]
    assert not lines[3]
    assert lines[4] == (
        "2 cells: 2 agreed; 2,000 comparisons in 2.0 s (1,000 a second; per cell that ran at least 648, median 1,000; "
        "1 s of CPU, at most 0 MiB of memory); seed 'a seed'"
    )
    assert len(lines) == 5


@pytest.mark.parametrize("width", [10, 80, 400])
def test_no_line_is_cut_or_broken_whatever_the_width(make_cell: MakeCell, width: int) -> None:
    cell = make_cell(num_departed=2, findings=(FOUND,), judgements=failed("agreement", FOUND.text))
    narrow = report(cell, width=width, sandbox_missing=("landlock",))
    assert narrow == report(cell, width=1000, sandbox_missing=("landlock",))
    assert not any("…" in line for line in narrow)


def test_a_finding_is_told_once_with_the_command_that_shows_it_again(make_cell: MakeCell) -> None:
    judged = failed("agreement", FOUND.text) + failed("paths", "no case took the declared path tail")
    cell = make_cell(num_departed=2, findings=(FOUND,), judgements=judged)
    lines = report(cell, impls=("their/folder",))
    assert lines[3:6] == [
        f"{CELL}: disagree, output, repeats alone; at least 2 cases depart alike: byte 5 of the [red] output differs",
        f"    see it again: crosslane repro 0123456789abcdef-3-17 --cell '{CELL}' --impls 'their/folder'",
        f"{CELL}: paths: no case took the declared path tail",
    ]
    assert lines[-1].startswith("1 cells: 1 FINDING; ")
    assert sum(FOUND.text in line for line in lines) == 1


def test_a_wrong_answer_to_a_vector_names_the_vector(make_cell: MakeCell) -> None:
    judged = failed("agreement", WRONG_ANSWER.text) + failed("known_answer", f"paper:1:encrypt: {WRONG_ANSWER.text}")
    lines = report(make_cell(findings=(WRONG_ANSWER,), num_departed=1, judgements=judged))
    assert lines[3:5] == [
        f"{CELL}: disagree, output, repeats in_batch: byte 0 of the output differs",
        "    vector: paper:1:encrypt",
    ]
    assert sum(WRONG_ANSWER.text in line for line in lines) == 1


@pytest.mark.parametrize("reason", ["3 cases were not judged", "only 5 comparisons of the 640 promised"])
def test_a_red_cell_without_a_finding_says_why(make_cell: MakeCell, reason: str) -> None:
    lines = report(make_cell(judgements=failed("agreement", reason)))
    assert f"{CELL}: agreement: {reason}" in lines


def test_a_finding_does_not_hide_another_reason(make_cell: MakeCell) -> None:
    lines = report(make_cell(findings=(FOUND,), judgements=failed("agreement", "3 cases were not judged")))
    assert f"{CELL}: agreement: 3 cases were not judged" in lines


def test_a_void_cell_says_why_and_keeps_what_was_found(make_cell: MakeCell) -> None:
    cell = make_cell(
        state="void", reason="the shim answered garbage", findings=(FOUND,),
        judgements=failed("agreement", "did not run: the shim answered garbage"),
    )  # fmt: skip
    lines = report(cell, make_cell(state="not_run"))
    assert f"{CELL}: void: the shim answered garbage" in lines
    assert f"{CELL}: did not run: never began" in lines
    assert any(FOUND.case_id in line for line in lines)
    assert sum("answered garbage" in line for line in lines) == 1
    assert "2 cells: 1 DID NOT RUN, 1 VOID; " in lines[-1]


def test_what_green_does_not_say_is_said(make_cell: MakeCell) -> None:
    reason = "corpora/vectors has no vector of this algorithm"
    unjudged = (*PASSED, Judgement("known_answer", "Knows.", None, reason))
    declined = make_cell(
        state="declined", cpu_features=("avx",), needed_features=("avx2", "aes"), judgements=unjudged, comparisons=0
    )
    lines = report(make_cell(judgements=unjudged), make_cell(judgements=unjudged), declined)
    assert f"declined: {CELL}: the CPU of this lane has no aes, avx2" in lines
    assert f"not judged: known_answer in 2 cells: {reason}" in lines


def test_a_cell_that_declines_without_a_reason_gets_none(make_cell: MakeCell) -> None:
    reason = "declines although the CPU has all that impl.toml asks for"
    lines = report(make_cell(state="declined", judgements=failed("declines", reason)))
    assert f"{CELL}: declines: {reason}" in lines
    assert not any(line.startswith("declined:") for line in lines)


def test_a_layer_of_the_sandbox_that_is_missing_is_said(make_cell: MakeCell) -> None:
    lines = report(make_cell(), sandbox_missing=("landlock", "seccomp"))
    for layer in ("landlock", "seccomp"):
        assert f"sandbox: this host refuses {layer}; code under test runs without it" in lines


def test_notes_of_the_run_are_passed_on(make_cell: MakeCell) -> None:
    assert "note: vectors of [x]: not installed" in report(make_cell(), notes=("vectors of [x]: not installed",))


def test_what_no_library_agreed_with_is_said(make_cell: MakeCell) -> None:
    rests = "rests on the Python reference alone, no library agreed with it in this run: ctr(toy)"
    with_vectors = "rests on vectors and the Python reference, no library agreed with it in this run: ctr(toy)"
    alone = report(make_cell(num_sampled=9, num_vectors=0))
    assert rests in alone
    assert with_vectors in report(make_cell(num_sampled=9, num_vectors=2))
    agreed = report(make_cell(num_sampled=9, judged_by={"a library": 5}))
    assert not any(line.startswith("rests on") for line in agreed)


def test_a_cell_in_which_nothing_was_compared_did_not_agree(make_cell: MakeCell) -> None:
    lines = report(make_cell(comparisons=0, num_vectors=0, wanted=0))
    assert "not compared" in lines[1]
    assert lines[-1].startswith("1 cells: 1 not compared; ")
