# SPDX-License-Identifier: Apache-2.0
"""Builds shims: the shim's own C, all portable modes and some implementations, as one program.

Programs are static, but for those that a sanitizer watches. Our own implementations share a program; each third-party
one gets its own, since it is another trust domain. Every object and program is kept under the digest of all that it is
made of, so that a second build only reads the sources.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from crosslane.buildcache import cache_folder, cached, entry_path, scratch, store
from crosslane.buildplan import (
    Program,
    Unit,
    plan_bench,
    plan_planted,
    plan_plugin,
    plan_provider,
    plan_shim,
    plan_tool,
)
from crosslane.compiling import Compilers, included_files
from crosslane.cxx import CXX_SUFFIX
from crosslane.data import read_files, shown
from crosslane.errors import BadInput
from crosslane.isa import host_arch
from crosslane.linking import link_problem, linked_toolchain
from crosslane.model import Implementation, Instance, Lane, Registry
from crosslane.plants import Plant
from crosslane.precompiled import Prefix, prefix_of, worthwhile
from crosslane.toolchain import Toolchain, find_toolchain, lane_toolchain

__all__ = [
    "ShimProgram",
    "build_bench",
    "build_instance",
    "build_lanes",
    "build_launcher",
    "build_planted",
    "build_plugin",
    "build_programs",
    "build_shim",
    "build_stepper",
    "trust_groups",
]

Progress = Callable[[str], None]


@dataclass(frozen=True)
class ShimProgram:
    """A built shim: the program's file and the implementations in it."""

    path: Path
    implementations: tuple[Implementation, ...]


def trust_groups(registry: Registry, lane: Lane) -> list[tuple[Implementation, ...]]:
    """Return the implementations of a lane's architecture by program: ours together, third-party ones alone."""
    fitting = [item for item in registry.implementations if lane.takes(item)]
    own = tuple(item for item in fitting if item.origin == "own")
    return [*([own] if own else []), *((item,) for item in fitting if item.origin != "own")]


def build_shim(registry: Registry, lane: Lane, implementations: Sequence[Implementation]) -> Path:
    """Build, or find in the cache, the shim of a lane with these implementations; returns the program's file.

    Raises ``BadInput`` with the compiler's words, ``MissingTool`` and ``HarnessFault``.
    """
    toolchain = lane_toolchain(lane)
    return build_programs([plan_shim(registry, lane, implementations, toolchain)], None)[0]


def build_instance(registry: Registry, instance: Instance, *, probe: bool = False) -> Path:
    """Build, or find in the cache, the shim of an instance, linked dynamically to its library; or its probe.

    Raises as ``build_shim`` does, and ``MissingTool`` with the package where header or library is not installed.
    """
    release, toolchain = linked_toolchain(instance)
    program = plan_provider(registry, instance.lane, release, toolchain, probe=probe)
    try:
        return build_programs([program], None)[0]
    except BadInput as error:
        raise link_problem(instance, error) from None


def build_planted(
    registry: Registry, lanes: Sequence[tuple[Lane, Sequence[Plant]]], *, progress: Progress | None = None
) -> list[Path]:
    """Build, or find in the cache, the extra shims with planted faults, one a lane; raises as ``build_shim`` does."""
    planned = [plan_planted(registry, lane, plants, lane_toolchain(lane)) for lane, plants in lanes]
    return build_programs(planned, progress)


def build_lanes(
    registry: Registry, lanes: Sequence[Lane], *, progress: Progress | None = None
) -> dict[str, tuple[ShimProgram, ...]]:
    """Build all shims of some lanes at once, on all cores; returns the programs by the lane's name.

    ``progress`` is told each finished step, from any thread. Raises as ``build_shim`` does, for the first failure in
    the order of lanes; what compiled beside it stays in the cache.
    """
    builders = {lane.build: lane for lane in lanes}
    toolchains = {build: lane_toolchain(lane) for build, lane in builders.items()}
    wanted = [(lane, group) for lane in lanes for group in trust_groups(registry, lane)]
    plans: dict[tuple[tuple[str | bool, ...], tuple[Implementation, ...]], Program] = {}
    for lane, group in wanted:
        if (lane.build, group) not in plans:
            plans[lane.build, group] = plan_shim(registry, lane, group, toolchains[lane.build])
    paths = dict(zip(plans, build_programs(list(plans.values()), progress), strict=True))
    built: dict[str, list[ShimProgram]] = {lane.name: [] for lane in lanes}
    for lane, group in wanted:
        built[lane.name].append(ShimProgram(paths[lane.build, group], group))
    return {name: tuple(programs) for name, programs in built.items()}


