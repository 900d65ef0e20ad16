# SPDX-License-Identifier: Apache-2.0
"""Whether an emulator is to blame: the same program natively, one instruction at a time, and in other emulators."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from crosslane.execute import Station
from crosslane.model import Lane
from crosslane.toolchain import emulator_name, find_qemu

__all__ = ["Otherwise", "other_runs", "single_step_option"]

_PROBE_LIMIT_S = 20.0
_END = "--"
"""What the launcher's own arguments end with; runner and program follow."""


@dataclass(frozen=True)
class Otherwise:
    """Another way to run the same program: its name, and the station."""

    name: str
    station: Station


def single_step_option(qemu: str) -> str:
    """The option with which an emulator translates one instruction at a time; empty where it has none."""
    try:
        done = subprocess.run(
            [qemu, "-h"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = done.stdout.decode(errors="replace").split()
    return next((option for option in ("-one-insn-per-tb", "-singlestep") if option in words), "")


def other_runs(station: Station, lane: Lane, natively: Station | None) -> Iterator[Otherwise]:
    """The ways to run an emulated station's program otherwise; nothing where the lane is native.

    ``natively`` is the same program without the emulator, where the host can run it.
    """
    if lane.runner != "qemu":
        return
    if natively is not None:
        yield Otherwise("without the emulator", natively)
    qemu = find_qemu(lane.arch)
    option = single_step_option(qemu)
    if option:
        yield Otherwise(f"{Path(qemu).name} {option}", _with_runner(station, qemu, option))
    for other in _others(lane.arch, qemu):
        yield Otherwise(f"{other}", _with_runner(station, other, ""))


def _with_runner(station: Station, qemu: str, option: str) -> Station:
    command = list(station.command)
    at = len(command) - 1 - command[::-1].index(_END) + 1
    command[at : at + 1] = [qemu, *([option] if option else [])]
    return replace(station, command=tuple(command))


def _others(arch: str, known: str) -> Iterator[str]:
    """Other emulators of the architecture on the path, by what they are and not by their name."""
    seen = {Path(known).resolve()}
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        for name in (emulator_name(arch), f"{emulator_name(arch)}-static"):
            found = shutil.which(name, path=folder) if folder else None
            if found and Path(found).resolve() not in seen:
                seen.add(Path(found).resolve())
                yield found
