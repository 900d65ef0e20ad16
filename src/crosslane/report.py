# SPDX-License-Identifier: Apache-2.0
"""What a run prints: the verdict of every cell, what departed and how to see it again, and the totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from crosslane.libraries import library_lines
from crosslane.model import LibraryBuild
from crosslane.names import parse_cell
from crosslane.records import CellResult
from crosslane.results import RunResult
from crosslane.verdicts import cell_verdict

__all__ = ["complaints", "judged_lines", "print_report", "resting_lines"]


_STYLES = {
    "VOID": "bold magenta",
    "DID NOT RUN": "bold magenta",
    "UNUSABLE": "bold magenta",
    "FINDING": "bold red",
    "declined": "dim",
    "not effective": "dim",
    "not compared": "yellow",
    "agreed": "green",
}


_WIDEST = 1000
"""Columns beyond which a table is cut; a cell's name is never cut to a terminal's width, so that it can be copied."""


def _table(result: RunResult) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("cell", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("comparisons", justify="right", no_wrap=True)
    table.add_column("vectors", justify="right", no_wrap=True)
    table.add_column("paths", no_wrap=True)
    for cell in result.cells():
        verdict = cell_verdict(cell)
        taken = sum(1 for classes in cell.paths.values() if classes)
        table.add_row(
            cell.cell,
            Text(verdict, _STYLES[verdict]),
            f"{cell.comparisons:,}",
            str(cell.num_vectors or "-"),
            f"{taken} of {len(cell.paths)}" if cell.paths else "-",
        )
    return table


def complaints(cell: CellResult) -> Iterator[str]:
    """Why a cell is not green: each finding with the command that shows it again, and what else failed."""
    broken = cell.state in ("void", "not_run", "unusable")
    if broken and cell.state != "unusable":
        yield f"{cell.cell}: {cell_verdict(cell).lower()}: {cell.reason or 'never began'}"
    for finding in cell.findings:
        extra = f"; at least {finding.count} cases depart alike" if finding.count > 1 else ""
        yield f"{cell.cell}: {finding.verdict}, {finding.symptom}, repeats {finding.repeats}{extra}: {finding.text}"
        if finding.quorum:
            yield f"    {finding.quorum}"
        if ":" not in finding.case_id:
            yield f"    see it again: crosslane repro {finding.case_id} --cell '{cell.cell}'"
        else:
            kind = "sectors: " if finding.of_sectors else "vector: " if finding.of_vector else ""
            yield f"    {kind}{finding.case_id}"
    failed = [judgement for judgement in cell.judgements if judgement.passed is False and not broken]
    shown = {finding.text for finding in cell.findings}
    for judgement in failed:
        if not any(judgement.reason.endswith(text) for text in shown):
            yield f"{cell.cell}: {judgement.check}: {judgement.reason}"


def _unusable(result: RunResult) -> Iterator[str]:
    """Which libraries could not be run at all, each reason once."""
    reasons: dict[str, list[str]] = {}
    for cell in result.cells():
        if cell.state == "unusable":
            reasons.setdefault(cell.reason, []).append(cell.cell)
    for reason, cells in reasons.items():
        yield f"UNUSABLE: {cells[0]}{f' and {len(cells) - 1} more cells' if len(cells) > 1 else ''}: {reason}"


def judged_lines(result: RunResult) -> Iterator[str]:
    """How many sampled messages each judge in Python held generic against."""
    counts: dict[str, int] = {}
    for cell in result.cells():
        if cell.num_sampled:
            counts["the Python reference"] = counts.get("the Python reference", 0) + cell.num_sampled
        for name, count in cell.judged_by.items():
            counts[name] = counts.get(name, 0) + count
    if counts:
        yield "generic was held against " + ", ".join(f"{name} on {count:,} messages" for name, count in counts.items())


def resting_lines(result: RunResult) -> Iterator[str]:
    """Which algorithms no implementation of others agreed with in this run, and what they rest on instead."""
    agreed, rests = set(), {}
    for algorithm in result.algorithms:
        for cell in algorithm.cells:
            if cell.provider and cell_verdict(cell) == "agreed":
                agreed.add(algorithm.algorithm)
            if cell.judged_by and not cell.red:
                agreed.add(algorithm.algorithm)
            if cell.num_sampled:
                rests[algorithm.algorithm] = cell.num_vectors
    for with_vectors, words in ((True, "vectors and the Python reference"), (False, "the Python reference alone")):
        names = [name for name, count in rests.items() if name not in agreed and bool(count) is with_vectors]
        if names:
            yield f"rests on {words}, no library agreed with it in this run: {', '.join(names)}"


def _exceptions(result: RunResult) -> Iterator[str]:
    """What a green line does not say: cells that declined, checks that did not apply."""
    declined = [cell for cell in result.cells() if cell.state == "declined"]
    for cell in declined:
        missing = ", ".join(sorted(set(cell.needed_features) - set(cell.cpu_features)))
        if missing:
            yield f"declined: {cell.cell}: the CPU of this lane has no {missing}"
        elif cell.optional:
            yield f"declined: {cell.cell}: the installed library has been built without it"
    reasons: dict[tuple[str, str], int] = {}
    for cell in result.cells():
        for judgement in cell.judgements:
            if judgement.passed is None and cell.state not in ("declined", "unusable", "not_effective"):
                key = (judgement.check, judgement.reason)
                reasons[key] = reasons.get(key, 0) + 1
    yield from judged_lines(result)
    yield from resting_lines(result)
    yield from (f"note: {note}" for note in result.notes)
    said = [f"note: {algorithm.algorithm}: {note}" for algorithm in result.algorithms for note in algorithm.notes]
    yield from dict.fromkeys(said)  # plans of one algorithm may have the same to say
    blind: dict[str, int] = {}
    for cell in result.cells():
        for watcher in cell.unwatched if cell.state == "ran" else ():
            blind[watcher] = blind.get(watcher, 0) + 1
    if blind:
        yield "not observed: " + ", ".join(f"{watcher} in {count} cells" for watcher, count in sorted(blind.items()))
    for (check, reason), count in reasons.items():
        yield f"not judged: {check} in {count} cells: {reason}"


def print_report(
    result: RunResult, console: Console, *, impls: tuple[str, ...] = (), builds: Sequence[LibraryBuild] = ()
) -> None:
    """Print the whole report; ``impls`` and ``builds`` are repeated in the commands that show a finding again."""
    table = _table(result)
    usual = console.width
    wide = Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum
    console.width = max(usual, wide)
    console.print(table)
    console.width = usual
    console.print()
    given = {build.name: f" --provider '{build.text}'" for build in builds}
    again = "".join(f" --impls '{folder}'" for folder in impls)
    for cell in result.cells():
        for line in complaints(cell):
            command = (
                again + given.get(parse_cell(cell.cell).driver, "") if line.lstrip().startswith("see it again") else ""
            )
            console.print(line + command, highlight=False, markup=False, soft_wrap=True)
    for line in (*library_lines(result.libraries), *_unusable(result)):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for line in _exceptions(result):
        console.print(line, style="dim", highlight=False, markup=False, soft_wrap=True)
    for layer in result.sandbox_missing:
        console.print(
            f"sandbox: this host refuses {layer}; code under test runs without it", markup=False, soft_wrap=True
        )
    for line in _proofs(result):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print(_totals(result), highlight=False, markup=False, soft_wrap=True)


def _proofs(result: RunResult) -> Iterator[str]:
    """Whether the checks fire: planted faults that were caught, controls that stayed green, and each that was not."""
    for proof in result.proofs:
        if not proof.holds:
            kind = "control" if proof.control else "planted fault"
            yield f"VOID: {kind} {proof.name} in {proof.cell}: {proof.text}"
    if result.proofs:
        faults = [proof for proof in result.proofs if not proof.control]
        controls = [proof.holds for proof in result.proofs if proof.control]
        by_case, by_cell = (sum(proof.holds for proof in faults if proof.whole is kind) for kind in (False, True))
        yield (
            f"proven: {by_case + by_cell} of {len(faults)} planted faults were caught, {by_case} by their stored cases "
            f"and {by_cell} by whole cells, {sum(controls)} of {len(controls)} controls stayed green"
        )
    if result.unproven:
        yield f"not proven in this run, {len(result.unproven)}: {', '.join(result.unproven)}"


def _totals(result: RunResult) -> str:
    cells = list(result.cells())
    counts: dict[str, int] = {}
    for cell in cells:
        verdict = cell_verdict(cell)
        counts[verdict] = counts.get(verdict, 0) + 1
    least, median = result.spread
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    rate = result.comparisons / result.took_s if result.took_s else 0.0
    return (
        f"{len(cells)} cells: {verdicts}; {result.comparisons:,} comparisons in {result.took_s:.1f} s "
        f"({rate:,.0f} a second; per cell that ran at least {least:,}, median {median:,.0f}; "
        f"{result.cpu_s:.0f} s of CPU, at most {result.peak_pss >> 20} MiB of memory); seed {result.seed!r}"
    )