def build_launcher(root: Path) -> Path:
    """Build, or find in the cache, the launcher for this host from ``impls/shim/launcher.c``; raises likewise."""
    source = root / "impls" / "shim" / "launcher.c"
    return build_programs([plan_tool(root, "launcher", [source], find_toolchain(host_arch()))], None)[0]


def build_bench(
    registry: Registry, lane: Lane, implementations: Sequence[Implementation], *, peers: bool = False
) -> Path:
    """Build, or find in the cache, the program that measures these implementations; raises as ``build_shim`` does."""
    toolchain = lane_toolchain(lane)
    return build_programs([plan_bench(registry, lane, implementations, toolchain, peers=peers)], None)[0]


def build_plugin(root: Path) -> Path:
    """Build, or find in the cache, the emulator's plugin that counts instructions; raises likewise."""
    return build_programs([plan_plugin(root, find_toolchain(host_arch()))], None)[0]


def build_stepper(root: Path) -> Path:
    """Build, or find in the cache, the program that counts instructions natively; raises likewise."""
    source = root / "impls" / "bench" / "stepper.c"
    return build_programs([plan_tool(root, "stepper", [source], find_toolchain(host_arch()))], None)[0]


def build_programs(programs: Sequence[Program], progress: Progress | None) -> list[Path]:
    """Make every program that the cache lacks; returns their files in order."""
    folder = cache_folder()
    paths = [entry_path(folder, program.key, program.name) for program in programs]
    missing = {program.key: program for program, path in zip(programs, paths, strict=True) if not cached(path)}
    if missing:
        with scratch(folder) as work, Compilers(work) as compilers:
            _Builder(folder, work, compilers, progress).make(list(missing.values()))
    return paths


