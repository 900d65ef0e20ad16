# SPDX-License-Identifier: Apache-2.0
"""Sysroots: Debian packages of any release, fetched without root, for libraries that the system does not have."""

from __future__ import annotations

__all__: list[str] = []
