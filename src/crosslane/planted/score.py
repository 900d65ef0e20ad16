# SPDX-License-Identifier: Apache-2.0
"""What trying each plant in its lanes comes to: which faults the gate's counts catch, and in how many lanes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crosslane.planted.selftest import Tried

__all__ = ["MOST_MEDIAN_S", "Score", "holds", "report", "scores"]

MOST_MEDIAN_S = 2.0
"""The median time until a fault is caught must be less, over all faults and lanes."""


@dataclass(frozen=True)
class Score:
    """One plant over all lanes that tried it, by their cells; ``held`` in these, ``missed`` in those."""

    name: str
    control: bool
    held: tuple[str, ...]
    missed: tuple[str, ...]
    missed_full: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """A control must be green everywhere. A fault must be caught in one lane at least, and in all with the full
        grids: the few cases of another lane show that code runs there, and are not meant to find everything.
        """
        if self.control:
            return not self.missed
        return bool(self.held) and not self.missed_full

    @property
    def text(self) -> str:
        """How often it was caught and where not; empty where it was everywhere, and for a control."""
        if self.control or not self.missed:
            return ""
        num_lanes = len(self.held) + len(self.missed)
        return f"{self.name}: caught in {len(self.held)} of {num_lanes} lanes, not in {', '.join(self.missed)}"


def scores(tried: Sequence[Tried]) -> list[Score]:
    """The score of each plant, in the order in which they come first."""
    by_name: dict[str, list[Tried]] = {}
    for item in tried:
        by_name.setdefault(item.name, []).append(item)
    return [
        Score(
            name=name,
            control=items[0].control,
            held=tuple(item.cell for item in items if item.holds),
            missed=tuple(item.cell for item in items if not item.holds),
            missed_full=tuple(item.cell for item in items if item.full and not item.holds),
        )
        for name, items in by_name.items()
    ]


def _times(tried: Sequence[Tried]) -> list[float]:
    return sorted(item.took_s for item in tried if item.caught and not item.control)


def holds(tried: Sequence[Tried], *, whole: bool) -> bool:
    """Whether all plants hold, and with ``whole``, where all were tried with the gate's counts, soon enough."""
    return all(score.holds for score in scores(tried)) and not (whole and _slow(tried))


def report(tried: Sequence[Tried], *, whole: bool) -> Iterator[str]:
    """The faults that not every lane caught, the totals, and what is too slow."""
    found = scores(tried)
    yield from (score.text for score in found if score.text)
    yield _summary(tried, found)
    if whole and _slow(tried):
        yield _slow(tried)


def _summary(tried: Sequence[Tried], found: Sequence[Score]) -> str:
    """How many faults were caught and controls stayed green, and how soon."""
    faults, controls = ([item for item in found if item.control is kind] for kind in (False, True))
    times = _times(tried)
    spread = f", median {statistics.median(times):.2f} s, slowest {times[-1]:.2f} s" if times else ""
    num_held = sum(len(item.held) for item in faults)
    num_lanes = num_held + sum(len(item.missed) for item in faults)
    return (
        f"{sum(item.holds for item in faults)} of {len(faults)} planted faults were caught by the check that is meant "
        f"to, in {num_held} of {num_lanes} cells{spread}; {sum(item.holds for item in controls)} of {len(controls)} "
        "controls stayed green"
    )


def _slow(tried: Sequence[Tried]) -> str:
    """What is wrong with the median time; empty where nothing is."""
    times = _times(tried)
    median = statistics.median(times) if times else 0.0
    if median < MOST_MEDIAN_S:
        return ""
    return f"the median until a fault is caught is {median:.2f} s, and must be less than {MOST_MEDIAN_S:.0f} s"
