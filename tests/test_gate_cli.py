# SPDX-License-Identifier: Apache-2.0
"""``crosslane gate``, ``report`` and shards as processes: the same verdict twice, planted faults, and bad input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from planting import CTR, NATIVE, Plant, lay_out

from crosslane import job
from crosslane.gate import gate_command
from crosslane.resultfile import read_json
from crosslane.results import RunResult, write_json

COMMAND = [sys.executable, "-m", "crosslane"]
CELLS = '["ctr(sm4)/sm4-*", "ecb(sm4)/sm4-*"]'
WRONG = "wrong_at_one_len"


def crosslane(*arguments: str | Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False, cwd=folder,
        env={**os.environ, **variables},
    )  # fmt: skip


def policy(folder: Path, *, cells: str = CELLS, require: str = "*", more: str = "", name: str = "gate.toml") -> Path:
    file = folder / name
    file.write_text(
        f'version = 1\n[run]\ncells = {cells}\nlanes = ["{NATIVE}"]\ncount = 512\nvectors = "own"\n'
        f'[[require]]\ncells = "{require}"\nmay_decline = true\nmin_comparisons = 500\n{more}'
    )
    return file


def timeless(result: RunResult) -> RunResult:
    """A result without what differs from run to run."""
    algorithms = tuple(
        replace(part, took_s=0.0, cpu_s=0.0, cells=tuple(replace(cell, cpu_s=0.0) for cell in part.cells))
        for part in result.algorithms
    )
    return replace(result, algorithms=algorithms, took_s=0.0, cpu_s=0.0, peak_pss=0)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a green gate, with everything that it wrote."""
    folder = tmp_path_factory.mktemp("gate")
    policy(folder)
    files = [f"--{name}=out.{name}" for name in ("json", "junit", "sarif", "ktap", "markdown")]
    page = folder / "page.md"
    done = crosslane("gate", "--policy", "gate.toml", *files, "--summary", folder=folder, GITHUB_STEP_SUMMARY=str(page))
    assert (done.returncode, done.stderr) == (0, "")
    (folder / "stdout").write_text(done.stdout)
    return folder


def test_a_green_gate_says_its_seed_first_and_its_verdict_last(ran: Path) -> None:
    lines = (ran / "stdout").read_text().splitlines()
    assert lines[0] == "seed 'every implementation agrees with the generic one'"
    assert lines[-1].startswith("gate gate.toml: green; ")
    assert any(line.split()[:1] == [CTR] for line in lines)
    written = {path.name for path in ran.iterdir()}
    assert {f"out.{name}" for name in ("json", "junit", "sarif", "ktap", "markdown")} <= written
    assert not [name for name in written if name.startswith(".")]
    assert "### Crosslane gate: green" in (ran / "page.md").read_text()


def test_the_same_revision_and_seed_have_the_same_result(ran: Path, tmp_path: Path) -> None:
    policy(tmp_path)
    done = crosslane("gate", "--policy", "gate.toml", "--jobs", "1", "--json", "again.json", folder=tmp_path)
    assert done.returncode == 0
    assert timeless(read_json(tmp_path / "again.json")) == timeless(read_json(ran / "out.json"))


