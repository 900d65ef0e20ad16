# SPDX-License-Identifier: Apache-2.0
"""A corpus on disk: stored cases under their digests, one a file or one a line.

A **loose** case is the file ``<sha256>.json``: the canonical text of ``findings.formats``, whose SHA-256 is the name.
A **packed** corpus is a file ``<name>.jsonl``: each line an object with ``sha256``, the digest of the same canonical
text, and ``case``. Both hold the same (``docs/reference/corpora.md``); reading is strict, and bounded in size.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crosslane.data import shown
from crosslane.errors import BadInput
from crosslane.findings.case import Case
from crosslane.findings.formats import case_from_json, case_to_json

__all__ = [
    "Corpus",
    "Entry",
    "digest_of",
    "entry_of",
    "files_of",
    "line_of",
    "read_bounded",
    "read_corpora",
    "read_corpus",
]

MOST_LOOSE_BYTES = 4 << 20
"""A case of the longest message that is generated, 1 MiB, has 2 MiB as text."""
MOST_PACKED_BYTES = 64 << 20
NAMED = "planted"
"""The folder of regressions whose files are named after planted faults and not after digests."""

_LOOSE = re.compile(r"([0-9a-f]{64})\.json")
_PACKED = re.compile(r"[A-Za-z0-9_.-]+\.jsonl")


@dataclass(frozen=True)
class Entry:
    """A case with its digest (64 hexadecimal digits) and where it was read."""

    digest: str
    case: Case
    where: str = ""

    @property
    def name(self) -> str:
        """What reports call it: enough of the digest to find the file."""
        return self.digest[:12]


@dataclass
class Corpus:
    """What was read: each case once, in the order of the digests, and a sentence for everything that is wrong."""

    entries: dict[str, Entry] = field(default_factory=dict)
    problems: list[BadInput] = field(default_factory=list)

    def sorted(self) -> list[Entry]:
        """The entries in the order of their digests."""
        return [self.entries[digest] for digest in sorted(self.entries)]

    def add(self, entry: Entry) -> None:
        """Take a case in; one that is there already is a problem."""
        if entry.digest in self.entries:
            first = self.entries[entry.digest].where
            self.problems.append(BadInput(f"{entry.where}: is the case that {first} holds too; remove one of them"))
        else:
            self.entries[entry.digest] = entry


def digest_of(case: Case) -> str:
    """The SHA-256 of a case's canonical text."""
    return hashlib.sha256(case_to_json(case).encode()).hexdigest()


def entry_of(case: Case, where: str = "") -> Entry:
    """A case under its digest."""
    return Entry(digest_of(case), case, where)


def line_of(entry: Entry) -> str:
    """A case as one line of a packed corpus, with the newline."""
    fields = {"sha256": entry.digest, "case": json.loads(case_to_json(entry.case))}
    return json.dumps(fields, separators=(",", ":")) + "\n"


def read_bounded(path: Path, most: int) -> bytes:
    """The bytes of a regular file of at most ``most`` bytes; raises BadInput for any other, before it is read."""
    where = shown(path)
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            raise BadInput(f"{where}: is a symbolic link, which a corpus does not follow; put the file itself there")
        if not stat.S_ISREG(found.st_mode):
            raise BadInput(f"{where}: is no regular file; remove it from the corpus")
        if found.st_size > most:
            raise BadInput(f"{where}: has {found.st_size:,} bytes, allowed are {most:,}; remove it from the corpus")
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise BadInput(f"{where}: cannot be read ({error.strerror}); restore it or make it readable") from None
    if len(data) > most:
        raise BadInput(f"{where}: has grown beyond {most:,} bytes while it was read; remove it from the corpus")
    return data


def _text(path: Path, most: int) -> str:
    try:
        return read_bounded(path, most).decode()
    except UnicodeDecodeError:
        raise BadInput(f"{shown(path)}: is not UTF-8, so it is no stored case; restore or remove it") from None


