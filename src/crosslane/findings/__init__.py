# SPDX-License-Identifier: Apache-2.0
"""Findings: departures that were confirmed, told apart, shrunk to what they need, and kept."""

from __future__ import annotations

__all__: list[str] = []
