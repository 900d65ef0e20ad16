# SPDX-License-Identifier: Apache-2.0
"""Builds what a target runs: shared objects for this process, or a program for an emulator, of the shim's own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosslane.build import build_programs
from crosslane.buildcache import digest
from crosslane.buildplan import Program, Unit, plan_shim, plan_tool
from crosslane.data import read_files
from crosslane.errors import BadInput
from crosslane.model import Implementation, Lane, Registry
from crosslane.targets.rows import Choice, Row, rows_text
from crosslane.toolchain import Toolchain, lane_toolchain

__all__ = [
    "COVERAGE",
    "Built",
    "build_emulated",
    "build_host_side",
    "build_in_process",
    "own_unit",
    "rows_unit",
    "side_units",
]

COVERAGE = ("-fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp",)
"""What every engine that reads clang's coverage understands; -fsanitize=fuzzer-no-link asks for more."""
_UNTRACED = ("-fno-sanitize-coverage=trace-cmp",)
"""Of modes: what their loops compare would crowd out what an implementation does."""
_SIDE = frozenset(
    {
        "arena", "batch", "driver", "features", "frames", "no_heap", "session", "tables", "thunks", "wipe",
        "thunk_x86_64", "thunk_asm_x86_64", "thunk_aarch64",
    }
)  # fmt: skip
_SHARED = ("-shared", "-Wl,-z,noexecstack", "-Wl,--build-id=none", "-Wl,-Bsymbolic")
_STATIC = ("-static", "-no-pie", "-Wl,-z,noexecstack", "-Wl,--build-id=none")
_PIC = ("-fPIC",)


@dataclass(frozen=True)
class Built:
    """Files of a target. ``subject`` is a shared object, or a program for an emulator."""

    pair: Path
    oracle: Path
    subject: Path


def changed(unit: Unit, flags: Sequence[str]) -> Unit:
    """The unit compiled with further flags."""
    return replace(unit, flags=(*unit.flags, *flags), key=digest([unit.key, repr(tuple(flags))]))


def own_unit(root: Path, name: str, sources: Sequence[str], toolchain: Toolchain, flags: Sequence[str]) -> Unit:
    """A unit of sources in ``fuzz/targets/native``."""
    folder = root / "fuzz" / "targets" / "native"
    unit = plan_tool(root, name, [folder / source for source in sources], toolchain).units[0]
    headers = tuple(sorted(folder.glob("*.h")))
    contents = read_files(headers)
    return replace(
        unit,
        key=digest([unit.key, repr(tuple(flags)), *contents]),
        files=(*unit.files, *headers),
        contents=(*unit.contents, *contents),
        include=(*unit.include, folder),
        flags=(*unit.flags, "-fvisibility=hidden", *flags),
        place_flags=(*unit.place_flags, f"-I{folder}"),
    )


def rows_unit(root: Path, rows: Sequence[Row], toolchain: Toolchain, flags: Sequence[str]) -> Unit:
    """The table of a target's rows."""
    unit, text = own_unit(root, "rows", ["decode.c"], toolchain, flags), rows_text(rows)
    return replace(unit, sources=(), text=text, key=digest([unit.key, text]))


def side_units(
    registry: Registry,
    lane: Lane,
    implementations: Sequence[Implementation],
    toolchain: Toolchain,
    *,
    name: str,
    flags: Sequence[str],
    coverage: Sequence[str],
    watchdog: bool = False,
) -> list[Unit]:
    """One side: the shim without its protocol, all modes, and some implementations; ``name`` is its symbol's.

    With ``watchdog`` the shim's own handlers of signals are in it, in a process where no engine has others.
    """
    planned = plan_shim(registry, lane, implementations, toolchain).units
    tested = {item.symbol for item in implementations}
    made = []
    for unit in planned:
        if unit.name in _SIDE or (watchdog and unit.name == "signals"):
            made.append(changed(unit, (*flags, "-fvisibility=hidden")))
        elif unit.name in tested or unit.name.startswith("mode_"):
            untraced = _UNTRACED if coverage and unit.name not in tested else ()
            made.append(changed(unit, (*flags, "-fvisibility=hidden", *coverage, *untraced)))
    sources = ("side.c", "path_counters.c", *(() if watchdog else ("no_watchdog.c",)))
    made.append(own_unit(registry.root, "side", sources, toolchain, (*flags, f"-DSIDE_NAME={name}_side")))
    return made


