# SPDX-License-Identifier: Apache-2.0
"""Measures fuzz targets: executions a second, of wall and of CPU time, and what coverage is worth.

``.venv/bin/python tests/measure_targets.py [--runs 300000] [--seeds 3] [--part rates]``. Executions are counted
between a short run and a long one, so that starting is not in them; CPU time is that of all processes, the
emulator's among them. The branch to be found compares four bytes of data with a number that no list of values
contains: with coverage it is found at an execution N, and a blind run gets ten times as many. Status 1 where a
number is not reached.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import click
from target_plants import plant_targets

from crosslane.data import data_root

_PR_SET_CHILD_SUBREAPER = 36
_TARGETS = (
    ("oneshot", "", 35_000),
    ("streaming", "", 35_000),
    ("aead", "", 35_000),
    ("keyschedule", "", 35_000),
    ("oneshot", "ctr(sm4)/sm4-ce@aarch64_qemu_max", 20_000),
)
"""Family, cell (empty: the family's own), and the executions a second that are asked for."""
_MAGIC = "ecb(sm4)/sm4-magic@x86_64_native"
_MOST_RUNS = 2_000_000


@dataclass(frozen=True)
class Took:
    """Seconds of a run: on the wall, and of all CPUs."""

    wall_s: float
    cpu_s: float


def _command(family: str, *arguments: str) -> list[str]:
    return [sys.executable, str(data_root() / "fuzz" / "targets" / f"{family}.py"), *arguments]


def _reap() -> None:
    """Wait for processes that their parent left to us."""
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


def timed(family: str, cell: str, runs: int, folder: str) -> Took:
    """One run of a target from its beginning to its end."""
    cells = ["--cell", cell] if cell else []
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = _command(family, *cells, "-seed=1", f"-runs={runs}")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    wall_s = time.monotonic() - begun
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    _reap()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Took(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def found_at(seed: int, runs: int, impls: Path, folder: str, *, blind: bool) -> int | None:
    """The execution at which the branch was found; None where it was not."""
    flags = ["--impls", str(impls), "--cell", _MAGIC, *(["--blind"] if blind else [])]
    command = _command("oneshot", *flags, f"-seed={seed}", f"-runs={runs}")
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL) as process:
        assert process.stderr is not None
        for line in process.stderr:
            match = re.match(r"crosslane: execution (\d+): ", line)
            if match:
                process.kill()
                return int(match[1])
    return None


def _rates(runs: int, folder: str) -> bool:
    reached = True
    print(f"{'target':<52}{'a second':>10}{'a CPU second':>14}{'asked':>8}")
    for family, cell, asked in _TARGETS:
        timed(family, cell, 1, folder)  # builds
        few, many = timed(family, cell, 1, folder), timed(family, cell, runs, folder)
        rate, of_cpu = (runs - 1) / (many.wall_s - few.wall_s), (runs - 1) / (many.cpu_s - few.cpu_s)
        print(f"{family + ' ' + cell:<52}{rate:>10,.0f}{of_cpu:>14,.0f}{asked:>8,}", flush=True)
        reached &= rate >= asked
    return reached


def _coverage(seeds: int, folder: str) -> bool:
    impls = plant_targets(Path(folder) / "plants")
    reached = True
    for seed in range(1, seeds + 1):
        guided = found_at(seed, _MOST_RUNS, impls, folder, blind=False)
        blind = found_at(seed, 10 * (guided or 0), impls, folder, blind=True) if guided else None
        words = f"blind at {blind:,}" if blind else f"blind not in {10 * (guided or 0):,}"
        print(f"seed {seed}: found with coverage at {guided or 0:,}, {words}", flush=True)
        reached &= guided is not None and blind is None
    return reached


@click.command()
@click.option("--runs", default=300_000, show_default=True, type=click.IntRange(2), help="Executions of a long run.")
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(0), help="Number of seeds for the branch.")
@click.option("--part", type=click.Choice(["all", "rates", "branch"]), default="all", help="What to measure.")
def main(runs: int, seeds: int, part: str) -> None:
    """Measure fuzz targets."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(prefix="crosslane-measure-") as folder:
        reached = [part == "branch" or _rates(runs, folder), part == "rates" or _coverage(seeds, folder)]
    sys.exit(0 if all(reached) else 1)


if __name__ == "__main__":
    main()
