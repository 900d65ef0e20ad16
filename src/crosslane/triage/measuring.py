# SPDX-License-Identifier: Apache-2.0
"""Holds triage to the planted faults: the class of each, as its table says it, against the one that is named.

A fault runs its stored case, as it would be found; one that no case shows is searched for with random cases, and where
none departs the judgement of the whole cell is what is known of it. The features that it needs must be those that its
implementation asks for.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import click
import numpy as np

from crosslane.bug_classes import UNCLASSIFIED
from crosslane.campaign import default_workers, side_by_side
from crosslane.checks import load_checks
from crosslane.errors import BadInput, CrosslaneError
from crosslane.execute import Station, execute_unless_declined
from crosslane.findings.case import Case, whole_batch
from crosslane.findings.formats import case_from_json
from crosslane.findings.gather import Suspect, faults_of, first_departure, raw_departures
from crosslane.generate import select_cases
from crosslane.lanes import lane_named, lanes_for_host
from crosslane.model import Algorithm, Registry
from crosslane.plan import manifest_of
from crosslane.planted.prove import WHOLE_COMPARISONS, WHOLE_SEED
from crosslane.planted.spots import Spot, spots_of
from crosslane.planted.wholes import red_checks, run_whole
from crosslane.plants import WHOLE, Plant, case_file, load_plants
from crosslane.triage.classifier import name
from crosslane.triage.features import bisect_features
from crosslane.triage.named import Named
from crosslane.triage.probing import Target, observe

__all__ = ["LEAST_SHARE", "Measured", "measure_planted", "report"]

LEAST_SHARE = 0.9
"""The share of planted faults, over all lanes, whose class must be named as their tables say."""
_MOST_CASES = 256
_BY_CHECK = {
    "paths": "dispatch", "declines": "dispatch", "secrets_wiped": "secrets_left", "compilers": "compiler",
    "determinism": "context", "large": "large",
}  # fmt: skip
"""The class of a cell in which no case departs, by the check that is red."""


@dataclass(frozen=True)
class Measured:
    """One planted fault in one cell. ``features`` were found to be needed, ``wanted_features`` asked for, both sorted.

    ``took_s`` is the wall time of triage; ``error`` is why there is no class.
    """

    fault: str
    cell: str
    wanted: str
    named: str
    sentence: str
    features: tuple[str, ...] | None
    wanted_features: tuple[str, ...]
    took_s: float
    error: str = ""

    @property
    def right(self) -> bool:
        """Whether the class is the one that the fault's table names."""
        return self.named == self.wanted

    @property
    def features_right(self) -> bool:
        """Whether just the features were found that the implementation asks for; where they were asked about."""
        return self.features is None or self.features == self.wanted_features


def _chosen(registry: Registry, patterns: Sequence[str]) -> list[Plant]:
    plants = [plant for plant in load_plants(registry) if not plant.control]
    chosen = [plant for plant in plants if not patterns or any(fnmatchcase(plant.name, item) for item in patterns)]
    if not chosen:
        raise BadInput(f"no planted fault is named {', '.join(patterns)}: `crosslane selftest --list` counts all")
    return chosen


def measure_planted(
    registry: Registry, patterns: Sequence[str], lanes: Sequence[str], *, jobs: int | None, json_file: Path | None
) -> int:
    """Triage every planted fault in its lanes, and print what was named; returns the exit status."""
    if json_file is not None and not json_file.resolve().parent.is_dir():
        raise BadInput(f"{json_file}: the folder does not exist: create it or name another file with --json")
    offered = lanes_for_host(registry)
    wanted = [lane_named(offered, item) for item in dict.fromkeys(lanes)] if lanes else None
    every = _chosen(registry, patterns)
    plants = [plant for plant in every if not plant.large]
    if len(plants) < len(every):
        left = ", ".join(plant.name for plant in every if plant.large)
        click.echo(f"left out, which more than 4 GiB alone show: {left}")
    spots = spots_of(registry, plants, seed=WHOLE_SEED, lanes=wanted, progress=lambda text: click.echo(f"  {text}"))
    if not spots:
        raise BadInput("none of these faults can show in these lanes: name others with --fault or --lane")
    unsaid = sorted({spot.plant.name for spot in spots if not spot.plant.triage})
    if unsaid:
        raise BadInput(f"{', '.join(unsaid)}: the planted fault has no key `triage`: add the class of bug that it is")
    builds = _usual_builds(registry, spots)
    asked = [(spot, builds.get(spot.plant.name, {})) for spot in spots]
    found: list[Measured] = []
    for item in side_by_side(_measure, asked, num_workers=jobs or default_workers()):
        found.append(item)
        mark = "  " if item.right and item.features_right else "! "
        click.echo(f"{mark}{item.fault} in {item.cell}: {item.wanted}: {item.named}: {item.sentence or item.error}")
    for line in report(found):
        click.echo(line)
    if json_file is not None:
        rows = [asdict(item) | {"right": item.right, "features_right": item.features_right} for item in found]
        json_file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0 if _share(found) >= LEAST_SHARE and all(item.features_right for item in found) else 1


