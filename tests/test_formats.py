# SPDX-License-Identifier: Apache-2.0
"""Every format of a result: what it says of each kind of cell, that its readers can read it, and that nothing a subject
wrote breaks out of it.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import xmlschema
from markdown_it import MarkdownIt
from resulting import FAULT, FOUND, HOSTILE, NATIVE, accepted, algorithm, cell, declined, every, hostile, red, run, void

from crosslane.data import data_root
from crosslane.formats import Gated, Place, Red, junit_text, ktap_text, markdown_text, matrix_lines, sarif_text
from crosslane.formats.outcomes import is_green, one_line, outcome_of, plain
from crosslane.formats.places import entry_line, place_of, places_of
from crosslane.registry import load_registry
from crosslane.results import RunResult

BAD = f"ctr(toy)/toy-bad@{NATIVE}"
LOST = Red("lost-paths", f"ctr(toy)/toy-avx2-x86_64@{NATIVE}", "tail", "the path tail is gone", "bring it back")
KNOWN = Red("findings", BAD, "0123456789ab", "it departed before", "correct it")
GATED = Gated("ci/gate.toml", ("findings", "lanes", "lost-paths"), (LOST,), (KNOWN,), ("a note",))
HOSTILE_GATE = Gated(
    "a b/g#.toml", ("findings",), (Red("findings", HOSTILE, HOSTILE, HOSTILE, HOSTILE),), (), (HOSTILE,)
)
PLACES = {"toy-bad": Place("impls/toy%20x/toy.c", "SRCROOT", 12), "openssl": Place("file:///x/adapter.c", "", 3)}
XSD = xmlschema.XMLSchema(str(Path(__file__).parent / "junit.xsd"))


# --- what all say alike ---


def test_a_result_is_green_unless_something_counts() -> None:
    assert is_green(run(cell(), declined(), accepted()), None)
    for result in (run(), run(red()), run(void()), run(cell(), unfinished=("x",)), run(cell(), proofs=every().proofs)):
        assert not is_green(result, None)
    assert is_green(run(red()), Gated("p", ("findings",), (), (KNOWN,)))
    assert not is_green(run(cell()), GATED)


def test_each_kind_of_cell_has_its_outcome() -> None:
    kinds = [outcome_of(item, item.judgements[0]).kind for item in (cell(), red(), accepted(), declined(), void())]
    assert kinds == ["passed", "failed", "accepted", "skipped", "error"]
    assert outcome_of(accepted(), accepted().judgements[0]).text == (
        "accepted finding 0123456789ab: known upstream since 2021"
    )
    assert "crosslane repro 0123456789abcdef-3-17" in outcome_of(red(), red().judgements[0]).text


def test_text_of_subjects_is_printable_and_one_line() -> None:
    assert plain("a\x1b[31m\x00\n\u202eb\ud800") == "a\\x1b[31m\\x00\n\\x202eb\\xd800"
    assert one_line(HOSTILE).count("\n") == 0
    assert all(char.isprintable() for char in one_line(HOSTILE))


# --- JUnit ---


@pytest.mark.parametrize("result", [every(), hostile(), run(), run(cell(judgements=()))])
@pytest.mark.parametrize("gated", [None, GATED, HOSTILE_GATE])
def test_junit_fits_its_schema_and_counts_what_it_has(result: RunResult, gated: Gated | None) -> None:
    text = junit_text(result, gated)
    XSD.validate(text)
    root = ET.fromstring(text)  # noqa: S314 - it was written here
    for suite in root:
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"), ("tests", "testcase")):
            assert int(suite.get(name, "-1")) == len(suite.findall(f".//{tag}"))
    assert int(root.get("tests", "-1")) == len(root.findall(".//testcase"))


def test_junit_has_a_case_for_each_check_of_each_cell() -> None:
    root = ET.fromstring(junit_text(every(), GATED))  # noqa: S314 - it was written here
    said = {
        (case.get("classname"), case.get("name")): (case[0].tag, case[0].get("message")) if len(case) else ("", "")
        for case in root.iter("testcase")
    }
    assert said[f"ctr(toy)/toy-avx2-x86_64@{NATIVE}", "agreement"] == ("", "")
    assert said[f"ctr(toy)/toy-avx2-x86_64@{NATIVE}", "paths"][0] == "skipped"
    assert said[BAD, "agreement"] == ("failure", "byte 5 differs")
    assert said[f"ctr(toy)/openssl@{NATIVE}", "agreement"] == (
        "skipped", "accepted finding 0123456789ab: known upstream since 2021",
    )  # fmt: skip
    assert said["ctr(toy)/toy-generic@x86_64_asan", "agreement"] == ("error", "void: no answer")
    assert said[f"ctr(toy)/toy@{NATIVE}", "toy-carry"] == ("error", "missed")
    assert said["crosslane", "cbc(toy)"][0] == "error"
    assert said["gate", "lanes"] == ("", "")
    assert said["gate.lost-paths", f"lost-paths {LOST.about} tail"][0] == "failure"
    assert said["gate.findings", f"findings {BAD} 0123456789ab"][0] == "skipped"
    cells = list(every().cells())
    assert len([key for key in said if "/" in str(key[0]) and key[1] != "toy-carry"]) == sum(
        len(item.judgements) for item in cells
    )


def test_the_schema_of_junit_refuses_what_is_none() -> None:
    text = junit_text(every())
    for spoilt in (text.replace("<testsuite ", "<suite ", 1).replace("</testsuite>", "</suite>", 1),
                   text.replace('tests="', 'tests="-', 1), text.replace("<testcase name", "<testcase nam", 1),
                   text.replace(" classname=", " class=", 1)):  # fmt: skip
        assert spoilt != text or "<testcase name" not in text
        if spoilt != text:
            assert not XSD.is_valid(spoilt)


# --- SARIF ---

STRING: dict[str, Any] = {"type": "string", "minLength": 1}
MESSAGE = {"type": "object", "additionalProperties": False, "required": ["text"], "properties": {"text": STRING}}
RULE = {
    "type": "object", "additionalProperties": False, "required": ["id"],
    "properties": {
        "id": STRING, "name": STRING, "shortDescription": MESSAGE,
        "defaultConfiguration": {"properties": {"level": {"enum": ["none", "note", "warning", "error"]}}},
    },
}  # fmt: skip
LOCATION = {
    "type": "object", "additionalProperties": False, "required": ["physicalLocation"],
    "properties": {"physicalLocation": {
        "type": "object", "additionalProperties": False, "required": ["artifactLocation"],
        "properties": {
            "artifactLocation": {
                "type": "object", "additionalProperties": False,
                "properties": {
                    "uri": {"type": "string", "format": "uri-reference", "pattern": r"^[!-~]+$"}, "uriBaseId": STRING,
                },
            },
            "region": {"type": "object", "properties": {"startLine": {"type": "integer", "minimum": 1}}},
        },
    }},
}  # fmt: skip
RESULT = {
    "type": "object", "additionalProperties": False, "required": ["message", "ruleId"],
    "properties": {
        "ruleId": STRING, "level": {"const": "error"}, "message": MESSAGE,
        "locations": {"type": "array", "items": LOCATION},
        "partialFingerprints": {"type": "object", "additionalProperties": STRING},
        "suppressions": {"type": "array", "items": {
            "type": "object", "additionalProperties": False, "required": ["kind"],
            "properties": {"kind": {"enum": ["inSource", "external"]}, "justification": STRING,
                           "status": {"enum": ["accepted", "underReview", "rejected"]}},
        }},
    },
}  # fmt: skip
SARIF = {
    "type": "object", "additionalProperties": False, "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"}, "version": {"const": "2.1.0"},
        "runs": {"type": "array", "maxItems": 20, "items": {
            "type": "object", "additionalProperties": False, "required": ["tool"],
            "properties": {
                "tool": {"type": "object", "required": ["driver"], "properties": {"driver": {
                    "type": "object", "additionalProperties": False, "required": ["name"],
                    "properties": {"name": STRING, "semanticVersion": STRING,
                                   "rules": {"type": "array", "uniqueItems": True, "items": RULE}},
                }}},
                "invocations": {"type": "array", "items": {
                    "type": "object", "additionalProperties": False, "required": ["executionSuccessful"],
                    "properties": {
                        "executionSuccessful": {"type": "boolean"}, "properties": {"type": "object"},
                        "toolExecutionNotifications": {"type": "array", "items": {
                            "type": "object", "additionalProperties": False, "required": ["message"],
                            "properties": {"level": {"const": "error"}, "message": MESSAGE},
                        }},
                    },
                }},
                "originalUriBaseIds": {"type": "object"},
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "results": {"type": "array", "maxItems": 25_000, "items": RESULT},
            },
        }},
    },
}  # fmt: skip
"""What the standard says of the parts that are written (OASIS, SARIF 2.1.0), and the limits of code scanning."""


def sarif(result: RunResult, gated: Gated | None = None) -> Any:
    document = json.loads(sarif_text(result, PLACES, gated))
    jsonschema.Draft202012Validator(SARIF, format_checker=jsonschema.FormatChecker()).validate(document)
    return document["runs"][0]


@pytest.mark.parametrize("result", [every(), hostile(), run()])
@pytest.mark.parametrize("gated", [None, GATED, HOSTILE_GATE])
def test_sarif_fits_its_schema_and_each_rule_is_declared(result: RunResult, gated: Gated | None) -> None:
    made = sarif(result, gated)
    rules = {rule["id"] for rule in made["tool"]["driver"]["rules"]}
    assert {item["ruleId"] for item in made["results"]} <= rules


def test_sarif_stands_at_the_entry_point_and_says_what_is_accepted() -> None:
    made = sarif(every(), GATED)
    assert len(made["results"]) == 3
    by_subject = {item["message"]["text"].split(":")[0]: item for item in made["results"]}
    bad = by_subject["ctr(toy) of toy-bad"]
    (place,) = bad["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "impls/toy%20x/toy.c", "uriBaseId": "SRCROOT"}, "region": {"startLine": 12},
    }  # fmt: skip
    assert "suppressions" not in bad
    lib = by_subject["ctr(toy) of openssl"]
    assert lib["suppressions"][0]["justification"].endswith("known upstream since 2021")
    assert lib["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///x/adapter.c"}
    (lost,) = [item for item in made["results"] if item["ruleId"] == "gate/lost-paths"]
    assert lost["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "ci/gate.toml"
    told = [item["message"]["text"] for item in made["invocations"][0]["toolExecutionNotifications"]]
    assert len(told) == 3
    assert not made["invocations"][0]["executionSuccessful"]
    assert sarif(run(red()))["invocations"][0]["executionSuccessful"]


def test_sarif_has_one_result_for_all_lanes_and_the_same_fingerprint_again() -> None:
    lanes = [f"lane_{number}" for number in range(20)]
    made = sarif(run(*(red(f"ctr(toy)/toy-bad@{lane}") for lane in lanes)))
    (only,) = made["results"]
    assert "and 12 more" in only["message"]["text"]
    again = sarif(run(red("ctr(toy)/toy-bad@lane_7", judgements=(red().judgements[0],))))
    assert again["results"][0]["partialFingerprints"] == only["partialFingerprints"]


def test_sarif_drops_nothing_silently() -> None:
    cells = [red(f"ctr(toy)/toy-{number}@{NATIVE}") for number in range(5010)]
    made = sarif(run(*cells))
    assert len(made["results"]) == 5000
    (note,) = made["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith("10 more results are left out")


def test_no_message_of_sarif_has_a_link() -> None:
    texts = [item["message"]["text"] for item in sarif(hostile(), HOSTILE_GATE)["results"]]
    assert texts
    for text in texts:
        assert not re.search(r"(?<!\\)\[", text)


@pytest.mark.parametrize(
    ("name", "source", "line"),
    [
        ("a.c", "int toy_x(int);\n\nint toy_x(int a)\n{\n}\n", 3),
        ("a.c", "/* toy_x(a) */\n#define toy_x toy_x\nint *toy_x(int f);\nint y;\nint *\ntoy_x(int f)\n{", 6),
        ("a.c", "const struct subject_session PROVIDER = {0};\nint toy_x(void) { return 1; }\n", 2),
        ("a.S", ".globl toy_x\n  nop\ntoy_x:\n", 3),
        ("a.S", "ENTRY_OF(toy_y)\nFUNCTION(toy_x)\n", 2),
        ("a.c", "int toy_xy(void) {}\n", 0),
        ("a.c", "int toy_xx(int);\n  return toy_x(1);\n", 0),
        ("missing.c", None, 0),
    ],
)  # fmt: skip
def test_the_line_of_a_definition_is_found(tmp_path: Path, name: str, source: str | None, line: int) -> None:
    if source is not None:
        (tmp_path / name).write_text(source)
    assert entry_line(tmp_path / name, "toy_x") == line


def test_every_implementation_and_adapter_of_the_suite_has_a_line() -> None:
    root = data_root()
    places = places_of(load_registry(root), root)
    for name, place in places.items():
        assert place.base == "SRCROOT", name
        assert place.line > 1, f"{name}: its entry point was not found in its sources"
        assert (root / place.uri).is_file(), name


def test_a_place_is_named_from_where_it_is_looked_at(tmp_path: Path) -> None:
    inside, outside = tmp_path / "here" / "a b#.c", tmp_path / "suite" / "x.c"
    assert place_of(inside, 3, tmp_path / "suite", tmp_path / "here") == Place("a%20b%23.c", "SRCROOT", 3)
    assert place_of(outside, 3, tmp_path / "suite", tmp_path / "here") == Place("x.c", "SUITE", 3)
    assert place_of(tmp_path / "z.c", 3, tmp_path / "suite", tmp_path / "here").uri.startswith("file:///")


# --- KTAP ---


def parse_ktap(text: str) -> list[tuple[int, bool, str, str]]:
    """Level, whether ok, name and what follows the hash of each test, read as the kernel's documentation says."""
    lines, tests = text.splitlines(), []
    stack: list[list[int]] = []
    awaiting = True
    for number, line in enumerate(lines):
        level = (len(line) - len(line.lstrip(" "))) // 2
        word = line.strip()
        if word == "KTAP version 1":
            assert level == len(stack) if number else level == 0, line
            stack.append([0, -1])
            awaiting = True
        elif match := re.fullmatch(r"1\.\.(\d+)", word):
            assert awaiting, line
            stack[-1][1], awaiting = int(match[1]), False
        elif word.startswith("#"):
            continue
        else:
            found = re.fullmatch(r"(ok|not ok) (\d+) ([^#]*?)(?: # (.*))?", word)
            assert found, f"line {number + 1} is none of KTAP: {line!r}"
            while len(stack) > level + 1:
                done, planned = stack.pop()
                assert done == planned, line
            stack[-1][0] += 1
            assert int(found[2]) == stack[-1][0], line
            tests.append((level, found[1] == "ok", found[3], found[4] or ""))
    ((done, planned),) = stack
    assert done == planned
    return tests


