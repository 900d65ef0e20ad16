# SPDX-License-Identifier: Apache-2.0
"""A crash of two threads under an emulator counts where it comes again, and is a note where it does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from crosslane import trials
from crosslane.desk import Desk
from crosslane.trials import THREADS, TrialBatch, run_threads
from crosslane.wire import Symptom, Verdict


def a_desk(*, emulated: bool) -> Any:
    return SimpleNamespace(
        alive=True, hello=SimpleNamespace(watchers=(THREADS,)), executor=SimpleNamespace(close=lambda: None),
        plan=SimpleNamespace(arch="x86_64", station=None, emulated=emulated, cell="ecb(sm4)/sm4-generic@i386_qemu"),
        num_departed=0, num_threaded=0, findings={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("emulated", "verdict", "again", "noted"),
    [
        (True, Verdict.CRASH, ["", "", ""], True),
        (True, Verdict.CRASH, ["", "crashes", ""], False),
        (True, Verdict.DISAGREE, ["", "", ""], False),
        (False, Verdict.CRASH, ["", "", ""], False),
    ],
)
def test_only_an_emulators_crash_that_does_not_come_again_is_a_note(
    monkeypatch: pytest.MonkeyPatch, emulated: bool, verdict: Verdict, again: list[str], noted: bool
) -> None:
    seen = SimpleNamespace(text="setkey crashes", verdict=verdict, symptom=Symptom.NONE, case=0)
    monkeypatch.setattr(trials, "_ask", lambda *_: seen)
    monkeypatch.setattr(trials, "see_threads", lambda *_: again)
    monkeypatch.setattr("crosslane.wire.encode_batch_into", lambda *_: None)
    desk = a_desk(emulated=emulated)
    batch: Any = SimpleNamespace(messages=np.array([8, 8]))
    memory: Any = SimpleNamespace(view=None)
    notes = run_threads([cast(Desk, desk)], TrialBatch(0, batch, (0, 1)), "0123456789abcdef", memory)
    assert bool(notes) is noted
    assert bool(desk.findings) is not noted
    assert desk.num_departed == (0 if noted else 1)
    assert desk.num_threaded == 16
    if noted:
        assert "ecb(sm4)/sm4-generic@i386_qemu: setkey crashes; not again in 3 processes" in notes[0]
