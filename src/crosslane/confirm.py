# SPDX-License-Identifier: Apache-2.0
"""Looking at a departure again: alone in a fresh process, then behind its neighbours with the results locked."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from crosslane.compare import Departure, compare
from crosslane.execute import Station, execute_alone
from crosslane.generate import select_cases
from crosslane.wire import Batch, Buffer, Results, Watch

__all__ = ["confirm"]

Repeats = Literal["alone", "in_batch", "flaky"]


def _expected_for(batch: Batch, oracle: Results | Station, indexes: list[int]) -> tuple[Batch, Results]:
    some = select_cases(batch, np.array(indexes))
    if isinstance(oracle, Station):
        return some, execute_alone(oracle, some, watch=Watch(0))
    raise TypeError("an oracle is a station or was answered before")


def confirm(
    batch: Batch, departure: Departure, subject: Station, oracle: Station | tuple[Batch, Results]
) -> tuple[Departure, Repeats]:
    """Replay a departing case; ``oracle`` is a station, or one case with its known answer.

    Returns the departure as the replay shows it, with the case's index in ``batch``, and how it repeats. A case that
    departs only behind others, because one of them wrote over its results, gives that one's departure instead: no
    innocent is blamed.
    """
    if isinstance(oracle, Station):
        alone, expected = _expected_for(batch, oracle, [departure.case])
    else:
        alone, expected = oracle
    again = compare(alone, expected, execute_alone(subject, alone))
    for found in again.departures:
        if found.key == departure.key:
            return replace(found, case=departure.case), "alone"
    locked = execute_alone(subject, batch, strict=True)  # all of it: a culprit may also stand behind its victim
    reference = execute_alone(oracle, batch, watch=Watch(0)) if isinstance(oracle, Station) else locked
    for found in compare(batch, reference, locked).departures:
        if found.buffer in (Buffer.RESULTS, Buffer.BATCH) or found.key == departure.key:
            return found, "in_batch"
    return departure, "flaky"
