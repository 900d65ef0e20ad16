# SPDX-License-Identifier: Apache-2.0
"""Gives the right answer to very long messages."""

from __future__ import annotations

__all__ = ["CLASSES", "COVERS"]

COVERS = ("large",)
CLASSES = ("large",)
