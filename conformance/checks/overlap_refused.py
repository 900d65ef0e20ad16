# SPDX-License-Identifier: Apache-2.0
"""Refuses buffers that overlap other than exactly, and changes nothing."""

from __future__ import annotations

__all__ = ["CLASSES", "COVERS"]

COVERS = ("overlap_refused",)
CLASSES = ("overlap",)
