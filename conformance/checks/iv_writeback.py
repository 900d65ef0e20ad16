# SPDX-License-Identifier: Apache-2.0
"""Leaves behind the iv that the next call goes on from."""

from __future__ import annotations

__all__ = ["CLASSES", "COVERS", "SYMPTOMS"]

COVERS = ("iv_read_back",)
SYMPTOMS = ("iv",)
CLASSES = ("split",)
