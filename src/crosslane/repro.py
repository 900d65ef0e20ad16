# SPDX-License-Identifier: Apache-2.0
"""Replays one case by its id: regenerates it from the manifest and runs it on every selected cell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from crosslane.buildcache import cache_folder
from crosslane.bulk import BULK, bulk_requests, read_bulk, see_bulk
from crosslane.client import SharedMemory
from crosslane.compare import compare
from crosslane.data import read_files
from crosslane.describe import departure_text, session_lines
from crosslane.desk import GETTER
from crosslane.errors import BadInput
from crosslane.execute import Executor, Station, execute_alone, execute_unless_declined
from crosslane.generate import select_cases
from crosslane.large import LARGE, LargeId, read_large, see_large
from crosslane.leaks import MEMORY, see_leak
from crosslane.manifest import CaseId, Manifest, parse_manifest
from crosslane.model import Registry
from crosslane.names import parse_algorithm
from crosslane.oracles import load_oracles
from crosslane.plan import DEFAULT_SEED, AlgorithmPlan, CellPlan, Counts, Selection, make_plans, manifest_of
from crosslane.quorum import case_within
from crosslane.refcheck import OracleVerdict, judge_by_oracle, judge_samples, load_reference, take_samples
from crosslane.registry import cells
from crosslane.seal import finished_batch
from crosslane.solve import Ask
from crosslane.trials import NUM_REPLAYS, read_trial, see_getter, see_threads, trial_batch
from crosslane.wire import Batch, Results, Watch

__all__ = ["Replay", "find_manifest", "judges_of", "replay", "replay_trial", "replays_of"]


@dataclass(frozen=True)
class Replay:
    """One case on one cell: ``agreed``, and the sentence where it did not."""

    cell: str
    agreed: bool
    text: str


def find_manifest(registry: Registry, digest: str, results_file: Path | None) -> Manifest:
    """The manifest of a digest: from a results file, from those that ``check`` kept, or the default seed's."""
    if results_file is not None:
        try:
            data = json.loads(read_files([results_file])[0])
            texts = {item["digest"]: item["manifest"] for item in data["algorithms"]}
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{results_file}: is no results file of `crosslane check --json` ({error})") from error
        if digest in texts:
            return _checked(texts[digest], str(results_file), digest)
    kept = cache_folder().parent / "manifests" / f"{digest}.json"
    if kept.is_file():
        return _checked(read_files([kept])[0].decode("utf-8", "replace"), str(kept), digest)
    for algorithm in sorted({cell.algorithm for cell in cells(registry)}):
        manifest = manifest_of(registry, algorithm, DEFAULT_SEED)
        if manifest.digest == digest:
            return manifest
    raise BadInput(
        f"no manifest {digest} is known here: run the `crosslane check` that printed the id on this machine, with the "
        "same --seed and --impls, or give its results with --results FILE"
    )


def _checked(text: str, where: str, digest: str) -> Manifest:
    """The manifest in ``text``; raises BadInput where it is not the one that ``digest`` names."""
    manifest = parse_manifest(text, where)
    if manifest.digest != digest:
        raise BadInput(f"{where}: holds manifest {manifest.digest}, not {digest}: run `crosslane check` again")
    return manifest


def _asking(station: Station) -> Ask:
    return lambda batch: execute_alone(station, batch, watch=Watch(0))


def _the_case(manifest: Manifest, case_id: CaseId, plan: AlgorithmPlan) -> Batch:
    if case_id.index >= manifest.sessions_per_batch:
        raise BadInput(
            f"{case_id}: a batch of this manifest has {manifest.sessions_per_batch} cases, 0 to "
            f"{manifest.sessions_per_batch - 1}; correct the last number"
        )
    batch = finished_batch(manifest, case_id.batch, _asking(plan.oracle), _asking(plan.blocks))
    return select_cases(batch, np.array([case_id.index]))


def replay(
    registry: Registry, case_id: CaseId, selection: Selection, *, results_file: Path | None, require_sandbox: bool
) -> tuple[list[str], Iterator[Replay]]:
    """The session's lines, and the replays to come, one for each selected cell of the case's algorithm."""
    manifest = find_manifest(registry, case_id.digest, results_file)
    algorithm = parse_algorithm(manifest.algorithm)
    patterns = selection.patterns or (f"{algorithm}/*",)
    plans = make_plans(registry, Selection(patterns, selection.lanes), counts=Counts(), require_sandbox=require_sandbox)
    chosen = [plan for plan in plans.algorithms if plan.algorithm == algorithm]
    if not chosen:
        raise BadInput(
            f"the cells given are not of {algorithm}, the case's algorithm: name one such as '{algorithm}/*'"
        )
    batch = _the_case(manifest, case_id, chosen[0])
    return [str(algorithm), *session_lines(batch, 0)], replays_of(chosen[0], batch)


