# SPDX-License-Identifier: Apache-2.0
"""The matrix by algorithm and lane, and below it each algorithm with its cells: what the templates print.

What many cells share is said once and pointed at: the judgements of all checks, and a table of paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from crosslane.html.looks import Look, counted, look_of, worst
from crosslane.names import parse_cell
from crosslane.records import AlgorithmResult, CellResult, Judgement
from crosslane.results import RunResult
from crosslane.wire import class_name

__all__ = [
    "CLASSES",
    "AlgorithmPart",
    "CellRow",
    "Judged",
    "LanePart",
    "MatrixGroup",
    "MatrixRow",
    "PathTable",
    "Slot",
    "Tables",
    "missing_features",
    "tables_of",
]

CLASSES = tuple(class_name(number) for number in range(16))
"""The length classes, from less than a block to the longest."""


@dataclass(frozen=True)
class Slot:
    """A square of the matrix: the look to be seen first, how many cells have it, and the others in words."""

    anchor: str
    look: Look
    count: int
    others: tuple[str, ...]


@dataclass(frozen=True)
class MatrixRow:
    """An algorithm in all lanes; None where it has no cell."""

    name: str
    anchor: str
    slots: tuple[Slot | None, ...]
    green: bool


@dataclass(frozen=True)
class MatrixGroup:
    """The rows of one cipher."""

    cipher: str
    rows: tuple[MatrixRow, ...]


@dataclass(frozen=True)
class CellRow:
    """One cell. ``counts`` are comparisons, vectors, those in two threads, bulk, large, held against references."""

    subject: str
    look: Look
    counts: tuple[int, ...]
    rate: float
    cpu_s: float
    paths: str
    paths_anchor: str
    judged: Judged
    notes: tuple[str, ...]


@dataclass(frozen=True)
class LanePart:
    """The cells of an algorithm in one lane."""

    lane: str
    anchor: str
    rows: tuple[CellRow, ...]


@dataclass(frozen=True)
class PathTable:
    """In which length classes the paths of one implementation were taken, and in which lanes that was so."""

    anchor: str
    subject: str
    lanes: tuple[str, ...]
    rows: tuple[tuple[str, bool, tuple[bool, ...]], ...]


@dataclass(frozen=True)
class AlgorithmPart:
    """All that is said of an algorithm. ``covered``: what messages exercise, with the least and the most of a cell."""

    name: str
    anchor: str
    look: Look
    verdicts: tuple[tuple[Look, int], ...]
    lanes: tuple[LanePart, ...]
    paths: tuple[PathTable, ...]
    covered: tuple[tuple[str, int, int], ...]
    notes: tuple[str, ...]
    plans: tuple[tuple[str, str], ...]
    comparisons: int
    took_s: float
    cpu_s: float


@dataclass(frozen=True)
class Judged:
    """What all checks say of some cells alike; ``other`` has the checks that do not apply, by reason."""

    anchor: str
    passed: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]
    other: tuple[tuple[str, tuple[str, ...]], ...]
    num_cells: int

    @property
    def text(self) -> str:
        """In a few characters."""
        failed = f"✕ {len(self.failed)} of " if self.failed else "✓ "
        return f"{failed}{len(self.passed) + len(self.failed)}"


@dataclass(frozen=True)
class Tables:
    """The matrix with its lanes, the algorithms, the judgements, and the sentence of each check."""

    lanes: tuple[str, ...]
    matrix: tuple[MatrixGroup, ...]
    algorithms: tuple[AlgorithmPart, ...]
    judged: tuple[Judged, ...]
    sentences: tuple[tuple[str, str], ...]


def tables_of(result: RunResult) -> Tables:
    """The tables of a run; raises BadInput where a cell's name is none."""
    lanes = tuple(sorted({parse_cell(cell.cell).lane for cell in result.cells()}))
    judged = _judged(result)
    parts: dict[str, list[AlgorithmResult]] = {}
    for algorithm in result.algorithms:
        parts.setdefault(algorithm.algorithm, []).append(algorithm)
    algorithms = tuple(_algorithm(f"a{i}", parts[name], judged) for i, name in enumerate(sorted(parts, key=_by_cipher)))
    sentences = {item.check: item.sentence for cell in result.cells() for item in cell.judgements}
    return Tables(
        lanes=lanes,
        matrix=_matrix(algorithms, lanes),
        algorithms=algorithms,
        judged=tuple(judged.values()),
        sentences=tuple(sorted(sentences.items())),
    )


