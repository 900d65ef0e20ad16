# SPDX-License-Identifier: Apache-2.0
"""Which cells a campaign's rounds run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from crosslane.fuzzing.choose import HORIZON, Board, Candidate, Choice, draw_one, weights
from crosslane.fuzzing.facts import CellFacts, CellOutcome, Outcome, Pair, Snapshot, Totals

PLANS = ("ctr(a)", "cbc(a)", "xts(b)")


def candidates(per_plan: int = 20) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(f"{name}/d{index % 5}@lane{index // 5}", plan, f"{name}/d{index % 5}", "old", ("wide", "tail"), 2)
        for plan, name in enumerate(PLANS)
        for index in range(per_plan)
    )


def board(cells: tuple[Candidate, ...] | None = None, seed: str = "any sentence") -> Board:
    return Board(seed, candidates() if cells is None else cells, PLANS, 4)


def outcome(choice: Choice, **changes: object) -> Outcome:
    cells = tuple(CellOutcome(cell, "old", "ran", "", 64, 0, (("wide", "2-3"),), (), 0.1) for cell in choice.cells)
    made = Outcome(choice.number, PLANS[choice.plan], choice.next_batch, 64 * len(cells), cells, 1.0, 1.0)
    return replace(made, **changes)  # type: ignore[arg-type]


def play(on: Board, first: int, last: int) -> list[Choice]:
    choices = []
    for number in range(first, last + 1):
        choice = on.choose(number)
        assert choice is not None
        choices.append(choice)
        on.note(outcome(choice))
    return choices


def facts_of(choices: list[Choice]) -> Snapshot:
    """What a state has after these rounds."""
    cells: dict[str, CellFacts] = {}
    reached: dict[str, dict[Pair, int]] = {}
    batches: dict[str, int] = {}
    for choice in choices:
        batches[PLANS[choice.plan]] = choice.next_batch
        for cell in choice.cells:
            cells[cell] = CellFacts(cell, 1, 64, 0, choice.number, 0.0, "old", "ran", "", 0.1, 0)
            reached.setdefault(cell, {("wide", "2-3"): choice.number})
    return Snapshot("x", "any sentence", Totals(rounds=len(choices)), cells, batches, reached)


def test_weights_grow_with_age_with_changed_sources_and_with_what_is_missing() -> None:
    ages = np.array([0, 1, 10, 10, 10, 1 << 40])
    found = weights(ages, np.array([0, 0, 0, 1, 0, 0], bool), np.array([0, 0, 0, 0, 3, 0])).tolist()
    assert found == [*sorted(found[:3]), 8 * found[2], found[2] * 5 // 2, 2 * ((1 << 16) + 1) ** 2]
    assert all(isinstance(weight, int) and weight > 0 for weight in found)


def test_a_draw_is_in_proportion_to_the_weights() -> None:
    step = (1 << 64) // 1024
    drawn = Counter(draw_one([1, 0, 3], word * step) for word in range(1024))
    assert drawn == {0: 256, 2: 768}
    assert draw_one([0, 5], (1 << 64) - 1) == 1


def test_no_cell_starves_and_none_is_left_for_long() -> None:
    on = board()
    seen = Counter(cell for choice in play(on, 1, 600) for cell in choice.cells)
    assert len(seen) == 60
    assert min(seen.values()) * 3 > max(seen.values())
    assert (601 - on.last).max() < 120


def test_every_cell_runs_once_before_age_decides() -> None:
    seen = {cell for choice in play(board(), 1, 40) for cell in choice.cells}
    assert len(seen) >= 55


def test_the_batches_of_a_plan_have_no_gap_and_no_overlap() -> None:
    at = dict.fromkeys(range(3), 0)
    for choice in play(board(), 1, 200):
        assert choice.first_batch == at[choice.plan]
        assert choice.next_batch == choice.first_batch + 2
        at[choice.plan] = choice.next_batch


def test_a_resumed_campaign_makes_the_choices_of_one_that_was_not_ended() -> None:
    whole = play(board(), 1, 300)
    for ended in (1, 5, HORIZON - 1, HORIZON, HORIZON + 1, 150, 299):
        resumed = board()
        resumed.load(facts_of(whole[:ended]))
        assert play(resumed, ended + 1, 300) == whole[ended:]


def test_choices_depend_on_the_sentence() -> None:
    assert play(board(), 1, 20) != play(board(seed="another sentence"), 1, 20)


def test_changed_sources_are_run_soon_and_what_was_known_of_them_is_forgotten() -> None:
    cells = candidates()
    ran = facts_of(play(board(cells), 1, 300))
    waits = [0, 0]
    for target in [item.cell for item in cells[::7]]:
        kinds = {target: {"disagree output alone": 3}}
        changed = tuple(replace(item, digest="new") if item.cell == target else item for item in cells)
        for which, on in enumerate((board(cells), board(changed))):
            on.load(replace(ran, kinds=kinds))
            first = next(choice for choice in play(on, 301, 700) if target in choice.cells)
            waits[which] += first.number - 300
            known = which == 0 and any(first.known.values())
            assert first.known[target] == (set(kinds[target]) if known else frozenset())
    assert 2 * waits[1] < waits[0]


def test_paths_that_another_lane_takes_make_a_cell_heavier() -> None:
    on = board()
    choices = play(on, 1, HORIZON + 40)
    assert int(on.missing.max()) > 0
    first = choices[0].cells[0]
    at = [item.cell for item in on.candidates].index(first)
    assert on.missing[at] == 1  # "tail" was never taken, "wide" was


def test_a_cell_that_declines_is_asked_again_only_when_its_code_changes() -> None:
    cells = candidates(4)
    on = board(cells)
    target = cells[0].cell

    def noted(number: int) -> Choice:
        choice = on.choose(number)
        assert choice is not None
        done = outcome(choice)
        on.note(
            replace(
                done,
                cells=tuple(replace(cell, state="declined") if cell.cell == target else cell for cell in done.cells),
            )
        )
        return choice

    choices = [noted(number) for number in range(1, 400)]
    last = max(choice.number for choice in choices if target in choice.cells)
    first = min(choice.number for choice in choices if target in choice.cells)
    assert last < first + HORIZON
    declined = CellFacts(target, 1, 0, 0, last, 0.0, "old", "declined", "", 0.0, first)
    state = replace(facts_of(choices), cells={**facts_of(choices).cells, target: declined})
    again, changed = board(cells), board((replace(cells[0], digest="new"), *cells[1:]))
    for resumed, asked in ((again, False), (changed, True)):
        resumed.load(state)
        assert any(target in choice.cells for choice in play(resumed, 400, 460)) is asked


def test_a_campaign_all_of_whose_cells_decline_has_no_choice_left() -> None:
    on = board(candidates(1))
    for number in range(1, HORIZON + 20):
        choice = on.choose(number)
        if choice is None:
            break
        done = outcome(choice)
        on.note(replace(done, cells=tuple(replace(cell, state="declined") for cell in done.cells)))
    assert choice is None


def test_a_known_kind_is_looked_into_again_at_times() -> None:
    on = board(candidates(1))
    looked = 0
    for number in range(1, 1000):
        choice = on.choose(number)
        assert choice is not None
        done = outcome(choice)
        kinds = (("disagree output alone", 1),)
        on.note(replace(done, cells=tuple(replace(cell, kinds=kinds) for cell in done.cells)))
        looked += number > 2 * HORIZON and not all(choice.known.values())
    assert 20 < looked < 120


def test_paths_under_an_emulator_are_watched_now_and_then_once_all_are_seen() -> None:
    cells = tuple(replace(item, declared=("wide",), emulated=item.cell.startswith("ctr")) for item in candidates(4))
    settled = Counter(
        (cell.partition("(")[0], cell in choice.settled)
        for choice in play(board(cells), 1, 600)
        if choice.number > 3 * HORIZON
        for cell in choice.cells
    )
    assert {mode for mode, is_settled in settled if is_settled} == {"ctr"}
    assert settled["ctr", True] > 2 * settled["ctr", False] > 0


def test_stored_cases_are_replayed_where_code_did_not_run_yet() -> None:
    cells = candidates()
    choices = play(board(cells), 1, 300)
    first = [choice for choice in choices if choice.fresh]
    assert {cell for choice in first for cell in choice.cells} == {item.cell for item in cells}
    assert not any(choice.fresh for choice in choices[100:])
    changed = board(tuple(replace(item, digest="new") if item == cells[3] else item for item in cells))
    changed.load(facts_of(choices))
    assert [choice.number for choice in play(changed, 301, 500) if choice.fresh] == [
        next(choice.number for choice in play_again(cells, choices) if cells[3].cell in choice.cells)
    ]


def play_again(cells: tuple[Candidate, ...], choices: list[Choice]) -> list[Choice]:
    """What a campaign does whose cell 3 has changed, from round 301 on."""
    on = board(tuple(replace(item, digest="new") if item == cells[3] else item for item in cells))
    on.load(facts_of(choices))
    return play(on, 301, 500)
