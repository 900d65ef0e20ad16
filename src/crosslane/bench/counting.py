# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of messages: through a plugin of qemu-user, natively by single steps (``stepper.c``)."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crosslane.bench.jobs import Job, real_len
from crosslane.bench.measure import Settings, arguments
from crosslane.build import build_plugin, build_stepper
from crosslane.errors import HarnessFault
from crosslane.model import Lane
from crosslane.toolchain import runner_command

__all__ = ["Counter", "Counts", "Traces", "count", "counter_for", "trace"]

_TIME_LIMIT_S = 300.0
_STEPPER_FAILED = 125
_ADDRESS = "Q"
_BEFORE = 2
"""Counts before those of messages: of the marks alone, and of a message that does nothing."""


@dataclass(frozen=True)
class Counts:
    """Instructions of one message by subject's name and size, and why there are none.

    ``unavailable`` is a sentence for the whole job, ``absent`` for single subjects. ``own`` of each number are neither
    the mode's nor the implementation's, but of the program that calls them.
    """

    job: Job
    instructions: Mapping[tuple[str, int], int]
    absent: Mapping[str, str]
    unavailable: str = ""
    own: int = 0

    def per_byte(self, name: str, size: int) -> float:
        """Instructions a byte."""
        return self.instructions[name, size] / real_len(self.job, size)


@dataclass(frozen=True)
class Traces:
    """The addresses of all instructions of one message, in their order, by subject's name and size."""

    job: Job
    addresses: Mapping[tuple[str, int], array[int]]
    absent: Mapping[str, str]
    unavailable: str = ""


@dataclass(frozen=True)
class Counter:
    """What counts in a lane: the emulator's command and its plugin; natively no command, and the stepper."""

    runner: tuple[str, ...]
    tool: Path

    def command(self, out: Path, traced: Path | None) -> list[str]:
        """Return what stands before the program so that counts, and addresses if wanted, get into files."""
        files = [f"out={out}", *([f"trace={traced}"] if traced else [])]
        if not self.runner:
            return [str(self.tool), *files]
        return [self.runner[0], "-plugin", ",".join([str(self.tool), *files]), *self.runner[1:]]

    def why_not(self, words: str) -> str:
        """Return the sentence for a counter that did not start; ``words`` is what it said."""
        first = words.strip().splitlines()[0] if words.strip() else "it said nothing"
        if not self.runner:
            return f"instructions cannot be counted natively ({first}); let processes trace their children (ptrace)"
        return (
            f"{Path(self.runner[0]).name} does not load the plugin that counts instructions ({first}); install a "
            "dynamically linked qemu-user of version 7.2, as in Debian 12"
        )


def counter_for(root: Path, lane: Lane) -> Counter:
    """Build, or find in the cache, what counts in a lane; raises as ``build_shim`` and ``runner_command`` do."""
    runner = runner_command(lane)
    return Counter(runner, build_plugin(root) if runner else build_stepper(root))


@dataclass(frozen=True)
class _Run:
    """What a run left: the program's lines, a count a pair of marks, the addresses one after the other."""

    text: str
    counts: list[int]
    addresses: array[int]
    unavailable: str = ""


def _run(program: Path, counter: Counter, job: Job, settings: Settings, *, traced: bool) -> _Run:
    sizes = list({real_len(job, size): size for size in settings.sizes}.values())
    addresses = array(_ADDRESS)
    with tempfile.TemporaryDirectory(prefix="crosslane-") as folder:
        out, trace_file = Path(folder) / "counts", Path(folder) / "trace"
        command = [*counter.command(out, trace_file if traced else None), str(program)]
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
        if traced and trace_file.exists():
            addresses.frombytes(trace_file.read_bytes())
    if not lines or (not counter.runner and done.returncode == _STEPPER_FAILED):
        return _Run("", [], addresses, counter.why_not(done.stderr))
    if done.returncode != 0:
        place = f"under {Path(counter.runner[0]).name}" if counter.runner else "under the stepper"
        raise HarnessFault(f"the bench program failed {place}: {done.stderr.strip()}; run crosslane check")
    counts = [int(line) for line in lines]
    if traced and sum(counts) != len(addresses):
        raise HarnessFault(f"the trace has {len(addresses)} addresses of {sum(counts)} instructions; run it again")
    return _Run(done.stdout, counts, addresses)


def count(program: Path, counter: Counter, job: Job, settings: Settings) -> Counts:
    """Run a job's messages once each with a counter.

    Raises ``HarnessFault`` where the program fails with a counter that works; where it does not, the result says so.
    """
    run = _run(program, counter, job, settings, traced=False)
    if run.unavailable:
        return Counts(job, {}, {}, run.unavailable)
    positions, absent = _pair(job, run)
    found = {
        (subject.name, size): run.counts[positions[index, real_len(job, size)]] - run.counts[0]
        for index, subject in enumerate(job.subjects)
        for size in settings.sizes
        if (index, real_len(job, size)) in positions
    }
    return Counts(job, found, absent, own=run.counts[1] - run.counts[0])


def trace(program: Path, counter: Counter, job: Job, settings: Settings) -> Traces:
    """Run a job's messages as ``count`` does, for the addresses of all instructions, those of the marks among them."""
    run = _run(program, counter, job, settings, traced=True)
    if run.unavailable:
        return Traces(job, {}, {}, run.unavailable)
    positions, absent = _pair(job, run)
    starts = [0, *itertools.accumulate(run.counts)]
    found = {
        (subject.name, size): run.addresses[starts[position] : starts[position + 1]]
        for index, subject in enumerate(job.subjects)
        for size in settings.sizes
        for position in [positions.get((index, real_len(job, size)))]
        if position is not None
    }
    return Traces(job, found, absent)


def _pair(job: Job, run: _Run) -> tuple[dict[tuple[int, int], int], dict[str, str]]:
    """Return which count is whose, by subject's index and real length, and why subjects have none.

    The first two counts are not of messages.
    """
    positions: dict[tuple[int, int], int] = {}
    absent: dict[str, str] = {}
    for line in run.text.splitlines():
        word, *rest = line.split(" ")
        if word == "counted":
            positions[int(rest[1]), int(rest[0])] = len(positions) + _BEFORE
        elif word == "subject" and rest[2] != "ready":
            absent[job.subjects[int(rest[0])].name] = "declines on this CPU" if rest[2] == "declined" else rest[2]
        elif word == "refused":
            absent.setdefault(job.subjects[int(rest[0])].name, f"refuses messages of {rest[1]} bytes")
    if len(positions) + _BEFORE != len(run.counts):
        raise HarnessFault(
            f"{len(run.counts) - _BEFORE} messages were counted and the program made {len(positions)}; run it again"
        )
    return positions, absent
