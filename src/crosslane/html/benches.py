# SPDX-License-Identifier: Apache-2.0
"""Measurements of ``crosslane bench --json`` as plots with a table below each; the file is read strictly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from markupsafe import Markup

from crosslane.bench.plot import Curve, draw
from crosslane.bench.report import SCHEMA
from crosslane.data import read_files, shown
from crosslane.errors import BadInput
from crosslane.html.found import image_uri

__all__ = ["BenchPart", "Plot", "read_bench"]

_AGAIN = "write it again with `crosslane bench --json`"
_MOST_PLOTS = 48
_MOST_SUBJECTS = 32
_Positive = Annotated[float, msgspec.Meta(gt=0, le=1e15)]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file, in which every field is known."""


class _Estimate(_Strict, frozen=True):
    value: _Positive | None
    low: float | None
    high: float | None


class _Ratio(_Estimate, frozen=True):
    over: str


class _Figure(_Strict, frozen=True):
    subject: str
    size: Annotated[int, msgspec.Meta(ge=0)]
    real_len: Annotated[int, msgspec.Meta(ge=0, le=1 << 50)]
    ns_per_byte: _Estimate
    samples_ns: list[float]
    cycles_per_byte: _Estimate | None = None
    ratio: _Ratio | None = None


class _Clock(_Strict, frozen=True):
    name: str
    cycles_per_us: float
    why: str


class _Measured(_Strict, frozen=True):
    algorithm: str
    direction: str
    lane: str
    key_len: Annotated[int, msgspec.Meta(ge=0)]
    update_len: int | None
    subjects: list[str]
    clock: _Clock
    absent: dict[str, str]
    figures: list[_Figure]


class _Document(_Strict, frozen=True):
    schema: str
    version: str
    machine: dict[str, Any]
    settings: dict[str, Any]
    measured: list[_Measured]
    counted: list[dict[str, Any]]
    modelled: list[dict[str, Any]]


@dataclass(frozen=True)
class Plot:
    """One job: a picture, and by message length in bytes a figure of each subject."""

    title: str
    picture: Markup
    unit: str
    subjects: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]
    absent: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class BenchPart:
    """All plots, on which machine, and how many there were too many."""

    machine: str
    plots: tuple[Plot, ...]
    left_out: int


def read_bench(path: Path) -> BenchPart:
    """Read a file of ``crosslane bench --json``; raises BadInput in one sentence for anything else."""
    try:
        found = msgspec.json.decode(read_files([path])[0], type=_Document)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{shown(path)}: is no file of `crosslane bench` ({error}): {_AGAIN}") from None
    if found.schema != SCHEMA:
        raise BadInput(
            f"{shown(path)}: has the schema {found.schema[:40]!r}, this Crosslane reads {SCHEMA!r}: {_AGAIN}"
        )
    usable = [job for job in found.measured if any(_points(job).values())]
    if not usable:
        raise BadInput(f"{shown(path)}: has no measurement of time: measure natively with `crosslane bench --json`")
    machine = ", ".join(f"{name} {value}" for name, value in found.machine.items())
    plots = tuple(_plot(job) for job in usable[:_MOST_PLOTS])
    return BenchPart(machine, plots, max(0, len(usable) - _MOST_PLOTS))


def _has_cycles(job: _Measured) -> bool:
    return job.clock.name != "none" and all(figure.cycles_per_byte for figure in job.figures)


def _points(job: _Measured) -> dict[str, dict[int, float]]:
    """By subject and length in bytes: cycles or ns a byte."""
    cycles = _has_cycles(job)
    points: dict[str, dict[int, float]] = {}
    for figure in job.figures:
        estimate = figure.cycles_per_byte if cycles else figure.ns_per_byte
        if estimate is not None and estimate.value is not None and figure.real_len > 0:
            points.setdefault(figure.subject, {})[figure.real_len] = estimate.value
    return points


def _plot(job: _Measured) -> Plot:
    points = dict(list(_points(job).items())[:_MOST_SUBJECTS])
    unit = "cycles/byte" if _has_cycles(job) else "ns/byte"
    title = f"{job.algorithm} {job.direction}, {8 * job.key_len}-bit key, {job.lane}"
    curves: list[Curve] = [(name, sorted((float(x), y) for x, y in mine.items())) for name, mine in points.items()]
    lengths = sorted({length for mine in points.values() for length in mine})
    rows = tuple(
        (length, tuple(f"{mine[length]:.3g}" if length in mine else "" for mine in points.values()))
        for length in lengths
    )
    return Plot(title, image_uri(draw(title, unit, curves)), unit, tuple(points), rows, tuple(job.absent.items()))
