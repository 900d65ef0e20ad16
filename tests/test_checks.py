# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crosslane.checks import Check, Outcome, judge_all, load_checks
from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.records import CellResult, FaultSeen, Finding

MakeCell = Callable[..., CellResult]

FOUND = Finding("0123456789abcdef-3-17", "disagree", "output", "alone", 2, "byte 5 of the output differs")
WRONG_ANSWER = Finding("paper:1:encrypt", "disagree", "output", "alone", 1, "byte 0 of the output differs")
OF_SECTORS = Finding(
    "disk:0123456789abcdef-0:write:3", "disagree", "output", "alone", 1, "byte 1 of the output differs"
)
CHANGED = Finding(
    "threads-0123456789abcdef-0-1", "disagree", "nondeterminism", "alone", 1, "update 1 answers otherwise"
)
LEFT = Finding("0123456789abcdef-0-1", "disagree", "wipe", "alone", 1, "update 1 leaves bytes of the key behind")
LONG = Finding(
    "large-0123456789abcdef-encrypt-1048609", "disagree", "output", "alone", 1, "MiB 0 of the output differs"
)
BULK = Finding(
    "bulk-0123456789abcdef-encrypt", "disagree", "output", "alone", 1, "encrypting 9 blocks in one call gives another"
)
DECLINED: dict[str, Any] = {
    "state": "declined", "comparisons": 0, "num_vectors": 0, "wanted": 0, "cpu_features": ("avx",), "paths": {},
}  # fmt: skip


@pytest.fixture(scope="module")
def checks() -> dict[str, Check]:
    return {check.name: check for check in load_checks(data_root())}


def test_there_are_the_checks_that_the_documentation_names(checks: dict[str, Check]) -> None:
    assert {"agreement", "bulk_selftest", "declines", "determinism", "known_answer", "large"} <= set(checks)
    assert {"paths", "secrets_wiped"} <= set(checks)
    for check in checks.values():
        assert check.sentence.endswith(".")
        assert check.sentence[0].isupper()


