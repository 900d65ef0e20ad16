# SPDX-License-Identifier: Apache-2.0
"""Every driver answers as the generic implementation does, operation by operation, in up to four contexts."""

from __future__ import annotations

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from crosslane.strategies import Pair, machine_for


def test_contexts_agree(pair: Pair) -> None:
    run_state_machine_as_test(machine_for(pair), settings=settings())
    assert pair.num_compared > 0
