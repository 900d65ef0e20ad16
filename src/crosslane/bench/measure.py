# SPDX-License-Identifier: Apache-2.0
"""Runs the bench program and reads its answers; measures noisy figures once more, longer."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from crosslane.bench.jobs import Job, hidden_bits, real_len
from crosslane.bench.stats import Estimate, estimate, ratio
from crosslane.errors import BadInput, HarnessFault

__all__ = [
    "CLOCKS",
    "Clock",
    "Measurement",
    "Series",
    "Settings",
    "arguments",
    "measure",
    "measure_all",
    "pick_cpu",
    "read_answers",
]

CLOCKS = ("auto", "perf", "tsc", "none")
_AGAIN_FACTOR = 4
_NUM_TURNS = 6
_CLOCK_TEXTS = {
    "perf": "core cycles of the processor's counter (perf_event)",
    "tsc": "time-stamp counter cycles (a constant rate, not the core's momentary one)",
    "none": "no cycle counter",
}


@dataclass(frozen=True)
class Settings:
    """How to measure. ``sample_us`` is the length of a sample in microseconds, ``rounds`` how many each subject gets.

    ``cpu`` is the one that the process is pinned to, ``max_noise`` the widest half interval that concludes (0.03: 3 %).
    ``turn_s`` is the least time in seconds from one turn of all jobs to the next.
    """

    sizes: tuple[int, ...]
    rounds: int = 30
    sample_us: int = 200
    cpu: int = 0
    clock: str = "auto"
    max_noise: float = 0.03
    peer_hardware: bool = False
    turn_s: float = 0.2


@dataclass(frozen=True)
class Clock:
    """What cycles mean in a measurement: ``perf``, ``tsc`` or ``none``; the rate in cycles a microsecond."""

    name: str
    cycles_per_us: float
    why: str

    def __str__(self) -> str:
        rate = f" at {self.cycles_per_us / 1000:.3f} GHz" if self.name == "tsc" else ""
        why = f"; {self.why}" if self.why else ""
        return f"{_CLOCK_TEXTS[self.name]}{rate}{why}"


@dataclass(frozen=True)
class Series:
    """All samples of a subject at a size, in the order of rounds: ns and cycles of one message of ``real`` bytes."""

    real: int
    ns: tuple[float, ...]
    cycles: tuple[float, ...]

    @property
    def ns_per_byte(self) -> Estimate:
        """Nanoseconds a byte."""
        return estimate(self.ns).scaled(1.0 / self.real)

    @property
    def cycles_per_byte(self) -> Estimate:
        """Cycles a byte, of whatever the clock counts."""
        return estimate(self.cycles).scaled(1.0 / self.real)


@dataclass(frozen=True)
class Measurement:
    """A job's result. ``series`` is keyed by subject's name and size; ``absent`` says why a subject has none."""

    job: Job
    clock: Clock
    series: Mapping[tuple[str, int], Series]
    absent: Mapping[str, str]
    versions: Mapping[str, str]
    retaken: int

    def sizes(self, name: str) -> list[int]:
        """The sizes at which a subject was measured."""
        return [size for subject, size in self.series if subject == name]

    def ratio(self, name: str, size: int) -> Estimate:
        """How many times faster than the first subject of the job one is at a size."""
        return ratio(self.series[self.job.subjects[0].name, size].ns, self.series[name, size].ns)


def pick_cpu() -> int:
    """Return the CPU to pin to: the last one allowed, since interrupts mostly land on the first."""
    return max(os.sched_getaffinity(0))


def arguments(job: Job, settings: Settings, sizes: Sequence[int]) -> list[str]:
    """Return the bench program's arguments for a job at some sizes, in their order."""
    values = {
        "mode": job.mode.name,
        "cipher": job.cipher.name,
        "decrypting": int(job.direction == "decrypt"),
        "key_len": job.total_key_len,
        "iv_len": job.iv_len,
        "tag_len": job.tag_len,
        "update_len": job.update_len,
        "hide": hidden_bits(job.lane),
        "peer_hardware": int(settings.peer_hardware),
        "compare": int(len({subject.cipher for subject in job.subjects if subject.cipher}) <= 1),
        "sizes": ",".join(str(real_len(job, size)) for size in sizes),
        "subjects": ",".join(subject.symbol for subject in job.subjects),
        "rounds": settings.rounds,
        "sample_us": settings.sample_us,
        "clock": settings.clock,
        "cpu": settings.cpu,
    }
    return [f"{name}={value}" for name, value in values.items()]


