# SPDX-License-Identifier: Apache-2.0
"""Measurements as text: plain columns that read the same in a terminal, a log and a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from crosslane.bench.counting import Counts
from crosslane.bench.jobs import Job
from crosslane.bench.measure import Measurement
from crosslane.bench.stats import Estimate, Line, estimate, fit_line, ratio

__all__ = [
    "MIN_SLOPE_SIZES",
    "Noisy",
    "counts_table",
    "grid",
    "mib_per_s",
    "noisy_figures",
    "noisy_slopes",
    "peers_table",
    "slope_of",
    "slope_table",
    "speed_table",
    "title",
    "vs_tables",
]

MIN_SLOPE_SIZES = 3
"""Two points lie on any line."""
_MIB = float(1 << 20)
_ABSENT = "-"


@dataclass(frozen=True)
class Noisy:
    """A figure whose interval is too wide to conclude anything."""

    label: str
    found: Estimate


def mib_per_s(ns_per_byte: float) -> float:
    """Return the speed in MiB/s of a time in nanoseconds a byte."""
    return 1e9 / ns_per_byte / _MIB


def grid(rows: Sequence[Sequence[str]], *, left: Iterable[int] = (0,)) -> str:
    """Align rows into columns; those in ``left`` to the left, all others to the right."""
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(max(map(len, rows)))]
    lefts = set(left)
    lines = [
        "  ".join(cell.ljust(widths[i]) if i in lefts else cell.rjust(widths[i]) for i, cell in enumerate(row))
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def title(job: Job) -> str:
    """Return what heads a job's table."""
    return f"{job.algorithm} {job.direction}, {8 * job.key_len}-bit key, {job.lane.name}"


def _interval(found: Estimate, digits: int = 3) -> str:
    return f"{found.low:.{digits}f} to {found.high:.{digits}f}"


def _flag(found: Estimate, limit: float) -> str:
    """A question mark behind what is too noisy to conclude from."""
    return "?" if found.noise > limit else ""


def _absences(absent: Iterable[tuple[str, str]]) -> str:
    return "".join(f"\n{name}: {reason}" for name, reason in absent)


def speed_table(found: Measurement, limit: float) -> str:
    """One row a size and subject: ns/byte, MiB/s, cycles/byte, noise, and the ratio to the first subject."""
    base = found.job.subjects[0].name
    rows = [["size", "subject", "ns/byte", "MiB/s", "cycles/byte", "noise", "ratio", "95 % interval"]]
    for name, size in sorted(found.series, key=lambda key: key[1]):
        series = found.series[name, size]
        ns = series.ns_per_byte
        cycles = _ABSENT if found.clock.name == "none" else f"{series.cycles_per_byte.value:.3f}"
        row = [str(size), name, f"{ns.value:.3f}", f"{mib_per_s(ns.value):.1f}", cycles]
        row += [f"{100 * ns.noise:.1f} %{_flag(ns, limit)}"]
        if name != base and (base, size) in found.series:
            speed = found.ratio(name, size)
            row += [f"{speed.value:.2f}x{_flag(speed, limit)}", _interval(speed)]
        rows.append(row)
    return f"{title(found.job)}\n{grid(rows, left=(1,))}{_absences(found.absent.items())}"


def slope_of(found: Measurement, name: str) -> tuple[Estimate, Line]:
    """Return ns a byte as the slope of time over size, with its interval, and the line of the medians.

    As libgcrypt's bench-slope does it: what every message costs whatever its length drops out of the slope. The
    interval is that over rounds or that of the fit, whichever reaches farther: where time is no line over size, none is
    shown to be its slope.
    """
    series = [found.series[name, size] for size in found.sizes(name)]
    xs = [float(item.real) for item in series]
    rounds = min(len(item.ns) for item in series)
    slopes = [fit_line(xs, [item.ns[i] for item in series]).slope for i in range(rounds)]
    line = fit_line(xs, [estimate(item.ns).value for item in series])
    slope = estimate(slopes)
    low, high = min(slope.low, slope.value - line.slope_error), max(slope.high, slope.value + line.slope_error)
    return Estimate(slope.value, low, high), line


