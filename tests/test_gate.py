# SPDX-License-Identifier: Apache-2.0
"""The gate's judgement: each rule of a policy with a fault planted for it, baselines, deviations, and bad policies."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from resulting import (
    ASAN,
    FAULT,
    FOUND,
    LIBRARY,
    NATIVE,
    OTHER,
    PASSED,
    accepted,
    algorithm,
    cell,
    declined,
    hostile,
    red,
    run,
    void,
)

from crosslane.checks import Check, Outcome
from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.findings.deviations import Deviation
from crosslane.findings.record import Key
from crosslane.formats import Gated, Red
from crosslane.gate.asked import Asked, asked_of, selection_of
from crosslane.gate.cli import gate_lines
from crosslane.gate.coverage import check_baseline
from crosslane.gate.given import GIVEN_RULES, with_given
from crosslane.gate.judge import RULES, Judging, gate_status, judge, with_deviations
from crosslane.gate.policy import Elsewhere, Policy, RequiredCells, RequiredLane, read_policy
from crosslane.plan import Counts
from crosslane.records import CellResult, FaultSeen, Judgement, Proof
from crosslane.registry import load_registry
from crosslane.results import RunResult

TODAY = dt.date(2026, 12, 1)
GENERIC = f"ctr(toy)/toy-generic@{NATIVE}"
KEY = Key("openssl", "ctr(toy)", "output", "tail")
MINE = FaultSeen(KEY.id, "output", "tail", "byte 5 differs")
NAMES = frozenset({"agreement", "paths", "known_answer"})


def _agreement(item: CellResult) -> Outcome:
    if item.state == "declined":
        return Outcome(None, "declined")
    return Outcome(False, item.findings[0].text) if item.num_departed else Outcome(True)


CHECKS = (
    Check("agreement", "It answers as generic does.", _agreement),
    Check("paths", "It takes each of its paths.", lambda item: Outcome(all(map(item.paths.get, item.declared_paths)))),
)


def deviation(**changes: Any) -> Deviation:
    facts: dict[str, Any] = {"key": KEY, "reason": "known upstream", "link": "https://x.org/1", "review": TODAY}
    return Deviation(**{**facts, **changes})


def policy(**changes: Any) -> Policy:
    facts: dict[str, Any] = {
        "file": "gate.toml", "only_new": False, "deviations": None, "patterns": (), "providers": (), "lanes": (),
        "without": (), "counts": Counts(), "imported": True, "seed": "a seed", "prove": False, "required": (),
        "required_lanes": (),
    }  # fmt: skip
    return Policy(**{**facts, **changes})


def judging(
    *names: str,
    deviations: tuple[Deviation, ...] = (),
    lanes: tuple[RequiredLane, ...] = (),
    prove: bool = False,
    **asks: Any,
) -> Judging:
    facts: dict[str, Any] = {"pattern": "*", "may_decline": False, "min_comparisons": 1, "min_vectors": 0, "checks": ()}
    required = RequiredCells(**{**facts, **asks})
    asked = Asked(policy(required=(required,), required_lanes=lanes, prove=prove), ((required, names),))
    return Judging(asked, CHECKS, deviations, "conformance/deviations.toml", TODAY)


def judged(result: RunResult, by: Judging, baseline: RunResult | None = None, **options: Any) -> Gated:
    before = with_deviations(baseline, by) if baseline is not None else None
    return judge(with_deviations(result, by), by, before, **options)


def rules(gated: Gated) -> list[tuple[str, str, str]]:
    return [item.key for item in gated.reds]


# --- each rule, with a fault planted for it ---

GREEN = run(cell(GENERIC, declared_paths=()), declined())

PLANTED: list[tuple[str, RunResult, Judging, tuple[str, str, str], int]] = [
    ("nothing ran", run(algorithm()), judging(), ("complete", "run", ""), 3),
    ("interrupted", replace(GREEN, unfinished=("cbc(toy)",)), judging(), ("complete", "cbc(toy)", ""), 3),
    ("a shard", replace(GREEN, shard="1/2"), judging(), ("complete", "run", "1/2"), 3),
    ("planted faults that were not run", GREEN, judging(prove=True), ("complete", "run", "proofs"), 3),
    ("void", run(cell(GENERIC), void()), judging(), ("void", f"ctr(toy)/toy-generic@{ASAN}", ""), 3),
    ("never began", run(cell(GENERIC, state="not_run")), judging(), ("void", GENERIC, ""), 3),
    (
        "a planted fault that is not caught",
        replace(GREEN, proofs=(Proof("toy-carry", GENERIC, control=False, whole=False, holds=False, text="missed"),)),
        judging(), ("void", GENERIC, "toy-carry"), 3,
    ),
    ("a library that is missing", run(cell(GENERIC), cell(state="unusable", reason="no file")), judging(),
     ("usable", cell().cell, ""), 2),
    ("a finding", run(red(GENERIC)), judging(), ("findings", GENERIC, FAULT.id), 1),
    ("a finding that nobody shrank", run(red(GENERIC, faults=())), judging(), ("findings", GENERIC, "agreement"), 1),
    ("one that could not be told apart", run(red(GENERIC, faults=(), untold="no case")), judging(),
     ("findings", GENERIC, "untold"), 1),
    ("a path that was not taken", run(cell(GENERIC, paths={}, judgements=(PASSED, replace(OTHER, passed=False)))),
     judging(), ("findings", GENERIC, "paths"), 1),
    ("a deviation for another version", run(accepted(faults=(MINE,))),
     judging(deviations=(deviation(versions=("1.*",), review=dt.date(2027, 1, 1)),)),
     ("findings", accepted().cell, KEY.id), 1),
    ("a deviation that was removed", run(accepted(faults=(MINE,))), judging(),
     ("findings", accepted().cell, KEY.id), 1),
    ("an expired deviation", run(accepted(faults=(MINE,))),
     judging(deviations=(deviation(review=dt.date(2026, 11, 30)),)), ("deviations-in-date", KEY.id, ""), 1),
    ("an unused deviation", run(cell(accepted().cell, library=LIBRARY)), judging(deviations=(deviation(),)),
     ("deviations-used", KEY.id, "ctr(toy)"), 1),
    ("a required cell that is not there", GREEN, judging("ctr(toy)/gone@x"), ("cells", "ctr(toy)/gone@x", ""), 1),
    ("a required cell that declined", GREEN, judging(declined().cell), ("cells", declined().cell, "declined"), 1),
    ("a switch without effect", run(cell(GENERIC, state="not_effective", judgements=())), judging(GENERIC),
     ("cells", GENERIC, "declined"), 1),
    ("too few comparisons", GREEN, judging(GENERIC, min_comparisons=649), ("counts", GENERIC, ""), 1),
    ("too few vectors", GREEN, judging(GENERIC, min_vectors=9), ("vectors", GENERIC, ""), 1),
    ("a check that does not apply", GREEN, judging(GENERIC, checks=("paths",)), ("checks", GENERIC, "paths"), 1),
    ("a check that was not there", GREEN, judging(GENERIC, checks=("known_answer",)),
     ("checks", GENERIC, "known_answer"), 1),
    ("a lane in which nothing ran", GREEN, judging(lanes=(RequiredLane(ASAN, 1),)), ("lanes", ASAN, ""), 1),
    ("a lane with too little", GREEN, judging(lanes=(RequiredLane(NATIVE, 649),)), ("lanes", NATIVE, "counts"), 1),
]  # fmt: skip


@pytest.mark.parametrize(("result", "by", "key", "status"), [item[1:] for item in PLANTED], ids=[p[0] for p in PLANTED])
def test_each_fault_is_red_by_its_rule_and_says_what_to_do(
    result: RunResult, by: Judging, key: tuple[str, str, str], status: int
) -> None:
    gated = judged(result, by)
    assert rules(gated) == [key]
    assert gate_status(gated) == status
    (only,) = gated.reds
    assert only.text
    assert re_verb(only)
    assert "\n" not in only.text + only.cure
    line, last = gate_lines(result, gated)
    assert line == f"{only.rule}: {only.about}: {only.text}: {only.cure}"
    assert "RED: 1 to see to" in last


def re_verb(item: Red) -> bool:
    """Whether what to do begins with something that one can do."""
    verbs = "run see correct join install look remove raise remedy bring restore"
    return item.cure.split()[0] in verbs.split()


def test_what_a_subject_says_is_printed_without_what_a_terminal_obeys() -> None:
    gated = judged(hostile(), judging())
    for line in gate_lines(hostile(), gated):
        assert line.isprintable()


def test_every_rule_has_a_planted_fault() -> None:
    assert {item[3][0] for item in PLANTED} == set(RULES)


def test_what_is_as_it_should_be_is_green() -> None:
    by = judging(
        GENERIC, declined().cell, may_decline=True, min_comparisons=648, min_vectors=8, checks=("agreement",),
        lanes=(RequiredLane(NATIVE, 648),),
    )  # fmt: skip
    gated = judged(GREEN, by)
    assert (rules(gated), gate_status(gated)) == ([], 0)
    (last,) = gate_lines(GREEN, gated)
    assert "gate gate.toml: green; 2 cells, 1 ran" in last
    assert "seed 'a seed'" in last


def test_a_finding_that_is_accepted_is_green_and_no_deviation_is_unused() -> None:
    by = judging(accepted().cell, deviations=(deviation(versions=("3.*",)),))
    result = run(accepted(accepted=False, faults=(MINE,)))
    assert rules(judged(result, by)) == []
    told = with_deviations(result, by)
    (only,) = told.cells()
    assert only.accepted
    assert only.faults[0].accepted == "known upstream"


def test_a_deviation_by_pattern_accepts_what_it_fits_and_is_unused_elsewhere() -> None:
    wide = deviation(key=Key("openssl", "*(toy)", "output", "t*"), versions=("3.*",), by_pattern=True)
    by = judging(accepted().cell, deviations=(wide,))
    result = run(accepted(accepted=False, faults=(MINE,)))
    assert rules(judged(result, by)) == []
    other = algorithm(cell(f"cbc(toy)/openssl@{NATIVE}", library=LIBRARY), name="cbc(toy)")
    assert rules(judged(replace(result, algorithms=(*result.algorithms, other)), by)) == [
        ("deviations-used", "openssl, *(toy), t*", "cbc(toy)")
    ]


def test_what_is_accepted_excuses_nothing_else() -> None:
    by = judging(deviations=(deviation(),))
    lazy = accepted(faults=(MINE,), paths={}, judgements=(*red().judgements[:1], replace(OTHER, passed=False)))
    assert rules(judged(run(lazy), by)) == [("findings", lazy.cell, "paths")]
    other = replace(FAULT, fault_class="head")
    second = accepted(faults=(MINE, other))
    assert rules(judged(run(second), by)) == [("findings", second.cell, other.id)]
    untold = accepted(faults=(MINE,), untold="no case")
    assert rules(judged(run(untold), by)) == [("findings", untold.cell, "untold")]


def test_a_deviation_is_not_missed_where_fewer_cases_ran() -> None:
    by = judging(deviations=(deviation(),))
    result = run(cell(accepted().cell, library=LIBRARY), counts=vars(Counts.each(640)))
    assert rules(judged(result, by)) == []


# --- baselines ---

LOST: list[tuple[str, CellResult | None, tuple[str, str, str]]] = [
    ("a cell that is gone", None, ("lost-cells", cell().cell, "")),
    ("a cell that declines now", declined(cell().cell), ("lost-cells", cell().cell, "")),
    ("a library that cannot be used now", cell(state="unusable", reason="no file", judgements=()),
     ("lost-cells", cell().cell, "")),
    ("a check that is not judged any more", cell(judgements=(replace(PASSED, passed=None), OTHER)),
     ("lost-checks", cell().cell, "agreement")),
    ("a check that is gone", cell(judgements=(OTHER,)), ("lost-checks", cell().cell, "agreement")),
    ("a path that is not taken", cell(paths={"1way": ("1", "2-3+"), "wrap": ()}), ("lost-paths", cell().cell, "wrap")),
    ("a length of a path", cell(paths={"1way": ("1",), "wrap": ("8-15",)}), ("lost-paths", cell().cell, "1way")),
]  # fmt: skip


@pytest.mark.parametrize(("now", "key"), [item[1:] for item in LOST], ids=[item[0] for item in LOST])
def test_coverage_that_is_lost_is_red(now: CellResult | None, key: tuple[str, str, str]) -> None:
    before = run(cell(), cell(GENERIC))
    gated = judged(run(*(item for item in (now, cell(GENERIC)) if item)), judging(), before)
    assert [item for item in rules(gated) if item[0] != "usable"] == [key]
    assert gate_status(gated) == 1
    assert "bring it back" in gated.reds[-1].cure


def test_planted_faults_that_are_not_run_any_more_are_red() -> None:
    proofs = tuple(Proof(name, GENERIC, control=False, whole=False, holds=True) for name in ("toy-carry", "toy-tail"))
    gated = judged(replace(GREEN, proofs=proofs[1:]), judging(), replace(GREEN, proofs=proofs))
    assert rules(gated) == [("lost-proofs", "toy-carry", "")]
    assert gate_status(gated) == 1
    assert re_verb(gated.reds[0])
    assert rules(judged(replace(GREEN, proofs=proofs), judging(prove=True), replace(GREEN, proofs=proofs))) == []


def test_coverage_that_is_won_is_green() -> None:
    more = cell(
        paths={"1way": ("1", "2-3+", "4-7"), "wrap": ("8-15",), "new": ("1",)},
        judgements=(PASSED, replace(OTHER, passed=True)),
    )
    assert rules(judged(run(more, cell(GENERIC)), judging(), run(cell()))) == []


@pytest.mark.parametrize(
    ("now", "note"),
    [
        (run(cell(paths={"1way": ("1",), "wrap": ("8-15",)}), seed="another"), "the baseline has the seed 'a seed'"),
        (run(cell(paths={"1way": ("1",), "wrap": ("8-15",)}), counts={}), "the baseline has other numbers"),
        (run(algorithm(cell(paths={"1way": ("1",), "wrap": ("8-15",)}), digest="fedcba9876543210")), ""),
    ],
)
def test_lengths_of_paths_are_compared_only_where_the_cases_are_the_same(now: RunResult, note: str) -> None:
    gated = judged(now, judging(), run(cell()))
    assert rules(gated) == []
    assert note in "".join(gated.notes)
    none = replace(now, algorithms=(replace(now.algorithms[0], cells=(cell(paths={"1way": ("1",)}),)),))
    assert rules(judged(none, judging(), run(cell()))) == [("lost-paths", cell().cell, "wrap")]


def test_only_what_is_new_is_red_if_so_asked() -> None:
    before = run(red(GENERIC), cell())
    now = run(red(GENERIC), red())
    assert rules(judged(now, judging(), before)) == [
        ("findings", GENERIC, FAULT.id), ("findings", cell().cell, FAULT.id),
    ]  # fmt: skip
    gated = judged(now, judging(), before, only_new=True)
    assert rules(gated) == [("findings", cell().cell, FAULT.id)]
    assert [item.key for item in gated.known] == [("findings", GENERIC, FAULT.id)]
    assert "known: 1 are red in the baseline too" in "\n".join(gate_lines(now, gated))
    other = run(red(GENERIC, faults=(replace(FAULT, id="ba9876543210"),)), cell())
    assert rules(judged(other, judging(), before, only_new=True)) == [("findings", GENERIC, "ba9876543210")]


def test_what_is_void_is_never_known() -> None:
    gated = judged(run(cell(), void()), judging(), run(cell(), void()), only_new=True)
    assert gate_status(gated) == 3


def test_a_cell_that_is_lost_is_red_though_only_what_is_new_is() -> None:
    assert rules(judged(run(cell(GENERIC)), judging(), run(cell(GENERIC), cell()), only_new=True)) == [
        ("lost-cells", cell().cell, "")
    ]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"host": "aarch64"}, "the baseline was run on aarch64 and what is judged on x86_64"),
        ({"unfinished": ("x",)}, "a part of a run, interrupted or a shard"),
        ({"shard": "1/2"}, "a part of a run"),
        ({"algorithms": (algorithm(declined()),)}, "the baseline has no cell that ran"),
        ({"algorithms": ()}, "the baseline has no cell that ran"),
    ],
)
def test_a_baseline_that_cannot_be_one_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        check_baseline(replace(run(cell()), **changes), "x86_64")


@pytest.mark.parametrize("part", [{"unfinished": ("cbc(toy) within openssl",)}, {"shard": "1/2"}])
def test_cells_that_a_part_did_not_come_to_are_not_red_one_by_one(part: dict[str, Any]) -> None:
    gone = f"cbc(toy)/toy-generic@{NATIVE}"
    by = judging(gone, lanes=(RequiredLane(ASAN, 1),))
    gated = judged(replace(GREEN, **part), by, run(cell(GENERIC), algorithm(cell(gone), name="cbc(toy)")))
    assert {item[0] for item in rules(gated)} == {"complete"}
    other = replace(GREEN, unfinished=("xts(toy)",))
    assert ("cells", gone, "") in rules(judged(other, by))


def test_the_verdict_depends_on_nothing_but_what_is_given() -> None:
    before, now = run(cell(), cell(GENERIC)), run(red(), declined(), void())
    first = judged(now, judging("x", deviations=(deviation(),)), before)
    assert judged(now, judging("x", deviations=(deviation(),)), before) == first


# --- results that were made before ---


@pytest.mark.parametrize(
    ("changes", "any_revision", "keys", "note"),
    [
        ({}, False, [], ""),
        ({"revision": "f" * 40}, False, [("revision", "run", "")], ""),
        ({"revision": ""}, False, [("revision", "run", "")], ""),
        ({"revision": "f" * 40}, True, [], "the results are of revision ffffffffffff, this tree is abcdef012345"),
        ({"counts": vars(Counts.each(10))}, True, [("run-counts", "run", "")], ""),
        ({"counts": {}}, False, [("run-counts", "run", "")], ""),
        ({"seed": "another"}, False, [], "the results have the seed 'another', the policy 'a seed'"),
    ],
)
def test_results_that_were_made_before_are_held_against_the_run_of_the_policy(
    changes: dict[str, Any], any_revision: bool, keys: list[tuple[str, str, str]], note: str
) -> None:
    result = replace(GREEN, **changes)
    gated = with_given(judged(result, judging()), result, policy(), "abcdef0123456789", any_revision=any_revision)
    assert rules(gated) == keys
    assert gate_status(gated) == (1 if keys else 0)
    assert note in " ".join(gated.notes)
    assert bool(note) == bool(gated.notes)
    assert set(GIVEN_RULES) <= set(gated.rules)
    assert all(re_verb(item) and item.text for item in gated.reds)


# --- policies ---

HEAD = "version = 1\n"
REQUIRE = '[[require]]\ncells = "*"\n'


def written(folder: Path, text: str) -> Path:
    file = folder / "gate.toml"
    file.write_text(text)
    return file


def test_a_policy_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "deviations.toml").touch()
    text = """
