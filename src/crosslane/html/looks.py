# SPDX-License-Identifier: Apache-2.0
"""How a verdict looks: a shape and a word beside the colour, so that none of the three is needed alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crosslane.records import CellResult
from crosslane.verdicts import cell_verdict

__all__ = ["LOOKS", "Look", "counted", "look_of", "worst"]


@dataclass(frozen=True)
class Look:
    """``kind`` is the class in the style sheet: ``bad``, ``void``, ``known``, ``warn``, ``good`` or ``dim``."""

    word: str
    shape: str
    kind: str


LOOKS = {
    "VOID": Look("void", "◆", "void"),
    "DID NOT RUN": Look("did not run", "◇", "void"),
    "UNUSABLE": Look("unusable", "▲", "void"),
    "FINDING": Look("finding", "✕", "bad"),
    "accepted": Look("accepted", "⊗", "known"),
    "not compared": Look("not compared", "?", "warn"),
    "agreed": Look("agreed", "✓", "good"),
    "declined": Look("declined", "\N{EN DASH}", "dim"),
    "not effective": Look("no effect", "○", "dim"),
}
"""By verdict, from the one that a reader has to see first to the one that says least."""

_ORDER = list(LOOKS.values())


def look_of(cell: CellResult) -> Look:
    """The look of a cell; of a red one all of whose findings are accepted, that."""
    return LOOKS["accepted" if cell.accepted else cell_verdict(cell)]


def worst(looks: Iterable[Look]) -> Look:
    """The look that a reader has to see first; at least one is given."""
    return min(looks, key=_ORDER.index)


def counted(cells: Sequence[CellResult]) -> list[tuple[Look, int]]:
    """How many cells have each look, the one to be seen first in front."""
    counts = Counter(look_of(cell) for cell in cells)
    return sorted(counts.items(), key=lambda item: _ORDER.index(item[0]))
