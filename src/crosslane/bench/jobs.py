# SPDX-License-Identifier: Apache-2.0
"""What is measured together: one algorithm, direction and key length through several subjects in one process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from crosslane.errors import BadInput
from crosslane.instances import instances
from crosslane.isa import FEATURES
from crosslane.lanes import lane_named, lanes_for_host
from crosslane.model import Algorithm, Cell, Cipher, Implementation, Lane, Mode, Registry
from crosslane.names import select_cells
from crosslane.registry import cells, cipher_named, implementation_named, mode_named

__all__ = [
    "DEFAULT_KEY_LENS",
    "DEFAULT_SIZES",
    "Job",
    "Subject",
    "choose_cells",
    "hidden_bits",
    "plan_jobs",
    "real_len",
    "with_base",
    "with_composed",
]

DEFAULT_SIZES = (16, 64, 128, 256, 512, 1024, 1420, 2048, 4096, 8192)
"""Message lengths in bytes."""

DEFAULT_KEY_LENS = (16, 24, 32)
"""Lengths in bytes of one cipher key that are measured, of those that a cipher takes."""

_FIRST_BIT = {"x86_64": 0, "aarch64": 32}


@dataclass(frozen=True)
class Subject:
    """One column of a comparison: ``name`` for people, ``symbol`` for the bench program; a library has no cipher."""

    name: str
    symbol: str
    cipher: str


@dataclass(frozen=True)
class Job:
    """One measurement. ``key_len`` is the length of one cipher key, ``update_len`` that of a message's pieces.

    Lengths are in bytes. The first subject is the base of ratios.
    """

    mode: Mode
    cipher: Cipher
    direction: str
    key_len: int
    lane: Lane
    subjects: tuple[Subject, ...]
    update_len: int = 0

    @property
    def algorithm(self) -> Algorithm:
        """The mode of the cipher."""
        return Algorithm(mode=self.mode.name, cipher=self.cipher.name)

    @property
    def column(self) -> str:
        """Mode and direction as published tables head their columns: ``cbc-dec``, ``cmac``."""
        return self.mode.name if self.is_mac else f"{self.mode.name}-{self.direction[:3]}"

    @property
    def is_mac(self) -> bool:
        """Whether the mode only authenticates."""
        return bool(self.mode.tag_lens) and self.mode.iv == "none"

    @property
    def total_key_len(self) -> int:
        """Bytes of the mode's key."""
        return self.mode.num_keys * self.key_len + self.mode.key_extra_len

    @property
    def iv_len(self) -> int:
        """Bytes of the iv: 96 bits where the mode may choose, for which standards optimise."""
        lens = [length or self.cipher.block_len for length in self.mode.iv_lens]
        return 12 if 12 in lens else max(lens, default=0)

    @property
    def tag_len(self) -> int:
        """Bytes of the tag: the longest that the mode and the block allow."""
        lens = [length or self.cipher.block_len for length in self.mode.tag_lens]
        return max((length for length in lens if length <= self.cipher.block_len), default=min(lens, default=0))


