# SPDX-License-Identifier: Apache-2.0
"""Runs all cells with many seeds and small counts: none may be red. Takes the options of ``crosslane alarms``.

Without options: 100 seeds at a twentieth of the gate's counts. Set the checkout up before it, with ``ci/setup``.
Status: 0 green, 1 an alarm, 2 wrong use, 3 void.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import prepare

__all__ = ["main"]


def main(arguments: list[str], root: Path = prepare.ROOT) -> int:
    """Run them; returns the exit status."""
    command = [prepare.tool(root, "crosslane"), "alarms", *arguments]
    return subprocess.run(command, cwd=root, check=False, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
