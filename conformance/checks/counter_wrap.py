# SPDX-License-Identifier: Apache-2.0
"""Carries its counter, index or tweak over every boundary as the mode counts, in wide and in narrow paths."""

from __future__ import annotations

__all__ = ["CLASSES", "COVERS"]

COVERS = ("counter_*", "j0_wrap", "tweak_steered", "unit_ff")
CLASSES = ("counter", "iv", "tweak")
