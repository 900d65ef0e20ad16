# SPDX-License-Identifier: Apache-2.0
"""Markdown for a pull request and for the page of a workflow's run: short where all is green.

Everything that a subject, a file or a user wrote stands in code spans, which hold no markup, link or mention.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from crosslane.formats.matrix import matrix_lines
from crosslane.formats.outcomes import Gated, accepted_text, is_green, one_line
from crosslane.records import CellResult
from crosslane.report import complaints
from crosslane.results import RunResult
from crosslane.verdicts import cell_verdict

__all__ = ["code", "markdown_text"]

_MOST_ROWS = 30
_LONGEST = 300
_MOST_MATRIX = 20_000
"""Characters of the matrix: a comment of a pull request takes 65,536 in all."""


def markdown_text(result: RunResult, gated: Gated | None = None) -> str:
    """The whole text."""
    return "\n".join(_lines(result, gated)) + "\n"


def code(text: str, longest: int = _LONGEST) -> str:
    """A code span that is safe in a table too."""
    line = one_line(text)
    line = line if len(line) <= longest else line[: longest - 1] + "…"
    if not line:
        return ""
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line.replace('|', chr(92) + '|')}{space}{fence}"


def _lines(result: RunResult, gated: Gated | None) -> Iterator[str]:
    green = is_green(result, gated)
    what = "gate" if gated else "check"
    yield f"### Crosslane {what}: {'green' if green else 'RED'}"
    yield ""
    counts: dict[str, int] = {}
    for cell in result.cells():
        verdict = "accepted" if cell.accepted else cell_verdict(cell)
        counts[verdict] = counts.get(verdict, 0) + 1
    cells = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(counts.items()))
    yield (
        f"{sum(counts.values()):,} cells: {cells or 'none'}; {result.comparisons:,} comparisons in "
        f"{result.took_s:.0f} s; revision {code(result.revision[:12]) or 'unknown'}, seed {code(result.seed)}"
    )
    for note in gated.notes if gated else ():
        yield f"\n{code(note)}"
    accepted = sorted({accepted_text(cell) for cell in result.cells() if cell.accepted})
    if accepted:
        yield ""
        yield from (f"- {code(text)}" for text in accepted[:_MOST_ROWS])
        yield from _more(len(accepted))
    if gated and gated.known:
        yield ""
        yield f"{len(gated.known):,} are red in the baseline too and do not count."
    if green:
        return
    yield ""
    yield from _reds(gated) if gated else _red_cells(result)
    yield from _matrix(result)


def _reds(gated: Gated) -> Iterator[str]:
    yield "| rule | about | what is so | what to do |"
    yield "|---|---|---|---|"
    for red in gated.reds[:_MOST_ROWS]:
        yield f"| {code(red.rule)} | {code(red.about)} | {code(red.text)} | {code(red.cure)} |"
    yield from _more(len(gated.reds))


def _red_cells(result: RunResult) -> Iterator[str]:
    red = [cell for cell in result.cells() if _counts(cell)]
    yield "| cell | verdict | what is so |"
    yield "|---|---|---|"
    for cell in red[:_MOST_ROWS]:
        said = next(iter(complaints(cell)), cell.reason)
        yield f"| {code(cell.cell)} | {cell_verdict(cell)} | {code(said.removeprefix(cell.cell + ': '))} |"
    yield from _more(len(red))
    for proof in result.proofs:
        if not proof.holds:
            yield f"\nplanted fault {code(proof.name)} in {code(proof.cell)}: {code(proof.text)}"
    if result.unfinished:
        yield f"\nThe run was interrupted: {len(result.unfinished):,} plans are not complete."


def _counts(cell: CellResult) -> bool:
    return cell.state in ("void", "not_run", "unusable") or (cell.red and not cell.accepted)


def _more(count: int) -> Iterator[str]:
    if count > _MOST_ROWS:
        yield ""
        yield f"{count - _MOST_ROWS:,} more are in the other outputs."


def _matrix(result: RunResult) -> Iterator[str]:
    text = "\n".join(matrix_lines(result))
    yield ""
    if len(text) > _MOST_MATRIX:
        yield f"The table of all lanes, {len(text):,} characters long, is left out: `crosslane report --matrix` has it."
    else:
        yield "<details><summary>all algorithms and lanes</summary>"
        yield ""
        yield "```"
        yield text.replace("`", "'")
        yield "```"
        yield ""
        yield "</details>"
