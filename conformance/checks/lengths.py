# SPDX-License-Identifier: Apache-2.0
"""Gives the right answer at every length, whole blocks or not, shorter and longer than its parallel width."""

from __future__ import annotations

__all__ = ["CLASSES", "COVERS"]

COVERS = ("distinct_lengths", "each_length", "tail_*", "empty")
CLASSES = ("tail", "stealing", "whole", "blocks", "empty")
