# SPDX-License-Identifier: Apache-2.0
"""Short messages: no implementation may need many more instructions than what would run in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosslane.bench.counting import Counter, Counts, count, counter_for
from crosslane.bench.jobs import Job, real_len
from crosslane.bench.measure import Settings
from crosslane.bench.tables import grid
from crosslane.build import build_bench
from crosslane.errors import BadInput, MissingTool
from crosslane.model import Implementation, Lane, Registry
from crosslane.registry import implementation_named

__all__ = [
    "SMALL_SIZES",
    "Excess",
    "compare_small",
    "fall_back",
    "is_default_somewhere",
    "small_sizes",
    "small_table",
    "with_fall_backs",
]

SMALL_SIZES = (8, 16, 24, 32, 40, 48, 56, 63)
"""Message lengths in bytes: all whole blocks below 64, and the longest that is none."""

_MOST = 1.05
_LIMIT = 64
# What every CPU of an architecture has, so that nothing runs for the want of it.
_ALWAYS = frozenset({"neon"})


@dataclass(frozen=True)
class Excess:
    """Instructions of an implementation and its fall-back by message length, of one algorithm, direction and lane."""

    job: Job
    name: str
    base: str
    is_default: bool
    numbers: Mapping[int, tuple[int, int]]

    @property
    def worst(self) -> float:
        """The greatest of its instructions over those of the fall-back."""
        return max(ours / theirs for ours, theirs in self.numbers.values())

    @property
    def verdict(self) -> str:
        """``holds`` or ``missed``; ``not default`` for what is slower and runs only where somebody asks for it."""
        if self.worst <= _MOST:
            return "holds"
        return "missed" if self.is_default else "not default"


def _siblings(item: Implementation, registry: Registry) -> list[Implementation]:
    return [
        other
        for other in registry.implementations
        if other.cipher == item.cipher and other.isa in ("any", item.isa) and other.driver != item.driver
    ]


def is_default_somewhere(item: Implementation, registry: Registry) -> bool:
    """Whether there is a CPU on which an implementation is the first by priority of those that run."""
    return not any(
        other.priority > item.priority and set(other.features) - _ALWAYS <= set(item.features)
        for other in _siblings(item, registry)
    )


def fall_back(item: Implementation, registry: Registry) -> Implementation:
    """Return what runs in an implementation's place: the first by priority on a CPU that lacks some feature of it.

    It is the generic one where nothing else is left.
    """
    needed = set(item.features) - _ALWAYS
    others = [
        other
        for other in _siblings(item, registry)
        if other.is_generic
        or (
            other.priority < item.priority
            and not needed <= set(other.features)
            and is_default_somewhere(other, registry)
        )
    ]
    return max(others, key=lambda other: other.priority)


def small_sizes(job: Job) -> tuple[int, ...]:
    """Return the sizes below 64 bytes at which a job's messages differ in length."""
    return tuple({real_len(job, size): size for size in SMALL_SIZES if real_len(job, size) < _LIMIT}.values())


def with_fall_backs(registry: Registry, jobs: Sequence[Job]) -> list[Job]:
    """Return a job for each implementation of the jobs that is not generic: with its fall-back, the shortest key alone.

    Jobs without a message below 64 bytes are left out.
    """
    shortest: dict[tuple[Lane, str], int] = {}
    for job in jobs:
        key = job.lane, job.cipher.name
        shortest[key] = min(shortest.get(key, job.key_len), job.key_len)
    found = []
    for job in jobs:
        if job.key_len == shortest[job.lane, job.cipher.name] and small_sizes(job):
            for subject in job.subjects:
                item = implementation_named(registry, subject.name)
                if not item.is_generic:
                    base = fall_back(item, registry)
                    other = replace(subject, name=base.driver, symbol=base.symbol)
                    found.append(replace(job, subjects=(subject, other)))
    return found


def compare_small(
    registry: Registry, jobs: Sequence[Job], native: Lane, say: Callable[[str], None]
) -> tuple[list[Excess], list[str]]:
    """Count what every implementation of emulated jobs and its fall-back need; and say what did not run.

    What the emulator cannot run is counted in the lane ``native`` where that is of the same architecture. Raises
    ``BadInput`` where there is nothing to compare, and ``MissingTool`` where instructions cannot be counted.
    """
    pairs = with_fall_backs(registry, jobs)
    if not pairs:
        raise BadInput("none of the chosen cells is of an implementation with a fall-back; choose others")
    found: list[Excess] = []
    notes: dict[str, None] = {}
    tools = {lane: _tools(registry, lane) for lane in {native, *(pair.lane for pair in pairs)}}
    for pair in pairs:
        say(f"counting {pair.subjects[0].name}, {pair.algorithm} {pair.direction}, {pair.lane.name}")
        counts = _counted(tools, pair)
        if counts.absent and pair.lane.arch == native.arch:
            counts = _counted(tools, replace(pair, lane=native))
        if counts.absent:
            notes.update(dict.fromkeys(f"{name}: {why} ({pair.lane.name})" for name, why in counts.absent.items()))
        else:
            found.append(_excess(registry, counts))
    return found, list(notes)


def _tools(registry: Registry, lane: Lane) -> tuple[Path, Counter]:
    items = [item for item in registry.implementations if item.isa in ("any", lane.arch)]
    return build_bench(registry, lane, items), counter_for(registry.root, lane)


def _counted(tools: Mapping[Lane, tuple[Path, Counter]], pair: Job) -> Counts:
    counts = count(*tools[pair.lane], pair, Settings(sizes=small_sizes(pair), clock="none"))
    if counts.unavailable:
        raise MissingTool(f"{pair.lane.name}: {counts.unavailable}")
    return counts


def _excess(registry: Registry, counts: Counts) -> Excess:
    name, base = (subject.name for subject in counts.job.subjects)
    numbers = {
        real_len(counts.job, size): (number, counts.instructions[base, size])
        for (other, size), number in counts.instructions.items()
        if other == name
    }
    item = implementation_named(registry, name)
    return Excess(counts.job, name, base, is_default_somewhere(item, registry), numbers)


def small_table(found: Sequence[Excess]) -> str:
    """One row a driver, algorithm and direction: what it needs more than its fall-back, by message length."""
    sizes = sorted({size for item in found for size in item.numbers})
    rows = [["driver", "fall-back", "algorithm", "lane", *(f"{size} B" for size in sizes), "verdict"]]
    for item in sorted(found, key=lambda item: (item.name, -item.worst)):
        row = [item.name, item.base, f"{item.job.algorithm} {item.job.direction[:3]}", item.job.lane.name]
        for size in sizes:
            ours, theirs = item.numbers.get(size, (0, 0))
            row.append(f"{100 * (ours / theirs - 1):+.1f} %" if theirs else "-")
        rows.append([*row, item.verdict])
    missed = sorted({item.name for item in found if item.verdict == "missed"})
    return (
        f"instructions of one message, against those of the fall-back; at most {100 * (_MOST - 1):+.0f} % are allowed\n"
        f"{grid(rows, left=(0, 1, 2, 3, len(sizes) + 4))}\n"
        f"of {len({item.name for item in found})} implementations "
        + (f"{len(missed)} need more: {', '.join(missed)}" if missed else "none needs more by default")
    )
