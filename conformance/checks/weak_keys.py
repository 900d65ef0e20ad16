# SPDX-License-Identifier: Apache-2.0
"""Refuses the keys that the policy asked for forbids, and no others."""

from __future__ import annotations

__all__ = ["CLASSES", "COVERS"]

COVERS = ("weak_keys*",)
CLASSES = ("policy",)
