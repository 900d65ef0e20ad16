# SPDX-License-Identifier: Apache-2.0
"""What trying each plant in its lanes comes to: which faults the gate's counts catch, and in how many lanes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from crosslane.planted.selftest import Tried

__all__ = ["MOST_MEDIAN_S", "TABLE_VERSION", "Score", "Totals", "as_table", "holds", "report", "scores", "totals"]

TABLE_VERSION = 1
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


@dataclass(frozen=True)
class Totals:
    """The score of a whole search. ``num_cells`` tried a fault; seconds until one was caught are None without any."""

    num_faults: int
    num_caught: int
    num_cells: int
    num_cells_caught: int
    median_s: float | None
    slowest_s: float | None
    num_controls: int
    num_green: int

    @property
    def text(self) -> str:
        """One sentence."""
        spread = "" if self.median_s is None else f", median {self.median_s:.2f} s, slowest {self.slowest_s:.2f} s"
        return (
            f"{self.num_caught} of {self.num_faults} planted faults were caught by the check that is meant to, in "
            f"{self.num_cells_caught} of {self.num_cells} cells{spread}; {self.num_green} of {self.num_controls} "
            "controls stayed green"
        )


def totals(tried: Sequence[Tried]) -> Totals:
    """How many faults were caught and controls stayed green, and how soon."""
    found, times = scores(tried), _times(tried)
    faults, controls = ([item for item in found if item.control is kind] for kind in (False, True))
    num_held = sum(len(item.held) for item in faults)
    return Totals(
        num_faults=len(faults),
        num_caught=sum(item.holds for item in faults),
        num_cells=num_held + sum(len(item.missed) for item in faults),
        num_cells_caught=num_held,
        median_s=statistics.median(times) if times else None,
        slowest_s=times[-1] if times else None,
        num_controls=len(controls),
        num_green=sum(item.holds for item in controls),
    )


def report(tried: Sequence[Tried], *, whole: bool) -> Iterator[str]:
    """The faults that not every lane caught, the totals, and what is too slow."""
    yield from (score.text for score in scores(tried) if score.text)
    yield totals(tried).text
    if whole and _slow(tried):
        yield _slow(tried)


def as_table(tried: Sequence[Tried], seed: str, *, whole: bool) -> dict[str, Any]:
    """All of it for JSON: ``docs/reference/results.md`` has the keys."""
    return {
        "version": TABLE_VERSION,
        "seed": seed,
        "holds": holds(tried, whole=whole),
        **asdict(totals(tried)),
        "lines": list(report(tried, whole=whole)),
        "tried": [item.as_dict() for item in tried],
    }


def _slow(tried: Sequence[Tried]) -> str:
    """What is wrong with the median time; empty where nothing is."""
    times = _times(tried)
    median = statistics.median(times) if times else 0.0
    if median < MOST_MEDIAN_S:
        return ""
    return f"the median until a fault is caught is {median:.2f} s, and must be less than {MOST_MEDIAN_S:.0f} s"
