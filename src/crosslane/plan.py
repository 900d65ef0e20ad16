# SPDX-License-Identifier: Apache-2.0
"""What a run will do, decided before it begins: cells, counts, programs and vectors, one plan per algorithm.

The cells of a provider have plans of their own, whose manifests keep to what the library computes and shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslane.corpora import VectorFile
from crosslane.directed import NamedBatch
from crosslane.errors import BadInput, HarnessFault, MissingTool
from crosslane.execute import Station
from crosslane.instances import instance_of, instances
from crosslane.isa import host_arch
from crosslane.lanes import lanes_for_host
from crosslane.manifest import Manifest, manifest_for, manifest_within
from crosslane.model import Algorithm, Cell, Domain, Implementation, Instance, Lane, Mode, Registry
from crosslane.names import match_cell, select_cells, unknown_name
from crosslane.oracles import load_oracles, oracle_names
from crosslane.quorum import Member
from crosslane.registry import cells, cipher_named, implementation_named, mode_named
from crosslane.stations import Stations, programs_for
from crosslane.switches import Effect, Prober, effect_text, seen_switches
from crosslane.wire import Watch

__all__ = [
    "BEYOND_4_GIB",
    "DEFAULT_SEED",
    "LARGE_LEN",
    "AlgorithmPlan",
    "CellPlan",
    "Counts",
    "RunPlan",
    "Selection",
    "asked_paths",
    "make_plans",
    "manifest_of",
    "native_lane",
    "selected_cells",
]

DEFAULT_SEED = "every implementation agrees with the generic one"
LARGE_LEN = (1 << 20) + 33
"""Bytes of the gate's large message, whose digests are compared."""
BEYOND_4_GIB = (1 << 32) + 4096 + 33


