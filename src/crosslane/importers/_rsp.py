# SPDX-License-Identifier: Apache-2.0
"""The text of CAVP response files: comments, sections in brackets, settings, and records that start with a count."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from crosslane._vector_fields import bad_line
from crosslane.importers.imported import hex_bytes, read_text

__all__ = ["Layout", "Record", "read_records"]

_SECTIONS = ("ENCRYPT", "DECRYPT")


@dataclass(frozen=True)
class Layout:
    """What may stand in a file, in upper case: names are compared without regard to case.

    ``settings`` are numbers that hold until they change, in brackets or on a line; ``fields`` belong to a record, or,
    before the first count after a bracket, to all records that follow; ``words`` stand alone on a line of a record.
    """

    settings: frozenset[str]
    fields: frozenset[str]
    words: frozenset[str] = frozenset()


@dataclass
class Record:
    """One count: its number, first line (from 1), section (or empty), group of settings, settings and fields.

    A field is its line and its text; a word that stands alone has an empty text.
    """

    path: Path
    number: int
    line: int
    section: str
    group: int
    settings: dict[str, int]
    fields: dict[str, tuple[int, str]] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def text(self, name: str) -> str:
        """The field as it stands; ``BadInput`` where the record lacks it."""
        if name not in self.fields:
            raise bad_line(self.path, self.line, f"count {self.number} lacks the field {name!r}; restore it")
        return self.fields[name][1]

    def hex(self, name: str) -> bytes:
        """The field's bytes."""
        line, text = self.fields.get(name) or (self.line, self.text(name))
        return hex_bytes(self.path, line, name, text)

    def whole(self, name: str) -> int:
        """The field as a whole number."""
        return _whole(self.path, self.fields.get(name, (self.line, ""))[0], name, self.text(name))

    def setting(self, name: str) -> int:
        """A setting that holds here."""
        if name not in self.settings:
            raise bad_line(self.path, self.line, f"nothing before count {self.number} sets {name!r}; restore it")
        return self.settings[name]

    def sized(self, name: str, length: int, *, empty_as_zero: bool = False) -> bytes:
        """The field's bytes, which must be ``length``; with ``empty_as_zero`` none are written as one zero byte."""
        data = self.hex(name)
        if empty_as_zero and length == 0 and data == b"\0":
            return b""
        if len(data) != length:
            sentence = f"{name!r} has {len(data)} bytes; the file says {length}, correct one of the two"
            raise bad_line(self.path, self.fields[name][0], sentence)
        return data


def read_records(path: Path, layout: Layout) -> list[Record]:
    """All records of a file; ``BadInput`` names the line of an unknown or doubled field and of a wrong count."""
    reader = _Reader(path, layout)
    for number, line in enumerate(read_text(path).split("\n"), 1):
        text = line.strip()
        if not text or text[0] == "#":
            continue
        if text[0] == "[":
            reader.bracket(number, text)
        else:
            reader.field(number, text)
    return reader.records


class _Reader:
    """The state between two lines of a file."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self._path = path
        self._layout = layout
        self._names: dict[str, str] = {}  # names as they stand, to names as the layout has them
        self._section = ""
        self._group = 0
        self._settings: dict[str, int] = {}
        self._shared: dict[str, tuple[int, str]] = {}
        self._record: Record | None = None
        self._next: int | None = None
        self.records: list[Record] = []

    def bracket(self, line: int, text: str) -> None:
        inner = text[1:-1].strip()
        if not text.endswith("]") or not inner:
            raise bad_line(self._path, line, f"{text!r} is no text in brackets; write it as [...]")
        if self._record is not None:
            self._group += 1
        self._record = None
        if inner.upper() in _SECTIONS:
            self._section, self._next = inner.upper(), None
            return
        for part in inner.split(","):
            name, equals, value = part.partition("=")
            if not equals or name.strip().upper() not in self._layout.settings:
                allowed = ", ".join((*_SECTIONS, *sorted(self._layout.settings)))
                sentence = f"unknown setting {part.strip()!r} in brackets; allowed are {allowed}; correct or remove it"
                raise bad_line(self._path, line, sentence)
            self._set(line, name.strip().upper(), value.strip())

    def field(self, line: int, text: str) -> None:
        raw, equals, value = text.partition("=")
        name = self._names.get(raw) or self._names.setdefault(raw, raw.strip().upper())
        record = self._record
        if record is not None and name in (self._layout.fields if equals else self._layout.words):
            before = record.fields.get(name)
            if before is not None and before[0] > record.line:
                sentence = f"{name!r} stands twice under count {record.number}; allowed is once, remove one"
                raise bad_line(self._path, line, sentence)
            record.fields[name] = (line, value.lstrip())
        elif name == "COUNT" and equals:
            self._start(line, value.strip())
        elif record is None and name in self._layout.settings and equals:
            self._set(line, name, value.strip())
        elif record is None and name in self._layout.fields and equals:
            self._shared[name] = (line, value.strip())
        else:
            allowed = ", ".join(("COUNT", *sorted(self._layout.fields | self._layout.words)))
            sentence = f"unknown field {text[:40]!r}; allowed are {allowed}; correct or remove it"
            raise bad_line(self._path, line, sentence)

    def _set(self, line: int, name: str, value: str) -> None:
        self._settings = {**self._settings, name: _whole(self._path, line, name, value)}

    def _start(self, line: int, value: str) -> None:
        number = _whole(self._path, line, "COUNT", value)
        fresh = self._record is None and number in (0, 1)
        if number != self._next and not fresh:
            wanted = "0 or 1" if self._next is None else str(self._next)
            raise bad_line(self._path, line, f"the count is {number}; expected is {wanted}, restore the order")
        self._record = Record(self._path, number, line, self._section, self._group, self._settings, dict(self._shared))
        self._next = number + 1
        self.records.append(self._record)


def _whole(path: Path, line: int, name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit()) or len(value) > 18:
        raise bad_line(path, line, f"{name!r} is {value[:40]!r}; allowed is a whole number, correct it")
    return int(value)
