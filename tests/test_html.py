# SPDX-License-Identifier: Apache-2.0
"""The HTML report: what it says first, that nothing of a subject is markup in it, and that it loads nothing."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from pages import Seen, seen, whole_run, with_text
from resulting import ASAN, FAULT, FOUND, HOSTILE, NATIVE, accepted, algorithm, cell, declined, every, red, run, void
from stored import KEY, stored

from crosslane.bench.report import SCHEMA
from crosslane.errors import BadInput
from crosslane.formats import Gated, Red
from crosslane.html.benches import read_bench
from crosslane.html.page import html_text
from crosslane.records import Judgement, LibraryRow, Proof
from crosslane.results import RunResult, write_json

BREAKING = (
    "\"'><script>alert(1)</script></style></title></pre></details><img src=x onerror=alert(2)> {{ 7*7 }} " + HOSTILE
)
PROOF = Proof("toy-carry", f"ctr(toy)/toy@{NATIVE}", control=False, whole=False, holds=True)


def words(page: str) -> str:
    return " ".join(" ".join(seen(page).text).split())


def top(page: str) -> str:
    return words(page.partition("<main>")[0])


def full() -> RunResult:
    """Something in every field of a result."""
    library = LibraryRow("openssl", NATIVE, "plain", "the system's", accepted().library, "ctr(toy)", "agreed")
    lost = replace(library, library=None, verdict="unusable", lane=ASAN)
    kinds = every()
    more = algorithm(
        cell(f"gcm(toy)/toy-c@{NATIVE}", switch="x", judged_by={"x": 3}, unwatched=("x",), skipped=2, num_sampled=9),
        red(f"gcm(toy)/toy-d@{NATIVE}", findings=(replace(FOUND, quorum="x"), FOUND), faults=(), untold="x"),
        cell(f"gcm(toy)/toy-e@{NATIVE}", state="unusable", reason="x"), cell(f"gcm(toy)/toy-f@{ASAN}", comparisons=0),
        name="gcm(toy)", notes=("x",),
    )  # fmt: skip
    return replace(
        kinds, algorithms=(*kinds.algorithms, more), sandbox_missing=("x",), notes=("x",), unproven=("x",),
        libraries=(library, lost), proofs=(*kinds.proofs, PROOF, replace(PROOF, control=True)),
    )  # fmt: skip


def test_green_is_said_first_and_asks_for_nothing() -> None:
    page = html_text(run(cell(), declined(f"ctr(toy)/toy-ce@{ASAN}"), proofs=(PROOF,)))
    assert top(page).startswith("Green: nothing to do · Crosslane")
    assert "Green: nothing to do 2 cells, 648 comparisons with the generic implementation, 1 of 1 planted" in top(page)
    assert 'class="todo"' not in page
    assert 'id="red"' not in page
    assert "the CPU of this lane has no sm4" in words(page)


def test_red_says_what_to_do_and_how_to_see_it() -> None:
    page = html_text(run(red()))
    said = top(page)
    assert "Red: 1 thing to do" in said
    assert "toy-avx2-x86_64, ctr(toy): output, tail byte 5 differs See it again, explain it, then mend it" in said
    assert f"crosslane repro 0123456789abcdef-3-17 --cell 'ctr(toy)/toy-avx2-x86_64@{NATIVE}'" in said
    assert "crosslane triage 0123456789ab" in words(page)
    assert "✕ finding" in words(page)
    assert "agreement failed. It answers as generic does." in words(page)


def test_an_accepted_finding_is_green_and_told() -> None:
    page = html_text(run(accepted()))
    assert "Green: nothing to do" in top(page)
    assert "1 known finding is accepted." in top(page)
    assert "⊗ accepted" in words(page)
    assert "known upstream since 2021" in words(page)
    assert "crosslane findings accept" not in words(page)


@pytest.mark.parametrize(
    ("result", "title", "about"),
    [
        (run(void()), "Red: 1 thing to do", "void: no answer The suite itself failed here"),
        (run(cell(state="not_run")), "Red: 1 thing to do", "not run: never began Run the cells again"),
        (run(cell(state="unusable", reason="no library")), "Red: 1 thing to do", "no library Install the library"),
        (run(cell(), unfinished=("cbc(toy)",)), "Not finished: what ran is green", "1 plan did not come to the end"),
        (run(red(), unfinished=("cbc(toy)",)), "Red: 2 things to do", "The run was interrupted"),
        (run(), "Red: 1 thing to do", "No cell was run."),
        (
            run(cell(), proofs=(replace(PROOF, holds=False, text="missed"),)),
            "Red: 1 thing to do",
            "In ctr(toy)/toy@x86_64_native: missed A check",
        ),
        (run(red(faults=())), "Red: 1 thing to do", "agreement: byte 5 differs"),
        (run(red(faults=(replace(FAULT, accepted="known"),), untold="x")), "Red: 1 thing to do", "agreement: byte 5"),
    ],
)
def test_each_way_to_be_red_has_its_cure(result: RunResult, title: str, about: str) -> None:
    said = top(html_text(result))
    assert title in said
    assert about in said


def test_a_gate_says_its_own_reds() -> None:
    gated = Gated("gate.toml", ("lanes",), (Red("lanes", "s390x_qemu", "", "did not run", "Add it."),), notes=("Hm.",))
    said = top(html_text(run(cell()), gated))
    assert "Red: 1 thing to do" in said
    assert "s390x_qemu did not run Add it." in said
    assert "Judged by the policy gate.toml. Hm." in said
    green = top(html_text(run(red()), replace(gated, reds=(), known=gated.reds)))
    assert "Green: nothing to do" in green
    assert "1 red of the baseline too, not counted." in green


def test_a_square_of_the_matrix_has_shape_word_and_counts() -> None:
    page = html_text(run(cell(), red(f"ctr(toy)/toy-bad@{NATIVE}"), declined(), cell(f"ctr(toy)/toy-generic@{ASAN}")))
    squares = re.findall(r'<td class="(\w+)"><a href="#[a-z0-9-]+">(.*?)</a>', page)
    assert [(kind, words(text)) for kind, text in squares] == [
        ("good", "✓ 1 agreed"), ("bad", "✕ 1 finding +1 agreed +1 declined")
    ]  # fmt: skip


def test_a_cell_is_told_whole() -> None:
    judged = (Judgement("agreement", "Agrees.", True, ""), Judgement("paths", "Takes.", None, "nobody sees them"))
    made = cell(num_threaded=64, num_bulk=144, num_large=2, num_sampled=704, judged_by={"cryptography": 695})
    told = words(html_text(run(replace(made, judgements=judged), accepted(judgements=judged))))
    assert "toy-avx2-x86_64 ✓ agreed 648 8 64 144 2 704 1.3 k 2 of 2 ✓ 1 also judged by cryptography on 695" in told
    assert "passed agreement" in told
    assert "does not apply paths: nobody sees them" in told
    assert "agreement Agrees." in told
    assert "version 3.0" in told


def test_paths_are_told_by_length_class() -> None:
    page = html_text(run(cell(paths={"1way": ("1", "2-3+"), "odd": ("64..+",)})))
    table = page.partition('class="paths"')[2].partition("</table>")[0]
    rows = [re.findall(r"<td>(●?)", row) for row in re.findall(r"<tr><th scope=\"row\">.*?</tr>", table)]
    assert [[at for at, mark in enumerate(row) if mark] for row in rows] == [[2, 5], [15]]
    assert 'odd <span class="quiet">not declared</span>' in table


def test_what_messages_exercise_is_told_over_the_cells() -> None:
    other = cell(f"ctr(toy)/toy-generic@{ASAN}", covered={"clone": 80, "empty": 16})
    told = words(html_text(run(cell(covered={"clone": 49, "empty": 16}), other)))
    assert "What the messages of a first batch exercise clone 49 to 80, empty 16" in told


def test_what_a_subject_says_is_never_markup() -> None:
    plain, broken = (html_text(with_text(full(), text)) for text in ("plain: text", BREAKING))
    assert seen(broken).tags == seen(plain).tags
    assert seen(broken).wrong == []
    assert broken.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 30
    assert "<script>alert" not in broken
    assert "49" not in set(re.findall(r"[\w']+", broken)) - set(re.findall(r"[\w']+", plain))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", broken)
    broken.encode()


def test_a_subject_that_says_much_is_cut_short() -> None:
    page = html_text(run(red(findings=(replace(FOUND, text="x" * 5_000_000),), faults=())))
    assert len(page) < 100_000
    assert "more characters" in page


@pytest.mark.parametrize("result", [every(), full(), run(cell()), run()], ids=["every", "full", "green", "nothing"])
def test_nothing_is_loaded_and_every_link_leads_somewhere(result: RunResult) -> None:
    page = seen(html_text(result))
    assert page.wrong == []
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert len(page.links) >= 7


@pytest.mark.parametrize(
    "planted",
    [
        "<img src='https://x/y.png'>", "<img src='data:text/html,x'>", "<link href=x.css>",
        "<a href='javascript:x'>",
        "<script src=x></script>", "<iframe srcdoc=x>", "<p style='color:red'>", "<p onclick=x>", "<base href=x>",
        "<style>p { background: url(x) }</style>", "<style>@import 'x'</style>", "<script>fetch(x)</script>",
        "<form action=x>", "<meta http-equiv=refresh content='0;x'>", "<image xlink:href=x>", "<object data=x>",
    ],
)  # fmt: skip
def test_what_would_load_something_is_seen(planted: str) -> None:
    assert seen(html_text(run(cell())).replace("<main>", f"<main>{planted}", 1)).wrong != []


def test_the_policy_lets_our_own_style_and_script_alone() -> None:
    page = html_text(run(cell()))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    allowed = unescape(policy[1])
    assert allowed.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in allowed
    assert page.count("<script>") == page.count("<style>") == 1


def test_tables_have_headers() -> None:
    page = html_text(full())
    for table in re.findall(r"<table.*?</table>", page, re.DOTALL):
        assert 'scope="col"' in table
        assert 'scope="row"' in table
    assert len(re.findall(r"<table", page)) > 8


def test_a_run_of_the_gate_takes_less_than_3_mib() -> None:
    result = whole_run()
    page = html_text(result)
    assert sum(1 for _ in result.cells()) > 3000
    assert len(result.proofs) == 1250
    assert len(page.encode()) < 3 << 20
    assert seen(page).wrong == []
    assert page == html_text(result)


def test_a_finding_of_the_store_has_its_case_and_commands(tmp_path: Path) -> None:
    fault = stored(tmp_path / "kept")
    told = words(html_text(run(red(faults=(fault,))), findings=tmp_path / "kept"))
    assert "session: encrypt, policy 0 setkey, slot 0, 16 bytes 0000" in told
    assert f"crosslane repro {KEY.id} --findings {tmp_path / 'kept'}" in told
    assert f"{KEY.id} · open" in told


def test_a_finding_that_was_explained_has_its_picture_and_who_agrees(tmp_path: Path) -> None:
    svg = f'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script><text>{"x" * 9000}</text></svg>'
    triage = (
        "# toy: a title\n\nClass: **counter**.\n\n## Where it departs\n\n![failing](triage.svg)\n\n"
        "## Who agrees with whom\n\n| subject | answer |\n|---|---|\n| `toy` | B |\n"
    )
    page = html_text(run(red(faults=(stored(tmp_path, triage=triage, svg=svg),))), findings=tmp_path)
    picture = re.search(r'src="data:image/svg\+xml;base64,([^"]*)"', page)
    assert picture is not None
    assert base64.b64decode(picture[1]).decode() == svg
    assert "<td><code>toy</code></td>" in page
    assert "<strong>counter</strong>" in page
    assert "a title" not in page
    assert seen(page).wrong == []


def test_an_explanation_can_be_no_markup_either(tmp_path: Path) -> None:
    hostile = (
        "# x\n\n<script>alert(1)</script>\n\n<img src=x onerror=y>\n\n[l](javascript:x) ![i](http://x/y.png) <http://x>\n\n"
        "[r]\n\n[r]: http://x/z 'title'\n\n```\n</pre><script>\n```\n\n| a |\n|---|\n| <b onclick=x> |\n"
        + BREAKING.replace("\ud800", "")
    )
    page = html_text(run(red(faults=(stored(tmp_path, triage=hostile, svg=BREAKING[:90]),))), findings=tmp_path)
    found: Seen = seen(page)
    assert found.wrong == []
    assert not [link for link in found.links if not link.startswith("#")]
    assert [tag for tag, _ in found.tags].count("script") == 1


def test_a_finding_that_is_damaged_or_not_kept_is_said(tmp_path: Path) -> None:
    fault = stored(tmp_path)
    (tmp_path / KEY.id / "case.json").write_text("{}")
    assert "case.json: is not the case that finding.toml gives" in words(
        html_text(run(red(faults=(fault,))), findings=tmp_path)
    )
    assert "its case is not in the folder of findings" in words(html_text(run(red()), findings=tmp_path / "none"))


def test_a_name_of_a_finding_is_no_way_out_of_the_folder(tmp_path: Path) -> None:
    stored(tmp_path / "a" / "kept")
    fault = replace(FAULT, id=f"../kept/{KEY.id}")
    (tmp_path / "a" / "other").mkdir()
    told = words(html_text(run(red(faults=(fault,))), findings=tmp_path / "a" / "other"))
    assert "its case is not in the folder of findings" in told


def test_many_findings_do_not_make_it_large(tmp_path: Path) -> None:
    faults = []
    for number in range(60):
        key = replace(KEY, fault_class=f"tail{number}" if number else "tail")
        faults.append(stored(tmp_path, key=key, svg="<svg>" + "x" * 40_000 + "</svg>"))
    page = html_text(run(red(faults=tuple(faults))), findings=tmp_path)
    assert page.count("data:image/svg") == 15
    assert "what triage wrote of it does not fit into the report" in page
    assert "only the first 40 findings are shown with their cases" in page
    assert len(page.encode()) < 3 << 20
    assert "And 48 more" in words(page)


def measured(**changes: Any) -> dict[str, Any]:
    def figure(name: str, size: int, value: float | None) -> dict[str, Any]:
        estimate = {"value": value, "low": None, "high": None}
        return {"subject": name, "size": size, "real_len": size, "ns_per_byte": estimate, "samples_ns": [1.0],
                "cycles_per_byte": estimate}  # fmt: skip

    job = {
        "algorithm": "ctr(toy)", "direction": "encrypt", "lane": NATIVE, "key_len": 16, "update_len": None,
        "subjects": ["toy-a", "toy-b"], "clock": {"name": "tsc", "cycles_per_us": 3000.0, "why": ""},
        "absent": {"c": "no"},
        "figures": [figure("toy-a", 16, 4.25), figure("toy-a", 4096, 0.5), figure("toy-b", 4096, None)],
    }  # fmt: skip
    facts: dict[str, Any] = {
        "schema": SCHEMA, "version": "0.1.0", "machine": {"processor": "A CPU <b>", "cpu": 1, "system": "Linux"},
        "settings": {"rounds": 3}, "measured": [job], "counted": [], "modelled": [],
    }  # fmt: skip
    return {**facts, **changes}


def test_a_bench_is_plots_and_tables(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    file.write_text(json.dumps(measured()))
    page = html_text(run(cell()), bench=read_bench(file))
    picture = re.search(r'src="data:image/svg\+xml;base64,([^"]*)"', page)
    assert picture is not None
    assert b"<polyline" in base64.b64decode(picture[1])
    told = words(page)
    assert "ctr(toy) encrypt, 128-bit key, x86_64_native bytes toy-a 16 4.25 4,096 0.5 c: no" in told
    assert "A CPU <b>" in told
    assert seen(page).wrong == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-40], "bench.json: is no file of `crosslane bench` ("),
        (lambda _: "[]", "bench.json: is no file of `crosslane bench` (Expected `object`, got `array`"),
        (lambda text: text.replace('"real_len": 16', '"real_len": "16"'), "Expected `int`, got `str`"),
        (lambda text: text.replace('"real_len"', '"length"'), "`length`"),
        (lambda text: text.replace("4.25", "-4.25"), "Expected `float` > 0.0"),
        (
            lambda text: text.replace(SCHEMA, "crosslane bench 99"),
            "has the schema 'crosslane bench 99', this Crosslane",
        ),
        (lambda _: json.dumps(measured(measured=[])), "has no measurement of time: measure natively"),
    ],
)
def test_a_bench_that_is_none_is_one_sentence(tmp_path: Path, change: Callable[[str], str], message: str) -> None:
    file = tmp_path / "bench.json"
    file.write_text(change(json.dumps(measured())))
    with pytest.raises(BadInput) as caught:
        read_bench(file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bench_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.json: cannot be read \(No such file"):
        read_bench(tmp_path / "none.json")


def crosslane(*arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder to its end."""
    command = [sys.executable, "-m", "crosslane", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=folder)