def real_len(job: Job, size: int) -> int:
    """Return the length that is measured for a size: whole blocks where the mode takes no others, as the kernel does.

    Speeds are those of the real length.
    """
    block = job.cipher.block_len
    if job.mode.partial != "refused":
        return max(size, job.mode.min_len_blocks * block)
    return max(-(-size // block), job.mode.min_len_blocks) * block


def hidden_bits(lane: Lane) -> int:
    """Return the CPU features that a lane hides as the bit set of ``subject.h``."""
    order = FEATURES.get(lane.arch, ())
    return sum(1 << (_FIRST_BIT[lane.arch] + order.index(feature)) for feature in lane.hides)


def choose_cells(registry: Registry, patterns: Sequence[str], *, host: str | None = None) -> list[Cell]:
    """Return the cells to measure.

    Time is what most people ask for: a pattern takes the cells that run natively, and those under qemu only where it
    names their lane or where nothing native fits. Without a pattern all native cells are taken. Libraries are left to
    ``bench peers``. Raises ``BadInput``, with the nearest names, for a pattern that fits none, and for a lane
    with a sanitizer.
    """
    libraries = {instance.name for instance in instances(registry, host)}
    known = [cell for cell in cells(registry, host) if cell.driver not in libraries]
    lanes = {lane.name: lane for lane in lanes_for_host(registry, host)}
    chosen: set[Cell] = set()
    for pattern in patterns or ("*",):
        fitting = select_cells(known, [pattern])
        native = [cell for cell in fitting if lanes[cell.lane].runner == "native" and lanes[cell.lane].usual]
        chosen.update(fitting if not native or _names_lane(pattern, fitting) else native)
    for name in sorted({cell.lane for cell in chosen}):
        if lanes[name].sanitized:
            raise BadInput(
                f"{name} is a lane with a sanitizer, whose code is not what users run; choose cells of another lane"
            )
    return [cell for cell in known if cell in chosen]


def _names_lane(pattern: str, fitting: Sequence[Cell]) -> bool:
    """Whether a pattern asks for lanes, which one that fits everything does not."""
    fits = any(fnmatchcase(cell.lane, pattern) for cell in fitting)
    return "@" in pattern or (fits and not fnmatchcase("", pattern))


def plan_jobs(registry: Registry, chosen: Sequence[Cell], *, key_lens: Sequence[int] = ()) -> list[Job]:
    """Group cells into jobs: those of one algorithm and lane are measured together, generic first.

    ``key_lens`` restricts to these lengths of a cipher key, in bytes; by default ``DEFAULT_KEY_LENS``. Raises
    ``BadInput`` where no chosen cipher takes a wanted length.
    """
    groups: dict[tuple[str, Algorithm], list[Implementation]] = {}
    for cell in chosen:
        group = groups.setdefault((cell.lane, cell.algorithm), [])
        group.append(implementation_named(registry, cell.driver))
    _check_key_lens(registry, chosen, key_lens)
    jobs = []
    for (lane_name, algorithm), items in groups.items():
        cipher, mode = cipher_named(registry, algorithm.cipher), mode_named(registry, algorithm.mode)
        ordered = sorted(items, key=lambda item: (not item.is_generic, item.priority, item.driver))
        subjects = tuple(_subject(item) for item in ordered)
        lane = lane_named(registry.lanes, lane_name)
        jobs += [
            Job(mode=mode, cipher=cipher, direction=direction, key_len=key_len, lane=lane, subjects=subjects)
            for key_len in _key_lens(cipher, key_lens)
            for direction in mode.directions
        ]
    return jobs


def _subject(item: Implementation) -> Subject:
    return Subject(name=item.driver, symbol=item.symbol, cipher=item.cipher)


def _key_lens(cipher: Cipher, wanted: Sequence[int]) -> list[int]:
    found = [length for length in cipher.key_lens if length in (wanted or DEFAULT_KEY_LENS)]
    return found if found or wanted else [max(cipher.key_lens)]


def _check_key_lens(registry: Registry, chosen: Sequence[Cell], wanted: Sequence[int]) -> None:
    ciphers = [cipher_named(registry, name) for name in sorted({cell.algorithm.cipher for cell in chosen})]
    for length in wanted:
        if not any(length in cipher.key_lens for cipher in ciphers):
            allowed = "; ".join(f"{cipher.name} {', '.join(map(str, cipher.key_lens))}" for cipher in ciphers)
            raise BadInput(f"no chosen cipher takes a key of {length} bytes; allowed are: {allowed}")


def with_composed(registry: Registry, jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs with, before each implementation that fuses its mode, the same one composed by mode code."""
    found = []
    for job in jobs:
        subjects: list[Subject] = []
        for subject in job.subjects:
            if job.mode.name in implementation_named(registry, subject.name).fused:
                subjects.append(replace(subject, name=f"{subject.name}:composed", symbol=f"{subject.symbol}:composed"))
            subjects.append(subject)
        found.append(replace(job, subjects=tuple(subjects)))
    return found


def with_base(registry: Registry, jobs: Sequence[Job], base: str) -> list[Job]:
    """Return the jobs with the driver ``base`` as the first subject of each, whatever its cipher.

    Raises ``BadInput`` for an unknown driver and for one of another architecture, block or key length.
    """
    item = implementation_named(registry, base)
    cipher = cipher_named(registry, item.cipher)
    found = []
    for job in jobs:
        if item.isa not in ("any", job.lane.arch):
            raise BadInput(
                f"{base} is for {item.isa} and cannot be the base in {job.lane.name}; choose a driver for "
                f"{job.lane.arch}"
            )
        if cipher.block_len != job.cipher.block_len:
            raise BadInput(
                f"{base} has blocks of {cipher.block_len} bytes and {job.cipher.name} of {job.cipher.block_len}; "
                "choose a base of the same block length"
            )
        others = tuple(subject for subject in job.subjects if subject.name != base)
        # A tag fits one cipher's message only, so that decryption cannot be compared across ciphers.
        tagged = cipher.name != job.cipher.name and job.tag_len > 0 and job.direction == "decrypt"
        if others and job.key_len in cipher.key_lens and not tagged:
            found.append(replace(job, subjects=(_subject(item), *others)))
    if not found:
        raise BadInput(f"nothing is left to compare with {base}; choose cells of other drivers or key lengths it takes")
    return found
