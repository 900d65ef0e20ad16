# SPDX-License-Identifier: Apache-2.0
"""Runs the disk workload in all cells of one algorithm: sectors against generic, images against what is in them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from crosslane import wire
from crosslane.client import SharedMemory
from crosslane.compare import compare
from crosslane.desk import Desk, confirm_departure, open_desk, result_of
from crosslane.disk.images import Image
from crosslane.disk.ivs import Bytes, Generate, make_ivs, sector_numbers
from crosslane.disk.judge_ivs import IvJudge
from crosslane.disk.sectors import Request, answer_of, one_case, sector_batch, with_answers
from crosslane.disk.workload import draw_disks, num_disks, reads, writes
from crosslane.errors import HarnessFault
from crosslane.execute import CAPACITY, Executor
from crosslane.findings.case import case_of
from crosslane.findings.gather import Raw
from crosslane.manifest import Manifest
from crosslane.plan import AlgorithmPlan
from crosslane.records import SECTORS, AlgorithmResult, Finding
from crosslane.wire import CASE_RESULT, Batch, Results, Verdict, Watch

__all__ = ["DiskJob", "DiskResult", "conduct_disks", "image_requests", "planned_comparisons", "takes_key"]

_GROUP = 12
"""Cells whose processes live side by side: an emulator takes 10 MiB and more."""
_SECTOR_BYTES_PER_SESSION = 32 << 10
_BYTES_PER_BATCH = 4 << 20
_FEW_SESSIONS = 4
"""Sessions of an image that a cell gets which is neither native nor has the full grids."""
_MOST_RAW = 64


@dataclass(frozen=True)
class DiskJob:
    """One algorithm's plan, its images, and the batches of sectors for cells with full grids; others get one.

    The plan says which batch is the first.

    ``generate`` makes the ivs; it is replaced by tests alone, which plant a fault there.
    """

    plan: AlgorithmPlan
    images: tuple[Image, ...]
    num_batches: int
    generate: Generate = make_ivs


@dataclass(frozen=True)
class DiskResult:
    """What ``conduct`` would say of the algorithm, and for each cell the cases that departed, as they came."""

    result: AlgorithmResult
    raws: dict[str, tuple[Raw, ...]]


@dataclass(frozen=True)
class _Part:
    """A batch with the results that are expected; ``few`` is whether every cell runs it."""

    name: str
    batch: Batch
    expected: Results
    few: bool


@dataclass
class _Run:
    """What all cells of a job share."""

    job: DiskJob
    memory: SharedMemory
    oracle: Executor
    judge: IvJudge
    raws: dict[str, list[Raw]] = field(default_factory=dict)

    def answers(self, batch: Batch) -> Results:
        """What generic makes of a batch."""
        wire.encode_batch_into(batch, self.memory.view)
        self.oracle.start(batch, len(batch))
        results = self.oracle.finish()
        if bool((results.cases["verdict"][: len(batch)] != Verdict.RAN).any()):
            raise HarnessFault("the generic implementation does not come to the end of the disk workload")
        return results


def conduct_disks(job: DiskJob) -> DiskResult:
    """Run every cell of an algorithm; one whose shim breaks the protocol is void, the others go on."""
    begun, plan = time.monotonic(), job.plan
    memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
    oracle, blocks = (Executor(station, memory, watch=Watch(0)) for station in (plan.oracle, plan.blocks))
    run = _Run(job, memory, oracle, IvJudge(plan, blocks, memory))
    desks = [Desk(cell, Executor(cell.station, memory), plan.quorum) for cell in plan.cells]
    notes: list[str] = []
    try:
        numbers = range(plan.first_batch, plan.first_batch + job.num_batches)
        sectors = [part for number in numbers for part in _sector_parts(run, number)]
        for begin in range(0, len(desks), _GROUP):
            _run_group(run, desks[begin : begin + _GROUP], sectors)
        _note_ivs(run, desks)
        notes += run.judge.notes()
    except HarnessFault as fault:
        notes.append(str(fault))
        for desk in desks:
            if desk.state in ("ran", "not_run"):
                desk.fail(fault)
    finally:
        for executor in (oracle, blocks, *(desk.executor for desk in desks)):
            executor.release()
        memory.close()
    cells = tuple(result_of(desk) for desk in desks)
    took, cpu = time.monotonic() - begun, sum(cell.cpu_s for cell in cells) + (oracle.cpu_ns + blocks.cpu_ns) / 1e9
    manifest = plan.manifest
    result = AlgorithmResult(
        plan.name, str(plan.algorithm), manifest.to_json(), manifest.digest, cells, took, cpu, tuple(notes)
    )
    return DiskResult(result, {cell: tuple(raws) for cell, raws in run.raws.items()})


def _sector_parts(run: _Run, number: int) -> Iterator[_Part]:
    """The writes of a batch of disks, and then the reads of what generic wrote."""
    manifest, few = run.job.plan.manifest, number == run.job.plan.first_batch
    disks = draw_disks(manifest, number)
    ivs = [run.judge.ivs(run.job.generate, disk.spec.generator, disk.key, disk.numbers) for disk in disks]
    wanted = [writes(manifest, disk, iv) for disk, iv in zip(disks, ivs, strict=True)]
    batch = sector_batch([request for requests in wanted for request in requests])
    written = with_answers(batch, run.answers(batch), {})
    stored, at = [], 0
    for disk, requests in zip(disks, wanted, strict=True):
        parts = [answer_of(batch, written, at + i) for i in range(len(requests))]
        stored.append(np.concatenate(parts).reshape(disk.data.shape))
        at += len(requests)
    name = f"{SECTORS}{manifest.digest}-{number}"
    yield _Part(f"{name}:write", batch, written, few)
    asked = [reads(manifest, *item) for item in zip(disks, ivs, stored, strict=True)]
    plain = [reads(manifest, disk, iv, disk.data) for disk, iv in zip(disks, ivs, strict=True)]
    batch = sector_batch([request for requests in asked for request in requests])
    known = dict(enumerate(request.data for requests in plain for request in requests))
    yield _Part(f"{name}:read", batch, with_answers(batch, run.answers(batch), known), few)


def image_requests(image: Image, ivs: Bytes, *, decrypting: bool) -> list[tuple[Request, Bytes]]:
    """The requests that read or write a whole image, each with the data that it must give."""
    ours, theirs = (image.encrypted, image.raw) if decrypting else (image.raw, image.encrypted)
    per_session = _SECTOR_BYTES_PER_SESSION // image.sector_len
    made = []
    for begin in range(0, len(ivs), per_session):
        rows = slice(begin, begin + per_session)
        request = Request(image.key, decrypting, ivs[rows], ours[rows], (image.sector_len,))
        made.append((request, theirs[rows]))
    return made


def _image_parts(run: _Run, image: Image, *, few: bool) -> Iterator[_Part]:
    """An image read and written, in parts that fit the shared memory."""
    count = len(image.raw)
    numbers = sector_numbers(0, count, image.sector_len, large=False)
    ivs = run.judge.ivs(run.job.generate, image.spec.generator, image.key, numbers)
    for decrypting in (True, False):
        made = image_requests(image, ivs, decrypting=decrypting)
        size = _FEW_SESSIONS if few else _BYTES_PER_BATCH // _SECTOR_BYTES_PER_SESSION
        for begin in range(0, size if few else len(made), size):
            some = made[begin : begin + size]
            batch = sector_batch([request for request, _ in some])
            known = dict(enumerate(data for _, data in some))
            name = f"{SECTORS}{image.name}:{'read' if decrypting else 'write'}:{begin}"
            yield _Part(name, batch, with_answers(batch, _ran(batch), known), few)


def _ran(batch: Batch) -> Results:
    """Results of a batch whose cases all ran and whose operations were all accepted."""
    cases = np.zeros(len(batch), CASE_RESULT)
    cases["verdict"] = Verdict.RAN
    return Results(np.zeros(8, "<u8"), cases, np.zeros(len(batch.ops), np.uint8), np.zeros(batch.out_len, np.uint8))


def _run_group(run: _Run, desks: Sequence[Desk], sectors: Sequence[_Part]) -> None:
    """Run some cells, and end their processes."""
    for desk in desks:
        open_desk(desk, run.job.plan.manifest.block_len)
    full, few = ([desk for desk in desks if desk.plan.large is where] for where in (True, False))
    for part in sectors:
        _run_part(run, desks if part.few else full, part)
    for chosen, is_few in ((full, False), (few, True)):
        for image in run.job.images if chosen else ():
            for part in _image_parts(run, image, few=is_few):
                _run_part(run, chosen, part)
    for desk in desks:
        desk.note_paths()
        desk.executor.hang_up()
    for desk in desks:
        desk.executor.release()


def _note_ivs(run: _Run, desks: Sequence[Desk]) -> None:
    """Wrong ivs are findings of generic's own native cell, or of the first that ran: the workload has made them."""
    alive = [desk for desk in desks if desk.alive]
    owners = [desk for desk in alive if desk.plan.station == run.job.plan.oracle] or alive
    for (generator, judge), text in run.judge.wrong.items() if owners else ():
        name = f"{SECTORS}{run.job.plan.manifest.digest}:ivs:{generator.partition(':')[0]}"
        owners[0].num_departed += 1
        owners[0].findings["ivs", generator, judge] = Finding(name, "disagree", "iv", "alone", 1, text)


