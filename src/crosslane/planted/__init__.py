# SPDX-License-Identifier: Apache-2.0
"""Proves that the checks fire: planted faults are built, run, and must be caught; controls must stay green."""

from __future__ import annotations

__all__: list[str] = []
