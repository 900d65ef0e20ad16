# SPDX-License-Identifier: Apache-2.0
"""The one result model of a run, its JSON, and the strict reader of that."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from crosslane.errors import HarnessFault
from crosslane.records import AlgorithmResult, CellResult, Count, LibraryRow, Proof, Seconds
from crosslane.wholefiles import NotWritten, write_files

__all__ = ["RESULT_VERSION", "RunResult", "exit_status", "result_text", "write_json"]

RESULT_VERSION = 4


@dataclass(frozen=True)
class RunResult:
    """All that one run learned. ``took_s`` is wall time, ``cpu_s`` CPU time and ``peak_pss`` the most memory in bytes
    of the whole process tree. ``proofs`` say whether planted faults were caught, ``unproven`` names those that
    no lane of this host shows, or no message of a run. ``libraries`` has a row for each library, algorithm and code
    path. ``unfinished`` are the plans that an interrupted run did not come to the end of; ``shard`` is the part of the
    whole that was run, such as ``2/3``. ``counts`` are the comparisons planned for each kind of cell (``plan.Counts``).
    """

    version: int
    revision: str
    seed: str
    host: str
    tools: dict[str, dict[str, str]]
    sandbox_missing: tuple[str, ...]
    notes: tuple[str, ...]
    algorithms: tuple[AlgorithmResult, ...]
    took_s: Seconds
    cpu_s: Seconds
    peak_pss: Count = 0
    proofs: tuple[Proof, ...] = ()
    unproven: tuple[str, ...] = ()
    libraries: tuple[LibraryRow, ...] = ()
    unfinished: tuple[str, ...] = ()
    shard: str = ""
    counts: Mapping[str, Count] = field(default_factory=dict)

    def cells(self) -> Iterator[CellResult]:
        """Every cell, in the order of the plans."""
        for algorithm in self.algorithms:
            yield from algorithm.cells

    @property
    def comparisons(self) -> int:
        """Comparisons of the whole run."""
        return sum(cell.comparisons for cell in self.cells())

    @property
    def spread(self) -> tuple[int, float]:
        """The least and the median number of comparisons of a cell that ran."""
        counts = [cell.comparisons for cell in self.cells() if cell.state == "ran"]
        return (min(counts), statistics.median(counts)) if counts else (0, 0.0)


def exit_status(cells: Sequence[CellResult]) -> int:
    """0 all green, 1 findings, 2 where a library cannot be used, 3 where a cell is void or none is there."""
    if not cells or any(cell.state in ("void", "not_run") for cell in cells):
        return 3
    if any(cell.red and cell.state != "unusable" for cell in cells):
        return 1
    return 2 if any(cell.state == "unusable" for cell in cells) else 0


def result_text(result: RunResult) -> str:
    """The result as JSON, of which ``resultfile.read_json`` makes it again."""
    return json.dumps(asdict(result), indent=1, sort_keys=True) + "\n"


def write_json(result: RunResult, path: Path) -> None:
    """Write the result; the file is whole or as it was. Raises HarnessFault."""
    try:
        write_files({path: result_text(result)})
    except NotWritten as error:
        raise HarnessFault(
            f"{path}: the results cannot be written ({error.strerror}): free some space or name another file with "
            "--json; what was compared stands above"
        ) from error
