# SPDX-License-Identifier: Apache-2.0
"""How a library's maintainers compile and run ``upstream.c``: as the suite builds and runs the adapter of an instance.

Folders that this machine alone has stand there as variables of the shell, each with a line that says how to get one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from crosslane.cxx import CXX_STANDARD
from crosslane.fetched import ARCH_NAMES
from crosslane.linking import linked_toolchain
from crosslane.loading import library_environment, library_runner
from crosslane.model import Instance, Provider
from crosslane.toolchain import Toolchain, own_headers

__all__ = ["Commands", "commands_of", "portable_words"]


@dataclass(frozen=True)
class Commands:
    """Two lines for a shell, and a sentence for each variable and folder in them.

    ``places`` are the variables with what they are on this machine.
    """

    build: str
    run: str
    notes: tuple[str, ...]
    places: tuple[tuple[str, Path], ...]


@cache
def commands_of(instance: Instance, file_name: str) -> Commands:
    """The commands for a program against the release of the library that an instance's adapter is built for.

    Raises as ``linked_toolchain`` does where that cannot be built any more.
    """
    release, toolchain = linked_toolchain(instance)
    in_c = file_name.endswith(".c")
    compiler = (toolchain.cc, "-std=c11") if in_c else (toolchain.cxx, CXX_STANDARD, *toolchain.cxx_flags)
    libraries = [f"-l{name}" for name in release.libraries]
    words = [Path(compiler[0]).name, *compiler[1:], "-g", "-w", *toolchain.flags, "-o", "upstream", file_name]
    runner = list(library_runner(instance)[0])
    if instance.lane.runner == "qemu":
        runner[0] = Path(runner[0]).name
    variables = [f"{name}={value}" for name, value in library_environment(instance)]
    ran = [*(["env", *variables] if variables else []), *runner, "./upstream"]
    return Commands(
        build=portable_words(instance, toolchain, [*words, *libraries]),
        run=portable_words(instance, toolchain, ran),
        notes=tuple(_notes(instance, release, toolchain)),
        places=tuple(_places(instance)),
    )


def _places(instance: Instance) -> Iterator[tuple[str, Path]]:
    """The variables for folders that another machine does not have; one below another stands before it."""
    if instance.sysroot is not None:
        yield "SYSROOT", instance.sysroot.root
    if instance.build is not None:
        folders = [("BUILD", instance.build.folder)]
        folders += [("INCLUDE", instance.build.include)] if instance.build.include else []
        yield from sorted(folders, key=lambda item: len(str(item[1])), reverse=True)


def portable_words(instance: Instance, toolchain: Toolchain, words: Sequence[str]) -> str:
    """Words of a command line for a shell of any machine that has the same compiler and the folders of the notes."""
    known = [(str(path), f"${{{name}}}") for name, path in _places(instance)]
    compiler = [(own_headers(toolchain), f"$({Path(toolchain.cc).name} -print-file-name=include)")]
    shown = []
    for word in words:
        text = shlex.quote(word)
        for path, variable in [*known, *(compiler if instance.sysroot else [])]:
            if path and path in word:
                quoted = (
                    part.replace("\\", r"\\").replace('"', r"\"").replace("$", r"\$") for part in word.split(path)
                )
                text = f'"{variable.join(quoted)}"'
                break
        shown.append(text)
    return " ".join(shown)


def _notes(instance: Instance, release: Provider, toolchain: Toolchain) -> Iterator[str]:
    name = instance.provider.name
    if instance.sysroot is not None:
        yield _sysroot_note(instance, release)
    if instance.build is not None:
        yield f"BUILD is the folder with the shared libraries of a build of {name}."
        if instance.build.include is not None:
            yield f"INCLUDE is the folder with the headers of the same build of {name}."
    if toolchain.cxx_flags:
        cxx = Path(toolchain.cxx).name
        yield f"Folders of C++ headers are those of this compiler; `{cxx} -E -v -x c++ /dev/null` lists another one's."


def _sysroot_note(instance: Instance, release: Provider) -> str:
    """How to get a sysroot, with the versions of the packages that the program is about."""
    sysroot = instance.sysroot
    assert sysroot is not None
    arch = next(debian for debian, ours in ARCH_NAMES.items() if ours == sysroot.arch)
    files = tuple(f"lib{name}" for name in release.libraries)
    wanted = [
        f"{item.name} {item.version}"
        for item in sysroot.packages
        if item.name in (*release.packages, "libc6-dev") or any(file.startswith(files) for file in item.libraries)
    ]
    return (
        f"SYSROOT is a folder with Debian's packages {', '.join(wanted) or ' '.join(release.packages)} of "
        f"{sysroot.suite}, {arch}, and what these depend on, unpacked with `dpkg -x`; `crosslane providers fetch "
        f"--suite {sysroot.suite} --arch {arch} {instance.provider.name}` makes one, root in "
        f"~/.local/share/crosslane/sysroots/{sysroot.suite}-{arch}."
    )
