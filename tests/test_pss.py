# SPDX-License-Identifier: Apache-2.0
"""The memory of a process tree counts children, and what they share with us once."""

from __future__ import annotations

import os
import subprocess
import sys

from crosslane.pss import PeakMemory, tree_pss

_HOLD = """
import sys
held = bytearray(64 << 20)
held[::4096] = b"x" * len(held[::4096])
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_childs_memory_counts() -> None:
    before = tree_pss(os.getpid())
    with PeakMemory() as memory:
        child = subprocess.Popen([sys.executable, "-c", _HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        during = tree_pss(os.getpid())
        child.communicate()
    assert before > 1 << 20
    assert during - before > 60 << 20
    assert memory.peak > 1 << 20


def test_a_process_that_is_gone_counts_nothing() -> None:
    assert tree_pss(2**22 + 1) == 0
