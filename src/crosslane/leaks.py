# SPDX-License-Identifier: Apache-2.0
"""The trial ``memory``: whether a library gives back what it takes, batch after batch in one process."""

from __future__ import annotations

from collections.abc import Callable

from crosslane.client import SharedMemory
from crosslane.desk import Desk
from crosslane.execute import CAPACITY, Executor
from crosslane.plan import CellPlan
from crosslane.records import Finding
from crosslane.wire import Batch, encode_batch_into

__all__ = ["MEMORY", "NUM_BATCHES", "note_leak", "see_leak"]

MEMORY = "memory"
NUM_BATCHES = 8
"""Batches that a replay runs in one process."""
_MOST = 48 << 20
_MOST_EMULATED = 512 << 20
"""Bytes that a process may grow by after its first batch. An emulator keeps what it has translated."""


def _most(plan: CellPlan) -> int:
    return _MOST_EMULATED if plan.emulated else _MOST


def note_leak(desk: Desk) -> None:
    """Keep a finding where the memory of a library's process has grown too much, and exchange the process."""
    executor = desk.executor
    if not desk.plan.provider or executor.growth <= _most(desk.plan):
        return
    executor.close()
    if (MEMORY,) not in desk.findings:
        desk.num_departed += 1
        text = _text(executor.growth, desk.comparisons)
        desk.findings[MEMORY,] = Finding(MEMORY, "leak", "none", "in_batch", 1, text)
    executor.growth = 0


def _text(growth: int, num_messages: int) -> str:
    return (
        f"its process holds {growth >> 20} MiB more after {num_messages:,} messages than after its first batch: the "
        "library does not give back what it takes"
    )


def see_leak(plan: CellPlan, batch: Callable[[int], Batch]) -> str:
    """What a fresh process shows in some batches; empty where its memory does not grow too much."""
    memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
    executor = Executor(plan.station, memory)
    try:
        num_messages = 0
        for number in range(NUM_BATCHES):
            made = batch(number)
            encode_batch_into(made, memory.view)
            executor.start(made, len(made))
            executor.finish()
            num_messages += int(made.messages.sum())
            if executor.growth > _most(plan):
                return _text(executor.growth, num_messages)
        return ""
    finally:
        executor.release()
        memory.close()
