# SPDX-License-Identifier: Apache-2.0
"""Which blocks of which messages are wrong, and what that says of the code: pure arithmetic on sets of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["Kind", "Pattern", "pattern", "ranges"]

Kind = Literal["all", "lane", "step", "rest"]


@dataclass(frozen=True)
class Pattern:
    """Where blocks are wrong, over messages of many lengths. Numbers are of blocks.

    ``kind``: all blocks; ``lane`` some places of a step, or all of one kind of step; ``step`` what lies behind the
    first one; ``rest`` some lengths and not longer ones, in what is left behind steps. ``least`` is the shortest
    message with a wrong block and ``first`` that block; ``places`` are the wrong ones of a message of ``shown`` blocks.
    """

    kind: Kind
    least: int
    first: int
    shown: int
    places: tuple[int, ...]
    unwritten: bool = False
    period: int = 0


def pattern(rows: Mapping[int, frozenset[int]], ways: int, *, unwritten: bool = False) -> Pattern | None:
    """The pattern of the wrong blocks by message length; None where none is wrong.

    ``ways`` is the width of the widest step; ``unwritten``: every wrong byte still holds what lay there before.
    """
    failing = sorted(length for length, wrong in rows.items() if wrong)
    if not failing:
        return None
    least = failing[0]
    first = min(rows[least])
    wide = max((n for n in rows if n >= 2 and n % ways == 0 and n <= 2 * ways), default=0)
    shown = wide if rows.get(wide) else least
    kind, period = _kind(rows, ways, least, wide)
    found = Pattern(kind, least, first, shown, tuple(sorted(rows[shown])), unwritten, period)
    if unwritten:
        return Pattern("rest", least, first, least, tuple(sorted(rows[least])), unwritten=True)
    return found


def _kind(rows: Mapping[int, frozenset[int]], ways: int, least: int, wide: int) -> tuple[Kind, int]:
    """What kind of pattern, and its period in blocks."""
    if all(rows[n] == frozenset(range(n)) for n in rows if n):
        return "all", 0
    wrong = rows.get(wide, frozenset())
    if not wrong:
        return _behind_steps(rows, least), 0
    period = _period(wrong, wide, ways)
    if period:
        return "lane", period
    return ("step" if 0 < min(rows[least]) == least - 1 else "lane"), 0


def _period(wrong: frozenset[int], length: int, ways: int) -> int:
    """The least number of blocks after which the wrong places of a message repeat; 0 where they do not."""
    for period in range(1, length // 2 + 1):
        repeats = all((place in wrong) == (place + period in wrong) for place in range(length - period))
        if length % period == 0 and repeats:
            return max(period, 2) if ways > 1 else period
    return 0


def _behind_steps(rows: Mapping[int, frozenset[int]], least: int) -> Kind:
    """Where whole wide steps are right: what is left behind them."""
    longer = rows.get(least + 1, frozenset())
    if least == 1:
        return "lane"
    if min(rows[least]) < least - 1:
        return "lane"
    if not longer:
        return "rest"
    return "step" if least in longer else "lane"


def ranges(numbers: tuple[int, ...]) -> str:
    """Numbers as text, with neighbours joined: ``0 to 3, 7``."""
    parts: list[str] = []
    at = 0
    while at < len(numbers):
        end = at
        while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
            end += 1
        parts.append(str(numbers[at]) if end == at else f"{numbers[at]} to {numbers[end]}")
        at = end + 1
    shown = parts[:8] + (["and more"] if len(parts) > 8 else [])
    return ", ".join(shown)
