# SPDX-License-Identifier: Apache-2.0
"""Ciphers of the system's libraries beside ours, in one process, and where those are no plain C (``peers.toml``)."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosslane.bench.jobs import Job, Subject
from crosslane.errors import BadInput, MissingTool
from crosslane.isa import ARCHES
from crosslane.names import WORD_PATTERN
from crosslane.tomlread import Field, read_fields, read_toml
from crosslane.toolchain import find_toolchain

__all__ = ["LIBRARIES", "Assembly", "Library", "is_plain_c", "load_assembly", "require_libraries", "with_libraries"]


@dataclass(frozen=True)
class Library:
    """A library that the peers program links: a header, the linker's name, and the Debian package that brings both."""

    name: str
    header: str
    link: str
    package: str


LIBRARIES = (
    Library(name="libgcrypt", header="gcrypt.h", link="gcrypt", package="libgcrypt20-dev"),
    Library(name="nettle", header="nettle/nettle-meta.h", link="nettle", package="nettle-dev"),
)

_MODES = ("ecb", "cbc", "cfb", "ofb", "ctr", "xts")
_FIELDS = {
    "library": Field(kind="str", allowed=tuple(library.name for library in LIBRARIES)),
    "arch": Field(kind="str", allowed=ARCHES),
    "cipher": Field(kind="str", pattern=WORD_PATTERN),
    "columns": Field(kind="str", many=True, pattern=f"{WORD_PATTERN}-(enc|dec)"),
}


@dataclass(frozen=True)
class Assembly:
    """Where a library runs assembly without any CPU feature; no ``columns``, such as ``ctr-enc``, stand for all."""

    library: str
    arch: str
    cipher: str
    columns: tuple[str, ...]


def load_assembly(path: Path | None = None) -> list[Assembly]:
    """Read ``peers.toml``; raises ``BadInput`` for anything that is not exactly such a fact."""
    path = path or Path(__file__).with_name("peers.toml")
    tables = read_toml(path).pop("assembly", None)
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise BadInput(f"{path.name}: holds no [[assembly]] tables; restore the file")
    return [Assembly(**read_fields(path, table, _FIELDS, where=f"assembly {i + 1}")) for i, table in enumerate(tables)]


def is_plain_c(facts: Sequence[Assembly], job: Job, library: str) -> bool:
    """Whether a library without CPU features runs compiled C for a job."""
    return not any(
        fact.library == library
        and fact.arch == job.lane.arch
        and fact.cipher == job.cipher.name
        and (not fact.columns or job.column in fact.columns)
        for fact in facts
    )


def require_libraries(arch: str, libraries: Sequence[Library] = LIBRARIES) -> None:
    """Raise ``MissingTool``, with the package, for a library that cannot be compiled and linked against."""
    toolchain = find_toolchain(arch)
    for library in libraries:
        source = f"#include <{library.header}>\nint main(void) {{ return 0; }}\n"
        command = [toolchain.cc, "-x", "c", "-", f"-l{library.link}", "-o", "/dev/null"]
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise MissingTool(
                f"{library.name} is not installed with its headers, which `crosslane bench peers` measures; "
                f"install the package {library.package} (as root: apt-get install {library.package})"
            )


def with_libraries(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs that the libraries can take part in, with all of them added behind ours."""
    added = tuple(Subject(name=library.name, symbol=library.name, cipher="") for library in LIBRARIES)
    return [replace(job, subjects=(*job.subjects, *added)) for job in jobs if job.mode.name in _MODES]
