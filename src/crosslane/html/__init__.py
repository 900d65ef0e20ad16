# SPDX-License-Identifier: Apache-2.0
"""The report of a run as one HTML file that needs nothing else: no network, no script for reading."""

from __future__ import annotations

__all__: list[str] = []
