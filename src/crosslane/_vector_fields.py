# SPDX-License-Identifier: Apache-2.0
"""Strict access to the members of a JSON object: every departure becomes a ``BadInput`` with file and line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from crosslane._json_lines import Node
from crosslane.data import shown
from crosslane.errors import BadInput

__all__ = ["Fields", "bad_line"]

Item = TypeVar("Item")

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")
_NOT_HEX = re.compile(r"[^0-9a-f]")


def bad_line(path: Path, line: int, sentence: str) -> BadInput:
    """The error for ``line`` (from 1) of ``path``."""
    return BadInput(f"{shown(path)}:{line}: {sentence}")


class Fields:
    """One object of a vector file; each method reads one field and checks its type.

    A field that is neither in ``required`` nor in ``optional``, or a required one that is absent, is refused at once.
    """

    def __init__(self, path: Path, node: Node, what: str, required: str, optional: str = "") -> None:
        self.path = path
        self.line = node.line
        self._what = what
        if not isinstance(node.value, dict):
            raise bad_line(path, node.line, f"{what} must be an object in braces, write it as one")
        self._members = node.value
        names = required.split()
        allowed = names + optional.split()
        for name, member in node.value.items():
            if name not in allowed:
                sentence = f"unknown field {name!r} in {what}; allowed are {', '.join(allowed)}; correct or remove it"
                raise bad_line(path, member.line, sentence)
        for name in names:
            if name not in node.value:
                sentence = f"{what} lacks the field {name!r}; needed are {', '.join(names)}; add it"
                raise bad_line(path, node.line, sentence)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def line_of(self, name: str) -> int:
        """The line of the field's value, or of the object where the field is absent."""
        return self._members[name].line if name in self._members else self.line

    def bad(self, name: str, sentence: str) -> BadInput:
        """The error for the field ``name`` of this object."""
        return bad_line(self.path, self.line_of(name), sentence)

    def text(self, name: str) -> str:
        """A string that is not empty."""
        return self._text_of(self._members[name], repr(name))

    def name(self, name: str) -> str:
        """An identifier."""
        value = self.text(name)
        if not _NAME.fullmatch(value):
            raise self.bad(name, f"{name!r} is {value!r}; allowed are a-z, 0-9, '_', '.' and '-'; rename it")
        return value

    def choice(self, name: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        """One of the strings ``allowed``; ``default`` where the field is absent."""
        if default is not None and name not in self:
            return default
        value = self.text(name)
        if value not in allowed:
            raise self.bad(name, f"{name!r} is {value!r}; allowed are {', '.join(allowed)}; use one of them")
        return value

    def count(self, name: str, default: int | None = None, *, least: int = 1) -> int:
        """A whole number of at least ``least``; ``default`` where the field is absent."""
        if default is not None and name not in self:
            return default
        value = self._members[name].value
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            shown = value if isinstance(value, int) else type(value).__name__
            raise self.bad(name, f"{name!r} is {shown}; allowed is a whole number from {least} on; correct it")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings that are not empty; empty where the field is absent."""
        if name not in self:
            return ()
        return tuple(self._text_of(node, f"an item of {name!r}") for node in self._list(name, empty=True))

    def hex(self, name: str) -> bytes:
        """Bytes as hex digits, in one string or a list of strings; empty where the field is absent."""
        if name not in self:
            return b""
        node = self._members[name]
        if isinstance(node.value, list):
            return b"".join(self._hex_of(part, name, empty=False) for part in self._list(name))
        return self._hex_of(node, name, empty=True)

    def items(self, name: str, read: Callable[[Node], Item]) -> tuple[Item, ...]:
        """A list of at least one item, each read by ``read``."""
        return tuple(read(node) for node in self._list(name))

    def _list(self, name: str, *, empty: bool = False) -> list[Node]:
        value = self._members[name].value
        if not isinstance(value, list) or not (value or empty):
            least = "" if empty else " of at least one item"
            raise self.bad(name, f"{name!r} of {self._what} must be a list{least}, write it as one")
        return value

    def _text_of(self, node: Node, what: str) -> str:
        if not isinstance(node.value, str) or not node.value:
            raise bad_line(self.path, node.line, f"{what} must be a string that is not empty, write one")
        return node.value

    def _hex_of(self, node: Node, name: str, *, empty: bool) -> bytes:
        value = node.value
        if not isinstance(value, str) or not (value or empty):
            sentence = f"{name!r} must be a string of hex digits or a list of such strings, none empty; write it so"
            raise bad_line(self.path, node.line, sentence)
        wrong = _NOT_HEX.search(value)
        if wrong is not None:
            sentence = f"{name!r} has {wrong.group()!r} as character {wrong.start() + 1}; allowed are 0-9 and a-f"
            raise bad_line(self.path, node.line, f"{sentence}; correct it")
        if len(value) % 2:
            sentence = f"{name!r} has {len(value)} hex digits; allowed is an even number, two for each byte; correct it"
            raise bad_line(self.path, node.line, sentence)
        return bytes.fromhex(value)
