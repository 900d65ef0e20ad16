# SPDX-License-Identifier: Apache-2.0
"""What stands beside the cells: throughput, planted faults, what did not run, libraries, and the environment."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from crosslane.html.tables import missing_features
from crosslane.names import parse_cell
from crosslane.records import CellResult, Library, Proof
from crosslane.report import judged_lines, resting_lines
from crosslane.results import RunResult

__all__ = ["Idle", "LaneSpeed", "LibraryPart", "ProofGroup", "idle_of", "libraries_of", "proofs_of", "speeds_of"]

_MOST_NAMES = 12


@dataclass(frozen=True)
class LaneSpeed:
    """What ran in a lane: rates are comparisons a second of CPU, over all cells and of the median and slowest one."""

    lane: str
    num_cells: int
    comparisons: int
    cpu_s: float
    rate: float
    median: float
    slowest: str
    least: float


@dataclass(frozen=True)
class ProofGroup:
    """The planted faults and controls of one implementation."""

    subject: str
    num_faults: int
    num_caught: int
    num_controls: int
    num_green: int
    names: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Idle:
    """One reason why something did not run or was not judged, and what that was."""

    kind: str
    what: str
    where: str
    count: int
    reason: str


@dataclass(frozen=True)
class LibraryPart:
    """A library as it was loaded in a lane; ``verdicts`` has, by code path and verdict, the algorithms."""

    name: str
    lane: str
    place: str
    library: Library | None
    verdicts: tuple[tuple[str, str, tuple[str, ...]], ...]


def speeds_of(result: RunResult) -> tuple[LaneSpeed, ...]:
    """A row for each lane in which something ran."""
    lanes: dict[str, list[CellResult]] = {}
    for cell in result.cells():
        if cell.state == "ran" and cell.cpu_s > 0 and cell.comparisons:
            lanes.setdefault(parse_cell(cell.cell).lane, []).append(cell)
    return tuple(_speed(lane, lanes[lane]) for lane in sorted(lanes))


def _speed(lane: str, cells: list[CellResult]) -> LaneSpeed:
    rates = {cell.cell: cell.comparisons / cell.cpu_s for cell in cells}
    slowest = min(rates, key=lambda name: rates[name])
    comparisons, cpu_s = sum(cell.comparisons for cell in cells), sum(cell.cpu_s for cell in cells)
    return LaneSpeed(
        lane, len(cells), comparisons, cpu_s, comparisons / cpu_s, statistics.median(rates.values()),
        slowest.rpartition("@")[0], rates[slowest],
    )  # fmt: skip


def proofs_of(proofs: Iterable[Proof]) -> tuple[ProofGroup, ...]:
    """The proofs by implementation."""
    groups: dict[str, list[Proof]] = {}
    for proof in proofs:
        groups.setdefault(parse_cell(proof.cell).driver, []).append(proof)
    return tuple(_proof_group(subject, groups[subject]) for subject in sorted(groups))


def _proof_group(subject: str, proofs: list[Proof]) -> ProofGroup:
    faults = [proof.holds for proof in proofs if not proof.control]
    controls = [proof.holds for proof in proofs if proof.control]
    names: dict[str, list[str]] = {}
    for proof in proofs:
        how = "control, stayed green" if proof.control else "caught by the whole cell" if proof.whole else "caught"
        if not proof.holds:
            how = "control, did not stay green" if proof.control else "NOT CAUGHT"
        names.setdefault(how, []).append(f"{proof.name} in {proof.cell}")
    listed = tuple((how, ", ".join(sorted(names[how]))) for how in sorted(names))
    return ProofGroup(subject, len(faults), sum(faults), len(controls), sum(controls), listed)


def idle_of(result: RunResult) -> tuple[Idle, ...]:
    """All that did not run, was not judged or was not observed, each reason once."""
    return (*_unfinished(result), *_cells(result), *_checks(result), *_watchers(result), *_sentences(result))


def _unfinished(result: RunResult) -> Iterable[Idle]:
    if result.unfinished:
        names = _names(result.unfinished)
        yield Idle("did not run", names, "", len(result.unfinished), "the run was interrupted before it came to them")


def _cells(result: RunResult) -> Iterable[Idle]:
    """Cells by subject and reason: those that declined, and those of which nothing could be run or compared."""
    found: dict[tuple[str, str, str], list[CellResult]] = {}
    for cell in result.cells():
        name = parse_cell(cell.cell)
        subject = f"{name.driver}:{name.backend}" if name.backend else name.driver
        if cell.state == "declined":
            missing = missing_features(cell)
            reason = f"the CPU has no {missing}" if missing else "the library has been built without it"
            found.setdefault(("declined", subject, reason), []).append(cell)
        elif cell.state == "not_effective":
            reason = "the switch of its backend changes nothing that runs: the usual cell is the same code"
            found.setdefault(("no effect", subject, reason), []).append(cell)
        elif cell.state in ("unusable", "not_run", "void"):
            found.setdefault((cell.state.replace("_", " "), subject, cell.reason or "never began"), []).append(cell)
        elif not cell.comparisons:
            found.setdefault(("not compared", subject, "no comparison was asked for"), []).append(cell)
    for (kind, subject, reason), cells in sorted(found.items()):
        lanes = sorted({parse_cell(cell.cell).lane for cell in cells})
        yield Idle(kind, subject, ", ".join(lanes), len(cells), reason)


def _checks(result: RunResult) -> Iterable[Idle]:
    """Checks that did not apply in cells that ran."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for cell in result.cells():
        if cell.state not in ("declined", "unusable", "not_effective"):
            for item in cell.judgements:
                if item.passed is None:
                    reasons.setdefault((item.reason, item.check), []).append(parse_cell(cell.cell).lane)
    for (reason, check), lanes in sorted(reasons.items()):
        yield Idle("not judged", check, _names(sorted(set(lanes))), len(lanes), reason)