@dataclass(frozen=True)
class Counts:
    """Comparisons per cell: where the full grids run natively, where they run under qemu, everywhere else; of libraries
    natively and under qemu, and at most of a backend.
    """

    native: int = 65_536
    emulated: int = 24_576
    other: int = 640
    provider: int = 16_384
    provider_emulated: int = 2_048
    backend: int = 8_192

    @classmethod
    def each(cls, count: int) -> Counts:
        """The same for every cell."""
        return cls(count, count, count, count, count, count)

    def shared(self, share: int) -> Counts:
        """One part in ``share`` of them, at least one comparison each."""
        return Counts(*(max(1, count // share) for count in vars(self).values()))

    def of(self, lane: Lane) -> int:
        """The count of a cell in ``lane``."""
        if not lane.full:
            return self.other
        return self.native if lane.runner == "native" else self.emulated


@dataclass(frozen=True)
class Selection:
    """What to run: cell patterns, lane names (all that the gate wants where empty), and libraries to leave out.

    ``providers`` are instances' names: where some are given, no other cell is run.
    """

    patterns: tuple[str, ...] = ()
    lanes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()


@dataclass(frozen=True)
class CellPlan:
    """One cell: how to start its subject and how many comparisons it gets; ``paths`` are the code paths asked of it.

    ``native`` is whether it runs at the machine's own speed: neither emulated nor built in a special way.
    ``provider`` says that the subject is a library that this project did not write. ``ways`` and ``declared`` paths are
    what impl.toml says of the subject (0: nothing), which the code must say too; ``wipes`` is a claim of it. ``hides``
    are the CPU's features that it is not told of. ``emulated``: under qemu, which may end by its own fault.
    ``instance`` is the library, ``problem`` says in a sentence why it cannot be run. ``switch`` is what the switch of
    its backend was seen to do; where not ``switched`` it changes nothing for the algorithm, and nothing is run.
    ``large``: it gets the algorithm's large message, which takes an emulator long. ``watch``: what is watched.
    ``most_confirmed`` departures of one kind are replayed; further ones are counted as more of the same.
    """

    cell: Cell
    needed_features: tuple[str, ...]
    arch: str
    native: bool
    full: bool
    paths: tuple[str, ...]
    station: Station
    comparisons: int
    provider: bool = False
    build_lane: bool = False
    ways: int = 0
    declared: tuple[str, ...] = ()
    wipes: bool = False
    hides: tuple[str, ...] = ()
    emulated: bool = False
    instance: Instance | None = None
    problem: str = ""
    switch: str = ""
    switched: bool = True
    large: bool = False
    watch: Watch = Watch.ALL
    most_confirmed: int = 48


@dataclass(frozen=True)
class AlgorithmPlan:
    """Selected cells of one algorithm, with what they share: the oracle, its block function, vectors, reference.

    ``name`` is the algorithm, and the provider where the manifest keeps to a provider's domain; such a plan is
    ``bounded``: vectors beyond the manifest are not run. ``quorum`` are the libraries that can be asked about a
    departure, ``without`` those that were left out. ``large_len`` are the bytes of its large message, 0 for none.
    ``first_batch`` is the batch that it begins with; ``cases_only``: its batches are run and nothing beside them, as a
    campaign does round after round.
    ``regressions`` are stored cases that run before all else.
    """

    name: str
    algorithm: Algorithm
    manifest: Manifest
    oracle: Station
    blocks: Station
    reference: Path
    root: Path
    without: tuple[str, ...]
    cells: tuple[CellPlan, ...]
    vectors: tuple[VectorFile, ...]
    bounded: bool = False
    quorum: tuple[Member, ...] = ()
    large_len: int = LARGE_LEN
    first_batch: int = 0
    cases_only: bool = False
    regressions: NamedBatch | None = None

    @property
    def total(self) -> int:
        """Comparisons planned, vectors aside."""
        return sum(cell.comparisons for cell in self.cells)


@dataclass(frozen=True)
class RunPlan:
    """All algorithm plans of one run, and what the host does not grant."""

    algorithms: tuple[AlgorithmPlan, ...]
    lanes: tuple[Lane, ...]
    sandbox_missing: tuple[str, ...]


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


def _check_without(registry: Registry, selection: Selection) -> None:
    known = [*(provider.name for provider in registry.providers), *oracle_names(registry.root)]
    for name in selection.without:
        if name not in known:
            raise BadInput(f"there is no library {name!r} to leave out: names are {', '.join(known)}; correct the name")


def _of_providers(registry: Registry, selection: Selection, offered: list[Cell]) -> list[Cell]:
    """The cells of the providers that are asked for; raises BadInput for one that is none or has none there."""
    known = {instance.name for instance in instances(registry)}
    for name in selection.providers:
        if name not in known:
            raise unknown_name("provider", name, known, hint="run `crosslane list providers` for all")
        if not any(cell.driver == name for cell in offered):
            raise BadInput(
                f"the provider {name} has no cell in the lanes that are to run: name others with --lane, fetch its "
                "packages for them with `crosslane providers fetch`, or take it out of --provider or --without"
            )
    return [cell for cell in offered if cell.driver in selection.providers] if selection.providers else offered


def _backend_wanted(registry: Registry, selection: Selection, cell: Cell) -> bool:
    """Whether a cell with a backend is to run: those of the gate, others where a provider or a backend is named."""
    if not cell.backend or selection.providers or any(":" in pattern for pattern in selection.patterns):
        return True
    instance = instance_of(registry, cell)
    return instance is not None and instance.backend is not None and instance.backend.gate


def selected_cells(registry: Registry, selection: Selection) -> tuple[list[Cell], list[Lane]]:
    """The cells that a selection means, and the lanes they lie in; raises BadInput where it means none."""
    lanes = _selected_lanes(registry, selection)
    names = {lane.name for lane in lanes}
    _check_without(registry, selection)
    every = [cell for cell in cells(registry) if cell.driver not in selection.without]
    offered = _of_providers(registry, selection, [cell for cell in every if cell.lane in names])
    offered = [cell for cell in offered if _backend_wanted(registry, selection, cell)]
    if not selection.patterns:
        return offered, lanes
    for pattern in selection.patterns:
        if not any(match_cell(cell, pattern) for cell in offered):
            if any(match_cell(cell, pattern) for cell in cells(registry)) and selection.without:
                left_out = ", ".join(selection.without)
                raise BadInput(f"the pattern {pattern!r} matches only cells that --without {left_out} leaves out")
            elsewhere = select_cells(every, (pattern,))  # names the nearest where there is none at all
            raise BadInput(
                f"the pattern {pattern!r} matches cells such as {elsewhere[0]}, but none in the lanes "
                f"{', '.join(sorted(names))}: name its lane with --lane"
            )
    chosen = select_cells(offered, selection.patterns)
    used = {cell.lane for cell in chosen}
    return chosen, [lane for lane in lanes if lane.name in used]


def native_lane(registry: Registry) -> Lane:
    """The native lane of this host, where the generic implementations answer for all others."""
    for lane in lanes_for_host(registry):
        if lane.runner == "native" and lane.gate and lane.full:
            return lane
    raise HarnessFault(
        f"ci/lanes.toml has no native lane of the gate for {host_arch()}, which the oracle needs: add one"
    )


def asked_paths(implementation: Implementation, mode: Mode) -> tuple[str, ...]:
    """The declared paths that the mode can take: those named for it, and in a mode that is not serial the others."""
    named = [name.rpartition(":") for name in implementation.paths]
    return tuple(name for only, _, name in named if only == mode.name or (not only and not mode.serial))


def make_plans(
    registry: Registry,
    selection: Selection,
    *,
    seed: str = DEFAULT_SEED,
    counts: Counts | None = None,
    vectors: Sequence[VectorFile] = (),
    require_sandbox: bool = False,
    large_len: int = LARGE_LEN,
    progress: Callable[[str], None] | None = None,
) -> RunPlan:
    """Decide everything and build what is missing; raises BadInput, MissingTool or HarnessFault."""
    if not seed.strip():
        raise BadInput("the seed is empty; give any sentence with --seed, or leave the option out")
    chosen, lanes = selected_cells(registry, selection)
    oracle_lane = native_lane(registry)
    programs = programs_for(registry, [*lanes, *([oracle_lane] if oracle_lane not in lanes else [])], progress)
    load_oracles(registry.root, selection.without)  # a missing library is said before anything runs
    stations = Stations(registry, programs, require_sandbox=require_sandbox, large_len=large_len)
    by_name = {lane.name: lane for lane in lanes}
    switches = _switches(registry, stations, chosen, seed)
    planner = _Planner(
        registry, stations, oracle_lane, by_name, seed, counts or Counts(), selection.without, large_len, switches
    )
    plans = [
        plan
        for algorithm in sorted({cell.algorithm for cell in chosen})
        for plan in planner.plans(
            algorithm,
            [cell for cell in chosen if cell.algorithm == algorithm],
            tuple(file for file in vectors if file.algorithm == str(algorithm)),
        )
    ]
    return RunPlan(tuple(plans), tuple(lanes), stations.missing)


def _switches(registry: Registry, stations: Stations, chosen: Sequence[Cell], seed: str) -> dict[Cell, Effect | str]:
    """What the switches of the chosen cells do, or why that cannot be said."""
    found = [(cell, instance_of(registry, cell)) for cell in chosen if cell.backend]
    asked = [(cell, instance) for cell, instance in found if instance is not None]

    def manifest(cell: Cell, instance: Instance) -> Manifest:
        domain = instance.provider.domain(cell.algorithm.mode, cell.algorithm.cipher)
        whole = manifest_of(registry, cell.algorithm, seed)
        return manifest_within(whole, domain) if domain else whole

    return seen_switches(Prober(registry, stations.launcher), asked, manifest)


@dataclass(frozen=True)
class _Planner:
    """Plans algorithm by algorithm."""

    registry: Registry
    stations: Stations
    oracle_lane: Lane
    lanes: dict[str, Lane]
    seed: str
    counts: Counts
    without: tuple[str, ...]
    large_len: int
    switches: dict[Cell, Effect | str]

    def plans(
        self, algorithm: Algorithm, chosen: Sequence[Cell], vectors: tuple[VectorFile, ...]
    ) -> Iterable[AlgorithmPlan]:
        """Our own and third parties' cells together, those of each provider by themselves, wherever they come from."""
        found = [(cell, instance_of(self.registry, cell)) for cell in chosen]
        own = [cell for cell, instance in found if instance is None]
        if own:
            planned = tuple(self._own_cell(cell) for cell in own)
            yield self._plan(str(algorithm), algorithm, planned, vectors, None)
        judged = [(cell, instance) for cell, instance in found if instance is not None]
        for provider in dict.fromkeys(instance.provider for _, instance in judged):
            name = f"{algorithm} within {provider.name}"
            domain = provider.domain(algorithm.mode, algorithm.cipher)
            planned = tuple(self._library_cell(*pair) for pair in judged if pair[1].provider == provider)
            yield self._plan(name, algorithm, planned, vectors, domain)

    def _plan(
        self,
        name: str,
        algorithm: Algorithm,
        planned: tuple[CellPlan, ...],
        vectors: tuple[VectorFile, ...],
        domain: Domain | None,
    ) -> AlgorithmPlan:
        generic = next(i for i in self.registry.implementations if i.cipher == algorithm.cipher and i.is_generic)
        manifest = manifest_of(self.registry, algorithm, self.seed)
        return AlgorithmPlan(
            name=name,
            algorithm=algorithm,
            manifest=manifest_within(manifest, domain) if domain else manifest,
            oracle=self.stations.of(generic, self.oracle_lane, algorithm.mode),
            blocks=self.stations.of(generic, self.oracle_lane, algorithm.mode).blocks,
            reference=mode_named(self.registry, algorithm.mode).folder,
            root=self.registry.root,
            without=self.without,
            cells=planned,
            vectors=vectors,
            bounded=domain is not None,
            quorum=tuple(self._members(algorithm, manifest)),
            large_len=self.large_len,
        )

    def _members(self, algorithm: Algorithm, manifest: Manifest) -> Iterable[Member]:
        """The libraries that have the algorithm and are installed; a missing one is said where its cells are run."""
        for instance in instances(self.registry):
            provider = instance.provider
            domain = provider.domain(algorithm.mode, algorithm.cipher)
            if domain is None or provider.name in self.without or not instance.of_system or instance.backend:
                continue
            try:
                station = self.stations.of_instance(instance, algorithm.mode, algorithm.cipher)
            except (BadInput, MissingTool):
                continue
            yield Member(provider.name, station, manifest_within(manifest, domain))

    def _own_cell(self, cell: Cell) -> CellPlan:
        implementation, lane = implementation_named(self.registry, cell.driver), self.lanes[cell.lane]
        mode = mode_named(self.registry, cell.algorithm.mode)
        native = lane.runner == "native" and lane.usual
        return CellPlan(
            cell=cell,
            needed_features=implementation.features,
            arch=lane.arch,
            native=native,
            full=lane.full,
            build_lane=not lane.usual,
            paths=asked_paths(implementation, mode),
            station=self.stations.of(implementation, lane, mode.name),
            comparisons=self.counts.of(lane),
            ways=implementation.ways,
            wipes=implementation.wipes,
            hides=lane.hides,
            emulated=lane.runner == "qemu",
            large=native or lane.full,
            declared=tuple(name.rpartition(":")[2] for name in implementation.paths),
        )

    def _library_cell(self, cell: Cell, instance: Instance) -> CellPlan:
        lane = self.lanes[cell.lane]
        station, problem = self._library(instance, cell.algorithm)
        seen = self.switches.get(cell, "")
        switch = effect_text(instance.backend, seen) if instance.backend and isinstance(seen, Effect) else ""
        emulated = lane.runner == "qemu"
        count = self.counts.provider_emulated if emulated else self.counts.provider
        count = min(count, self.counts.backend) if instance.backend else count
        switched = not isinstance(seen, Effect) or seen.effective
        return CellPlan(
            cell=cell,
            needed_features=(),
            arch=lane.arch,
            native=lane.runner == "native",
            large=not emulated,
            full=not emulated,
            paths=(),
            station=station,
            comparisons=count if switched else 0,
            provider=True,
            wipes=instance.provider.wipes,
            emulated=emulated,
            instance=instance,
            problem=problem or (seen if isinstance(seen, str) else ""),
            switch=switch,
            switched=switched,
        )

    def _library(self, instance: Instance, algorithm: Algorithm) -> tuple[Station, str]:
        """The station of a library, and why it cannot be run where it cannot: the others go on."""
        try:
            return self.stations.of_instance(instance, algorithm.mode, algorithm.cipher), ""
        except (BadInput, MissingTool) as error:
            return Station((), instance.provider.name, algorithm.mode, algorithm.cipher), str(error)


def manifest_of(registry: Registry, algorithm: Algorithm, seed: str) -> Manifest:
    """The manifest of an algorithm for a seed sentence."""
    return manifest_for(
        cipher_named(registry, algorithm.cipher),
        mode_named(registry, algorithm.mode),
        [item for item in registry.implementations if item.cipher == algorithm.cipher],
        seed,
    )
