# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from crosslane.errors import HarnessFault
from crosslane.records import AlgorithmResult, CellResult, Finding, Judgement
from crosslane.results import RESULT_VERSION, RunResult, exit_status, write_json

MakeCell = Callable[..., CellResult]

GREEN = (Judgement("agreement", "Agrees.", True, ""), Judgement("known_answer", "Knows.", None, "no vectors"))
RED = (*GREEN, Judgement("paths", "Takes.", False, "no case took tail"))
FOUND = Finding("0123456789abcdef-3-17", "disagree", "output", "alone", 2, "byte 5 of the output differs")


def run_of(*cells: CellResult, **changes: Any) -> RunResult:
    algorithm = AlgorithmResult(
        "ctr(toy)", "ctr(toy)", '{"seed":"a"}', "0123456789abcdef", cells, 1.5, 2.5, ("a note",)
    )
    facts: dict[str, Any] = {
        "version": RESULT_VERSION, "revision": "abc", "seed": "a", "host": "x86_64", "tools": {"lane": {"gcc": "12"}},
        "sandbox_missing": ("landlock",), "notes": ("a note",), "algorithms": (algorithm,), "took_s": 3.0, "cpu_s": 2.5,
    }  # fmt: skip
    return RunResult(**{**facts, **changes})


@pytest.mark.parametrize(
    ("cells", "status"),
    [
        ([{"judgements": GREEN}], 0),
        ([{"judgements": GREEN}, {"judgements": GREEN, "state": "declined"}], 0),
        ([{"judgements": GREEN}, {"judgements": RED}], 1),
        ([{"judgements": RED, "state": "declined"}], 1),
        ([{"judgements": GREEN}, {"judgements": GREEN, "state": "void"}], 3),
        ([{"judgements": RED}, {"judgements": GREEN, "state": "not_run"}], 3),
        ([{"judgements": RED, "state": "void"}, {"judgements": RED}], 3),
        ([], 3),
    ],
)
def test_the_exit_status_is_green_only_when_all_is(
    make_cell: MakeCell, cells: list[dict[str, Any]], status: int
) -> None:
    assert exit_status([make_cell(**changes) for changes in cells]) == status


def test_comparisons_and_their_spread_are_of_the_cells_that_ran(make_cell: MakeCell) -> None:
    counts = (100, 300, 200)
    cells = [make_cell(comparisons=count) for count in counts]
    result = run_of(*cells, make_cell(state="declined", comparisons=0))
    assert result.comparisons == 600
    assert list(result.spread) == [100, 200]
    assert [cell.comparisons for cell in result.cells()] == [*counts, 0]
    assert list(run_of(make_cell(state="void")).spread) == [0, 0]


def test_json_holds_everything(tmp_path: Path, make_cell: MakeCell) -> None:
    result = run_of(make_cell(judgements=RED, findings=(FOUND,)))
    path = tmp_path / "results.json"
    write_json(result, path)
    data = json.loads(path.read_text())
    assert data == json.loads(json.dumps(asdict(result)))
    assert data["algorithms"][0]["cells"][0]["findings"][0]["case_id"] == FOUND.case_id
    assert data["algorithms"][0]["cells"][0]["paths"] == {"1way": ["1", "2-3+"], "wrap": ["8-15"]}
    assert [entry.name for entry in tmp_path.iterdir()] == ["results.json"]


def test_json_is_as_readable_as_any_new_file(tmp_path: Path, make_cell: MakeCell) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    write_json(run_of(make_cell()), tmp_path / "results.json")
    assert (tmp_path / "results.json").stat().st_mode == plain.stat().st_mode


def test_json_takes_the_place_of_an_older_file(tmp_path: Path, make_cell: MakeCell) -> None:
    path = tmp_path / "results.json"
    path.write_text("old" * 10_000)
    write_json(run_of(make_cell()), path)
    assert json.loads(path.read_text())["version"] == RESULT_VERSION


def test_a_full_disk_leaves_the_older_file_and_no_other(
    tmp_path: Path, make_cell: MakeCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.json"
    path.write_text("old")

    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "open", lambda *_, **__: Full())
    with pytest.raises(HarnessFault, match=r"results\.json: .*No space left.*stands above"):
        write_json(run_of(make_cell()), path)
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["results.json"]


@pytest.mark.parametrize("name", ["missing/results.json", "folder"])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, make_cell: MakeCell, name: str) -> None:
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    with pytest.raises(HarnessFault, match=f"{name}: the results cannot be written .* name another file with --json"):
        write_json(run_of(make_cell()), tmp_path / name)
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]
