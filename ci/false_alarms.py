# SPDX-License-Identifier: Apache-2.0
"""Runs the main job with many seeds and small counts: no cell may be red. ``python3 ci/false_alarms.py --seeds N``.

Counts are a twentieth of the gate's, vectors those of ``corpora``. It ends with the number of runs and of cells, and
with status 1 where a run was not green.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import prepare

__all__ = ["main"]


def main(arguments: list[str], root: Path = prepare.ROOT) -> int:
    """Run them one after the other; returns the exit status."""
    parser = argparse.ArgumentParser(prog="false_alarms", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds (default: 100)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first (default: 0)")
    options = parser.parse_args(arguments)
    alarms = 0
    begun = time.monotonic()
    for number in range(options.first, options.first + options.seeds):
        command = [
            prepare.tool(root, "crosslane"), "check", "--share", "20", "--vectors", "own", "--no-findings",
            "--seed", f"false alarm {number}",
        ]  # fmt: skip
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        last = done.stdout.strip().splitlines()[-1:] or done.stderr.strip().splitlines()[-1:]
        print(f"seed {number}: status {done.returncode}: {last[0] if last else ''}", flush=True)
        if done.returncode != 0:
            alarms += 1
            print(done.stdout[-20000:], done.stderr, sep="\n", flush=True)
    took = time.monotonic() - begun
    print(f"{alarms} of {options.seeds} runs were not green, in {took:.0f} s")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
