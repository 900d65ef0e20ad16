# SPDX-License-Identifier: Apache-2.0
"""The commands ``crosslane corpora merge|minimise|stats|verify`` and ``crosslane findings regress``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from crosslane.data import data_root, shown
from crosslane.errors import BadInput
from crosslane.findings.cli import findings_command, findings_option

if TYPE_CHECKING:
    from crosslane.findings.case import Case
    from crosslane.model import Registry

__all__ = ["add_corpora_tools"]

F = TypeVar("F", bound=Callable[..., Any])

_SOURCES = click.argument(
    "sources", metavar="FROM...", nargs=-1, required=True, type=click.Path(path_type=Path, exists=False)
)
_INTO = click.argument("into", metavar="INTO", type=click.Path(path_type=Path))
_CORPORA = click.argument("corpora", metavar="[CORPUS]...", nargs=-1, type=click.Path(path_type=Path))
_IMPLS = click.option(
    "--impls", "impls", multiple=True, type=click.Path(path_type=Path), help="Folder of further implementations."
)


DecoderOf = Callable[[str, tuple[str, ...], tuple[Path, ...]], "Callable[[bytes, str], Case]"]
"""How inputs of a family of targets are decoded, those of the cells that patterns mean, with folders of ``--impls``."""


def add_corpora_tools(group: click.Group, families: Sequence[str], decoder_of: DecoderOf) -> None:
    """Put the commands into ``crosslane corpora``, and ``regress`` into ``crosslane findings``."""
    for command in (
        _merge_command(families, decoder_of),
        _minimise_command(families, decoder_of),
        stats_command,
        verify_command,
    ):
        group.add_command(command)
    findings_command.add_command(regress_command)


def _registry(impls: Sequence[Path] = ()) -> Registry:
    from crosslane.registry import load_registry  # noqa: PLC0415 - other commands start without it

    return load_registry(data_root(), impls)


def _own(corpora: Sequence[Path]) -> list[Path]:
    """The corpora that are named, or those of the suite."""
    own = [data_root() / "corpora" / name for name in ("seeds", "regressions")]
    return list(corpora) or [folder for folder in own if folder.is_dir()]


def _tell(problems: Sequence[BadInput], what: str) -> None:
    """Print each problem and raise BadInput with how many there are; nothing where there is none."""
    for problem in problems:
        click.echo(str(problem), err=True)
    if problems:
        count = len(problems)
        raise BadInput(f"{count} {'thing is' if count == 1 else 'things are'} wrong as said above: {what}")


def _format_option(function: F) -> F:
    from crosslane.corpora_tools.foreign import FORMATS  # noqa: PLC0415

    return click.option(
        "--format", "form", type=click.Choice(FORMATS), help="What every FROM is (default: by the names in it)."
    )(function)


def _merge_command(families: Sequence[str], decoder_of: DecoderOf) -> click.Command:
    @click.command("merge")
    @_INTO
    @_SOURCES
    @_format_option
    @click.option("--target", type=click.Choice(families), help="Fuzz target whose inputs an engine's folders hold.")
    @click.option("--cell", "patterns", multiple=True, help="With --target: the pattern of cells that it was run with.")
    @_IMPLS
    def merge_command(
        into: Path,
        sources: tuple[Path, ...],
        form: str | None,
        target: str | None,
        patterns: tuple[str, ...],
        impls: tuple[Path, ...],
    ) -> None:
        """Add the cases of corpora, and the inputs of libFuzzer's and AFL++'s folders, to the corpus INTO.

        INTO is a folder, or a file NAME.jsonl. Cases that are there already are not added again; nothing is removed.
        """
        from crosslane.corpora_tools.foreign import decode  # noqa: PLC0415
        from crosslane.corpora_tools.merging import merge  # noqa: PLC0415
        from crosslane.corpora_tools.sound import manifests  # noqa: PLC0415

        if patterns and target is None:
            raise BadInput("--cell says what a target was run with: name the target with --target, or leave it out")
        decoder = decode if target is None else decoder_of(target, patterns, impls)
        found = merge(into, sources, form, manifests(_registry(impls)), decoder)
        click.echo(f"{shown(into)}: {found.num_added} cases added, {found.num_cases} in all")
        _tell(found.problems, "they were left out, all else was merged")

    return merge_command


def _minimise_command(families: Sequence[str], decoder_of: DecoderOf) -> click.Command:
    @click.command("minimise")
    @_INTO
    @_SOURCES
    @click.option("--cell", "patterns", multiple=True, help="Pattern of cells whose code paths count (default: all).")
    @click.option("--lane", "lanes", multiple=True, help="Lane of these cells (default: the native one).")
    @click.option(
        "--target", type=click.Choice(families), help="Fuzz target, run with the same --cell, whose inputs FROM hold."
    )
    @_IMPLS
    def minimise_command(
        into: Path,
        sources: tuple[Path, ...],
        patterns: tuple[str, ...],
        lanes: tuple[str, ...],
        target: str | None,
        impls: tuple[Path, ...],
    ) -> None:
        """Add to INTO the few cases of corpora that take all code paths, by length class, and have all features."""
        from crosslane.corpora_tools.foreign import decode  # noqa: PLC0415
        from crosslane.corpora_tools.merging import gathered  # noqa: PLC0415
        from crosslane.corpora_tools.minimising import minimise  # noqa: PLC0415
        from crosslane.corpora_tools.sound import manifests  # noqa: PLC0415
        from crosslane.corpora_tools.writing import existing, write_cases  # noqa: PLC0415
        from crosslane.plan import Selection, native_lane  # noqa: PLC0415

        registry = _registry(impls)
        before = existing(into)
        decoder = decode if target is None else decoder_of(target, patterns, impls)
        every = gathered(sources, None, manifests(registry), decoder)
        selection = Selection(patterns, lanes or (native_lane(registry).name,))
        found = minimise(registry, every.sorted(), selection)
        added = write_cases(into, found.entries, before=before)
        for text in found.blind:
            click.echo(f"note: {text}")
        click.echo(
            f"{shown(into)}: {len(found.entries)} of {len(every.entries)} cases cover the same {len(found.words)} "
            f"paths and features; {len(added)} of them were added"
        )
        _tell(every.problems, "they were left out, all else was minimised")

    return minimise_command


@click.command("stats")
@_CORPORA
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the number of cases of each feature.")
def stats_command(corpora: tuple[Path, ...], as_json: bool) -> None:
    """Count the cases of corpora by algorithm (default: those of the suite)."""
    from crosslane.corpora_tools.merging import without_unsound  # noqa: PLC0415
    from crosslane.corpora_tools.sound import manifests  # noqa: PLC0415
    from crosslane.corpora_tools.stats import stats_of  # noqa: PLC0415
    from crosslane.corpora_tools.stored import read_corpora  # noqa: PLC0415

    known = manifests(_registry())
    corpus = without_unsound(read_corpora(_own(corpora), deep=True), known)
    rows = stats_of(corpus.sorted(), known)
    if as_json:
        click.echo(json.dumps([row.as_dict() for row in rows], indent=1))
    else:
        for row in rows:
            click.echo(
                f"{row.algorithm}: {row.cases} cases, {row.messages} messages, {row.operations} operations, "
                f"{row.data_len:,} bytes, {len(row.features)} features"
            )
        click.echo(f"{len(corpus.entries)} cases of {len(rows)} algorithms")
    _tell(corpus.problems, "they were not counted")


@click.command("verify")
@_CORPORA
def verify_command(corpora: tuple[Path, ...]) -> None:
    """Read every file of corpora strictly, their folders too (default: those of the suite)."""
    from crosslane.corpora_tools.merging import without_unsound  # noqa: PLC0415
    from crosslane.corpora_tools.sound import manifests  # noqa: PLC0415
    from crosslane.corpora_tools.stored import read_corpora  # noqa: PLC0415

    corpus = without_unsound(read_corpora(_own(corpora), deep=True), manifests(_registry()))
    _tell(corpus.problems, f"{len(corpus.entries)} other cases are sound")
    click.echo(f"{len(corpus.entries)} cases are sound")


@click.command("regress")
@click.argument("names", metavar="ID...", nargs=-1, required=True)
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    help="Corpus to add to (default: corpora/regressions, or regressions in the folder of --impls it was found in).",
)
@findings_option
def regress_command(names: tuple[str, ...], into: Path | None, folder: Path) -> None:
    """Add the cases of findings to the regressions, which every check replays first."""
    from crosslane.corpora_tools.regressions import place_for  # noqa: PLC0415
    from crosslane.corpora_tools.stored import entry_of  # noqa: PLC0415
    from crosslane.corpora_tools.writing import existing, write_cases  # noqa: PLC0415
    from crosslane.findings.store import Store  # noqa: PLC0415

    store = Store(folder)
    for kept in [store.read(store.resolve(name)) for name in names]:
        place = into or place_for(kept, data_root())
        entry = entry_of(kept.case, kept.record.id)
        added = write_cases(place, [entry], before=existing(place))
        told = "is replayed first by every check from now on" if added else "was there already"
        click.echo(f"finding {kept.record.id}: {shown(place)}: regression {entry.name} {told}")
