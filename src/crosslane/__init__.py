# SPDX-License-Identifier: Apache-2.0
"""Crosslane: does every cipher implementation, on every architecture, answer as the generic one does?"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["__version__"]

try:
    __version__ = version("crosslane")
except PackageNotFoundError:  # src is in the path of a Python that has crosslane not installed
    __version__ = "0+unknown"
