# SPDX-License-Identifier: Apache-2.0
"""Leaves its inputs as they were."""

from __future__ import annotations

__all__ = ["SYMPTOMS", "WATCHER"]

SYMPTOMS = ("input",)
WATCHER = "canary"
