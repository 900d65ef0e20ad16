# SPDX-License-Identifier: Apache-2.0
"""Takes every legal length of key, with any bits set, and refuses every other."""

from __future__ import annotations

__all__ = ["CLASSES", "COVERS"]

COVERS = ("key_len_*",)
CLASSES = ("key_len", "key")
