# SPDX-License-Identifier: Apache-2.0
"""What the commands of ``crosslane bench`` share: options, a run, and how it ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from crosslane.bench.counting import Counts, count, counter_for
from crosslane.bench.jobs import Job
from crosslane.bench.marks import check_marks, load_marks, marks_table
from crosslane.bench.measure import CLOCKS, Measurement, Settings, measure_all, pick_cpu
from crosslane.bench.modelled import Modelled
from crosslane.bench.plot import curves_of, draw
from crosslane.bench.report import conditions, processor_name, to_json, write_text
from crosslane.bench.tables import Noisy, counts_table, noisy_figures
from crosslane.build import build_bench
from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.isa import host_arch
from crosslane.model import Implementation, Lane, Registry
from crosslane.registry import load_registry

__all__ = [
    "Run",
    "common",
    "count_run",
    "end",
    "finish",
    "implementations_of",
    "measure_run",
    "native_lane",
    "noisy_of",
    "say",
    "settings_of",
]

_F = TypeVar("_F", bound=Callable[..., Any])
_STATUS_NOT_MEASURED = 1
_STATUS_NOISY = 3
_MAX_NOISY_SHOWN = 5
_LEAST_ROUNDS = 30


@dataclass
class Run:
    """What a command has measured so far."""

    settings: Settings
    results: list[Measurement] = field(default_factory=list)
    counts: list[Counts] = field(default_factory=list)
    models: list[Modelled] = field(default_factory=list)


_OPTIONS = (
    click.option(
        "--cell", "cells", multiple=True, metavar="PATTERN", help="Cells to measure; default: all native ones."
    ),
    click.option("--size", "sizes", multiple=True, type=click.IntRange(1, 1 << 20), help="Message length in bytes."),
    click.option(
        "--key-len", "key_lens", multiple=True, type=click.IntRange(0, 64), help="Cipher key length in bytes."
    ),
    click.option("--cpu", type=click.IntRange(0, 65535), help="CPU to pin to; default: the last that is allowed."),
    click.option("--clock", type=click.Choice(CLOCKS), default="auto", show_default=True, help="What counts cycles."),
    click.option("--rounds", type=click.IntRange(_LEAST_ROUNDS, 10000), default=_LEAST_ROUNDS, show_default=True),
    click.option("--sample-us", type=click.IntRange(10, 1000000), default=200, show_default=True),
    click.option(
        "--max-noise",
        type=click.FloatRange(0.01, 100.0),
        default=3.0,
        show_default=True,
        help="Widest half 95 % interval, in percent, from which anything is concluded.",
    ),
    click.option(
        "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all to this file."
    ),
    click.option("--plot", "plot_file", type=click.Path(dir_okay=False, path_type=Path), help="Write an SVG here."),
    click.option("--marks", is_flag=True, help="Show published and peers' figures beside today's."),
)


def common(command: _F) -> _F:
    """Give a command the options that all have."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def settings_of(options: dict[str, Any], default_sizes: tuple[int, ...]) -> Settings:
    """Return how to measure by the options; raises ``BadInput`` for a CPU that this process may not use."""
    cpu = options["cpu"]
    allowed = os.sched_getaffinity(0)
    if cpu is not None and cpu not in allowed:
        raise BadInput(
            f"--cpu {cpu} is not allowed to this process; allowed are {', '.join(map(str, sorted(allowed)))}"
        )
    return Settings(
        sizes=tuple(dict.fromkeys(options["sizes"])) or default_sizes,
        rounds=options["rounds"],
        sample_us=options["sample_us"],
        cpu=pick_cpu() if cpu is None else cpu,
        clock=options["clock"],
        max_noise=options["max_noise"] / 100.0,
    )


def implementations_of(registry: Registry, lane: Lane) -> list[Implementation]:
    """All that a lane's program holds: one program serves all jobs of the lane."""
    return [item for item in registry.implementations if item.isa in ("any", lane.arch)]


def say(line: str) -> None:
    """Print a line of progress."""
    click.echo(line, err=True)


def measure_run(registry: Registry, jobs: Sequence[Job], run: Run, show: Callable[[Measurement], str]) -> None:
    """Measure native jobs in turns: ``show`` gives a job's own table or ''. Count the others."""
    programs = {job.lane: build_bench(registry, job.lane, implementations_of(registry, job.lane)) for job in jobs}
    native = [(programs[job.lane], job) for job in jobs if job.lane.runner == "native"]
    found = measure_all(native, run.settings, say)
    run.results += found
    for text in filter(None, map(show, found)):
        click.echo(f"{text}\n")
    count_run(registry, [job for job in jobs if job.lane.runner != "native"], run)


def count_run(registry: Registry, jobs: Sequence[Job], run: Run) -> None:
    """Count the instructions of jobs in any lane, and print them."""
    for job in jobs:
        program = build_bench(registry, job.lane, implementations_of(registry, job.lane))
        run.counts.append(count(program, counter_for(registry.root, job.lane), job, run.settings))
        click.echo(f"{counts_table(run.counts[-1])}\n")


def finish(run: Run, options: dict[str, Any], *, noisy: Sequence[Noisy]) -> int:
    """Write files, say how it was measured and whether it is worth anything; returns the exit status."""
    if options["marks"]:
        registry, marks = load_registry(data_root()), load_marks()
        check_marks(marks, registry)
        click.echo(f"{marks_table(registry, marks, run.results, run.counts, run.models)}\n")
    if options["json_file"] is not None:
        write_text(options["json_file"], to_json(run.results, run.counts, run.models, run.settings))
    if options["plot_file"] is not None:
        unit, curves = curves_of(run.results)
        if not curves:
            raise BadInput("--plot has nothing to draw, because no cell was measured natively; choose native cells")
        write_text(options["plot_file"], draw(processor_name(), unit, curves))
    if run.results:
        click.echo(conditions(run.results, run.settings))
    for item in noisy[:_MAX_NOISY_SHOWN]:
        click.echo(
            f"too noisy to conclude: {item.label}: {item.found.value:.3f}, 95 % interval {item.found.low:.3f} to "
            f"{item.found.high:.3f}: noise {100 * item.found.noise:.1f} %, the limit is "
            f"{100 * run.settings.max_noise:.1f} %"
        )
    if len(noisy) > _MAX_NOISY_SHOWN:
        click.echo(f"too noisy to conclude: {len(noisy)} figures in all, marked ? in the tables")
    if noisy:
        return _STATUS_NOISY
    return 0 if _complete(run) else _STATUS_NOT_MEASURED


def _complete(run: Run) -> bool:
    """Whether each job gave figures; an implementation that declines on this CPU may, if others of its job ran."""
    unavailable = any(counts.unavailable or not counts.instructions for counts in run.counts)
    not_modelled = any(found.unavailable or not found.figures for found in run.models)
    return not unavailable and not not_modelled and all(found.series for found in run.results)


def end(status: int) -> None:
    """End the command with a status."""
    if status != 0:
        raise click.exceptions.Exit(status)


def native_lane(registry: Registry) -> Lane:
    """Return the lane in which time is measured on this machine; raises ``BadInput`` where there is none."""
    for lane in registry.lanes:
        if lane.runner == "native" and lane.usual and lane.arch == host_arch():
            return lane
    raise BadInput(f"ci/lanes.toml has no native lane for {host_arch()}, where time can be measured; add one")


def noisy_of(run: Run, *, ratios_only: bool) -> list[Noisy]:
    """Return the figures of a run that nothing may be concluded from."""
    return noisy_figures(run.results, run.settings.max_noise, ratios_only=ratios_only)