@pytest.mark.parametrize("result", [every(), hostile(), run(), run(cell(judgements=()))])
@pytest.mark.parametrize("gated", [None, GATED, HOSTILE_GATE])
def test_ktap_can_be_read_and_a_parent_fails_with_its_children(result: RunResult, gated: Gated | None) -> None:
    tests = parse_ktap(ktap_text(result, gated))
    below: dict[int, list[bool]] = {}
    for level, ok, name, _ in tests:
        if level + 1 in below:
            assert ok is all(below.pop(level + 1)), name
        below.setdefault(level, []).append(ok)


def test_ktap_has_the_outcome_of_each_check() -> None:
    tests = parse_ktap(ktap_text(every(), GATED))
    assert (2, True, "agreement", "") in tests
    assert (2, False, "agreement", "") in tests
    assert (2, True, "paths", "SKIP paths cannot be observed in this lane") in tests
    assert (2, True, "agreement", "XFAIL accepted finding 0123456789ab: known upstream since 2021") in tests
    assert (2, False, "agreement", "ERROR void: no answer") in tests
    assert (1, False, f"toy-bad@{NATIVE}", "") in tests
    assert (1, True, f"openssl@{NATIVE}", "") in tests
    assert (0, False, "cbc(toy)", "ERROR interrupted") in tests
    assert (0, False, "gate", "") in tests


