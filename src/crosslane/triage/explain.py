# SPDX-License-Identifier: Apache-2.0
"""Explains one finding: probes its cell, lets every cell run its case, and finds out what it depends on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crosslane.compare import Departure
from crosslane.describe import departure_text
from crosslane.errors import BadInput
from crosslane.execute import Station, execute_alone
from crosslane.findings.case import whole_batch
from crosslane.findings.gather import Suspect, first_departure
from crosslane.findings.replay import plan_of
from crosslane.findings.store import Kept
from crosslane.isa import host_arch
from crosslane.lanes import lanes_for_host
from crosslane.model import Algorithm, Lane, Registry
from crosslane.plan import CellPlan, manifest_of
from crosslane.toolchain import revision_of, versions
from crosslane.triage.attribution import Place, Ran, places_of, run_everywhere
from crosslane.triage.classifier import name
from crosslane.triage.emulators import other_runs
from crosslane.triage.features import Bisected, bisect_features
from crosslane.triage.named import Named
from crosslane.triage.observations import Facts, Observations, Watched
from crosslane.triage.outputs import Differing, differing
from crosslane.triage.probing import Target, observe
from crosslane.wire import Watch

__all__ = ["Explanation", "explain"]

_TRIES = 3
Say = Callable[[str], None]


@dataclass(frozen=True)
class Explanation:
    """All that was found out about one finding; ``took_s`` is wall time.

    ``cell`` is the one that was probed, ``text`` what it does in a sentence. ``tools`` are versions by name, of that
    cell's lane. ``features`` is None for what has no dispatch by features: libraries, and judges other than generic.
    ``otherwise`` says of other ways to run the same program whether the case departs.
    """

    kept: Kept
    cell: str
    arch: str
    named: Named
    text: str
    seen: Observations
    differing: Differing | None
    ran: tuple[Ran, ...]
    features: Bisected | None
    otherwise: tuple[tuple[str, bool], ...]
    tools: tuple[tuple[str, str], ...]
    took_s: float

    @property
    def builds(self) -> tuple[Ran, ...]:
        """The subject itself in every lane."""
        mine = self.kept.record.key.implementation.partition(":")[0]
        return tuple(item for item in self.ran if _driver(item.cell).partition(":")[0] == mine)


def _driver(cell: str) -> str:
    return cell.rpartition("@")[0].partition("/")[2]


def explain(registry: Registry, kept: Kept, lanes: Sequence[str], say: Say = lambda _: None) -> Explanation:
    """Explain a finding, in the lanes named or in those that it was seen in.

    Raises BadInput where it does not depart every time, or where its subject is not there; MissingTool where its
    library or its lane's tools are not installed.
    """
    begun = time.monotonic()
    record = kept.record
    if record.state == "flaky":
        raise BadInput(
            f"finding {record.id} is flaky, it departed in {record.rate:.0%} of its runs: triage needs one that "
            f"departs every time; `crosslane findings retest {record.id}` measures it again"
        )
    plan = plan_of(registry, kept, lanes)
    by_name = {lane.name: lane for lane in lanes_for_host(registry)}
    cell = min(plan.cells, key=lambda item: (by_name[item.cell.lane].runner != "native", item.cell.lane))
    lane = by_name[cell.cell.lane]
    if record.judge == "generic":
        _check_departs(kept, plan.oracle, cell)
    say(f"every cell of {plan.algorithm} runs the case")
    names = [item.name for item in by_name.values() if item.gate or item.suite or item.name == lane.name]
    places, missing = places_of(registry, plan.algorithm, cell.cell.driver, names)
    ran = run_everywhere(places, kept.case, missing)
    say(f"{cell.cell} is probed")
    suspect = Suspect(plan.manifest, plan.oracle, cell.station, cell.arch, plan.bounded)
    target = _target(registry, kept, suspect, cell, places, lane)
    if record.judge != "generic":
        seen, named, departure = _by_other_judge(target, record.judge)
    else:
        departure = first_departure(whole_batch(kept.case), cell.station, plan.oracle)
        seen = _observed(target, record.id)
        named = name(seen)
    features = None
    if departure is not None and not cell.provider and record.judge == "generic":
        say("CPU features are hidden one by one")
        features = bisect_features(cell.station, plan.oracle, kept.case, departure, cell.arch)
    batch = whole_batch(kept.case)
    return Explanation(
        kept=kept,
        cell=str(cell.cell),
        arch=cell.arch,
        named=named,
        text=departure_text(batch, departure, cell.arch) if departure is not None else record.text,
        seen=seen,
        differing=_differing(target, departure),
        ran=tuple(ran),
        features=features,
        otherwise=tuple(sorted(seen.emulated.items())),
        tools=_tools(registry, lane, ran, record.key.implementation),
        took_s=time.monotonic() - begun,
    )


def _check_departs(kept: Kept, oracle: Station, cell: CellPlan) -> None:
    """Raise BadInput where the case departs no more, before everything else is asked about it."""
    batch = whole_batch(kept.case)
    if all(first_departure(batch, cell.station, oracle) is None for _ in range(_TRIES)):
        name = kept.record.id
        raise BadInput(
            f"finding {name}: its case agrees in {cell.cell}, {_TRIES} times of {_TRIES}: `crosslane findings retest "
            f"{name}` says whether it is fixed"
        )


def _observed(target: Target, finding: str) -> Observations:
    try:
        return observe(target)
    except BadInput as error:
        raise BadInput(f"finding {finding}: {error}") from None


def _target(
    registry: Registry, kept: Kept, suspect: Suspect, cell: CellPlan, places: Sequence[Place], lane: Lane
) -> Target:
    """The cell with all that it can be held against: other builds, and other ways to run the same program."""
    mine = [place for place in places if place.cell.cell.driver == cell.cell.driver and not cell.provider]
    lanes = {item.name: item for item in lanes_for_host(registry)}
    builds = {
        place.cell.cell.lane: place.cell.station for place in mine if _comparable(lanes[place.cell.cell.lane], lane)
    }
    arches = {
        lanes[place.cell.cell.lane].arch: place.cell.station
        for place in mine
        if lanes[place.cell.cell.lane].usual and not lanes[place.cell.cell.lane].hides
    }
    native = next((place.cell.station for place in mine if _without_emulator(lanes[place.cell.cell.lane], lane)), None)
    item = next((found for found in registry.implementations if found.driver == cell.cell.driver), None)
    blocks = None if item is None else manifest_of(registry, Algorithm("ecb", item.cipher), suspect.manifest.seed)
    return Target(
        suspect=suspect,
        sealed=kept.case,
        ways=item.ways if item is not None else 1,
        native=lane.runner == "native",
        blocks=blocks,
        builds=builds,
        arches=arches if len(arches) > 2 else {},
        emulated={way.name: way.station for way in other_runs(cell.station, lane, native)},
    )


def _comparable(other: Lane, lane: Lane) -> bool:
    """Whether the other lane differs in nothing but the compiler: same architecture, runner, model and convention."""
    alike = (other.arch, other.runner, other.cpu, other.hides, other.abi) == (
        lane.arch, lane.runner, lane.cpu, lane.hides, lane.abi
    )  # fmt: skip
    return alike and other.build != lane.build and not other.sanitized


def _without_emulator(other: Lane, lane: Lane) -> bool:
    return lane.runner == "qemu" and other.runner == "native" and other.build == lane.build


def _by_other_judge(target: Target, judge: str) -> tuple[Observations, Named, Departure | None]:
    """Of generic itself, which a vector or a reference speaks against."""
    facts = Facts(mode=target.suspect.manifest.algorithm.partition("(")[0], block_len=target.suspect.manifest.block_len)
    what = "a published vector" if judge == "vector" else "the reference or the libraries in Python"
    named = Named("oracle", f"the generic implementation itself departs from {what}")
    return Observations(facts, Watched("output")), named, None


def _differing(target: Target, departure: Departure | None) -> Differing | None:
    if departure is None:
        return None
    batch = whole_batch(target.sealed)
    expected = execute_alone(target.suspect.oracle, batch, watch=Watch(0))
    got = execute_alone(target.suspect.subject, batch, strict=True)
    return differing(batch, expected, got, departure, target.suspect.manifest.block_len)


def _tools(registry: Registry, lane: Lane, ran: Sequence[Ran], driver: str) -> tuple[tuple[str, str], ...]:
    """Versions of what takes part."""
    library = next((item.version for item in ran if item.version and _driver(item.cell) == driver), "")
    found = {"lane": lane.name, **versions(lane), "host": host_arch(), "suite": revision_of(registry.root)[:12]}
    if library:
        found["library"] = library
    return tuple((key, value) for key, value in found.items() if value)
