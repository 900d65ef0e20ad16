# SPDX-License-Identifier: Apache-2.0
"""Regressions: stored cases that every run replays first, in each cell of their algorithm.

They lie in ``corpora/regressions``, and in ``regressions`` of a folder that is given with ``--impls``. An installed
copy is never written to: those of its user that belong to no such folder lie in ``regressions`` of the working folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from crosslane.corpora_tools.sound import check_sound, manifests
from crosslane.corpora_tools.stored import Entry, read_corpora
from crosslane.data import is_checkout
from crosslane.directed import NamedBatch
from crosslane.errors import BadInput
from crosslane.findings.case import Case, batch_of, in_turn
from crosslane.findings.domain import may_be_tried
from crosslane.findings.judge import normalised
from crosslane.findings.store import Kept
from crosslane.manifest import POLICY_BITS, Manifest
from crosslane.model import Registry
from crosslane.plan import AlgorithmPlan, RunPlan
from crosslane.records import REGRESSION

__all__ = ["load_regressions", "place_for", "regression_folders", "with_regressions"]

FOLDER = "regressions"


def regression_folders(registry: Registry) -> list[Path]:
    """The folders of regressions that there are: the suite's own, and those of the folders of third parties."""
    parties = sorted({item.origin for item in registry.implementations if item.origin != "own"})
    folders = [registry.root / "corpora" / FOLDER, *(Path(party) / FOLDER for party in parties)]
    if not is_checkout(registry.root):
        folders.append(Path(FOLDER))
    return [folder for folder in folders if folder.is_dir()]


def load_regressions(registry: Registry) -> list[Entry]:
    """All regressions, by digest; raises BadInput for the first that is damaged: none is passed over in silence."""
    corpus = read_corpora(regression_folders(registry))
    for problem in corpus.problems:
        raise problem
    entries = corpus.sorted()
    if entries:
        known = manifests(registry)
        for entry in entries:
            check_sound(entry.case, known, entry.where)
    return entries


def with_regressions(run: RunPlan, entries: Sequence[Entry]) -> RunPlan:
    """The same plans, each with the regressions of its algorithm, as far as they are within a provider's domain."""
    return replace(run, algorithms=tuple(_with(plan, entries) for plan in run.algorithms))


def _with(plan: AlgorithmPlan, entries: Iterable[Entry]) -> AlgorithmPlan:
    mine = [entry for entry in entries if entry.case.algorithm == str(plan.algorithm)]
    cases: list[Case] = []
    names: list[str] = []
    for entry in mine:
        sessions = [_within(case, plan.manifest) for case in entry.case.sessions] if plan.bounded else None
        found = entry.case.sessions if sessions is None else [case for case in sessions if case is not None]
        if len(found) < len(entry.case.sessions):
            continue
        name = f"{REGRESSION}{entry.name}"
        cases += found
        names += [*(f"{name}:neighbour_{number}" for number in range(len(found) - 1)), name]
    return replace(plan, regressions=NamedBatch(batch_of(cases), tuple(names))) if cases else plan


def _within(case: Case, manifest: Manifest) -> Case | None:
    """A session as a library is asked it, under the policies that it always has; None where it is beyond its domain."""
    always = sum(POLICY_BITS[name] for name in manifest.always_policies)
    asked = normalised(replace(case, policy=case.policy | always), manifest)
    return asked if may_be_tried(in_turn(asked), manifest, bounded=True) else None


def place_for(kept: Kept, root: Path) -> Path:
    """Where a finding's case belongs among the regressions; raises BadInput where no replay could show it again."""
    record = kept.record
    if record.judge != "generic":
        raise BadInput(
            f"finding {record.id} is judged by a {record.judge}, but a regression is held against the generic "
            "implementation, which departs itself: every check runs vectors and references anyway; name another finding"
        )
    parties = [Path(folder) for folder in record.impls if Path(folder).is_dir()]
    own = root / "corpora" if is_checkout(root) else Path()
    return (parties[0] if parties else own) / FOLDER
