# SPDX-License-Identifier: Apache-2.0
"""Makes the seeds of each family of fuzz targets: generated cases, of which the least that cover all are kept.

``ci/make_seeds.py`` writes them. Candidates are the suite's own, so that lengths, counters and layouts are steered to
where bugs live; they depend on nothing but the generator, which cells there are, and the paths that these take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from crosslane.corpora_tools.minimising import least, observed, observers_of
from crosslane.corpora_tools.stats import features_of
from crosslane.corpora_tools.stored import Entry, entry_of
from crosslane.findings.case import Case, case_of
from crosslane.findings.judge import Judge
from crosslane.manifest import Manifest
from crosslane.model import Registry
from crosslane.plan import AlgorithmPlan, Counts, Selection, make_plans, native_lane
from crosslane.registry import cells
from crosslane.wire import OpKind

__all__ = ["FAMILIES", "Family", "seed_plans", "seeds_of"]

SEED = "cases from which fuzzing begins"
_SESSIONS = 128
_WHOLE_RUNS = 2


@dataclass(frozen=True)
class Family:
    """What the candidates of a family are.

    ``messages`` in each session, steered for ``steering``; of the algorithms for which ``takes`` and of the cases for
    which ``holds``. ``words`` says which of the features count; ``paths``: code paths count too.
    """

    name: str
    messages: int
    steering: tuple[str, ...]
    takes: Callable[[Manifest], bool]
    holds: Callable[[Case], bool]
    words: tuple[str, ...]
    paths: bool = True


def _num_pieces(case: Case) -> int:
    return sum(item.kind is OpKind.UPDATE for item in case.operations)


def _in_one_call(case: Case) -> bool:
    return _num_pieces(case) <= 1 and not any(item.kind in (OpKind.CLONE, OpKind.REINIT) for item in case.operations)


def _in_pieces(case: Case) -> bool:
    return not _in_one_call(case)


def _any(_: Case) -> bool:
    return True


_WAYS = ("encrypt", "decrypt")
FAMILIES = (
    Family(
        "oneshot", 1, ("lengths", "counters"), lambda manifest: not manifest.is_aead, _in_one_call,
        (*_WAYS, "carry"),
    ),
    Family(
        "streaming", 2, ("splits", "counters"), lambda manifest: not manifest.is_aead and manifest.split != "none",
        _in_pieces, ("reinit", "clone", "contexts"), paths=False,
    ),
    Family(
        "aead", 1, ("lengths", "splits"), lambda manifest: manifest.is_aead, _any,
        (*_WAYS, "in_place", "clone", "tag"),
    ),
    Family(
        "keyschedule", 1, ("lengths", "refusals"), lambda manifest: manifest.iv == "none" and not manifest.is_mac,
        _in_one_call, ("key", "policy"), paths=False,
    ),
)  # fmt: skip


def seed_plans(registry: Registry) -> list[AlgorithmPlan]:
    """The native cells of all algorithms, by whose code paths seeds are chosen."""
    own, lane = {item.driver for item in registry.implementations if item.origin == "own"}, native_lane(registry).name
    drivers = sorted({cell.driver for cell in cells(registry) if cell.lane == lane and cell.driver in own})
    run = make_plans(registry, Selection(tuple(drivers), (lane,)), counts=Counts.each(0))
    return list(run.algorithms)


def _manifest(plan: AlgorithmPlan, family: Family) -> Manifest:
    manifest = plan.manifest
    most = (_WHOLE_RUNS * manifest.ways + 1 if family.paths else 3) * manifest.block_len
    return replace(
        manifest,
        seed=SEED,
        sessions_per_batch=_SESSIONS,
        messages_per_session=family.messages,
        steering=family.steering,
        max_len=most + manifest.block_len - 1,
        max_aad_len=2 * manifest.block_len + 1 if manifest.aad else 0,
    )


def _candidates(plan: AlgorithmPlan, family: Family) -> Iterator[Case]:
    with Judge(_manifest(plan, family), plan.oracle, plan.oracle) as judge:
        batch = judge.generated(0)
        cases = [case_of(batch, index, str(plan.algorithm)) for index in range(len(batch))]
    yield from (case for case in cases if family.holds(case))


def seeds_of(plan: AlgorithmPlan, family: Family) -> list[Entry]:
    """The seeds of an algorithm in a family, in the order of their digests; none where it has no such cases."""
    if not family.takes(plan.manifest):
        return []
    observers = observers_of(plan, []) if family.paths else []
    try:
        found = []
        for case in _candidates(plan, family):
            features = {word for word in features_of(case, plan.manifest) if word.partition(":")[0] in family.words}
            paths = {word.rpartition(":")[0] for word in observed(case, observers)}
            found.append((entry_of(case), features | paths))
    finally:
        for observer in observers:
            observer.release()
    return least(found)
