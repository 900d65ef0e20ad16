# SPDX-License-Identifier: Apache-2.0
"""Disk workloads: sectors under the iv generators of dm-crypt, and LUKS images that other software made."""

from __future__ import annotations

__all__: list[str] = []
