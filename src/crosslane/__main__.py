# SPDX-License-Identifier: Apache-2.0
"""``python -m crosslane``: the command line without its console script."""

from __future__ import annotations

from crosslane.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