class _Builder:
    """One parallel build, between the start and the end of its compilers."""

    def __init__(self, folder: Path, work: Path, compilers: Compilers, progress: Progress | None) -> None:
        self._folder = folder
        self._work = work
        self._compilers = compilers
        self._progress = progress
        self._lock = threading.Lock()
        self._num_temporaries = 0
        self._prefixes: dict[Prefix, Path] = {}

    def make(self, programs: Sequence[Program]) -> None:
        """Compile the units that the cache lacks, then link; the first failure in order is raised at the end."""
        units = {unit.key: (unit, program.toolchain) for program in programs for unit in program.units}
        missing = [(unit, toolchain) for unit, toolchain in units.values() if not cached(self._place(unit))]
        workers = len(os.sched_getaffinity(0))
        pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="compile")
        try:
            prefixes = worthwhile(prefix_of(unit, toolchain) for unit, toolchain in missing)
            _finish([pool.submit(self._precompile, prefix) for prefix in prefixes])
            _finish([pool.submit(self._compile, unit, toolchain) for unit, toolchain in missing])
            _finish([pool.submit(self._link, program) for program in programs])
        except BaseException:
            # An interrupt must not wait for compilers: end them before the pool is joined.
            self._compilers.__exit__(None, None, None)
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _temporary(self, suffix: str) -> Path:
        with self._lock:
            self._num_temporaries += 1
            return self._work / f"{self._num_temporaries}{suffix}"

    def _say(self, text: str) -> None:
        if self._progress is not None:
            self._progress(text)

    def _place(self, unit: Unit) -> Path:
        return entry_path(self._folder, unit.key, unit.file_name)

    def _precompile(self, prefix: Prefix) -> None:
        """Make a precompiled header for all units of this build that have it."""
        path = self._temporary(".h")
        path.write_text(prefix.text)
        command = [*prefix.compiler, *prefix.flags, "-x", "c-header", str(path), "-o", f"{path}.gch"]
        self._compilers.run(command, subject=path, task=f"the compiler's {prefix.header} does not compile")
        self._prefixes[prefix] = path

    def _compile(self, unit: Unit, toolchain: Toolchain) -> None:
        path = self._place(unit)
        prefix = prefix_of(unit, toolchain)
        header = self._prefixes.get(prefix) if prefix else None
        copy = self._patched(unit) if unit.patches else unit
        objects = [self._compile_source(copy, source, toolchain, header) for source in self._sources(copy)]
        made = objects[0]
        if len(objects) > 1 or unit.join_flags:
            made = self._temporary(".o")
            joined = [*toolchain.command, "-r", "-nostdlib", *unit.join_flags]
            command = [*joined, "-o", str(made), *map(str, objects)]
            self._compilers.run(command, subject=unit.subject, task="its objects do not link together")
        if unit.keep:
            command = [toolchain.objcopy, f"--keep-global-symbol={unit.keep}", str(made)]
            self._compilers.run(command, subject=unit.subject, task="its symbols cannot be made local")
        if read_files(unit.files) != unit.contents:
            raise BadInput(f"{shown(unit.subject)}: a file changed while it was compiled; run the same command again")
        store(made, path)
        self._say(f"compiled {unit.name} for {toolchain.arch}")

    def _patched(self, unit: Unit) -> Unit:
        """The unit over a copy of its files, in which the patched ones have their other content."""
        folder, changed = self._temporary(""), dict(unit.patches)
        for path, content in zip(unit.files, unit.contents, strict=True):
            copy = folder / path.relative_to(unit.base)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(changed.get(path, content))
        sources, files, include = (
            tuple(folder / path.relative_to(unit.base) for path in paths)
            for paths in (unit.sources, unit.files, unit.include)
        )
        places = (*(f"-I{path}" for path in include), f"-ffile-prefix-map={folder}=.")
        return replace(unit, sources=sources, files=files, include=include, place_flags=places)

    def _sources(self, unit: Unit) -> list[Path]:
        if not unit.text:
            return list(unit.sources)
        generated = self._temporary(".c")
        generated.write_text(unit.text)
        return [*unit.sources, generated]

    def _compile_source(self, unit: Unit, source: Path, toolchain: Toolchain, header: Path | None) -> Path:
        """Compile a source; ``header`` is what it begins with as a precompiled header."""
        made, rule = self._temporary(".o"), self._temporary(".d")
        cxx = source.suffix == CXX_SUFFIX
        compiler = (*toolchain.cxx_command, *unit.cxx_flags) if cxx else (*toolchain.command, *unit.flags)
        first = ["-include", str(header)] if header and source.suffix == ".c" else []
        here = f"-ffile-prefix-map={self._work}=."  # the folder in which compilers run is another each time
        command = [*compiler, here, *unit.place_flags, *first, "-MMD", "-MF", str(rule), "-c", str(source)]
        self._compilers.run([*command, "-o", str(made)], subject=source, task="does not compile")
        known = {path.resolve() for path in unit.files} | {source.resolve()}
        known |= {header.resolve(), Path(f"{header.resolve()}.gch")} if header else set()
        for included in included_files(rule):
            if included.resolve() not in known:
                allowed = ", ".join(shown(folder) for folder in unit.include)
                raise BadInput(
                    f"{shown(source)}: includes {shown(included)}; allowed are headers (*.h) directly in {allowed}; "
                    "move the header there"
                )
        return made

    def _link(self, program: Program) -> None:
        path = entry_path(self._folder, program.key, program.name)
        objects = [str(entry_path(self._folder, unit.key, unit.file_name)) for unit in program.units]
        made = self._temporary("")
        linker = program.toolchain.cxx_command if program.toolchain.cxx else program.toolchain.command
        command = [*linker, *program.link_flags, "-o", str(made), *objects, *program.libraries]
        self._compilers.run(command, subject=program.subject, task=f"the program {program.name} does not link")
        store(made, path)
        self._say(f"linked {program.name} for {program.toolchain.arch} ({', '.join(program.contains)})")


def _finish(tasks: Sequence[Future[None]]) -> None:
    """Wait for all and raise the first failure in order."""
    errors = [error for error in (task.exception() for task in tasks) if error is not None]
    if errors:
        raise errors[0]
