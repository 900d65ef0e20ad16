# SPDX-License-Identifier: Apache-2.0
"""Arrays of C structures in a source text, read from their initialisers.

A subset of C (ISO/IEC 9899:2011, 6.7.9): ``static const struct KIND NAME[] = { { .field = value, ... }, ... };``, where
a value is string literals, a sum or product of whole numbers, ``true``, ``false``, ``NULL`` or a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crosslane._vector_fields import bad_line
from crosslane.errors import BadInput

__all__ = ["Name", "Row", "Table", "Value", "find_tables", "read_rows"]

_TABLE = re.compile(r"^static\s+const\s+struct\s+(\w+)\s+(\w+)\s*\[\s*\]\s*=", re.MULTILINE)
_TOKEN = re.compile(
    r'"(?P<string>(?:[^"\\\n]|\\.)*)"|(?P<number>0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]*|(?P<name>[A-Za-z_]\w*)'
    r"|(?P<mark>[{}.,=+*;-])|(?P<blank>[ \t\r\n]+|/\*.*?\*/|//[^\n]*)",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]+)|([0-7]{1,3})|(.))", re.DOTALL)
_SIMPLE = dict(zip("ntrabfv\\'\"?", "\n\t\r\a\b\f\v\\'\"?", strict=True))


@dataclass(frozen=True)
class Name:
    """A name that stands as a value, such as an array defined elsewhere."""

    text: str


Value = bytes | int | Name | None


@dataclass(frozen=True)
class Row:
    """One initialiser: its first line (from 1) and, by field, the line and the value."""

    line: int
    values: dict[str, tuple[int, Value]]


@dataclass(frozen=True)
class Table:
    """An array: the name of its structure, its own name, and the line and offset where its initialiser starts."""

    kind: str
    name: str
    line: int
    start: int


@dataclass(frozen=True)
class _Token:
    line: int
    kind: str
    text: str


def find_tables(text: str) -> list[Table]:
    """All arrays of structures in a text, in their order."""
    tables = []
    line, at = 1, 0
    for match in _TABLE.finditer(text):
        line += text.count("\n", at, match.end())
        at = match.end()
        tables.append(Table(match.group(1), match.group(2), line, at))
    return tables


def read_rows(path: Path, text: str, table: Table) -> list[Row]:
    """The rows of one array; ``BadInput`` names the line of whatever is outside the subset."""
    return _Parser(path, _tokens(path, text, table)).rows()


def _tokens(path: Path, text: str, table: Table) -> Iterator[_Token]:
    """Tokens up to the semicolon that ends the array."""
    line, at = table.line, table.start
    while True:
        match = _TOKEN.match(text, at)
        if match is None:
            found = text[at : at + 20].split("\n", maxsplit=1)[0]
            raise bad_line(path, line, f"{found!r} is outside the C that the importer reads; remove it")
        kind = match.lastgroup or ""
        if kind != "blank":
            yield _Token(line, kind, match.group(kind))
        line += match.group().count("\n")
        at = match.end()


class _Parser:
    """Recursive descent over the tokens of one array."""

    def __init__(self, path: Path, tokens: Iterator[_Token]) -> None:
        self._path = path
        self._tokens = tokens
        self._now = next(tokens)

    def rows(self) -> list[Row]:
        self._take("{")
        rows: list[Row] = []
        while not self._at("}"):
            rows.append(self._row())
            if not self._skip(","):
                break
        self._take("}")
        if not self._at(";"):
            raise self._bad("';'")
        return rows

    def _row(self) -> Row:
        line = self._now.line
        values: dict[str, tuple[int, Value]] = {}
        self._take("{")
        while self._skip("."):
            name = self._now
            if name.kind != "name":
                raise self._bad("the name of a field")
            self._next()
            self._take("=")
            if name.text in values:
                raise bad_line(self._path, name.line, f"{name.text!r} is set twice; allowed is once, remove one")
            values[name.text] = (name.line, self._value())
            if not self._skip(","):
                break
        self._take("}")
        return Row(line, values)

    def _value(self) -> Value:
        token = self._now
        if token.kind == "string":
            parts = []
            while self._now.kind == "string":
                parts.append(self._string(self._now))
                self._next()
            return b"".join(parts)
        if token.kind == "name":
            self._next()
            return {"true": 1, "false": 0, "NULL": None}.get(token.text, Name(token.text))
        return self._sum()

    def _sum(self) -> int:
        """Sums of products; a sign may stand before the first number."""
        total = -self._product() if self._skip("-") else self._product()
        while self._at("+") or self._at("-"):
            sign = 1 if self._skip("+") else -1
            if sign < 0:
                self._take("-")
            total += sign * self._product()
        return total

    def _product(self) -> int:
        result = self._number()
        while self._skip("*"):
            result *= self._number()
        return result

    def _number(self) -> int:
        token = self._now
        if token.kind != "number":
            raise self._bad("a value")
        self._next()
        octal = len(token.text) > 1 and token.text[0] == "0" and token.text[1] not in "xX"
        try:
            return int(token.text, 8 if octal else 0)
        except ValueError:
            raise bad_line(self._path, token.line, f"{token.text!r} is no number in C; correct it") from None

    def _string(self, token: _Token) -> bytes:
        def plain(match: re.Match[str]) -> str:
            digits, octal, simple = match.groups()
            code = int(digits, 16) if digits else int(octal, 8) if octal else -1
            if code > 0xFF or (code < 0 and simple not in _SIMPLE):
                sentence = f"{match.group()!r} is no escape of one byte; allowed are \\x00 to \\xff; correct it"
                raise bad_line(self._path, token.line, sentence)
            return chr(code) if code >= 0 else _SIMPLE[simple]

        return _ESCAPE.sub(plain, token.text).encode("latin-1")

    def _at(self, mark: str) -> bool:
        return self._now.kind == "mark" and self._now.text == mark

    def _skip(self, mark: str) -> bool:
        found = self._at(mark)
        if found:
            self._next()
        return found

    def _take(self, mark: str) -> None:
        if not self._skip(mark):
            raise self._bad(repr(mark))

    def _next(self) -> None:
        self._now = next(self._tokens)

    def _bad(self, wanted: str) -> BadInput:
        return bad_line(self._path, self._now.line, f"{self._now.text[:20]!r} where {wanted} is expected; correct it")
