# SPDX-License-Identifier: Apache-2.0
"""Crosslane: does every cipher implementation, on every architecture, answer as the generic one does?"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
