# SPDX-License-Identifier: Apache-2.0
"""Gives the same answer in place as out of place."""

from __future__ import annotations

__all__ = ["CLASSES", "COVERS"]

COVERS = ("in_place",)
CLASSES = ("in_place",)
