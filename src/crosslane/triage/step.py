# SPDX-License-Identifier: Apache-2.0
"""One step of a bisection, ``python -m crosslane.triage.step FILE``: builds a revision, runs the case, and answers.

The answer is its status, and what ``git bisect run`` takes: 0 agrees, 1 departs, 125 cannot be built or run, 200 stop.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crosslane.data import data_root
from crosslane.errors import BadInput, CrosslaneError
from crosslane.execute import execute_unless_declined
from crosslane.findings.answers import seen_again
from crosslane.findings.case import whole_batch
from crosslane.findings.gather import first_departure
from crosslane.findings.replay import plan_of
from crosslane.findings.store import Kept, Store
from crosslane.instances import read_providers, with_builds
from crosslane.model import Registry
from crosslane.plan import AlgorithmPlan, CellPlan
from crosslane.planted.prove import same_kind, symptom_name
from crosslane.registry import load_registry
from crosslane.wire import Watch

__all__ = ["BAD", "BROKEN", "GOOD", "STOP", "Step", "main"]

GOOD, BAD, BROKEN, STOP = 0, 1, 125, 200
_BUILDS = 3
"""So often a build that fails is tried again: some fail by chance."""
_BUILD_LIMIT_S = 3600.0
_BUILD_NAME = "bisected"
"""What the library of a revision is called in cells."""


@dataclass(frozen=True)
class Step:
    """What each step does; the fields are those of the file.

    ``library`` is empty for an implementation, else a provider and the folders, within the tree, in which a build
    leaves its shared libraries and, where there is a third word, its headers.
    """

    tree: str
    build: tuple[str, ...]
    finding: str
    findings: str
    subject: str
    lanes: tuple[str, ...]
    repeat: int
    library: tuple[str, ...] = ()


def _builds(step: Step) -> bool:
    """Whether the revision that is checked out can be built; what the build says goes to standard error."""
    for _ in range(_BUILDS):
        try:
            done = subprocess.run(
                list(step.build), cwd=step.tree, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=_BUILD_LIMIT_S,
                check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"the build does not run: {error}", file=sys.stderr)
            continue
        if done.returncode == 0:
            return True
        print(f"the build ends with status {done.returncode}", file=sys.stderr)
    return False


def _departs(plan: AlgorithmPlan, cell: CellPlan, kept: Kept) -> bool:
    """Whether one run of the case departs as the finding does."""
    record = kept.record
    if record.judge != "generic":
        return bool(seen_again(plan, cell, kept.case, record.judge, record.from_case))
    found = first_departure(whole_batch(kept.case), cell.station, plan.oracle)
    return found is not None and same_kind(symptom_name(found), record.key.symptom)


def _subject(step: Step, kept: Kept) -> tuple[Registry, Kept]:
    """The registry with what was built, and the finding as one of that; raises BadInput where it is not there."""
    tree = Path(step.tree)
    if not step.library:
        return load_registry(data_root(), [tree / step.subject]), kept
    provider, *folders = step.library
    _, builds = read_providers([f"{_BUILD_NAME}={provider}:{':'.join(str(tree / folder) for folder in folders)}"])
    record = kept.record
    backend = record.key.implementation.partition(":")[2]
    key = replace(record.key, implementation=_BUILD_NAME + (f":{backend}" if backend else ""))
    return with_builds(load_registry(data_root()), builds), replace(kept, record=replace(record, key=key))


def _judged(step: Step, kept: Kept) -> int:
    """The status of a revision that was built."""
    try:
        registry, kept = _subject(step, kept)
        plan = plan_of(registry, kept, step.lanes)
        batch = whole_batch(kept.case)
        cells = [cell for cell in plan.cells if execute_unless_declined(cell.station, batch, watch=Watch(0))]
    except BadInput as error:
        print(str(error).partition("\n")[0], file=sys.stderr)
        return BROKEN
    if not cells:
        print("it declines in every lane that the finding was seen in", file=sys.stderr)
        return BROKEN
    departs = any(_departs(plan, cell, kept) for cell in cells for _ in range(step.repeat))
    return BAD if departs else GOOD


def main(arguments: Sequence[str]) -> int:
    """Do the step that the file describes; returns the status."""
    fields: dict[str, Any] = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    made: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in fields.items()}
    step = Step(**made)
    try:
        if not _builds(step):
            return BROKEN
        return _judged(step, Store(Path(step.findings)).read(step.finding))
    except CrosslaneError as error:
        print(str(error).partition("\n")[0], file=sys.stderr)
        return STOP
    finally:
        subprocess.run(
            ["git", "-C", step.tree, "reset", "--quiet", "--hard"],  # noqa: S607 - the user's git
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
