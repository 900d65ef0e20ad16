# SPDX-License-Identifier: Apache-2.0
"""What further runs of a shrunk case say."""

from __future__ import annotations

import pytest

from crosslane.compare import Departure
from crosslane.findings.probes import depends_on_watcher
from crosslane.wire import Buffer, Symptom, Verdict


def departure(got: bytes = b"\1", *, symptom: Symptom = Symptom.OUTPUT) -> Departure:
    return Departure(0, Verdict.DISAGREE, symptom, 2, Buffer.OUT, 0, 0, 0, 0, b"\0", got)


@pytest.mark.parametrize("calm", [None, departure(b"\2")])
def test_what_vanishes_or_changes_without_a_watcher_depends_on_what_that_does(calm: Departure | None) -> None:
    assert depends_on_watcher([departure()] * 3, calm)


def test_what_stays_the_same_does_not() -> None:
    assert not depends_on_watcher([departure()] * 3, departure())


def test_nothing_is_said_of_what_changes_by_itself_or_of_what_the_watcher_saw() -> None:
    assert not depends_on_watcher([departure(), departure(b"\3")], None)
    assert not depends_on_watcher([departure(symptom=Symptom.ABI)] * 3, None)
    assert not depends_on_watcher([departure(symptom=Symptom.CONTEXT)] * 3, None)
    assert not depends_on_watcher([departure(symptom=Symptom.WIPE)] * 3, None)
    assert not depends_on_watcher([None], departure())
