# SPDX-License-Identifier: Apache-2.0
"""The commands ``crosslane corpora ...``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import cast

import click

from crosslane.data import shown
from crosslane.errors import BadInput
from crosslane.importers.imported import Imported, NotApplied
from crosslane.importers.installed import FORMATS, Format, import_paths, imported_files

__all__ = ["corpora_command"]

_FEW = 3  # files of one folder and reason that are named one by one without --list


@click.group("corpora")
def corpora_command() -> None:
    """Published vectors: what can be imported."""


@corpora_command.command("import")
@click.option(
    "--from",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path),
    help="File or folder to import (default: the installed test packages and the kernel's testmgr.h).",
)
@click.option("--format", "form", type=click.Choice(FORMATS), help="Format of the files (default: by their names).")
@click.option("--list", "list_all", is_flag=True, help="Name every file that does not apply, whole folders too.")
def import_command(paths: tuple[Path, ...], form: str | None, list_all: bool) -> None:
    """Import vectors: say for each file how many there are, and by name and reason what does not apply."""
    if form is not None and not paths:
        raise click.UsageError("--format is for the files that --from names; name some or leave it out")
    found = import_paths(paths, cast("Format | None", form)) if paths else imported_files()
    for line in _report(found, list_all=list_all):
        click.echo(line)
    if paths and not found.num_vectors:
        raise BadInput("no vector was found in what --from names: name other files, or their format with --format")


def _report(found: Imported, *, list_all: bool) -> list[str]:
    lines = [f"{shown(file.path)}: {len(file.vectors)} vectors of {file.algorithm}" for file in found.files]
    lines += _left_out(found.not_applied, list_all=list_all)
    totals = Counter[str]()
    for file in found.files:
        totals[file.algorithm] += len(file.vectors)
    lines += [f"{algorithm}: {count}" for algorithm, count in sorted(totals.items())]
    lines.append(f"{found.num_vectors} vectors in {len({file.path for file in found.files})} files")
    return lines


def _left_out(rows: tuple[NotApplied, ...], *, list_all: bool) -> list[str]:
    """A line for each file; without ``list_all`` one for all files of a folder that share their reason."""
    alike = Counter((row.path.parent, row.reason) for row in rows)
    lines, told = [], set()
    for row in rows:
        group = (row.path.parent, row.reason)
        if list_all or alike[group] <= _FEW:
            amount = f"{row.num_vectors} vectors do" if row.num_vectors else "does"
            lines.append(f"{shown(row.path)}: {amount} not apply: {row.reason}")
        elif group not in told:
            told.add(group)
            lines.append(f"{shown(row.path.parent)}: {alike[group]} files do not apply: {row.reason}")
    return lines
