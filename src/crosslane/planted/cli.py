# SPDX-License-Identifier: Apache-2.0
"""The command ``crosslane selftest``."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crosslane.data import checkout, data_root
from crosslane.errors import BadInput, HarnessFault
from crosslane.names import nearest
from crosslane.plants import CHECKS

if TYPE_CHECKING:
    from crosslane.model import Registry
    from crosslane.planted.selftest import Tried
    from crosslane.plants import Plant

__all__ = ["selftest_command"]

_COLUMNS = (42, 50, 15, 34, 12, 8, 8, 26)
_HEADS = ("fault", "cell", "symptom", "caught by", "comparisons", "seconds", "shrink", "least case")


def _chosen(plants: Sequence[Plant], patterns: Sequence[str]) -> list[Plant]:
    """The plants that the patterns name, all without any; raises BadInput with the nearest names."""
    names = [plant.name for plant in plants]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            near = ", ".join(nearest(pattern, names))
            cure = (
                f"the nearest names are {near}" if near else f"nothing is named alike; the tables are {CHECKS}/*.toml"
            )
            raise BadInput(f"no planted fault or control is named {pattern!r}; {cure}")
    return [plant for plant in plants if not patterns or any(fnmatchcase(plant.name, item) for item in patterns)]


def _sized(plants: Sequence[Plant], patterns: Sequence[str], *, large: bool) -> list[Plant]:
    """Those that show beyond 4 GiB alone, or the others; raises BadInput where the patterns name none of them."""
    sized = [plant for plant in plants if plant.large is large]
    if patterns and not sized:
        raise BadInput(
            f"{plants[0].name} shows in shorter messages: leave --large out"
            if large
            else f"{plants[0].name} shows in a message of more than 4 GiB alone: add --large"
        )
    return sized


def _row(values: Sequence[str]) -> str:
    cells = [value.rjust(width) if i > 3 else value.ljust(width) for i, (value, width) in
             enumerate(zip(values, _COLUMNS, strict=True))]  # fmt: skip
    return "  ".join(cells).rstrip()


def _line(item: Tried) -> str:
    from crosslane.planted.selftest import case_size  # noqa: PLC0415 - numpy and the engine are for those that need them

    shown = item.symptom or ("green" if item.control else "NOT CAUGHT")
    others = [name for name in item.checks if name not in (item.wanted, "agreement")]
    by = ", ".join([*([item.wanted] if item.wanted in item.checks else []), *others])
    if not item.control and item.caught and item.wanted not in item.checks:
        by = f"NOT {item.wanted} ({item.fault_class})"
    if item.control:
        by = "FALSE ALARM" if item.caught else "control"
    size = case_size(item.case)
    return _row(
        (item.name, item.cell, shown, by, f"{item.comparisons:,}", f"{item.took_s:.2f}", f"{item.shrink_s:.2f}", size)
    )


def _list(registry: Registry, plants: Sequence[Plant]) -> None:
    """Print how many faults and controls each check has, then where too few are or none is tried on this host."""
    from crosslane.isa import ARCHES  # noqa: PLC0415
    from crosslane.planted.battery import proven_checks, shortfalls  # noqa: PLC0415

    proven = proven_checks(registry, plants)
    heads = [f"{kind} {arch}" for kind in ("faults", "controls") for arch in ARCHES]
    click.echo("  ".join(["check".ljust(18), *(head.rjust(16) for head in heads)]))
    for item in proven:
        counts = [len(found[arch]) for found in (item.faults, item.controls) for arch in ARCHES]
        click.echo("  ".join([item.check.ljust(18), *(str(count).rjust(16) for count in counts)]))
    alone = sum(plant.control and not plant.check for plant in plants)
    faults = sum(not plant.control for plant in plants)
    click.echo(
        f"{faults} planted faults and {len(plants) - faults} controls, {alone} of them beside implementations and of "
        "no one check"
    )
    for text in shortfalls(proven):
        click.echo(text)
    _say_untried(registry, plants)


def _say_untried(registry: Registry, plants: Sequence[Plant], left: Sequence[Plant] = ()) -> None:
    """Name what no lane of this host shows, and what was ``left`` out for its size."""
    from crosslane.planted.spots import unplaced  # noqa: PLC0415

    names = unplaced(registry, plants)
    if names:
        click.echo(f"not tried on this host, {len(names)}: {', '.join(names)}")
    if left:
        click.echo(f"left to --large, {len(left)}: {', '.join(plant.name for plant in left)}")


@click.command("selftest")
@click.option("--seed", help="Any sentence; it decides every case (default: a new one, which is printed).")
@click.option("--fault", "patterns", multiple=True, metavar="PATTERN", help="Planted faults or controls by name.")
@click.option("--lane", "lanes", multiple=True, help="Lane to run in (default: all in which a fault can show).")
@click.option("--count", type=click.IntRange(1), help="Comparisons in each cell at most (default: those of check).")
@click.option("--jobs", type=click.IntRange(1), help="Worker processes (default: one a core).")
@click.option("--list", "listed", is_flag=True, help="Say how many faults and controls each check has; run nothing.")
@click.option(
    "--large", is_flag=True, help="Only what shows in a message of more than 4 GiB, natively: minutes each, 9 GiB."
)
@click.option("--store", is_flag=True, help="Store the minimal case of each fault as the one that proves it.")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the table there.")
def selftest_command(  # noqa: PLR0913, PLR0917 - one parameter an option; click passes them by name
    seed: str | None,
    patterns: tuple[str, ...],
    lanes: tuple[str, ...],
    count: int | None,
    jobs: int | None,
    listed: bool,
    large: bool,
    store: bool,
    json_file: Path | None,
) -> None:
    """Plant faults into current sources and see that random cases find each, and that controls stay green."""
    from crosslane.campaign import default_workers  # noqa: PLC0415 - numpy and the engine are for those that need them
    from crosslane.checks import load_checks  # noqa: PLC0415
    from crosslane.findings.formats import case_to_json  # noqa: PLC0415
    from crosslane.lanes import lane_named, lanes_for_host  # noqa: PLC0415
    from crosslane.plan import Counts  # noqa: PLC0415
    from crosslane.planted.score import as_table, holds, report  # noqa: PLC0415
    from crosslane.planted.selftest import try_spots  # noqa: PLC0415
    from crosslane.planted.spots import spots_of  # noqa: PLC0415
    from crosslane.plants import case_file, load_plants  # noqa: PLC0415
    from crosslane.registry import load_registry  # noqa: PLC0415

    if json_file is not None and not json_file.resolve().parent.is_dir():
        raise BadInput(f"{json_file}: the folder does not exist: create it or name another file with --json")
    registry = load_registry(checkout("--store writes cases") if store else data_root())
    named = _chosen(load_plants(registry), patterns)
    if listed:
        _list(registry, named)
        return
    plants = _sized(named, patterns, large=large)
    offered = lanes_for_host(registry)
    chosen = [lane_named(offered, name) for name in dict.fromkeys(lanes)] if lanes else None
    if seed is not None and not seed.strip():
        raise BadInput("the seed is empty; give any sentence with --seed, or leave the option out")
    seed = seed or f"selftest {secrets.token_hex(4)}"
    spots = spots_of(registry, plants, seed=seed, lanes=chosen, progress=lambda text: click.echo(f"  {text}"))
    if not spots:
        raise BadInput("none of these faults can show in these lanes: name others with --fault or --lane")
    click.echo(_row(_HEADS))
    counts = Counts() if count is None else Counts.each(count)
    workers = jobs or (1 if large else default_workers())
    checks = load_checks(registry.root)
    tried = try_spots(
        spots, checks, counts, num_workers=workers, tell=lambda item: click.echo(_line(item)), shrink_all=store
    )
    for item in tried:
        if item.text:
            click.echo(f"{item.name} in {item.cell}: {item.text}")
    stored: set[str] = set()
    for item in tried if store else ():
        if item.case is not None and item.holds and item.name not in stored:
            case_file(registry.root, item.name).write_text(case_to_json(item.case))
            stored.add(item.name)
    click.echo(f"seed {seed!r}")
    if chosen is None:
        _say_untried(registry, plants, [] if large else [plant for plant in named if plant.large])
    whole = not patterns and count is None and not large
    click.echo("\n".join(report(tried, whole=whole)))
    if json_file is not None:
        json_file.write_text(json.dumps(as_table(tried, seed, whole=whole), indent=1) + "\n")
    if any(item.text for item in tried):
        sys.exit(HarnessFault.exit_status)
    sys.exit(0 if holds(tried, whole=whole) else 1)
