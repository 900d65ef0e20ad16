# SPDX-License-Identifier: Apache-2.0
"""Formats the C and C++ files under fuzz/, impls/ and tests/ with clang-format; ``--check`` only says which differ."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Run clang-format over all files of C and C++; the status is clang-format's own, 2 for a wrong argument."""
    if arguments not in ([], ["--check"]):
        print(f"format_c: unknown arguments {arguments}; give --check or nothing", file=sys.stderr)
        return 2
    root = Path(__file__).resolve().parents[1]
    paths = (path for top in ("fuzz", "impls", "tests") for path in (root / top).rglob("*.*"))
    files = sorted(str(path) for path in paths if path.suffix in (".c", ".cc", ".h"))
    action = ["--dry-run", "-Werror"] if arguments else ["-i"]
    return subprocess.run(["clang-format", "--style=file", *action, *files], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