# Of each check: what passes, what does not apply, and what must be red, with the reason.
TABLE: list[tuple[str, dict[str, Any], bool | None, str]] = [
    ("agreement", {}, True, ""),
    ("agreement", {"comparisons": 640, "num_vectors": 0}, True, ""),
    ("agreement", {"num_departed": 2, "findings": (FOUND,)}, False, "byte 5 of the output differs"),
    ("agreement", {"num_departed": 2}, False, "2 cases depart"),
    ("agreement", {"skipped": 1}, False, "1 cases were not judged"),
    ("agreement", {"comparisons": 647}, False, "only 639 comparisons of the 640 promised"),
    ("agreement", {"comparisons": 8}, False, "only 0 comparisons of the 640 promised"),
    ("agreement", {"state": "void", "reason": "the shim died"}, False, "did not run: the shim died"),
    ("agreement", {"state": "not_run"}, False, "did not run"),
    ("agreement", DECLINED, None, "the CPU of this lane lacks"),
    ("declines", {}, True, ""),
    ("declines", {"needed_features": ()}, True, ""),
    ("declines", DECLINED, True, ""),
    ("declines", {"cpu_features": ("avx",)}, False, "runs on a CPU without avx2"),
    ("declines", {**DECLINED, "cpu_features": ("avx", "avx2")}, False, "declines although the CPU has all"),
    ("agreement", {"comparisons": 0, "num_vectors": 0, "wanted": 0}, None, "nothing was compared"),
    ("declines", {**DECLINED, "provider": True}, False, "the installed library lacks"),
    ("declines", {**DECLINED, "provider": True, "optional": True}, None, "was built without it, which provider.toml"),
    ("declines", {**DECLINED, "needed_features": ()}, False, "declines although the CPU has all"),
    ("declines", {"state": "void", "reason": "no hello", "cpu_features": ()}, False, "did not run: no hello"),
    ("declines", {"state": "not_run", "cpu_features": ()}, False, "did not run"),
    ("determinism", {"num_threaded": 64}, True, ""),
    ("determinism", {}, None, "no message was run in two threads"),
    ("determinism", DECLINED, None, "the CPU of this lane lacks"),
    ("determinism", {"state": "void", "reason": "no hello"}, False, "did not run: no hello"),
    ("determinism", {"num_threaded": 64, "findings": (CHANGED,)}, False, "answers otherwise"),
    ("secrets_wiped", {}, None, "its metadata does not claim it"),
    ("secrets_wiped", {"wipes": True}, True, ""),
    ("secrets_wiped", {"wipes": True, "findings": (LEFT,)}, False, "leaves bytes of the key"),
    ("secrets_wiped", {"wipes": True, "unwatched": ("wipe",)}, None, "cannot be observed in this lane"),
    ("secrets_wiped", {"wipes": True, "comparisons": 0}, None, "nothing was run"),
    ("secrets_wiped", {**DECLINED, "wipes": True}, None, "the CPU of this lane lacks"),
    ("secrets_wiped", {"wipes": True, "state": "void", "reason": "no hello"}, False, "did not run: no hello"),
    ("large", {"num_large": 2}, True, ""),
    ("large", {}, None, "no large message was run"),
    ("large", {"num_large": 2, "findings": (LONG,)}, False, "MiB 0 of the output differs"),
    ("large", DECLINED, None, "the CPU of this lane lacks"),
    ("large", {"state": "void", "reason": "no hello"}, False, "did not run: no hello"),
    ("bulk_selftest", {"num_bulk": 264}, True, ""),
    ("bulk_selftest", {"num_bulk": 264, "num_departed": 3}, None, "wrong answers may agree with each other"),
    ("bulk_selftest", {}, None, "single blocks cannot be asked of a library"),
    ("bulk_selftest", {"num_bulk": 264, "findings": (BULK,)}, False, "encrypting 9 blocks in one call"),
    ("bulk_selftest", DECLINED, None, "the CPU of this lane lacks"),
    ("bulk_selftest", {"state": "void", "reason": "no hello"}, False, "did not run: no hello"),
    ("known_answer", {}, True, ""),
    ("known_answer", {"num_departed": 2, "findings": (FOUND,)}, True, ""),
    ("known_answer", {"num_departed": 2, "findings": (OF_SECTORS,)}, True, ""),
    ("known_answer", {"num_vectors": 0}, None, "has a vector of this algorithm"),
    ("known_answer", DECLINED, None, "the CPU of this lane lacks"),
    ("known_answer", {"findings": (FOUND, WRONG_ANSWER)}, False, "paper:1:encrypt: byte 0 of the output differs"),
    ("known_answer", {"findings": (WRONG_ANSWER,), "num_vectors": 0}, False, "paper:1:encrypt"),
    ("known_answer", {"state": "void", "reason": "the shim died"}, False, "did not run: the shim died"),
    ("paths", {}, True, ""),
    ("paths", {"declared_paths": (), "paths": {}}, True, ""),
    ("paths", {"declared_paths": ("1way",)}, True, ""),
    ("paths", {"paths": {"1way": ("1",), "wrap": ()}}, False, "no case took the declared path wrap"),
    ("paths", {"paths": {"wrap": ("1",)}}, False, "no case took the declared path 1way"),
    ("paths", {"paths": {}, "wanted": 499}, None, "so few cases need not take"),
    ("paths", {"paths": {}}, False, "no case took the declared path 1way, wrap"),
    ("paths", {"paths": {}, "unwatched": ("paths",)}, None, "cannot be observed"),
    ("paths", {"paths": {}, "unwatched": ("registers",)}, False, "no case took the declared path"),
    ("paths", {"state": "void", "reason": "the shim died"}, False, "did not run: the shim died"),
    ("paths", DECLINED, None, "the CPU of this lane lacks"),
    ("compilers", {}, None, "not one of compilers"),
    ("compilers", {"build_lane": True}, True, ""),
    ("compilers", {"build_lane": True, "num_departed": 1, "findings": (FOUND,)}, False, "byte 5 of the output"),
    ("compilers", {"build_lane": True, "state": "void", "reason": "no hello"}, False, "did not run: no hello"),
    ("compilers", {"build_lane": True, **DECLINED}, None, "the CPU of this lane lacks"),
]

COVERED = dict.fromkeys(
    ("distinct_lengths", "tail_15", "counter_64", "j0_wrap", "tweak_steered", "splits_3", "interleaved", "in_place",
     "distinct_align_iv", "guard_end_key", "key_len_16", "weak_keys_policy_1", "overlap_refused", "aad_len_14",
     "tamper_tag", "data_len_refused", "each_length", "each_align_iv", "iv_read_back", "guard_end_ctx"),
    3,
)  # fmt: skip
OF_TWO = ("overlap_refused", "distinct_align_iv", "guard_end_ctx")
"""What two checks are about."""


