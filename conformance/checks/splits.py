# SPDX-License-Identifier: Apache-2.0
"""Gives the same answer however a message is cut into calls, with empty calls, copies and restarts between."""

from __future__ import annotations

__all__ = ["CLASSES", "COVERS"]

COVERS = ("splits_*", "reinit", "clone", "rekeyed", "interleaved")
CLASSES = ("split", "messages", "reinit", "clone", "rekey", "empty")
