# SPDX-License-Identifier: Apache-2.0
"""What the scripts ``ci/*`` do, in order, with the time and the budget of each step."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import prepare

__all__ = ["BUDGETS_S", "Step", "main", "summary", "wait"]

BUDGETS_S = {"set-up": 240.0, "build": 120.0, "check": 180.0, "gate": 180.0}
"""Seconds that each step may take on two cores with a quick mirror. A missed one is said, and changes no status."""


@dataclass(frozen=True)
class Step:
    """A step that ran, and the seconds it took."""

    name: str
    took_s: float


def summary(command: str, steps: list[Step]) -> str:
    """One line: every step with its time and budget, and which of them missed it."""
    parts = []
    missed = []
    for step in steps:
        budget = BUDGETS_S.get(step.name)
        parts.append(f"{step.name} {step.took_s:.1f} s" + (f" of {budget:.0f} s" if budget else ""))
        if budget and step.took_s > budget:
            missed.append(step.name)
    verdict = f"over budget: {', '.join(missed)}" if missed else "all within budget"
    return f"{command}: {', '.join(parts)}; {verdict}"


def main(arguments: list[str], root: Path = prepare.ROOT) -> int:
    """Run one of the scripts; further arguments go to its last command. Returns the exit status."""
    if not arguments or arguments[0] not in ("setup", "conform", "gate", "test", "selftest"):
        print("steps: the first argument is one of setup, conform, gate, test, selftest", file=sys.stderr)
        return 2
    name, rest = arguments[0], arguments[1:]
    steps: list[Step] = []
    try:
        status = _run_all(name, rest, root, steps)
    except prepare.SetupFailed as failure:
        print(f"ci/{name}: {failure}", file=sys.stderr)
        return failure.status
    except OSError as failure:
        print(
            f"ci/{name}: {failure}: make the checkout writable with room to spare, and run this again", file=sys.stderr
        )
        return 3
    except KeyboardInterrupt:
        print(f"ci/{name}: interrupted", file=sys.stderr)
        return 130
    print(summary(f"ci/{name}", steps), flush=True)
    return status


def _run_all(name: str, rest: list[str], root: Path, steps: list[Step]) -> int:
    if name == "setup" and rest:
        print(f"ci/setup: takes no arguments, but got {' '.join(rest)}", file=sys.stderr)
        return 2
    steps.append(Step("set-up", prepare.prepare(root)))
    status = 0
    for step, command in _commands(name, rest, root):
        started = time.monotonic()
        status = wait(step, command, root)
        steps.append(Step(step, time.monotonic() - started))
        if status != 0:
            break
    return status


def _commands(name: str, rest: list[str], root: Path) -> list[tuple[str, list[str]]]:
    crosslane = prepare.tool(root, "crosslane")
    if name == "conform":
        return [("build", [crosslane, "build"]), ("check", [crosslane, "check", *rest])]
    if name == "gate":
        return [("gate", [crosslane, "gate", "--policy", str(root / "ci" / "gate-pull-request.toml"), *rest])]
    if name == "selftest":
        return [("selftest", [crosslane, "selftest", *rest])]
    if name == "test":
        return [("tests", [prepare.tool(root, "tox"), "run", *(rest or ["-m", "check"])])]
    return []


def wait(step: str, command: list[str], root: Path) -> int:
    """Run a command to its end, also through Ctrl-C, which reaches it as well: it says what was done so far."""
    with subprocess.Popen(command, cwd=root, stdin=subprocess.DEVNULL) as process:
        try:
            status = process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise
    if status < 0:
        print(f"ci: {step} was ended by signal {-status}: {' '.join(command)}", file=sys.stderr)
        return 3
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