def seen(symptom: str, fault_class: str) -> FaultSeen:
    return FaultSeen("0123456789ab", symptom, fault_class, f"{symptom} of {fault_class}")


# Of each check that is data: a finding of its own (symptom, class) and one that is of another check.
CLAIMS: list[tuple[str, tuple[str, str], tuple[str, str]]] = [
    ("lengths", ("output", "tail"), ("output", "in_place")),
    ("counter_wrap", ("iv", "counter:64"), ("output", "tail")),
    ("splits", ("output", "split"), ("output", "tail")),
    ("iv_writeback", ("iv", "any"), ("output", "any")),
    ("in_place", ("output", "in_place+stealing"), ("output", "stealing")),
    ("overlap_refused", ("output", "overlap"), ("output", "in_place")),
    ("alignment", ("crash", "sigbus+align"), ("output", "in_place")),
    ("guard_pages", ("guard_read", "in:behind+tail"), ("output", "tail")),
    ("canaries", ("canary", "out:behind"), ("guard_write", "out:behind")),
    ("input_unchanged", ("input", "in"), ("context", "ctx")),
    ("context_contained", ("context", "ctx"), ("input", "in")),
    ("key_lengths", ("output", "key_len:24"), ("output", "blocks:8")),
    ("weak_keys", ("output", "accepts+policy"), ("output", "blocks:8")),
    ("aead_headers", ("output", "tag+aad"), ("output", "blocks:8")),
    ("tamper", ("output", "accepts+wrong_tag"), ("output", "blocks:8")),
    ("dirty_state", ("output", "dirty_state"), ("output", "blocks:8")),
    ("abi", ("abi", "register:rbx"), ("output", "any")),
    ("declines_unchanged", ("context", "ctx+refused"), ("context", "ctx")),
]


@pytest.mark.parametrize(("name", "changes", "passed", "reason"), TABLE)
def test_a_check_judges_a_cell(
    checks: dict[str, Check], make_cell: MakeCell, name: str, changes: dict[str, Any], passed: bool | None, reason: str
) -> None:
    outcome = checks[name].judge(make_cell(**changes))
    assert outcome.passed is passed
    assert reason in outcome.reason
    assert bool(outcome.reason) is (passed is not True)


@pytest.mark.parametrize(("name", "own", "other"), CLAIMS)
def test_a_check_that_is_data_is_red_for_its_own_findings_alone(
    checks: dict[str, Check], make_cell: MakeCell, name: str, own: tuple[str, str], other: tuple[str, str]
) -> None:
    judge = checks[name].judge
    assert judge(make_cell(covered=COVERED)).passed is True
    assert judge(make_cell(covered=COVERED, faults=(seen(*own),))) == Outcome(False, seen(*own).text)
    assert judge(make_cell(covered=COVERED, faults=(seen(*other),))).passed is True
    assert judge(make_cell(**DECLINED)).passed is None
    assert judge(make_cell(state="void", reason="no hello")) == Outcome(False, "did not run: no hello")
    assert judge(make_cell(wanted=0, covered=COVERED)).passed is None


@pytest.mark.parametrize("name", sorted(COVERED))
def test_what_no_case_exercised_is_red_where_the_full_grids_ran(
    checks: dict[str, Check], make_cell: MakeCell, name: str
) -> None:
    lacking = {**COVERED, name: 0}
    red = [
        check.name for check in checks.values() if check.judge(make_cell(covered=lacking, full=True)).passed is False
    ]
    assert len(red) == (2 if name in OF_TWO else 1)
    outcome = checks[red[0]].judge(make_cell(covered=lacking, full=True))
    assert outcome.reason == f"no case had {name}"
    few = checks[red[0]].judge(make_cell(covered=lacking))
    assert (few.passed, few.reason) == (None, "so few cases do not exercise all that it is about")
    assert checks[red[0]].judge(make_cell(covered={"messages": 8}, full=True)).passed is None


@pytest.mark.parametrize(
    ("name", "watcher"),
    [("guard_pages", "layout"), ("canaries", "canary"), ("abi", "registers"), ("dirty_state", "registers"),
     ("context_contained", "context"), ("alignment", "layout")],
)  # fmt: skip
def test_what_cannot_be_observed_is_not_green(
    checks: dict[str, Check], make_cell: MakeCell, name: str, watcher: str
) -> None:
    assert checks[name].judge(make_cell(covered=COVERED, unwatched=(watcher,))).passed is None


