# SPDX-License-Identifier: Apache-2.0
"""Precompiled headers of vector intrinsics, whose parsing takes gcc up to 40 percent of a compilation.

gcc makes the same object with them, to the byte. A planted fault compiles its implementation once more, so that
hundreds of units begin with the same header under the same flags.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from crosslane.buildplan import Unit
from crosslane.toolchain import Toolchain

__all__ = ["LEAST_UNITS", "Prefix", "prefix_of", "worthwhile"]

LEAST_UNITS = 4
"""Units of the same prefix from which on it is precompiled: making one takes as long as three units save."""

_INCLUDED = re.compile(rb'^#include "([\w.]+)"$', re.MULTILINE)
_HEADERS = {"x86_64": "immintrin.h", "aarch64": "arm_neon.h"}
_OTHER_FLAGS = ("-D", "-W", "-I")
"""Flags that change nothing in a header of intrinsics: definitions for our own sources, and warnings."""


@dataclass(frozen=True)
class Prefix:
    """A header of a compiler, and what decides on its precompiled form: the compiler and the flags."""

    compiler: tuple[str, ...]
    header: str
    flags: tuple[str, ...]

    @property
    def text(self) -> str:
        """The source of it."""
        return f"#include <{self.header}>\n"


def prefix_of(unit: Unit, toolchain: Toolchain) -> Prefix | None:
    """The prefix of an implementation of ours that gcc compiles, where its sources include a header of intrinsics."""
    header = _HEADERS.get(toolchain.arch)
    if header is None or not unit.keep or "-Werror" not in unit.flags or not toolchain.command[0].endswith("gcc"):
        return None
    if not _includes(unit, header):
        return None
    return Prefix(toolchain.command, header, tuple(flag for flag in unit.flags if not flag.startswith(_OTHER_FLAGS)))


def _includes(unit: Unit, header: str) -> bool:
    """Whether a source includes the header, itself or through our own headers."""
    changed = dict(unit.patches)
    contents = {path: changed.get(path, content) for path, content in zip(unit.files, unit.contents, strict=True)}
    named = {path.name.encode(): path for path in unit.files}
    wanted, seen = list(unit.sources), set[Path]()
    line = f"#include <{header}>\n".encode()
    while wanted:
        path = wanted.pop()
        if path in seen:
            continue
        seen.add(path)
        if line in contents[path]:
            return True
        wanted += [named[name] for name in _INCLUDED.findall(contents[path]) if name in named]
    return False


def worthwhile(prefixes: Iterable[Prefix | None]) -> list[Prefix]:
    """The prefixes that enough units have."""
    return [item for item, count in Counter(prefixes).items() if item is not None and count >= LEAST_UNITS]
