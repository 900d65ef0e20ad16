# SPDX-License-Identifier: Apache-2.0
"""The command ``crosslane alarms``."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import click

from crosslane.data import data_root

__all__ = ["alarms_command"]


@click.command("alarms")
@click.option("--seeds", default=100, show_default=True, type=click.IntRange(1), help="How many seeds.")
@click.option("--first", default=0, show_default=True, type=click.IntRange(0), help="The number of the first seed.")
@click.option(
    "--share", default=20, show_default=True, type=click.IntRange(1, 1000),
    help="Run a SHAREth of the gate's comparisons in each cell.",
)  # fmt: skip
@click.option(
    "--together", default=20, show_default=True, type=click.IntRange(1, 1000),
    help="So many seeds run in the same processes; their lines come when all cells are through with them.",
)  # fmt: skip
@click.option("--cell", "patterns", multiple=True, help="Pattern of cells, such as 'ctr(*)' or sm4-ce.")
@click.option("--lane", "lanes", multiple=True, help="Lane to run in (default: the gate's).")
@click.option("--jobs", type=click.IntRange(1), help="Worker processes (default: one a core).")
@click.option(
    "--impls", "impls", multiple=True, type=click.Path(path_type=Path), help="Folder of further implementations."
)
def alarms_command(
    seeds: int,
    first: int,
    share: int,
    together: int,
    patterns: tuple[str, ...],
    lanes: tuple[str, ...],
    jobs: int | None,
    impls: tuple[Path, ...],
) -> None:
    """Run all cells with many seeds and small counts: whatever is not green without a cause is a false alarm."""
    from crosslane.alarms.seeds import accepted_lines, run_seeds  # noqa: PLC0415 - numpy and the engine are for those that need them
    from crosslane.plan import Counts, Selection  # noqa: PLC0415
    from crosslane.registry import load_registry  # noqa: PLC0415

    begun = time.monotonic()
    sentences = [f"false alarm {number}" for number in range(first, first + seeds)]
    selection, counts = Selection(patterns, lanes), Counts().shared(share)
    registry, folders = load_registry(data_root(), impls), tuple(str(folder) for folder in impls)
    outcomes = []
    for outcome in run_seeds(
        registry, selection, sentences, counts, together=together, num_workers=jobs, impls=folders
    ):
        for line in outcome.lines(folders):
            click.echo(line)
        outcomes.append(replace(outcome, alarms=()))
    for line in accepted_lines(outcomes):
        click.echo(line)
    status = max(outcome.status for outcome in outcomes)
    alarms = sum(outcome.status != 0 for outcome in outcomes)
    click.echo(f"{alarms} of {seeds} seeds were not green, in {time.monotonic() - begun:.0f} s")
    sys.exit(status)
