# SPDX-License-Identifier: Apache-2.0
"""Which CPU features a finding needs: the smallest set with which it appears, by hiding the others from dispatch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from crosslane.compare import Departure, compare
from crosslane.execute import Station, execute_alone, execute_unless_declined
from crosslane.findings.case import Case, whole_batch
from crosslane.findings.classify import same_face
from crosslane.isa import FEATURES
from crosslane.stations import hide_bits
from crosslane.wire import Watch

__all__ = ["Bisected", "bisect_features", "smallest"]


@dataclass(frozen=True)
class Bisected:
    """``needed`` are the features without any of which it does not appear; with them alone it does.

    ``declines`` are those of them without which the implementation declines, so that nobody can say what it would do.
    """

    needed: tuple[str, ...]
    declines: tuple[str, ...]


def smallest(names: Sequence[str], appears: Callable[[frozenset[str]], bool]) -> tuple[str, ...]:
    """The smallest set of names with which something appears, given that it does with all.

    ``appears`` is asked with the set that is there. What is missed when it alone is gone must be there; where these are
    not enough the others are taken away one by one, and what stays has nothing to spare. In the order of ``names``.
    """
    every = frozenset(names)
    needed = frozenset(name for name in names if not appears(every - {name}))
    if needed == every or appears(needed):
        return tuple(name for name in names if name in needed)
    left = every
    for name in names:
        if name not in needed and appears(left - {name}):
            left -= {name}
    return tuple(name for name in names if name in left)


def bisect_features(subject: Station, oracle: Station, case: Case, departure: Departure, arch: str) -> Bisected:
    """The smallest set of CPU features with which a sealed case departs as ``departure``; none for other architectures
    than those with features of their own."""
    names = FEATURES.get(arch, ())
    batch = whole_batch(case)
    expected = execute_alone(oracle, batch, watch=Watch(0))
    declined: set[frozenset[str]] = set()

    def appears(there: frozenset[str]) -> bool:
        hide = subject.hide | hide_bits(arch, [name for name in names if name not in there])
        got = execute_unless_declined(replace(subject, hide=hide), batch, strict=True)
        if got is None:
            declined.add(there)
            return False
        found = compare(batch, expected, got, limit=len(batch) + 1)
        last = next((item for item in found.departures if item.case == len(batch) - 1), None)
        return last is not None and same_face(departure, last)

    needed = smallest(names, appears)
    every = frozenset(names)
    return Bisected(needed, tuple(name for name in needed if every - {name} in declined))