# --- Markdown ---


def shown_markdown(result: RunResult, gated: Gated | None = None) -> tuple[str, str]:
    text = markdown_text(result, gated)
    return text, MarkdownIt("commonmark", {"html": True}).enable("table").render(text)


def test_markdown_of_a_green_run_is_short() -> None:
    text, _ = shown_markdown(run(*(cell(f"ctr(toy)/toy-{number}@{NATIVE}") for number in range(900))))
    assert text.startswith("### Crosslane check: green\n")
    assert len(text.splitlines()) == 3
    assert len(text) < 300
    assert "900 agreed" in text


def test_markdown_says_what_is_red_and_what_to_do() -> None:
    text, _ = shown_markdown(every(), GATED)
    assert "### Crosslane gate: RED" in text
    assert "| `lost-paths` |" in text
    assert "bring it back" in text
    assert "1 are red in the baseline too" in text
    _, page = shown_markdown(every())
    assert BAD in page
    assert "void: no answer" in page
    assert "toy-carry" in page
    assert "interrupted" in page


def test_markdown_of_very_much_red_fits_a_comment() -> None:
    cells = [red(f"ctr(toy)/toy-{number}@{NATIVE}", judgements=(hostile_judgement(),)) for number in range(4000)]
    text, _ = shown_markdown(run(*cells))
    assert len(text) < 65_536
    assert "3,970 more are in the other outputs" in text


