# SPDX-License-Identifier: Apache-2.0
"""Cells for the tests of this folder, and the profile of Hypothesis: ``ci`` unless the environment names another."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pytest

from crosslane.data import data_root
from crosslane.isa import host_arch
from crosslane.lanes import lanes_for_host
from crosslane.model import Lane, Registry
from crosslane.plan import Selection, native_lane
from crosslane.registry import cells, load_registry
from crosslane.strategies import Pair, load_profile, pairs_of

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


def _cells() -> list[str]:
    """All implementations natively; emulated those that are made for that architecture, and the generic ones."""
    own = {item.driver: item for item in registry().implementations}
    native, emulated = native_lane(registry()), emulated_lane()
    found = []
    for cell in cells(registry()):
        item = own.get(cell.driver)
        if item is not None and (
            cell.lane == native.name
            or (cell.lane == emulated.name and (item.isa == emulated.arch or item.driver.endswith("-generic")))
        ):
            found.append(str(cell))
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item for each cell, for tests that ask for ``pair``."""
    if "pair" in metafunc.fixturenames:
        metafunc.parametrize("pair", _cells(), indirect=True)


@lru_cache(maxsize=1)
def _pairs() -> dict[str, Pair]:
    lanes = (native_lane(registry()).name, emulated_lane().name)
    drivers = tuple(item.driver for item in registry().implementations)
    return pairs_of(registry(), Selection(drivers, lanes))


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """The subject and the generic implementation of a cell; skipped where the CPU of its lane lacks what it needs."""
    made = _pairs()[request.param]
    with made.again() as found:
        if found.declined:
            pytest.skip(found.declined)
        yield found