def _run_part(run: _Run, desks: Sequence[Desk], part: _Part) -> None:
    """One batch in some cells at the same time."""
    wire.encode_batch_into(part.batch, run.memory.view)
    started = []
    for desk in desks:
        if desk.alive:
            started += [desk] if _try(desk, partial(desk.executor.start, part.batch, len(part.batch))) else []
    for desk in started:
        _try(desk, partial(_finish, run, desk, part))


def _try(desk: Desk, step: Callable[[], None]) -> bool:
    """Whether a step worked; the cell is void where it did not."""
    try:
        step()
    except HarnessFault as fault:
        desk.fail(fault)
        return False
    return True


def _finish(run: _Run, desk: Desk, part: _Part) -> None:
    """Compare what a cell answered with what is expected, and look at what departs again."""
    batch = part.batch
    found = compare(batch, part.expected, desk.executor.finish())
    desk.comparisons += found.comparisons
    desk.num_departed += found.num_departed
    desk.not_run += found.not_run
    for departure in found.departures:
        raws = run.raws.setdefault(str(desk.plan.cell), [])
        if len(raws) < _MOST_RAW:
            case = case_of(batch, departure.case, run.job.plan.manifest.algorithm)
            raws.append(Raw(case, departure, f"{part.name}:{departure.case}"))
        one = one_case(batch, part.expected, departure.case)
        confirm_departure(desk, batch, departure, one, lambda case: f"{part.name}:{case}")


def takes_key(manifest: Manifest, key: bytes) -> bool:
    """Whether a key is of a length that the cells of a manifest take: a library may not know all of a cipher's."""
    return len(key) in {length * manifest.num_keys + manifest.key_extra_len for length in manifest.key_lens}


def planned_comparisons(job: DiskJob, *, large: bool) -> int:
    """Sectors that a cell is promised to be compared on."""
    per_batch = 2 * 32 * num_disks(job.plan.manifest)
    sessions = [(-(-len(image.raw) * image.sector_len // _SECTOR_BYTES_PER_SESSION), image) for image in job.images]
    few = [(min(count, _FEW_SESSIONS), image) for count, image in sessions]
    sectors = sum(
        min(len(image.raw), count * (_SECTOR_BYTES_PER_SESSION // image.sector_len))
        for count, image in (sessions if large else few)
    )
    return per_batch * (job.num_batches if large else min(1, job.num_batches)) + 2 * sectors