def noisy_slopes(results: Sequence[Measurement], limit: float) -> list[Noisy]:
    """Return the slopes that nothing may be concluded from, widest interval first."""
    slopes = [
        Noisy(f"{title(found.job)}, {subject.name}, slope, ns/byte", slope_of(found, subject.name)[0])
        for found in results
        for subject in found.job.subjects
        if len(found.sizes(subject.name)) >= MIN_SLOPE_SIZES
    ]
    return sorted((item for item in slopes if item.found.noise > limit), key=lambda item: -item.found.noise)


def slope_table(results: Sequence[Measurement], limit: float) -> str:
    """The layout of libgcrypt's bench-slope, one block a lane, driver and key length."""
    blocks: dict[tuple[str, str, int], list[list[str]]] = {}
    for found in results:
        for subject in found.job.subjects:
            if len(found.sizes(subject.name)) < MIN_SLOPE_SIZES:
                continue
            slope, line = slope_of(found, subject.name)
            cycles = f"{slope.value * found.clock.cycles_per_us / 1000:.3f}" if found.clock.name != "none" else _ABSENT
            if found.clock.name == "perf":
                cycles = f"{_cycle_slope(found, subject.name):.3f}"
            row = [found.job.column.replace("-", " ").upper(), f"{slope.value:.3f}{_flag(slope, limit)}"]
            row += [f"{mib_per_s(slope.value):.1f}", cycles, f"{line.intercept:.0f}"]
            key = (found.job.lane.name, subject.name, found.job.key_len)
            head = ["", "nanosecs/byte", "mebibytes/sec", "cycles/byte", "ns/message"]
            blocks.setdefault(key, [head]).append(row)
    return "\n\n".join(
        f"{name}, {8 * key_len}-bit key, {lane}\n{grid(rows)}" for (lane, name, key_len), rows in blocks.items()
    )


def _cycle_slope(found: Measurement, name: str) -> float:
    series = [found.series[name, size] for size in found.sizes(name)]
    return fit_line([float(item.real) for item in series], [estimate(item.cycles).value for item in series]).slope


def vs_tables(results: Sequence[Measurement], limit: float) -> str:
    """Ratios to the base: one row a size, one column a mode and direction; one table a driver and key length."""
    tables: dict[tuple[str, str, str, int], dict[str, Measurement]] = {}
    for found in results:
        base, *others = found.job.subjects
        for other in others:
            key = (found.job.lane.name, other.name, base.name, found.job.key_len)
            tables.setdefault(key, {})[found.job.column] = found
    texts = []
    for (lane, name, base_name, key_len), columns in tables.items():
        rows = [["size", *columns]]
        rows += [
            [f"{size}B", *(_ratio_cell(found, name, size, limit) for found in columns.values())]
            for size in sorted({size for found in columns.values() for size in found.sizes(name)})
        ]
        texts.append(f"{name} against {base_name}, {8 * key_len}-bit key, {lane}\n{grid(rows)}")
    return "\n\n".join(texts)


def _ratio_cell(found: Measurement, name: str, size: int, limit: float) -> str:
    if (name, size) not in found.series or (found.job.subjects[0].name, size) not in found.series:
        return _ABSENT
    speed = found.ratio(name, size)
    return f"{speed.value:.2f}x{_flag(speed, limit)}"


