# SPDX-License-Identifier: Apache-2.0
"""The register ``corpora/SOURCES.toml``: where each file of vectors and each table in the code comes from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslane.data import content_file, shown
from crosslane.errors import BadInput
from crosslane.tomlread import Field, read_fields, read_toml

__all__ = ["Fact", "Origin", "SourceFile", "Sources", "check_sources", "load_sources"]

_TEXT = Field(kind="str", pattern=r"\S.*")
_PATH = r"(?!\.\.?(/|$))[^/\\]+(/(?!\.\.?(/|$))[^/\\]+)*"
_ORIGIN = {
    "document": _TEXT,
    "section": _TEXT,
    "url": Field(kind="str"),
    "carrier": Field(kind="str"),
    "licence": _TEXT,
}
_FILE = {
    "path": Field(kind="str", pattern=_PATH),
    "title": _TEXT,
    **_ORIGIN,
    "verified": _TEXT,
    "sha256": Field(kind="str", pattern="[0-9a-f]{64}"),
}
_FACT = {
    "name": _TEXT,
    "title": _TEXT,
    **_ORIGIN,
    "used_in": Field(kind="str", many=True, min_num=1, pattern=_PATH),
}


@dataclass(frozen=True)
class Origin:
    """Where values were published.

    ``document`` and ``section`` name the original, ``url`` where it is public (else empty), ``carrier`` what the
    values were taken from where that was not the original itself (else empty), ``licence`` on what terms they are
    used: ``facts`` where nothing but values was taken.
    """

    document: str
    section: str
    url: str
    carrier: str
    licence: str


@dataclass(frozen=True)
class SourceFile:
    """A row ``[[file]]``: a file of vectors, its path relative to the folder of the register, its SHA-256 in hex.

    ``verified`` says which independent implementations gave the same answers.
    """

    path: str
    title: str
    origin: Origin
    verified: str
    sha256: str


@dataclass(frozen=True)
class Fact:
    """A row ``[[fact]]``: a table or constant in the code; ``used_in`` are paths relative to the repository."""

    name: str
    title: str
    origin: Origin
    used_in: tuple[str, ...]


@dataclass(frozen=True)
class Sources:
    """The whole register, in the order of the file."""

    files: tuple[SourceFile, ...]
    facts: tuple[Fact, ...]


def load_sources(path: Path) -> Sources:
    """Reads the register; ``BadInput`` names the file, the row and what is allowed."""
    tables = read_toml(path)
    for name, rows in tables.items():
        if name not in ("file", "fact"):
            raise BadInput(f"{shown(path)}: unknown table {name!r}; allowed are [[file]] and [[fact]]; remove it")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise BadInput(f"{shown(path)}: {name!r} is no list of tables; write each as [[{name}]]")
    files = tuple(_file(path, row, number) for number, row in enumerate(tables.get("file", ()), 1))
    facts = tuple(_fact(path, row, number) for number, row in enumerate(tables.get("fact", ()), 1))
    _no_doubles(path, "file", [file.path for file in files])
    _no_doubles(path, "fact", [fact.name for fact in facts])
    return Sources(files=files, facts=facts)


def check_sources(root: Path) -> Sources:
    """Reads ``<root>/SOURCES.toml`` and compares it with the disk; ``root`` is the folder ``corpora``.

    ``BadInput`` where a file below ``<root>/vectors`` has no row, a row no file, a checksum differs, or a fact is
    used in a file that is not there.
    """
    register = root / "SOURCES.toml"
    sources = load_sources(register)
    on_disk = {path.relative_to(root).as_posix() for path in (root / "vectors").rglob("*") if path.is_file()}
    for name in sorted(on_disk - {file.path for file in sources.files}):
        sentence = f"the file has no row in {shown(register)}; add a [[file]] with path = {name!r}"
        raise BadInput(f"{shown(root / name)}: {sentence}")
    for file in sources.files:
        _check_file(root, register, file, on_disk)
    for fact in sources.facts:
        for used in fact.used_in:
            place = content_file(root.parent, used)
            if place is not None and not place.is_file():
                sentence = f"fact {fact.name!r} is used in {used!r}, which is no file; correct the path"
                raise BadInput(f"{shown(register)}: {sentence}")
    return sources


def _check_file(root: Path, register: Path, file: SourceFile, on_disk: set[str]) -> None:
    if file.path not in on_disk:
        sentence = f"the row of {file.path!r} has no file below {shown(root / 'vectors')}; restore it or remove the row"
        raise BadInput(f"{shown(register)}: {sentence}")
    found = hashlib.sha256((root / file.path).read_bytes()).hexdigest()
    if found != file.sha256:
        sentence = f"the SHA-256 is {found}, allowed is {file.sha256} of its row in {shown(register)}"
        raise BadInput(f"{shown(root / file.path)}: {sentence}; restore the file or correct the row")


def _file(path: Path, row: dict[str, Any], number: int) -> SourceFile:
    values = read_fields(path, row, _FILE, where=f"[[file]] number {number} ({row.get('path', 'without path')})")
    origin = Origin(**{name: values.pop(name) for name in _ORIGIN})
    return SourceFile(origin=origin, **values)


def _fact(path: Path, row: dict[str, Any], number: int) -> Fact:
    values = read_fields(path, row, _FACT, where=f"[[fact]] number {number} ({row.get('name', 'without name')})")
    origin = Origin(**{name: values.pop(name) for name in _ORIGIN})
    return Fact(origin=origin, **values)


def _no_doubles(path: Path, table: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"{shown(path)}: two rows [[{table}]] are for {name!r}; allowed is one, remove the other")
