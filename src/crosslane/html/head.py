# SPDX-License-Identifier: Apache-2.0
"""What a reader sees first: is it green, and if not, what is to be done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from crosslane.formats.outcomes import Gated, is_green
from crosslane.html.found import Found
from crosslane.html.looks import Look, counted
from crosslane.records import CellResult
from crosslane.results import RunResult

__all__ = ["Action", "Head", "Share", "head_of"]

_MOST_ACTIONS = 12


@dataclass(frozen=True)
class Action:
    """One thing to do: about what, what is wrong, what to do, a command, and where in the page there is more."""

    about: str
    text: str
    cure: str
    command: str = ""
    anchor: str = ""


@dataclass(frozen=True)
class Share:
    """Cells of one look: how many, and where their part of a bar of 1,000 begins and how wide it is."""

    look: Look
    count: int
    begins: float
    width: float


@dataclass(frozen=True)
class Head:
    """``state`` decides shape and colour: green, red, or ``part`` where an interrupted run is green so far."""

    state: Literal["green", "red", "part"]
    title: str
    sentences: tuple[str, ...]
    actions: tuple[Action, ...]
    more: int
    shares: tuple[Share, ...]


def head_of(result: RunResult, found: Sequence[Found], gated: Gated | None) -> Head:
    """The answer of a run, or of a gate that judged it."""
    actions = list(_gate_actions(gated) if gated is not None else _actions(result, found))
    green = is_green(result, gated)
    state: Literal["green", "red", "part"] = "green" if green else "red"
    if gated is None and len(actions) == 1 and result.unfinished:
        state = "part"
    return Head(
        state=state,
        title=_title(state, len(actions)),
        sentences=tuple(_sentences(result, found, gated)),
        actions=tuple(actions[:_MOST_ACTIONS]),
        more=max(0, len(actions) - _MOST_ACTIONS),
        shares=tuple(_shares(list(result.cells()))),
    )


def _several(count: int, word: str) -> str:
    return f"{count} {word}{'s' if count != 1 else ''}"


def _title(state: str, num_actions: int) -> str:
    if state == "green":
        return "Green: nothing to do"
    if state == "part":
        return "Not finished: what ran is green"
    return f"Red: {_several(num_actions, 'thing')} to do"


def _gate_actions(gated: Gated) -> Iterator[Action]:
    for red in gated.reds:
        yield Action(red.about, red.text, red.cure)


def _actions(result: RunResult, found: Sequence[Found]) -> Iterator[Action]:
    """What a run without a policy asks for, the suite's own faults first: behind them nothing can be believed."""
    cells = list(result.cells())
    if not cells:
        yield Action("Nothing", "No cell was run.", "Choose other cells: `crosslane list cells` prints them all.")
    if result.unfinished:
        yield Action(
            "The run was interrupted", f"{_several(len(result.unfinished), 'plan')} did not come to the end.",
            "Run it again: their cells say nothing.", anchor="idle",
        )  # fmt: skip
    yield from _broken(cells)
    for proof in result.proofs:
        if not proof.holds:
            kind = "control" if proof.control else "planted fault"
            cure = "A check does not do what it is for: mend it before you believe it."
            yield Action(f"The {kind} {proof.name}", f"In {proof.cell}: {proof.text}", cure, anchor="faults")
    for item in found:
        if not item.accepted:
            yield Action(item.title, item.text, _CURE, item.commands[0][1], item.anchor)
    yield from _other_reds(cells)


_MEND = "See it again and mend it: no finding was kept of it that could be accepted."
_CURE = "See it again, explain it, then mend it, or accept it with a reason and a date."


def _broken(cells: Sequence[CellResult]) -> Iterator[Action]:
    """Cells of which nothing can be said, each reason once."""
    cures = {
        "void": "The suite itself failed here: run the cells again, and report it if it stays.",
        "not_run": "Run the cells again: what was promised and did not run is red.",
        "unusable": "Install the library, or leave it out on purpose with --without.",
    }
    reasons: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        if cell.state in cures:
            reasons.setdefault((cell.state, cell.reason or "never began"), []).append(cell.cell)
    for (state, reason), names in reasons.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        text = f"{state.replace('_', ' ')}: {reason}"
        yield Action(f"{names[0]}{more}", text, cures[state], f"crosslane check --cell '{names[0]}'", "red")


def _other_reds(cells: Sequence[CellResult]) -> Iterator[Action]:
    """Cells that are red without a finding that was kept, each way once."""
    ways: dict[tuple[str, ...], list[CellResult]] = {}
    for cell in cells:
        told = cell.faults and not cell.untold and any(not fault.accepted for fault in cell.faults)
        if cell.red and not cell.accepted and not told and cell.state in ("ran", "declined", "not_effective"):
            failed = tuple(item.check for item in cell.judgements if item.passed is False)
            ways.setdefault(failed, []).append(cell)
    for failed, mine in ways.items():
        first = next(item.reason for item in mine[0].judgements if item.passed is False)
        more = f" and {len(mine) - 1} more" if len(mine) > 1 else ""
        text = f"{', '.join(failed)}: {first}"
        yield Action(f"{mine[0].cell}{more}", text, _MEND, f"crosslane check --cell '{mine[0].cell}'", "red")


def _sentences(result: RunResult, found: Sequence[Found], gated: Gated | None) -> Iterator[str]:
    """What a green headline does not say."""
    accepted = [item for item in found if item.accepted]
    if accepted:
        dates = sorted(item.review for item in accepted if item.review)
        until = f"; the first is to be looked at again by {dates[0]}" if dates else ""
        yield f"{len(accepted)} known finding{'s are' if len(accepted) > 1 else ' is'} accepted{until}."
    if gated is not None:
        yield f"Judged by the policy {gated.policy}."
        if gated.known:
            yield f"{_several(len(gated.known), 'red')} of the baseline too, not counted."
        yield from gated.notes
    if result.shard:
        yield f"This is part {result.shard} of a run."


def _shares(cells: Sequence[CellResult]) -> Iterator[Share]:
    begins = 0.0
    for look, count in counted(cells):
        width = 1000 * count / len(cells)
        yield Share(look, count, begins, width)
        begins += width
