# SPDX-License-Identifier: Apache-2.0
"""A picture of failing against passing, as SVG that needs nothing else: length across, position upwards.

What a table of numbers hides a person sees at once: every eighth block, all behind the sixteenth, one tail alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from crosslane.triage.observations import Observations

__all__ = ["Grid", "grid_of", "svg"]

_RIGHT, _WRONG, _AXIS = "#cfe3d4", "#b3261e", "#444444"
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 720, 420, 64, 40, 56
_FONT = 'font-family="sans-serif" font-size="12"'
_MOST_COLUMNS, _MOST_ROWS = 96, 72


@dataclass(frozen=True)
class Grid:
    """What is drawn: ``cells`` are (column, row, wrong), columns and rows by the numbers that label them."""

    title: str
    across: str
    upwards: str
    cells: tuple[tuple[int, int, bool], ...]


def grid_of(seen: Observations) -> Grid | None:
    """The picture that fits what was observed; None where nothing was tried at several lengths."""
    if any(answer.departs for answers in seen.plain.values() for answer in answers):
        return _by_blocks(seen)
    if any(answer.departs for answer in seen.carries.values()):
        cells = tuple((bits, before, answer.departs) for (bits, before), answer in seen.carries.items())
        return Grid("counters shortly before a carry", "low bits carried out of", "blocks before", cells)
    if len(seen.watched_lens) > 1:
        bs = seen.facts.block_len
        cells = tuple((length // bs, length % bs, departs) for length, departs in seen.watched_lens.items())
        return Grid("lengths at which it shows", "whole blocks", "bytes behind them", cells)
    return None


def _by_blocks(seen: Observations) -> Grid:
    """Plain sessions: the blocks of each message; where no block is wrong, the lengths at which it departs."""
    bs = seen.facts.block_len
    if not any(answer.wrong for answers in seen.plain.values() for answer in answers):
        rows = tuple(
            (length // bs, length % bs, any(answer.departs for answer in answers))
            for length, answers in seen.plain.items()
        )
        return Grid("lengths at which it shows", "whole blocks", "bytes behind them", rows)
    whole = [(length // bs, answers) for length, answers in sorted(seen.plain.items()) if length % bs == 0]
    if not any(answer.wrong for _, answers in whole for answer in answers):
        whole = [(-(-length // bs), answers) for length, answers in sorted(seen.plain.items()) if length % bs == 1]
    wrong = {count: {at for answer in answers for at in answer.wrong} for count, answers in whole}
    cells = [(count, at, at in wrong[count]) for count, _ in whole for at in range(count)]
    return Grid("wrong blocks by length", "blocks of the message", "block", tuple(cells))


def svg(grid: Grid) -> str:
    """The grid as a document of its own. Columns and rows beyond what can be seen are left out, and that is said."""
    columns = sorted({column for column, _, _ in grid.cells})[:_MOST_COLUMNS]
    rows = sorted({row for _, row, _ in grid.cells})[:_MOST_ROWS]
    left_out = len({c for c, _, _ in grid.cells}) > len(columns) or len({r for _, r, _ in grid.cells}) > len(rows)
    width = (_WIDTH - _LEFT - 16) / max(1, len(columns))
    height = (_HEIGHT - _TOP - _BOTTOM) / max(1, len(rows))
    x = {column: _LEFT + number * width for number, column in enumerate(columns)}
    y = {row: _HEIGHT - _BOTTOM - (number + 1) * height for number, row in enumerate(rows)}
    title = grid.title + (", the first of them" if left_out else "")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {_FONT} fill="{_AXIS}">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>',
        f'<rect x="{_WIDTH - 190}" y="12" width="12" height="12" fill="{_WRONG}"/>',
        f'<text x="{_WIDTH - 172}" y="22">departs</text>',
        f'<rect x="{_WIDTH - 105}" y="12" width="12" height="12" fill="{_RIGHT}"/>',
        f'<text x="{_WIDTH - 87}" y="22">agrees</text>',
        *_rectangles(grid, x, y, (width, height)),
        *_labels(columns, rows, x, y, (width, height)),
        f'<text x="{_LEFT}" y="{_HEIGHT - 12}">{escape(grid.across)}</text>',
        f'<text transform="translate(16 {_HEIGHT - _BOTTOM}) rotate(-90)">{escape(grid.upwards)}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _rectangles(grid: Grid, x: dict[int, float], y: dict[int, float], size: tuple[float, float]) -> Iterator[str]:
    gap = min(1.0, size[0] / 5, size[1] / 5)
    for column, row, wrong in grid.cells:
        if column in x and row in y:
            yield (
                f'<rect x="{x[column]:.1f}" y="{y[row]:.1f}" width="{size[0] - gap:.1f}" height="{size[1] - gap:.1f}" '
                f'fill="{_WRONG if wrong else _RIGHT}"/>'
            )


def _labels(
    columns: list[int], rows: list[int], x: dict[int, float], y: dict[int, float], size: tuple[float, float]
) -> Iterator[str]:
    """About a dozen numbers on each axis."""
    below = _HEIGHT - _BOTTOM + 16
    for column in columns[:: -(-len(columns) // 16)]:
        yield f'<text x="{x[column] + size[0] / 2:.1f}" y="{below}" text-anchor="middle">{column}</text>'
    for row in rows[:: -(-len(rows) // 12)]:
        yield f'<text x="{_LEFT - 6}" y="{y[row] + size[1] / 2 + 4:.1f}" text-anchor="end">{row}</text>'
