# SPDX-License-Identifier: Apache-2.0
"""Gives the same answer every time, beside other contexts and in two threads at once."""

from __future__ import annotations

__all__ = ["CLASSES", "SYMPTOMS"]

SYMPTOMS = ("nondeterminism",)
CLASSES = ("neighbours", "unrepeatable")