def test_every_check_is_seen_to_pass_to_fail_and_to_judge_what_did_not_run(checks: dict[str, Check]) -> None:
    assert set(checks) == {row[0] for row in TABLE} | {row[0] for row in CLAIMS}
    for name in {row[0] for row in TABLE}:
        rows = [(changes, passed) for check, changes, passed, _ in TABLE if check == name]
        assert {True, False} <= {passed for _, passed in rows}, f"add rows of {name} to the table"
        assert (False, "void") in {(passed, changes.get("state")) for changes, passed in rows}


def test_a_cell_gets_every_judgement(checks: dict[str, Check], make_cell: MakeCell) -> None:
    judgements = judge_all(tuple(checks.values()), make_cell(num_departed=1, findings=(FOUND,)))
    assert [judgement.check for judgement in judgements] == sorted(checks)
    of = {judgement.check: judgement for judgement in judgements}
    assert of["agreement"].passed is False
    assert of["agreement"].reason == FOUND.text
    assert of["agreement"].sentence == checks["agreement"].sentence
    assert of["paths"].passed is True


SOUND = '''"""Is sound.

More words.
"""
from crosslane.checks import Outcome
def judge(cell):
    return Outcome(True)
'''


def folder_with(root: Path, **files: str) -> Path:
    folder = root / "conformance" / "checks"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return root


def test_checks_are_discovered_in_the_order_of_their_names(tmp_path: Path, make_cell: MakeCell) -> None:
    found = load_checks(folder_with(tmp_path, wiping=SOUND, abi=SOUND, __init__=""))
    assert [(check.name, check.sentence) for check in found] == [("abi", "Is sound."), ("wiping", "Is sound.")]
    assert found[0].judge(make_cell()) == Outcome(True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def judge(cell): ...\n", "a check has a docstring of one sentence and a function judge"),
        ('"""   \n"""\ndef judge(cell): ...\n', "a check has a docstring"),
        ('"""Says something."""\n', "a check has a docstring of one sentence and a function judge"),
        ('"""Says something."""\njudge = 1\n', "a check has a docstring"),
        ('"""Says something."""\ndef judge(cell:\n', "cannot be loaded .SyntaxError"),
        ("import no_such_module\n", "cannot be loaded .ModuleNotFoundError.*no_such_module"),
        ("1 / 0\n", "cannot be loaded .ZeroDivisionError"),
    ],
)
def test_a_file_that_is_no_check_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=rf"odd\.py: {message}"):
        load_checks(folder_with(tmp_path, good=SOUND, odd=text))


def test_a_folder_without_checks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no check; restore the folder"):
        load_checks(tmp_path)
    with pytest.raises(BadInput, match="there is no check"):
        load_checks(folder_with(tmp_path, __init__=SOUND))


def test_the_reference_page_has_every_check_with_its_sentence(checks: dict[str, Check]) -> None:
    page = (data_root() / "docs" / "reference" / "checks.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| (.*) \|$", page, re.MULTILINE))
    for name, check in checks.items():
        assert rows[name] == check.sentence[0].lower() + check.sentence[1:].rstrip(".")


@pytest.mark.parametrize(
    ("name", "symptom", "fault_class", "claimed"),
    [
        ("counter_wrap", "canary", "iv:behind", False),
        ("counter_wrap", "canary", "iv:behind+iv", True),
        ("key_lengths", "input", "key+data", False),
        ("key_lengths", "output", "key+data", True),
        ("context_contained", "canary", "ctx:behind", True),
        ("context_contained", "context", "ctx", True),
    ],
)
def test_the_name_of_a_buffer_is_no_feature_of_a_case(
    checks: dict[str, Check], name: str, symptom: str, fault_class: str, claimed: bool
) -> None:
    assert checks[name].claims(symptom, fault_class) is claimed


def test_no_check_of_answers_passes_where_all_answers_are_wrong(checks: dict[str, Check], make_cell: MakeCell) -> None:
    """A garbage generator: its least case needs nothing, so that no feature names the check it fails."""
    garbage = make_cell(
        covered=COVERED, full=True, num_departed=640, findings=(FOUND,), faults=(seen("output", "any"),)
    )
    cut_short = make_cell(covered=COVERED, full=True, skipped=9)
    for check in checks.values():
        if check.classes and check.name not in ("determinism", "large"):
            assert check.judge(garbage).passed is None, check.name
            assert check.judge(cut_short).passed is None, check.name
    assert checks["agreement"].judge(garbage).passed is False
