# SPDX-License-Identifier: Apache-2.0
"""What every format says alike: the outcome of a check of a cell, and what a gate adds to a result."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from crosslane.records import CellResult, Judgement
from crosslane.report import complaints
from crosslane.results import RunResult

__all__ = ["Gated", "Outcome", "Red", "accepted_text", "is_green", "one_line", "outcome_of", "plain"]

_BROKEN = ("void", "not_run", "unusable")
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


@dataclass(frozen=True)
class Red:
    """One thing that a policy forbids: its rule, what it is about, what is so, and what to do.

    ``about`` is a cell, a lane, a finding or a file; ``detail`` tells two reds of one rule about one thing apart.
    """

    rule: str
    about: str
    detail: str
    text: str
    cure: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What the same red has in another run."""
        return (self.rule, self.about, self.detail)


@dataclass(frozen=True)
class Gated:
    """A gate's verdict of a result: its policy's file, the rules that it judged by, and what is red.

    ``known`` is red in the baseline too and does not count. ``notes`` are sentences.
    """

    policy: str
    rules: tuple[str, ...]
    reds: tuple[Red, ...]
    known: tuple[Red, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """``error`` is a fault that is none of the subject: nothing is said about it. ``accepted`` is a known failure."""

    kind: Literal["passed", "failed", "skipped", "accepted", "error"]
    text: str = ""


def outcome_of(cell: CellResult, judgement: Judgement) -> Outcome:
    """What one check came to in one cell."""
    if cell.state in _BROKEN:
        return Outcome("error", f"{cell.state.replace('_', ' ')}: {cell.reason or 'it never began'}")
    if judgement.passed is None:
        return Outcome("skipped", judgement.reason)
    if judgement.passed:
        return Outcome("passed")
    if cell.accepted:
        return Outcome("accepted", accepted_text(cell))
    lines = [line for line in complaints(cell) if line]
    return Outcome("failed", "\n".join([judgement.reason, *lines]))


def accepted_text(cell: CellResult) -> str:
    """Which accepted findings make a cell red, with the reasons of their deviations."""
    return "; ".join(f"accepted finding {fault.id}: {fault.accepted}" for fault in cell.faults if fault.accepted)


def is_green(result: RunResult, gated: Gated | None) -> bool:
    """Whether the result is green: by the policy where there is one, else where no cell is red but accepted ones."""
    if gated is not None:
        return not gated.reds
    cells = list(result.cells())
    broken = any(cell.state in _BROKEN or (cell.red and not cell.accepted) for cell in cells)
    return bool(cells) and not broken and not result.unfinished and all(proof.holds for proof in result.proofs)


def plain(text: str) -> str:
    """Text of a subject without what XML forbids, a terminal obeys, or turns the direction of writing."""
    return _UNPRINTABLE.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def one_line(text: str) -> str:
    """The same on one line."""
    return " ".join(plain(text).split())
