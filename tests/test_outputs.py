# SPDX-License-Identifier: Apache-2.0
"""Files of results: all of them or none, looked at before a run, and what is said where one cannot be written."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from resulting import NATIVE, cell, every, hostile, run

from crosslane.errors import BadInput, HarnessFault
from crosslane.outputs import SUMMARY, Outputs
from crosslane.resultfile import read_json
from crosslane.wholefiles import NotWritten, write_files

NAMES = ("json", "junit", "sarif", "ktap", "markdown")


def test_each_format_is_written(tmp_path: Path) -> None:
    files = {name: tmp_path / f"out.{name}" for name in NAMES}
    outputs = Outputs(files)
    outputs.check()
    assert list(tmp_path.iterdir()) == []
    outputs.write(every())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in files.values())
    assert read_json(files["json"]) == every()
    for name, path in files.items():
        assert path.read_text(encoding="utf-8"), name


def test_hostile_text_is_written_as_utf_8(tmp_path: Path) -> None:
    Outputs({name: tmp_path / f"out.{name}" for name in NAMES}).write(hostile())
    for name in NAMES:
        (tmp_path / f"out.{name}").read_bytes().decode("utf-8")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("missing/out", "the folder does not exist: create it or name another file with --{}"),
        ("folder", "is a directory: name a file with --{}"),
        ("/proc/crosslane.out", "cannot be written .*: make its folder writable or name another with --{}"),
        ("file/out", "the folder does not exist"),
    ],
)
def test_a_place_that_cannot_be_written_is_named_before_anything_is_done(
    tmp_path: Path, name: str, place: str, sentence: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=sentence.format(name)):
        Outputs({name: tmp_path / place}).check()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_two_formats_in_one_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "out")
    with pytest.raises(BadInput, match="--json and --junit both name it"):
        Outputs({"json": tmp_path / "out", "junit": tmp_path / "link"}).check()


def test_one_that_cannot_be_written_leaves_all_as_they_were(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    (tmp_path / "out.json").write_text("old")
    outputs = Outputs({"json": tmp_path / "out.json", "ktap": tmp_path / "out.ktap", "markdown": full})
    with pytest.raises(HarnessFault, match=r"full: the results cannot be written \(No space left.*with --markdown"):
        outputs.write(every())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "out.json"]
    assert (tmp_path / "out.json").read_text() == "old"
    assert stat.S_ISCHR(full.stat().st_mode)


def test_a_link_stays_one_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_files({link: "new"})
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["folder", "link", "target"]


def test_whole_files_name_the_one_that_failed(tmp_path: Path) -> None:
    with pytest.raises(NotWritten) as caught:
        write_files({tmp_path / "a": "text", tmp_path / "none" / "b": "text"})
    assert caught.value.path == tmp_path / "none" / "b"
    assert list(tmp_path.iterdir()) == []


def test_the_page_of_a_workflow_is_added_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n")
    monkeypatch.setenv(SUMMARY, str(page))
    outputs = Outputs(summary=True)
    outputs.check()
    outputs.write(run(cell(f"ctr(toy)/toy@{NATIVE}")))
    text = page.read_text()
    assert text.startswith("before\n\n### Crosslane check: green")


def test_a_page_that_is_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SUMMARY, raising=False)
    with pytest.raises(BadInput, match=f"the variable {SUMMARY} names, and it is not set"):
        Outputs(summary=True).check()
    monkeypatch.setenv(SUMMARY, str(tmp_path / "none" / "page.md"))
    with pytest.raises(BadInput, match=f"cannot be written .*: correct the variable {SUMMARY}"):
        Outputs(summary=True).check()


def test_the_matrix_is_printed_if_asked_for() -> None:
    said: list[str] = []
    Outputs(matrix=True).write(run(cell()), say=said.append)
    assert said[0] == f"   1 {NATIVE}"


@pytest.mark.parametrize("option", ["json", "html", "junit", "sarif", "ktap", "markdown"])
def test_what_is_read_is_not_written_over(option: str, tmp_path: Path) -> None:
    policy, link = tmp_path / "gate.toml", tmp_path / "link"
    policy.write_text("version = 1\n")
    link.symlink_to(policy)
    why = f"is read too, and would be written over: name another file with --{option}"
    for path in (policy, link):
        with pytest.raises(BadInput, match=why):
            Outputs({option: path}).check(policy, None)
        with pytest.raises(BadInput, match=why):
            Outputs({option: path}, inputs=(policy,)).check()
    assert policy.read_text() == "version = 1\n"
    Outputs({option: tmp_path / "other"}).check(policy)