def _read_loose(path: Path) -> Iterator[Entry]:
    text, where = _text(path, MOST_LOOSE_BYTES), shown(path)
    name = path.name.removesuffix(".json")
    is_named = path.parent.name == NAMED
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest != name and not is_named:
        raise BadInput(f"{where}: has the digest {digest}, which is not its name; restore the file, or remove it")
    case = case_from_json(text, where)
    if case_to_json(case) != text and not is_named:
        raise BadInput(f"{where}: is not in the canonical form of a case; write it with `crosslane corpora merge`")
    yield Entry(digest_of(case) if is_named else digest, case, where)


def _read_line(line: str, where: str) -> Entry:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where}: is no JSON ({error}); restore or remove the line") from None
    if not isinstance(fields, dict) or set(fields) != {"sha256", "case"}:
        raise BadInput(f"{where}: has other keys than sha256 and case; restore or remove the line")
    case = case_from_json(json.dumps(fields["case"]), where)
    digest = digest_of(case)
    if fields["sha256"] != digest:
        raise BadInput(f"{where}: sha256 is not {digest}, the digest of its case; restore or remove the line")
    entry = Entry(digest, case, where)
    if line_of(entry) != line:
        raise BadInput(f"{where}: is not in the canonical form of a case; write it with `crosslane corpora merge`")
    return entry


def _read_packed(path: Path, problems: list[BadInput]) -> Iterator[Entry]:
    text = _text(path, MOST_PACKED_BYTES)
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        where = f"{shown(path)}:{number}"
        if not line.endswith("\n"):
            problems.append(BadInput(f"{where}: does not end with a newline, so it was cut off; restore the file"))
            continue
        try:
            yield _read_line(line, where)
        except BadInput as error:
            problems.append(error)


def read_file(path: Path, corpus: Corpus) -> None:
    """Read one file into a corpus; what is wrong becomes a problem of it."""
    try:
        for entry in _entries(path, corpus.problems):
            if path.parent.name == NAMED:
                corpus.entries.setdefault(entry.digest, entry)  # two faults may show in one case
            else:
                corpus.add(entry)
    except BadInput as error:
        corpus.problems.append(error)


def _entries(path: Path, problems: list[BadInput]) -> Iterator[Entry]:
    if _PACKED.fullmatch(path.name):
        return _read_packed(path, problems)
    if _LOOSE.fullmatch(path.name) or (path.suffix == ".json" and path.parent.name == NAMED):
        return _read_loose(path)
    raise BadInput(
        f"{shown(path)}: is no stored case by its name, allowed are <sha256>.json and <name>.jsonl; rename or remove "
        "it, or import it with `crosslane corpora merge`"
    )


def files_of(folder: Path, *, deep: bool = False) -> list[Path]:
    """The files of a corpus in order, hidden ones left out; ``deep``: with those of its subfolders."""
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise BadInput(f"{shown(folder)}: cannot be read as a corpus ({error.strerror}); name another folder") from None
    found: list[Path] = []
    for entry in entries:
        if entry.is_dir() and not entry.is_symlink():
            found += files_of(entry, deep=True) if deep else []
        else:
            found.append(entry)
    return found


def read_corpus(path: Path, *, deep: bool = False) -> Corpus:
    """Read a folder, or one file; raises BadInput where there is none, all else becomes a problem of the corpus."""
    return read_corpora([path], deep=deep)


def read_corpora(paths: Sequence[Path], *, deep: bool = False) -> Corpus:
    """Read some folders and files as one corpus, in which each case stands once."""
    corpus = Corpus()
    for file in _files(paths, deep=deep):
        read_file(file, corpus)
    return corpus


def _files(paths: Iterable[Path], *, deep: bool) -> Iterator[Path]:
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            yield from files_of(path, deep=deep)
        elif path.exists() or path.is_symlink():
            yield path
        else:
            raise BadInput(f"{shown(path)}: there is no such corpus; correct the name")
