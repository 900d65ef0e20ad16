# SPDX-License-Identifier: Apache-2.0
"""``crosslane check --workload disk``: from a selection of cells to the exit status."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from crosslane import campaign
from crosslane.checks import load_checks
from crosslane.client import SharedMemory
from crosslane.data import read_files
from crosslane.disk.conduct import DiskJob, DiskResult, conduct_disks, planned_comparisons, takes_key
from crosslane.disk.images import RECIPES, Image, image_of, make_image
from crosslane.disk.ivs import make_ivs, sector_numbers
from crosslane.disk.judge_ivs import IvJudge
from crosslane.disk.sectors import Request, sector_batch
from crosslane.disk.spec import MODES, CipherSpec
from crosslane.disk.tools import PACKAGES, needed
from crosslane.errors import BadInput
from crosslane.execute import CAPACITY, Executor, execute_alone
from crosslane.findings.run import Findings, with_acceptance, with_faults
from crosslane.job import Job, assemble, keep_findings, plainly, status_of
from crosslane.outputs import Outputs
from crosslane.plan import AlgorithmPlan, RunPlan, Selection, make_plans, selected_cells
from crosslane.pss import PeakMemory
from crosslane.report import print_report
from crosslane.wire import Watch

__all__ = ["DEFAULT_BATCHES", "GivenImage", "plans_for_disks", "run_disk"]

DEFAULT_BATCHES = 2


@dataclass(frozen=True)
class GivenImage:
    """A LUKS image of somebody else, and the file that holds its passphrase."""

    file: Path
    key_file: Path


def _selection(job: Job) -> Selection:
    """The cells in modes of disks; raises BadInput where the patterns mean none of them.

    A library's code paths beside its usual one are run where libraries are asked for.
    """
    chosen, _ = selected_cells(job.registry, job.selection)
    names = [
        str(cell) for cell in chosen if cell.algorithm.mode in MODES and (job.selection.providers or not cell.backend)
    ]
    if not names:
        raise BadInput(
            f"none of the cells is of a mode that disks are encrypted with: give --cell a pattern of {', '.join(MODES)}"
        )
    return replace(job.selection, patterns=tuple(names))


def plans_for_disks(job: Job, console: Console) -> RunPlan:
    """Plans of all algorithms of disks whose cells are selected."""
    return make_plans(
        job.registry,
        _selection(job),
        seed=job.seed,
        counts=job.counts,
        require_sandbox=job.require_sandbox,
        progress=lambda text: console.print(f"building: {text}", style="dim", markup=False, highlight=False),
    )


class _Generic:
    """Decrypts for whoever opens headers, by the generic implementations of a run's plans."""

    def __init__(self, plans: Sequence[AlgorithmPlan]) -> None:
        self._plans = {str(plan.algorithm): plan for plan in plans}

    def decrypt(self, spec: CipherSpec, key: bytes, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Sectors numbered from 0; raises BadInput where no cell of the algorithm is selected."""
        plan = self._plans.get(spec.algorithm)
        if plan is None:
            raise BadInput(f"no cell of {spec.algorithm}, which the image is encrypted with, is selected: name one")
        memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
        blocks = Executor(plan.blocks, memory, watch=Watch(0))
        try:
            numbers = sector_numbers(0, len(data), data.shape[1], large=False)
            ivs = IvJudge(plan, blocks, memory).ivs(make_ivs, spec.generator, key, numbers)
        finally:
            blocks.release()
            memory.close()
        batch = sector_batch([Request(key, True, ivs, data, (data.shape[1],))])
        return execute_alone(plan.oracle, batch, watch=Watch(0)).out[: data.size].reshape(data.shape)


def _images(plans: RunPlan, given: GivenImage | None, console: Console) -> tuple[dict[str, list[Image]], list[str]]:
    """The images of each algorithm, and a note for each that cannot be made on this machine."""
    generic, notes = _Generic(plans.algorithms), []
    images: dict[str, list[Image]] = {str(plan.algorithm): [] for plan in plans.algorithms}
    if given is not None:
        (passphrase,) = read_files([given.key_file])
        image = image_of(given.file, passphrase, None, given.file.name, generic.decrypt)
        if image.spec.algorithm not in images:
            raise BadInput(f"no cell of {image.spec.algorithm}, which {given.file} is encrypted with, is selected")
        return {image.spec.algorithm: [image]}, []
    for recipe in RECIPES:
        if recipe.spec.algorithm in images:
            try:
                images[recipe.spec.algorithm].append(make_image(recipe, generic.decrypt))
            except BadInput as problem:
                if recipe.qemu or ("device-mapper" not in str(problem) and "kernel" not in str(problem)):
                    raise
                notes.append(f"{recipe.name} was not judged: {problem}")
    console.print(
        f"images: {sum(map(len, images.values()))} of {len(RECIPES)}", style="dim", markup=False, highlight=False
    )
    return images, notes


def _jobs(plans: RunPlan, images: dict[str, list[Image]], count: int | None, *, only: bool) -> list[DiskJob]:
    """A job an algorithm. ``count`` are the least comparisons of cells with full grids; ``only`` images are judged."""
    made = []
    for plan in plans.algorithms:
        mine = tuple(item for item in images.get(str(plan.algorithm), ()) if takes_key(plan.manifest, item.key))
        if only and not mine:
            continue
        job = DiskJob(plan, mine if count != 0 else (), 0 if only else DEFAULT_BATCHES)
        if count is not None and not only:
            per_batch = planned_comparisons(replace(job, images=(), num_batches=1), large=True)
            job = replace(job, num_batches=-(-count // per_batch))
        cells = tuple(
            replace(
                cell,
                comparisons=planned_comparisons(job, large=cell.large) if cell.switched else 0,
                full=False,
                paths=(),
            )
            for cell in plan.cells
        )
        made.append(replace(job, plan=replace(plan, cells=cells)))
    return made


def run_disk(
    job: Job,
    console: Console,
    outputs: Outputs,
    impls: tuple[str, ...],
    *,
    count: int | None = None,
    given: GivenImage | None = None,
) -> int:
    """Plan, make images, run, report; returns the exit status."""
    outputs.check()
    for name in PACKAGES:
        needed(name)
    findings = Findings.at(job.findings, job.registry.root, impls) if job.findings is not None else None
    plans = plans_for_disks(job, console)
    images, notes = _images(plans, given, console)
    jobs = _jobs(plans, images, count, only=given is not None)
    plans = replace(plans, algorithms=tuple(item.plan for item in jobs))
    campaign.keep_manifests(plans.algorithms)
    begun, memory = time.monotonic(), PeakMemory()
    with memory:
        workers = job.num_workers or campaign.default_workers()
        done: list[DiskResult] = list(campaign.side_by_side(conduct_disks, jobs, num_workers=workers))
    results = [item.result for item in done]
    raws = {cell: found for item in done for cell, found in item.raws.items()}
    kept = keep_findings(job, plans, results, findings, console, raws=raws) if findings is not None else None
    checks = load_checks(job.registry.root)
    told = with_faults(results, kept, findings.deviations) if findings and kept else results
    judged = campaign.with_judgements(told, checks)
    judged = with_acceptance(judged, kept, checks) if kept else judged
    result = assemble(job, plans, tuple(notes), judged, time.monotonic() - begun, memory.peak)
    print_report(result, console, impls=impls, builds=job.registry.builds)
    outputs.write(result, say=plainly(console))
    return status_of(job, result, findings, kept, console, complete=False)
