# SPDX-License-Identifier: Apache-2.0
"""Faults that no single case shows: the whole cell is run, as ``check`` runs it, and its check must be red."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from crosslane.checks import Check
from crosslane.conduct import conduct
from crosslane.corpora import VectorFile
from crosslane.large import LARGE
from crosslane.model import Cell, Registry
from crosslane.plan import BEYOND_4_GIB, LARGE_LEN, AlgorithmPlan, CellPlan, asked_paths
from crosslane.planted.spots import Spot
from crosslane.plants import Plant
from crosslane.records import CellResult
from crosslane.registry import mode_named
from crosslane.vectors import all_vectors

__all__ = ["caught_by", "own_vectors", "red_checks", "run_whole"]

LARGE_COMPARISONS = 64
"""Comparisons beside a message of more than 4 GiB, which alone shows the fault."""


@lru_cache(maxsize=4)
def own_vectors(registry: Registry) -> tuple[VectorFile, ...]:
    """The vectors of ``corpora``."""
    return tuple(all_vectors(registry, imported=False)[0])


def run_whole(spot: Spot, count: int) -> CellResult:
    """Run the cell of a plant with ``count`` comparisons and the vectors of corpora.

    A plant of the check ``large`` gets the large message in every lane. One that only shows beyond 4 GiB gets such a
    message, and few comparisons beside it.
    """
    registry = spot.registry
    item, lane, algorithm = spot.implementation, spot.lane, spot.plant.algorithm
    mode = mode_named(registry, algorithm.mode)
    native = lane.runner == "native" and lane.usual
    cell = CellPlan(
        cell=Cell(algorithm, item.driver, lane.name),
        needed_features=item.features,
        arch=lane.arch,
        native=native,
        full=lane.full,
        build_lane=not lane.usual,
        paths=asked_paths(item, mode),
        station=spot.subject,
        comparisons=min(count, LARGE_COMPARISONS) if spot.plant.large else count,
        ways=item.ways,
        hides=lane.hides,
        declared=tuple(name.rpartition(":")[2] for name in item.paths),
        wipes=item.wipes,
        emulated=lane.runner == "qemu",
        large=native or lane.full or spot.plant.check == LARGE,
    )
    plan = AlgorithmPlan(
        name=str(algorithm),
        algorithm=algorithm,
        manifest=spot.manifest,
        oracle=spot.oracle,
        blocks=spot.blocks,
        reference=mode.folder,
        root=registry.root,
        without=(),
        cells=(cell,),
        vectors=own_vectors(registry),
        large_len=BEYOND_4_GIB if spot.plant.large else LARGE_LEN,
    )
    return conduct(plan).cells[0]


def red_checks(checks: Sequence[Check], cell: CellResult) -> tuple[str, ...]:
    """The checks that a cell fails."""
    return tuple(check.name for check in checks if check.judge(cell).passed is False)


def caught_by(plant: Plant, red: Sequence[str]) -> bool:
    """Whether a plant shows in the checks that are red: its own, and of a control any departure."""
    return plant.check in red or (plant.control and "agreement" in red)
