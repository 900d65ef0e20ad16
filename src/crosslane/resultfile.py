# SPDX-License-Identifier: Apache-2.0
"""The strict reader of the files that ``write_json`` writes, and their JSON schema.

A file is read whole or refused in one sentence: types, unknown and missing fields, numbers and names are checked, and
each cell is there once. ``corpora/schemas/results.schema.json`` is ``schema_text()``, which follows the model;
``python -m crosslane.resultfile`` prints it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from crosslane.data import shown
from crosslane.errors import BadInput
from crosslane.names import parse_cell
from crosslane.results import RESULT_VERSION, RunResult

__all__ = ["LARGEST", "read_json", "schema_text"]

LARGEST = 1 << 29
"""Bytes of the longest file that is read; a full run of this repository makes 30 MiB."""

_AGAIN = "write it again with `crosslane check --json`"


def read_json(path: Path) -> RunResult:
    """Read what ``write_json`` wrote; raises BadInput in one sentence for anything else."""
    data = _parsed(path)
    if not isinstance(data, dict) or "version" not in data:
        raise BadInput(f"{shown(path)}: is no results file of Crosslane, which is an object with a version: {_AGAIN}")
    version = data["version"]
    if type(version) is not int or version != RESULT_VERSION:
        raise BadInput(
            f"{shown(path)}: has version {_brief(version)} of the results, this Crosslane reads {RESULT_VERSION}: "
            f"{_AGAIN}, or read it with the Crosslane that wrote it"
        )
    try:
        result = msgspec.convert(data, RunResult)
    except msgspec.ValidationError as error:
        raise BadInput(f"{shown(path)}: is no results file of Crosslane ({error}): {_AGAIN}") from None
    strange = _strange(data, asdict(result), "$")
    if strange:
        raise BadInput(f"{shown(path)}: {strange}: {_AGAIN}")
    _check_names(result, path)
    return result


def _parsed(path: Path) -> object:
    """The JSON value in a file."""
    try:
        if not path.is_file():
            raise BadInput(f"{shown(path)}: is no file: name one that `crosslane check --json` wrote")
        size = path.stat().st_size
        if size > LARGEST:
            raise BadInput(
                f"{shown(path)}: is {size:,} bytes long, and no results file is longer than {LARGEST:,}: name another"
            )
        text = path.read_bytes().decode()
    except OSError as error:
        raise BadInput(f"{shown(path)}: cannot be read ({error.strerror}): name a file that is readable") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{shown(path)}: is no results file: byte {error.start} is not UTF-8: {_AGAIN}") from None
    if not text.strip():
        raise BadInput(f"{shown(path)}: is empty: {_AGAIN}")
    try:
        return json.loads(text, object_pairs_hook=partial(_once, path), parse_constant=partial(_no_number, path))
    except json.JSONDecodeError as error:
        # JSON that stops before its end is an error at its end; an unterminated string is one where that begins.
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        what = "is cut short" if cut else "is no JSON"
        raise BadInput(f"{shown(path)}: {what} (line {error.lineno}: {error.msg}): {_AGAIN}") from None
    except RecursionError:
        raise BadInput(f"{shown(path)}: is no results file: it is nested too deeply: {_AGAIN}") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise BadInput(f"{shown(path)}: is no results file ({error}): {_AGAIN}") from None


def _once(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"{shown(path)}: an object has {_brief(twice)} twice: {_AGAIN}")
    return table


def _no_number(path: Path, word: str) -> float:
    raise BadInput(f"{shown(path)}: has {word}, which is no number of JSON: {_AGAIN}")


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _strange(given: object, read: object, place: str) -> str:
    """What the file has that the model has not, or lacks that it has; empty where both are alike."""
    if isinstance(given, dict) and isinstance(read, Mapping):
        for name in given.keys() - read.keys():
            return f"has the unknown field {_brief(name)} at {place}"
        for name in read.keys() - given.keys():
            return f"lacks the field {_brief(name)} at {place}"
        inner = ((given[name], read[name], f"{place}.{name}") for name in given)
    elif isinstance(given, list) and isinstance(read, tuple):
        inner = ((*pair, f"{place}[{number}]") for number, pair in enumerate(zip(given, read, strict=True)))
    else:
        return ""
    return next(filter(None, (_strange(*item) for item in inner)), "")


def _check_names(result: RunResult, path: Path) -> None:
    """Raise BadInput for a cell that is none, or is there twice, or under another algorithm."""
    seen: set[str] = set()
    for algorithm in result.algorithms:
        if not re.fullmatch("[0-9a-f]{16}", algorithm.digest):
            raise BadInput(f"{shown(path)}: {_brief(algorithm.digest)} is no digest of a manifest: {_AGAIN}")
        for cell in algorithm.cells:
            try:
                mine = str(parse_cell(cell.cell).algorithm)
            except BadInput:
                raise BadInput(f"{shown(path)}: {_brief(cell.cell)} is no name of a cell: {_AGAIN}") from None
            if mine != algorithm.algorithm:
                raise BadInput(f"{shown(path)}: the cell {cell.cell} stands under {algorithm.algorithm}: {_AGAIN}")
            if cell.cell in seen:
                raise BadInput(f"{shown(path)}: the cell {cell.cell} is there twice: {_AGAIN}")
            seen.add(cell.cell)


def schema_text() -> str:
    """The text of ``corpora/schemas/results.schema.json``: every field of the model, and no other."""
    made = msgspec.json.schema(RunResult)
    definitions = made["$defs"]
    for table in definitions.values():
        table["additionalProperties"] = False
        table["required"] = list(table["properties"])
        for field in table["properties"].values():
            field.pop("default", None)  # a file has every field
        del table["description"]  # docs/reference/results.md has what each field means, in one place
    definitions["RunResult"]["properties"]["version"] = {"const": RESULT_VERSION}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Results of a run",
        "description": "What `crosslane check --json` writes; docs/reference/results.md says what each field means.",
        **made,
    }
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