@dataclass
class _Answers:
    """What was read so far; samples by subject's index and real length."""

    clock: Clock = Clock("none", 0.0, "")
    absent: dict[int, str] = field(default_factory=dict)
    versions: dict[int, str] = field(default_factory=dict)
    samples: dict[tuple[int, int], list[tuple[float, float]]] = field(default_factory=dict)
    retaken: int = 0
    ended: bool = False

    def read(self, line: str) -> None:
        """Take one line; raises ``ValueError``, ``KeyError`` or ``IndexError`` where it is none of the program's."""
        word, *rest = line.split(" ")
        readers: dict[str, Callable[[list[str]], None]] = {
            "clock": self._clock,
            "subject": self._subject,
            "refused": self._refused,
            "sample": self._sample,
            "retaken": self._retaken,
            "end": self._end,
        }
        readers[word](rest)

    def _clock(self, rest: list[str]) -> None:
        self.clock = Clock(rest[0], float(rest[1]), " ".join(rest[2:]))

    def _subject(self, rest: list[str]) -> None:
        reasons = {
            "ready": "",
            "declined": "declines on this CPU",
            "unsupported": "does not offer this algorithm or key length",
            "unknown": "is not in the program",
        }
        index, reason = int(rest[0]), reasons[rest[2]]
        if reason:
            self.absent[index] = reason
        if rest[3:] and rest[3]:
            self.versions[index] = rest[3]

    def _refused(self, rest: list[str]) -> None:
        self.absent.setdefault(int(rest[0]), f"refuses messages of {rest[1]} bytes with status {rest[2]}")

    def _sample(self, rest: list[str]) -> None:
        real, index, messages, ns, cycles = map(int, rest)
        self.samples.setdefault((index, real), []).append((ns / messages, cycles / messages))

    def _retaken(self, rest: list[str]) -> None:
        self.retaken = int(rest[0])

    def _end(self, _rest: list[str]) -> None:
        self.ended = True


def read_answers(job: Job, sizes: Sequence[int], text: str) -> Measurement:
    """Read the program's output for a job at some sizes; raises ``HarnessFault`` where it is incomplete."""
    answers = _Answers()
    for line in text.splitlines():
        try:
            answers.read(line)
        except (ValueError, KeyError, IndexError):
            raise HarnessFault(
                f"the bench program answered {line!r}, which is none of its lines; build it anew"
            ) from None
    if not answers.ended:
        raise HarnessFault(
            f"the bench program ended before its last line, while measuring {job.algorithm}; run it again"
        )
    series = {}
    for index, subject in enumerate(job.subjects):
        for size in sizes:
            samples = answers.samples.get((index, real_len(job, size)))
            if samples:
                # Two sizes may round up to the same length, whose samples are then shared.
                ns, cycles = zip(*samples, strict=True)
                series[subject.name, size] = Series(real=real_len(job, size), ns=ns, cycles=cycles)
    names = [subject.name for subject in job.subjects]
    return Measurement(
        job=job,
        clock=answers.clock,
        series=series,
        absent={names[index]: reason for index, reason in answers.absent.items()},
        versions={names[index]: version for index, version in answers.versions.items()},
        retaken=answers.retaken,
    )


