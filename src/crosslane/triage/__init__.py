# SPDX-License-Identifier: Apache-2.0
"""From a finding to an explanation: where it departs, what class of bug that is, who departs alike, since when."""

from __future__ import annotations

__all__: list[str] = []
