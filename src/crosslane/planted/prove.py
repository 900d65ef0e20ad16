# SPDX-License-Identifier: Apache-2.0
"""The stored proof: each planted fault departs on its own case, each control agrees. No chance, no campaign.

The cases lie in ``corpora/regressions/planted/<name>.json``; ``crosslane selftest --store`` writes them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from crosslane.checks import Check, claimed_by
from crosslane.compare import Departure
from crosslane.data import shown
from crosslane.errors import BadInput, HarnessFault
from crosslane.findings.case import Case, batch_of
from crosslane.findings.formats import case_from_json
from crosslane.findings.gather import Suspect, classes_of, first_departure
from crosslane.findings.judge import Judge
from crosslane.generate import select_cases
from crosslane.planted.spots import Spot
from crosslane.planted.wholes import caught_by, red_checks, run_whole
from crosslane.plants import WHOLE, case_file
from crosslane.records import Proof

__all__ = ["WHOLE_COMPARISONS", "prove", "same_kind", "symptom_name"]

CONTROL_SESSIONS = 64
"""Sessions of the first batch that a control answers in a proof; a campaign gives it all."""
WHOLE_COMPARISONS = 2048
"""Comparisons of a cell whose judgement is the proof, and at most those of a search."""
WHOLE_SEED = "a cell that proves its check"
"""The seed of such a cell in a proof."""


def symptom_name(departure: Departure) -> str:
    """What plants call that which a departure shows: the watcher that objected, else the verdict."""
    return (departure.symptom.name if departure.symptom else departure.verdict.name).lower()


def same_kind(one: str, other: str) -> bool:
    """Whether two symptoms are one to a fault: wrong data and a wrong running iv come from one mistake, in turns."""
    return one == other or {one, other} == {"output", "iv"}


def prove(spots: Sequence[Spot], checks: Sequence[Check], root: Path) -> list[Proof]:
    """Prove all, side by side, in the order of ``spots``; a subject that breaks the protocol does not hold.

    Raises BadInput where the stored case of a fault is missing or damaged.
    """
    if not spots:
        return []
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)), thread_name_prefix="prove") as pool:
        return list(pool.map(lambda spot: _prove(spot, checks, root), spots))


def _prove(spot: Spot, checks: Sequence[Check], root: Path) -> Proof:
    plant = spot.plant
    try:
        if plant.symptom == WHOLE:
            text = _whole(spot, checks)
        else:
            text = _control(spot) if plant.control else _fault(spot, checks, root)
    except HarnessFault as fault:
        text = str(fault)
    return Proof(spot.plant.name, spot.cell, spot.plant.control, plant.symptom == WHOLE, not text, text)


def _whole(spot: Spot, checks: Sequence[Check]) -> str:
    """Always the same cases: a proof is left to no chance."""
    fixed = replace(spot, manifest=replace(spot.manifest, seed=WHOLE_SEED))
    red = red_checks(checks, run_whole(fixed, WHOLE_COMPARISONS))
    caught, others = caught_by(spot.plant, red), ", ".join(red)
    if spot.plant.control:
        return f"a harmless change fails {others}" if caught else ""
    return "" if caught else f"the check {spot.plant.check} passes ({others or 'none'} fails)"


def _fault(spot: Spot, checks: Sequence[Check], root: Path) -> str:
    path = case_file(root, spot.plant.name)
    try:
        text = path.read_bytes().decode(errors="replace")
    except OSError as error:
        raise BadInput(
            f"{shown(path)}: cannot be read ({error.strerror}): write it with `crosslane selftest --fault "
            f"{spot.plant.name} --store`"
        ) from None
    case = case_from_json(text, shown(path))
    if case.algorithm != str(spot.plant.algorithm):
        raise BadInput(f"{shown(path)}: is a case of {case.algorithm}, but the fault is in {spot.plant.algorithm}")
    departure = first_departure(batch_of([case]), spot.subject, spot.oracle)
    if departure is None:
        return "its case agrees: the fault is not caught"
    symptom = symptom_name(departure)
    if not same_kind(symptom, spot.plant.symptom):
        return f"its case shows {symptom}, expected {spot.plant.symptom}"
    return _unclaimed(spot, checks, case, departure)


def _unclaimed(spot: Spot, checks: Sequence[Check], case: Case, departure: Departure) -> str:
    """Empty where the check that is meant to catch the fault claims its finding, as ``selftest`` judges it."""
    symptom = symptom_name(departure)
    claims, text = claimed_by(checks, symptom, ""), ""
    if spot.plant.check in claims:
        return ""
    suspect = Suspect(spot.manifest, spot.oracle, spot.subject, spot.lane.arch)
    for text in classes_of(suspect, case, departure):
        claims = claimed_by(checks, symptom, text)
        if spot.plant.check in claims:
            return ""
    return f"the check {spot.plant.check} does not claim its case ({symptom}, {text}), but {', '.join(claims)}"


def _control(spot: Spot) -> str:
    with Judge(spot.manifest, spot.oracle, spot.subject) as judge:
        batch = judge.generated(0)
        part = select_cases(batch, np.arange(min(len(batch), CONTROL_SESSIONS)))
        departures = judge.compare(part, len(part))
    return f"a harmless change departs: {symptom_name(departures[0])}" if departures else ""
