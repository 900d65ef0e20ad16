# SPDX-License-Identifier: Apache-2.0
"""Keeps the registers, the stack and the control bits that its calling convention says."""

from __future__ import annotations

__all__ = ["SYMPTOMS", "WATCHER"]

SYMPTOMS = ("abi",)
WATCHER = "registers"
