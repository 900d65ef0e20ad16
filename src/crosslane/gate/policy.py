# SPDX-License-Identifier: Apache-2.0
"""A policy (``gate.toml``): what a gate runs, what must have passed, and what may not be lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from crosslane.data import shown
from crosslane.errors import BadInput
from crosslane.isa import ARCHES, host_arch
from crosslane.names import nearest
from crosslane.plan import DEFAULT_SEED, Counts
from crosslane.tomlread import Field, read_fields, read_toml

__all__ = ["POLICY_VERSION", "Elsewhere", "Policy", "RequiredCells", "RequiredLane", "read_policy"]

POLICY_VERSION = 1

_HEAD = {
    "version": Field(kind="int", allowed=(POLICY_VERSION,)),
    "only_new": Field(kind="bool", optional=True),
    "deviations": Field(kind="str", optional=True),
}
_RUN = {
    "cells": Field(kind="str", many=True, min_num=1, optional=True),
    "providers": Field(kind="str", many=True, min_num=1, optional=True),
    "lanes": Field(kind="str", many=True, min_num=1, optional=True),
    "without": Field(kind="str", many=True, optional=True),
    "count": Field(kind="int", least=1, optional=True),
    "share": Field(kind="int", least=1, most=1000, optional=True),
    "vectors": Field(kind="str", allowed=("all", "own"), optional=True),
    "seed": Field(kind="str", pattern=r".*\S.*", optional=True),
    "prove": Field(kind="bool", optional=True),
}
_COUNTS = {name: Field(kind="int", least=1, optional=True) for name in vars(Counts())}
_REQUIRE = {
    "cells": Field(kind="str"),
    "hosts": Field(kind="str", many=True, min_num=1, allowed=ARCHES, optional=True),
    "may_decline": Field(kind="bool", optional=True),
    "min_comparisons": Field(kind="int", least=1, optional=True),
    "min_vectors": Field(kind="int", least=1, optional=True),
    "checks": Field(kind="str", many=True, min_num=1, optional=True),
}
_LANE = {
    "name": Field(kind="str"),
    "hosts": Field(kind="str", many=True, min_num=1, allowed=ARCHES, optional=True),
    "min_comparisons": Field(kind="int", least=1, optional=True),
}


@dataclass(frozen=True)
class RequiredCells:
    """Cells that must have run: each that ``pattern`` fits in the lanes of the run.

    ``min_comparisons`` and ``min_vectors`` are the least of each cell that ran; ``checks`` must have passed, where it
    is not enough that they do not apply. ``may_decline``: a CPU without what an implementation needs is no failure.
    """

    pattern: str
    may_decline: bool
    min_comparisons: int
    min_vectors: int
    checks: tuple[str, ...]


@dataclass(frozen=True)
class RequiredLane:
    """A lane in which something must have run, and the least number of comparisons of all its cells together."""

    name: str
    min_comparisons: int


@dataclass(frozen=True)
class Elsewhere:
    """A pattern or a lane of a table that is about other hosts than this one; its name is checked here too."""

    table: Literal["require", "lane"]
    name: str
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Policy:
    """What a gate runs and asks. ``file`` is its name as messages have it; ``deviations`` is None for the usual file.

    ``lanes`` and ``patterns`` are empty for all that the gate's lanes have.
    """

    file: str
    only_new: bool
    deviations: Path | None
    patterns: tuple[str, ...]
    providers: tuple[str, ...]
    lanes: tuple[str, ...]
    without: tuple[str, ...]
    counts: Counts
    imported: bool
    seed: str
    prove: bool
    required: tuple[RequiredCells, ...]
    required_lanes: tuple[RequiredLane, ...]
    elsewhere: tuple[Elsewhere, ...] = ()


def read_policy(path: Path, checks: Mapping[str, object] | frozenset[str], host: str | None = None) -> Policy:
    """Read a policy strictly; ``checks`` are the names that there are. Raises BadInput in one sentence."""
    table = read_toml(path)
    if not table:
        raise BadInput(f"{shown(path)}: is empty: write version = {POLICY_VERSION} and what the gate requires")
    head = read_fields(
        path, {name: table[name] for name in table if name not in ("run", "counts", "require", "lane")}, _HEAD
    )
    run = read_fields(path, _table(path, table, "run"), _RUN, where="[run]")
    counts = read_fields(path, _table(path, table, "counts"), _COUNTS, where="[counts]")
    if sum((bool(counts), "count" in run, "share" in run)) > 1:
        raise BadInput(
            f"{shown(path)}: count and share in [run] and the table [counts] all say how many comparisons a cell gets: "
            "keep one of them"
        )
    arch = host or host_arch()
    rows, more_rows = _rows(path, table, "require", _REQUIRE, arch)
    lane_rows, more_lanes = _rows(path, table, "lane", _LANE, arch)
    required = [_required(path, values, checks) for values in rows]
    for values in more_rows:
        _required(path, values, checks)
    lanes = [RequiredLane(values["name"], values.get("min_comparisons", 1)) for values in lane_rows]
    elsewhere = [Elsewhere("require", values["cells"], values["hosts"]) for values in more_rows]
    elsewhere += [Elsewhere("lane", values["name"], values["hosts"]) for values in more_lanes]
    if not required and not lanes:
        raise BadInput(
            f"{shown(path)}: requires nothing on {arch}: add a table [[require]] with the pattern of cells that must "
            'have run, such as cells = "*"'
        )
    deviations = head.get("deviations")
    return Policy(
        file=shown(path),
        only_new=head.get("only_new", False),
        deviations=_deviations(path, deviations) if deviations is not None else None,
        patterns=run.get("cells", ()),
        providers=run.get("providers", ()),
        lanes=run.get("lanes", ()),
        without=run.get("without", ()),
        counts=Counts.each(run["count"]) if "count" in run else replace(Counts().shared(run.get("share", 1)), **counts),
        imported=run.get("vectors", "all") == "all",
        seed=run.get("seed", DEFAULT_SEED),
        prove=run.get("prove", False),
        required=tuple(required),
        required_lanes=tuple(lanes),
        elsewhere=tuple(elsewhere),
    )


def _table(path: Path, table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = table.get(name, {})
    if not isinstance(value, dict):
        raise BadInput(f"{shown(path)}: {name} is {value!r}; it must be a table [{name}]")
    return value


def _rows(
    path: Path, table: Mapping[str, Any], name: str, fields: Mapping[str, Field], host: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The tables of an array that are about this host, and those that are about others."""
    rows = table.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadInput(f"{shown(path)}: {name} must be written as tables [[{name}]]")
    read = [read_fields(path, row, fields, where=f"[[{name}]] {number}") for number, row in enumerate(rows, 1)]
    here = [values for values in read if host in values.get("hosts", (host,))]
    return here, [values for values in read if values not in here]


def _required(path: Path, values: Mapping[str, Any], checks: Mapping[str, object] | frozenset[str]) -> RequiredCells:
    for name in values.get("checks", ()):
        if name not in checks:
            close = nearest(name, checks) or sorted(checks)
            raise BadInput(
                f"{shown(path)}: cells {values['cells']!r}: there is no check {name!r}; nearest are "
                f"{', '.join(close)}; correct the name"
            )
    return RequiredCells(
        pattern=values["cells"],
        may_decline=values.get("may_decline", False),
        min_comparisons=values.get("min_comparisons", 1),
        min_vectors=values.get("min_vectors", 0),
        checks=values.get("checks", ()),
    )


def _deviations(path: Path, name: str) -> Path:
    """The file of deviations, named from where the policy is; raises BadInput where it is not there."""
    file = path.parent / name
    if not file.is_file():
        raise BadInput(
            f"{shown(path)}: deviations names {shown(file)}, which is no file: create it or leave the key out"
        )
    return file
