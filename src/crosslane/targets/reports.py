# SPDX-License-Identifier: Apache-2.0
"""Departures on their way from targets to the findings.

A target runs below a process that waits for it. Where something departs it leaves a report in a folder, and goes on at
once: keeping takes longer than an engine's ``-timeout`` may allow for an input. The process above reads the reports,
those of the processes that the engine starts for -fork and -jobs too, writes the inputs, keeps each kind, and says
with its status what it came to.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crosslane.targets.options import Options

__all__ = ["REPORTS", "Keeping", "leave_report", "run_below"]

REPORTS = "CROSSLANE_TARGET_REPORTS"
"""The variable that names the folder of reports: where it is set, this process is below another."""
_MOST_A_FACE = 3
_MOST_KEPT = 16
_KEEP_TIMEOUT_S = 900.0
_LOOK_EVERY_S = 0.1


def leave_report(folder: Path, data: bytes, *, key: str, face: str, text: str) -> None:
    """Leave an input that departs in the folder, whole or not at all; raises OSError."""
    report = {"key": key, "face": face, "text": text, "data": base64.b64encode(data).decode("ascii")}
    name = f"{time.monotonic_ns():020}-{os.getpid()}"
    part = folder / f".{name}"
    part.write_text(json.dumps(report), encoding="ascii")
    part.rename(folder / f"{name}.json")


def _say(text: str) -> None:
    print(f"crosslane: {text}", file=sys.stderr, flush=True)


@dataclass
class Keeping:
    """Puts reports into the store, each kind once, those that differ in their face alone three times."""

    family: str
    options: Options
    prefix: str
    num_kept: int = 0
    num_failed: int = 0
    num_left: int = 0
    _keys: set[str] = field(default_factory=set)
    _faces: Counter[str] = field(default_factory=Counter)

    def take(self, folder: Path) -> None:
        """Keep what lies in the folder, in the order in which it came."""
        for file in sorted(folder.glob("*.json")):
            report = json.loads(file.read_text(encoding="ascii"))
            file.unlink()
            if report["key"] in self._keys or self._faces[report["face"]] >= _MOST_A_FACE:
                continue
            self._keys.add(report["key"])
            self._faces[report["face"]] += 1
            if self.num_kept + self.num_failed >= _MOST_KEPT:
                self._leave(report["text"])
                continue
            if self._keep(base64.b64decode(report["data"]), report["text"]):
                self.num_kept += 1
            else:
                self.num_failed += 1

    def _leave(self, text: str) -> None:
        self.num_left += 1
        if self.num_left == 1:
            _say(f"{_MOST_KEPT} departures were kept, further kinds are only counted, the first of them: {text}")

    def _keep(self, data: bytes, text: str) -> bool:
        file = Path(f"{self.prefix}departure-{hashlib.sha1(data, usedforsecurity=False).hexdigest()}")
        try:
            file.write_bytes(data)
        except OSError as error:
            _say(f"{text}; {file} cannot be written ({error.strerror}): name another -artifact_prefix")
            return False
        _say(f"{text}; the input is {file}")
        command = [sys.executable, "-m", "crosslane", "targets", "keep", self.family, str(file)]
        command += [word for cell in self.options.cells for word in ("--cell", cell)]
        command += [word for folder in self.options.impls for word in ("--impls", folder)]
        command += ["--findings", self.options.findings]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=_KEEP_TIMEOUT_S, check=False
            )
            why = "" if done.returncode in (0, 1) else f"status {done.returncode}"
        except (OSError, subprocess.TimeoutExpired) as error:
            why = str(error)
        if why:
            _say(f"{file} could not be put among the findings ({why}): see `crosslane targets keep`")
        return not why

    def status(self, of_target: int) -> int:
        """The status: the target's own where it is not 0, 3 where something could not be kept, 1 where it departed."""
        if self.num_left:
            _say(f"{self.num_left} further kinds of departures were not kept: mend those that were, and run it again")
        if of_target:
            return of_target if of_target > 0 else 128 - of_target
        return 3 if self.num_failed else int(bool(self.num_kept))


def run_below(argv: Sequence[str], keeping: Keeping) -> int:
    """Start the program of ``argv`` below this process, keep what it reports until it ends; returns the status.

    An interrupt of the terminal ends the program, which it reaches too; a SIGTERM is passed on.
    """
    with tempfile.TemporaryDirectory(prefix="crosslane-reports-") as name:
        folder = Path(name)
        signal.signal(signal.SIGINT, lambda *_: None)
        process = subprocess.Popen([sys.executable, *argv], env={**os.environ, REPORTS: name})
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda got, _: process.send_signal(got))
        while process.poll() is None:
            keeping.take(folder)
            time.sleep(_LOOK_EVERY_S)
        keeping.take(folder)
        return keeping.status(process.returncode)