def replay_trial(
    registry: Registry, name: str, selection: Selection, *, results_file: Path | None, require_sandbox: bool
) -> Iterator[Replay]:
    """A trial as a whole, in each selected cell; one of cases in those of its algorithm alone."""
    patterns, case_id, manifest = selection.patterns, None, None
    if name.startswith(f"{LARGE}-"):
        yield from _replay_large(registry, read_large(name), selection, results_file, require_sandbox=require_sandbox)
        return
    if name.startswith(f"{BULK}-"):
        yield from _replay_bulk(registry, read_bulk(name), selection, results_file, require_sandbox=require_sandbox)
        return
    if name not in (GETTER, MEMORY):
        case_id = read_trial(name)
        manifest = find_manifest(registry, case_id.digest, results_file)
        patterns = patterns or (f"{parse_algorithm(manifest.algorithm)}/*",)
    plans = make_plans(registry, Selection(patterns, selection.lanes), counts=Counts(), require_sandbox=require_sandbox)
    for plan in plans.algorithms:
        if name == MEMORY:
            made = partial(_whole_batch, plan)
            yield from (_answer(cell, [see_leak(cell, made)]) for cell in plan.cells if cell.provider)
        elif case_id is None or manifest is None:
            yield from (_answer(cell, [see_getter(cell.station)]) for cell in plan.cells)
        elif str(plan.algorithm) == manifest.algorithm:
            batch = finished_batch(manifest, case_id.batch, _asking(plan.oracle), _asking(plan.blocks))
            trial = trial_batch(batch, case_id.batch)
            yield from (_answer(cell, see_threads(cell.station, trial, cell.arch, NUM_REPLAYS)) for cell in plan.cells)


def _whole_batch(plan: AlgorithmPlan, number: int) -> Batch:
    return finished_batch(plan.manifest, number, _asking(plan.oracle), _asking(plan.blocks))


def _replay_large(
    registry: Registry, trial: LargeId, selection: Selection, results_file: Path | None, *, require_sandbox: bool
) -> Iterator[Replay]:
    """A large message, in each selected cell of its algorithm."""
    manifest = find_manifest(registry, trial.digest, results_file)
    selection = Selection(selection.patterns or (f"{parse_algorithm(manifest.algorithm)}/*",), selection.lanes)
    request = trial.request(manifest)
    plans = make_plans(registry, selection, counts=Counts(), require_sandbox=require_sandbox, large_len=trial.data_len)
    memory = SharedMemory("crosslane-batch", 4096, sealed=True)
    for plan in plans.algorithms:
        if str(plan.algorithm) != manifest.algorithm:
            continue
        oracle = Executor(plan.oracle, memory, watch=Watch(0))
        expected = oracle.large(request)
        oracle.release()
        yield from (_answer(cell, [see_large(cell.station, request, expected)]) for cell in plan.cells)
    memory.close()


def _replay_bulk(
    registry: Registry, trial: tuple[str, str], selection: Selection, results_file: Path | None, *,
    require_sandbox: bool,
) -> Iterator[Replay]:  # fmt: skip
    """The self-test, in each selected cell of its algorithm that is no library's."""
    manifest = find_manifest(registry, trial[0], results_file)
    selection = Selection(selection.patterns or (f"{parse_algorithm(manifest.algorithm)}/*",), selection.lanes)
    requests = bulk_requests(manifest, trial[1])
    plans = make_plans(registry, selection, counts=Counts(), require_sandbox=require_sandbox)
    for plan in plans.algorithms:
        if str(plan.algorithm) == manifest.algorithm:
            cells = [cell for cell in plan.cells if not cell.provider]
            yield from (_answer(cell, [see_bulk(cell.station, requests)]) for cell in cells)


def _answer(cell: CellPlan, seen: list[str]) -> Replay:
    """What a cell answered to so many trials of one kind."""
    departed = [text for text in seen if text]
    often = f" ({len(departed)} of {len(seen)} times)" if len(seen) > 1 else ""
    return Replay(str(cell.cell), agreed=not departed, text=departed[0] + often if departed else "")


def replays_of(plan: AlgorithmPlan, batch: Batch) -> Iterator[Replay]:
    """The answers of a plan's cells to a whole batch, and what judges in Python say where generic's cell is asked."""
    reference = execute_alone(plan.oracle, batch, watch=Watch(0))
    if plan.bounded and not case_within(plan.manifest, batch):
        for cell in plan.cells:
            yield Replay(str(cell.cell), agreed=True, text="not judged: the case lies outside the library's domain")
        return
    for cell in plan.cells:
        results = execute_unless_declined(cell.station, batch)
        if results is None:
            yield Replay(str(cell.cell), agreed=True, text="declined: the CPU of this lane lacks what it needs")
            continue
        found = compare(batch, reference, results)
        text = departure_text(batch, found.departures[0], cell.arch) if found.departures else ""
        yield Replay(str(cell.cell), agreed=not found.num_departed, text=text)
    yield from _judges(plan, batch, reference)


def _judges(plan: AlgorithmPlan, batch: Batch, reference: Results) -> Iterator[Replay]:
    """What the Python reference and libraries say of generic's answers, where generic's own cell is asked."""
    if plan.bounded or not any(cell.station == plan.oracle for cell in plan.cells):
        return
    for name, agreed, text in judges_of(plan, batch, reference):
        yield Replay(f"generic by {name}", agreed=agreed, text=text)


def judges_of(plan: AlgorithmPlan, batch: Batch, answered: Results) -> Iterator[tuple[str, bool, str]]:
    """Each judge in Python that can say something of the answers to a batch: name, whether it agrees, a sentence."""
    samples = list(take_samples(0, batch, answered))
    if not samples:
        return
    wrong = judge_samples(load_reference(plan.reference), samples, plan.manifest.block_len, _asking(plan.blocks))
    verdicts = [OracleVerdict("the Python reference", samples, tuple(wrong))]
    verdicts += [judge_by_oracle(oracle, plan.algorithm, samples) for oracle in load_oracles(plan.root, plan.without)]
    for verdict in verdicts:
        if verdict.judged:
            text = verdict.wrong[0][1] if verdict.wrong else f"agrees on {len(verdict.judged)} messages"
            yield verdict.name, not verdict.wrong, text
