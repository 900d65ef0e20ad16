# SPDX-License-Identifier: Apache-2.0
"""Results as plain data: what a run says of each cell, readable back from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

__all__ = [
    "REGRESSION",
    "SECTORS",
    "AlgorithmResult",
    "CellResult",
    "Count",
    "FaultSeen",
    "Finding",
    "Judgement",
    "Library",
    "LibraryRow",
    "Proof",
    "Seconds",
    "State",
]

Count = Annotated[int, Meta(ge=0, le=1 << 53)]
"""A number of things, as the schema of results has it."""
Seconds = Annotated[float, Meta(ge=0, le=1e12)]
"""A time in seconds; neither infinite nor no number."""

SECTORS = "disk:"
"""What the ids of sectors begin with."""
REGRESSION = "regression:"
"""What the ids of stored cases begin with that are replayed first; the first digits of the case's digest follow."""

State = Literal["ran", "declined", "void", "not_run", "unusable", "not_effective"]


@dataclass(frozen=True)
class Finding:
    """A departure that was looked at again. ``repeats``: ``alone`` in a fresh process, ``in_batch`` only behind its
    neighbours, or ``flaky``. ``count`` is how many cases of this cell were seen to depart alike.
    ``quorum`` says which libraries agree with whom, where three sources or more could say.
    """

    case_id: str
    verdict: str
    symptom: str
    repeats: Literal["alone", "in_batch", "flaky"]
    count: Count
    text: str
    quorum: str = ""

    @property
    def of_sectors(self) -> bool:
        """Whether sectors of the disk workload departed, not a case that a manifest makes."""
        return self.case_id.startswith(SECTORS)

    @property
    def of_regression(self) -> bool:
        """Whether a stored case departed that once showed a fault."""
        return self.case_id.startswith(REGRESSION)

    @property
    def of_vector(self) -> bool:
        """Whether a published vector departed."""
        return ":" in self.case_id and not self.of_sectors and not self.of_regression


@dataclass(frozen=True)
class FaultSeen:
    """A finding of the store that this cell showed: its id, the watcher that objected, and its class.

    ``accepted`` is the reason of the deviation that accepts it; empty where none does.
    """

    id: str
    symptom: str
    fault_class: str
    text: str
    accepted: str = ""


@dataclass(frozen=True)
class Judgement:
    """What one check says of one cell. ``passed`` is None where the check does not apply, with the reason."""

    check: str
    sentence: str
    passed: bool | None
    reason: str


@dataclass(frozen=True)
class Proof:
    """Whether a planted fault was caught, or a control stayed green, in one cell; ``text`` says what went otherwise.

    ``whole``: by the judgement of the whole cell, and not by a stored case.
    """

    name: str
    cell: str
    control: bool
    whole: bool
    holds: bool
    text: str = ""


@dataclass(frozen=True)
class Library:
    """The library behind a provider's cell, as it was loaded.

    ``version`` is what it says of itself, ``source`` where it comes from: ``system``, ``build``, or the release of the
    sysroot. ``file`` is the loaded file, ``sha256`` its digest in hexadecimal digits; ``package`` and
    ``package_version`` are of the Debian package that brought it, empty where none did.
    """

    provider: str
    version: str
    source: str
    package: str
    package_version: str
    file: str
    sha256: str


@dataclass(frozen=True)
class LibraryRow:
    """What a run says of one algorithm of one library, as it was loaded in a lane, on one of its code paths.

    ``place`` is where it was to come from, ``library`` what was loaded, None where nothing was. ``verdict`` is
    ``agreed``, ``finding``, ``outside domain``, ``not promised``, ``switch not effective``, ``unusable``, ``void`` or
    ``did not run``.
    """

    name: str
    lane: str
    backend: str
    place: str
    library: Library | None
    algorithm: str
    verdict: str


@dataclass(frozen=True)
class CellResult:
    """Everything a run learned of one cell.

    ``comparisons`` counts messages, vectors and ``num_regressions`` of stored cases included, ``num_sampled`` messages
    held against the Python reference, ``num_threaded`` those run in two threads at once, ``num_large`` long ones
    compared by digests, ``num_bulk`` those
    held against one block at a time; ``wipes`` is whether it claims to leave no secret behind; ``paths`` maps a code
    path to the length classes in which it was taken; ``declared_paths`` are those of the cell's mode. ``covered``
    counts the messages of its first batch by what they exercise (``coverage.coverage``). ``full`` is whether it gets
    the full grids, ``build_lane`` whether that is there for its compiler. ``faults`` are its findings once they were
    shrunk. ``library`` is what a provider's cell was about, ``optional`` whether not every build of it has the
    algorithm. CPU times are in seconds. A cell is ``unusable`` where the library that it is about cannot be run at all,
    with the reason, and ``not_effective`` where the switch of its backend changes nothing for the algorithm; ``switch``
    is what it was seen to do. ``accepted``: deviations accept all that departed, and nothing else is red; the exit
    status does not count it. ``untold`` says why some of what departed could not be told apart; it is in no fault then.
    ``prints``: it wrote to its standard output.
    """

    cell: str
    state: State
    reason: str
    comparisons: Count
    wanted: Count
    skipped: Count
    num_vectors: Count
    num_departed: Count
    num_sampled: Count
    findings: tuple[Finding, ...]
    needed_features: tuple[str, ...]
    cpu_features: tuple[str, ...]
    declared_paths: tuple[str, ...]
    paths: Mapping[str, tuple[str, ...]]
    unwatched: tuple[str, ...]
    cpu_s: Seconds
    provider: bool = False
    num_threaded: Count = 0
    num_large: Count = 0
    num_bulk: Count = 0
    num_regressions: Count = 0
    wipes: bool = False
    judged_by: Mapping[str, Count] = field(default_factory=dict)
    judgements: tuple[Judgement, ...] = ()
    covered: Mapping[str, Count] = field(default_factory=dict)
    full: bool = False
    build_lane: bool = False
    faults: tuple[FaultSeen, ...] = ()
    library: Library | None = None
    switch: str = ""
    optional: bool = False
    accepted: bool = False
    untold: str = ""
    prints: bool = False

    @property
    def red(self) -> bool:
        """Whether a check failed."""
        return any(judgement.passed is False for judgement in self.judgements)


@dataclass(frozen=True)
class AlgorithmResult:
    """All cells of one plan, with the manifest (canonical JSON) that regenerates its cases.

    ``name`` is the algorithm's, with the provider whose domain the manifest keeps to.
    """

    name: str
    algorithm: str
    manifest: str
    digest: str
    cells: tuple[CellResult, ...]
    took_s: Seconds
    cpu_s: Seconds = 0.0
    notes: tuple[str, ...] = field(default=())