def test_shards_come_to_what_the_whole_run_comes_to(tmp_path: Path) -> None:
    selection = [
        "--cell",
        "ctr(sm4)",
        "--cell",
        "xts(sm4)/sm4-*",
        "--lane",
        NATIVE,
        "--count",
        "64",
        "--vectors",
        "own",
    ]
    for options in (["--shard", "1/3"], ["--shard", "2/3"], ["--shard", "3/3"], []):
        name = (options[1][0] if options else "whole") + ".json"
        done = crosslane("check", *selection, *options, "--no-findings", "--json", name, folder=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    merged = crosslane("report", "merge", "3.json", "1.json", "2.json", "-o", "merged.json", folder=tmp_path)
    assert (merged.returncode, merged.stderr) == (0, "")
    assert timeless(read_json(tmp_path / "merged.json")) == timeless(read_json(tmp_path / "whole.json"))
    alone = crosslane("gate", "--policy", policy(tmp_path, cells='["ctr(sm4)"]'), "--result", "1.json", folder=tmp_path)
    assert alone.returncode == 3
    assert "complete: run: this is shard 1/3 of a run: join all shards" in alone.stdout


def test_results_of_another_run_than_the_policy_has_are_red(ran: Path, tmp_path: Path) -> None:
    policy(tmp_path)
    write_json(replace(read_json(ran / "out.json"), revision="f" * 40), tmp_path / "other.json")
    given = ["gate", "--policy", "gate.toml", "--result", "other.json"]
    done = crosslane(*given, folder=tmp_path)
    assert done.returncode == 1
    assert "revision: run: the results are of revision ffffffffffff, this tree is " in done.stdout
    done = crosslane(*given, "--any-revision", folder=tmp_path)
    assert done.returncode == 0
    assert "note: the results are of revision ffffffffffff" in done.stdout


def test_a_wrong_implementation_is_red_at_its_getter(ran: Path, tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "theirs", [Plant(WRONG, WRONG)])
    policy(tmp_path, cells=f'["ctr(sm4)/planted-{WRONG}", "ctr(sm4)/sm4-generic"]')
    done = crosslane(
        "gate", "--policy", "gate.toml", "--impls", "theirs", "--sarif", "out.sarif", "--json", "out.json",
        "--baseline", ran / "out.json", folder=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    cell = f"{CTR}/planted-{WRONG}@{NATIVE}"
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("findings: ")]
    assert line.startswith(f"findings: {cell}: output, ")
    assert re.search(r"see it with `crosslane repro [0-9a-f]{12}` and correct the implementation", line)
    assert f"lost-cells: {CTR}/sm4-aesni-avx-x86_64@{NATIVE}: it ran in the baseline" in done.stdout
    results = json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"]
    places = {
        (place["artifactLocation"]["uri"], place["region"]["startLine"])
        for item in results if item["ruleId"] == "agreement"
        for place in [item["locations"][0]["physicalLocation"]]
    }  # fmt: skip
    ((uri, number),) = places
    source = (tmp_path / uri).read_text().splitlines()[number - 1]
    assert uri.startswith("theirs/")
    assert f"sm4_{folder.name}" in source or "subject_leaf *" in source
    known = crosslane(
        "gate", "--policy", "gate.toml", "--impls", "theirs", "--result", "out.json", "--baseline", "out.json",
        "--only-new", folder=tmp_path,
    )  # fmt: skip
    assert known.returncode == 0
    assert "known: " in known.stdout


def test_the_night_has_a_sentence_with_its_day(tmp_path: Path) -> None:
    policy(tmp_path, cells='["ecb(sm4)/sm4-generic"]')
    done = crosslane(
        "gate", "--policy", "gate.toml", "--nightly", "--day", "2026-12-01", "--json", "night.json", folder=tmp_path
    )
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "seed 'nightly 2026-12-01'"
    assert read_json(tmp_path / "night.json").seed == "nightly 2026-12-01"


# --- bad input: one sentence, status 2, nothing half-written ---


def refused(folder: Path, *arguments: str | Path) -> str:
    """The sentence with which a command is refused; the folder is as it was."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = crosslane(*arguments, folder=folder)
    assert done.returncode == 2, done.stdout + done.stderr
    (sentence,) = done.stderr.splitlines()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert done.stdout == ""
    return sentence


def test_a_policy_about_a_cell_that_does_not_exist(tmp_path: Path) -> None:
    policy(tmp_path, require="sm4-genric")
    sentence = refused(tmp_path, "gate", "--policy", "gate.toml", "--json", "out.json")
    assert "gate.toml: [[require]]: the pattern 'sm4-genric' matches nothing; nearest are sm4-generic" in sentence


def spoilt(source: Path, target: Path, **changes: Any) -> Path:
    data = json.loads(source.read_text())
    target.write_text(json.dumps({**data, **changes}))
    return target


def test_a_baseline_of_another_version(ran: Path, tmp_path: Path) -> None:
    policy(tmp_path)
    spoilt(ran / "out.json", tmp_path / "old.json", version=3)
    sentence = refused(tmp_path, "gate", "--policy", "gate.toml", "--baseline", "old.json", "--json", "out.json")
    assert "old.json: has version 3 of the results, this Crosslane reads 4" in sentence


@pytest.mark.parametrize("command", ["gate", "baseline", "report", "merge"])
def test_a_file_of_results_that_is_cut_short(ran: Path, tmp_path: Path, command: str) -> None:
    policy(tmp_path)
    text = (ran / "out.json").read_text()
    (tmp_path / "cut.json").write_text(text[: len(text) // 2])
    arguments: dict[str, list[str | Path]] = {
        "gate": ["gate", "--policy", "gate.toml", "--result", "cut.json", "--junit", "out.xml"],
        "baseline": ["gate", "--policy", "gate.toml", "--baseline", "cut.json", "--junit", "out.xml"],
        "report": ["report", "cut.json", "--junit", "out.xml"],
        "merge": ["report", "merge", ran / "out.json", "cut.json", "-o", "out.json"],
    }
    assert "cut.json: is cut short (line " in refused(tmp_path, *arguments[command])


def test_shards_of_different_revisions(ran: Path, tmp_path: Path) -> None:
    write_json(replace(read_json(ran / "out.json"), shard="1/2"), tmp_path / "1.json")
    write_json(replace(read_json(ran / "out.json"), shard="2/2", revision="f" * 40), tmp_path / "2.json")
    sentence = refused(tmp_path, "report", "merge", "1.json", "2.json", "-o", "out.json")
    assert "1.json and 2.json are not of one run: revision is" in sentence
    sentence = refused(tmp_path, "report", "merge", "1.json", "./1.json", "-o", "out.json")
    assert "1.json: is named twice" in sentence


@pytest.mark.parametrize("name", ["json", "junit", "sarif", "ktap", "markdown"])
@pytest.mark.parametrize("command", ["gate", "report", "check"])
def test_no_permission_for_outputs(ran: Path, tmp_path: Path, name: str, command: str) -> None:
    policy(tmp_path)
    arguments: dict[str, list[str | Path]] = {
        "gate": ["gate", "--policy", "gate.toml"],
        "report": ["report", ran / "out.json"],
        "check": ["check", "--cell", f"{CTR}/sm4-generic@{NATIVE}"],
    }
    sentence = (
        refused(tmp_path, *arguments[command], f"--{name}", "/proc/out", "--ktap", "out.ktap")
        if (name != "ktap")
        else refused(tmp_path, *arguments[command], "--ktap", "/proc/out", "--json", "out.json")
    )
    assert "/proc/out: cannot be written" in sentence
    assert f"name another with --{name}" in sentence


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--result", "r.json", "--seed", "x"], "--result judges what was run before, and --seed is about a run"),
        (["--result", "r.json", "--day", "2026-12-01"], "--day is about a run"),
        (["--day", "2026-12-01"], "--day is the day of --nightly"),
        (["--nightly", "--day", "yesterday"], "--day 'yesterday' is no date; write a day as 2027-03-31"),
        (["--nightly", "--seed", "x"], "--seed and --nightly both give the seed"),
        (["--seed", " "], "the seed is empty"),
        (["--any-revision"], "--any-revision is about the results of --result"),
        (["--only-new"], "only what is new against a baseline is red: name one with --baseline"),
        (["--baseline", "none.json"], "none.json: is no file"),
        (["--json", "a", "--junit", "a"], "--json and --junit both name it"),
        (["--policy", "none.toml"], "none.toml: cannot be read"),
        (["--summary"], "the variable GITHUB_STEP_SUMMARY names, and it is not set"),
    ],
)
def test_options_that_do_not_go_together(tmp_path: Path, options: list[str], sentence: str) -> None:
    policy(tmp_path)
    (tmp_path / "r.json").touch()
    assert sentence in refused(tmp_path, "gate", "--policy", "gate.toml", *options)


def test_a_shard_that_is_none(tmp_path: Path) -> None:
    assert "'3/2' is no shard: write K/N" in refused(tmp_path, "check", "--cell", CTR, "--shard", "3/2")


def test_a_report_prints_what_check_printed(ran: Path, tmp_path: Path) -> None:
    done = crosslane("report", ran / "out.json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert any(line.split()[:2] == [f"{CTR}/sm4-generic@{NATIVE}", "agreed"] for line in done.stdout.splitlines())
    done = crosslane("report", ran / "out.json", "--junit", "out.xml", "--ktap", "out.ktap", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.ktap", "out.xml"]
    assert (tmp_path / "out.ktap").read_text().splitlines()[0] == "KTAP version 1"


# --- interrupts ---


def test_an_interrupted_gate_is_void_and_writes_what_there_is(
    ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read_json(ran / "out.json")
    part = replace(whole, algorithms=whole.algorithms[:1], unfinished=("ecb(sm4)",))
    monkeypatch.setattr(job, "compare_all", lambda *_: job.Ended(part, None, "interrupted: 5 comparisons were made"))
    monkeypatch.chdir(tmp_path)
    policy(tmp_path)
    done = CliRunner().invoke(gate_command, ["--policy", "gate.toml", "--json", "part.json"])
    assert done.exit_code == 130
    assert "complete: ecb(sm4): the run was interrupted before it was complete: run it again to its end" in done.output
    assert done.output.splitlines()[-1] == "interrupted: 5 comparisons were made"
    assert read_json(tmp_path / "part.json") == part
    later = CliRunner().invoke(gate_command, ["--policy", "gate.toml", "--result", "part.json"])
    assert later.exit_code == 3
