# SPDX-License-Identifier: Apache-2.0
"""Departures that targets report, and what the process above them makes of them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.targets.keep import read_inputs
from crosslane.targets.options import Options
from crosslane.targets.reports import Keeping, leave_report, run_below

FAMILY = "oneshot"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The inputs that `targets keep` is called with; it says that each departs."""
    names: list[str] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        names.append(Path(command[6]).name)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(subprocess, "run", run)
    return names


def keeping(tmp_path: Path, options: Options | None = None) -> Keeping:
    return Keeping(FAMILY, options or Options(), f"{tmp_path}/")


def leave(folder: Path, number: int, face: str = "") -> None:
    leave_report(folder, bytes([number]), key=f"key {number}", face=face or f"face {number}", text=f"number {number}")


def test_a_kind_is_kept_once_and_faces_three_times(tmp_path: Path, kept: list[str]) -> None:
    (tmp_path / "reports").mkdir()
    for number in (1, 1, 2, 3, 4, 5):
        leave(tmp_path / "reports", number, "one face" if number < 5 else "")
    above = keeping(tmp_path)
    above.take(tmp_path / "reports")
    assert len(kept) == len(set(kept)) == 4
    assert (tmp_path / kept[0]).read_bytes() == b"\1"
    assert not list((tmp_path / "reports").iterdir())
    assert above.status(0) == 1
    assert above.status(70) == 70
    assert above.status(-9) == 137


def test_more_kinds_than_are_kept_are_said_once_and_counted(
    tmp_path: Path, kept: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reports").mkdir()
    for number in range(20):
        leave(tmp_path / "reports", number)
    above = keeping(tmp_path)
    above.take(tmp_path / "reports")
    assert above.status(0) == 1
    assert len(kept) == 16
    told = capfd.readouterr().err
    assert told.count("16 departures were kept, further kinds are only counted, the first of them: number 16") == 1
    assert "4 further kinds of departures were not kept" in told


def test_what_cannot_be_kept_is_status_3(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "reports").mkdir()
    leave(tmp_path / "reports", 1)
    above = Keeping(FAMILY, Options(), f"{tmp_path}/nowhere/")
    above.take(tmp_path / "reports")
    assert above.status(0) == 3
    assert "cannot be written (No such file or directory): name another -artifact_prefix" in capfd.readouterr().err
    leave(tmp_path / "reports", 2)
    above = keeping(tmp_path, Options(impls=(str(tmp_path / "nowhere"),)))
    above.take(tmp_path / "reports")
    assert above.status(0) == 3
    assert "could not be put among the findings (status 2)" in capfd.readouterr().err


BELOW = """
import os, pathlib, sys
from crosslane.targets.reports import REPORTS, leave_report
leave_report(pathlib.Path(os.environ[REPORTS]), b"x", key="k", face="f", text="it departs")
sys.exit(int(sys.argv[1]))
"""


def test_a_report_of_a_program_that_ends_at_once_is_kept(tmp_path: Path) -> None:
    (tmp_path / "below.py").write_text(BELOW)
    for status, words in ((0, 3), (70, 70)):
        above = keeping(tmp_path, Options(impls=(str(tmp_path / "nowhere"),)))
        assert run_below([str(tmp_path / "below.py"), str(status)], above) == words
        assert above.num_failed == 1
    assert len(list(tmp_path.glob("departure-*"))) == 1


def test_the_folders_of_fuzz_are_those_that_its_page_lists() -> None:
    folder = data_root() / "fuzz"
    listed = set(re.findall(r"^\| `([a-z-]+)` \|", (folder / "README.md").read_text(), re.MULTILINE))
    assert listed == {entry.name for entry in folder.iterdir() if entry.is_dir() and entry.name[0] not in "._"}


def test_a_pipe_is_no_input(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="pipe: is neither a file nor a folder; name the file of an input"):
        read_inputs([tmp_path / "pipe"])
