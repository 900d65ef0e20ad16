# SPDX-License-Identifier: Apache-2.0
"""JSON (RFC 8259) read into nodes that know the line they start on, so that an error can name it.

A subset: objects, arrays, strings, whole numbers and booleans. A key that comes twice in an object is an error.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from pathlib import Path

from crosslane.data import shown
from crosslane.errors import BadInput

__all__ = ["Node", "read_json"]

_BLANK = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^\s,:{}\[\]\"]+")
_WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_STRINGS = JSONDecoder()
_MAX_DEPTH = 32


@dataclass(frozen=True)
class Node:
    """A JSON value and the line (from 1) on which it starts; members of an object keep the order of the file."""

    line: int
    value: dict[str, Node] | list[Node] | str | int | bool


def read_json(path: Path) -> Node:
    """Reads the file ``path``; ``BadInput`` names file and line of the first departure from the subset."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise BadInput(f"{shown(path)}: cannot be read ({error.strerror}); make it readable") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{shown(path)}: byte {error.start} is not UTF-8; save the file as UTF-8") from error
    reader = _Reader(path, text)
    node = reader.value(0)
    if reader.peek():
        raise reader.bad("there is text after the end of the JSON value; only blanks may follow, remove it")
    return node


class _Reader:
    """A cursor over the text of one file."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text
        self._at = 0
        self._line_ends = [match.start() for match in re.finditer("\n", text)]

    def line(self) -> int:
        """The line of the cursor, from 1."""
        return bisect_left(self._line_ends, self._at) + 1

    def bad(self, sentence: str) -> BadInput:
        """The error for the place of the cursor."""
        return BadInput(f"{shown(self._path)}:{self.line()}: {sentence}")

    def peek(self) -> str:
        """Skips blanks and shows the next character, empty at the end of the file."""
        match = _BLANK.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._text[self._at : self._at + 1]

    def value(self, depth: int) -> Node:
        """Reads one value that lies within ``depth`` others."""
        first = self.peek()
        line = self.line()
        if depth > _MAX_DEPTH:
            raise self.bad(f"values are nested deeper than the {_MAX_DEPTH} levels allowed, flatten them")
        if first == "{":
            return Node(line, self._object(depth))
        if first == "[":
            return Node(line, self._array(depth))
        if first == '"':
            return Node(line, self._string())
        return Node(line, self._scalar())

    def _object(self, depth: int) -> dict[str, Node]:
        members: dict[str, Node] = {}
        self._at += 1
        if self.peek() == "}":
            self._at += 1
            return members
        while True:
            if self.peek() != '"':
                raise self.bad(f"{self._found()} stands where a key in double quotes must stand, write one")
            start = self._at
            key = self._string()
            if key in members:
                self._at = start
                raise self.bad(f"the key {key!r} comes twice in one object; once is allowed, remove one")
            self._expect(":")
            members[key] = self.value(depth + 1)
            if self._expect(",}") == "}":
                return members

    def _array(self, depth: int) -> list[Node]:
        items: list[Node] = []
        self._at += 1
        if self.peek() == "]":
            self._at += 1
            return items
        while True:
            items.append(self.value(depth + 1))
            if self._expect(",]") == "]":
                return items

    def _expect(self, allowed: str) -> str:
        found = self.peek()
        if not found or found not in allowed:
            names = " or ".join(repr(character) for character in allowed)
            raise self.bad(f"{self._found()} stands where {names} must stand, correct it")
        self._at += 1
        return found

    def _found(self) -> str:
        character = self._text[self._at : self._at + 1]
        return repr(character) if character else "the end of the file"

    def _string(self) -> str:
        try:
            text, end = _STRINGS.raw_decode(self._text, self._at)
        except JSONDecodeError as error:
            self._at = min(error.pos, len(self._text))
            reason = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
            raise self.bad(f"the string here is no JSON string ({reason}), correct it") from error
        self._at = end
        return str(text)

    def _scalar(self) -> int | bool:
        match = _SCALAR.match(self._text, self._at)
        if match is None:
            raise self.bad(f"{self._found()} stands where a value must stand, write one")
        word = match.group()
        if word in ("true", "false"):
            self._at = match.end()
            return word == "true"
        if not _WHOLE_NUMBER.fullmatch(word):
            allowed = "a string, a whole number of at most 18 digits, true, false, an object or an array"
            raise self.bad(f"the value {word[:40]!r} is not allowed here; allowed is {allowed}")
        self._at = match.end()
        return int(word)
