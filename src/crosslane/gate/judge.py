# SPDX-License-Identifier: Apache-2.0
"""A result held against a policy: pure functions from what a run learned to what is red, each with what to do."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from crosslane.checks import Check, judge_all
from crosslane.findings.deviations import Deviation, Ran, unused
from crosslane.findings.keep import ran_of
from crosslane.findings.record import Key
from crosslane.formats import Gated, Red
from crosslane.gate.asked import Asked
from crosslane.gate.coverage import LOST_RULES, is_left_out, lost, unlike
from crosslane.gate.policy import RequiredCells
from crosslane.names import parse_cell
from crosslane.plan import Counts
from crosslane.records import CellResult, FaultSeen, Judgement
from crosslane.results import RunResult

__all__ = ["RULES", "Judging", "gate_status", "judge", "with_deviations"]

VOID_RULES = ("complete", "void")
"""Rules whose reds are the suite's own failure, and never known from before."""
RULES = (
    *VOID_RULES, "usable", "findings", "deviations-in-date", "deviations-used", "cells", "counts", "vectors", "checks",
    "lanes",
)  # fmt: skip


@dataclass(frozen=True)
class Judging:
    """What results are judged by: the policy, the suite's checks, deviations and the file they are in, and a day."""

    asked: Asked
    checks: Sequence[Check]
    deviations: Sequence[Deviation]
    deviations_file: str
    today: dt.date


def judge(result: RunResult, judging: Judging, baseline: RunResult | None = None, *, only_new: bool = False) -> Gated:
    """The verdict of a policy; ``only_new``: what is red in the baseline too is known and does not count."""
    reds = list(_reds(result, judging))
    rules: tuple[str, ...] = RULES
    notes: tuple[str, ...] = ()
    known: list[Red] = []
    if baseline is not None:
        rules += LOST_RULES
        notes = unlike(result, baseline)
        reds += lost(result, baseline)
        if only_new:
            before = {red.key for red in _reds(baseline, judging)}
            before = {key for key in before if key[0] not in VOID_RULES}
            known = [red for red in reds if red.key in before]
            reds = [red for red in reds if red.key not in before]
    return Gated(judging.asked.policy.file, rules, tuple(reds), tuple(known), notes)


def gate_status(gated: Gated) -> int:
    """0 green, 1 red, 2 where nothing but a library that cannot be used is red, 3 where the suite itself failed."""
    rules = {red.rule for red in gated.reds}
    if rules & set(VOID_RULES):
        return 3
    return 0 if not rules else 2 if rules == {"usable"} else 1


def with_deviations(result: RunResult, judging: Judging) -> RunResult:
    """The same result, in which each cell says whether the deviations of this day accept what is red of it."""

    def cell(item: CellResult) -> CellResult:
        ran = ran_of(item)

        def fault(seen: FaultSeen) -> FaultSeen:
            reasons = [each.reason for each in judging.deviations if each.accepts(_key(ran, seen), ran)]
            return replace(seen, accepted=reasons[0] if reasons else "")

        seen = replace(item, faults=tuple(map(fault, item.faults)))
        return replace(seen, accepted=_is_accepted(seen, judging.checks))

    algorithms = [replace(part, cells=tuple(map(cell, part.cells))) for part in result.algorithms]
    return replace(result, algorithms=tuple(algorithms))


def _is_accepted(cell: CellResult, checks: Sequence[Check]) -> bool:
    told = bool(cell.faults) and not cell.untold and all(fault.accepted for fault in cell.faults)
    return cell.red and told and not any(item.passed is False for item in _without_findings(cell, checks))


def _without_findings(cell: CellResult, checks: Sequence[Check]) -> tuple[Judgement, ...]:
    """What the checks say of a cell as if nothing had departed in it."""
    return judge_all(checks, replace(cell, findings=(), faults=(), num_departed=0, skipped=0))


def _reds(result: RunResult, judging: Judging) -> Iterator[Red]:
    yield from _complete(result, prove=judging.asked.policy.prove)
    for proof in result.proofs:
        if not proof.holds:
            cure = f"restore what catches it, and see it with `crosslane selftest --fault {proof.name}`"
            yield Red("void", proof.cell, proof.name, f"the planted fault {proof.name}: {proof.text}", cure)
    for cell in result.cells():
        yield from _broken(cell)
        if cell.state in ("ran", "declined") and cell.red and not cell.accepted:
            yield from _departed(cell, judging.checks)
    yield from _deviations(result, judging)
    cells = {cell.cell: cell for cell in result.cells()}
    for required, names in judging.asked.required:
        for name in names:
            if name in cells or not is_left_out(result, name):
                yield from _required(required, name, cells.get(name))
    if not (result.unfinished or result.shard):  # what a part has of a lane says nothing
        yield from _lanes(result, judging)


def _complete(result: RunResult, *, prove: bool) -> Iterator[Red]:
    if not list(result.cells()):
        yield Red("complete", "run", "", "no cell was run", "correct cells and lanes in [run]")
    for name in result.unfinished:
        yield Red("complete", name, "", "the run was interrupted before it was complete", "run it again to its end")
    if result.shard:
        cure = "join all shards with `crosslane report merge`, and judge that"
        yield Red("complete", "run", result.shard, f"this is shard {result.shard} of a run", cure)
    if prove and not (result.proofs or result.unfinished):
        cure = "run `crosslane check` with --prove, select cells in which some lie, or take prove out of [run]"
        yield Red("complete", "run", "proofs", "the policy asks for planted faults and none was run", cure)


