# SPDX-License-Identifier: Apache-2.0
"""Gives the same answer wherever its buffers begin."""

from __future__ import annotations

__all__ = ["CLASSES", "COVERS", "WATCHER"]

COVERS = ("distinct_align_*", "each_align_*")
CLASSES = ("align", "sigbus", "sigsegv")
WATCHER = "layout"
