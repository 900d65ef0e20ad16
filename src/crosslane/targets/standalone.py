# SPDX-License-Identifier: Apache-2.0
"""Builds targets for an engine that links them, as OSS-Fuzz and ClusterFuzzLite do: one program for each family.

What to compile with is in the environment (CC, CXX, CFLAGS, CXXFLAGS, LIB_FUZZING_ENGINE). Flags are for the code under
test; what compares is built without a sanitizer, and the oracle is one object that shows nothing but its table.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosslane.build import build_programs
from crosslane.buildplan import Program, Unit
from crosslane.errors import BadInput, HarnessFault, MissingTool
from crosslane.isa import host_arch
from crosslane.model import Registry
from crosslane.plan import native_lane
from crosslane.targets.programs import changed, own_unit, program, rows_unit, side_units
from crosslane.targets.rows import FAMILIES, Row, rows_of
from crosslane.targets.seeds import seeds_of
from crosslane.toolchain import Toolchain

__all__ = ["Environment", "build_standalone", "read_environment"]

_UNWATCHED = (
    "-fno-sanitize=all",
    "-fno-sanitize-coverage=func,bb,edge,trace-pc-guard,trace-pc,inline-8bit-counters,pc-table,trace-cmp,indirect-calls",
)
_JOIN = ("-r", "-nostdlib", *_UNWATCHED, "-Wl,--build-id=none")
_LINK = ("-no-pie", "-Wl,-z,noexecstack")
_OPTIONS = "[libfuzzer]\nmax_len = 4096\n"
_NEEDED = ("CC", "CXX", "LIB_FUZZING_ENGINE")


@dataclass(frozen=True)
class Environment:
    """What an engine's image gives a build: compilers with their flags, and what to link."""

    cc: str
    cxx: str
    cflags: tuple[str, ...]
    cxxflags: tuple[str, ...]
    engine: tuple[str, ...]


def read_environment(variables: Mapping[str, str]) -> Environment:
    """Read the variables; raises BadInput for one that is missing, MissingTool for a compiler that is not there."""
    for name in _NEEDED:
        if not variables.get(name):
            raise BadInput(
                f"the variable {name} is not set, by which an engine's image says what targets are built with: set "
                f"{', '.join(_NEEDED)}, CFLAGS and CXXFLAGS"
            )
    found = {name: shutil.which(variables[name]) for name in ("CC", "CXX")}
    for name, path in found.items():
        if path is None:
            raise MissingTool(f"the compiler {variables[name]} that {name} names is not installed: correct {name}")
    cflags, cxxflags, engine = (
        tuple(shlex.split(variables.get(name, ""))) for name in ("CFLAGS", "CXXFLAGS", "LIB_FUZZING_ENGINE")
    )
    return Environment(str(found["CC"]), str(found["CXX"]), cflags, cxxflags, engine)


def _toolchain(environment: Environment) -> Toolchain:
    objcopy = shutil.which("objcopy") or shutil.which("llvm-objcopy")
    if objcopy is None:
        raise MissingTool("the program objcopy is not installed, which targets are built with: install binutils")
    version = subprocess.run([environment.cc, "--version"], capture_output=True, text=True, check=False).stdout
    return Toolchain(
        arch=host_arch(),
        cc=environment.cc,
        objcopy=objcopy,
        version=version.partition("\n")[0],
        identity=repr((version, environment)),
        flags=(*environment.cflags, "-Wno-unused-command-line-argument"),
        cxx=environment.cxx,
        cxx_flags=(*environment.cxxflags,),
    )


def _joined(units: Sequence[Unit]) -> list[Unit]:
    """The units, of which those of several sources are joined without what a sanitizer links."""
    return [replace(unit, join_flags=_UNWATCHED) for unit in units]


def _oracle(registry: Registry, rows: Sequence[Row], toolchain: Toolchain) -> Program:
    generics = tuple(dict.fromkeys(row.generic for row in rows))
    lane = replace(native_lane(registry), compiler="clang", opt="-O2")
    units = side_units(registry, lane, generics, toolchain, name="oracle", flags=_UNWATCHED, coverage=())
    plain = replace(toolchain, cxx="", cxx_flags=())
    return program("oracle.o", _joined(units), plain, _JOIN, [item.driver for item in generics])


def _subject(registry: Registry, rows: Sequence[Row], toolchain: Toolchain) -> list[Unit]:
    """The side under test, whose implementations and modes alone have the engine's flags."""
    implementations = tuple(dict.fromkeys(row.implementation for row in rows))
    lane = replace(native_lane(registry), compiler="clang", opt="-O2")
    units = side_units(registry, lane, implementations, toolchain, name="subject", flags=(), coverage=())
    tested = {item.symbol for item in implementations}
    return [
        unit if unit.name in tested or unit.name.startswith("mode_") else changed(unit, _UNWATCHED) for unit in units
    ]


def _hidden(file: Path, objcopy: str, made: Path) -> Path:
    """The oracle as an object that clashes with nothing; its code paths are not looked at."""
    command = [objcopy, "--keep-global-symbol=oracle_side", "--rename-section", "crosslane_paths=.oracle_paths"]
    done = subprocess.run([*command, str(file), str(made)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise HarnessFault(f"{objcopy} cannot hide the symbols of the oracle: {done.stderr.strip()}")
    return made


def build_standalone(registry: Registry, environment: Environment, out: Path, work: Path) -> list[Path]:
    """Build every family's target into ``out``, with its options and first inputs; returns the programs.

    Those of ``--impls`` are under test where there are some, else our own for this architecture. ``work`` is a folder
    for what is needed on the way. Raises BadInput with the compiler's words, and MissingTool.
    """
    toolchain, arch = _toolchain(environment), host_arch()
    foreign = [item for item in registry.implementations if item.origin != "own" and item.isa in ("any", arch)]
    tested = foreign or [item for item in registry.implementations if item.isa == arch]
    rows = rows_of(registry, tested)
    (oracle,) = build_programs([_oracle(registry, rows, toolchain)], None)
    hidden = _hidden(oracle, toolchain.objcopy, work / "oracle.o")
    subject = _joined(_subject(registry, rows, toolchain))
    sources = ("pair.c", "decode.c", "remote.c", "engine.c")
    table = rows_unit(registry.root, rows, toolchain, _UNWATCHED)
    made = []
    for number, family in enumerate(FAMILIES):
        flags = (*_UNWATCHED, f"-DFAMILY={number}")
        units = _joined([own_unit(registry.root, f"{family}_engine", sources, toolchain, flags), table, *subject])
        name = f"crosslane_{family}"
        plan = program(name, units, toolchain, _LINK, [family], libraries=(str(hidden), *environment.engine))
        (file,) = build_programs([plan], None)
        made.append(_placed(file, out / name, family, [row for row in rows if family in row.families]))
    return made


def _placed(file: Path, target: Path, family: str, rows: Sequence[Row]) -> Path:
    """Put a program and what goes with it where the engine looks for them."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
        target.chmod(0o755)
        target.with_name(f"{target.name}.options").write_text(_OPTIONS)
        with zipfile.ZipFile(target.with_name(f"{target.name}_seed_corpus.zip"), "w") as corpus:
            for number, seed in enumerate(seeds_of(family, rows)):
                corpus.writestr(zipfile.ZipInfo(f"{number:05}"), seed)
    except OSError as error:
        raise BadInput(f"{target}: cannot be written ({error.strerror}); name another folder with --out") from None
    return target
