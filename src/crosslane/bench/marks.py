# SPDX-License-Identifier: Apache-2.0
"""Published and peers' figures and goals, from ``marks.toml``, to stand beside what was measured today."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosslane.bench.counting import Counts
from crosslane.bench.jobs import Job
from crosslane.bench.measure import Measurement
from crosslane.bench.modelled import Modelled
from crosslane.bench.stats import Estimate, ratio
from crosslane.bench.tables import grid
from crosslane.errors import BadInput
from crosslane.isa import ARCHES
from crosslane.model import Lane, Registry
from crosslane.names import DRIVER_PATTERN, WORD_PATTERN
from crosslane.tomlread import Field, read_fields, read_toml

__all__ = ["TOLERANCE", "Mark", "check_marks", "load_marks", "marks_table", "verdict"]

TOLERANCE = 0.95
"""What is measured holds where its 95 % interval is not below this part of the mark."""

_MODEL = "model cycles/byte"
_INSTRUCTION_RATIO = "instruction ratio"
_RATIOS = ("ratio", _INSTRUCTION_RATIO)
_EXACT = ("instructions/byte", _MODEL)
_ANY = "crosslane"
_OTHERS = (_ANY, "botan", "libgcrypt", "openssl", "supercop")
_TEXT = Field(kind="str", pattern=r"\S[^\n]*")
_FIELDS = {
    "cipher": Field(kind="str", pattern=WORD_PATTERN),
    "columns": Field(kind="str", many=True, min_num=1, pattern=f"{WORD_PATTERN}(-enc|-dec)?"),
    "subject": Field(kind="str", pattern=DRIVER_PATTERN),
    "unit": Field(kind="str", allowed=("cycles/byte", "instructions/byte", _MODEL, *_RATIOS)),
    "low": Field(kind="float"),
    "high": Field(kind="float"),
    "over": Field(kind="str", pattern=f"{DRIVER_PATTERN}(:composed)?", optional=True),
    "key_len": Field(kind="int", least=1, optional=True),
    "size": Field(kind="int", least=1, optional=True),
    "arch": Field(kind="str", allowed=ARCHES, optional=True),
    "kind": Field(kind="str", allowed=("published", "peer", "goal")),
    "machine": _TEXT,
    "source": _TEXT,
}


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One figure, ``low`` to ``high`` in ``unit``, of modes and directions; ratios are over the subject ``over``.

    A ``key_len`` of 0 stands for every one that is measured, a ``size`` of 0 for the largest, both in bytes; an empty
    ``arch`` for every architecture.
    """

    cipher: str
    columns: tuple[str, ...]
    subject: str
    unit: str
    low: float
    high: float
    kind: str
    machine: str
    source: str
    over: str = ""
    key_len: int = 0
    size: int = 0
    arch: str = ""

    @property
    def figure(self) -> str:
        """The figure for people."""
        text = f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"
        text += f" x {self.over}" if self.over else f" {self.unit}"
        return text if self.unit != _INSTRUCTION_RATIO else f"{text}, instructions"


@dataclass(frozen=True)
class _Today:
    """A figure of ours of the kind that a mark is."""

    job: Job
    name: str
    size: int
    found: Estimate


def load_marks(path: Path | None = None) -> list[Mark]:
    """Read the marks in their order; raises ``BadInput`` for anything that is not exactly a mark."""
    path = path or Path(__file__).with_name("marks.toml")
    content = read_toml(path)
    tables = content.pop("mark", None)
    if content or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise BadInput(f"{path.name}: must hold [[mark]] tables and nothing else; correct the file")
    return [_read(path, f"mark {i + 1}", table) for i, table in enumerate(tables)]


def _read(path: Path, where: str, table: dict[str, object]) -> Mark:
    mark = Mark(**read_fields(path, table, _FIELDS, where=where))
    if not 0 < mark.low <= mark.high:
        raise BadInput(f"{path.name}: {where}: low is {mark.low} and high {mark.high}; 0 < low <= high is needed")
    if (mark.unit in _RATIOS) != bool(mark.over):
        raise BadInput(f"{path.name}: {where}: over is {mark.over!r}; name a driver for a ratio, and none elsewhere")
    return mark


def check_marks(marks: Sequence[Mark], registry: Registry) -> None:
    """Raise ``BadInput`` for a mark of a cipher, mode, driver or library that is not there: nothing would meet it.

    A driver must be of the mark's cipher and, where the mark has one, of its architecture.
    """
    for i, mark in enumerate(marks):
        for wrong in _unknown(mark, registry):
            raise BadInput(f"marks.toml: mark {i + 1}: {wrong} is not in the registry, or not of this; correct it")


def _unknown(mark: Mark, registry: Registry) -> Iterator[str]:
    """The names of a mark that nothing has."""
    if mark.cipher not in {cipher.name for cipher in registry.ciphers}:
        yield f"cipher {mark.cipher!r}"
    macs = {mode.name: bool(mode.tag_lens) and mode.iv == "none" for mode in registry.modes}
    for column in mark.columns:
        name, _, direction = column.partition("-")
        if macs.get(name) is not (direction == ""):
            yield f"column {column!r}"
    drivers = {item.driver: item for item in registry.implementations}
    ours = drivers.get(mark.subject)
    if ours is None:
        fits = mark.subject in _OTHERS
    else:
        fits = ours.cipher == mark.cipher and (mark.arch == "" or ours.isa in ("any", mark.arch))
    if not fits:
        yield f"subject {mark.subject!r}"
    if mark.over and mark.over.removesuffix(":composed") not in drivers:
        yield f"over {mark.over!r}"


