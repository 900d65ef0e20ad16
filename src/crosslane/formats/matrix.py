# SPDX-License-Identifier: Apache-2.0
"""The matrix for a terminal: a row an algorithm, a column a lane, how many implementations agreed in each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crosslane.names import parse_cell
from crosslane.records import CellResult
from crosslane.results import RunResult

__all__ = ["LEGEND", "matrix_lines", "square"]

LEGEND = "N agreed, N! found, (N) accepted, N? void, unusable or not run, - declined or not effective alone, . none"


def matrix_lines(result: RunResult) -> Iterator[str]:
    """The lines: a legend of the lanes, then a row for each algorithm."""
    lanes: dict[str, None] = {}
    rows: dict[str, dict[str, list[CellResult]]] = {}
    for cell in result.cells():
        name = parse_cell(cell.cell)
        lanes.setdefault(name.lane)
        rows.setdefault(str(name.algorithm), {}).setdefault(name.lane, []).append(cell)
    if not rows:
        yield "no cell was run"
        return
    table = [["", *(str(number) for number, _ in enumerate(lanes, 1))]]
    table += [[name, *(square(rows[name].get(lane, ())) for lane in lanes)] for name in sorted(rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for number, lane in enumerate(lanes, 1):
        yield f"{number:>4} {lane}"
    yield f"     {LEGEND}"
    for row in table:
        first, *rest = row
        padded = [text.rjust(width) for text, width in zip(rest, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *padded])


def square(cells: Sequence[CellResult]) -> str:
    """What is said of the cells of one algorithm in one lane."""
    agreed = sum(cell.state == "ran" and not cell.red for cell in cells)
    accepted = sum(cell.red and cell.accepted for cell in cells)
    broken = sum(cell.state in ("void", "not_run", "unusable") for cell in cells)
    found = sum(cell.red and not cell.accepted for cell in cells if cell.state not in ("void", "not_run", "unusable"))
    parts = [
        f"{found}!" if found else "",
        f"{broken}?" if broken else "",
        f"({accepted})" if accepted else "",
        str(agreed) if agreed else "",
    ]
    return "".join(parts) or ("-" if cells else ".")
