# SPDX-License-Identifier: Apache-2.0
"""What the C library and the kernel are asked about memory, and about the end of processes."""

from __future__ import annotations

import contextlib
import ctypes
import resource
import signal
from pathlib import Path

__all__ = ["die_with_parent", "keep_freed_memory", "private_bytes", "return_freed_memory"]

_PR_SET_PDEATHSIG = 1
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def keep_freed_memory() -> None:
    """Raise glibc's thresholds for this process; does nothing with another C library.

    Batches free and take the same megabytes again and again. Without this each large array is mapped and unmapped anew,
    and its page faults are a third of generation's time.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 256 << 20)
        mallopt(_M_TRIM_THRESHOLD, 512 << 20)


def return_freed_memory() -> None:
    """Give what this process has freed back to the system, thresholds aside; nothing with another C library."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def private_bytes(pid: int) -> int:
    """Resident memory of a process that it shares with none, in bytes; 0 where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * resource.getpagesize() if len(fields) > 2 else 0


def die_with_parent() -> None:
    """Have the kernel end this process when the one that started it ends, however that ends."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