def _broken(cell: CellResult) -> Iterator[Red]:
    if cell.state in ("void", "not_run"):
        text = f"{cell.state.replace('_', ' ')}: {cell.reason or 'it never began'}"
        yield Red("void", cell.cell, "", text, "run it again, and report a fault of the suite if that repeats")
    if cell.state == "unusable":
        cure = "install what is missing, or leave the library out with without in [run]"
        yield Red("usable", cell.cell, "", cell.reason, cure)


def _departed(cell: CellResult, checks: Sequence[Check]) -> Iterator[Red]:
    """A red for each finding that is not accepted, and for each check that fails by something else."""
    cases = [finding.case_id for finding in cell.findings if ":" not in finding.case_id]
    command = f"repro {cases[0]} --cell '{cell.cell}'" if cases else f"check --cell '{cell.cell}'"
    replay = f"see it with `crosslane {command}`"
    open_faults = [fault for fault in cell.faults if not fault.accepted]
    for fault in open_faults:
        cure = (
            f"see it with `crosslane repro {fault.id}` and correct the implementation, or accept it with "
            f"`crosslane findings accept {fault.id}`"
        )
        yield Red("findings", cell.cell, fault.id, f"{fault.symptom}, {fault.fault_class}: {fault.text}", cure)
    if cell.untold:
        yield Red("findings", cell.cell, "untold", f"departures were not told apart: {cell.untold}", replay)
    shrunk = bool(cell.faults or cell.untold or not cell.findings)  # else each check says its own
    left = _without_findings(cell, checks) if shrunk else cell.judgements
    for item in left:
        if item.passed is False:
            yield Red(
                "findings",
                cell.cell,
                item.check,
                f"{item.check}: {item.reason}",
                f"{replay} and correct the implementation",
            )


def _key(ran: Ran, seen: FaultSeen) -> Key:
    return Key(ran.implementation, ran.algorithm, seen.symptom, seen.fault_class)


def _deviations(result: RunResult, judging: Judging) -> Iterator[Red]:
    where = judging.deviations_file
    for item in judging.deviations:
        if item.review < judging.today:
            text = f"the deviation {_named(item)} was to be reviewed by {item.review}, and it is {judging.today}"
            cure = f"look at it again and set a new date in {where}, or remove it"
            yield Red("deviations-in-date", _named(item), "", text, cure)
    if result.counts != vars(Counts()):
        return  # fewer comparisons need not see it
    ran = [(ran_of(cell), cell) for cell in result.cells() if cell.state == "ran"]
    seen = [(_key(mine, fault), mine) for mine, cell in ran for fault in cell.faults]
    for item, algorithm in unused(judging.deviations, [mine for mine, _ in ran], seen):
        text = f"the deviation {_named(item)}, {item.key.symptom} is unused: its finding was not seen"
        cure = f"remove it from {where}" + (f", or let it fit {algorithm} no more" if item.by_pattern else "")
        yield Red("deviations-used", _named(item), algorithm, text, cure)


def _named(item: Deviation) -> str:
    """A deviation by its finding, or by its patterns."""
    key = item.key
    return f"{key.implementation}, {key.algorithm}, {key.fault_class}" if item.by_pattern else key.id


def _required(required: RequiredCells, name: str, cell: CellResult | None) -> Iterator[Red]:
    if cell is None:
        cure = f"run it, or take it out of the cells {required.pattern!r} that the policy requires"
        yield Red("cells", name, "", "it is required and did not run", cure)
        return
    if cell.state in ("declined", "not_effective"):
        if not required.may_decline:
            missing = ", ".join(sorted(set(cell.needed_features) - set(cell.cpu_features)))
            why = f"the CPU has no {missing}" if missing else cell.reason or "nothing was compared"
            cure = "run it where it can run, or write may_decline = true for it"
            yield Red("cells", name, "declined", f"it is required and declined: {why}", cure)
        return
    if cell.state != "ran":
        return  # void and unusable cells are red by themselves
    if cell.comparisons < required.min_comparisons:
        text = f"{cell.comparisons:,} comparisons were made, {required.min_comparisons:,} are required"
        yield Red("counts", name, "", text, "raise count or lower share in [run], or lower min_comparisons")
    if cell.num_vectors < required.min_vectors:
        text = (
            f"{cell.num_vectors:,} comparisons with a published answer were made, {required.min_vectors:,} are required"
        )
        yield Red("vectors", name, "", text, "install the packages of vectors or add some, or lower min_vectors")
    said = {item.check: item for item in cell.judgements}
    for check in required.checks:
        if check not in said or said[check].passed is None:
            why = said[check].reason if check in said else "no such check was there when the run was made"
            cure = f"remedy that, or take {check} out of the checks that the policy requires"
            yield Red("checks", name, check, f"the check {check} is required and was not judged: {why}", cure)


def _lanes(result: RunResult, judging: Judging) -> Iterator[Red]:
    for lane in judging.asked.policy.required_lanes:
        mine = [cell for cell in result.cells() if cell.state == "ran" and parse_cell(cell.cell).lane == lane.name]
        made = sum(cell.comparisons for cell in mine)
        if not mine:
            yield Red("lanes", lane.name, "", "the lane is required and nothing ran in it", "run cells of that lane")
        elif made < lane.min_comparisons:
            text = f"{made:,} comparisons were made in it, {lane.min_comparisons:,} are required"
            yield Red(
                "lanes", lane.name, "counts", text, "raise the counts or the cells in [run], or lower min_comparisons"
            )
