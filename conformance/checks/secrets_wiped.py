# SPDX-License-Identifier: Apache-2.0
"""Leaves nothing of the key in registers or on the stack, as its metadata claims."""

from __future__ import annotations

__all__ = ["SYMPTOMS"]

SYMPTOMS = ("wipe",)
