# SPDX-License-Identifier: Apache-2.0
"""``crosslane report``: results of a run in other formats, and the results of shards as one."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from crosslane.data import data_root, shown
from crosslane.errors import BadInput
from crosslane.fetched import held_sysroots
from crosslane.findings.cli import findings_option
from crosslane.formats import places_of
from crosslane.html.cli import page_options
from crosslane.job import plainly
from crosslane.outputs import Outputs, output_options
from crosslane.registry import load_registry
from crosslane.report import print_report
from crosslane.resultfile import read_json
from crosslane.shards import merge_results

__all__ = ["report_command"]

_WIDTH = 140


class _ReportGroup(click.Group):
    """Takes a file for the first word where that is no command: ``crosslane report FILE``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command before the file."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group("report", cls=_ReportGroup)
def report_command() -> None:
    """Print results that `--json` wrote, write them in other formats, or merge those of shards.

    `crosslane report FILE [OPTION]...` is `crosslane report show FILE [OPTION]...`.
    """


@report_command.command("show")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--impls", "impls", multiple=True, type=click.Path(path_type=Path), help="Folder of further implementations."
)
@findings_option
@output_options
@page_options
def show(*, file: Path, impls: tuple[Path, ...], outputs: Outputs, **_: Path) -> None:
    """Print a run's results, or write them in other formats."""
    result = read_json(file)
    held = click.get_current_context().with_resource(held_sysroots())
    outputs = replace(outputs, places=lambda: places_of(load_registry(data_root(), impls, sysroots=held), Path.cwd()))
    outputs.check(file)
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    if not (outputs.files or outputs.summary or outputs.matrix):
        print_report(result, console, impls=tuple(map(str, impls)))
    outputs.write(result, say=plainly(console))


@report_command.command("merge")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "output", type=click.Path(path_type=Path), help="The same as --json.")
@findings_option
@output_options
@page_options
def merge(*, files: tuple[Path, ...], output: Path | None, outputs: Outputs, **_: Path) -> None:
    """Join the results of shards, or of disjoint selections, of one revision and seed."""
    if output is not None and "json" in outputs.files:
        raise BadInput("-o and --json both name the file of the whole: give one of them")
    if output is not None:
        outputs = replace(outputs, files={"json": output, **outputs.files})
    if not outputs.files and not outputs.summary:
        raise BadInput("nothing would be written: name a file for the whole with -o")
    held = click.get_current_context().with_resource(held_sysroots())
    outputs = replace(outputs, places=lambda: places_of(load_registry(data_root(), sysroots=held), Path.cwd()))
    outputs.check(*files)
    twice = [file for number, file in enumerate(files) if file.resolve() in {item.resolve() for item in files[:number]}]
    if twice:
        raise BadInput(f"{shown(twice[0])}: is named twice: name each file once")
    result = merge_results({shown(file): read_json(file) for file in files})
    outputs.write(result, say=click.echo)
    click.echo(
        f"{len(list(result.cells()))} cells of {len(files)} files are in {', '.join(map(str, outputs.files.values()))}"
    )
