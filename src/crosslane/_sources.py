# SPDX-License-Identifier: Apache-2.0
"""The register ``corpora/SOURCES.toml``: where each file of vectors and each table in the code comes from."""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from crosslane.errors import BadInput

__all__ = ["Fact", "Origin", "SourceFile", "Sources", "check_sources", "load_sources"]

_SHA256 = re.compile(r"[0-9a-f]{64}")
_ORIGIN = ("document", "section", "url", "carrier", "licence")
_MAY_BE_EMPTY = ("url", "carrier")


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
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: the register cannot be read ({error.strerror}); restore it.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: this is no TOML ({error}); correct it.") from error
    for name, rows in tables.items():
        if name not in ("file", "fact"):
            raise BadInput(f"{path}: unknown table {name!r}; allowed are [[file]] and [[fact]]; correct or remove it.")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise BadInput(f"{path}: {name!r} must be written as rows [[{name}]]; write it so.")
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
        raise BadInput(f"{root / name}: the file has no row in {register}; add a [[file]] with path = {name!r}.")
    for file in sources.files:
        if file.path not in on_disk:
            raise BadInput(f"{register}: the row of {file.path!r} has no file below {root}; restore or remove it.")
        found = hashlib.sha256((root / file.path).read_bytes()).hexdigest()
        if found != file.sha256:
            sentence = f"the SHA-256 is {found} but its row in {register} says {file.sha256}"
            raise BadInput(f"{root / file.path}: {sentence}; restore the file or correct the row.")
    for fact in sources.facts:
        for used in fact.used_in:
            if not (root.parent / used).is_file():
                raise BadInput(f"{register}: fact {fact.name!r} is used in {used!r}, which is no file; correct it.")
    return sources


def _file(path: Path, row: dict[str, object], number: int) -> SourceFile:
    where = f"{path}: [[file]] number {number} ({row.get('path', 'without path')})"
    _known(where, row, ("path", "title", *_ORIGIN, "verified", "sha256"))
    sha256 = _text(where, row, "sha256")
    if not _SHA256.fullmatch(sha256):
        raise BadInput(f"{where}: 'sha256' is {sha256!r}; allowed are 64 digits 0-9 and a-f; correct it.")
    return SourceFile(
        path=_relative(where, _text(where, row, "path")),
        title=_text(where, row, "title"),
        origin=_origin(where, row),
        verified=_text(where, row, "verified"),
        sha256=sha256,
    )


def _fact(path: Path, row: dict[str, object], number: int) -> Fact:
    where = f"{path}: [[fact]] number {number} ({row.get('name', 'without name')})"
    _known(where, row, ("name", "title", *_ORIGIN, "used_in"))
    used_in = row["used_in"]
    if not isinstance(used_in, list) or not used_in or not all(isinstance(item, str) for item in used_in):
        raise BadInput(f"{where}: 'used_in' must be a list of at least one path in quotes; write it so.")
    return Fact(
        name=_text(where, row, "name"),
        title=_text(where, row, "title"),
        origin=_origin(where, row),
        used_in=tuple(_relative(where, str(item)) for item in used_in),
    )


def _origin(where: str, row: dict[str, object]) -> Origin:
    return Origin(**{name: _text(where, row, name) for name in _ORIGIN})


def _known(where: str, row: dict[str, object], names: tuple[str, ...]) -> None:
    for name in row:
        if name not in names:
            raise BadInput(f"{where}: unknown key {name!r}; allowed are {', '.join(names)}; correct or remove it.")
    for name in names:
        if name not in row:
            raise BadInput(f"{where}: the key {name!r} is missing; needed are {', '.join(names)}; add it.")


def _text(where: str, row: dict[str, object], name: str) -> str:
    value = row[name]
    if not isinstance(value, str) or not (value or name in _MAY_BE_EMPTY):
        raise BadInput(f"{where}: {name!r} is {value!r}; allowed is a string that is not empty; write one.")
    return value


def _relative(where: str, name: str) -> str:
    if name.startswith("/") or "\\" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise BadInput(f"{where}: {name!r} is no plain relative path; write it as folder/file, without '.' or '..'.")
    return name


def _no_doubles(path: Path, table: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"{path}: two rows [[{table}]] are for {name!r}; allowed is one, remove the other.")
