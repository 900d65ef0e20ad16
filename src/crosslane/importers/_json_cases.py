# SPDX-License-Identifier: Apache-2.0
"""Strict access to the objects of foreign JSON: ``Fields`` with hex digits of either case and with empty texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crosslane._json_lines import Node
from crosslane._vector_fields import Fields, bad_line
from crosslane.importers.imported import hex_bytes

__all__ = ["Case", "ForeignFields"]


class ForeignFields(Fields):
    """One object of a foreign file."""

    def plain(self, name: str) -> str:
        """A string that may be empty."""
        value = self._members[name].value
        if not isinstance(value, str):
            raise self.bad(name, f"{name!r} is {type(value).__name__}; allowed is a string, write it in quotes")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """A truth value; ``default`` where the field is absent."""
        if name not in self:
            return default
        value = self._members[name].value
        if not isinstance(value, bool):
            raise self.bad(name, f"{name!r} is {value!r}; allowed are true and false, correct it")
        return value

    def any_hex(self, name: str) -> bytes:
        """Bytes as hex digits of either case."""
        return hex_bytes(self.path, self.line_of(name), name, self.plain(name))

    def nodes(self, name: str) -> list[Node]:
        """The items of a list."""
        return list(self.items(name, lambda node: node))


class Case:
    """One test whose members come from one object or from two: the question and the answer to it."""

    def __init__(self, path: Path, parts: Sequence[ForeignFields]) -> None:
        self.path = path
        self.line = parts[0].line
        self._parts = parts

    def __contains__(self, name: str) -> bool:
        return any(name in part for part in self._parts)

    def part(self, name: str) -> ForeignFields:
        """The object that has the field, the answer before the question; ``BadInput`` where neither has."""
        for part in reversed(self._parts):
            if name in part:
                return part
        raise bad_line(self.path, self.line, f"the test lacks the field {name!r}; restore it")

    def hex(self, name: str) -> bytes:
        """The field's bytes."""
        return self.part(name).any_hex(name)

    def hex_or_none(self, name: str) -> bytes:
        """The field's bytes; none where it is absent."""
        return self.hex(name) if name in self else b""

    def sized(self, name: str, length: int) -> bytes:
        """The field's bytes, which must be ``length``."""
        data = self.hex(name)
        if len(data) != length:
            sentence = f"{name!r} has {len(data)} bytes; its group says {length}, correct one of the two"
            raise self.part(name).bad(name, sentence)
        return data
