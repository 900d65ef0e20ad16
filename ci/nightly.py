# SPDX-License-Identifier: Apache-2.0
"""Runs what is too long for the gate, with cases that nobody has seen: each step whatever the others say.

    ci/nightly [--list] [--day YYYY-MM-DD] [--seeds N] [STEP]...

The day (default: today, UTC) decides every seed, and which cipher's messages are longer than 4 GiB. STEP picks steps;
``--list`` prints the commands and runs nothing. The status is the first that is not 0.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import prepare
import steps

__all__ = ["FIRST_DAY", "SEEDS", "Night", "Planned", "main", "plan", "read_night"]

FIRST_DAY = date(2026, 1, 1)
"""The day whose false alarms are looked for with the first seeds."""
SEEDS = 5
"""Seeds a night with which false alarms are looked for."""
RESULTS = Path("results")
_LARGE_COUNT = 8
_CAMPAIGN = "1h"
"""How long a night's campaign runs."""
_LIBRARIES = ("libgcrypt", "openssl", "nettle", "botan")
_SUITES = ("bookworm", "trixie")
"""Releases of Debian whose libraries for arm64 are checked."""


@dataclass(frozen=True)
class Planned:
    """One step: its name, and what runs: a program of the virtual environment, ``crosslane`` unless it is another."""

    name: str
    arguments: tuple[str, ...]
    program: str = "crosslane"

    @property
    def shown(self) -> str:
        """The command as it is printed."""
        return f"{self.program} {shlex.join(self.arguments)}"


@dataclass(frozen=True)
class Night:
    """What a night depends on: the host, its lanes outside the gate as ``ci/lanes.toml`` has them, the ciphers."""

    day: date
    seeds: int
    host: str
    lanes: Mapping[str, Mapping[str, Any]]
    ciphers: Sequence[str]

    @property
    def seed(self) -> str:
        """The sentence that decides every case of the night."""
        return f"nightly {self.day.isoformat()}"

    @property
    def number(self) -> int:
        """The number of the night since the first day."""
        return (self.day - FIRST_DAY).days


def plan(night: Night) -> list[Planned]:
    """The steps of a night, in order."""
    compilers = [name for name, lane in night.lanes.items() if not (lane.get("floor") or lane.get("protector"))]
    others = [name for name in night.lanes if name not in compilers]
    native, cipher = f"{night.host}_native", night.ciphers[night.number % len(night.ciphers)]
    searched = str(RESULTS / "selftest.json"), str(RESULTS / "selftest-large.json")
    return [
        Planned("compilers", ("check", *_named(compilers), "--seed", night.seed)),
        Planned("lanes", ("check", *_named(others), "--seed", night.seed)),
        Planned("selftest", ("selftest", "--seed", night.seed, "--json", searched[0])),
        Planned(
            "alarms", ("alarms", "--first", str(night.number * night.seeds), "--seeds", str(night.seeds))
        ),
        Planned(
            "campaign",
            (
                "fuzz", "everything", "--for", _CAMPAIGN, "--seed", night.seed,
                "--state", str(RESULTS / f"campaign-{night.day.isoformat()}.sqlite"),
            ),
        ),
        Planned("selftest-large", ("selftest", "--large", "--seed", night.seed, "--json", searched[1])),
        Planned(
            "large",
            (
                "check", "--large", "--jobs", "1", "--count", str(_LARGE_COUNT), "--vectors", "own", "--no-findings",
                "--cell", f"*({cipher})/*@{native}", "--seed", night.seed,
            ),
        ),
        *(
            Planned(f"fetch-{suite}", ("providers", "fetch", "--suite", suite, "--arch", "arm64", *_LIBRARIES))
            for suite in _SUITES
        ),
        Planned(
            "sysroots",
            (
                "check", "--provider", ",".join(_LIBRARIES), *_named([f"aarch64_{suite}" for suite in _SUITES]),
                "--seed", night.seed,
            ),
        ),
        Planned("docs", ("run", "-e", "docs-nightly"), "tox"),
    ]  # fmt: skip


def _named(lanes: Sequence[str]) -> list[str]:
    return [word for name in lanes for word in ("--lane", name)]


def read_night(root: Path, day: date, seeds: int, host: str) -> Night:
    """What the checkout says of a night; raises SetupFailed where its data cannot be read."""
    try:
        lanes = tomllib.loads((root / "ci" / "lanes.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise prepare.SetupFailed(f"ci/lanes.toml: cannot be read ({error}): restore the file", 2) from None
    here = {name: lane for name, lane in lanes.items() if not lane["gate"] and host in lane["hosts"]}
    ciphers = sorted(path.parent.name for path in (root / "impls" / "ciphers").glob("*/cipher.toml"))
    return Night(day, seeds, host, here, ciphers)


def main(arguments: Sequence[str], root: Path = prepare.ROOT) -> int:
    """Run the steps of a night, or those that are named; returns the exit status."""
    options = _options(arguments)
    try:
        night = read_night(root, options.day, options.seeds, platform.machine())
        chosen = _chosen(plan(night), options.steps)
        if not options.listed:
            prepare.prepare(root)
    except prepare.SetupFailed as failure:
        print(f"ci/nightly: {failure}", file=sys.stderr)
        return failure.status
    print(f"ci/nightly: seed {night.seed!r}", flush=True)
    if options.listed:
        for step in chosen:
            print(f"{step.name}: {step.shown}")
        return 0
    (root / RESULTS).mkdir(exist_ok=True)
    try:
        ended = [_run(step, root) for step in chosen]
    except KeyboardInterrupt:
        print("ci/nightly: interrupted", file=sys.stderr)
        return 130
    lines = [f"{name}: status {status}, {took_s:.0f} s" for name, status, took_s in ended]
    print("ci/nightly: " + "; ".join(lines), flush=True)
    _publish(night.seed, lines)
    return next((status for _, status, _ in ended if status != 0), 0)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("ci/nightly", allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("--list", dest="listed", action="store_true", help="print the commands and run nothing")
    parser.add_argument("--day", type=_day, default=datetime.now(UTC).date(), help="default: today")
    parser.add_argument("--seeds", type=_positive, default=SEEDS, help=f"seeds of alarms; default: {SEEDS}")
    parser.add_argument("steps", nargs="*", metavar="STEP", help="steps to run; default: all")
    options = parser.parse_args(arguments)
    if options.day < FIRST_DAY:
        parser.error(f"--day {options.day} lies before the first night, {FIRST_DAY}: give a later day")
    return options


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day: give one as YYYY-MM-DD") from None


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seeds: give 1 or more")
    return int(text)


def _chosen(planned: Sequence[Planned], names: Sequence[str]) -> list[Planned]:
    known = [step.name for step in planned]
    for name in names:
        if name not in known:
            raise prepare.SetupFailed(f"no step is called {name!r}; there are {', '.join(known)}", 2)
    return [step for step in planned if not names or step.name in names]


def _run(step: Planned, root: Path) -> tuple[str, int, float]:
    command = [prepare.tool(root, step.program), *step.arguments]
    print(f"$ {step.shown}", flush=True)
    started = time.monotonic()
    return step.name, steps.wait(step.name, command, root), time.monotonic() - started


def _publish(seed: str, lines: Sequence[str]) -> None:
    """Add what the steps came to to the page that a workflow's run has, where there is one."""
    page = os.environ.get("GITHUB_STEP_SUMMARY")
    if page:
        with Path(page).open("a", encoding="utf-8") as file:
            file.write(f"### Nightly, seed `{seed}`\n\n" + "".join(f"- {line}\n" for line in lines) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
