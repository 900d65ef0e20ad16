# SPDX-License-Identifier: Apache-2.0
"""``crosslane bench``: the command and its options.

Exit status: 0 all was measured; 1 something chosen could not be; 2 wrong use; 3 too noisy to conclude.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from crosslane.bench.counting import Counts, count, counter_for
from crosslane.bench.jobs import DEFAULT_SIZES, Job, choose_cells, plan_jobs, with_base
from crosslane.bench.llvm import DEFAULT_CORES, find_llvm, require_core
from crosslane.bench.marks import load_marks, marks_table
from crosslane.bench.measure import CLOCKS, Measurement, Settings, measure_all, pick_cpu
from crosslane.bench.modelled import MODEL_SIZES, Model, Modelled, model_job, model_table
from crosslane.bench.peers import LIBRARIES, is_plain_c, load_assembly, require_libraries, with_libraries
from crosslane.bench.plot import curves_of, draw
from crosslane.bench.report import conditions, processor_name, to_json, write_text
from crosslane.bench.tables import (
    MIN_SLOPE_SIZES,
    Noisy,
    counts_table,
    noisy_figures,
    noisy_slopes,
    peers_table,
    slope_table,
    speed_table,
    vs_tables,
)
from crosslane.bench.tcrypt import jobs_for, load_layouts, tcrypt_tables
from crosslane.build import build_bench
from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.isa import host_arch
from crosslane.model import Implementation, Lane, Registry
from crosslane.registry import load_registry

__all__ = ["bench_command"]

_F = TypeVar("_F", bound=Callable[..., Any])
_STATUS_NOT_MEASURED = 1
_STATUS_NOISY = 3
_MAX_NOISY_SHOWN = 5
_LEAST_ROUNDS = 30
_PEER_SIZES = (8192,)
# Whole runs of every implementation, so that time over them is a line.
_SLOPE_SIZES = tuple(range(1024, 8193, 1024))


@dataclass
class _Run:
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


def _common(command: _F) -> _F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _settings(options: dict[str, Any], default_sizes: tuple[int, ...]) -> Settings:
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


def _implementations(registry: Registry, lane: Lane) -> list[Implementation]:
    """All that a lane's program holds: one program serves all jobs of the lane."""
    return [item for item in registry.implementations if item.isa in ("any", lane.arch)]


def _say(line: str) -> None:
    click.echo(line, err=True)


def _measure_all(registry: Registry, jobs: Sequence[Job], run: _Run, show: Callable[[Measurement], str]) -> None:
    """Measure native jobs in turns and count the others: ``show`` gives a job's own table or ''."""
    programs = {job.lane: build_bench(registry, job.lane, _implementations(registry, job.lane)) for job in jobs}
    native = [(programs[job.lane], job) for job in jobs if job.lane.runner == "native"]
    run.results += measure_all(native, run.settings, _say)
    for text in filter(None, map(show, run.results)):
        click.echo(f"{text}\n")
    for job in jobs:
        if job.lane.runner != "native":
            run.counts.append(count(programs[job.lane], counter_for(registry.root, job.lane), job, run.settings))
            click.echo(f"{counts_table(run.counts[-1])}\n")


def _finish(run: _Run, options: dict[str, Any], *, noisy: Sequence[Noisy]) -> int:
    """Write files, say how it was measured and whether it is worth anything; returns the exit status."""
    if options["marks"]:
        click.echo(f"{marks_table(load_marks(), run.results, run.counts)}\n")
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


def _complete(run: _Run) -> bool:
    """Whether each job gave figures; an implementation that declines on this CPU may, if others of its job ran."""
    unavailable = any(counts.unavailable or not counts.instructions for counts in run.counts)
    not_modelled = any(found.unavailable or not found.figures for found in run.models)
    return not unavailable and not not_modelled and all(found.series for found in run.results)


def _end(status: int) -> None:
    if status != 0:
        raise click.exceptions.Exit(status)


@click.group("bench", invoke_without_command=True)
@_common
@click.option("--slope", is_flag=True, help="Least squares over sizes, as libgcrypt's bench-slope.")
@click.option(
    "--vs", "base", metavar="DRIVER", help="Ratios to this driver: a row a size, a column a mode and direction."
)
@click.option(
    "--tcrypt", "number", type=int, metavar="MODE", help="The layout of the kernel's tcrypt mode, e.g. 218, 300."
)
@click.option("--model", is_flag=True, help="Simulate a core on the instructions executed, with llvm-mca.")
@click.option("--core", metavar="NAME", help="The core for --model; default: neoverse-n2, on x86-64 znver3.")
@click.pass_context
def bench_command(context: click.Context, /, **options: Any) -> None:
    """Measure speed natively, in turns within one process; count instructions under qemu.

    Sizes are message lengths in bytes, rounded up to whole blocks where the mode takes no others. One message is setiv,
    update, final and tag under a key that was set before.
    """
    if context.invoked_subcommand is None:
        _end(_bench(options))


