# SPDX-License-Identifier: Apache-2.0
"""What ``crosslane check`` does with findings: deviations before the run, the store and the exit status after it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosslane.campaign import with_judgements
from crosslane.checks import Check
from crosslane.errors import BadInput
from crosslane.findings.deviations import Deviation, check_dates, default_file, load_deviations, unused
from crosslane.findings.gather import Raw
from crosslane.findings.keep import Keeper, KeptRun, kept_lines, version_of
from crosslane.findings.store import Store
from crosslane.model import Registry
from crosslane.names import parse_cell
from crosslane.plan import RunPlan
from crosslane.records import AlgorithmResult, CellResult, FaultSeen
from crosslane.results import exit_status

__all__ = ["Findings", "status_with", "with_faults"]


@dataclass(frozen=True)
class Findings:
    """Where findings go and which are accepted. ``impls`` are the folders given with ``--impls``."""

    store: Store
    deviations: tuple[Deviation, ...]
    file: Path
    impls: tuple[str, ...]

    @classmethod
    def at(cls, folder: Path, root: Path, impls: Sequence[str]) -> Findings:
        """The findings in ``folder``; raises BadInput for a malformed deviation or one whose review is due."""
        file = default_file(root)
        deviations = load_deviations(file)
        check_dates(deviations, file, dt.datetime.now(tz=dt.UTC).date())
        return cls(Store(folder), deviations, file, tuple(impls))

    def keep(
        self,
        registry: Registry,
        plans: RunPlan,
        results: Sequence[AlgorithmResult],
        *,
        revision: str,
        say: Callable[[str], None],
        num_workers: int = 1,
        raws: Mapping[str, Sequence[Raw]] | None = None,
    ) -> KeptRun:
        """Keep what the run found, shrunk by some workers; nothing is touched where nothing departed."""
        if not any(cell.findings for result in results for cell in result.cells):
            return KeptRun((), ())
        keeper = Keeper(registry, self.store, revision=revision, impls=self.impls, deviations=self.deviations, say=say)
        return keeper.keep(plans, results, num_workers=num_workers, raws=raws)

    def lines(self, kept: KeptRun) -> list[str]:
        """What is printed below the report."""
        return list(kept_lines(kept, self.store, self.impls))

    def check_unused(self, results: Sequence[AlgorithmResult], kept: KeptRun) -> None:
        """Raise BadInput for a deviation that a complete run of its cells had no use for."""
        cells = [cell for result in results for cell in result.cells if cell.state == "ran"]
        ran = [(parse_cell(cell.cell).driver, str(parse_cell(cell.cell).algorithm), version_of(cell)) for cell in cells]
        idle = unused(self.deviations, ran, [record.id for record in kept.records])
        if idle:
            key = idle[0].key
            raise BadInput(
                f"{self.file.name}: the deviation {key.id} ({key.implementation}, {key.algorithm}, {key.symptom}, "
                f"{key.fault_class}) is unused: this run did not see its finding; remove it"
            )


def with_faults(results: Sequence[AlgorithmResult], kept: KeptRun) -> list[AlgorithmResult]:
    """The same results, each cell with the findings that it showed, by which checks know their own."""
    seen: dict[str, list[FaultSeen]] = {}
    for cell, record in kept.sightings:
        key = record.key
        seen.setdefault(cell, []).append(FaultSeen(record.id, key.symptom, key.fault_class, record.text))

    def told(cell: CellResult) -> CellResult:
        return replace(cell, faults=tuple(seen.get(cell.cell, ())))

    return [replace(result, cells=tuple(told(cell) for cell in result.cells)) for result in results]


def status_with(cells: Sequence[CellResult], kept: KeptRun, checks: Sequence[Check]) -> int:
    """The exit status of a run, in which a cell all of whose findings are accepted does not count as red."""
    by_cell: dict[str, list[str]] = {}
    for cell, record in kept.sightings:
        by_cell.setdefault(cell, []).append(record.state)
    failed = {cell for cell, _ in kept.failed}

    def seen(cell: CellResult) -> CellResult:
        states = by_cell.get(cell.cell, [])
        if not states or set(states) != {"accepted"} or cell.cell in failed:
            return cell
        return replace(cell, findings=(), faults=(), num_departed=0, skipped=0)

    excused = [AlgorithmResult("", "", "", "", tuple(seen(cell) for cell in cells), 0.0)]
    return exit_status(with_judgements(excused, checks)[0].cells)
