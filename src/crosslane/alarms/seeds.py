# SPDX-License-Identifier: Apache-2.0
"""Many seeds in one go: every cell with each of them in the same processes, to see that none is red without a cause.

A seed comes to what ``crosslane check`` makes of it with the same share of the counts. What is planned once, opened
once and judged once, as no seed decides it, is most of what such short runs cost. Trials, whose data alone depend on
the seed, are made with the first of those that run together. A cell all of whose findings are accepted is no alarm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from crosslane.campaign import default_workers, keep_manifests, side_by_side, with_judgements
from crosslane.checks import Check, load_checks
from crosslane.conduct import conduct_seeds
from crosslane.findings.record import Record
from crosslane.findings.run import Findings, accepted_by, excused
from crosslane.model import Lane, Registry
from crosslane.plan import AlgorithmPlan, Counts, RunPlan, Selection, make_plans
from crosslane.records import AlgorithmResult, CellResult
from crosslane.report import complaints
from crosslane.results import exit_status
from crosslane.vectors import all_vectors

__all__ = ["SeedOutcome", "accepted_lines", "run_seeds", "with_seed"]


@dataclass(frozen=True)
class SeedOutcome:
    """What all cells came to with one seed: how many of each, and those that are red, void or did not run.

    ``status`` is the exit status of a ``check`` with this seed. ``accepted`` are the findings of cells that are no
    alarms since all that departed in them is accepted.
    """

    seed: str
    status: int
    num_cells: int
    comparisons: int
    alarms: tuple[CellResult, ...]
    accepted: tuple[Record, ...] = ()

    def lines(self, impls: Sequence[str] = ()) -> Iterator[str]:
        """A line for the seed, and behind it what ``check`` would print of the cells that are not green."""
        verdict = "green" if self.status == 0 else f"{len(self.alarms)} cells not green"
        yield (
            f"seed {self.seed!r}: status {self.status}: {self.num_cells} cells, {self.comparisons:,} comparisons, "
            f"{verdict}"
        )
        again = "".join(f" --impls '{folder}'" for folder in impls)
        for cell in self.alarms:
            failed = ", ".join(judgement.check for judgement in cell.judgements if judgement.passed is False)
            yield f"  {cell.cell}: fails {failed}"
            for line in complaints(cell):
                yield f"  {line}{again if 'see it again: ' in line else ''}"


def with_seed(plan: AlgorithmPlan, seed: str) -> AlgorithmPlan:
    """The plan that ``make_plans`` would make with another seed."""
    quorum = tuple(replace(member, manifest=replace(member.manifest, seed=seed)) for member in plan.quorum)
    return replace(plan, manifest=replace(plan.manifest, seed=seed), quorum=quorum)


def accepted_lines(outcomes: Sequence[SeedOutcome]) -> Iterator[str]:
    """A line for each accepted finding that some seeds showed, with how many and one of its cells."""
    seen: dict[str, list[Record]] = {}
    for outcome in outcomes:
        for record in {record.id: record for record in outcome.accepted}.values():
            seen.setdefault(record.id, []).append(record)
    for name, records in sorted(seen.items()):
        key = records[0].key
        yield (
            f"accepted finding {name}: {key.implementation}, {key.algorithm}, {key.symptom}, {key.fault_class}: with "
            f"{len(records)} of {len(outcomes)} seeds, such as in {records[0].cells[0]}"
        )


def run_seeds(
    registry: Registry,
    selection: Selection,
    seeds: Sequence[str],
    counts: Counts,
    *,
    together: int,
    num_workers: int | None = None,
    impls: Sequence[str] = (),
) -> Iterator[SeedOutcome]:
    """Run all seeds, so many ``together``: their outcomes come when all cells are through with these.

    Raises BadInput for a malformed deviation or one whose review is due.
    """
    findings = Findings.at(Path("findings"), registry.root, impls)
    vectors, _ = all_vectors(registry, imported=False)
    run = make_plans(registry, selection, counts=counts, vectors=vectors)
    look = _Look(registry, run.lanes, findings)
    for first in range(0, len(seeds), together):
        yield from _run_together(
            look, run.algorithms, seeds[first : first + together], num_workers or default_workers()
        )


@dataclass(frozen=True)
class _Look:
    """What it takes to see whether findings are accepted."""

    registry: Registry
    lanes: tuple[Lane, ...]
    findings: Findings


@dataclass(frozen=True)
class _Part:
    """What one algorithm adds to a seed's outcome; of its cells only those that are not green are kept."""

    statuses: frozenset[int]
    num_cells: int
    comparisons: int
    alarms: tuple[CellResult, ...]
    accepted: tuple[Record, ...]


def _run_together(
    look: _Look, plans: Sequence[AlgorithmPlan], seeds: Sequence[str], num_workers: int
) -> Iterator[SeedOutcome]:
    longest_first = sorted(plans, key=lambda plan: -plan.total)
    tasks = [tuple(with_seed(plan, seed) for seed in seeds) for plan in longest_first]
    parts = list(side_by_side(partial(_parts, look), tasks, num_workers=num_workers))
    for number, seed in enumerate(seeds):
        mine = [part[number] for part in parts]
        yield SeedOutcome(
            seed,
            max((status for part in mine for status in part.statuses), default=0),
            sum(part.num_cells for part in mine),
            sum(part.comparisons for part in mine),
            tuple(cell for part in mine for cell in part.alarms),
            tuple(record for part in mine for record in part.accepted),
        )


def _parts(look: _Look, plans: tuple[AlgorithmPlan, ...]) -> list[_Part]:
    """In a worker: one algorithm with each seed. The manifests of red cells are kept, so that cases can be repeated."""
    checks = load_checks(plans[0].root)
    results = with_judgements(conduct_seeds(plans), checks)
    parts = [_part(look, plan, result, checks) for plan, result in zip(plans, results, strict=True)]
    keep_manifests([plan for plan, part in zip(plans, parts, strict=True) if part.alarms])
    return parts


def _part(look: _Look, plan: AlgorithmPlan, result: AlgorithmResult, checks: Sequence[Check]) -> _Part:
    kept = look.findings.look(look.registry, RunPlan((plan,), look.lanes, ()), [result])
    statuses = [exit_status([excused(cell, kept, checks)]) for cell in result.cells]
    return _Part(
        frozenset(statuses),
        len(result.cells),
        sum(cell.comparisons for cell in result.cells),
        tuple(cell for cell, status in zip(result.cells, statuses, strict=True) if status != 0),
        tuple(
            record for cell, status in zip(result.cells, statuses, strict=True) if status == 0
            for record in accepted_by(cell, kept)
        ),
    )  # fmt: skip
