# SPDX-License-Identifier: Apache-2.0
"""Writing corpora: each file whole or not at all, and never one in place of another that cannot be read."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from crosslane.corpora_tools.stored import Corpus, Entry, line_of, read_corpus
from crosslane.data import shown
from crosslane.errors import BadInput, HarnessFault
from crosslane.findings.formats import case_to_json

__all__ = ["existing", "is_packed", "write_cases"]

_NEW = ".new-"


def is_packed(path: Path) -> bool:
    """Whether a corpus of this name is one file, a case a line."""
    return path.suffix == ".jsonl"


def existing(into: Path) -> Corpus:
    """What a corpus that is about to be written holds already; nothing where it is not there yet.

    Raises BadInput where it is neither a folder nor a packed corpus, or where anything in a packed one cannot be read:
    writing it again would lose that.
    """
    if not into.exists() and not into.is_symlink():
        return Corpus()
    if into.is_dir() is is_packed(into) or into.is_symlink():
        raise BadInput(f"{shown(into)}: is no folder and no file <name>.jsonl; name another corpus to write to")
    found = read_corpus(into)
    if found.problems and is_packed(into):
        raise BadInput(f"{found.problems[0]}; nothing was written, since that would lose what cannot be read")
    return found


def write_cases(into: Path, entries: Iterable[Entry], *, before: Corpus) -> list[Entry]:
    """Add the cases that ``before``, what ``into`` holds, has not; returns those that were written.

    A case is written under another name and renamed, so that a writer that is killed leaves each file whole. Raises
    HarnessFault where nothing can be written; what was written until then stays.
    """
    new = {entry.digest: entry for entry in entries if entry.digest not in before.entries}
    added = [new[digest] for digest in sorted(new)]
    with _explained(into):
        if is_packed(into):
            if added:
                every = [*before.entries.values(), *added]
                text = "".join(line_of(entry) for entry in sorted(every, key=lambda entry: entry.digest))
                into.parent.mkdir(parents=True, exist_ok=True)
                _write_whole(into, text)
            return added
        into.mkdir(parents=True, exist_ok=True)
        for entry in added:
            _write_whole(into / f"{entry.digest}.json", case_to_json(entry.case))
    return added


def _write_whole(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(prefix=_NEW, dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def _explained(into: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        cure = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "make it writable"
        raise HarnessFault(
            f"{shown(into)}: the corpus cannot be written ({error.strerror}): {cure}, or name another one; what was "
            "there is unchanged"
        ) from None
