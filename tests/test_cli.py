# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from planting import CTR, NATIVE, Plant, lay_out

from crosslane import cli
from crosslane.buildcache import cache_folder
from crosslane.errors import BadInput, HarnessFault, MissingTool
from crosslane.manifest import Manifest
from crosslane.plan import Counts

CELL = f"{CTR}/sm4-generic@{NATIVE}"
ONE_CELL = ("--cell", CELL)

# One run of the suite builds what all of these tests need; xdist gives it to one worker.
pytestmark = pytest.mark.xdist_group("cli")


class Answer:
    """How a command ended."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Run = Callable[..., Answer]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line within this process."""

    def call(*arguments: str | Path) -> Answer:
        monkeypatch.setattr(sys, "argv", ["crosslane", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return Answer(int(ended.value.code or 0), captured.out, captured.err)

    return call


def start(*arguments: str | Path) -> Answer:
    """Run the command line in a process of its own, as a user does."""
    done = subprocess.run(
        [sys.executable, "-m", "crosslane", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for --impls with an SM4 whose ctr is wrong at one length."""
    return lay_out(tmp_path_factory.mktemp("wrong"), [Plant("wrong_at_one_len", "wrong_at_one_len")])


# --- list and lint ---


@pytest.mark.parametrize(
    ("what", "known"),
    [
        ("ciphers", {"name": "sm4", "title": "SM4", "block_len": 16, "key_lens": [16]}),
        ("modes", {"name": "ctr", "title": "Counter", "split": "byte", "partial": "anywhere"}),
        ("implementations", {"cipher": "sm4", "driver": "sm4-generic", "isa": "any", "features": [], "priority": 100}),
        ("cells", {"cell": CELL}),
    ],
)
def test_lists_are_for_people_and_for_programs(run: Run, what: str, known: dict[str, Any]) -> None:
    rows = json.loads(run("list", what, "--json").out)
    assert known in [{name: row[name] for name in known} for row in rows]
    plain = run("list", what)
    assert plain.status == 0
    assert len(plain.lines) == len(rows)
    assert any(all(str(value) in line for value in list(known.values())[:3]) for line in plain.lines)
    assert len({json.dumps(row) for row in rows}) == len(rows)


def test_cells_are_listed_by_default_and_lanes_with_their_comments(run: Run) -> None:
    assert run("list").lines == run("list", "cells").lines
    lanes = json.loads(run("list", "lanes", "--json").out)
    assert NATIVE in {lane["name"] for lane in lanes}
    assert all(lane["comment"] and isinstance(lane["gate"], bool) for lane in lanes)


def test_a_third_party_is_listed(run: Run, wrong: Path) -> None:
    assert f"{CTR}/planted-wrong_at_one_len@{NATIVE}" in run("list", "--impls", wrong).lines


def test_lint_is_content_with_the_tree(run: Run) -> None:
    answer = run("lint")
    assert (answer.status, answer.out) == (0, "metadata, folders and vectors agree\n")


def test_lint_tells_every_problem_and_ends_with_2(run: Run, wrong: Path, tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "odd", [Plant("odd"), Plant("even")])
    for name in ("odd", "even"):
        (folder / "sm4" / name / "stray.c").write_text("int x;\n")
    answer = run("lint", "--impls", folder)
    assert answer.status == 2
    assert answer.err.count("stray.c") >= 2
    assert "problems found: correct what is said above" in answer.err


# --- check ---


def check(*arguments: str | Path) -> Answer:
    return start("check", "--vectors", "own", "--no-findings", *arguments)


_CHANGING = ("took_s", "cpu_s", "peak_pss", "revision")  # somebody may commit between two runs


def stable(result: dict[str, Any]) -> dict[str, Any]:
    """What must be the same for the same cases: everything but times, memory and the checkout's revision."""

    def without_changing(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without_changing(item) for key, item in value.items() if key not in _CHANGING}
        return [without_changing(item) for item in value] if isinstance(value, list) else value

    kept = without_changing(result)
    assert isinstance(kept, dict)
    return kept


def test_a_small_check_is_green_and_leaves_its_results(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    answer = check(*ONE_CELL, "--count", "20", "--json", file)
    assert (answer.status, answer.err) == (0, "")
    assert any(line.split()[:2] == [CELL, "agreed"] for line in answer.lines)
    (algorithm,) = json.loads(file.read_text())["algorithms"]
    (cell,) = algorithm["cells"]
    assert (cell["cell"], cell["state"]) == (CELL, "ran")
    assert cell["comparisons"] - cell["num_vectors"] == 24  # whole sessions of 8
    assert cell["num_vectors"] > 0
    assert {judgement["check"]: judgement["passed"] for judgement in cell["judgements"]}["agreement"] is True
    assert len({judgement["check"] for judgement in cell["judgements"]}) >= 4


def test_neither_verdicts_nor_case_ids_depend_on_the_number_of_workers(tmp_path: Path, wrong: Path) -> None:
    results = []
    for jobs in ("1", "2", "4"):
        file = tmp_path / f"{jobs}.json"
        answer = check(
            "--cell",
            "[ce][tcb][rbc](sm4)",
            "--lane",
            NATIVE,
            "--count",
            "2048",
            "--jobs",
            jobs,
            "--json",
            file,
            "--impls",
            wrong,
        )
        assert answer.status == 1
        results.append(stable(json.loads(file.read_text())))
    assert results[0] == results[1] == results[2]
    names = [algorithm["algorithm"] for algorithm in results[0]["algorithms"]]
    assert names == sorted(names)
    assert set(names) == {"cbc(sm4)", "ctr(sm4)", "ecb(sm4)"}
    found = {
        cell["cell"]: [finding["case_id"] for finding in cell["findings"]]
        for algorithm in results[0]["algorithms"]
        for cell in algorithm["cells"]
    }
    guilty = f"{CTR}/planted-wrong_at_one_len@{NATIVE}"
    assert found.pop(guilty)
    assert not any(found.values())


def test_a_finding_is_seen_again_by_the_command_that_the_report_prints(wrong: Path) -> None:
    found = check("--cell", CTR, "--lane", NATIVE, "--count", "2048", "--seed", "a cli test", "--impls", wrong)
    assert found.status == 1
    guilty = f"{CTR}/planted-wrong_at_one_len@{NATIVE}"
    line = next(line for line in found.lines if "crosslane repro" in line)
    command = line.partition("crosslane ")[2].replace("'", "").split()
    assert command[2:] == ["--cell", guilty, "--impls", str(wrong)]
    again = start(*command)
    assert again.status == 1
    sentence = next(text for text in found.lines if text.startswith(f"{guilty}: disagree")).rpartition(": byte ")[2]
    assert f"{guilty}: byte {sentence}" in again.lines
    assert again.lines[0] == CTR
    assert again.lines[1].startswith("session: ")
    everywhere = start(*command[:2], "--impls", wrong)
    assert everywhere.status == 1
    assert f"{CELL}: agrees" in everywhere.lines
    innocent = start(*command[:2], *ONE_CELL, "--impls", wrong)
    assert innocent.status == 0
    assert f"{CELL}: agrees" in innocent.lines


def test_another_seed_is_other_cases(tmp_path: Path) -> None:
    digests = set()
    for number, seed in enumerate(("one", "another", "one")):
        file = tmp_path / f"{number}.json"
        assert check(*ONE_CELL, "--count", "1", "--seed", seed, "--json", file).status == 0
        digests.add(json.loads(file.read_text())["algorithms"][0]["digest"])
    assert len(digests) == 2


def test_every_cell_of_the_gate_gets_the_comparisons_that_are_promised() -> None:
    assert min(vars(Counts()).values()) >= 500


# --- wrong use: one sentence on standard error and status 2 ---


def assert_refused(answer: Answer, *words: str, status: int = 2) -> None:
    assert (answer.status, answer.out) == (status, "")
    assert "Traceback" not in answer.err
    for word in words:
        assert word in answer.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "--lane", "z80_native"), ("'z80_native' is no lane of this host", NATIVE)),
        (("check", "--cell", "ctr(sm5)"), ("'ctr(sm5)' matches nothing", "nearest are", "ctr(sm4)", "crosslane list")),
        (
            ("check", "--cell", f"*@{NATIVE}", "--lane", "{emulated}", "--cell", CTR),
            (f"'*@{NATIVE}' matches cells such as", "none in the lanes {emulated}", "--lane"),
        ),
        (("check", "--count", "-1"), ("--count", "-1 is not in the range x>=0")),
        (("check", "--count", "many"), ("--count", "'many' is not a valid int")),
        (("check", "--jobs", "0"), ("--jobs", "range x>=1")),
        (
            ("check", "--json", "{tmp}/missing/results.json"),
            ("missing/results.json: the folder does not exist", "--json"),
        ),
        (("check", "--json", "{tmp}"), ("--json", "is a directory")),
        (("check", "--impls", "{tmp}/nowhere"), ("nowhere",)),
        (("check", "--speed"), ("No such option", "--speed")),
        (("check", "extra"), ("unexpected extra argument", "extra")),
        (("chekc",), ("No such command 'chekc'",)),
        (("list", "colours"), ("'colours' is not one of", "ciphers", "cells")),
        (("build", "--lane", "z80_native"), ("'z80_native' is no lane of this host",)),
        (("repro", "case-1"), ("there is no finding 'case-1'", "--findings", "0123456789abcdef-3-17")),
        (("repro",), ("Missing argument",)),
        (("repro", "0123456789abcdef-0-0"), ("no manifest 0123456789abcdef is known here", "--results FILE")),
        (("repro", "0123456789abcdef-0-0", "--results", "{tmp}/none.json"), ("none.json: cannot be read",)),
    ],
)
def test_wrong_use_is_one_sentence_and_status_2(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    emulated = NATIVE.replace("native", "qemu_max")
    filled = [part.format(tmp=tmp_path, emulated=emulated) if "{" in part else part for part in arguments]
    assert_refused(run(*filled), *(word.replace("{emulated}", emulated) for word in words))


# --- repro with manifests that are not what they should be ---


@pytest.fixture
def kept(run: Run, make_manifest: Callable[..., Manifest]) -> Iterator[Callable[[str, str], str]]:
    """Keep a text where ``check`` keeps manifests; returns a case id of it."""
    files: list[Path] = []

    def keep(digest: str, text: str) -> str:
        file = cache_folder().parent / "manifests" / f"{digest}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        files.append(file)
        return f"{digest}-0-0"

    yield keep
    for file in files:
        file.unlink()


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"generator": 99}', "\xff"])
def test_a_kept_manifest_that_is_none_is_named(
    own_cache: None, kept: Callable[[str, str], str], run: Run, text: str
) -> None:
    assert_refused(run("repro", kept("0" * 16, text)), f"{'0' * 16}.json: ", "manifest")


def test_a_kept_manifest_of_another_digest_is_refused(
    own_cache: None, kept: Callable[[str, str], str], run: Run, make_manifest: Callable[..., Manifest]
) -> None:
    manifest = make_manifest()
    case_id = kept("0" * 16, manifest.to_json())
    assert_refused(run("repro", case_id), f"holds manifest {manifest.digest}, not {'0' * 16}")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"algorithms": [{}]}', '{"algorithms": 1}'])
