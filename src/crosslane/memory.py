# SPDX-License-Identifier: Apache-2.0
"""Makes the C library keep freed memory: batches free and take the same megabytes again and again.

Without this each large array is mapped and unmapped anew, and its page faults are a third of generation's time.
"""

from __future__ import annotations

import contextlib
import ctypes

__all__ = ["keep_freed_memory"]

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def keep_freed_memory() -> None:
    """Raise glibc's thresholds for this process; does nothing with another C library."""
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 256 << 20)
        mallopt(_M_TRIM_THRESHOLD, 512 << 20)
