# SPDX-License-Identifier: Apache-2.0
"""Writes no byte beside its output."""

from __future__ import annotations

__all__ = ["COVERS", "SYMPTOMS", "WATCHER"]

COVERS = ("distinct_align_iv", "distinct_align_out", "distinct_align_tag")
SYMPTOMS = ("canary",)
WATCHER = "canary"
