# SPDX-License-Identifier: Apache-2.0
"""What a run does with findings: deviations before it, the store and the exit status after it.

``crosslane check`` keeps all findings. The pytest suite and ``crosslane alarms`` keep none: they shrink those of cells
that a deviation is about, to see whether it accepts them.
"""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosslane.checks import Check, judge_all
from crosslane.errors import BadInput
from crosslane.findings.deviations import Deviation, Ran, check_dates, default_file, load_deviations, unused
from crosslane.findings.gather import Raw
from crosslane.findings.keep import Keeper, KeptRun, kept_lines, ran_of
from crosslane.findings.record import Record
from crosslane.findings.store import Store
from crosslane.model import Registry
from crosslane.plan import RunPlan
from crosslane.records import AlgorithmResult, CellResult, FaultSeen
from crosslane.results import exit_status

__all__ = ["Findings", "accepted_by", "excused", "status_with", "unused_text", "with_acceptance", "with_faults"]


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
        keeper = self.keeper(registry, revision=revision, say=say)
        return keeper.keep(plans, results, num_workers=num_workers, raws=raws)

    def keeper(self, registry: Registry, *, revision: str, say: Callable[[str], None] = lambda _: None) -> Keeper:
        """Who writes to the store, with the deviations that are in force."""
        return Keeper(registry, self.store, revision=revision, impls=self.impls, deviations=self.deviations, say=say)

    def lines(self, kept: KeptRun) -> list[str]:
        """What is printed below the report."""
        return list(kept_lines(kept, self.store, self.impls))

    def look(self, registry: Registry, plans: RunPlan, results: Sequence[AlgorithmResult]) -> KeptRun:
        """The findings of those cells that a deviation is about, shrunk as ``keep`` shrinks them, and not kept."""
        wanted = [replace(item, cells=tuple(cell for cell in item.cells if self._is_about(cell))) for item in results]
        if not any(result.cells for result in wanted):
            return KeptRun((), ())
        with tempfile.TemporaryDirectory(prefix="crosslane-findings-") as folder:
            keeper = Keeper(registry, Store(Path(folder)), revision="", impls=self.impls, deviations=self.deviations)
            return keeper.keep(plans, wanted)

    def _is_about(self, result: CellResult) -> bool:
        return bool(result.findings) and any(item.is_about(ran_of(result)) for item in self.deviations)

    def reason_for(self, record: Record, cell: CellResult) -> str:
        """Why an accepted finding of a cell is one."""
        found = [item.reason for item in self.deviations if item.accepts(record.key, ran_of(cell))]
        return found[0] if found else ""

    def unused(self, results: Sequence[AlgorithmResult], kept: KeptRun) -> list[tuple[Deviation, str]]:
        """Deviations that a complete run of their cells had no use for, each with the algorithm."""
        cells = {cell.cell: ran_of(cell) for result in results for cell in result.cells if cell.state == "ran"}
        seen = [(record.key, cells[name]) for name, record in kept.sightings if name in cells]
        return unused(self.deviations, cells.values(), seen)

    def check_unused(self, results: Sequence[AlgorithmResult], kept: KeptRun) -> None:
        """Raise BadInput for a deviation that a complete run of its cells had no use for."""
        for idle, algorithm in self.unused(results, kept):
            raise BadInput(unused_text(self.file, idle, algorithm))


def unused_text(file: Path, idle: Deviation, algorithm: str) -> str:
    """What is said of a deviation that a complete run had no use for."""
    key = idle.key
    mend = f"remove it, or let it fit {algorithm} no more" if idle.by_pattern else "remove it"
    return (
        f"{file.name}: the deviation {idle.name} ({key.implementation}, {algorithm}, {key.symptom}, "
        f"{key.fault_class}) is unused: this run did not see its finding; {mend}"
    )


def with_faults(
    results: Sequence[AlgorithmResult], kept: KeptRun, deviations: Sequence[Deviation] = ()
) -> list[AlgorithmResult]:
    """The same results, each cell with the findings that it showed, by which checks know their own."""
    seen: dict[str, list[Record]] = {}
    for cell, record in kept.sightings:
        seen.setdefault(cell, []).append(record)
    untold = dict(kept.failed)

    def fault(record: Record, ran: Ran) -> FaultSeen:
        key = record.key
        reasons = [item.reason for item in deviations if record.state == "accepted" and item.accepts(key, ran)]
        return FaultSeen(record.id, key.symptom, key.fault_class, record.text, reasons[0] if reasons else "")

    def told(cell: CellResult) -> CellResult:
        faults = tuple(fault(record, ran_of(cell)) for record in seen.get(cell.cell, ()))
        return replace(cell, faults=faults, untold=untold.get(cell.cell, ""))

    return [replace(result, cells=tuple(told(cell) for cell in result.cells)) for result in results]


def accepted_by(cell: CellResult, kept: KeptRun) -> tuple[Record, ...]:
    """The findings of a cell, each once, where all that departed in it are accepted ones; else none."""
    mine = {record.id: record for name, record in kept.sightings if name == cell.cell}
    is_left = any(name == cell.cell for name, _ in kept.failed)
    return () if is_left or {record.state for record in mine.values()} != {"accepted"} else tuple(mine.values())


def excused(cell: CellResult, kept: KeptRun, checks: Sequence[Check]) -> CellResult:
    """The cell as the exit status takes it: judged as if nothing had departed where all its findings are accepted.

    Where these ended too many processes, the comparisons behind them are not missed either.
    """
    if accepted_by(cell, kept):
        made = cell.comparisons - cell.num_vectors
        wanted = min(cell.wanted, made) if cell.skipped else cell.wanted
        cell = replace(cell, findings=(), faults=(), num_departed=0, skipped=0, wanted=wanted)
    return replace(cell, judgements=judge_all(checks, cell))


def with_acceptance(
    results: Sequence[AlgorithmResult], kept: KeptRun, checks: Sequence[Check]
) -> list[AlgorithmResult]:
    """The same judged results, which say of each red cell whether it is so by accepted findings alone."""

    def said(cell: CellResult) -> CellResult:
        return replace(cell, accepted=cell.red and not excused(cell, kept, checks).red)

    return [replace(result, cells=tuple(said(cell) for cell in result.cells)) for result in results]


def status_with(cells: Sequence[CellResult], kept: KeptRun, checks: Sequence[Check]) -> int:
    """The exit status of a run, in which a cell all of whose findings are accepted does not count as red."""
    return exit_status([excused(cell, kept, checks) for cell in cells])
