# SPDX-License-Identifier: Apache-2.0
"""Files of results: what is written is read back alike, and everything else is refused in one sentence."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from test_results import FOUND, RED, run_of

from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.records import CellResult, FaultSeen, Library, LibraryRow, Proof
from crosslane.resultfile import LARGEST, read_json, schema_text
from crosslane.results import RESULT_VERSION, RunResult, write_json

MakeCell = Callable[..., CellResult]

CELL = "ctr(toy)/toy-avx2-x86_64@x86_64_native"
LIBRARY = Library("openssl", "3.0", "system", "libssl3", "3.0-1", "/lib/libcrypto.so", "ab" * 32)
FAULT = FaultSeen("0123456789ab", "output", "tail", "byte 5 differs", "known upstream")


@pytest.fixture
def whole(make_cell: MakeCell) -> RunResult:
    """A result in which nothing is empty."""
    red = make_cell(
        judgements=RED, findings=(FOUND,), faults=(FAULT,), library=LIBRARY, judged_by={"cryptography": 4},
        covered={"empty": 1}, accepted=True, untold="its case is gone",
    )  # fmt: skip
    return run_of(
        red,
        make_cell(cell=CELL.replace("native", "asan"), state="void", reason="no answer"),
        proofs=(Proof("sm4-carry", CELL, control=False, whole=True, holds=False, text="not caught"),),
        unproven=("other (s390x)",),
        libraries=(LibraryRow("openssl", "x86_64_native", "", "system", LIBRARY, "ctr(toy)", "agreed"),),
        unfinished=("cbc(toy)",),
        shard="2/3",
        peak_pss=1 << 20,
    )


@pytest.fixture
def data(whole: RunResult, tmp_path: Path) -> dict[str, Any]:
    """What is written of it."""
    write_json(whole, tmp_path / "whole.json")
    loaded: dict[str, Any] = json.loads((tmp_path / "whole.json").read_text())
    return loaded


def test_what_was_written_is_read_back(whole: RunResult, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_json(whole, path)
    assert read_json(path) == whole
    write_json(read_json(path), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_the_schema_is_that_of_the_model() -> None:
    path = data_root() / "corpora" / "schemas" / "results.schema.json"
    assert path.read_text(encoding="utf-8") == schema_text(), "python -m crosslane.resultfile prints it anew"
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text()))


def test_what_is_written_fits_the_schema_and_nothing_less_does(data: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(schema_text()))
    validator.validate(data)
    assert not validator.is_valid({**data, "more": 1})
    assert not validator.is_valid({name: value for name, value in data.items() if name != "seed"})


def spoil(data: dict[str, Any], path: str, value: object) -> str:
    """The text of the file with one value changed; a missing key is removed where the value is Ellipsis."""
    changed = json.loads(json.dumps(data))
    *way, last = path.split(".")
    table = changed
    for step in way:
        table = table[int(step)] if step.isdigit() else table[step]
    if value is ...:
        del table[last]
    else:
        table[last] = value
    return json.dumps(changed)


CELL_0 = "algorithms.0.cells.0"


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("version", 3, "has version 3 of the results, this Crosslane reads 4: write it again"),
        ("version", 99, "has version 99 of the results"),
        ("version", True, "has version True of the results"),
        ("version", "4", "has version '4' of the results"),
        ("version", ..., "is no results file of Crosslane, which is an object with a version"),
        ("seed", 1, r"Expected `str`, got `int` - at `\$.seed`"),
        ("seed", ..., "missing required field `seed`"),
        ("shard", ..., r"lacks the field 'shard' at \$"),
        ("extra", 1, r"has the unknown field 'extra' at \$"),
        (f"{CELL_0}.extra", 1, r"unknown field 'extra' at \$\.algorithms\[0\]\.cells\[0\]"),
        (f"{CELL_0}.state", "happy", "Invalid enum value 'happy'"),
        (f"{CELL_0}.comparisons", -1, "Expected `int` >= 0"),
        (f"{CELL_0}.comparisons", True, "Expected `int`, got `bool`"),
        (f"{CELL_0}.comparisons", 10**30, "Expected `int` <= 9007199254740992"),
        (f"{CELL_0}.cpu_s", 1e300, "Expected `float` <= 1"),
        (f"{CELL_0}.cell", "nonsense", "'nonsense' is no name of a cell"),
        (f"{CELL_0}.cell", "cbc(toy)/toy@x86_64_native", r"stands under ctr\(toy\)"),
        ("algorithms.0.cells.1.cell", CELL, "is there twice"),
        ("algorithms.0.digest", "../../x", "is no digest of a manifest"),
        (f"{CELL_0}.paths", [], "Expected `object`, got `array`"),
    ],
)
def test_what_is_not_as_it_was_written_is_said_in_one_sentence(
    data: dict[str, Any], tmp_path: Path, path: str, value: object, sentence: str
) -> None:
    file = tmp_path / "spoilt.json"
    file.write_text(spoil(data, path, value))
    with pytest.raises(BadInput, match=sentence) as caught:
        read_json(file)
    assert "\n" not in str(caught.value)
    assert "spoilt.json: " in str(caught.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty: write it again"),
        (b" \n", "is empty"),
        (b"\x00\xff\xfe garbage", "is no results file: byte 1 is not UTF-8"),
        (b"garbage", "is no JSON"),
        (b"[]", "is no results file of Crosslane, which is an object"),
        (b"4", "is no results file of Crosslane"),
        (b"{}", "is no results file of Crosslane"),
        (b'{"version": 4, "version": 4}', "an object has 'version' twice"),
        (b'{"version": NaN}', "has NaN, which is no number of JSON"),
        (b'{"version": 4}{', "is no JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"version": ' + b"9" * 5000 + b"}", "is no results file"),
        (b"<?xml version='1.0'?>", "is no JSON"),
    ],
)
def test_what_is_no_results_file_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    file = tmp_path / "strange.json"
    file.write_bytes(content)
    with pytest.raises(BadInput, match=sentence):
        read_json(file)


@pytest.mark.parametrize("part", [0.02, 0.3, 0.6, 0.95, 0.999])
def test_a_file_that_was_cut_short_is_said_to_be(data: dict[str, Any], tmp_path: Path, part: float) -> None:
    text = json.dumps(data, indent=1)
    file = tmp_path / "cut.json"
    file.write_text(text[: int(len(text) * part)])
    with pytest.raises(BadInput, match=r"cut\.json: is cut short"):
        read_json(file)


def test_every_cut_of_a_file_is_refused(data: dict[str, Any], tmp_path: Path) -> None:
    text = json.dumps(data)
    file = tmp_path / "cut.json"
    for length in range(0, len(text) - 1, 7):
        file.write_text(text[:length])
        with pytest.raises(BadInput):
            read_json(file)


def test_absurd_sizes_folders_and_missing_files_are_refused(tmp_path: Path) -> None:
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        os.truncate(file.fileno(), LARGEST + 1)
    with pytest.raises(BadInput, match=r"huge\.json: is 536,870,913 bytes long, and no results file is longer"):
        read_json(huge)
    for place in (tmp_path, tmp_path / "missing.json", Path("/dev/zero")):
        with pytest.raises(BadInput, match="is no file"):
            read_json(place)


def test_a_run_of_another_version_is_never_half_read(whole: RunResult, tmp_path: Path) -> None:
    write_json(replace(whole, version=RESULT_VERSION + 1), tmp_path / "new.json")
    with pytest.raises(BadInput, match="has version 5 of the results"):
        read_json(tmp_path / "new.json")
