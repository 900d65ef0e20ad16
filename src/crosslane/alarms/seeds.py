# SPDX-License-Identifier: Apache-2.0
"""Many seeds in one go: every cell with each of them in the same processes, to see that none is red without a cause.

A seed comes to what ``crosslane check`` makes of it with the same share of the counts. What is planned once, opened
once and judged once, as no seed decides it, is most of what such short runs cost. Trials, whose data alone depend on
the seed, are made with the first of those that run together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from crosslane.campaign import default_workers, keep_manifests, side_by_side, with_judgements
from crosslane.checks import load_checks
from crosslane.conduct import conduct_seeds
from crosslane.model import Registry
from crosslane.plan import AlgorithmPlan, Counts, Selection, make_plans
from crosslane.records import AlgorithmResult, CellResult
from crosslane.report import complaints
from crosslane.results import exit_status
from crosslane.vectors import all_vectors

__all__ = ["SeedOutcome", "run_seeds", "with_seed"]


@dataclass(frozen=True)
class SeedOutcome:
    """What all cells came to with one seed: how many of each, and those that are red, void or did not run.

    ``status`` is the exit status of a ``check`` with this seed.
    """

    seed: str
    status: int
    num_cells: int
    comparisons: int
    alarms: tuple[CellResult, ...]

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


def run_seeds(
    registry: Registry,
    selection: Selection,
    seeds: Sequence[str],
    counts: Counts,
    *,
    together: int,
    num_workers: int | None = None,
) -> Iterator[SeedOutcome]:
    """Run all seeds, so many ``together``: their outcomes come when all cells are through with these."""
    vectors, _ = all_vectors(registry, imported=False)
    plans = make_plans(registry, selection, counts=counts, vectors=vectors).algorithms
    for first in range(0, len(seeds), together):
        yield from _run_together(plans, seeds[first : first + together], num_workers or default_workers())


@dataclass(frozen=True)
class _Part:
    """What one algorithm adds to a seed's outcome; of its cells only those that are not green are kept."""

    statuses: frozenset[int]
    num_cells: int
    comparisons: int
    alarms: tuple[CellResult, ...]


def _run_together(plans: Sequence[AlgorithmPlan], seeds: Sequence[str], num_workers: int) -> Iterator[SeedOutcome]:
    longest_first = sorted(plans, key=lambda plan: -plan.total)
    tasks = [tuple(with_seed(plan, seed) for seed in seeds) for plan in longest_first]
    parts = list(side_by_side(_parts, tasks, num_workers=num_workers))
    for number, seed in enumerate(seeds):
        mine = [part[number] for part in parts]
        yield SeedOutcome(
            seed,
            max((status for part in mine for status in part.statuses), default=0),
            sum(part.num_cells for part in mine),
            sum(part.comparisons for part in mine),
            tuple(cell for part in mine for cell in part.alarms),
        )


def _parts(plans: tuple[AlgorithmPlan, ...]) -> list[_Part]:
    """In a worker: one algorithm with each seed. The manifests of red cells are kept, so that cases can be repeated."""
    checks = load_checks(plans[0].root)
    results = with_judgements(conduct_seeds(plans), checks)
    parts = [_part(result) for result in results]
    keep_manifests([plan for plan, part in zip(plans, parts, strict=True) if part.alarms])
    return parts


def _part(result: AlgorithmResult) -> _Part:
    alarms = tuple(cell for cell in result.cells if exit_status([cell]) != 0)
    return _Part(
        frozenset(exit_status([cell]) for cell in result.cells),
        len(result.cells),
        sum(cell.comparisons for cell in result.cells),
        alarms,
    )
