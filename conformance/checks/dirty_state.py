# SPDX-License-Identifier: Apache-2.0
"""Does not depend on what registers and dead stack held before the call."""

from __future__ import annotations

__all__ = ["CLASSES", "WATCHER"]

CLASSES = ("dirty_state",)
WATCHER = "registers"
