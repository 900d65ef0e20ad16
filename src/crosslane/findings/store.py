# SPDX-License-Identifier: Apache-2.0
"""The folder of findings: ``<id>/{finding.toml, case.json, repro.c, harness/}``, one folder a finding.

A finding appears by one rename and changes under a lock, so that runs side by side may write, and a run that is ended
leaves what was there before. Reading is strict: a folder that was edited or cut off is said, never guessed at.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from crosslane.data import read_files, shown
from crosslane.errors import BadInput, CrosslaneError, HarnessFault
from crosslane.findings.case import Case
from crosslane.findings.formats import case_from_json, case_to_json
from crosslane.findings.record import Record, read_record, record_text
from crosslane.names import nearest

__all__ = ["UPSTREAM", "Kept", "Store"]

_RECORD, _CASE, _REPRO = "finding.toml", "case.json", "repro.c"
_HARNESS = "harness"
TRIAGE = ("triage.md", "triage.svg")
UPSTREAM = ("upstream.md", "upstream.c", "upstream.cc", "upstream.cpp")
ATTACHED = (*TRIAGE, *UPSTREAM)
"""What may lie in a finding's folder beside what the store writes itself."""
_LOCK = ".lock"
_NEW, _OLD = ".new-", ".old-"


@dataclass(frozen=True)
class Kept:
    """A finding with its case, sealed as it runs, its reproducer's text, and the files that this is compiled with."""

    record: Record
    case: Case
    repro: str
    harness: tuple[tuple[str, str], ...] = ()

    def fitting(self) -> Kept:
        """The same with the digests that belong to the case and to the reproducer."""
        texts = (case_to_json(self.case), "".join([self.repro, *(text for _, text in self.harness)]))
        case, repro = (hashlib.sha256(text.encode()).hexdigest() for text in texts)
        return replace(self, record=replace(self.record, case_sha256=case, repro_sha256=repro))


