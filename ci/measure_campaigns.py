# SPDX-License-Identifier: Apache-2.0
"""Measures that campaigns lose nothing when they are killed, and that nothing grows while they run.

    python3 ci/measure_campaigns.py kill [--kills N] [--count N]
    python3 ci/measure_campaigns.py day [--rounds N]

``kill``: a campaign on a subject that is wrong for messages of one length (planted) and an honest one runs to its end.
A second one is killed with SIGKILL N times, at random moments of its work and of its start, and begun again each time;
then it goes on to its end. What both states count, and every file of their findings, must be the same.

``day``: a campaign on two workers, whose rounds are as small as they can be, so that as many of them as a day has
(34,560, of five seconds of CPU each on two cores) pass within the hour: what leaks leaks by the round, by the process
and by the commit. Every so many rounds the memory of the process tree (PSS), its open files and processes, and the
size of the state are looked at. The slope is that of a line through the second half.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT / "src"), str(_ROOT / "tests")]

from fuzzing_runs import Campaign, planted_campaign  # noqa: E402 - found by the lines above

from crosslane.errors import BadInput  # noqa: E402
from crosslane.fuzzing.state import read_state  # noqa: E402
from crosslane.pss import tree, tree_pss  # noqa: E402

__all__ = ["kill_once", "main", "rounds_of"]

_A_DAY = 34_560
"""Rounds of five seconds of CPU that two cores have time for in a day."""
_SAMPLES = 60
_AT_WORK = 0.7
"""Of the kills so many come within two seconds of a round that was committed, the others of the start."""
_MOST_S = 60.0
_MOST_GROWTH = 8 << 20
"""Bytes that the line through the second half may rise by over all of it: what a sample differs by from the next."""


def _kill(kills: int, count: int) -> int:
    """Returns the exit status: 0 where nothing was lost."""
    with tempfile.TemporaryDirectory(prefix="crosslane-kill-") as folder:
        whole = planted_campaign(Path(folder) / "whole")
        begun = time.monotonic()
        status = whole.run("--count", str(count)).returncode
        print(f"one that nobody ended: status {status}, {time.monotonic() - begun:.0f} s", flush=True)
        other = planted_campaign(Path(folder) / "other", whole.impls)
        killed, rounds = _killed(other, kills, count)
        print(f"killed {killed} times, at {len(set(rounds))} different rounds, the last at {rounds[-1]}", flush=True)
        again = other.run("--count", str(count)).returncode
        counts, found = whole.counts(), whole.findings()
        same = counts == other.counts() and found == other.findings() and bool(found) and status == again == 1
        (totals,) = counts["campaign"]
        print(
            f"{totals[2]:,} rounds, {totals[4]:,} comparisons, {totals[5]:,} cases departed, {len(counts['findings'])} "
            f"findings in {len(found)} files: {'the same in both' if same else 'NOT THE SAME'}"
        )
        return 0 if same and killed == kills else 1


def _killed(campaign: Campaign, kills: int, count: int) -> tuple[int, list[int]]:
    """Kill it so often; returns how often that was, and at which rounds."""
    luck, rounds = random.Random(kills), [0]  # noqa: S311 - when to kill is no secret
    for number in range(kills):
        if not kill_once(campaign, count, luck, rounds[-1]):
            return number, rounds
        rounds.append(rounds_of(campaign))
    return kills, rounds


def kill_once(campaign: Campaign, count: int, luck: random.Random, before: int) -> bool:
    """Begin it, and kill it at work behind round ``before`` or at its start; False where it came to its end first."""
    process = subprocess.Popen(
        campaign.command("--count", str(count)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=dict(os.environ), start_new_session=True,
    )  # fmt: skip
    if luck.random() < _AT_WORK:
        _until(lambda: process.poll() is not None or rounds_of(campaign) > before, _MOST_S)
    _until(lambda: process.poll() is not None, luck.uniform(0.0, 2.0))
    if process.poll() is not None:
        return False
    process.send_signal(signal.SIGKILL)
    process.wait()
    return True


def rounds_of(campaign: Campaign) -> int:
    """Rounds in the state, 0 before there is one."""
    try:
        return read_state(campaign.state)[0].totals.rounds
    except BadInput:
        return 0


def _until(over: Callable[[], bool], most_s: float) -> None:
    end = time.monotonic() + most_s
    while time.monotonic() < end and not over():
        time.sleep(0.02)


@dataclass(frozen=True)
class _Sample:
    """What a process tree holds: rounds done, PSS in bytes, open files, processes, bytes of the state."""

    rounds: int
    pss: int
    files: int
    processes: int
    state: int


def _sample(pid: int, campaign: Campaign) -> _Sample:
    pids, files = tree(pid), 0
    for one in pids:
        try:
            files += len(list(Path(f"/proc/{one}/fd").iterdir()))
        except OSError:
            continue  # it has ended
    sizes = sum(path.stat().st_size for path in campaign.folder.glob("state.sqlite*"))
    with sqlite3.connect(f"{campaign.state.as_uri()}?mode=ro", uri=True) as connection:
        (rounds,) = connection.execute("SELECT rounds FROM campaign").fetchone()
    connection.close()
    return _Sample(rounds, tree_pss(pid), files, len(pids), sizes)


@contextmanager
def _running(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=dict(os.environ), start_new_session=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _day(rounds: int) -> int:
    """Returns the exit status: 0 where nothing grows."""
    with tempfile.TemporaryDirectory(prefix="crosslane-day-") as folder:
        campaign = planted_campaign(Path(folder), count=8)
        with _running(campaign.command("--for", "30d")) as process:
            samples = _watched(process, campaign, rounds)
        log = sum(path.stat().st_size for path in campaign.folder.glob("state.log*"))
    half = samples[len(samples) // 2 :]
    print(f"{samples[-1].rounds:,} rounds, {len(samples)} samples, a log of {log:,} bytes")
    held = []
    for name, most in (("pss", _MOST_GROWTH), ("files", 4), ("processes", 2), ("state", 1 << 20)):
        values = [getattr(sample, name) for sample in half]
        rise = _rise([sample.rounds for sample in half], values)
        held.append(rise <= most)
        first = statistics.median(getattr(sample, name) for sample in samples[: len(samples) // 4])
        print(
            f"{name}: median {statistics.median(values):,.0f} in the second half, {first:,.0f} in the first quarter, "
            f"the line rises by {rise:,.0f} over the second half: {'flat' if held[-1] else 'GROWS'}"
        )
    return 0 if all(held) else 1


def _watched(process: subprocess.Popen[bytes], campaign: Campaign, rounds: int) -> list[_Sample]:
    samples: list[_Sample] = []
    while not samples or samples[-1].rounds < rounds:
        time.sleep(0.5)
        if process.poll() is not None:
            raise SystemExit(f"the campaign ended with status {process.returncode}")
        try:
            sample = _sample(process.pid, campaign)
        except (OSError, sqlite3.Error):
            continue  # it has not begun
        if sample.rounds and (not samples or sample.rounds >= samples[-1].rounds + rounds // _SAMPLES):
            samples.append(sample)
    return samples


def _rise(at: Sequence[float], values: Sequence[float]) -> float:
    """By how much the line of least squares rises from the first value to the last."""
    slope, _ = statistics.linear_regression(at, values)
    return slope * (at[-1] - at[0])


def main(arguments: Sequence[str]) -> int:
    """Run a measurement; returns its exit status."""
    parser = argparse.ArgumentParser("ci/measure_campaigns.py", allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["kill", "day"])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--count", type=int, default=2_000_000, help="comparisons of the campaign that is killed")
    parser.add_argument("--rounds", type=int, default=_A_DAY)
    options = parser.parse_args(arguments)
    if shutil.which("gcc") is None:
        parser.error("gcc is not installed: run ci/setup")
    return _kill(options.kills, options.count) if options.what == "kill" else _day(options.rounds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
