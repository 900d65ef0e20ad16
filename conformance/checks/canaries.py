# SPDX-License-Identifier: Apache-2.0
"""Writes no byte beside its output."""

from __future__ import annotations

__all__ = ["SYMPTOMS", "WATCHER"]

SYMPTOMS = ("canary",)
WATCHER = "canary"