version = 1
only_new = true
deviations = "deviations.toml"
[run]
cells = ["ctr"]
providers = ["openssl"]
lanes = ["x86_64_native"]
without = ["botan"]
seed = "a sentence"
vectors = "own"
prove = true
[counts]
native = 8192
[[require]]
cells = "sm4"
hosts = ["x86_64"]
may_decline = true
min_comparisons = 500
min_vectors = 3
checks = ["agreement"]
[[require]]
cells = "aes"
hosts = ["aarch64"]
[[lane]]
name = "x86_64_native"
min_comparisons = 1000
[[lane]]
name = "aarch64_native"
hosts = ["aarch64"]
"""
    read = read_policy(written(tmp_path, text), NAMES, "x86_64")
    assert read == policy(
        file=read.file, only_new=True, deviations=tmp_path / "deviations.toml", patterns=("ctr",),
        providers=("openssl",), lanes=("x86_64_native",), without=("botan",), counts=replace(Counts(), native=8192),
        imported=False, seed="a sentence", prove=True,
        required=(RequiredCells("sm4", True, 500, 3, ("agreement",)),),
        required_lanes=(RequiredLane("x86_64_native", 1000),),
        elsewhere=(
            Elsewhere("require", "aes", ("aarch64",)),
            Elsewhere("lane", "aarch64_native", ("aarch64",)),
        ),
    )  # fmt: skip
    counted = read_policy(written(tmp_path, HEAD + "[run]\ncount = 700\n" + REQUIRE), NAMES)
    assert counted.counts == Counts.each(700)
    assert read_policy(written(tmp_path, HEAD + "[run]\nshare = 8\n" + REQUIRE), NAMES).counts == Counts().shared(8)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty: write version = 1"),
        ("version = ", "malformed TOML"),
        (REQUIRE, "the key 'version' is missing"),
        ("version = 2\n" + REQUIRE, "version has 2; allowed are 1"),
        (HEAD, r"requires nothing on x86_64: add a table \[\[require\]\]"),
        (HEAD + '[[require]]\ncells = "*"\nhosts = ["aarch64"]\n', "requires nothing on x86_64"),
        (HEAD + "strict = true\n" + REQUIRE, "unknown key 'strict'"),
        (HEAD + "run = 1\n" + REQUIRE, r"run is 1; it must be a table \[run\]"),
        (HEAD + "[run]\ncell = ['*']\n" + REQUIRE, r"\[run\]: unknown key 'cell'"),
        (HEAD + "[run]\ncount = 0\n" + REQUIRE, "the least allowed is 1"),
        (HEAD + "[run]\nshare = 1001\n" + REQUIRE, r"share has 1001; the most allowed is 1000"),
        (HEAD + "[run]\nshare = 0\n" + REQUIRE, "share has 0; the least allowed is 1"),
        (
            HEAD + '[[lane]]\nname = "s390x_nope"\nhosts = ["x86-64"]\n',
            r"\[\[lane\]\] 1: hosts has 'x86-64'; allowed are x86_64, aarch64",
        ),
        (
            HEAD + REQUIRE + '[[require]]\ncells = "*"\nhosts = ["aarch64"]\nchecks = ["agreemnt"]\n',
            "there is no check 'agreemnt'; nearest are agreement",
        ),
        (HEAD + "[run]\ncount = 5\nshare = 2\n" + REQUIRE, "all say how many comparisons a cell gets"),
        (HEAD + "[run]\ncount = 5\n[counts]\nnative = 2\n" + REQUIRE, "all say how many comparisons"),
        (HEAD + "[counts]\nwindows = 2\n" + REQUIRE, r"\[counts\]: unknown key 'windows'"),
        (HEAD + '[run]\nseed = "  "\n' + REQUIRE, "seed has '  '"),
        (HEAD + '[run]\nvectors = "some"\n' + REQUIRE, "allowed are all, own"),
        (HEAD + "require = 1\n", r"require must be written as tables \[\[require\]\]"),
        (HEAD + "[[require]]\nmin_comparisons = 5\n", r"\[\[require\]\] 1: the key 'cells' is missing"),
        (
            HEAD + '[[require]]\ncells = "*"\nchecks = ["agreemnt"]\n',
            "there is no check 'agreemnt'; nearest are agreement",
        ),
        (HEAD + '[[lane]]\nnam = "x"\n', "unknown key 'nam'"),
        (HEAD + 'deviations = "none.toml"\n' + REQUIRE, "none.toml, which is no file"),
    ],
)
def test_a_policy_that_is_none_is_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as caught:
        read_policy(written(tmp_path, text), NAMES, "x86_64")
    assert "gate.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_policy_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_policy(tmp_path / "none.toml", NAMES)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="is not UTF-8"):
        read_policy(tmp_path / "bytes.toml", NAMES)


@pytest.fixture
def ask() -> Callable[..., Asked]:
    registry = load_registry(data_root())

    def asked(**changes: Any) -> Asked:
        facts: dict[str, Any] = {"may_decline": True, "min_comparisons": 1, "min_vectors": 0, "checks": ()}
        required = tuple(RequiredCells(pattern=text, **facts) for text in changes.pop("patterns_required", ("*",)))
        mine = policy(required=required, **changes)
        return asked_of(mine, registry, selection_of(mine, registry, (), mine.providers))

    return asked


def test_lanes_of_other_machines_are_left_out(ask: Callable[..., Asked]) -> None:
    asked = ask(lanes=("x86_64_native", "aarch64_native", "s390x_qemu"), patterns_required=("sm4-generic",))
    lanes = {name.partition("@")[2] for name in asked.required[0][1]}
    assert "s390x_qemu" in lanes
    assert len(lanes) == 2


def test_patterns_become_the_cells_of_the_run(ask: Callable[..., Asked]) -> None:
    asked = ask(patterns=("ctr(sm4)",), lanes=("x86_64_native",), patterns_required=("sm4-generic", "*"))
    assert asked.required[0][1] == ("ctr(sm4)/sm4-generic@x86_64_native",)
    assert len(asked.required[1][1]) > 5


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"patterns_required": ("sm4-genric",)}, r"\[require\]\]: .* 'sm4-genric' .*nothing; nearest are sm4-generic"),
        ({"patterns": ("ctr(sm5)",)}, r"\[run\]: the pattern 'ctr\(sm5\)' matches nothing; nearest are .*ctr\(sm4\)"),
        ({"lanes": ("x86_64_nativ",)}, r"\[run\]: 'x86_64_nativ' is no lane of this host"),
        ({"required_lanes": (RequiredLane("s390x_qmu", 1),)}, "there is no lane 's390x_qmu'; nearest are s390x_qemu"),
        (
            {"lanes": ("x86_64_native",), "required_lanes": (RequiredLane("s390x_qemu", 1),)},
            "s390x_qemu is required and not run",
        ),
        (
            {"patterns": ("ctr(sm4)",), "patterns_required": ("ctr(aes)",)},
            "means cells such as ctr.aes.*, which are required and not run",
        ),
        (
            {"elsewhere": (Elsewhere("lane", "aarch64_nativ", ("aarch64",)),)},
            r"\[lane\]\] of the host aarch64: there is no lane 'aarch64_nativ'; nearest are aarch64_native",
        ),
        (
            {"elsewhere": (Elsewhere("lane", "x86_64_native", ("aarch64",)),)},
            "of the host aarch64: there is no lane 'x86_64_native'",
        ),
        (
            {"elsewhere": (Elsewhere("require", "sm4-genric", ("aarch64",)),)},
            r"\[require\]\] of the host aarch64: .* 'sm4-genric' matches nothing; nearest are sm4-generic",
        ),
        ({"without": ("opensl",)}, r"\[run\]: there is no library 'opensl' to leave out"),
    ],
)  # fmt: skip
def test_a_policy_about_what_there_is_not_is_refused_with_the_nearest_names(
    ask: Callable[..., Asked], changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence) as caught:
        ask(**changes)
    assert str(caught.value).startswith("gate.toml: ")


@pytest.mark.parametrize("name", ["gate.toml", "gate-pull-request.toml"])
def test_the_policies_of_this_repository_mean_something(name: str) -> None:
    root = data_root()
    checks = frozenset(path.stem for path in (root / "conformance" / "checks").glob("*.py"))
    for host in ("x86_64", "aarch64"):
        read = read_policy(root / "ci" / name, checks, host)
        assert read.required
        assert all(item.min_comparisons >= 500 for item in read.required if item.pattern == "*")
        assert min(vars(read.counts).values()) >= 500
    mine = read_policy(root / "ci" / name, checks)
    registry = load_registry(root)
    asked_of(mine, registry, selection_of(mine, registry, (), mine.providers))


def test_findings_of_a_cell_are_said_once_each() -> None:
    several = red(GENERIC, findings=(FOUND, FOUND), faults=(FAULT, replace(FAULT, id="ba9876543210")))
    assert rules(judged(run(several), judging())) == [
        ("findings", GENERIC, FAULT.id), ("findings", GENERIC, "ba9876543210"),
    ]  # fmt: skip


def test_judgements_are_what_reds_are_made_of() -> None:
    lost = cell(GENERIC, judgements=(Judgement("paths", "Takes.", False, "no case took wrap"),), paths={"1way": ("1",)})
    (only,) = judged(run(lost), judging()).reds
    assert only.text == "paths: no case took wrap" or only.detail == "paths"
