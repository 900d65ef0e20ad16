# SPDX-License-Identifier: Apache-2.0
"""Memory of the whole process tree: proportional set sizes, so that memory shared with the shims counts once."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Self

__all__ = ["PeakMemory", "tree", "tree_pss"]

_EVERY_S = 1.0


def _parents() -> dict[int, int]:
    """Every process and its parent."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                text = (entry / "stat").read_text()
            except OSError:
                continue  # it ended while we looked
            found[int(entry.name)] = int(text.rpartition(")")[2].split()[1])
    return found


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def tree(root: int) -> set[int]:
    """A process and all its descendants."""
    parents = _parents()
    found = {root}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found


def tree_pss(root: int) -> int:
    """Bytes of a process and all its descendants."""
    return sum(_pss(pid) for pid in tree(root))


class PeakMemory:
    """Looks at this process's tree once a second until stopped; ``peak`` is in bytes. Use as a context manager."""

    def __init__(self) -> None:
        self.peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._stop.wait(_EVERY_S):
            self.peak = max(self.peak, tree_pss(os.getpid()))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.peak = max(self.peak, tree_pss(os.getpid()))
