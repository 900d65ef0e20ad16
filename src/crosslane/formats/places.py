# SPDX-License-Identifier: Apache-2.0
"""Where the code of each subject begins: the line of its entry point, relative to the folder that is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from crosslane.instances import instances
from crosslane.model import Registry

__all__ = ["Place", "entry_line", "places_of"]

_ANY_GETTER = r"struct subject_leaf\s*\*\s*[A-Za-z_0-9]+"
"""A function that returns a table of functions, where a macro makes up its name."""
_ADAPTER = "PROVIDER_SESSION"
"""The name of an adapter's table before the build gives it its own."""


@dataclass(frozen=True)
class Place:
    """A line of a file: ``uri`` is relative, percent-encoded, to ``base``, or absolute where ``base`` is empty."""

    uri: str
    base: str
    line: int


def places_of(registry: Registry, here: Path) -> dict[str, Place]:
    """The entry point of each implementation and of each library's adapter, by the name that cells have.

    What lies below ``here`` is named from there (``SRCROOT``), what lies in the suite from its folder (``SUITE``).
    """
    found = {
        item.driver: _place(item.sources, item.symbol, item.folder / "impl.toml", registry.root, here)
        for item in registry.implementations
    }
    for instance in instances(registry):
        provider = instance.provider
        table = provider.folder / "provider.toml"
        found[instance.name] = _place(provider.sources, _ADAPTER, table, registry.root, here)
    return found


def place_of(path: Path, line: int, root: Path, here: Path) -> Place:
    """A line of a file, named from the folder that a reader has."""
    whole = path.resolve()
    for base, folder in (("SRCROOT", here.resolve()), ("SUITE", root.resolve())):
        if whole.is_relative_to(folder):
            return Place(quote(whole.relative_to(folder).as_posix()), base, line)
    return Place(whole.as_uri(), "", line)


def _place(sources: Iterable[Path], symbol: str, metadata: Path, root: Path, here: Path) -> Place:
    files = list(sources)
    for name in (re.escape(symbol), _ANY_GETTER):
        for source in files:
            line = entry_line(source, name)
            if line:
                return place_of(source, line, root, here)
    return place_of(metadata, 1, root, here)


def entry_line(source: Path, name: str) -> int:
    """The line on which what fits a regular expression is defined in a source of C or assembly; 0 where nothing is."""
    try:
        text = source.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    if source.suffix == ".S":
        found = re.search(rf"^\s*(?:{name}\s*:|[A-Za-z_]+\(\s*{name}\b)", text, re.MULTILINE)
    else:  # a declaration ends with a semicolon, a definition goes on with a brace
        found = re.search(rf"^[^\n;{{}}#]*\b{name}\b\s*(?:\([^;{{}}]*\)\s*\{{|=(?!=))", text, re.MULTILINE)
    return text.count("\n", 0, found.start() + len(found[0]) - len(found[0].lstrip())) + 1 if found else 0
