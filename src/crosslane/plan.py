# SPDX-License-Identifier: Apache-2.0
"""What a run will do, decided before it begins: cells, counts, programs and vectors, one plan per algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslane import sandbox
from crosslane.build import ShimProgram, build_lanes, build_launcher
from crosslane.corpora import VectorFile
from crosslane.errors import BadInput, HarnessFault
from crosslane.execute import Station
from crosslane.isa import host_arch
from crosslane.lanes import lanes_for_host
from crosslane.manifest import Manifest, manifest_for
from crosslane.model import Algorithm, Cell, Implementation, Lane, Mode, Registry
from crosslane.names import match_cell, select_cells
from crosslane.registry import cells, cipher_named, implementation_named, mode_named
from crosslane.toolchain import runner_command

__all__ = ["DEFAULT_SEED", "AlgorithmPlan", "CellPlan", "Counts", "Selection", "make_plans", "programs_for"]

DEFAULT_SEED = "every implementation agrees with the generic one"

BLOCK_MODE = "ecb"
"""The mode that gives the references their block function."""
MEMORY_LIMIT = 4 << 30
CPU_LIMIT_S = 900


@dataclass(frozen=True)
class Counts:
    """Comparisons per cell: where the full grids run natively, where they run under qemu, and everywhere else."""

    native: int = 131_072
    emulated: int = 24_576
    other: int = 640

    def of(self, lane: Lane) -> int:
        """The count of a cell in ``lane``."""
        if not lane.full:
            return self.other
        return self.native if lane.runner == "native" else self.emulated


@dataclass(frozen=True)
class Selection:
    """What to run: cell patterns and lane names (all that the gate wants where empty)."""

    patterns: tuple[str, ...] = ()
    lanes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CellPlan:
    """One cell: how to start its subject and how many comparisons it gets; ``paths`` are the code paths asked of it."""

    cell: Cell
    implementation: Implementation
    arch: str
    native: bool
    full: bool
    paths: tuple[str, ...]
    station: Station
    comparisons: int


@dataclass(frozen=True)
class AlgorithmPlan:
    """All selected cells of one algorithm, with what they share: the oracle, its block function, vectors, reference."""

    algorithm: Algorithm
    manifest: Manifest
    oracle: Station
    blocks: Station
    reference: Path
    cells: tuple[CellPlan, ...]
    vectors: tuple[VectorFile, ...]

    @property
    def total(self) -> int:
        """Comparisons planned, vectors aside."""
        return sum(cell.comparisons for cell in self.cells)


def _selected_lanes(registry: Registry, selection: Selection) -> list[Lane]:
    lanes = {lane.name: lane for lane in lanes_for_host(registry)}
    if not selection.lanes:
        return [lane for lane in lanes.values() if lane.gate]
    unknown = [name for name in selection.lanes if name not in lanes]
    if unknown:
        raise BadInput(
            f"{unknown[0]!r} is no lane of this host: lanes are {', '.join(sorted(lanes))}; correct the name"
        )
    return [lanes[name] for name in dict.fromkeys(selection.lanes)]


def selected_cells(registry: Registry, selection: Selection) -> tuple[list[Cell], list[Lane]]:
    """The cells that a selection means, and the lanes they lie in; raises BadInput where it means none."""
    lanes = _selected_lanes(registry, selection)
    names = {lane.name for lane in lanes}
    every = cells(registry)
    offered = [cell for cell in every if cell.lane in names]
    if not selection.patterns:
        return offered, lanes
    for pattern in selection.patterns:
        if not any(match_cell(cell, pattern) for cell in offered):
            elsewhere = select_cells(every, (pattern,))  # names the nearest where there is none at all
            raise BadInput(
                f"the pattern {pattern!r} matches cells such as {elsewhere[0]}, but none in the lanes "
                f"{', '.join(sorted(names))}: name its lane with --lane"
            )
    chosen = select_cells(offered, selection.patterns)
    used = {cell.lane for cell in chosen}
    return chosen, [lane for lane in lanes if lane.name in used]


def _oracle_lane(registry: Registry) -> Lane:
    """The native lane of this host, where the generic implementations answer for all others."""
    for lane in lanes_for_host(registry):
        if lane.runner == "native" and lane.gate:
            return lane
    raise HarnessFault(
        f"ci/lanes.toml has no native lane of the gate for {host_arch()}, which the oracle needs: add one"
    )


class _Commands:
    """Builds the command lines of shims: launcher, runner, program."""

    def __init__(self, root: Path, *, require_sandbox: bool) -> None:
        self._launcher = build_launcher(root)
        self._require = require_sandbox
        self.state = sandbox.probe(self._launcher)
        if require_sandbox and self.state.missing:
            raise HarnessFault(
                f"this host refuses the sandbox layers {', '.join(self.state.missing)} and --require-sandbox was "
                "given: run on a host that grants them, or without the option"
            )

    def command(self, lane: Lane, program: Path) -> tuple[str, ...]:
        """The command line of a shim program in a lane."""
        runner = runner_command(lane)
        reads = [program, *(sandbox.system_read_paths() if runner else ())]
        return tuple(
            sandbox.launcher_argv(
                self._launcher,
                [*runner, str(program)],
                memory_limit=MEMORY_LIMIT,
                cpu_limit_s=CPU_LIMIT_S,
                read_paths=reads,
                require=self._require,
            )
        )


def programs_for(
    registry: Registry, lanes: Sequence[Lane], progress: Callable[[str], None] | None = None
) -> dict[tuple[str, str], Path]:
    """Build all that the lanes need; maps (lane, driver) to the shim program that holds the implementation."""
    built: dict[str, tuple[ShimProgram, ...]] = build_lanes(registry, lanes, progress=progress)
    return {
        (lane, implementation.driver): program.path
        for lane, programs in built.items()
        for program in programs
        for implementation in program.implementations
    }


def _hide_bits(lane: Lane) -> int:
    """The lane's hidden features as the bits of subject.h."""
    x86 = ("ssse3", "sse4_1", "aes", "pclmul", "avx", "avx2", "vaes", "vpclmul", "gfni", "bmi2")
    arm = ("neon", "aes", "pmull", "sm4", "sha3")
    names, base = (x86, 0) if lane.arch == "x86_64" else (arm, 32)
    return sum(1 << (base + names.index(name)) for name in lane.hides)