def _by_cipher(name: str) -> tuple[str, str]:
    mode, _, rest = name.partition("(")
    return rest, mode


def _judged(result: RunResult) -> dict[tuple[Judgement, ...], Judged]:
    """Every set of judgements that occurs, with how many cells have it."""
    counts: dict[tuple[Judgement, ...], int] = {}
    for cell in result.cells():
        counts[cell.judgements] = counts.get(cell.judgements, 0) + 1
    found = {}
    for number, (judgements, count) in enumerate(counts.items()):
        other: dict[str, list[str]] = {}
        for item in judgements:
            if item.passed is None:
                other.setdefault(item.reason, []).append(item.check)
        found[judgements] = Judged(
            anchor=f"j{number}",
            passed=tuple(item.check for item in judgements if item.passed),
            failed=tuple((item.check, item.reason) for item in judgements if item.passed is False),
            other=tuple((reason, tuple(checks)) for reason, checks in other.items()),
            num_cells=count,
        )
    return found


def _algorithm(
    anchor: str, plans: Sequence[AlgorithmResult], judged: Mapping[tuple[Judgement, ...], Judged]
) -> AlgorithmPart:
    cells = [cell for plan in plans for cell in plan.cells]
    paths, places = _paths(anchor, cells)
    by_lane: dict[str, list[CellResult]] = {}
    for cell in cells:
        by_lane.setdefault(parse_cell(cell.cell).lane, []).append(cell)
    verdicts = counted(cells)
    return AlgorithmPart(
        name=plans[0].algorithm,
        anchor=anchor,
        look=worst(look for look, _ in verdicts),
        verdicts=tuple(verdicts),
        lanes=tuple(
            LanePart(lane, f"{anchor}-{number}", tuple(_row(cell, judged, places) for cell in _ordered(by_lane[lane])))
            for number, lane in enumerate(sorted(by_lane))
        ),
        paths=paths,
        covered=tuple(_covered(cells)),
        notes=tuple(dict.fromkeys(note for plan in plans for note in plan.notes)),
        plans=tuple((plan.name, plan.digest) for plan in plans),
        comparisons=sum(cell.comparisons for cell in cells),
        took_s=sum(plan.took_s for plan in plans),
        cpu_s=sum(plan.cpu_s for plan in plans),
    )


def _ordered(cells: Iterable[CellResult]) -> list[CellResult]:
    """Implementations before libraries, each by name."""
    return sorted(cells, key=lambda cell: (cell.provider, cell.cell))


def _subject(cell: CellResult) -> str:
    name = parse_cell(cell.cell)
    return f"{name.driver}:{name.backend}" if name.backend else name.driver


def _row(cell: CellResult, judged: Mapping[tuple[Judgement, ...], Judged], places: Mapping[str, str]) -> CellRow:
    taken = sum(1 for classes in cell.paths.values() if classes)
    return CellRow(
        subject=_subject(cell),
        look=look_of(cell),
        counts=(
            cell.comparisons, cell.num_vectors, cell.num_threaded, cell.num_bulk, cell.num_large, cell.num_sampled
        ),
        rate=cell.comparisons / cell.cpu_s if cell.cpu_s else 0.0,
        cpu_s=cell.cpu_s,
        paths=f"{taken} of {len(cell.paths)}" if cell.paths else "",
        paths_anchor=places.get(cell.cell, ""),
        judged=judged[cell.judgements],
        notes=tuple(_notes(cell)),
    )  # fmt: skip


