# SPDX-License-Identifier: Apache-2.0
"""``crosslane new``: begins an implementation of the user's own with the portable one of its cipher."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import click

from crosslane.data import data_root, shown
from crosslane.errors import BadInput, HarnessFault
from crosslane.model import Implementation
from crosslane.names import unknown_name
from crosslane.registry import load_registry

__all__ = ["begin", "new_command"]

_NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
_METADATA = """# Every key: docs/reference/metadata.md of the repository
driver = "{driver}"
isa = "any"
features = []
priority = 200
ways = {ways}
sources = [{sources}]
fused = [{fused}]
paths = [{paths}]
constant_time = {constant_time}
description = "Begun with {origin}."
"""


def begin(generic: Implementation, name: str) -> dict[str, str]:
    """Return the files of an implementation ``name``, by their names: metadata, code, and the headers that it needs.

    The code is that of ``generic``, with a getter of its own.
    """
    contents = _with_headers(generic)
    first = f"{name}.c"
    files = {
        first if path.suffix == ".c" else path.name: text.replace(generic.symbol, f"{generic.cipher}_{name}")
        for path, text in contents.items()
    }
    driver = f"{generic.cipher}-{name.replace('_', '-')}"
    return {
        "impl.toml": _METADATA.format(
            driver=driver,
            ways=generic.ways,
            sources=_quoted(sorted(files)),
            fused=_quoted(generic.fused),
            paths=_quoted(generic.paths),
            constant_time=str(generic.constant_time).lower(),
            origin=generic.driver,
        ),
        **files,
    }


def _quoted(words: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _with_headers(generic: Implementation) -> dict[Path, str]:
    """The sources, and the headers of the cipher that they include, each with its text."""
    found = {path: path.read_text(encoding="utf-8") for path in generic.sources}
    waiting = list(found.values())
    while waiting:
        for name in _INCLUDE.findall(waiting.pop()):
            path = generic.folder.parent / name
            if path.is_file() and path not in found:
                found[path] = path.read_text(encoding="utf-8")
                waiting.append(found[path])
    return found


def _write(folder: Path, files: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise BadInput(f"{shown(folder)}: is there already; give another name, or remove it") from None
    except OSError as error:
        raise HarnessFault(f"{shown(folder)}: cannot be written ({error.strerror}); name another folder") from None


@click.command("new")
@click.argument("cipher")
@click.argument("name")
@click.option(
    "--impls", "folder", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder to put it into."
)
def new_command(cipher: str, name: str, folder: Path) -> None:
    """Begin an implementation of your own, NAME of CIPHER, with the portable one."""
    registry = load_registry(data_root())
    generics = {item.cipher: item for item in registry.implementations if item.is_generic}
    if cipher not in generics:
        raise unknown_name("cipher", cipher, generics)
    if not _NAME.fullmatch(name) or name == "generic":
        raise BadInput(f"{name!r} is no name of an implementation: take small letters, digits and _, such as first")
    place = folder / cipher / name
    files = begin(generics[cipher], name)
    _write(place, files)
    click.echo("\n".join(shown(place / item) for item in files))
    click.echo(f"next: crosslane check --impls {shown(folder)} --cell {cipher}-{name.replace('_', '-')} --count 2000")