def _run(program: Path, job: Job, settings: Settings, sizes: Sequence[int]) -> Measurement:
    # nettle takes the CPU's features from this list where it is set; no name in it means none of them.
    environment = dict(os.environ) if settings.peer_hardware else {**os.environ, "NETTLE_FAT_OVERRIDE": "none"}
    unique = list({real_len(job, size): size for size in sizes}.values())
    command = [str(program), *arguments(job, settings, unique)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment
    )
    words = done.stderr.strip()
    if done.returncode == 2 and words:
        raise BadInput(words)
    if done.returncode != 0:
        raise HarnessFault(
            f"the bench program ended with status {done.returncode} while measuring {job.algorithm} "
            f"({words or 'it said nothing'}); run crosslane check on these cells first"
        )
    return read_answers(job, sizes, done.stdout)


def _noisy_sizes(found: Measurement, limit: float) -> list[int]:
    names = [subject.name for subject in found.job.subjects]
    noisy = []
    for size in dict.fromkeys(size for _, size in found.series):
        measured = [name for name in names if (name, size) in found.series]
        noises = [found.series[name, size].ns_per_byte.noise for name in measured]
        if measured and measured[0] == names[0]:
            noises += [found.ratio(name, size).noise for name in measured[1:]]
        if max(noises) > limit:
            noisy.append(size)
    return noisy


def measure(program: Path, job: Job, settings: Settings) -> Measurement:
    """Measure one job; see ``measure_all``."""
    return measure_all([(program, job)], settings)[0]


def measure_all(
    tasks: Sequence[tuple[Path, Job]], settings: Settings, say: Callable[[str], None] = lambda _: None
) -> list[Measurement]:
    """Measure jobs, each with its program; sizes that are too noisy are measured anew with four times the rounds, once.

    The samples of every figure are spread over several turns of all jobs, so that an episode in which the machine is
    slow hits some samples of many figures, where it widens intervals, and not all samples of one, where it would look
    like the truth. ``say`` is told each turn. Raises ``BadInput`` for an unusable clock or CPU, ``HarnessFault`` where
    a program fails.
    """
    found = _in_turns([(program, job, settings.sizes) for program, job in tasks], settings, say)
    noisy = [_noisy_sizes(item, settings.max_noise) for item in found]
    again = [(program, job, sizes) for (program, job), sizes in zip(tasks, noisy, strict=True) if sizes]
    longer = iter(_in_turns(again, replace(settings, rounds=_AGAIN_FACTOR * settings.rounds), say))
    return [_replaced(item, next(longer)) if sizes else item for item, sizes in zip(found, noisy, strict=True)]


def _replaced(found: Measurement, again: Measurement) -> Measurement:
    merged = {key: again.series.get(key, series) for key, series in found.series.items()}
    return replace(found, series=merged, retaken=found.retaken + again.retaken)


def _in_turns(
    tasks: Sequence[tuple[Path, Job, Sequence[int]]], settings: Settings, say: Callable[[str], None]
) -> list[Measurement]:
    """Measure jobs at their sizes, all in each turn."""
    part = replace(settings, rounds=-(-settings.rounds // _NUM_TURNS))
    found: list[list[Measurement]] = [[] for _ in tasks]
    for turn in range(_NUM_TURNS if tasks else 0):
        say(f"measuring {len(tasks)} {'job' if len(tasks) == 1 else 'jobs'}, turn {turn + 1} of {_NUM_TURNS}")
        started = time.monotonic()
        for measured, (program, job, sizes) in zip(found, tasks, strict=True):
            measured.append(_run(program, job, part, sizes))
        if turn + 1 < _NUM_TURNS:
            time.sleep(max(0.0, started + settings.turn_s - time.monotonic()))
    return [_joined(turns) for turns in found]


def _joined(turns: Sequence[Measurement]) -> Measurement:
    """One measurement of all turns: samples one after the other, what was absent once is absent."""
    first = turns[0]
    absent = {name: reason for turn in turns for name, reason in turn.absent.items()}
    series = {}
    for key, one in first.series.items():
        parts = [turn.series[key] for turn in turns if key in turn.series]
        ns = tuple(value for part in parts for value in part.ns)
        cycles = tuple(value for part in parts for value in part.cycles)
        series[key] = Series(real=one.real, ns=ns, cycles=cycles)
    return replace(first, series=series, absent=absent, retaken=sum(turn.retaken for turn in turns))