def missing_features(cell: CellResult) -> str:
    """Which features of a CPU a cell that declined asks for and has not, with commas."""
    return ", ".join(sorted(set(cell.needed_features) - set(cell.cpu_features))) if cell.state == "declined" else ""


def _notes(cell: CellResult) -> Iterable[str]:
    """What is particular about a cell, beside its numbers."""
    if cell.reason:
        yield cell.reason
    missing = missing_features(cell)
    if missing:
        yield f"the CPU of this lane has no {missing}"
    elif cell.state == "declined" and cell.optional:
        yield "the installed library has been built without it"
    if cell.switch and cell.switch != cell.reason:
        yield cell.switch
    if cell.library:
        yield f"version {cell.library.version}"
    if cell.skipped:
        yield f"{cell.skipped:,} cases could not be judged"
    if cell.num_departed:
        yield f"{cell.num_departed:,} cases departed"
    if cell.state == "ran" and cell.wanted > cell.comparisons:
        yield f"{cell.wanted:,} comparisons were promised"
    if cell.judged_by:
        yield "also judged by " + ", ".join(f"{name} on {count:,}" for name, count in cell.judged_by.items())
    if cell.unwatched:
        yield "not observed: " + ", ".join(cell.unwatched)


def _covered(cells: Sequence[CellResult]) -> Iterable[tuple[str, int, int]]:
    """Of each thing that messages exercise, how many of a first batch do: the least and the most of the cells."""
    found: dict[str, list[int]] = {}
    for cell in cells:
        for name, count in cell.covered.items():
            found.setdefault(name, []).append(count)
    return ((name, min(counts), max(counts)) for name, counts in sorted(found.items()))


def _paths(anchor: str, cells: Sequence[CellResult]) -> tuple[tuple[PathTable, ...], dict[str, str]]:
    """A table for each implementation and way in which its paths were taken, and which one each cell has."""
    same: dict[tuple[str, tuple[tuple[str, bool, tuple[bool, ...]], ...]], list[CellResult]] = {}
    for cell in cells:
        if cell.paths:
            rows = tuple(
                (name, name in cell.declared_paths, tuple(item in classes for item in CLASSES))
                for name, classes in cell.paths.items()
            )
            same.setdefault((_subject(cell), rows), []).append(cell)
    tables = []
    places = {}
    for number, ((subject, rows), mine) in enumerate(sorted(same.items(), key=lambda item: item[0][0])):
        lanes = tuple(parse_cell(cell.cell).lane for cell in mine)
        tables.append(PathTable(f"{anchor}-p{number}", subject, lanes, rows))
        places.update({cell.cell: f"{anchor}-p{number}" for cell in mine})
    return tuple(tables), places


def _matrix(algorithms: Sequence[AlgorithmPart], lanes: Sequence[str]) -> tuple[MatrixGroup, ...]:
    groups: dict[str, list[MatrixRow]] = {}
    for part in algorithms:
        slots = {item.lane: _slot(item) for item in part.lanes}
        cipher = part.name.partition("(")[2].removesuffix(")")
        green = all(look.kind in ("good", "dim") for look, _ in part.verdicts)
        row = MatrixRow(part.name, part.anchor, tuple(slots.get(lane) for lane in lanes), green)
        groups.setdefault(cipher, []).append(row)
    return tuple(MatrixGroup(cipher, tuple(rows)) for cipher, rows in groups.items())


def _slot(part: LanePart) -> Slot:
    looks = [row.look for row in part.rows]
    first = worst(looks)
    others = {look: looks.count(look) for look in dict.fromkeys(looks) if look is not first}
    return Slot(
        part.anchor, first, looks.count(first), tuple(f"+{count} {look.word}" for look, count in others.items())
    )
