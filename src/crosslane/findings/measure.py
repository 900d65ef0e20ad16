# SPDX-License-Identifier: Apache-2.0
"""Measures shrinking on implementations that are known to be wrong: ``python -m crosslane.findings.measure DIR``.

Every implementation in the folder is looked into in its first fused mode, with several seeds and in several lanes. It
says for each what was found, how long that took, and whether all seeds and lanes came to the same finding.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from crosslane.data import data_root
from crosslane.errors import CrosslaneError
from crosslane.findings.case import Case
from crosslane.findings.formats import case_to_json
from crosslane.findings.gather import Fault, Suspect, faults_of, raw_departures
from crosslane.findings.record import Key
from crosslane.isa import host_arch
from crosslane.manifest import Manifest
from crosslane.model import Algorithm, Implementation
from crosslane.plan import CellPlan, Selection, make_plans, manifest_of
from crosslane.registry import load_registry
from crosslane.wire import Symptom

__all__ = ["Measured", "main", "measure_cell", "measure_folder", "report"]

_SESSIONS = 512


@dataclass(frozen=True)
class Measured:
    """What one implementation came to with one seed in one lane; ``took_s`` is wall time a finding,
    ``cpu_s`` the CPU time of it in this process."""

    driver: str
    lane: str
    seed: str
    keys: tuple[Key, ...]
    cases: tuple[Case, ...]
    took_s: float
    cpu_s: float


def _key(driver: str, algorithm: Algorithm, fault: Fault) -> Key:
    symptom = fault.departure.symptom
    name = symptom.name if symptom is not Symptom.NONE else fault.departure.verdict.name
    return Key(driver, str(algorithm), name.lower(), fault.classified.text)


def measure_cell(cell: CellPlan, suspect: Suspect, seed: str, num_batches: int) -> Measured:
    """Collect departures until there are some, then tell their faults apart; only the latter is timed."""
    with suspect.judge() as judge:
        raws = [item for number in range(num_batches) for item in raw_departures(judge, number, _SESSIONS)]
        begun, cpu = time.monotonic(), time.process_time()
        faults = faults_of(judge, suspect, raws)
        took, cpu = time.monotonic() - begun, time.process_time() - cpu
    driver, algorithm = cell.cell.driver, cell.cell.algorithm
    return Measured(
        driver, cell.cell.lane, seed, tuple(_key(driver, algorithm, fault) for fault in faults),
        tuple(fault.case for fault in faults), took / max(1, len(faults)),
        cpu / max(1, len(faults)),
    )  # fmt: skip


def _algorithm(item: Implementation) -> Algorithm:
    return Algorithm(item.fused[0] if item.fused else "ecb", item.cipher)


def measure_folder(
    folder: Path, lanes: Sequence[str], seeds: Sequence[str], *, num_batches: int = 4
) -> Iterator[Measured]:
    """Look into every implementation of a folder, in so many batches of departures.

    Raises BadInput where one does not build.
    """
    registry = load_registry(data_root(), [folder])
    theirs = [item for item in registry.implementations if item.origin != "own"]
    patterns = tuple(f"{_algorithm(item)}/{item.driver}" for item in theirs)
    run = make_plans(registry, Selection(patterns, tuple(lanes)))
    for plan in run.algorithms:
        manifests: list[tuple[str, Manifest]] = [
            (seed, replace(manifest_of(registry, plan.algorithm, seed), sessions_per_batch=_SESSIONS)) for seed in seeds
        ]
        for cell in plan.cells:
            for seed, manifest in manifests:
                suspect = Suspect(manifest, plan.oracle, cell.station, cell.arch)
                yield measure_cell(cell, suspect, seed, num_batches)


def report(found: Sequence[Measured], say: Callable[[str], None]) -> bool:
    """Say the numbers; returns whether each implementation came to the same findings with every seed."""
    stable = True
    slowest: dict[str, float] = {}
    for driver in dict.fromkeys(item.driver for item in found):
        mine = [item for item in found if item.driver == driver]
        for lane in dict.fromkeys(item.lane for item in mine):
            here = [item for item in mine if item.lane == lane]
            outcomes = {frozenset(key.id for key in item.keys) for item in here}
            cases = {frozenset(item.cases) for item in here}
            most = max(item.took_s for item in here)
            slowest[lane] = max(slowest.get(lane, 0.0), most)
            words = "; ".join(f"{key.symptom}, {key.fault_class}" for key in here[0].keys) or "nothing"
            say(
                f"{driver}@{lane}: {words}: {len(outcomes)} outcome(s) and {len(cases)} least case(s) over {len(here)} "
                f"seeds, at most {most:.2f} s a finding"
            )
            stable = stable and len(outcomes) == 1 and bool(here[0].keys)
    for lane, seconds in slowest.items():
        say(f"{lane}: the slowest finding took {seconds:.2f} s")
    return stable


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--seeds", default=10, show_default=True, type=click.IntRange(1), help="Number of seeds.")
@click.option("--lane", "lanes", multiple=True, help="Lane (default: the native one).")
@click.option("--cases", is_flag=True, help="Print the least cases too.")
def main(folder: Path, seeds: int, lanes: tuple[str, ...], cases: bool) -> None:
    """Measure shrinking on the implementations in FOLDER; status 1 where seeds disagree."""
    chosen = lanes or (f"{host_arch()}_native",)
    try:
        found = list(measure_folder(folder, chosen, [f"seed {number}" for number in range(seeds)]))
    except CrosslaneError as error:
        click.echo(f"crosslane: {error}", err=True)
        sys.exit(error.exit_status)
    if cases:
        for case in dict.fromkeys(case for item in found for case in item.cases):
            click.echo(case_to_json(case))
    sys.exit(0 if report(found, click.echo) else 1)


if __name__ == "__main__":
    main()
