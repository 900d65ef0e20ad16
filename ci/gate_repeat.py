# SPDX-License-Identifier: Apache-2.0
"""Runs the gate again and again on an unchanged tree and says how many runs were green.

    python3 ci/gate_repeat.py [--runs N] [--policy FILE] [--log FILE] [-- OPTION...]

Each run is one line of the log: number, revision, status, seconds, and the gate's own last line. A run whose line is
there for this revision and policy is not made again, so that the work can be stopped and taken up. The status is 0
where all N are green, 1 where one is not. OPTIONs go to ``crosslane gate``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import prepare

__all__ = ["Line", "main", "read_log", "tree_of"]

RUNS = 20


@dataclass(frozen=True)
class Line:
    """One run: its ``tree`` is the revision, ``policy`` its file with the options, ``said`` the gate's verdict."""

    run: int
    tree: str
    policy: str
    status: int
    took_s: float
    said: str


def read_log(path: Path) -> list[Line]:
    """The runs that were made; raises SetupFailed for a line that is none."""
    if not path.exists():
        return []
    lines: list[Line] = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            lines.append(Line(**json.loads(text)))
        except (ValueError, TypeError) as error:
            raise prepare.SetupFailed(
                f"{path}: line {number} is no run ({error}): remove that line, or name another file with --log", 2
            ) from None
    return lines


def tree_of(root: Path) -> str:
    """The revision; raises SetupFailed where the tree is changed, since runs of it could not be told apart."""
    done = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=False)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode or head.returncode:
        raise prepare.SetupFailed("this is no checkout of git: run it in one", 2)
    if done.stdout.strip():
        raise prepare.SetupFailed("the tree has changes that are not committed: commit or remove them", 2)
    return head.stdout.strip()


def main(arguments: Sequence[str], root: Path = prepare.ROOT) -> int:
    """Make the runs that the log lacks; returns the exit status."""
    options = _options(arguments)
    try:
        tree, log = tree_of(root), read_log(options.log)
    except prepare.SetupFailed as failure:
        print(f"gate_repeat: {failure}", file=sys.stderr)
        return failure.status
    policy = " ".join([options.policy, *options.rest])
    mine = [line for line in log if (line.tree, line.policy) == (tree, policy)]
    for number in range(len(mine) + 1, options.runs + 1):
        line = _run(number, tree, policy, [_crosslane(root), "gate", "--policy", options.policy, *options.rest])
        if line.status in (2, 130):
            print(
                f"gate_repeat: run {number} did not come to a verdict (status {line.status}): {line.said}",
                file=sys.stderr,
            )
            return line.status
        with options.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(line)) + "\n")
        mine.append(line)
        print(f"run {number} of {options.runs}: status {line.status}, {line.took_s:.0f} s: {line.said}", flush=True)
    green = sum(line.status == 0 for line in mine)
    print(f"gate_repeat: {green} of {len(mine)} runs of {policy} at {tree[:12]} were green")
    return 0 if green == len(mine) else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    own, _, rest = _parted(arguments)
    parser = argparse.ArgumentParser("gate_repeat", allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=_positive, default=RUNS, help=f"how many runs; default: {RUNS}")
    parser.add_argument("--policy", default="ci/gate.toml", help="default: ci/gate.toml")
    parser.add_argument("--log", type=Path, default=Path("results/gate_repeat.jsonl"), help="a line a run")
    options = parser.parse_args(own)
    options.rest = rest
    if not options.log.parent.is_dir():
        options.log.parent.mkdir(parents=True)
    return options


def _parted(arguments: Sequence[str]) -> tuple[list[str], str, list[str]]:
    words = list(arguments)
    where = words.index("--") if "--" in words else len(words)
    return words[:where], "--", words[where + 1 :]


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of runs: give 1 or more")
    return int(text)


def _crosslane(root: Path) -> str:
    """The command of the checkout's set-up, else the one that is in PATH."""
    own = prepare.tool(root, "crosslane")
    return own if Path(own).is_file() else "crosslane"


def _run(number: int, tree: str, policy: str, command: list[str]) -> Line:
    begun = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        last = ""
        for text in process.stdout:
            last = text.strip() or last
    return Line(number, tree, policy, process.returncode, round(time.monotonic() - begun, 1), last)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