def program(
    name: str,
    units: Sequence[Unit],
    toolchain: Toolchain,
    link: Sequence[str],
    what: Sequence[str],
    *,
    libraries: Sequence[str] = (),
) -> Program:
    """A program of units, by what they are and what it is linked with; ``what`` says for people what is in it."""
    key = digest([toolchain.identity, repr((tuple(link), tuple(libraries))), name, *(unit.key for unit in units)])
    return Program(
        name=name,
        key=key,
        subject=units[0].subject,
        units=tuple(units),
        toolchain=toolchain,
        contains=tuple(what),
        link_flags=tuple(link),
        libraries=tuple(libraries),
    )


def _with_clang(lane: Lane) -> tuple[Lane, Toolchain]:
    """The lane as its target is built; raises MissingTool where there is no clang."""
    built = replace(lane, compiler="clang", opt="-O2")
    return built, lane_toolchain(built)


def _host_side(registry: Registry, choice: Choice, native: Lane) -> list[Program]:
    """What runs in this process whichever lane the subject is of: the comparison, and the oracle."""
    lane, toolchain = _with_clang(native)
    sources = ("pair.c", "decode.c", "remote.c")
    pair = [
        own_unit(registry.root, "pair", sources, toolchain, _PIC),
        rows_unit(registry.root, choice.rows, toolchain, _PIC),
    ]
    oracle = side_units(registry, lane, choice.generics, toolchain, name="oracle", flags=_PIC, coverage=())
    return [
        program("pair.so", pair, toolchain, _SHARED, ["comparison"]),
        program("oracle.so", oracle, toolchain, _SHARED, [item.driver for item in choice.generics]),
    ]


def build_host_side(registry: Registry, choice: Choice, native: Lane) -> Built:
    """Build, or find in the cache, what decodes inputs: no subject is there."""
    pair, oracle = build_programs(_host_side(registry, choice, native), None)
    return Built(pair, oracle, oracle)


def _what(choice: Choice) -> list[str]:
    return [item.driver for item in choice.implementations]


def build_in_process(registry: Registry, choice: Choice, native: Lane, *, blind: bool = False) -> Built:
    """Build, or find in the cache, the shared objects of a target that runs natively; raises as ``build_shim`` does.

    With ``blind`` nothing is instrumented.
    """
    lane, toolchain = _with_clang(choice.lane)
    units = side_units(
        registry,
        lane,
        choice.implementations,
        toolchain,
        name="subject",
        flags=_PIC,
        coverage=() if blind else COVERAGE,
    )
    subject = program("subject.so", units, toolchain, _SHARED, _what(choice))
    return Built(*build_programs([*_host_side(registry, choice, native), subject], None))


def build_emulated(registry: Registry, choice: Choice, native: Lane, *, blind: bool = False) -> Built:
    """Likewise of a target whose subject runs under an emulator."""
    if choice.lane.runner != "qemu":
        raise BadInput(f"{choice.lane.name} is no lane of an emulator")
    lane, toolchain = _with_clang(choice.lane)
    units = side_units(
        registry, lane, choice.implementations, toolchain, name="subject", flags=(),
        coverage=() if blind else COVERAGE, watchdog=True,
    )  # fmt: skip
    units.append(own_unit(registry.root, "guest", ["guest.c"], toolchain, ["-DSIDE_NAME=subject_side"]))
    units.append(rows_unit(registry.root, choice.rows, toolchain, ()))
    subject = program("guest", units, toolchain, _STATIC, _what(choice))
    return Built(*build_programs([*_host_side(registry, choice, native), subject], None))
