# SPDX-License-Identifier: Apache-2.0
"""Regressions are replayed first, in every cell of their algorithm; one that departs again is red and is kept."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from planting import CTR, EMULATED, NATIVE, Plant, lay_out
from test_corpora_tools import message

from crosslane.cli import main
from crosslane.corpora_tools.regressions import load_regressions, with_regressions
from crosslane.corpora_tools.replaying import regression_named
from crosslane.corpora_tools.stored import Entry, entry_of
from crosslane.corpora_tools.writing import existing, write_cases
from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.findings.case import Case, Operation
from crosslane.findings.store import Store
from crosslane.plan import Counts, Selection, make_plans
from crosslane.registry import load_registry
from crosslane.wire import Flag, OpKind

PLANTS = (Plant("short_wrap", fault="short_wrap"), Plant("honest"))
WRAPS = bytes(8) + b"\xff" * 8
FAULTY = message(17).with_operations(
    [
        Operation(OpKind.SETKEY, bytes(16)),
        Operation(OpKind.SETIV, WRAPS, aux=(0, 17)),
        Operation(OpKind.UPDATE, bytes(17), flags=Flag.LAST, out_len=17),
    ]
)


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["crosslane", *map(str, words)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return Ended(int(caught.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def impls(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "impls", PLANTS)


def regress(folder: Path, *cases: Case) -> list[Entry]:
    entries = [entry_of(case) for case in cases]
    write_cases(folder / "regressions", entries, before=existing(folder / "regressions"))
    return entries


def check(run: Run, impls: Path, name: str, lane: str, *more: str) -> Ended:
    cell = f"{CTR}/planted-{name}@{lane}"
    options = (
        "--cell",
        cell,
        "--lane",
        lane,
        "--count",
        "0",
        "--vectors",
        "own",
        "--impls",
        impls,
        "--json",
        "out.json",
    )
    return run("check", *options, *more)


@pytest.mark.parametrize("lane", [NATIVE, EMULATED])
def test_a_regression_is_red_where_its_fault_is_there_again(run: Run, impls: Path, lane: str, tmp_path: Path) -> None:
    assert check(run, impls, "short_wrap", lane).status == 0  # no vector shows the fault
    [entry] = regress(impls, FAULTY)
    found = check(run, impls, "short_wrap", lane, "--no-findings")
    assert found.status == 1
    assert f"    regression:{entry.name}" in found.out
    [cell] = json.loads((tmp_path / "out.json").read_text())["algorithms"][0]["cells"]
    assert cell["num_regressions"] == 1
    assert [finding["case_id"] for finding in cell["findings"]] == [f"regression:{entry.name}"]
    assert next(item for item in cell["judgements"] if item["check"] == "known_answer")["passed"] is True
    green = check(run, impls, "honest", lane)
    assert green.status == 0
    [cell] = json.loads((tmp_path / "out.json").read_text())["algorithms"][0]["cells"]
    assert cell["num_regressions"] == 1


def test_a_regression_that_departs_is_kept_as_a_finding(run: Run, impls: Path, tmp_path: Path) -> None:
    [entry] = regress(impls, FAULTY)
    found = check(run, impls, "short_wrap", NATIVE)
    assert found.status == 1
    [kept] = Store(tmp_path / "findings").read_all()[0]
    assert kept.record.from_case == f"regression:{entry.name}"
    assert f"see it again: crosslane repro {kept.record.id}" in found.out


def test_a_regression_is_replayed_by_its_name(run: Run, impls: Path) -> None:
    [entry] = regress(impls, replace(FAULTY, neighbours=(message(3),)))
    name = f"regression:{entry.name}"
    found = run("repro", name, "--impls", impls, "--cell", f"{CTR}/planted-*", "--lane", NATIVE)
    assert found.status == 1
    lines = found.out.splitlines()
    assert lines[0] == CTR
    assert any("update" in line and "17" in line for line in lines)
    assert f"{CTR}/planted-honest@{NATIVE}: agrees" in lines
    assert "byte 16 of the output" in next(line for line in lines if "planted-short_wrap@" in line)
    short = f"regression:{entry.digest[:4]}"
    assert run("repro", short, "--impls", impls, "--cell", f"{CTR}/planted-honest", "--lane", NATIVE).status == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["regression:0000"], "'regression:0000' is no regression here: restore its file, or name with --impls"),
        (["regression:xyz"], "'regression:xyz' is no regression: give regression:DIGITS with 4 to 64 digits"),
        (["regression:a389"], "are not of xts(aes), the regression's algorithm: name one such as 'xts(aes)/*'"),
        (["regression:a389", "--gdb"], "is a regression: --gdb takes that of a finding"),
    ],
)
def test_a_regression_that_cannot_be_replayed_is_said(run: Run, words: list[str], says: str) -> None:
    found = run("repro", *words, "--cell", f"{CTR}/sm4-generic", "--lane", NATIVE)
    assert (found.status, found.err.count("\n")) == (2, 1)
    assert says in found.err


def test_digits_of_two_regressions_are_said() -> None:
    one, two = (replace(entry_of(message(length)), digest=f"abcd{length}" + "0" * 59) for length in (1, 2))
    assert regression_named("regression:abcd1", [one, two]) is one
    assert regression_named("regression:abcd2:neighbour_0", [one, two]) is two
    with pytest.raises(BadInput, match="begins the digests of 2 regressions: give more digits"):
        regression_named("regression:abcd", [one, two])


def test_a_finding_becomes_a_regression(run: Run, impls: Path, tmp_path: Path) -> None:
    cell = f"{CTR}/planted-short_wrap@{NATIVE}"
    seen = run("check", "--cell", cell, "--count", "4096", "--vectors", "own", "--impls", impls)
    assert seen.status == 1
    [kept] = Store(tmp_path / "findings").read_all()[0]
    told = run("findings", "regress", kept.record.id)
    name = entry_of(kept.case).name
    assert told.out == (
        f"finding {kept.record.id}: impls/regressions: regression {name} is replayed first by every check from now on\n"
    )
    assert "was there already" in run("findings", "regress", kept.record.id).out
    assert f"regression:{name}" in check(run, impls, "short_wrap", NATIVE, "--no-findings").out
    other = run("findings", "regress", kept.record.id, "--into", tmp_path / "mine")
    assert "mine: regression" in other.out
    assert run("findings", "regress", "beef").status == 2


def test_a_damaged_regression_ends_the_check_before_anything_runs(run: Run, impls: Path) -> None:
    [entry] = regress(impls, FAULTY)
    file = impls / "regressions" / f"{entry.digest}.json"
    file.write_text(file.read_text().replace('ff"', 'fe"'))
    found = check(run, impls, "honest", NATIVE)
    assert found.status == 2
    assert "which is not its name; restore the file, or remove it" in found.err


def test_a_regression_that_needs_its_neighbours_has_them(run: Run, impls: Path, tmp_path: Path) -> None:
    regress(impls, replace(FAULTY, neighbours=(message(3), message(4))))
    found = check(run, impls, "short_wrap", NATIVE, "--no-findings")
    assert found.status == 1
    [cell] = json.loads((tmp_path / "out.json").read_text())["algorithms"][0]["cells"]
    assert cell["num_regressions"] == 3


def test_a_library_replays_what_lies_in_its_domain() -> None:
    registry = load_registry(data_root())
    cell = f"{CTR}/libgcrypt@{NATIVE}"
    run = make_plans(registry, Selection((cell,), (NATIVE,)), counts=Counts.each(0))
    copied = FAULTY.with_operations([*FAULTY.operations[:2], Operation(OpKind.CLONE, slot=1), FAULTY.operations[2]])
    whole = FAULTY.with_operations([*FAULTY.operations, Operation(OpKind.FINAL)])
    entries = [entry_of(case) for case in (FAULTY, whole, copied, replace(whole, algorithm="cbc(sm4)"))]
    [plan] = with_regressions(run, entries).algorithms
    assert plan.bounded
    assert plan.regressions is not None
    assert plan.regressions.names == (f"regression:{entry_of(whole).name}",)


def test_the_suites_own_regressions_can_be_read() -> None:
    registry = load_registry(data_root())
    entries = load_regressions(registry)
    assert len({entry.digest for entry in entries}) == len(entries) > 0


def test_an_unsound_regression_is_said(impls: Path) -> None:
    regress(impls, FAULTY.with_operations([Operation(OpKind.SETKEY, bytes(300))]))
    with pytest.raises(BadInput, match="takes 300 bytes, allowed are 256"):
        load_regressions(load_registry(data_root(), [impls]))
