# SPDX-License-Identifier: Apache-2.0
"""Where planted faults and controls run: each in the lanes in which it can show, from one extra program a lane."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslane.build import build_planted
from crosslane.execute import Station
from crosslane.lanes import lanes_for_host
from crosslane.manifest import Manifest
from crosslane.model import Cell, Implementation, Lane, Registry
from crosslane.plan import BEYOND_4_GIB, manifest_of, native_lane
from crosslane.plants import Plant, plant_lanes
from crosslane.registry import implementation_named
from crosslane.stations import Stations, programs_for

__all__ = ["Spot", "build_plants", "lanes_of_plants", "spots_of", "unplaced"]

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Spot:
    """One plant in one lane: the changed subject, and what answers for it.

    ``near`` is the same subject natively, where the lane is an emulated one of the host's architecture and the plant
    shows in the native lane too.
    """

    plant: Plant
    lane: Lane
    subject: Station
    oracle: Station
    blocks: Station
    manifest: Manifest
    implementation: Implementation
    registry: Registry
    near: Station | None = None

    @property
    def cell(self) -> str:
        """The cell that the plant was put into."""
        return str(Cell(self.plant.algorithm, self.plant.driver, self.lane.name))


def lanes_of_plants(
    registry: Registry, plants: Sequence[Plant], lanes: Iterable[Lane] | None = None
) -> list[tuple[Lane, list[Plant]]]:
    """The lanes of this host (or of ``lanes``) with the plants that are tried in each; lanes without any are left out.

    Lanes that are built alike share their program, so that each has all plants that are tried in one of them.
    """
    chosen = list(lanes_for_host(registry) if lanes is None else lanes)
    placed = {lane.name: [item for item in plants if lane in plant_lanes(registry, item, chosen)] for lane in chosen}
    return [(lane, placed[lane.name]) for lane in chosen if placed[lane.name]]


def unplaced(registry: Registry, plants: Iterable[Plant]) -> tuple[str, ...]:
    """The plants that no lane of this host takes, as text: each with the lanes in which it shows."""
    here = lanes_for_host(registry)
    return tuple(
        f"{plant.name} ({', '.join(lane.name for lane in plant_lanes(registry, plant, registry.lanes))})"
        for plant in plants
        if not plant_lanes(registry, plant, here)
    )


def build_plants(
    registry: Registry, plants: Sequence[Plant], lanes: Sequence[Lane], progress: Progress | None = None
) -> dict[str, Path]:
    """Build the extra programs; maps the name of a lane to its program."""
    builds = {plant.name: {lane.build for lane in plant_lanes(registry, plant, registry.lanes)} for plant in plants}
    fitting = [(lane, [plant for plant in plants if lane.build in builds[plant.name]]) for lane in lanes]
    built = build_planted(registry, fitting, progress=progress)
    return dict(zip((lane.name for lane in lanes), built, strict=True))


def spots_of(
    registry: Registry,
    plants: Sequence[Plant],
    *,
    seed: str,
    lanes: Sequence[Lane] | None = None,
    cells: frozenset[str] | None = None,
    require_sandbox: bool = False,
    progress: Progress | None = None,
) -> list[Spot]:
    """Every plant in every lane where it is tried, built; with ``cells`` just those in these cells.

    Where one of them needs a message of more than 4 GiB, the limits of all processes leave room for it.

    Raises BadInput with the compiler's words, MissingTool or HarnessFault.
    """
    placed = lanes_of_plants(registry, plants, lanes)
    wanted = [
        (plant, lane)
        for lane, inside in placed
        for plant in inside
        if cells is None or str(Cell(plant.algorithm, plant.driver, lane.name)) in cells
    ]
    if not wanted:
        return []
    judge_lane = native_lane(registry)
    needed = [lane for lane, _ in placed if any(lane is item for _, item in wanted)]
    programs = build_plants(registry, plants, needed, progress)
    room = BEYOND_4_GIB if any(plant.large for plant, _ in wanted) else 0
    built = programs_for(registry, [judge_lane], progress)
    stations = Stations(registry, built, require_sandbox=require_sandbox, large_len=room)
    return [_spot(registry, stations, programs, judge_lane, plant, lane, seed) for plant, lane in wanted]


def _spot(
    registry: Registry,
    stations: Stations,
    programs: Mapping[str, Path],
    judge_lane: Lane,
    plant: Plant,
    lane: Lane,
    seed: str,
) -> Spot:
    item = implementation_named(registry, plant.driver)
    generic = next(i for i in registry.implementations if i.cipher == item.cipher and i.is_generic)
    mode = plant.algorithm.mode
    symbol, mode_name = (item.symbol, plant.name) if plant.in_mode else (plant.symbol, mode)
    changed = Station((), symbol, mode_name, item.cipher)
    is_near = lane.runner == "qemu" and lane.build == judge_lane.build
    is_near = is_near and judge_lane in plant_lanes(registry, plant, [judge_lane])
    return Spot(
        plant=plant,
        lane=lane,
        subject=stations.of_program(programs[lane.name], lane, changed),
        oracle=stations.of(generic, judge_lane, mode),
        blocks=stations.of(generic, judge_lane, "ecb"),
        manifest=manifest_of(registry, plant.algorithm, seed),
        implementation=item,
        registry=registry,
        near=stations.of_program(programs[lane.name], judge_lane, changed) if is_near else None,
    )
