# SPDX-License-Identifier: Apache-2.0
"""``crosslane findings``: list, show, accept, retest."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from crosslane.data import data_root, shown
from crosslane.describe import session_lines
from crosslane.errors import BadInput, CrosslaneError
from crosslane.fetched import held_sysroots
from crosslane.findings.case import whole_batch
from crosslane.findings.deviations import Deviation, add_deviation, default_file, parse_date
from crosslane.findings.export import testmgr_text, wycheproof_text
from crosslane.findings.formats import case_to_json
from crosslane.findings.record import Record, record_text
from crosslane.findings.replay import retest_all
from crosslane.findings.store import Store
from crosslane.model import Sysroot
from crosslane.registry import load_registry
from crosslane.toolchain import revision_of

__all__ = ["findings_command", "findings_option"]

F = TypeVar("F", bound=Callable[..., Any])


def _sysroots() -> tuple[Sysroot, ...]:
    """What was fetched, held until the command ends."""
    return click.get_current_context().with_resource(held_sysroots())


def findings_option(function: F) -> F:
    """The option that names the folder of findings."""
    return click.option(
        "--findings",
        "folder",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("findings"),
        show_default=True,
        help="Folder of findings.",
    )(function)


def _existing(folder: Path) -> Path:
    """The folder of findings; raises BadInput where one was named that is not there."""
    given = click.get_current_context().get_parameter_source("folder") is ParameterSource.COMMANDLINE
    if given and not folder.is_dir():
        raise BadInput(f"{shown(folder)}: there is no such folder of findings: correct what --findings names")
    return folder


@click.group("findings")
def findings_command() -> None:
    """What runs found: each fault once, with the least case that shows it."""


def _row(record: Record) -> dict[str, Any]:
    key = record.key
    return {
        "id": record.id,
        "state": record.state,
        "implementation": key.implementation,
        "algorithm": key.algorithm,
        "symptom": key.symptom,
        "class": key.fault_class,
        "cells": list(record.cells),
        "rate": record.rate,
        "text": record.text,
    }


@findings_command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@findings_option
def list_command(as_json: bool, folder: Path) -> None:
    """One line for each finding."""
    kept, wrong = Store(_existing(folder)).read_all()
    rows = [_row(item.record) for item in kept]
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    for row in [] if as_json else rows:
        words = (row["id"], row["state"], row["implementation"], row["algorithm"], row["symptom"], row["class"])
        click.echo("  ".join(words))
    for error in wrong[:-1]:
        click.echo(f"crosslane: {error}", err=True)
    if wrong:
        raise wrong[-1]


@findings_command.command("show")
@click.argument("name", metavar="ID")
@click.option(
    "--as",
    "form",
    type=click.Choice(["text", "case", "repro", "wycheproof", "testmgr"]),
    default="text",
    show_default=True,
    help="What to print: everything for people, case.json, repro.c, Wycheproof's JSON, or a vector for the kernel.",
)
@findings_option
def show_command(name: str, form: str, folder: Path) -> None:
    """A finding in full, in one of several forms."""
    store = Store(folder)
    kept = store.read(store.resolve(name))
    if form == "case":
        click.echo(case_to_json(kept.case), nl=False)
    elif form == "repro":
        click.echo(kept.repro, nl=False)
    elif form != "text":
        folders = [Path(item) for item in kept.record.impls if Path(item).is_dir()]
        registry = load_registry(data_root(), folders, sysroots=_sysroots())
        export = wycheproof_text if form == "wycheproof" else testmgr_text
        click.echo(export(registry, kept.record, kept.case), nl=False)
    else:
        batch = whole_batch(kept.case)
        lines = [line for number in range(len(batch)) for line in session_lines(batch, number)]
        click.echo(record_text(kept.record) + "\n".join(lines))


@findings_command.command("accept")
@click.argument("name", metavar="ID")
@click.option("--reason", required=True, help="Why it may stay, in a sentence.")
@click.option("--link", required=True, help="Where that was decided: an address with http.")
@click.option("--review", required=True, metavar="YYYY-MM-DD", help="The day by which somebody looks at it again.")
@click.option("--versions", multiple=True, metavar="PATTERN", help="Versions of a library that it is about (all).")
@click.option("--deviations", "file", type=click.Path(path_type=Path, dir_okay=False), help="The file of deviations.")
@findings_option
def accept_command(
    name: str, reason: str, link: str, review: str, versions: tuple[str, ...], file: Path | None, folder: Path
) -> None:
    """Accept a finding as a deviation: still counted, no longer a failing exit status."""
    store = Store(folder)
    kept = store.read(store.resolve(name))
    if kept.record.state not in ("open", "accepted"):
        raise BadInput(f"finding {kept.record.id} is {kept.record.state}: only one that is open can be accepted")
    day = parse_date(review, "--review")
    if day < dt.datetime.now(tz=dt.UTC).date():
        raise BadInput(f"--review: {day} has passed; give a day to come")
    if len(reason) < 10 or not link.startswith(("http://", "https://")):
        raise BadInput(
            "--reason needs a sentence of ten letters or more, and --link an address with http:// or https://"
        )
    path = file or default_file(data_root())
    add_deviation(path, Deviation(kept.record.key, reason, link, day, versions))
    store.update(kept.record.id, state="accepted")
    click.echo(f"finding {kept.record.id} is accepted until {day}, in {path}")


@findings_command.command("retest")
@click.argument("names", metavar="[ID]...", nargs=-1)
@click.option("--lane", "lanes", multiple=True, help="Lane to run in (default: those that it was seen in).")
@click.option("--impls", multiple=True, type=click.Path(path_type=Path), help="Folder of further implementations.")
@findings_option
def retest_command(names: tuple[str, ...], lanes: tuple[str, ...], impls: tuple[Path, ...], folder: Path) -> None:
    """Run findings again, all without an id: one that departs no more is fixed, one that does at times is flaky."""
    store = Store(_existing(folder))
    ids = [store.resolve(name) for name in names] or store.ids()
    root = data_root()
    folders = list(impls)
    wrong: list[CrosslaneError] = []
    for name in [] if impls else ids:
        try:
            known = store.read(name).record.impls
        except CrosslaneError:
            continue  # said when it is retested
        folders += [Path(item) for item in known if Path(item).is_dir() and Path(item) not in folders]
    departs = False
    for item in retest_all(
        load_registry(root, folders, sysroots=_sysroots()), store, ids, lanes, revision=revision_of(root)
    ):
        if isinstance(item, CrosslaneError):
            wrong.append(item)
            click.echo(f"crosslane: {item}", err=True)
            continue
        departs = departs or item.departed > 0
        click.echo(
            f"{item.record.id}: departs {item.departed} of {item.runs} times: {item.record.state}"
            + (f" at {item.record.fixed_revision or 'an unknown revision'}" if item.record.state == "fixed" else "")
        )
    if wrong:
        sys.exit(max(error.exit_status for error in wrong))
    sys.exit(1 if departs else 0)
