# SPDX-License-Identifier: Apache-2.0
"""Brings corpora together, the suite's own and those of fuzzing engines, by what cases are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslane.corpora_tools.foreign import Decoder, decode, format_of, read_foreign
from crosslane.corpora_tools.sound import check_sound
from crosslane.corpora_tools.stored import Corpus, read_corpus
from crosslane.corpora_tools.writing import existing, write_cases
from crosslane.data import shown
from crosslane.errors import BadInput
from crosslane.manifest import Manifest

__all__ = ["Merged", "gathered", "merge", "without_unsound"]


@dataclass(frozen=True)
class Merged:
    """What merging came to: cases written, those in the corpus now, and what could not be taken."""

    num_added: int
    num_cases: int
    problems: tuple[BadInput, ...]


def without_unsound(corpus: Corpus, known: dict[str, Manifest]) -> Corpus:
    """The corpus without the cases that the suite could not run; each becomes a problem."""
    sound = Corpus(problems=list(corpus.problems))
    for digest, entry in corpus.entries.items():
        try:
            check_sound(entry.case, known, entry.where)
        except BadInput as error:
            sound.problems.append(error)
        else:
            sound.entries[digest] = entry
    return sound


def gathered(
    sources: Sequence[Path], form: str | None, known: dict[str, Manifest], decoder: Decoder = decode
) -> Corpus:
    """The cases of all sources, each once; ``form`` is that of all of them, told by their names where it is None."""
    every = Corpus()
    for source in sources:
        if not source.exists():
            raise BadInput(f"{shown(source)}: there is no such corpus; correct the name")
        chosen = form or format_of(source)
        found = read_corpus(source) if chosen == "cases" else read_foreign(source, chosen, known, decoder)
        if chosen == "cases":
            found = without_unsound(found, known)
        every.problems += found.problems
        for digest, entry in found.entries.items():
            every.entries.setdefault(digest, entry)
    return every


def merge(
    into: Path, sources: Sequence[Path], form: str | None, known: dict[str, Manifest], decoder: Decoder = decode
) -> Merged:
    """Add the cases of the sources to a corpus. Nothing that is in it is changed, and no source is."""
    before = existing(into)
    every = gathered(sources, form, known, decoder)
    added = write_cases(into, every.entries.values(), before=before)
    return Merged(len(added), len(before.entries) + len(added), tuple(every.problems))