def _usual_builds(registry: Registry, spots: Sequence[Spot]) -> dict[str, dict[str, Station]]:
    """Of faults that show as one compiler builds them alone: the same edit as it is usually built."""
    made = [spot.plant for spot in spots if spot.plant.lanes and not spot.lane.usual and not spot.lane.sanitized]
    usual = {lane.arch: lane for lane in lanes_for_host(registry) if lane.usual and lane.gate and lane.full}
    found: dict[str, dict[str, Station]] = {}
    for spot in spots:
        lane = usual.get(spot.lane.arch)
        if spot.plant in made and lane is not None and spot.lane.abi == "system":
            (other,) = spots_of(registry, [replace(spot.plant, lanes=())], seed=WHOLE_SEED, lanes=[lane])
            found.setdefault(spot.plant.name, {})[lane.name] = other.subject
    return found


def _measure(asked: tuple[Spot, dict[str, Station]]) -> Measured:
    spot, builds = asked
    begun = time.monotonic()
    named, error, features = Named(UNCLASSIFIED, ""), "", None
    try:
        suspect = Suspect(spot.manifest, spot.oracle, spot.subject, spot.lane.arch)
        case = _case(spot, suspect)
        if case is None:
            named = _by_cell(spot)
        else:
            seen = observe(_target(spot, suspect, case, builds))
            named = name(seen)
            departure = first_departure(whole_batch(case), spot.subject, spot.oracle)
            if departure is not None and spot.plant.check != "declines":
                features = bisect_features(spot.subject, spot.oracle, case, departure, spot.lane.arch).needed
    except CrosslaneError as failed:
        error = str(failed)
    return Measured(
        fault=spot.plant.name,
        cell=spot.cell,
        wanted=spot.plant.triage,
        named=named.name,
        sentence=named.sentence,
        features=None if features is None else tuple(sorted(features)),
        wanted_features=tuple(sorted(spot.implementation.features)),
        took_s=time.monotonic() - begun,
        error=error,
    )


def _target(spot: Spot, suspect: Suspect, case: Case, builds: dict[str, Station]) -> Target:
    blocks = manifest_of(spot.registry, Algorithm("ecb", spot.implementation.cipher), WHOLE_SEED)
    native = spot.lane.runner == "native"
    return Target(suspect, case, spot.implementation.ways, native=native, blocks=blocks, builds=builds)


def _case(spot: Spot, suspect: Suspect) -> Case | None:
    """The stored case; of a fault without one the least of the first random cases that depart, None where none does."""
    if spot.plant.symptom != WHOLE:
        path = case_file(spot.registry.root, spot.plant.name)
        return case_from_json(path.read_text(encoding="utf-8"), path.name)
    with suspect.judge() as judge:
        one = select_cases(judge.generated(0), np.arange(1))
        if execute_unless_declined(spot.subject, one) is None:
            return None
        raws = raw_departures(judge, 0, _MOST_CASES)
        few = sorted(raws, key=lambda raw: sum(item.in_len for item in raw.case.operations))[:12]
        faults = faults_of(judge, suspect, few)
    return faults[0].case if faults else None


def _by_cell(spot: Spot) -> Named:
    """What the judgement of the whole cell says."""
    red = red_checks(load_checks(spot.registry.root), run_whole(spot, WHOLE_COMPARISONS))
    for check in red:
        if check in _BY_CHECK:
            return Named(_BY_CHECK[check], f"no case departs, and the check {check} is red")
    return Named(UNCLASSIFIED, f"no case departs; red are {', '.join(red) or 'no checks'}")


def _share(found: Sequence[Measured]) -> float:
    return sum(item.right for item in found) / len(found)


def report(found: Sequence[Measured]) -> Iterable[str]:
    """The score: classes, features, time."""
    yield f"{sum(item.right for item in found)} of {len(found)} classes named as their tables say ({_share(found):.1%})"
    asked = [item for item in found if item.features is not None and item.wanted_features]
    right = sum(item.features_right for item in asked)
    yield f"{right} of {len(asked)} that depend on CPU features have the smallest set"
    for kind, emulated in (("natively", False), ("emulated", True)):
        times = [item for item in found if ("qemu" in item.cell.rpartition("@")[2]) is emulated]
        if times:
            slowest = max(times, key=lambda item: item.took_s)
            yield f"slowest {kind}: {slowest.took_s:.1f} s, {slowest.fault} in {slowest.cell}"