def hostile_judgement() -> Any:
    return next(iter(hostile().cells())).judgements[0]


@pytest.mark.parametrize("gated", [None, HOSTILE_GATE])
def test_nothing_of_a_subject_breaks_out_of_markdown(gated: Gated | None) -> None:
    _, page = shown_markdown(hostile(), gated)
    outside = re.sub(r"<(code|pre)>.*?</\1>", "", page, flags=re.DOTALL)
    for bait in ("script", "href", "@team", "alert", "<em>", "<h1>", "\x1b", "\x00", "\u202e"):
        assert bait not in outside, bait
    for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL):
        assert row.count("<td>") in (0, 3, 4), "a bar within a cell made a column"


# --- the matrix ---


def test_the_matrix_has_a_row_an_algorithm_and_a_column_a_lane() -> None:
    both = run(
        algorithm(cell(), red(BAD), declined(), void()),
        algorithm(accepted(), name="ctr(toy) within openssl"),
        algorithm(declined(f"cbc(toy)/toy-ce@{NATIVE}"), name="cbc(toy)"),
    )
    lines = list(matrix_lines(both))
    assert lines[:2] == [f"   1 {NATIVE}", "   2 x86_64_asan"]
    assert [line.split() for line in lines[3:]] == [["1", "2"], ["cbc(toy)", "-", "."], ["ctr(toy)", "1!(1)1", "1?"]]
    assert list(matrix_lines(run())) == ["no cell was run"]


def test_a_finding_names_its_case_in_every_format() -> None:
    assert FOUND.case_id in junit_text(every())
    assert FOUND.case_id in ktap_text(every())


def test_markdown_says_what_it_leaves_out() -> None:
    many = run(
        *(
            accepted(f"ctr(toy)/toy-{number}@{NATIVE}", faults=(replace(FAULT, accepted=f"reason {number}"),))
            for number in range(33)
        )
    )
    assert "3 more are in the other outputs." in markdown_text(many)
    green = markdown_text(run(cell()), Gated("gate.toml", ("findings",), (), (KNOWN,)))
    assert "1 are red in the baseline too and do not count." in green
    wide = run(*(algorithm(red(f"ctr(toy{number})/toy@{NATIVE}"), name=f"ctr(toy{number})") for number in range(2500)))
    assert "characters long, is left out: `crosslane report --matrix` has it." in markdown_text(wide)


def test_an_absolute_policy_is_a_file_in_sarif() -> None:
    gated = Gated("/a b/gate.toml", ("lanes",), (Red("lanes", NATIVE, "", "nothing ran", "run"),))
    (only,) = json.loads(sarif_text(run(cell()), {}, gated))["runs"][0]["results"]
    assert only["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///a%20b/gate.toml"}
