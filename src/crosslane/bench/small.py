# SPDX-License-Identifier: Apache-2.0
"""Short messages: no implementation may need many more instructions than what would run in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crosslane.bench.counting import Counts
from crosslane.bench.jobs import Job, real_len
from crosslane.bench.tables import grid
from crosslane.model import Implementation, Registry
from crosslane.registry import implementation_named

__all__ = [
    "MOST_MORE",
    "SMALL_SIZES",
    "Excess",
    "excesses",
    "fall_back",
    "small_sizes",
    "small_table",
    "with_fall_backs",
]

SMALL_SIZES = (8, 16, 24, 32, 40, 48, 56, 63)
"""Message lengths in bytes: all whole blocks below 64, and the longest that is none."""
MOST_MORE = 0.05
"""The most instructions more than the fall-back needs, as a part of its."""

_LIMIT = 64
# What every CPU of an architecture has, so that nothing runs for the want of it.
_ALWAYS = frozenset({"neon"})


@dataclass(frozen=True)
class Excess:
    """Instructions of an implementation and its fall-back by size, of one algorithm, direction and lane."""

    job: Job
    name: str
    base: str
    numbers: dict[int, tuple[int, int]]

    @property
    def worst(self) -> float:
        """The greatest part that it needs more; negative where it always needs less."""
        return max(ours / theirs for ours, theirs in self.numbers.values()) - 1.0


def fall_back(item: Implementation, registry: Registry) -> Implementation:
    """Return what runs in an implementation's place: the first by priority on a CPU that lacks some feature of it.

    It is the generic one where nothing else is left.
    """
    others = [
        other
        for other in registry.implementations
        if other.cipher == item.cipher and other.isa in ("any", item.isa) and other.driver != item.driver
    ]
    lower = [other for other in others if other.priority < item.priority and not _needs_all(other, item)]
    generic = [other for other in others if other.is_generic]
    return max(lower or generic, key=lambda other: (other.priority, other.driver))


def _needs_all(other: Implementation, item: Implementation) -> bool:
    """Whether one runs only where the other does too; both may need nothing."""
    return set(item.features) - _ALWAYS <= set(other.features) and not other.is_generic


def with_fall_backs(registry: Registry, jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs with every implementation's fall-back among the subjects, without those of generic ones alone."""
    found = []
    for job in jobs:
        items = [implementation_named(registry, subject.name) for subject in job.subjects]
        special = [item for item in items if not item.is_generic]
        names = dict.fromkeys(item.driver for item in special)
        subjects = {subject.name: subject for subject in job.subjects if subject.name in names}
        for item in special:
            base = fall_back(item, registry)
            subjects.setdefault(base.driver, replace(job.subjects[0], name=base.driver, symbol=base.symbol))
        if special:
            found.append(replace(job, subjects=tuple(subjects.values())))
    return found


def small_sizes(job: Job) -> tuple[int, ...]:
    """Return the sizes below 64 bytes at which a job's messages differ."""
    return tuple({real_len(job, size): size for size in SMALL_SIZES if real_len(job, size) < _LIMIT}.values())


def excesses(registry: Registry, counts: Counts, chosen: Sequence[str]) -> list[Excess]:
    """Return a job's comparisons of the drivers ``chosen``, each with its fall-back."""
    found = []
    for subject in counts.job.subjects:
        item = implementation_named(registry, subject.name)
        if item.is_generic or item.driver not in chosen:
            continue
        base = fall_back(item, registry).driver
        sizes = [size for name, size in counts.instructions if name == item.driver]
        numbers = {
            real_len(counts.job, size): (counts.instructions[item.driver, size], counts.instructions[base, size])
            for size in sizes
            if (base, size) in counts.instructions
        }
        if numbers:
            found.append(Excess(counts.job, item.driver, base, numbers))
    return found


def small_table(found: Sequence[Excess]) -> str:
    """One row a driver, algorithm and direction: what it needs more than its fall-back, by message length."""
    sizes = sorted({size for item in found for size in item.numbers})
    rows = [["driver", "fall-back", "algorithm", "lane", *(f"{size} B" for size in sizes), "verdict"]]
    for item in sorted(found, key=lambda item: (item.name, -item.worst)):
        row = [item.name, item.base, f"{item.job.algorithm} {item.job.direction[:3]}", item.job.lane.name]
        for size in sizes:
            ours, theirs = item.numbers.get(size, (0, 0))
            row.append(f"{100 * (ours / theirs - 1):+.1f} %" if theirs else "-")
        rows.append([*row, "holds" if item.worst <= MOST_MORE else "missed"])
    missed = sorted({item.name for item in found if item.worst > MOST_MORE})
    return (
        f"instructions of one message, against those of the fall-back; at most {100 * MOST_MORE:+.0f} % are allowed\n"
        f"{grid(rows, left=(0, 1, 2, 3, len(sizes) + 4))}\n"
        f"of {len({item.name for item in found})} implementations "
        + (f"{len(missed)} need more: {', '.join(missed)}" if missed else "none needs more")
    )
