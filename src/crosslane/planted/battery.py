# SPDX-License-Identifier: Apache-2.0
"""What proves each check: its planted faults and controls, counted by the architecture of the lanes that try them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crosslane.isa import ARCHES
from crosslane.model import Registry
from crosslane.plants import CHECKS, Plant, plant_lanes

__all__ = ["Proven", "proven_checks", "shortfalls"]

LEAST_FAULTS = 2
LEAST_CONTROLS = 1


@dataclass(frozen=True)
class Proven:
    """A check with the faults that it is meant to catch and its own controls, in lanes of each architecture."""

    check: str
    faults: dict[str, tuple[str, ...]]
    controls: dict[str, tuple[str, ...]]


def proven_checks(registry: Registry, plants: Iterable[Plant]) -> list[Proven]:
    """Every check in the order of names; lanes of all hosts count."""
    names = sorted(path.stem for path in (registry.root / CHECKS).glob("[a-z]*.py"))
    placed = [(plant, {lane.arch for lane in plant_lanes(registry, plant, registry.lanes)}) for plant in plants]

    def those(check: str, *, control: bool) -> dict[str, tuple[str, ...]]:
        mine = [(plant.name, arches) for plant, arches in placed if (plant.check, plant.control) == (check, control)]
        return {arch: tuple(name for name, arches in mine if arch in arches) for arch in ARCHES}

    return [Proven(name, those(name, control=False), those(name, control=True)) for name in names]


def shortfalls(proven: Sequence[Proven]) -> list[str]:
    """One sentence for each check and architecture with too few faults or controls."""
    return [
        f"{item.check} has {len(found[arch])} {kind} in lanes of {arch} and needs {least}: add to "
        f"{CHECKS}/{item.check}.faults.toml"
        for item in proven
        for arch in ARCHES
        for kind, found, least in (
            ("planted faults", item.faults, LEAST_FAULTS),
            ("controls", item.controls, LEAST_CONTROLS),
        )
        if len(found[arch]) < least
    ]
