# SPDX-License-Identifier: Apache-2.0
"""Cells for the tests of this folder, and the profile of Hypothesis: ``ci`` unless the environment names another.

With ``ci`` every driver has some of its modes natively, and every one that is made for the emulated architecture one
there; with ``nightly`` all have all.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pytest

from crosslane.data import data_root
from crosslane.isa import host_arch
from crosslane.lanes import lanes_for_host
from crosslane.model import Cell, Lane, Registry
from crosslane.plan import Selection, native_lane
from crosslane.registry import cells, load_registry
from crosslane.strategies import Pair, chosen_profile, load_profile, pairs_of, spread

_MODES_IN_CI = 4

load_profile()


@lru_cache(maxsize=1)
def registry() -> Registry:
    """The suite's implementations."""
    return load_registry(data_root())


def emulated_lane() -> Lane:
    """A lane of the gate under qemu, of another architecture than the host's."""
    lanes = lanes_for_host(registry())
    return next(
        lane for lane in lanes if lane.gate and lane.full and lane.runner == "qemu" and lane.arch != host_arch()
    )


@lru_cache(maxsize=1)
def _cells() -> tuple[str, ...]:
    """Implementations natively; emulated those that are made for that architecture, and nightly the generic ones."""
    own = {item.driver: item for item in registry().implementations}
    native, emulated = native_lane(registry()).name, emulated_lane()
    every = [cell for cell in cells(registry()) if cell.driver in own]
    here = [cell for cell in every if cell.lane == native]
    made = [cell for cell in every if cell.lane == emulated.name and own[cell.driver].isa == emulated.arch]
    if chosen_profile() == "nightly":
        generic = [cell for cell in every if cell.lane == emulated.name and cell.driver.endswith("-generic")]
        return _names([*here, *made, *generic])
    return _names([*spread(here, _MODES_IN_CI), *spread(made)])


def _names(found: list[Cell]) -> tuple[str, ...]:
    return tuple(sorted(map(str, found)))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item for each cell, for tests that ask for ``pair``."""
    if "pair" in metafunc.fixturenames:
        metafunc.parametrize("pair", _cells(), indirect=True)


@lru_cache(maxsize=1)
def _pairs() -> dict[str, Pair]:
    lanes = (native_lane(registry()).name, emulated_lane().name)
    return pairs_of(registry(), Selection(_cells(), lanes))


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """The subject and the generic implementation of a cell; skipped where the CPU of its lane lacks what it needs."""
    made = _pairs()[request.param]
    with made.again() as found:
        if found.declined:
            pytest.skip(found.declined)
        yield found
