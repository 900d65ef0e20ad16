# SPDX-License-Identifier: Apache-2.0
"""From an input of a target to a finding: its case, run by the cell's own shim, shrunk and kept as any other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosslane.compare import Departure
from crosslane.describe import departure_text
from crosslane.errors import BadInput
from crosslane.findings.case import Case, whole_batch
from crosslane.findings.gather import Raw, first_departure
from crosslane.findings.run import Findings
from crosslane.model import Registry
from crosslane.plan import CellPlan, Counts, Selection, make_plans
from crosslane.records import AlgorithmResult, CellResult, Finding
from crosslane.targets.native import Pair

__all__ = ["Kept", "keep_inputs", "read_inputs"]

_MOST_INPUT_LEN = 1 << 20
"""What an engine reads of a file at most, unless it is told otherwise."""


@dataclass(frozen=True)
class Kept:
    """What an input came to: a line for people, and whether its case departs."""

    departs: bool
    text: str


def read_inputs(files: Sequence[Path]) -> list[tuple[Path, bytes]]:
    """Inputs of files, and of the files directly in folders; of a longer one the first MiB, as an engine reads it.

    Raises BadInput for what cannot be read.
    """
    found: list[tuple[Path, bytes]] = []
    for file in files:
        try:
            if file.exists() and not (file.is_dir() or file.is_file()):
                raise BadInput(f"{file}: is neither a file nor a folder; name the file of an input")
            parts = sorted(path for path in file.iterdir() if path.is_file()) if file.is_dir() else [file]
            for part in parts:
                with part.open("rb") as stream:
                    found.append((part, stream.read(_MOST_INPUT_LEN)))
        except OSError as error:
            raise BadInput(f"{file}: cannot be read as an input ({error.strerror}); correct the name") from None
    return found


def _result(place: CellPlan, found: Sequence[Finding]) -> CellResult:
    return CellResult(
        cell=str(place.cell), state="ran", reason="", comparisons=1, wanted=1, skipped=0, num_vectors=0,
        num_departed=len(found), num_sampled=0, findings=tuple(found), needed_features=place.needed_features,
        cpu_features=(), declared_paths=(), paths={}, unwatched=(), cpu_s=0.0,
    )  # fmt: skip


def _finding(name: str, case: Case, departure: Departure, arch: str) -> Finding:
    batch = whole_batch(case)
    return Finding(
        case_id=name,
        verdict=departure.verdict.name.lower(),
        symptom=departure.symptom.name.lower(),
        repeats="alone",
        count=1,
        text=departure_text(batch, replace(departure, case=len(batch) - 1), arch),
    )


def keep_inputs(
    registry: Registry,
    pair: Pair,
    inputs: Iterable[tuple[Path, bytes]],
    findings: Findings,
    *,
    revision: str,
    say: Callable[[str], None],
) -> list[Kept]:
    """Run what the inputs mean in their cells, keep what departs, and say what each came to."""
    told: list[Kept] = []
    for file, data in inputs:
        cell, case = pair.decoded(data)
        lane = cell.rpartition("@")[2]
        plans = make_plans(registry, Selection((cell,), (lane,)), counts=Counts.each(1))
        (plan,) = plans.algorithms
        (place,) = plan.cells
        departure = first_departure(whole_batch(case), place.station, plan.oracle)
        name = f"target:{hashlib.sha256(data).hexdigest()[:12]}"
        if departure is None:
            text = f"{file}: {len(case.operations)} operations of {cell}, which agree in the lane's own build"
            told.append(Kept(False, text))
            continue
        result = _result(place, [_finding(name, case, departure, place.arch)])
        algorithm = AlgorithmResult(plan.name, str(plan.algorithm), plan.manifest.to_json(), plan.manifest.digest,
                                    (result,), 0.0)  # fmt: skip
        raws = {cell: [Raw(case, departure, name)]}
        kept = findings.keep(registry, plans, [algorithm], revision=revision, say=say, raws=raws)
        told += [Kept(True, line) for line in findings.lines(kept)]
    return told