class Store:
    """The findings in one folder, which need not exist before something is written."""

    def __init__(self, folder: Path) -> None:
        """Nothing is read or written yet."""
        self.folder = folder

    def ids(self) -> list[str]:
        """Ids of all findings, sorted."""
        try:
            names = sorted(entry.name for entry in self.folder.iterdir() if entry.is_dir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BadInput(
                f"{shown(self.folder)}: cannot be read as the folder of findings ({error.strerror}): name another with "
                "--findings"
            ) from None
        return [name for name in names if not name.startswith(".")]

    def resolve(self, text: str) -> str:
        """The id that ``text`` is, or is the beginning of; raises BadInput with the nearest ones."""
        ids = self.ids()
        fitting = [name for name in ids if name.startswith(text)] if len(text) >= 4 else []
        if text in ids or len(fitting) == 1:
            return text if text in ids else fitting[0]
        where = shown(self.folder)
        if fitting:
            raise BadInput(f"{text!r} begins several findings of {where}: {', '.join(fitting)}; give one more letter")
        close = nearest(text, ids) or ids[:5]
        cure = f"nearest are {', '.join(close)}; `crosslane findings list` prints all"
        if not close:
            cure = "there are none; run `crosslane check`, or name another folder of findings with --findings"
        raise BadInput(f"there is no finding {text!r} in {where}; {cure}")

    def read(self, name: str) -> Kept:
        """Read a finding by its whole id; raises BadInput in one sentence where its folder is damaged."""
        with self._locked(shared=True):
            return self._read(name)

    def _read(self, name: str) -> Kept:
        place = self.folder / name
        record = _record(place / _RECORD)
        files = [place / _CASE, place / _REPRO, *sorted((place / _HARNESS).glob("*"))]
        texts = []
        for data, file in zip(read_files(files), files, strict=True):
            try:
                texts.append(data.decode())
            except UnicodeDecodeError:
                raise _damaged(file, "is not UTF-8") from None
        if record.id != name:
            raise _damaged(place / _RECORD, f"has the key of finding {record.id}, not of {name}")
        if hashlib.sha256(texts[0].encode()).hexdigest() != record.case_sha256:
            raise _damaged(place / _CASE, f"is not the case that {_RECORD} gives the digest of")
        if hashlib.sha256("".join(texts[1:]).encode()).hexdigest() != record.repro_sha256:
            raise _damaged(place / _REPRO, f"is with {_HARNESS} not the program that {_RECORD} gives the digest of")
        harness = tuple((file.name, text) for file, text in zip(files[2:], texts[2:], strict=True))
        return Kept(record, case_from_json(texts[0], shown(place / _CASE)), texts[1], harness)

    def read_all(self) -> tuple[list[Kept], list[CrosslaneError]]:
        """All findings that can be read, and what is wrong with the others."""
        kept: list[Kept] = []
        wrong: list[CrosslaneError] = []
        for name in self.ids():
            try:
                kept.append(self.read(name))
            except CrosslaneError as error:
                wrong.append(error)
        return kept, wrong

    def put(self, new: Kept) -> Kept:
        """Keep a sighting: a new finding, or one more of a known one. Returns what is kept now.

        A known finding keeps its case as long as that departs. Raises BadInput where the known folder is damaged and
        HarnessFault where nothing can be written.
        """
        new = new.fitting()
        with self._locked(shared=False):
            if not (self.folder / new.record.id).exists():
                self._replace(new)
                return new
            old = self._read(new.record.id)
            merged = _merged(old, new)
            if merged != old:
                self._replace(merged)
            return merged

    def attach(self, name: str, texts: Mapping[str, str], names: Sequence[str] = TRIAGE) -> Path:
        """Put files into a finding's folder in place of all of these ``names`` that were there; returns the folder."""
        with self._locked(shared=False):
            kept = self._read(name)
            others = {file: text for file, text in self._attached(kept).items() if file not in names}
            self._replace(kept, {**others, **{file: texts[file] for file in names if file in texts}})
        return self.folder / name

    def attached(self, name: str) -> dict[str, str]:
        """What is attached to a finding, by the name of the file; raises BadInput where its folder is damaged."""
        with self._locked(shared=True):
            return self._attached(self._read(name))

    def update(self, name: str, **changes: object) -> Record:
        """Change fields of a finding's record."""
        with self._locked(shared=False):
            old = self._read(name)
            new = replace(old, record=replace(old.record, **changes))  # type: ignore[arg-type]
            if new != old:
                self._replace(new)
            return new.record

    def _attached(self, kept: Kept) -> dict[str, str]:
        """What is attached to a finding, as long as its case is the one that it is about."""
        place = self.folder / kept.record.id
        if not place.exists() or _record(place / _RECORD).case_sha256 != kept.record.case_sha256:
            return {}
        found = [place / name for name in ATTACHED if (place / name).is_file()]
        return {path.name: path.read_text(encoding="utf-8", errors="replace") for path in found}

    def _replace(self, kept: Kept, attached: Mapping[str, str] | None = None) -> None:
        """Put a whole folder in place of another, or of none; what is attached stays unless it is given."""
        place = self.folder / kept.record.id
        more = self._attached(kept) if attached is None else attached
        old = self.folder / f"{_OLD}{kept.record.id}"
        with self._explained():
            made = Path(tempfile.mkdtemp(prefix=_NEW, dir=self.folder))
            try:
                made.chmod(0o755)
                if kept.harness:
                    (made / _HARNESS).mkdir()
                for name, text in (
                    *((f"{_HARNESS}/{name}", text) for name, text in kept.harness), (_CASE, case_to_json(kept.case)),
                    (_REPRO, kept.repro), (_RECORD, record_text(kept.record)), *more.items(),
                ):  # fmt: skip
                    with (made / name).open("w", encoding="utf-8") as file:
                        file.write(text)
                        file.flush()
                        os.fsync(file.fileno())
                if place.exists():
                    place.rename(old)
                made.rename(place)
            except OSError:
                shutil.rmtree(made, ignore_errors=True)
                if old.exists() and not place.exists():
                    old.rename(place)
                raise
            shutil.rmtree(old, ignore_errors=True)

    @contextmanager
    def _locked(self, *, shared: bool) -> Iterator[None]:
        """Hold the folder: readers together, a writer alone."""
        if shared and not self.folder.is_dir():
            yield
            return
        with self._explained(writing=not shared):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                descriptor = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                if not shared or error.errno not in (errno.EROFS, errno.EACCES):
                    raise
                descriptor = os.open(self.folder, os.O_RDONLY)  # a folder that cannot be written can be read
            fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        try:
            if not shared:
                self._tidy()
            yield
        finally:
            os.close(descriptor)

    def _tidy(self) -> None:
        """Take back, or away, what a writer left that was ended between two renames."""
        for entry in list(self.folder.glob(f"{_OLD}*")):
            place = self.folder / entry.name.removeprefix(_OLD)
            if place.exists():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.rename(place)
        for entry in list(self.folder.glob(f"{_NEW}*")):
            shutil.rmtree(entry, ignore_errors=True)

    @contextmanager
    def _explained(self, *, writing: bool = True) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            cure = "free some space" if full else "make it writable" if writing else "make it readable"
            raise HarnessFault(
                f"{shown(self.folder)}: the findings cannot be {'written' if writing else 'read'} ({error.strerror}): "
                f"{cure}, or name another folder with --findings"
            ) from None


def _record(path: Path) -> Record:
    """Read a record; of what is wrong with it the place is said, but not how to edit it: the suite alone writes it."""
    read_files([path])
    try:
        return read_record(path)
    except BadInput as error:
        raise _damaged(path, str(error).removeprefix(f"{shown(path)}: ").partition("; ")[0]) from None


def _damaged(path: Path, what: str) -> BadInput:
    return BadInput(
        f"{shown(path)}: {what}, so it was edited or cut off; restore it, or remove the folder and let "
        "`crosslane check` find it again"
    )


def _merged(old: Kept, new: Kept) -> Kept:
    """A known finding seen again."""
    before, now = old.record, new.record
    cells = tuple(sorted({*before.cells, *now.cells}))
    impls = tuple(sorted({*before.impls, *now.impls}))
    gone = before.state in ("fixed", "flaky") and now.state == "open"
    base = new if gone else old
    state = "open" if gone else before.state
    record = replace(
        base.record,
        state=state,
        cells=cells,
        impls=impls,
        first_revision=before.first_revision,
        last_revision=now.last_revision,
        fixed_revision="" if gone else before.fixed_revision,
    )
    return Kept(record, base.case, base.repro, base.harness)