def _bench(options: dict[str, Any]) -> int:
    slope, base, number, model = options["slope"], options["base"], options["number"], options["model"]
    if (slope is True) + (base is not None) + (number is not None) + (model is True) > 1:
        raise BadInput("--slope, --vs, --tcrypt and --model are four ways to print; give one of them")
    if options["core"] is not None and not model:
        raise BadInput("--core names the core that --model simulates; give --model too")
    if number is not None:
        return _bench_tcrypt(options, number)
    if model:
        return _bench_model(options)
    run = _Run(_settings(options, _SLOPE_SIZES if slope else DEFAULT_SIZES))
    if slope and len(run.settings.sizes) < MIN_SLOPE_SIZES:
        raise BadInput("--slope fits a line and needs three sizes or more; give more --size options, or none")
    registry = load_registry(data_root())
    jobs = plan_jobs(registry, choose_cells(registry, options["cells"]), key_lens=options["key_lens"])
    _require_time(jobs, "--slope" if slope else "--vs" if base is not None else "")
    if base is not None:
        jobs = with_base(registry, jobs, base)
    if slope or base is not None:
        _measure_all(registry, jobs, run, lambda _found: "")
        table = slope_table if slope else vs_tables
        if run.results:
            click.echo(f"{table(run.results, run.settings.max_noise)}\n")
    else:
        _measure_all(registry, jobs, run, lambda found: speed_table(found, run.settings.max_noise))
    limit = run.settings.max_noise
    noisy = noisy_slopes(run.results, limit) if slope else _noisy(run, ratios_only=base is not None)
    return _finish(run, options, noisy=noisy)


def _bench_model(options: dict[str, Any]) -> int:
    llvm = find_llvm()
    run = _Run(_settings(options, MODEL_SIZES))
    registry = load_registry(data_root())
    jobs = plan_jobs(registry, choose_cells(registry, options["cells"]), key_lens=options["key_lens"])
    cores = {arch: options["core"] or DEFAULT_CORES[arch] for arch in sorted({job.lane.arch for job in jobs})}
    for arch, core in cores.items():
        require_core(llvm, arch, core)
    models: dict[Lane, tuple[Path, Model]] = {}
    for i, job in enumerate(jobs):
        if job.lane not in models:
            program = build_bench(registry, job.lane, _implementations(registry, job.lane))
            models[job.lane] = program, Model(llvm, program, job.lane.arch, cores[job.lane.arch])
        program, model = models[job.lane]
        _say(f"simulating {job.algorithm} {job.direction}, job {i + 1} of {len(jobs)}")
        run.models.append(model_job(program, counter_for(registry.root, job.lane), job, run.settings, model))
    click.echo(f"{model_table(run.models)}\n")
    return _finish(run, options, noisy=())


def _noisy(run: _Run, *, ratios_only: bool) -> list[Noisy]:
    return noisy_figures(run.results, run.settings.max_noise, ratios_only=ratios_only)


def _require_time(jobs: Sequence[Job], option: str) -> None:
    """Raise ``BadInput`` where a layout of times was asked for and a chosen lane only counts instructions."""
    for job in jobs:
        if option and job.lane.runner != "native":
            raise BadInput(
                f"{option} prints times, but in {job.lane.name} instructions are counted; choose cells of a native "
                f"lane, or leave {option} out"
            )


def _bench_tcrypt(options: dict[str, Any], number: int) -> int:
    layouts = load_layouts()
    if number not in layouts:
        raise BadInput(f"--tcrypt {number} is not on file; allowed are {', '.join(map(str, sorted(layouts)))}")
    layout = layouts[number]
    if options["sizes"] or options["key_lens"]:
        raise BadInput("--tcrypt brings its own sizes and key lengths; leave --size and --key-len out")
    run = _Run(_settings(options, (layout.message_len,) if layout.message_len else layout.sizes))
    registry = load_registry(data_root())
    native = [cell for cell in choose_cells(registry, options["cells"]) if cell.lane == _native_lane(registry).name]
    if layout.cipher != "*":
        native = [cell for cell in native if cell.algorithm.cipher == layout.cipher]
    jobs = jobs_for(layout, plan_jobs(registry, native, key_lens=layout.key_lens if native else ()))
    _measure_all(registry, jobs, run, lambda _found: "")
    click.echo(f"{tcrypt_tables(layout, run.results)}\n")
    return _finish(run, options, noisy=_noisy(run, ratios_only=False))


def _native_lane(registry: Registry) -> Lane:
    for lane in registry.lanes:
        if lane.runner == "native" and lane.usual and lane.arch == host_arch():
            return lane
    raise BadInput(f"ci/lanes.toml has no native lane for {host_arch()}, where time can be measured; add one")


@bench_command.command("peers")
@_common
@click.option("--hardware", is_flag=True, help="Let the libraries use the CPU's features.")
def _peers(**options: Any) -> None:
    """Measure ecb, cbc and ctr of libgcrypt and nettle beside ours in one process; default: our generic ciphers.

    Without --hardware the libraries run their code for any CPU of the architecture: C, or assembly where they have some
    that needs no CPU feature.
    """
    _end(_bench_peers(options))


def _bench_peers(options: dict[str, Any]) -> int:
    registry = load_registry(data_root())
    lane = _native_lane(registry)
    require_libraries(lane.arch)
    run = _Run(replace(_settings(options, _PEER_SIZES), peer_hardware=options["hardware"]))
    generic = {item.driver for item in registry.implementations if item.is_generic}
    chosen = [cell for cell in choose_cells(registry, options["cells"]) if cell.lane == lane.name]
    if not options["cells"]:
        chosen = [cell for cell in chosen if cell.driver in generic]
    jobs = with_libraries(plan_jobs(registry, chosen, key_lens=options["key_lens"]))
    if not jobs:
        raise BadInput("none of the chosen cells is ecb, cbc or ctr in the native lane, which the libraries offer")
    program = build_bench(registry, lane, _implementations(registry, lane), peers=True)
    run.results += measure_all([(program, job) for job in jobs], run.settings, _say)
    names = [library.name for library in LIBRARIES]
    facts = load_assembly()

    def is_plain(job: Job, library: str) -> bool:
        return not run.settings.peer_hardware and is_plain_c(facts, job, library)

    click.echo(f"{peers_table(run.results, names, run.settings.max_noise, is_plain)}\n")
    return _finish(run, options, noisy=_noisy(run, ratios_only=True))
