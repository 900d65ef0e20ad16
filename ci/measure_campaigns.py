# SPDX-License-Identifier: Apache-2.0
"""Measures that campaigns lose nothing when they are killed, and that nothing grows while they run.

    python3 ci/measure_campaigns.py kill [--kills N] [--most SECONDS]
    python3 ci/measure_campaigns.py day [--rounds N]

``kill``: a campaign on a subject that is wrong for messages of one length (planted) and an honest one is killed with
SIGKILL N times, or as often as the time lasts, and begun again each time; then it goes on to its end. Each life is let
commit a round, and is killed at a random moment of the rounds behind it. A second campaign runs as far, and nobody ends
it. What both states count, and every file of their findings, must be the same.

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
_MOST_START_S = 120.0
"""A life that has committed nothing by then is not killed: the machine is too busy to say anything."""
_KILLED_COUNT = 2_048
"""Comparisons of a cell in a round of the campaign that is killed."""
_BEHIND = 4 * 2 * _KILLED_COUNT
"""Comparisons, four rounds, that it runs behind the last kill."""
_MOST_GROWTH = 8 << 20
"""Bytes that the line through the second half may rise by over all of it: what a sample differs by from the next."""


@dataclass(frozen=True)
class _Life:
    """One life of a campaign that is killed: rounds in the state before it and after, and when within a round."""

    before: int
    after: int
    delay_s: float


def _kill(kills: int, most_s: float) -> int:
    """Returns the exit status: 0 where nothing was lost."""
    with tempfile.TemporaryDirectory(prefix="crosslane-kill-") as folder:
        killed = planted_campaign(Path(folder) / "killed", count=_KILLED_COUNT)
        lives = _lives(killed, kills, most_s)
        count = str(read_state(killed.state)[0].totals.planned + _BEHIND)
        statuses = {killed.run("--count", count).returncode}
        whole = planted_campaign(Path(folder) / "whole", killed.impls, _KILLED_COUNT)
        statuses.add(whole.run("--count", count).returncode)
        gained = [life.after - life.before for life in lives]
        print(
            f"killed {len(lives)} times, each behind a commit: {min(gained)} to {max(gained)} rounds a life, "
            f"{len({life.after for life in lives})} different rounds, {max(life.delay_s for life in lives):.2f} s at "
            "most behind a commit"
        )
        return 0 if _the_same(whole, killed) and statuses == {1} and len(lives) == kills else 1


def _the_same(whole: Campaign, killed: Campaign) -> bool:
    """Print what both states and stores hold; returns whether that is the same, and anything."""
    for name, campaign in (("nobody ended", whole), ("killed", killed)):
        counts, found = campaign.counts(), campaign.findings()
        (totals,) = counts["campaign"]
        print(
            f"{name}: {totals[2]:,} rounds, {totals[3]:,} comparisons planned, {totals[4]:,} made, {totals[5]:,} cases "
            f"departed, {totals[6]:,} cells void, {len(counts['findings'])} findings in {len(found)} files"
        )
    differ = [table for table, rows in whole.counts().items() if rows != killed.counts()[table]]
    differ += ["files of the findings"] if whole.findings() != killed.findings() else []
    print(f"NOT THE SAME: {', '.join(differ)}" if differ else "all tables and all files are the same in both")
    return not differ and bool(whole.findings())


def _lives(campaign: Campaign, kills: int, most_s: float) -> list[_Life]:
    """Kill it so often, while the time lasts."""
    luck = random.Random(kills)  # noqa: S311 - when to kill is no secret
    lives: list[_Life] = []
    end = time.monotonic() + most_s
    while len(lives) < kills and time.monotonic() < end:
        before, delay_s = rounds_of(campaign), luck.uniform(0.0, _round_s(campaign))
        if not kill_once(campaign, ("--for", "1d"), before, delay_s):
            raise SystemExit("a life of the campaign committed no round in time, or ended by itself: see its log")
        lives.append(_Life(before, rounds_of(campaign), delay_s))
        if len(lives) % 10 == 0:
            print(f"{len(lives)} kills, {lives[-1].after} rounds", flush=True)
    return lives


def _round_s(campaign: Campaign) -> float:
    """How long a round takes, as the state says; a second before it says anything."""
    try:
        totals = read_state(campaign.state)[0].totals
    except BadInput:
        return 1.0
    return totals.busy_s / totals.rounds if totals.rounds else 1.0


def kill_once(campaign: Campaign, limit: Sequence[str], before: int, delay_s: float) -> bool:
    """Begin it, and kill it so long after it commits a round behind ``before``; False where it comes to none."""
    process = subprocess.Popen(
        campaign.command(*limit), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=dict(os.environ), start_new_session=True,
    )  # fmt: skip
    try:
        _until(lambda: process.poll() is not None or rounds_of(campaign) > before, _MOST_START_S)
        at_work = rounds_of(campaign) > before
        time.sleep(delay_s)
        return at_work and process.poll() is None
    finally:
        process.kill()
        process.wait()


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
    parser.add_argument("--most", type=float, default=3600.0, help="seconds after which it is not killed again")
    parser.add_argument("--rounds", type=int, default=_A_DAY)
    options = parser.parse_args(arguments)
    if shutil.which("gcc") is None:
        parser.error("gcc is not installed: run ci/setup")
    return _kill(options.kills, options.most) if options.what == "kill" else _day(options.rounds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
