# SPDX-License-Identifier: Apache-2.0
"""Changes nothing when it refuses."""

from __future__ import annotations

__all__ = ["CLASSES", "COVERS"]

COVERS = ("*_refused", "announced_wrong")
CLASSES = ("refused",)