def _first(cipher: str, lane: Lane, registry: Registry) -> str:
    """The implementation of a cipher that is first by priority in a lane."""
    fitting = [item for item in registry.implementations if item.cipher == cipher and item.isa in ("any", lane.arch)]
    return max(fitting, key=lambda item: item.priority).driver


def verdict(mark: Mark, found: Estimate) -> str:
    """Return ``holds``, ``missed`` or, where the interval is on both sides of the limit, ``undecided``.

    What is counted or simulated has no interval and is held to the figure itself.
    """
    if mark.unit in _EXACT:
        return "holds" if found.value <= mark.high else "missed"
    if mark.unit in _RATIOS:
        worst, best = found.low / mark.low, found.high / mark.low
    else:
        worst, best = mark.high / found.high, mark.high / found.low if found.low else 0.0
    if worst >= TOLERANCE:
        return "holds"
    return "missed" if best < TOLERANCE else "undecided"


def _exactly(value: float) -> Estimate:
    return Estimate(value, value, value)


def _ours(job: Job, names: Sequence[str]) -> list[str]:
    return [subject.name for subject in job.subjects if subject.cipher == job.cipher.name and subject.name in names]


def _timed(mark: Mark, measured: Measurement) -> Iterator[_Today]:
    job = measured.job
    for name in _ours(job, [name for name, _ in measured.series]):
        size = mark.size or max(measured.sizes(name))
        series, base = measured.series.get((name, size)), measured.series.get((mark.over, size))
        if series is None or ":" in name:
            continue
        if mark.unit == "ratio" and base is not None and name != mark.over:
            yield _Today(job, name, size, ratio(base.ns, series.ns))
        if mark.unit == "cycles/byte" and measured.clock.name != "none":
            yield _Today(job, name, size, series.cycles_per_byte)


def _counted(mark: Mark, counts: Counts) -> Iterator[_Today]:
    job = counts.job
    for name in _ours(job, [name for name, _ in counts.instructions]):
        size = mark.size or max(size for other, size in counts.instructions if other == name)
        number, base = counts.instructions.get((name, size)), counts.instructions.get((mark.over, size))
        if number is None or ":" in name:
            continue
        if mark.unit == "instructions/byte":
            yield _Today(job, name, size, _exactly(counts.per_byte(name, size)))
        elif base is not None and name != mark.over:
            yield _Today(job, name, size, _exactly(base / number))


def _simulated(mark: Mark, model: Modelled) -> Iterator[_Today]:
    for (name, size), figure in model.figures.items():
        if mark.size in (0, size):
            yield _Today(model.job, name, size, _exactly(figure.cycles))


def _todays(
    mark: Mark,
    results: Sequence[Measurement],
    counts: Sequence[Counts],
    models: Sequence[Modelled],
    registry: Registry,
) -> list[_Today]:
    """Return what was measured of a mark's kind: the driver's own; for a peer's figure and our goals the best of ours.

    One for each mode, direction, lane and key length. Where ours that is first by priority was not asked for, the best
    is unknown, and a mark that what ran does not reach is left out.
    """

    def concerns(job: Job) -> bool:
        fits = mark.cipher == job.cipher.name and job.column in mark.columns
        return fits and mark.key_len in (0, job.key_len) and mark.arch in ("", job.lane.arch)

    found: list[_Today] = []
    if mark.unit in ("ratio", "cycles/byte"):
        found += [today for item in results if concerns(item.job) for today in _timed(mark, item)]
    elif mark.unit == _MODEL:
        found += [today for item in models if concerns(item.job) for today in _simulated(mark, item)]
    else:
        found += [today for item in counts if concerns(item.job) for today in _counted(mark, item)]
    same = [today for today in found if today.name == mark.subject]
    is_ours = not same and (mark.kind == "peer" or mark.subject == _ANY)
    best: dict[Job, _Today] = {}
    for today in found if is_ours else same:
        # Jobs of one algorithm may have been measured in several tables.
        key = replace(today.job, subjects=())
        other = best.setdefault(key, today)
        better = max if mark.unit in _RATIOS else min
        best[key] = better(other, today, key=lambda item: item.found.value)
    if not is_ours:
        return list(best.values())
    jobs = [item.job for items in (results, counts, models) for item in items]
    asked = {(replace(job, subjects=()), subject.name) for job in jobs for subject in job.subjects}
    return [
        today
        for key, today in best.items()
        if (key, _first(key.cipher.name, key.lane, registry)) in asked or verdict(mark, today.found) == "holds"
    ]


def marks_table(
    registry: Registry,
    marks: Sequence[Mark],
    results: Sequence[Measurement],
    counts: Sequence[Counts] = (),
    models: Sequence[Modelled] = (),
) -> str:
    """One row for each mark, mode, direction and key length that was measured, with today's figure and the verdict."""
    rows = [["algorithm", "key", "size", "kind", "subject", "mark", "today", "verdict", "machine", "source"]]
    for mark in marks:
        for today in _todays(mark, results, counts, models, registry):
            job = today.job
            row = [f"{job.column}({job.cipher.name})", str(8 * job.key_len), str(today.size), mark.kind, mark.subject]
            row += [mark.figure, f"{today.found.value:.2f} ({today.name})", verdict(mark, today.found)]
            rows.append([*row, mark.machine, mark.source])
    if len(rows) == 1:
        return "marks: none is on file for what was measured"
    words = [row[7] for row in rows]
    total = ", ".join(f"{words.count(word)} {word}" for word in ("holds", "missed", "undecided"))
    return (
        f"marks (the machines differ: lean on ratios rather than on cycles)\n{grid(rows, left=range(10))}\n"
        f"of {len(rows) - 1} figures: {total}"
    )
