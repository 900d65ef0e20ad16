# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of messages under qemu-user, through a plugin of the emulator."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslane.bench.jobs import Job, real_len
from crosslane.bench.measure import Settings, arguments
from crosslane.errors import HarnessFault

__all__ = ["Counts", "count"]

_TIME_LIMIT_S = 300.0


@dataclass(frozen=True)
class Counts:
    """Instructions of one message by subject's name and size, and why there are none.

    ``unavailable`` is a sentence for the whole job, ``absent`` for single subjects.
    """

    job: Job
    instructions: Mapping[tuple[str, int], int]
    absent: Mapping[str, str]
    unavailable: str = ""

    def per_byte(self, name: str, size: int) -> float:
        """Instructions a byte."""
        return self.instructions[name, size] / real_len(self.job, size)


def count(program: Path, runner: Sequence[str], plugin: Path, job: Job, settings: Settings) -> Counts:
    """Run a job's messages once each under the emulator ``runner`` with the plugin.

    Raises ``HarnessFault`` where the program fails under an emulator that loads the plugin; where it does not load, the
    result says so.
    """
    sizes = list({real_len(job, size): size for size in settings.sizes}.values())
    with tempfile.TemporaryDirectory(prefix="crosslane-") as folder:
        out = Path(folder) / "counts"
        command = [runner[0], "-plugin", f"{plugin},out={out}", *runner[1:], str(program)]
        command += [argument for argument in arguments(job, settings, sizes) if not argument.startswith("cpu=")]
        try:
            done = subprocess.run(
                [*command, "count=1"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=_TIME_LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            raise HarnessFault(
                f"counting {job.algorithm} took longer than {_TIME_LIMIT_S:.0f} s; choose fewer cells"
            ) from None
        lines = out.read_text().split() if out.exists() else []
    if not lines:
        return Counts(job, {}, {}, _why_not_loaded(runner[0], done.stderr))
    if done.returncode != 0:
        raise HarnessFault(
            f"the bench program failed under {Path(runner[0]).name}: {done.stderr.strip()}; run crosslane check"
        )
    return _pair(job, settings.sizes, done.stdout, [int(line) for line in lines])


def _why_not_loaded(emulator: str, words: str) -> str:
    first = words.strip().splitlines()[0] if words.strip() else "it said nothing"
    return (
        f"{Path(emulator).name} does not load the plugin that counts instructions ({first}); install a dynamically "
        "linked qemu-user of version 7.2, as in Debian 12"
    )


def _pair(job: Job, sizes: Sequence[int], text: str, counts: Sequence[int]) -> Counts:
    """Bring the program's lines and the plugin's counts together; the first count is what the marks cost."""
    by_len: dict[tuple[int, int], int] = {}
    absent: dict[str, str] = {}
    position = 1
    for line in text.splitlines():
        word, *rest = line.split(" ")
        if word == "counted":
            by_len[int(rest[1]), int(rest[0])] = (counts[position] - counts[0]) // int(rest[2])
            position += 1
        elif word == "subject" and rest[2] != "ready":
            absent[job.subjects[int(rest[0])].name] = "declines on this CPU" if rest[2] == "declined" else rest[2]
        elif word == "refused":
            absent.setdefault(job.subjects[int(rest[0])].name, f"refuses messages of {rest[1]} bytes")
    if position != len(counts):
        raise HarnessFault(
            f"the plugin counted {len(counts) - 1} messages and the program {position - 1}; run it again"
        )
    found = {
        (subject.name, size): by_len[index, real_len(job, size)]
        for index, subject in enumerate(job.subjects)
        for size in sizes
        if (index, real_len(job, size)) in by_len
    }
    return Counts(job, found, absent)
