# SPDX-License-Identifier: Apache-2.0
"""The command line. Exit status: 0 all green, 1 findings, 2 wrong use, 3 the suite itself failed, 130 interrupted."""

from __future__ import annotations

import json
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from rich.console import Console

from crosslane.alarms import alarms_command
from crosslane.bench import bench_command
from crosslane.corpora_tools.cli import add_corpora_tools
from crosslane.data import data_root
from crosslane.errors import BadInput, CrosslaneError, HarnessFault
from crosslane.fetched import held_sysroots
from crosslane.findings.cli import findings_command, findings_option
from crosslane.formats import places_of
from crosslane.fuzzing import bench_fuzz_command, fuzz_command
from crosslane.gate import gate_command, report_command
from crosslane.html.cli import page_options
from crosslane.importers.cli import corpora_command
from crosslane.instances import read_providers, with_builds
from crosslane.lanes import lanes_for_host
from crosslane.model import LibraryBuild, Registry
from crosslane.outputs import Outputs, output_options
from crosslane.plan import BEYOND_4_GIB, DEFAULT_SEED, LARGE_LEN, Counts, Selection
from crosslane.planted.cli import selftest_command
from crosslane.records import REGRESSION, SECTORS
from crosslane.registry import cells, load_registry
from crosslane.scaffold import new_command
from crosslane.shards import parse_shard
from crosslane.sysroots.cli import providers_command
from crosslane.targets.cli import targets_command
from crosslane.targets.decoding import target_decoder
from crosslane.targets.rows import FAMILIES
from crosslane.triage.cli import bisect_command, triage_command

if TYPE_CHECKING:
    from crosslane.findings.replay import Answer
    from crosslane.repro import Replay

__all__ = ["main"]

WIDTH = 140
"""Columns of tables where the output is no terminal."""

F = TypeVar("F", bound=Callable[..., Any])


def _impls_option(function: F) -> F:
    return click.option(
        "--impls", "impls", multiple=True, type=click.Path(path_type=Path), help="Folder of further implementations."
    )(function)


def _without_option(function: F) -> F:
    return click.option("--without", multiple=True, metavar="PROVIDER", help="Leave a library out, on purpose.")(
        function
    )


def _selection_options(function: F) -> F:
    function = click.option("--lane", "lanes", multiple=True, help="Lane to run in (default: the gate's).")(function)
    return click.option("--cell", "patterns", multiple=True, help="Pattern of cells, such as 'ctr(*)' or sm4-ce.")(
        function
    )


def _sandbox_option(function: F) -> F:
    return click.option("--require-sandbox", is_flag=True, help="Fail where the host refuses a layer of containment.")(
        function
    )


def _vectors_option(function: F) -> F:
    return click.option(
        "--vectors",
        type=click.Choice(["all", "own"]),
        default="all",
        show_default=True,
        help="Judge by the vectors of the installed test packages too, or by those of corpora alone.",
    )(function)


def _provider_option(function: F) -> F:
    return click.option(
        "--provider",
        "providers",
        multiple=True,
        metavar="NAME[=PROVIDER:FOLDER[:INCLUDE]],...",
        help="Only the cells of these libraries; with a folder, of a build of your own under that name.",
    )(function)


def _registry(impls: tuple[Path, ...], builds: Sequence[LibraryBuild] = ()) -> Registry:
    held = click.get_current_context().with_resource(held_sysroots())
    return with_builds(load_registry(data_root(), impls, sysroots=held), builds)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="crosslane")
def cli() -> None:
    """Does every cipher implementation, on every architecture, answer as the generic one does?"""


