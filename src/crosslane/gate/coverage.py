# SPDX-License-Identifier: Apache-2.0
"""Coverage that may not be lost: cells, checks, paths by length and proofs that a baseline has and a run has not."""

from __future__ import annotations

from collections.abc import Iterator

from crosslane.errors import BadInput
from crosslane.formats import Red
from crosslane.records import CellResult
from crosslane.results import RunResult

__all__ = ["LOST_RULES", "check_baseline", "is_left_out", "lost", "unlike"]

LOST_RULES = ("lost-cells", "lost-checks", "lost-paths", "lost-proofs")
_HOW = {"declined": "declines", "not_effective": "is not effective", "unusable": "cannot be used"}
_CURE = "bring it back, or, where that is meant, write a new baseline with `crosslane gate --json`"


def check_baseline(baseline: RunResult, host: str) -> None:
    """Raise BadInput for a baseline that cannot be one."""
    if baseline.host != host:
        raise BadInput(
            f"the baseline was run on {baseline.host} and what is judged on {host}, where other lanes exist: give one "
            "of the same architecture"
        )
    if baseline.unfinished or baseline.shard:
        raise BadInput(
            "the baseline is a part of a run, interrupted or a shard: give one of a whole run, or join the shards first"
        )
    if all(cell.state != "ran" for cell in baseline.cells()):
        raise BadInput("the baseline has no cell that ran, so that nothing could be lost: give one of a whole run")


def is_left_out(result: RunResult, name: str) -> bool:
    """Whether a cell that is not there is of a plan that an interrupted run did not finish, or of another shard."""
    unfinished = {plan.partition(" ")[0] for plan in result.unfinished}
    return bool(result.shard) or name.partition("/")[0] in unfinished


def unlike(result: RunResult, baseline: RunResult) -> tuple[str, ...]:
    """Why lengths of paths are not compared, where the cases are not the same."""
    if result.seed != baseline.seed:
        return (f"paths are compared without their lengths: the baseline has the seed {baseline.seed!r}",)
    if result.counts != baseline.counts:
        return ("paths are compared without their lengths: the baseline has other numbers of comparisons",)
    return ()


def lost(result: RunResult, baseline: RunResult) -> Iterator[Red]:
    """A red for each cell, check, path and planted fault of the baseline that the result has not."""
    now = {cell.cell: (cell, part.digest) for part in result.algorithms for cell in part.cells}
    alike = not unlike(result, baseline)
    for part in baseline.algorithms:
        for before in part.cells:
            if before.state != "ran":
                continue
            cell, digest = now.get(before.cell, (None, ""))
            if cell is None and is_left_out(result, before.cell):
                continue
            if cell is None or cell.state in ("declined", "not_effective", "unusable"):
                how = _HOW.get(cell.state, "") if cell else "is not part of this run"
                yield Red("lost-cells", before.cell, "", f"it ran in the baseline and now {how}", _CURE)
            elif cell.state == "ran":
                yield from _checks(before, cell)
                yield from _paths(before, cell, by_length=alike and digest == part.digest)
    proven = {proof.name for proof in result.proofs}
    for name, cells in _proofs(baseline).items():
        if name not in proven:
            text = f"the planted fault {name} was run in the baseline, in {cells[0]}, and now not"
            yield Red("lost-proofs", name, "", text, f"run with --prove, or prove = true in [run]; {_CURE}")


def _proofs(baseline: RunResult) -> dict[str, list[str]]:
    """The cells of each planted fault of the baseline, by its name."""
    cells: dict[str, list[str]] = {}
    for proof in baseline.proofs:
        cells.setdefault(proof.name, []).append(proof.cell)
    return cells


def _checks(before: CellResult, cell: CellResult) -> Iterator[Red]:
    judged = {item.check: item for item in cell.judgements}
    for old in before.judgements:
        new = judged.get(old.check)
        if old.passed is not None and (new is None or new.passed is None):
            why = new.reason if new else "there is no such check"
            yield Red(
                "lost-checks", cell.cell, old.check, f"{old.check} was judged in the baseline and now not: {why}", _CURE
            )


def _paths(before: CellResult, cell: CellResult, *, by_length: bool) -> Iterator[Red]:
    for path, classes in before.paths.items():
        new = cell.paths.get(path, ())
        if classes and not new:
            yield Red("lost-paths", cell.cell, path, f"the path {path} was taken in the baseline and now never", _CURE)
        elif by_length and set(classes) - set(new):
            gone = ", ".join(name for name in classes if name not in new)
            text = f"the path {path} was taken in the baseline with lengths of {gone} blocks and now not"
            yield Red("lost-paths", cell.cell, path, text, _CURE)
