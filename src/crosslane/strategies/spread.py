# SPDX-License-Identifier: Apache-2.0
"""Which cells a short run takes, where all of them would take long. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from crosslane.model import Cell

__all__ = ["spread"]


def spread(cells: Iterable[Cell], each: int = 1) -> list[Cell]:
    """At most ``each`` cells of every driver, in the order of drivers; of its modes those that fewest drivers had.

    Depends on nothing but which cells there are: the same ones are taken every time, whatever their order.
    """
    by_driver: dict[str, list[Cell]] = {}
    for cell in sorted(cells, key=str):
        by_driver.setdefault(cell.driver, []).append(cell)
    taken: Counter[str] = Counter()
    found: list[Cell] = []
    for _, mine in sorted(by_driver.items()):
        chosen = sorted(mine, key=lambda cell: (taken[cell.algorithm.mode], str(cell)))[:each]
        taken.update(cell.algorithm.mode for cell in chosen)
        found += chosen
    return found