@cli.command("list")
@click.argument(
    "what", type=click.Choice(["ciphers", "modes", "implementations", "providers", "lanes", "cells"]), default="cells"
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_impls_option
def list_command(what: str, as_json: bool, impls: tuple[Path, ...]) -> None:
    """List ciphers, modes, implementations, providers, lanes or cells."""
    rows = _rows(_registry(impls), what)
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    for row in rows:
        click.echo("  ".join(_shown(value) for value in row.values()).rstrip())


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _rows(registry: Registry, what: str) -> list[dict[str, Any]]:
    if what == "ciphers":
        return [
            {"name": c.name, "title": c.title, "block_len": c.block_len, "key_lens": list(c.key_lens)}
            for c in registry.ciphers
        ]
    if what == "modes":
        return [{"name": m.name, "title": m.title, "split": m.split, "partial": m.partial} for m in registry.modes]
    if what == "implementations":
        ordered = sorted(registry.implementations, key=lambda item: (item.cipher, -item.priority, item.driver))
        return [
            {
                "cipher": i.cipher,
                "driver": i.driver,
                "isa": i.isa,
                "features": list(i.features),
                "ways": i.ways,
                "priority": i.priority,
                "fused": list(i.fused),
            }
            for i in ordered
        ]
    if what == "providers":
        return [
            {
                "name": p.name,
                "title": p.title,
                "packages": list(p.packages),
                "algorithms": len(p.domains),
                "ship": p.ship,
            }
            for p in registry.providers
        ]
    if what == "lanes":
        return [{"name": lane.name, "gate": lane.gate, "comment": lane.comment} for lane in lanes_for_host(registry)]
    return [{"cell": str(cell)} for cell in cells(registry)]


@cli.command()
@_impls_option
def lint(impls: tuple[Path, ...]) -> None:
    """Hold metadata and folders against each other."""
    from crosslane._sources import check_sources  # noqa: PLC0415 - reading all sources is for this command alone
    from crosslane.lint import lint as find_problems  # noqa: PLC0415
    from crosslane.vectors import all_vectors  # noqa: PLC0415

    problems = find_problems(data_root(), impls)
    for problem in problems:
        click.echo(str(problem), err=True)
    if problems:
        raise BadInput(f"{len(problems)} problem{'s' if len(problems) > 1 else ''} found: correct what is said above")
    check_sources(data_root() / "corpora")
    all_vectors(_registry(impls), imported=False)
    click.echo("metadata, folders and vectors agree")


@cli.command()
@click.option("--lane", "lanes", multiple=True, help="Lane to build (default: the gate's).")
@_impls_option
def build(lanes: tuple[str, ...], impls: tuple[Path, ...]) -> None:
    """Build every shim that a run needs."""
    from crosslane.build import build_launcher  # noqa: PLC0415
    from crosslane.plan import selected_cells  # noqa: PLC0415
    from crosslane.planted.spots import build_plants, lanes_of_plants  # noqa: PLC0415
    from crosslane.plants import load_plants  # noqa: PLC0415
    from crosslane.stations import programs_for  # noqa: PLC0415

    begun = time.monotonic()
    registry = _registry(impls)
    _, chosen = selected_cells(registry, Selection(lanes=lanes))
    programs = programs_for(registry, chosen, lambda text: click.echo(f"  {text}"))
    build_launcher(registry.root)
    plants = load_plants(registry)
    placed = [lane for lane, _ in lanes_of_plants(registry, plants, chosen)]
    planted = build_plants(registry, plants, placed, lambda text: click.echo(f"  {text}"))
    count = len({*programs.values(), *planted.values()})
    click.echo(f"{count} programs for {len(chosen)} lanes ready in {time.monotonic() - begun:.1f} s")


@cli.command()
@_selection_options
@click.option("--count", type=click.IntRange(0), help="Comparisons in each cell; 0: vectors alone.")
@click.option("--share", type=click.IntRange(1, 1000), help="Run a SHAREth of the gate's comparisons in each cell.")
@click.option("--seed", default=DEFAULT_SEED, show_default=True, help="Any sentence; it decides every case.")
@click.option("--jobs", type=click.IntRange(1), help="Worker processes (default: one a core).")
@_vectors_option
@_provider_option
@_without_option
@click.option("--shard", metavar="K/N", help="Run the K-th of N parts; `crosslane report merge` joins what they wrote.")
@output_options
@findings_option
@click.option(
    "--workload",
    type=click.Choice(["cases", "disk"]),
    default="cases",
    show_default=True,
    help="What to run: generated cases and vectors, or sectors of disks and LUKS images.",
)
@click.option("--image", type=click.Path(path_type=Path), help="With --workload disk: judge by this LUKS image alone.")
@click.option("--key-file", type=click.Path(path_type=Path), help="File with the passphrase of --image.")
@click.option("--large", is_flag=True, help="Make each large message longer than 4 GiB: a minute a cell and more.")
@click.option("--no-findings", is_flag=True, help="Only report what departs: shrink and keep nothing.")
@click.option(
    "--prove/--no-prove",
    default=None,
    help="Run the planted faults of the cells too, each must be caught (default: unless cell, lane, provider, count or "
    "share is given).",
)
@_impls_option
@_sandbox_option
@page_options
def check(  # noqa: PLR0913, PLR0917 - one parameter an option; click passes them by name
    patterns: tuple[str, ...],
    lanes: tuple[str, ...],
    count: int | None,
    share: int | None,
    seed: str,
    jobs: int | None,
    vectors: str,
    providers: tuple[str, ...],
    without: tuple[str, ...],
    shard: str | None,
    outputs: Outputs,
    workload: str,
    image: Path | None,
    key_file: Path | None,
    large: bool,
    folder: Path,
    no_findings: bool,
    prove: bool | None,
    impls: tuple[Path, ...],
    require_sandbox: bool,
) -> None:
    """Compare every implementation with the generic one, in every lane."""
    from crosslane.job import Job, run_job  # noqa: PLC0415

    part = parse_shard(shard) if shard is not None else None
    if count is not None and share is not None:
        raise BadInput("--count and --share both say how many comparisons a cell gets: give one of them")
    counts = Counts().shared(share or 1) if count is None else Counts.each(count)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    names, builds = read_providers(providers)
    registry = _registry(impls, builds)
    outputs = replace(outputs, places=lambda: places_of(registry, Path.cwd()))
    job = Job(
        registry=registry,
        selection=Selection(patterns, lanes, without, names),
        seed=seed,
        counts=counts,
        imported=vectors == "all",
        require_sandbox=require_sandbox,
        num_workers=jobs,
        findings=None if no_findings else folder,
        prove=prove if prove is not None else not (patterns or lanes or names or share or count is not None),
        large_len=BEYOND_4_GIB if large else LARGE_LEN,
        shard=part,
    )
    shown_impls = tuple(str(folder) for folder in impls)
    if workload != "disk":
        if image is not None or key_file is not None:
            raise BadInput("--image and --key-file are of the disk workload: add --workload disk, or leave them out")
        sys.exit(run_job(job, console, outputs, shown_impls))
    if (image is None) is not (key_file is None):
        raise BadInput("--image and --key-file belong together: give the image and the file with its passphrase")
    if share is not None or large or prove or part:
        raise BadInput("--workload disk takes neither --share nor --shard nor --large nor --prove: leave them out")
    from crosslane.disk.job import GivenImage, run_disk  # noqa: PLC0415

    given = GivenImage(image, key_file) if image is not None and key_file is not None else None
    sys.exit(run_disk(job, console, outputs, shown_impls, count=count, given=given))


@click.command()
@_impls_option
def harness(impls: tuple[Path, ...]) -> None:
    """Measure the suite itself: overhead over a bare loop of the same calls, and throughput."""
    from crosslane.harness import report_harness  # noqa: PLC0415 - numpy and the engine are for those that need them

    sys.exit(0 if report_harness(_registry(impls), click.echo) else 1)


cli.add_command(alarms_command)
cli.add_command(bisect_command)
cli.add_command(triage_command)
cli.add_command(bench_command)
cli.add_command(corpora_command)
cli.add_command(findings_command)
cli.add_command(gate_command)
cli.add_command(report_command)
cli.add_command(fuzz_command)
cli.add_command(new_command)
cli.add_command(providers_command)
cli.add_command(selftest_command)
cli.add_command(targets_command)
bench_command.add_command(harness, "harness")
bench_command.add_command(bench_fuzz_command, "fuzz")
add_corpora_tools(corpora_command, FAMILIES, target_decoder)


@cli.command()
@click.argument("name", metavar="ID")
@_selection_options
@click.option(
    "--results", "results_file", type=click.Path(path_type=Path), help="Results of the run that had the case."
)
@click.option("--gdb", is_flag=True, help="Of a finding: start a debugger that stops at the subject's call.")
@findings_option
@_provider_option
@_impls_option
@_sandbox_option
def repro(  # noqa: PLR0913, PLR0917 - one parameter an option; click passes them by name
    name: str,
    patterns: tuple[str, ...],
    lanes: tuple[str, ...],
    results_file: Path | None,
    gdb: bool,
    folder: Path,
    providers: tuple[str, ...],
    impls: tuple[Path, ...],
    require_sandbox: bool,
) -> None:
    """Replay a finding in its lanes, or one case or regression by its id on the oracle and every cell of its algorithm
    (natively unless lanes are named).
    """
    from crosslane.trials import is_trial  # noqa: PLC0415

    if name.startswith(SECTORS):
        raise BadInput(
            f"{name!r} names sectors of the disk workload: give the id of the finding that `crosslane check --workload "
            "disk` keeps of them; `crosslane findings list` has it"
        )
    _, builds = read_providers(providers)
    if name.startswith(REGRESSION):
        from crosslane.corpora_tools.replaying import replay_regression  # noqa: PLC0415

        if gdb:
            raise BadInput(f"{name!r} is a regression: --gdb takes that of a finding; `crosslane findings list` has it")
        registry = _registry(impls, builds)
        selection = Selection(patterns, lanes or _lanes_of(registry, patterns))
        session, replays = replay_regression(registry, name, selection, require_sandbox=require_sandbox)
        sys.exit(_told(replays, session))
    if name.count("-") != 2 and not is_trial(name):
        sys.exit(_repro_finding(name, lanes, gdb=gdb, folder=folder, impls=impls, builds=builds))
    registry = _registry(impls, builds)
    if is_trial(name):
        selection = Selection(patterns, lanes or _lanes_of(registry, patterns))
        sys.exit(_repro_trial(registry, name, selection, results_file, require_sandbox=require_sandbox))
    from crosslane.manifest import parse_case_id  # noqa: PLC0415
    from crosslane.repro import replay  # noqa: PLC0415

    if gdb:
        raise BadInput(f"{name!r} is the id of a case: --gdb takes that of a finding; `crosslane findings list` has it")
    wanted = parse_case_id(name)
    if not lanes:
        lanes = _lanes_of(registry, patterns)
    session, replays = replay(
        registry, wanted, Selection(patterns, lanes), results_file=results_file, require_sandbox=require_sandbox
    )
    sys.exit(_told(replays, session))


def _told(answers: Iterable[Replay | Answer], session: Sequence[str] = ()) -> int:
    """Say the session and what each cell answers; the status."""
    for line in session:
        click.echo(line)
    departed = 0
    for item in answers:
        click.echo(f"{item.cell}: {item.text or ('agrees' if item.agreed else 'departs')}")
        departed += not item.agreed
    return 1 if departed else 0


def _repro_trial(
    registry: Registry, name: str, selection: Selection, results_file: Path | None, *, require_sandbox: bool
) -> int:
    """Repeat a trial in the selected cells."""
    from crosslane.repro import replay_trial  # noqa: PLC0415

    return _told(replay_trial(registry, name, selection, results_file=results_file, require_sandbox=require_sandbox))


def _repro_finding(
    name: str,
    lanes: tuple[str, ...],
    *,
    gdb: bool,
    folder: Path,
    impls: tuple[Path, ...],
    builds: Sequence[LibraryBuild],
) -> int:
    """Replay a finding, or debug it; the folders that it was found with are known."""
    from crosslane.findings.replay import debug, replay_finding  # noqa: PLC0415
    from crosslane.findings.store import Store  # noqa: PLC0415

    store = Store(folder)
    try:
        kept = store.read(store.resolve(name))
    except BadInput as error:
        if "-" not in name:
            raise
        raise BadInput(f"{error}; the id of a case is such as 0123456789abcdef-3-17") from None
    known = tuple(Path(item) for item in kept.record.impls if Path(item).is_dir())
    registry = _registry(impls or known, builds)
    if gdb:
        return debug(registry, kept, lanes)
    session, answers = replay_finding(registry, kept, lanes)
    return _told(answers, session)


def _lanes_of(registry: Registry, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The lanes that the patterns name, else the native ones."""
    lanes = lanes_for_host(registry)
    wanted = [text.rpartition("@")[2] for text in patterns if "@" in text]
    named = [lane.name for lane in lanes if any(fnmatchcase(lane.name, text) for text in wanted)]
    return tuple(named or [lane.name for lane in lanes if lane.runner == "native" and lane.usual])


def _as_interrupt(*_: object) -> NoReturn:
    """A CI that ends a run is answered as a person who interrupts it: nothing stays behind."""
    raise KeyboardInterrupt


def main() -> None:
    """Entry point of the command ``crosslane``: turns every way to end into a sentence and an exit status."""
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        status = cli.main(standalone_mode=False)
    except CrosslaneError as error:
        click.echo(f"crosslane: {error}", err=True)
        status = error.exit_status
    except click.ClickException as error:
        error.show()
        status = BadInput.exit_status
    except (click.Abort, KeyboardInterrupt):
        click.echo("crosslane: interrupted", err=True)
        status = 130
    except OSError as error:
        click.echo(
            f"crosslane: {error.filename or 'the system'}: {error.strerror}: remedy that and run again", err=True
        )
        status = HarnessFault.exit_status
    except Exception:  # noqa: BLE001 - status 1 would say that an implementation departs
        traceback.print_exc()
        click.echo("crosslane: the suite itself failed, as said above: please report it", err=True)
        status = HarnessFault.exit_status
    sys.exit(status)
