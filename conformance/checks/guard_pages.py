# SPDX-License-Identifier: Apache-2.0
"""Touches no byte before or behind a buffer: key, iv, data, associated data, tag and context."""

from __future__ import annotations

__all__ = ["COVERS", "SYMPTOMS", "WATCHER"]

COVERS = ("guard_*",)
SYMPTOMS = ("guard_read", "guard_write")
WATCHER = "layout"
