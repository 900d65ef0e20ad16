# SPDX-License-Identifier: Apache-2.0
"""Strict reading of TOML: what is not asked for is an error that says the file, the value and what is allowed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from crosslane.data import shown
from crosslane.errors import BadInput

__all__ = ["Field", "read_fields", "read_toml"]

_WORDS = {"str": "a string", "int": "a whole number", "float": "a number with a point", "bool": "true or false"}


@dataclass(frozen=True, kw_only=True)
class Field:
    """What one key must hold.

    ``many`` asks for a list of ``kind`` without repetitions, at least ``min_num`` of them. ``allowed`` are all legal
    values (empty: any), ``least`` and ``most`` bound a number, ``pattern`` is a regular expression that a whole string
    must fit.
    """

    kind: Literal["str", "int", "float", "bool"]
    many: bool = False
    min_num: int = 0
    allowed: tuple[str | int, ...] = ()
    least: int | None = None
    most: int | None = None
    pattern: str = ""
    optional: bool = False


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a file; raises ``BadInput`` with the parser's words and the line where it is malformed or unreadable."""
    try:
        return tomllib.loads(path.read_bytes().decode())
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{shown(path)}: malformed TOML: {error}; correct that line") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{shown(path)}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except OSError as error:
        raise BadInput(f"{shown(path)}: cannot be read ({error.strerror}); create it or make it readable") from None


def read_fields(
    path: Path, table: Mapping[str, Any], fields: Mapping[str, Field], *, where: str = ""
) -> dict[str, Any]:
    """Check a table against its fields and return its values, lists as tuples.

    ``where`` names a table within the file for messages. Raises ``BadInput`` for an unknown or missing key and for a
    value of the wrong type or beyond what is allowed.
    """
    place = f"{shown(path)}: {where + ': ' if where else ''}"
    for key in table:
        if key not in fields:
            raise BadInput(f"{place}unknown key {key!r}; allowed are {', '.join(fields)}; remove or rename it")
    for key, field in fields.items():
        if key not in table and not field.optional:
            raise BadInput(f"{place}the key {key!r} is missing; add it ({_describe(field)})")
    return {key: _check(f"{place}{key} ", value, fields[key]) for key, value in table.items()}


def _describe(field: Field) -> str:
    text = f"a list, each {_WORDS[field.kind]}" if field.many else _WORDS[field.kind]
    if field.allowed:
        text += f", allowed are {', '.join(map(str, field.allowed))}"
    if field.least is not None:
        text += f", at least {field.least}"
    if field.most is not None:
        text += f", at most {field.most}"
    if field.pattern:
        text += f", of the form {field.pattern}"
    return text


def _check(place: str, value: object, field: Field) -> object:
    if not field.many:
        return _check_one(place, value, field)
    if not isinstance(value, list):
        raise BadInput(f"{place}is {value!r}; it must be {_describe(field)}")
    checked = [_check_one(place, item, field) for item in value]
    if len(set(checked)) != len(checked):
        raise BadInput(f"{place}is {value!r} and names something twice; name each value once")
    if len(checked) < field.min_num:
        raise BadInput(f"{place}is {value!r}; it needs {field.min_num} or more of: {_describe(field)}")
    return tuple(checked)


def _check_one(place: str, value: object, field: Field) -> object:
    kinds: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
    if type(value) is not kinds[field.kind]:
        raise BadInput(f"{place}has {value!r}; it must be {_describe(field)}")
    if field.allowed and value not in field.allowed:
        raise BadInput(f"{place}has {value!r}; allowed are {', '.join(map(str, field.allowed))}")
    if field.least is not None and isinstance(value, int) and value < field.least:
        raise BadInput(f"{place}has {value}; the least allowed is {field.least}")
    if field.most is not None and isinstance(value, int) and value > field.most:
        raise BadInput(f"{place}has {value}; the most allowed is {field.most}")
    if field.pattern and isinstance(value, str) and not re.fullmatch(field.pattern, value):
        raise BadInput(f"{place}has {value!r}; it must be of the form {field.pattern}")
    return value