def _asked_paths(implementation: Implementation, mode: Mode) -> tuple[str, ...]:
    """The declared paths that the mode can take: those named for it, and in a mode that is not serial the others."""
    named = [name.rpartition(":") for name in implementation.paths]
    return tuple(name for only, _, name in named if only == mode.name or (not only and not mode.serial))


@dataclass(frozen=True)
class RunPlan:
    """All algorithm plans of one run, and what the host does not grant."""

    algorithms: tuple[AlgorithmPlan, ...]
    lanes: tuple[Lane, ...]
    sandbox_missing: tuple[str, ...]


def make_plans(
    registry: Registry,
    selection: Selection,
    *,
    seed: str = DEFAULT_SEED,
    counts: Counts | None = None,
    vectors: Sequence[VectorFile] = (),
    require_sandbox: bool = False,
    progress: Callable[[str], None] | None = None,
) -> RunPlan:
    """Decide everything and build what is missing; raises BadInput, MissingTool or HarnessFault."""
    counts = counts or Counts()
    chosen, lanes = selected_cells(registry, selection)
    oracle_lane = _oracle_lane(registry)
    programs = programs_for(registry, [*lanes, *([oracle_lane] if oracle_lane not in lanes else [])], progress)
    commands = _Commands(registry.root, require_sandbox=require_sandbox)
    by_name = {lane.name: lane for lane in lanes}
    plans = []
    for algorithm in sorted({cell.algorithm for cell in chosen}):
        mode = mode_named(registry, algorithm.mode)
        generic = next(i for i in registry.implementations if i.cipher == algorithm.cipher and i.is_generic)

        def station(implementation: Implementation, lane: Lane, mode: str = algorithm.mode) -> Station:
            program = programs[lane.name, implementation.driver]
            return Station(
                commands.command(lane, program), implementation.symbol, mode, implementation.cipher, _hide_bits(lane)
            )

        plans.append(
            AlgorithmPlan(
                algorithm=algorithm,
                manifest=manifest_of(registry, algorithm, seed),
                oracle=station(generic, oracle_lane),
                blocks=station(generic, oracle_lane, BLOCK_MODE),
                reference=mode.folder,
                cells=tuple(
                    CellPlan(
                        cell=cell,
                        implementation=implementation_named(registry, cell.driver),
                        arch=by_name[cell.lane].arch,
                        paths=_asked_paths(implementation_named(registry, cell.driver), mode),
                        native=by_name[cell.lane].runner == "native",
                        full=by_name[cell.lane].full,
                        station=station(implementation_named(registry, cell.driver), by_name[cell.lane]),
                        comparisons=counts.of(by_name[cell.lane]),
                    )
                    for cell in chosen
                    if cell.algorithm == algorithm
                ),
                vectors=tuple(file for file in vectors if file.algorithm == str(algorithm)),
            )
        )
    return RunPlan(tuple(plans), tuple(lanes), commands.state.missing)


def manifest_of(registry: Registry, algorithm: Algorithm, seed: str) -> Manifest:
    """The manifest of an algorithm for a seed sentence."""
    return manifest_for(
        cipher_named(registry, algorithm.cipher),
        mode_named(registry, algorithm.mode),
        [item for item in registry.implementations if item.cipher == algorithm.cipher],
        seed,
    )
