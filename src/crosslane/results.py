# SPDX-License-Identifier: Apache-2.0
"""The one result model of a run, and its JSON."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crosslane.errors import HarnessFault
from crosslane.records import AlgorithmResult, CellResult, LibraryRow, Proof

__all__ = ["RESULT_VERSION", "RunResult", "exit_status", "write_json"]

RESULT_VERSION = 3


@dataclass(frozen=True)
class RunResult:
    """All that one run learned. ``took_s`` is wall time, ``cpu_s`` CPU time and ``peak_pss`` the most memory in bytes
    of the whole process tree. ``proofs`` say whether planted faults were caught, ``unproven`` names those that
    no lane of this host shows, or no message of a run. ``libraries`` has a row for each library, algorithm and code
    path.
    """

    version: int
    revision: str
    seed: str
    host: str
    tools: dict[str, dict[str, str]]
    sandbox_missing: tuple[str, ...]
    notes: tuple[str, ...]
    algorithms: tuple[AlgorithmResult, ...]
    took_s: float
    cpu_s: float
    peak_pss: int = 0
    proofs: tuple[Proof, ...] = ()
    unproven: tuple[str, ...] = ()
    libraries: tuple[LibraryRow, ...] = ()

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


def write_json(result: RunResult, path: Path) -> None:
    """Write the result beside its final name, then rename it: the file is whole or not there."""
    data: dict[str, Any] = asdict(result)
    plain = not path.exists() or path.is_file()  # a device or a pipe is written to, never replaced
    made = path.with_name(f".crosslane-{os.getpid()}-{path.name}") if plain else path
    try:
        with made.open("w") as file:
            json.dump(data, file, indent=1, sort_keys=True)
            file.write("\n")
        if plain:
            made.replace(path)
    except OSError as error:
        raise HarnessFault(
            f"{path}: the results cannot be written ({error.strerror}): free some space or name another file with "
            "--json; what was compared stands above"
        ) from error
    finally:
        if plain:
            with contextlib.suppress(OSError):
                made.unlink()
