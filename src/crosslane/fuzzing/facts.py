# SPDX-License-Identifier: Apache-2.0
"""What a campaign knows, as plain data: what a round came to, and what the state says of cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from crosslane.findings.keep import Looked

__all__ = ["CellFacts", "CellOutcome", "Hour", "KeptFinding", "Outcome", "Pair", "Snapshot", "Totals"]

Pair = tuple[str, str]
"""A code path and a length class in which it was taken."""


@dataclass(frozen=True)
class CellOutcome:
    """What one cell came to in a round. ``digest`` is of the program that ran; ``taken`` are its paths in this round.

    ``kinds`` counts the cases that departed, by verdict, symptom and how they repeat.
    """

    cell: str
    digest: str
    state: str
    reason: str
    comparisons: int
    departed: int
    taken: tuple[Pair, ...]
    kinds: tuple[tuple[str, int], ...]
    cpu_s: float


@dataclass(frozen=True)
class Outcome:
    """What a round came to. ``planned`` are the comparisons that were asked for; ``next_batch`` is the algorithm's.

    ``looked`` are its departures, shrunk, as the store takes them; ``failed`` names cells whose departures no case
    shows, with the reason.
    """

    number: int
    plan: str
    next_batch: int
    planned: int
    cells: tuple[CellOutcome, ...]
    took_s: float
    cpu_s: float
    notes: tuple[str, ...] = ()
    looked: tuple[Looked, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()

    @property
    def comparisons(self) -> int:
        """Comparisons made."""
        return sum(cell.comparisons for cell in self.cells)


@dataclass(frozen=True)
class CellFacts:
    """What the state says of a cell. ``last_round`` is when it ran last, ``last_s`` when by the state's clock.

    ``declined`` is the round since which it declines, 0 where it does not. Times in seconds.
    """

    cell: str
    rounds: int
    comparisons: int
    departed: int
    last_round: int
    last_s: float
    digest: str
    state: str
    reason: str
    cpu_s: float
    declined: int


@dataclass(frozen=True)
class Totals:
    """Sums of a campaign. ``clock_s`` is its own clock, in seconds since the epoch, which never goes back."""

    rounds: int = 0
    planned: int = 0
    comparisons: int = 0
    departed: int = 0
    void: int = 0
    busy_s: float = 0.0
    cpu_s: float = 0.0
    clock_s: float = 0.0


@dataclass(frozen=True)
class KeptFinding:
    """A finding of the store that the campaign saw: first and last in these rounds, in so many of them."""

    id: str
    text: str
    accepted: bool
    first_round: int
    last_round: int
    sightings: int


@dataclass(frozen=True)
class Hour:
    """Throughput of one hour of the state's clock: CPU time in seconds over all processes."""

    begin_s: int
    rounds: int
    comparisons: int
    cpu_s: float


@dataclass(frozen=True)
class Snapshot:
    """All that a state holds. ``reached`` has, for each cell, the round in which each path was first taken in each
    length class; ``kinds`` likewise the round in which each kind of departure was first seen.
    """

    campaign: str
    seed: str
    totals: Totals
    cells: Mapping[str, CellFacts] = field(default_factory=dict)
    batches: Mapping[str, int] = field(default_factory=dict)
    reached: Mapping[str, Mapping[Pair, int]] = field(default_factory=dict)
    kinds: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    findings: tuple[KeptFinding, ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    hours: tuple[Hour, ...] = ()