def test_results_that_are_none_are_named(run: Run, tmp_path: Path, text: str) -> None:
    file = tmp_path / "results.json"
    file.write_text(text)
    answer = run("repro", "0123456789abcdef-0-0", "--results", file)
    assert_refused(answer, "results.json: is no results file of `crosslane check --json`")


def results_with(tmp_path: Path, manifest: Manifest, *, digest: str = "", text: str | int = "") -> Path:
    file = tmp_path / "results.json"
    entry = {"digest": digest or manifest.digest, "manifest": text or manifest.to_json()}
    file.write_text(json.dumps({"algorithms": [entry]}))
    return file


def test_a_case_beyond_its_batch_is_refused(run: Run, tmp_path: Path, make_manifest: Callable[..., Manifest]) -> None:
    manifest = make_manifest(algorithm=CTR)
    answer = run("repro", f"{manifest.digest}-0-64", "--results", results_with(tmp_path, manifest), *ONE_CELL)
    assert_refused(answer, "has 64 cases, 0 to 63; correct the last number")


def test_a_case_is_not_shown_on_cells_of_another_algorithm(
    run: Run, tmp_path: Path, make_manifest: Callable[..., Manifest]
) -> None:
    manifest = make_manifest(algorithm=CTR)
    file = results_with(tmp_path, manifest)
    answer = run("repro", f"{manifest.digest}-0-3", "--results", file, "--cell", f"ecb(sm4)/sm4-generic@{NATIVE}")
    assert answer.status == 2
    assert f"the cells given are not of {CTR}" in answer.err


