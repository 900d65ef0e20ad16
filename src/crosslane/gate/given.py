# SPDX-License-Identifier: Apache-2.0
"""Results that were made before, held against what the policy would have run: revision, counts and seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from crosslane.formats import Gated, Red
from crosslane.gate.policy import Policy
from crosslane.results import RunResult

__all__ = ["GIVEN_RULES", "with_given"]

GIVEN_RULES = ("revision", "run-counts")


def with_given(gated: Gated, result: RunResult, policy: Policy, here: str, *, any_revision: bool) -> Gated:
    """A verdict with what is red of results that ``--result`` gave; ``here`` is the tree's revision, empty for none.

    ``any_revision``: another revision is a note. Another seed is one too: that of a night differs each time.
    """
    reds, notes = [], []
    if result.revision != here:
        text = f"the results are of revision {_brief(result.revision)}, this tree is {_brief(here)}"
        if any_revision:
            notes.append(text)
        else:
            cure = "run it again here, see to the tree of the results, or give --any-revision"
            reds.append(Red("revision", "run", "", text, cure))
    wanted = vars(policy.counts)
    if dict(result.counts) != wanted:
        text = f"the results have other comparisons a cell than [run]: {_differing(result.counts, wanted)}"
        cure = "run them again with the counts of [run], with --count or --share, or correct the policy"
        reds.append(Red("run-counts", "run", "", text, cure))
    if result.seed != policy.seed:
        notes.append(f"the results have the seed {result.seed!r}, the policy {policy.seed!r}")
    return replace(gated, rules=(*gated.rules, *GIVEN_RULES), reds=(*reds, *gated.reds), notes=(*notes, *gated.notes))


def _brief(revision: str) -> str:
    return revision[:12] or "unknown"


def _differing(counts: Mapping[str, int], wanted: Mapping[str, int]) -> str:
    names = [name for name in sorted({*counts, *wanted}) if counts.get(name) != wanted.get(name)]
    return ", ".join(f"{name} {counts.get(name, 'none')} for {wanted.get(name, 'none')}" for name in names)
