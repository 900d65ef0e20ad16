# SPDX-License-Identifier: Apache-2.0
"""Parts of a run on several machines: a split that every machine makes alike, and the join of what they wrote.

A shard is a share of a run's plans, so that its cells have the cases that the whole run would have given them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from crosslane.errors import BadInput
from crosslane.plan import AlgorithmPlan, RunPlan
from crosslane.records import AlgorithmResult, CellResult, LibraryRow, Proof
from crosslane.results import RunResult

__all__ = ["Shard", "merge_results", "of_shard", "parse_shard"]

_NATIVE_S, _EMULATED_S, _CELL_S = 9e-6, 60e-6, 0.02
"""CPU seconds of a comparison natively and under an emulator, and of beginning a cell: only their ratios matter."""

T = TypeVar("T")


@dataclass(frozen=True)
class Shard:
    """The part ``number`` of ``of`` equal ones, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def parse_shard(text: str) -> Shard:
    """Parse ``2/3``; raises BadInput for anything else."""
    match = re.fullmatch("([0-9]{1,4})/([0-9]{1,4})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise BadInput(f"{text!r} is no shard: write K/N, the K-th of N parts, for example 1/3, 2/3 and 3/3")
    return Shard(int(match[1]), int(match[2]))


def of_shard(plans: RunPlan, shard: Shard) -> RunPlan:
    """The plans of one shard: the dearest first, each to the shard that has least to do, ties by number and name."""
    costs = [0.0] * shard.of
    mine: set[str] = set()
    for plan in sorted(plans.algorithms, key=lambda plan: (-_cost_s(plan), plan.name)):
        least = costs.index(min(costs))
        costs[least] += _cost_s(plan)
        if least == shard.number - 1:
            mine.add(plan.name)
    chosen = tuple(plan for plan in plans.algorithms if plan.name in mine)
    if not chosen:
        raise BadInput(
            f"shard {shard} has nothing to run: the selection has {len(plans.algorithms)} plans: take fewer shards"
        )
    used = {plan.cell.lane for algorithm in chosen for plan in algorithm.cells}
    return replace(plans, algorithms=chosen, lanes=tuple(lane for lane in plans.lanes if lane.name in used))


def _cost_s(plan: AlgorithmPlan) -> float:
    return sum(_CELL_S + cell.comparisons * (_EMULATED_S if cell.emulated else _NATIVE_S) for cell in plan.cells)


def merge_results(parts: Mapping[str, RunResult]) -> RunResult:
    """Join the results of shards, or of disjoint selections, by the names of their files.

    They may be of machines of several architectures, whose lanes have names of their own. Raises BadInput where they
    are not of one revision, version, seed and counts, or disagree about a cell.
    """
    _check_alike(parts)
    _check_shards(parts)
    results = list(parts.values())
    first = results[0]
    algorithms = _algorithms(parts)
    done = {algorithm.name for algorithm in algorithms}
    return replace(
        first,
        host="+".join(sorted({arch for part in results for arch in part.host.split("+")})),
        tools=_joined("the tools of the lane", {name: part.tools for name, part in parts.items()}),
        sandbox_missing=_in_order(part.sandbox_missing for part in results),
        notes=_in_order(part.notes for part in results),
        algorithms=algorithms,
        took_s=max(part.took_s for part in results),
        cpu_s=sum(part.cpu_s for part in results),
        peak_pss=max(part.peak_pss for part in results),
        proofs=_proofs(parts),
        unproven=_in_order(part.unproven for part in results),
        libraries=_libraries(parts),
        unfinished=tuple(name for name in _in_order(part.unfinished for part in results) if name not in done),
        shard="",
    )


def _in_order(lists: Iterable[Sequence[T]]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(item for items in lists for item in items))


def _check_alike(parts: Mapping[str, RunResult]) -> None:
    if len(parts) < 2:
        raise BadInput("one file of results is nothing to merge: name two or more")
    (name, first), *others = parts.items()
    for other, part in others:
        for what in ("version", "revision", "seed", "counts"):
            mine, its = getattr(first, what), getattr(part, what)
            if mine != its:
                raise BadInput(
                    f"{name} and {other} are not of one run: {what} is {_shown(mine)} in the first and "
                    f"{_shown(its)} in the second: run the shards again at one revision, with the same options"
                )


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {count}" for name, count in sorted(value.items())) or "none"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _check_shards(parts: Mapping[str, RunResult]) -> None:
    """Shards of one split must all be there, each once."""
    shards = {name: parse_shard(part.shard) for name, part in parts.items() if part.shard}
    seen: dict[Shard, str] = {}
    for name, shard in shards.items():
        if shard in seen:
            raise BadInput(f"{seen[shard]} and {name} are both shard {shard}: name each shard once")
        seen[shard] = name
    sizes = {shard.of for shard in seen}
    if len(sizes) > 1:
        raise BadInput(f"the shards are of different splits, {', '.join(map(str, seen))}: run those of one split")
    missing = [str(Shard(number, of)) for of in sizes for number in range(1, of + 1) if Shard(number, of) not in seen]
    if missing:
        raise BadInput(f"shard {', '.join(missing)} is missing beside {', '.join(map(str, seen))}: name all shards")


def _joined(what: str, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """One table of several, which must agree where they meet."""
    joined: dict[str, Any] = {}
    source: dict[str, str] = {}
    for name, table in tables.items():
        for key, value in table.items():
            if joined.setdefault(key, value) != value:
                raise BadInput(
                    f"{source[key]} and {name} are not of one machine: {what} {key} are {_shown(joined[key])} in the "
                    f"first and {_shown(value)} in the second: run the shards with the same tools"
                )
            source.setdefault(key, name)
    return joined


def _algorithms(parts: Mapping[str, RunResult]) -> tuple[AlgorithmResult, ...]:
    """The plans of all parts, in the order of a whole run, cells of one plan together."""
    joined: dict[str, AlgorithmResult] = {}
    source: dict[str, str] = {}
    for name, part in parts.items():
        for item in part.algorithms:
            known = joined.get(item.name)
            joined[item.name] = item if known is None else _with_cells(known, source[item.name], item, name)
            source.setdefault(item.name, name)
    return tuple(joined[name] for name in sorted(joined, key=lambda name: (_key(joined[name].algorithm), name)))


def _key(algorithm: str) -> tuple[str, str]:
    mode, _, cipher = algorithm.rstrip(")").partition("(")
    return mode, cipher


def _with_cells(known: AlgorithmResult, first: str, item: AlgorithmResult, second: str) -> AlgorithmResult:
    if (known.digest, known.manifest) != (item.digest, item.manifest):
        raise BadInput(
            f"{first} and {second} have different manifests of {item.name}: run the shards with the same "
            "implementations"
        )
    cells = {cell.cell: cell for cell in known.cells}
    for cell in item.cells:
        if cell.cell in cells and _answer(cells[cell.cell]) != _answer(cell):
            raise BadInput(
                f"{first} and {second} say different things of the cell {cell.cell}: run it once, or leave one of the "
                "files out"
            )
        cells.setdefault(cell.cell, cell)
    return replace(
        known,
        cells=tuple(cells.values()),
        took_s=max(known.took_s, item.took_s),
        cpu_s=known.cpu_s + item.cpu_s,
        notes=_in_order((known.notes, item.notes)),
    )


def _answer(cell: CellResult) -> CellResult:
    """A cell without what differs from run to run."""
    return replace(cell, cpu_s=0.0)


def _proofs(parts: Mapping[str, RunResult]) -> tuple[Proof, ...]:
    joined: dict[tuple[str, str], Proof] = {}
    for name, part in parts.items():
        for proof in part.proofs:
            if joined.setdefault((proof.name, proof.cell), proof) != proof:
                raise BadInput(f"{name}: says otherwise of the planted fault {proof.name} in {proof.cell}: run it once")
    return tuple(joined.values())


def _libraries(parts: Mapping[str, RunResult]) -> tuple[LibraryRow, ...]:
    """A row for each library, lane, code path and algorithm; what a part did not run says nothing of it."""
    joined: dict[tuple[str, str, str, str], LibraryRow] = {}
    for row in _rows(parts.values()):
        key = (row.name, row.lane, row.backend, row.algorithm)
        known = joined.get(key)
        if known is None or known.verdict == "not promised":
            joined[key] = row if known is None or row.verdict != "not promised" else known
        if joined[key].library is None and row.library is not None:
            joined[key] = replace(joined[key], library=row.library)
    return tuple(joined[key] for key in sorted(joined, key=lambda key: (key[0], key[1], key[2], _key(key[3]))))


def _rows(results: Iterable[RunResult]) -> Iterator[LibraryRow]:
    for result in results:
        yield from result.libraries