def test_a_manifest_in_results_is_held_against_its_digest(
    run: Run, tmp_path: Path, make_manifest: Callable[..., Manifest]
) -> None:
    manifest = make_manifest(algorithm=CTR)
    file = results_with(tmp_path, manifest, digest="0" * 16)
    assert_refused(run("repro", f"{'0' * 16}-0-3", "--results", file), f"holds manifest {manifest.digest}")
    file = results_with(tmp_path, manifest, text=7)
    assert_refused(run("repro", f"{manifest.digest}-0-3", "--results", file), "results.json: the manifest is no JSON")


def test_a_case_is_shown_from_results_without_the_cache(tmp_path: Path, make_manifest: Callable[..., Manifest]) -> None:
    manifest = make_manifest(algorithm=CTR, ways=3)
    file = results_with(tmp_path, manifest)
    answer = start("repro", f"{manifest.digest}-2-63", "--results", file, *ONE_CELL)
    assert (answer.status, answer.err) == (0, "")
    assert f"{CELL}: agrees" in answer.lines


# --- every way to end ---


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (BadInput("the file says no"), 2, "crosslane: the file says no"),
        (MissingTool("install qemu-user"), 2, "crosslane: install qemu-user"),
        (HarnessFault("the shim died"), 3, "crosslane: the shim died"),
        (OSError(errno.ENOSPC, "No space left on device", "/some/file"), 3, "crosslane: /some/file: No space left"),
        (KeyboardInterrupt(), 130, "crosslane: interrupted"),
        (RuntimeError("unheard of"), 3, "RuntimeError: unheard of"),
    ],
)
def test_an_error_has_its_exit_status(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, words: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(cli, "load_registry", fail)
    answer = run("list")
    assert (answer.status, answer.out) == (status, "")
    assert words in answer.err
    assert ("Traceback" in answer.err) is isinstance(error, RuntimeError)


@pytest.mark.parametrize("arguments", [("--help",), ("check", "--help"), ("--version",)])
def test_help_and_version_are_no_errors(run: Run, arguments: tuple[str, ...]) -> None:
    answer = run(*arguments)
    assert (answer.status, answer.err) == (0, "")
    assert "crosslane" in answer.out
