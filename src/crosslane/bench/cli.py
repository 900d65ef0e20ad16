# SPDX-License-Identifier: Apache-2.0
"""``crosslane bench``: the command and its options.

Exit status: 0 all was measured; 1 something chosen could not be; 2 wrong use; 3 too noisy to conclude.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from crosslane.bench.counting import counter_for
from crosslane.bench.jobs import DEFAULT_SIZES, Job, choose_cells, plan_jobs, with_base, with_composed
from crosslane.bench.llvm import DEFAULT_CORES, find_llvm, require_core
from crosslane.bench.measure import measure_all
from crosslane.bench.modelled import MODEL_SIZES, Model, model_job, model_table
from crosslane.bench.peers import LIBRARIES, is_plain_c, load_assembly, require_libraries, with_libraries
from crosslane.bench.published import choose_tables, jobs_of
from crosslane.bench.running import (
    Run,
    common,
    count_run,
    end,
    finish,
    implementations_of,
    measure_run,
    native_lane,
    noisy_of,
    say,
    settings_of,
)
from crosslane.bench.small import compare_small, small_table
from crosslane.bench.tables import MIN_SLOPE_SIZES, noisy_slopes, peers_table, slope_table, speed_table, vs_tables
from crosslane.bench.tcrypt import jobs_for, load_layouts, tcrypt_tables
from crosslane.build import build_bench
from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.isa import ARCHES
from crosslane.model import Lane
from crosslane.names import select_cells
from crosslane.registry import cells as all_cells
from crosslane.registry import load_registry

__all__ = ["bench_command"]

_PEER_SIZES = (8192,)
# Whole runs of every implementation, so that time over them is a line.
_SLOPE_SIZES = tuple(range(1024, 8193, 1024))


@click.group("bench", invoke_without_command=True)
@common
@click.option("--slope", is_flag=True, help="Least squares over sizes, as libgcrypt's bench-slope.")
@click.option(
    "--vs", "base", metavar="DRIVER", help="Ratios to this driver: a row a size, a column a mode and direction."
)
@click.option(
    "--tcrypt", "number", type=int, metavar="MODE", help="The layout of the kernel's tcrypt mode, e.g. 218, 300."
)
@click.option("--composed", is_flag=True, help="Beside each fused mode the same implementation without it.")
@click.option("--instructions", is_flag=True, help="Count instructions natively too, instead of measuring time.")
@click.option("--model", is_flag=True, help="Simulate a core on the instructions executed, with llvm-mca.")
@click.option("--core", metavar="NAME", help="The core for --model; default: neoverse-n2, on x86-64 znver3.")
@click.pass_context
def bench_command(context: click.Context, /, **options: Any) -> None:
    """Measure speed natively, in turns within one process; count instructions under qemu.

    Sizes are message lengths in bytes, rounded up to whole blocks where the mode takes no others. One message is setiv,
    update, final and tag under a key that was set before.
    """
    if context.invoked_subcommand is None:
        end(_bench(options))


def _check_layout(options: dict[str, Any]) -> None:
    """Raise ``BadInput`` for options that do not go together."""
    slope, base, number, model = options["slope"], options["base"], options["number"], options["model"]
    if (slope is True) + (base is not None) + (number is not None) + (model is True) > 1:
        raise BadInput("--slope, --vs, --tcrypt and --model are four ways to print; give one of them")
    if options["core"] is not None and not model:
        raise BadInput("--core names the core that --model simulates; give --model too")
    if (options["instructions"] or options["composed"]) and (number is not None or model):
        raise BadInput("--instructions and --composed do not go with --tcrypt and --model; leave them out")
    if options["instructions"] and (slope or base is not None):
        raise BadInput("--instructions counts, and --slope and --vs print times; leave one of them out")


def _bench(options: dict[str, Any]) -> int:
    _check_layout(options)
    slope, base, number = options["slope"], options["base"], options["number"]
    if number is not None:
        return _bench_tcrypt(options, number)
    if options["model"]:
        return _bench_model(options)
    run = Run(settings_of(options, _SLOPE_SIZES if slope else DEFAULT_SIZES))
    if slope and len(run.settings.sizes) < MIN_SLOPE_SIZES:
        raise BadInput("--slope fits a line and needs three sizes or more; give more --size options, or none")
    registry = load_registry(data_root())
    jobs = plan_jobs(registry, choose_cells(registry, options["cells"]), key_lens=options["key_lens"])
    _require_time(jobs, "--slope" if slope else "--vs" if base is not None else "")
    if base is not None:
        jobs = with_base(registry, jobs, base)
    if options["composed"]:
        jobs = with_composed(registry, jobs)
    if options["instructions"]:
        count_run(registry, jobs, run)
        return finish(run, options, noisy=())
    if slope or base is not None:
        measure_run(registry, jobs, run, lambda _found: "")
        table = slope_table if slope else vs_tables
        if run.results:
            click.echo(f"{table(run.results, run.settings.max_noise)}\n")
    else:
        measure_run(registry, jobs, run, lambda found: speed_table(found, run.settings.max_noise))
    limit = run.settings.max_noise
    noisy = noisy_slopes(run.results, limit) if slope else noisy_of(run, ratios_only=base is not None)
    return finish(run, options, noisy=noisy)


def _bench_model(options: dict[str, Any]) -> int:
    llvm = find_llvm()
    run = Run(settings_of(options, MODEL_SIZES))
    registry = load_registry(data_root())
    jobs = plan_jobs(registry, choose_cells(registry, options["cells"]), key_lens=options["key_lens"])
    cores = {arch: options["core"] or DEFAULT_CORES[arch] for arch in sorted({job.lane.arch for job in jobs})}
    for arch, core in cores.items():
        require_core(llvm, arch, core)
    models: dict[Lane, tuple[Path, Model]] = {}
    for i, job in enumerate(jobs):
        if job.lane not in models:
            program = build_bench(registry, job.lane, implementations_of(registry, job.lane))
            models[job.lane] = program, Model(llvm, program, job.lane.arch, cores[job.lane.arch])
        program, model = models[job.lane]
        say(f"simulating {job.algorithm} {job.direction}, job {i + 1} of {len(jobs)}")
        run.models.append(model_job(program, counter_for(registry.root, job.lane), job, run.settings, model))
    click.echo(f"{model_table(run.models)}\n")
    return finish(run, options, noisy=())


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
    run = Run(settings_of(options, (layout.message_len,) if layout.message_len else layout.sizes))
    registry = load_registry(data_root())
    native = [cell for cell in choose_cells(registry, options["cells"]) if cell.lane == native_lane(registry).name]
    if layout.cipher != "*":
        native = [cell for cell in native if cell.algorithm.cipher == layout.cipher]
    jobs = jobs_for(layout, plan_jobs(registry, native, key_lens=layout.key_lens if native else ()))
    measure_run(registry, jobs, run, lambda _found: "")
    click.echo(f"{tcrypt_tables(layout, run.results)}\n")
    return finish(run, options, noisy=noisy_of(run, ratios_only=False))


@bench_command.command("published")
@common
@click.option(
    "--table", "tables", multiple=True, metavar="NAME", help="Only this table; default: all of the machine's."
)
def _published(**options: Any) -> None:
    """Print figures in the layouts in which they were published for the same implementations, and the marks."""
    end(_bench_published(options))


def _bench_published(options: dict[str, Any]) -> int:
    if options["cells"] or options["sizes"] or options["key_lens"]:
        raise BadInput("published tables bring their own cells, sizes and key lengths; leave these options out")
    registry = load_registry(data_root())
    lane = native_lane(registry)
    whole = Run(settings_of(options, (0,)))
    noisy = []
    for table in choose_tables(registry, lane, options["tables"]):
        run = Run(replace(whole.settings, sizes=table.sizes))
        measure_run(registry, jobs_of(table, registry, lane), run, lambda _found: "")
        show = vs_tables if table.base else slope_table
        click.echo(f"{show(run.results, run.settings.max_noise)}\n")
        limit = run.settings.max_noise
        noisy += noisy_of(run, ratios_only=True) if table.base else noisy_slopes(run.results, limit)
        whole.results += run.results
    return finish(whole, {**options, "marks": True}, noisy=noisy)


@bench_command.command("small")
@click.option("--cell", "cells", multiple=True, metavar="PATTERN", help="Cells to look at; default: all.")
def _small(cells: tuple[str, ...]) -> None:
    """Count the instructions of messages below 64 bytes, against those of each implementation's fall-back.

    They are counted under qemu, and natively in single steps what the emulator cannot run. The status is 1 where one
    needs more than 5 % more.
    """
    registry = load_registry(data_root())
    emulated = {f"{arch}_qemu_max" for arch in ARCHES}
    ours = {item.driver for item in registry.implementations}
    known = [cell for cell in all_cells(registry) if cell.lane in emulated and cell.driver in ours]
    jobs = plan_jobs(registry, select_cells(known, cells or ("*",)))
    found, notes = compare_small(registry, jobs, native_lane(registry), say)
    click.echo("\n".join([small_table(found), *notes]))
    end(int(any(item.verdict == "missed" for item in found)))


@bench_command.command("peers")
@common
@click.option("--hardware", is_flag=True, help="Let the libraries use the CPU's features.")
def _peers(**options: Any) -> None:
    """Measure ecb, cbc and ctr of libgcrypt and nettle beside ours in one process; default: our generic ciphers.

    Without --hardware the libraries run their code for any CPU of the architecture: C, or assembly where they have some
    that needs no CPU feature.
    """
    end(_bench_peers(options))


def _bench_peers(options: dict[str, Any]) -> int:
    registry = load_registry(data_root())
    lane = native_lane(registry)
    require_libraries(lane.arch)
    run = Run(replace(settings_of(options, _PEER_SIZES), peer_hardware=options["hardware"]))
    generic = {item.driver for item in registry.implementations if item.is_generic}
    chosen = [cell for cell in choose_cells(registry, options["cells"]) if cell.lane == lane.name]
    if not options["cells"]:
        chosen = [cell for cell in chosen if cell.driver in generic]
    jobs = with_libraries(plan_jobs(registry, chosen, key_lens=options["key_lens"]))
    if not jobs:
        raise BadInput("none of the chosen cells is ecb, cbc or ctr in the native lane, which the libraries offer")
    program = build_bench(registry, lane, implementations_of(registry, lane), peers=True)
    run.results += measure_all([(program, job) for job in jobs], run.settings, say)
    names = [library.name for library in LIBRARIES]
    facts = load_assembly()

    def is_plain(job: Job, library: str) -> bool:
        return not run.settings.peer_hardware and is_plain_c(facts, job, library)

    click.echo(f"{peers_table(run.results, names, run.settings.max_noise, is_plain)}\n")
    return finish(run, options, noisy=noisy_of(run, ratios_only=True))