def _watchers(result: RunResult) -> Iterable[Idle]:
    blind: dict[str, list[str]] = {}
    for cell in result.cells():
        for watcher in cell.unwatched if cell.state == "ran" else ():
            blind.setdefault(watcher, []).append(parse_cell(cell.cell).lane)
    for watcher, lanes in sorted(blind.items()):
        reason = "the shim cannot look there on this architecture, or not into this subject"
        yield Idle("not observed", watcher, _names(sorted(set(lanes))), len(lanes), reason)


def _sentences(result: RunResult) -> Iterable[Idle]:
    """What the run says of itself as a whole."""
    for layer in result.sandbox_missing:
        yield Idle("not contained", layer, "", 1, "this host refuses this layer of the sandbox")
    for name in result.unproven:
        yield Idle("not proven", name, "", 1, "no lane of this host and no message of this run shows it")
    for note in (*result.notes, *judged_lines(result)):
        yield Idle("note", "the run", "", 1, note)
    for line in resting_lines(result):
        yield Idle("judged by no library", "algorithms", "", 1, line)


def _names(names: Iterable[str]) -> str:
    """Names with commas, the first of them where they are many."""
    known = list(names)
    more = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
    return ", ".join(known[:_MOST_NAMES]) + more


def libraries_of(result: RunResult) -> tuple[LibraryPart, ...]:
    """Each library of the run with its version, and what every algorithm came to."""
    parts = []
    for (name, lane), group in groupby(result.libraries, lambda row: (row.name, row.lane)):
        rows = list(group)
        found: dict[tuple[str, str], list[str]] = {}
        for row in rows:
            found.setdefault((row.backend, row.verdict), []).append(row.algorithm)
        verdicts = tuple((backend, verdict, tuple(names)) for (backend, verdict), names in found.items())
        library = next((row.library for row in rows if row.library), None)
        parts.append(LibraryPart(name, lane, rows[0].place, library, verdicts))
    return tuple(parts)
