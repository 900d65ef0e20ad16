# SPDX-License-Identifier: Apache-2.0
"""``crosslane triage`` and ``crosslane bisect``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crosslane.data import data_root, shown
from crosslane.errors import BadInput
from crosslane.fetched import held_sysroots
from crosslane.findings.cli import findings_option
from crosslane.registry import load_registry

if TYPE_CHECKING:
    from crosslane.findings.store import Kept, Store
    from crosslane.model import Registry

__all__ = ["bisect_command", "triage_command"]


def _kept(name: str, folder: Path, impls: tuple[Path, ...]) -> tuple[Store, Kept, Registry]:
    """A finding with the registry that has its subject; raises BadInput where there is no such finding."""
    from crosslane.findings.store import Store  # noqa: PLC0415 - numpy and the engine are for those that need them

    store = Store(folder)
    kept = store.read(store.resolve(name))
    known = tuple(Path(item) for item in kept.record.impls if Path(item).is_dir())
    sysroots = click.get_current_context().with_resource(held_sysroots())
    return store, kept, load_registry(data_root(), impls or known, sysroots=sysroots)


@click.command("triage")
@click.argument("name", metavar="[ID]", required=False)
@click.option("--lane", "lanes", multiple=True, help="Lane to probe it in (default: one that it was seen in).")
@click.option("--impls", multiple=True, type=click.Path(path_type=Path), help="Folder of further implementations.")
@click.option("--planted", is_flag=True, help="Triage the planted faults instead, and hold each class to what it is.")
@click.option("--fault", "patterns", multiple=True, metavar="PATTERN", help="With --planted: faults by name.")
@click.option("--jobs", type=click.IntRange(1), help="With --planted: faults side by side (default: one a core).")
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="With --planted: write all there."
)
@findings_option
def triage_command(
    name: str | None,
    lanes: tuple[str, ...],
    impls: tuple[Path, ...],
    planted: bool,
    patterns: tuple[str, ...],
    jobs: int | None,
    json_file: Path | None,
    folder: Path,
) -> None:
    """Explain a finding: where it departs, what class of bug that is, who departs alike. Writes triage.md into it."""
    if planted == (name is not None):
        raise BadInput("triage takes the id of a finding, or --planted: give one of them")
    if not planted and (patterns or jobs or json_file):
        raise BadInput("--fault, --jobs and --json go with --planted: add it, or leave them out")
    if planted:
        from crosslane.triage.measuring import measure_planted  # noqa: PLC0415

        sys.exit(measure_planted(load_registry(data_root()), patterns, lanes, jobs=jobs, json_file=json_file))
    from crosslane.triage.explain import explain  # noqa: PLC0415
    from crosslane.triage.picture import grid_of, svg  # noqa: PLC0415
    from crosslane.triage.report import PICTURE, alone_text, markdown  # noqa: PLC0415

    store, kept, registry = _kept(name or "", folder, impls)
    found = explain(registry, kept, lanes, say=lambda text: click.echo(f"  {text}"))
    grid = grid_of(found.seen)
    texts = {"triage.md": markdown(found, picture=grid is not None)}
    if grid is not None:
        texts[PICTURE] = svg(grid)
    where = store.attach(kept.record.id, texts)
    click.echo(f"{found.named.name}: {found.named.sentence}")
    click.echo(alone_text(found.ran))
    if found.features is not None:
        click.echo(f"CPU features that it needs: {', '.join(found.features.needed) or 'none'}")
    click.echo(f"written to {shown(where)}/: {', '.join(texts)} ({found.took_s:.1f} s)")


@click.command("bisect")
@click.argument("name", metavar="ID")
@click.option("--repo", required=True, type=click.Path(path_type=Path), help="The git repository of the subject.")
@click.option("--build", "build", required=True, metavar="CMD", help="What builds a revision, run in its checkout.")
@click.option("--good", required=True, metavar="REVISION", help="A revision that agrees.")
@click.option("--bad", default="HEAD", show_default=True, metavar="REVISION", help="A revision that departs.")
@click.option("--lane", "lanes", multiple=True, help="Lane to run in (default: one that it was seen in).")
@click.option("--repeat", default=5, show_default=True, type=click.IntRange(1, 1000), help="Runs of a revision.")
@click.option("--subject", type=click.Path(path_type=Path), help="Folder of the implementation within the repository.")
@click.option(
    "--library",
    default="",
    metavar="PROVIDER:FOLDER[:INCLUDE]",
    help="Of a library: its provider, and where within the repository a build leaves it.",
)
@findings_option
def bisect_command(  # noqa: PLR0913, PLR0917 - one parameter an option; click passes them by name
    name: str,
    repo: Path,
    build: str,
    good: str,
    bad: str,
    lanes: tuple[str, ...],
    repeat: int,
    subject: Path | None,
    library: str,
    folder: Path,
) -> None:
    """Find the commit since which a finding departs, in the history of its subject."""
    from crosslane.triage.bisecting import Search, bisect  # noqa: PLC0415

    _, kept, _ = _kept(name, folder, ())
    search = Search(
        repo=repo, build=build, good=good, bad=bad, lanes=lanes, repeat=repeat, subject=subject, library=library
    )
    for line in bisect(kept, search, folder):
        click.echo(line)
