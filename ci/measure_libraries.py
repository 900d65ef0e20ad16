# SPDX-License-Identifier: Apache-2.0
"""Measures the check of the system's libraries, and of two releases of Debian for arm64, against what they may take.

    python3 ci/measure_libraries.py [--cell PATTERN]...

Fetches the sysroots first, which is not measured. ``--cell`` narrows both checks, whose comparisons are then too few.
Times mean something on a quiet machine with two cores alone. The status is that of the first command that failed,
else 1 where a bound is missed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

__all__ = ["main"]

_ROOT = Path(__file__).resolve().parents[1]
_PROVIDERS = ("libgcrypt", "openssl", "nettle", "botan")
_SUITES = ("bookworm", "trixie")
_COMPARISONS = 5_000_000
_CHECKS = {"natively": ([], 120), "arm64": ([word for name in _SUITES for word in ("--lane", f"aarch64_{name}")], 300)}
"""By what is run: the lanes, and the seconds that it may take."""


def main(arguments: list[str]) -> int:
    """Fetch and measure; returns the exit status."""
    parser = argparse.ArgumentParser("ci/measure_libraries.py", allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("--cell", action="append", default=[], metavar="PATTERN", help="only these cells")
    cells = [word for pattern in parser.parse_args(arguments).cell for word in ("--cell", pattern)]
    ours = _ROOT / ".venv" / "bin" / "crosslane"
    crosslane = [str(ours)] if ours.exists() else [sys.executable, "-m", "crosslane"]
    for suite in _SUITES:
        print(f"fetching the packages of {suite} for arm64, which is not measured", flush=True)
        command = [*crosslane, "providers", "fetch", "--suite", suite, "--arch", "arm64", *_PROVIDERS]
        status = subprocess.run(command, check=False).returncode
        if status != 0:
            return status
    total, statuses, held = 0, [], []
    for name, (lanes, limit_s) in _CHECKS.items():
        words = ["check", "--provider", ",".join(_PROVIDERS), *lanes, *cells]
        print(f"$ crosslane {' '.join(words)}", flush=True)
        status, comparisons, wall_s, cpu_s = _measured([*crosslane, *words])
        total += comparisons
        statuses.append(status)
        held.append(wall_s <= limit_s)
        print(
            f"{name}: status {status}, {comparisons:,} comparisons, {wall_s:.1f} s of {limit_s} s, CPU {cpu_s:.1f} s",
            flush=True,
        )
    held.append(total >= _COMPARISONS)
    print(f"together {total:,} comparisons of {_COMPARISONS:,}: {'held' if all(held) else 'MISSED'}")
    return next((status for status in statuses if status), 0 if all(held) else 1)


def _measured(command: list[str]) -> tuple[int, int, float, float]:
    """The exit status of a check, its comparisons, and its seconds on the wall and of the CPU."""
    with tempfile.TemporaryDirectory(prefix="crosslane-") as folder:
        results = Path(folder) / "results.json"
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        status = subprocess.run([*command, "--json", str(results)], check=False).returncode
        wall_s, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        found = json.loads(results.read_text()) if results.exists() else {"algorithms": []}
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return status, sum(cell["comparisons"] for item in found["algorithms"] for cell in item["cells"]), wall_s, cpu_s


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