def counts_table(counts: Counts) -> str:
    """One row a size and subject: instructions a byte and a message, and how many times fewer than the first's.

    Below it, for each implementation that stands beside itself without its fused function, how many times fewer it
    takes where the program's own instructions are left out.
    """
    if counts.unavailable:
        return f"{title(counts.job)}\ninstructions/byte: not available: {counts.unavailable}"
    base = counts.job.subjects[0].name
    rows = [["size", "subject", "instructions/byte", "instructions/message", "ratio"]]
    for name, size in sorted(counts.instructions, key=lambda key: key[1]):
        number = counts.instructions[name, size]
        row = [str(size), name, f"{counts.per_byte(name, size):.3f}", str(number)]
        if name != base and (base, size) in counts.instructions:
            row.append(f"{counts.instructions[base, size] / number:.2f}x")
        rows.append(row)
    return f"{title(counts.job)}\n{grid(rows, left=(1,))}{_absences(counts.absent.items())}{_gains(counts)}"


def _gains(counts: Counts) -> str:
    """Return a line for each size of an implementation with and without its fused function, after a line break."""
    lines = []
    for (name, size), number in sorted(counts.instructions.items(), key=lambda item: item[0][1]):
        base = counts.instructions.get((f"{name}:composed", size))
        if base is not None:
            fused, composed = number - counts.own, base - counts.own
            lines.append(
                f"\n{name}, {size} bytes: {composed} instructions composed, {fused} fused, {composed / fused:.2f}x, "
                f"without {counts.own} of the program that calls the mode"
            )
    return "".join(lines)


def peers_table(
    results: Sequence[Measurement], libraries: Sequence[str], limit: float, is_plain: Callable[[Job, str], bool]
) -> str:
    """One row a driver and job at the largest size: ours and each library, and ours in units of the library's time.

    ``is_plain`` says whether a library's figure is compiled C's; others bear a star. The last line is the worst of
    our ratios to such figures.
    """
    unit = "ns/byte" if results and results[0].clock.name == "none" else "cycles/byte"
    rows = [
        ["", "driver", "key", unit, *(cell for name in libraries for cell in (name, "time ratio", "95 % interval"))]
    ]
    worst: tuple[float, str] | None = None
    starred = False
    for found in results:
        for name in (subject.name for subject in found.job.subjects if subject.cipher and found.sizes(subject.name)):
            size = max(found.sizes(name))
            row = [f"{found.job.algorithm} {found.job.direction[:3]}", name, str(8 * found.job.key_len)]
            row.append(_figure(found, name, size))
            for library in libraries:
                if (library, size) not in found.series:
                    row += [_ABSENT, "", ""]
                    continue
                times = ratio(found.series[name, size].ns, found.series[library, size].ns)
                plain = is_plain(found.job, library)
                if plain:
                    worst = max(worst or (0.0, ""), (times.value, f"{title(found.job)}, {name}, {library}"))
                starred = starred or not plain
                row += [f"{_figure(found, library, size)}{'' if plain else '*'}"]
                row += [f"{times.value:.2f}{_flag(times, limit)}", _interval(times, 2)]
            rows.append(row)
    note = "\n* not plain C: assembly, or code for CPU features" if starred else ""
    last = f"\nagainst plain C, ours takes at most {worst[0]:.2f} of its time ({worst[1]})" if worst else ""
    return grid(rows, left=(0, 1)) + note + last


def _figure(found: Measurement, name: str, size: int) -> str:
    series = found.series[name, size]
    return f"{(series.ns_per_byte if found.clock.name == 'none' else series.cycles_per_byte).value:.2f}"


def noisy_figures(results: Sequence[Measurement], limit: float, *, ratios_only: bool) -> list[Noisy]:
    """Return the figures that nothing may be concluded from, widest interval first."""
    noisy = []
    for found in results:
        base = found.job.subjects[0].name
        for (name, size), series in found.series.items():
            if not ratios_only:
                noisy.append(Noisy(f"{title(found.job)}, {name}, {size} bytes, ns/byte", series.ns_per_byte))
            if name != base and (base, size) in found.series:
                label = f"{title(found.job)}, {name} over {base}, {size} bytes, ratio"
                noisy.append(Noisy(label, found.ratio(name, size)))
    chosen = [item for item in noisy if item.found.noise > limit]
    return sorted(chosen, key=lambda item: -item.found.noise)
