# SPDX-License-Identifier: Apache-2.0
"""Keeps its context within its bounds, free of pointers into itself, and unchanged by what only reads it."""

from __future__ import annotations

__all__ = ["CLASSES", "COVERS", "SYMPTOMS", "WATCHER"]

COVERS = ("guard_end_ctx", "guard_start_ctx")
SYMPTOMS = ("context",)
CLASSES = ("other_context", "context_edge", "ctx:before", "ctx:behind", "ctx2:before", "ctx2:behind")
WATCHER = "context"
