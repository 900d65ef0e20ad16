# SPDX-License-Identifier: Apache-2.0
"""Every driver answers as the generic implementation does, operation by operation, in up to four contexts."""

from __future__ import annotations

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from crosslane.strategies import Pair, machine_for

_MOST_RUNS = 100
"""Of many steps each: as many as there are examples of sessions would take days over all cells."""


def test_contexts_agree(pair: Pair) -> None:
    chosen = settings(max_examples=min(settings().max_examples, _MOST_RUNS))
    run_state_machine_as_test(machine_for(pair), settings=chosen)
    assert pair.num_compared > 0
