# SPDX-License-Identifier: Apache-2.0
"""A small SVG of time per byte over message length, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from crosslane.bench.measure import Measurement

__all__ = ["Curve", "curves_of", "draw"]

Curve = tuple[str, list[tuple[float, float]]]
"""A label and points of bytes and ns/byte or cycles/byte."""

_WIDTH, _LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT = 1000, 70, 40, 560, 420
_LEGEND_STEP = 16
# Eight colours that stay apart for colour-blind readers (M. Okabe, K. Ito: Color Universal Design, 2008).
_COLOURS = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#b8a800", "#0072b2", "#d55e00", "#cc79a7")
_DASHES = ("", "6 3", "2 2", "8 2 2 2")


def curves_of(results: Sequence[Measurement]) -> tuple[str, list[Curve]]:
    """Return the unit (``cycles/byte`` where there is a cycle counter) and a curve for each subject of each job."""
    cycles = all(found.clock.name != "none" for found in results)
    curves: list[Curve] = []
    for found in results:
        job = found.job
        for subject in job.subjects:
            points = []
            for size in found.sizes(subject.name):
                series = found.series[subject.name, size]
                value = series.cycles_per_byte if cycles else series.ns_per_byte
                points.append((float(series.real), value.value))
            if points:
                label = f"{job.column}({job.cipher.name}) {8 * job.key_len} {subject.name}"
                curves.append((label, sorted(points)))
    return ("cycles/byte" if cycles else "ns/byte"), curves


def _ticks(low: float, high: float) -> list[float]:
    """Powers of two in a range, both ends included."""
    first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
    return [2.0**power for power in range(first, last + 1)]


def _number(value: float) -> str:
    return f"{value:g}"


def draw(heading: str, unit: str, curves: Sequence[Curve]) -> str:
    """Return a complete SVG document; at least one curve with positive points."""
    xs = [x for _, points in curves for x, _ in points]
    ys = [y for _, points in curves for _, y in points]
    x_ticks, y_ticks = _ticks(min(xs), max(xs)), _ticks(min(ys), max(ys))

    def place(value: float, ticks: Sequence[float], length: float) -> float:
        span = math.log2(ticks[-1]) - math.log2(ticks[0])
        return length * (math.log2(value) - math.log2(ticks[0])) / (span or 1.0)

    def at(x: float, y: float) -> tuple[float, float]:
        return _LEFT + place(x, x_ticks, _PLOT_WIDTH), _TOP + _PLOT_HEIGHT - place(y, y_ticks, _PLOT_HEIGHT)

    height = max(_TOP + _PLOT_HEIGHT + 60, _TOP + _LEGEND_STEP * (len(curves) + 2))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"',
        f'  viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="24" font-size="14">{escape(heading)}</text>',
    ]
    for tick in x_ticks:
        x = at(tick, y_ticks[0])[0]
        parts.append(_line((x, _TOP), (x, _TOP + _PLOT_HEIGHT)))
        parts.append(_text((x, _TOP + _PLOT_HEIGHT + 16), _number(tick), "middle"))
    for tick in y_ticks:
        y = at(x_ticks[0], tick)[1]
        parts.append(_line((_LEFT, y), (_LEFT + _PLOT_WIDTH, y)))
        parts.append(_text((_LEFT - 6, y + 4), _number(tick), "end"))
    parts.append(_text((_LEFT + _PLOT_WIDTH / 2, _TOP + _PLOT_HEIGHT + 36), "bytes a message", "middle"))
    parts.append(_text((_LEFT, _TOP - 6), unit, "end"))
    for i, (label, points) in enumerate(curves):
        parts += _curve(i, label, [at(x, y) for x, y in points])
    return "\n".join([*parts, "</svg>", ""])


def _line(a: tuple[float, float], b: tuple[float, float]) -> str:
    return f'<line x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}" stroke="#dddddd"/>'


def _text(at: tuple[float, float], words: str, anchor: str) -> str:
    return f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _curve(index: int, label: str, points: Sequence[tuple[float, float]]) -> list[str]:
    colour = _COLOURS[index % len(_COLOURS)]
    dash = _DASHES[index // len(_COLOURS) % len(_DASHES)]
    stroke = f'fill="none" stroke="{colour}" stroke-width="1.5" stroke-dasharray="{dash}"'
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = _LEFT + _PLOT_WIDTH + 20, _TOP + _LEGEND_STEP * (index + 1)
    return [
        f'<polyline points="{path}" {stroke}/>',
        f'<polyline points="{x},{y - 4} {x + 30},{y - 4}" {stroke}/>',
        _text((x + 38, y), label, "start"),
    ]
