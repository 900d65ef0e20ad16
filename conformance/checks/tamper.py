# SPDX-License-Identifier: Apache-2.0
"""Refuses a message of which any bit was changed, and gives no plaintext."""

from __future__ import annotations

__all__ = ["CLASSES", "COVERS"]

COVERS = ("tamper_*",)
CLASSES = ("wrong_tag",)
