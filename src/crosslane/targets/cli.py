# SPDX-License-Identifier: Apache-2.0
"""``crosslane targets``: which fuzz targets there are, what their inputs mean, and how those become findings."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from crosslane.data import data_root
from crosslane.describe import session_lines
from crosslane.findings.case import whole_batch
from crosslane.findings.cli import findings_option
from crosslane.findings.run import Findings
from crosslane.plan import native_lane
from crosslane.registry import load_registry
from crosslane.targets.keep import keep_inputs, read_inputs
from crosslane.targets.rows import FAMILIES, Choice, choose
from crosslane.targets.run import open_pair
from crosslane.targets.standalone import build_standalone, read_environment
from crosslane.toolchain import revision_of

__all__ = ["targets_command"]

F = TypeVar("F", bound=Callable[..., Any])


def _cells_options(function: F) -> F:
    function = click.option(
        "--impls", "impls", multiple=True, type=click.Path(path_type=Path), help="Folder of further implementations."
    )(function)
    return click.option("--cell", "patterns", multiple=True, help="The cells that the target ran, as it was told.")(
        function
    )


def _chosen(family: str, patterns: tuple[str, ...], impls: tuple[Path, ...]) -> tuple[Any, Choice]:
    registry = load_registry(data_root(), impls)
    return registry, choose(registry, family, patterns, native_lane(registry))


@click.group("targets")
def targets_command() -> None:
    """Coverage-guided fuzz targets, which are started as programs: python fuzz/targets/oneshot.py."""


@targets_command.command("list")
@_cells_options
def list_command(patterns: tuple[str, ...], impls: tuple[Path, ...]) -> None:
    """The targets, and the cells that each runs."""
    for family in FAMILIES:
        _, choice = _chosen(family, patterns, impls)
        click.echo(f"fuzz/targets/{family}.py: {', '.join(choice.cells)}")


@targets_command.command("build")
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Where programs go: $OUT.")
@click.option(
    "--impls",
    "impls",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Folder of implementations, instead of ours.",
)
def build_command(out: Path, impls: tuple[Path, ...]) -> None:
    """Build targets for an engine that links them, as OSS-Fuzz does: CC, CXX, CFLAGS, CXXFLAGS and
    LIB_FUZZING_ENGINE say how.
    """
    environment = read_environment(os.environ)
    registry = load_registry(data_root(), impls)
    with tempfile.TemporaryDirectory(prefix="crosslane-targets-") as work:
        for file in build_standalone(registry, environment, out, Path(work)):
            click.echo(file)


@targets_command.command("show")
@click.argument("family", type=click.Choice(FAMILIES))
@click.argument("inputs", nargs=-1, required=True, type=click.Path(path_type=Path))
@_cells_options
def show_command(family: str, inputs: tuple[Path, ...], patterns: tuple[str, ...], impls: tuple[Path, ...]) -> None:
    """Print the case that each input means."""
    read = read_inputs(inputs)
    registry, choice = _chosen(family, patterns, impls)
    pair = open_pair(registry, choice, only_decodes=True)
    for file, data in read:
        cell, case = pair.decoded(data)
        click.echo(f"{file}: {cell}")
        for line in session_lines(whole_batch(case), 0):
            click.echo(f"  {line}")


@targets_command.command("keep")
@click.argument("family", type=click.Choice(FAMILIES))
@click.argument("inputs", nargs=-1, required=True, type=click.Path(path_type=Path))
@_cells_options
@findings_option
def keep_command(
    family: str, inputs: tuple[Path, ...], patterns: tuple[str, ...], impls: tuple[Path, ...], folder: Path
) -> None:
    """Run inputs of a target as `check` runs cases, and keep what departs among the findings.

    An input is a file that a target wrote, of a departure or of a crash; of a folder all files are taken.
    """
    read = read_inputs(inputs)
    registry, choice = _chosen(family, patterns, impls)
    findings = Findings.at(folder, registry.root, tuple(map(str, impls)))
    pair = open_pair(registry, choice, only_decodes=True)
    kept = keep_inputs(
        registry,
        pair,
        read,
        findings,
        revision=revision_of(registry.root),
        say=lambda text: click.echo(text, err=True),
    )
    for line in dict.fromkeys(item.text for item in kept):
        click.echo(line)
    sys.exit(any(item.departs for item in kept))
