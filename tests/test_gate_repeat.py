# SPDX-License-Identifier: Apache-2.0
"""``ci/gate_repeat.py``: a line a run, work that can be taken up, and a verdict over all runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import gate_repeat
import pytest


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout whose gate is green but in its third run, and interrupted where a file says so."""
    root = tmp_path / "tree"
    program = root / ".venv" / "bin" / "crosslane"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!/bin/sh\necho x >>{tmp_path}/count\necho seed\necho gate $*: said\n"
        f"[ -e {tmp_path}/stop ] && exit 130\n[ $(wc -l <{tmp_path}/count) -ne 3 ]\n"
    )
    program.chmod(0o755)
    (root / ".gitignore").write_text(".venv\n")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root


def log_of(tree: Path) -> Path:
    return tree.parent / "log" / "runs.jsonl"


def repeat(tree: Path, *words: str) -> int:
    return gate_repeat.main([*words, "--log", str(log_of(tree))], tree)


def test_each_run_is_a_line_and_is_made_once(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert repeat(tree, "--runs", "2") == 0
    assert "2 of 2 runs of ci/gate.toml" in capsys.readouterr().out
    assert repeat(tree, "--runs", "2") == 0
    assert len(log_of(tree).read_text().splitlines()) == 2
    assert repeat(tree, "--runs", "4") == 1
    out = capsys.readouterr().out
    assert "run 3 of 4: status 1" in out
    assert "3 of 4 runs of ci/gate.toml" in out
    runs = gate_repeat.read_log(log_of(tree))
    assert [line.status for line in runs] == [0, 0, 1, 0]
    assert runs[0].said == "gate gate --policy ci/gate.toml: said"


def test_runs_of_another_policy_or_tree_do_not_count(tree: Path) -> None:
    assert repeat(tree, "--runs", "1") == 0
    assert repeat(tree, "--runs", "1", "--policy", "other.toml") == 0
    (tree / "new").touch()
    assert repeat(tree) == 2
    for words in (["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "y"]):
        subprocess.run(["git", *words], cwd=tree, check=True)
    assert repeat(tree, "--runs", "1") == 1
    assert len(gate_repeat.read_log(log_of(tree))) == 3


def test_an_interrupted_run_is_not_counted(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree.parent / "stop").touch()
    assert repeat(tree) == 130
    assert "did not come to a verdict (status 130)" in capsys.readouterr().err
    assert not log_of(tree).exists()


@pytest.mark.parametrize("text", ["{", '{"run": 1}\n', "[]\n"])
def test_a_log_that_is_none_is_refused(tree: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    log_of(tree).parent.mkdir()
    log_of(tree).write_text(text)
    assert repeat(tree) == 2
    assert "line 1 is no run" in capsys.readouterr().err


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate_repeat.main(["--log", str(tmp_path / "log")], tmp_path) == 2
    assert "this is no checkout of git" in capsys.readouterr().err
