# SPDX-License-Identifier: Apache-2.0
"""Published and peers' figures and goals, from ``marks.toml``, to stand beside what was measured today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslane.bench.counting import Counts
from crosslane.bench.measure import Measurement
from crosslane.bench.tables import grid
from crosslane.errors import BadInput
from crosslane.model import Algorithm
from crosslane.names import DRIVER_PATTERN, parse_algorithm
from crosslane.tomlread import Field, read_fields, read_toml

__all__ = ["Mark", "load_marks", "marks_table"]

_TEXT = Field(kind="str", pattern=r"\S[^\n]*")
_FIELDS = {
    "algorithm": Field(kind="str"),
    "direction": Field(kind="str", allowed=("encrypt", "decrypt")),
    "subject": Field(kind="str", pattern=DRIVER_PATTERN),
    "unit": Field(kind="str", allowed=("cycles/byte", "instructions/byte", "ratio")),
    "low": Field(kind="float"),
    "high": Field(kind="float"),
    "over": Field(kind="str", pattern=f"|{DRIVER_PATTERN}"),
    "kind": Field(kind="str", allowed=("published", "peer", "goal")),
    "machine": _TEXT,
    "source": _TEXT,
}


@dataclass(frozen=True)
class Mark:
    """One figure, ``low`` to ``high`` in ``unit``; a ratio is speed over that of the driver ``over``."""

    algorithm: Algorithm
    direction: str
    subject: str
    unit: str
    low: float
    high: float
    over: str
    kind: str
    machine: str
    source: str

    @property
    def figure(self) -> str:
        """The figure for people."""
        text = f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"
        return f"{text} x {self.over}" if self.unit == "ratio" else f"{text} {self.unit}"


def load_marks(path: Path | None = None) -> list[Mark]:
    """Read the marks in their order; raises ``BadInput`` for anything that is not exactly a mark."""
    path = path or Path(__file__).with_name("marks.toml")
    content = read_toml(path)
    tables = content.pop("mark", None)
    if content or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise BadInput(f"{path.name}: must hold [[mark]] tables and nothing else; correct the file")
    return [_read(path, f"mark {i + 1}", table) for i, table in enumerate(tables)]


def _read(path: Path, where: str, table: dict[str, object]) -> Mark:
    values = read_fields(path, table, _FIELDS, where=where)
    if not 0 < values["low"] <= values["high"]:
        raise BadInput(
            f"{path.name}: {where}: low is {values['low']} and high {values['high']}; 0 < low <= high is needed"
        )
    if (values["unit"] == "ratio") != bool(values["over"]):
        raise BadInput(f'{path.name}: {where}: over is {values["over"]!r}; name a driver for a ratio, "" elsewhere')
    return Mark(**{**values, "algorithm": parse_algorithm(values["algorithm"])})


def _today(mark: Mark, results: Sequence[Measurement], counts: Sequence[Counts]) -> str:
    """What was measured of the same kind: the driver's own; for a peer's figure and our goals the best of ours."""
    found: list[tuple[float, str]] = []
    for counted in counts if mark.unit == "instructions/byte" else ():
        if (counted.job.algorithm, counted.job.direction) == (mark.algorithm, mark.direction):
            names = {name for name, _ in counted.instructions}
            found += [(counted.per_byte(name, _largest(counted.instructions, name)), name) for name in names]
    for measured in results:
        job = measured.job
        if (job.algorithm, job.direction) != (mark.algorithm, mark.direction):
            continue
        for name in {subject.name for subject in job.subjects if subject.cipher and measured.sizes(subject.name)}:
            size = max(measured.sizes(name))
            if mark.unit == "cycles/byte" and measured.clock.name != "none":
                found.append((measured.series[name, size].cycles_per_byte.value, name))
            if mark.unit == "ratio" and mark.over == job.subjects[0].name != name:
                found.append((measured.ratio(name, size).value, name))
    same = [item for item in found if item[1] == mark.subject]
    if not same and (mark.kind == "peer" or mark.subject == "crosslane"):
        same = found
    if not same:
        return "-"
    value, name = max(same) if mark.unit == "ratio" else min(same)
    return f"{value:.2f} ({name})"


def _largest(instructions: Mapping[tuple[str, int], int], name: str) -> int:
    return max(size for subject, size in instructions if subject == name)


def marks_table(marks: Sequence[Mark], results: Sequence[Measurement], counts: Sequence[Counts]) -> str:
    """One row for each mark of an algorithm and direction that was measured, with today's figure beside it."""
    timed = {(found.job.algorithm, found.job.direction) for found in results}
    counted = {(found.job.algorithm, found.job.direction) for found in counts}
    rows = [["algorithm", "kind", "subject", "figure", "today", "machine", "source"]]
    for mark in marks:
        if (mark.algorithm, mark.direction) in (counted if mark.unit == "instructions/byte" else timed):
            name = f"{mark.algorithm} {mark.direction[:3]}"
            rows.append(
                [name, mark.kind, mark.subject, mark.figure, _today(mark, results, counts), mark.machine, mark.source]
            )
    if len(rows) == 1:
        return "marks: none is on file for what was measured"
    return f"marks (the machines differ: compare ratios, not cycles)\n{grid(rows, left=range(7))}"