def test_results_of_a_file_become_a_page_with_a_bench_and_findings(tmp_path: Path) -> None:
    fault = stored(tmp_path / "kept")
    write_json(run(red(faults=(fault,))), tmp_path / "run.json")
    (tmp_path / "bench.json").write_text(json.dumps(measured()))
    options = ("--html", "page.html", "--bench", "bench.json", "--findings", "kept")
    done = crosslane("report", "run.json", *options, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    told = words((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "Red: 1 thing to do" in told
    assert f"crosslane repro {KEY.id} --findings kept" in told
    assert "setkey, slot 0" in told
    assert "ctr(toy) encrypt, 128-bit key" in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--html", "none/page.html"),
            "none/page.html: the folder does not exist: create it or name another file with",
        ),
        (("--html", "."), "is a directory: name a file with --html"),
        (("--html", "x", "--json", "x"), "both name it: name two files"),
        (("--bench", "bench.json"), "--bench goes with --html: add it, or leave --bench out"),
        (("--html", "x", "--bench", "none.json"), "none.json: cannot be read (No such file or directory)"),
        (("--html", "x", "--bench", "run.json"), "run.json: is no file of `crosslane bench` ("),
    ],
)
def test_wrong_options_are_one_sentence_and_nothing_is_written(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    write_json(run(cell()), tmp_path / "run.json")
    (tmp_path / "bench.json").write_text(json.dumps(measured()))
    done = crosslane("report", "run.json", *options, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("crosslane: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "run.json"]


def test_a_check_and_a_gate_write_their_pages(tmp_path: Path) -> None:
    options = ("--lane", NATIVE, "--count", "64", "--vectors", "own", "--no-findings", "--html", "page.html")
    done = crosslane("check", "--cell", "ctr(sm4)/sm4-generic", *options, "--json", "run.json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Green: nothing to do" in top(page)
    assert "ctr(sm4)" in words(page)
    assert seen(page).wrong == []
    cells = f'cells = ["ctr(sm4)/sm4-generic"]\nlanes = ["{NATIVE}"]\ncount = 64\nvectors = "own"\n'
    more = '[[require]]\ncells = "*"\nmin_comparisons = 5000\n'
    (tmp_path / "gate.toml").write_text(f"version = 1\n[run]\n{cells}{more}")
    held = ("--policy", "gate.toml", "--result", "run.json", "--html", "held.html")
    done = crosslane("gate", *held, folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    said = top((tmp_path / "held.html").read_text(encoding="utf-8"))
    assert "Red: 1 thing to do" in said
    assert "5,000" in said or "5000" in said
    assert "Judged by the policy gate.toml." in said
