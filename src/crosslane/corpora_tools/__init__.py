# SPDX-License-Identifier: Apache-2.0
"""Corpora of stored cases: reading and writing them, merging, minimising, counting, and what is replayed first."""

from __future__ import annotations

__all__: list[str] = []
