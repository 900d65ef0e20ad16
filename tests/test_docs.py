# SPDX-License-Identifier: Apache-2.0
"""The documentation builds without a warning, every page is reached, and every command in it does what it says.

``docs/commands.toml`` has a row for each command in a code block. With ``CROSSLANE_DOCS=nightly`` those that take
minutes run too; ``ci/nightly docs`` does so.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import build_docs
import click
import pytest
from docs_commands import Row, Said, commands_of, read_table

from crosslane.cli import cli
from crosslane.plants import load_plants
from crosslane.registry import load_registry

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "commands.toml"
NIGHTLY = os.environ.get("CROSSLANE_DOCS") == "nightly"
ROWS = read_table(TABLE)
RUNS = [row for row in ROWS.values() if row.run is not None and (NIGHTLY or not row.run.nightly)]

TOOLS = {
    "crosslane": "-m crosslane",
    "page": f'"{ROOT / "tests" / "docs_commands.py"}"',
    "pytest": "-m pytest",
    "python": "",
    "python3": "",
}

pytestmark = pytest.mark.xdist_group("docs")


def all_said() -> list[Said]:
    return [
        said
        for page in build_docs.pages()
        if page.name != "CHANGELOG.md"
        for said in commands_of(page, page.relative_to(ROOT).as_posix())
    ]


# ---- pages ----


def test_the_pages_build_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    site = tmp_path / "site"
    assert build_docs.main([str(site)]) == 0
    assert (site / "docs" / "tutorial" / "first-check.html").is_file()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[gone](docs/how-to/gone.md)", "docs/how-to/gone.md"),
        ("[gone](docs/how-to/add-a-lane.md#gone)", "gone"),
        ("[gone](#gone)", "gone"),
        ("![gone](docs/gone.svg)", "docs/gone.svg"),
    ],
)
def test_a_link_that_leads_nowhere_is_an_error(
    tmp_path: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    (root / "docs" / "how-to").mkdir(parents=True)
    (root / "docs" / "how-to" / "add-a-lane.md").write_text("# Add a lane\n")
    (root / "README.md").write_text(f"# Crosslane\n\nA word, {text}.\n")
    assert build_docs.main([str(tmp_path / "site")], root) == 1
    assert words in capsys.readouterr().err


def test_every_page_is_reached_from_the_first_one() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        waiting += [path for path in build_docs.targets(page) if path.is_file()]
    lost = [str(page.relative_to(ROOT)) for page in build_docs.pages() if page not in reached]
    assert not lost, f"link to {lost} from README.md or from a page that it leads to"


def test_pictures_are_small() -> None:
    for path in (ROOT / "docs").rglob("*.svg"):
        assert path.stat().st_size < 50_000, path


@pytest.mark.parametrize("name", ["README.md", "docs/explanation/detection-power.md"])
def test_faults_that_stand_for_bugs_are_planted(name: str) -> None:
    """The last column of the tables of bugs: each name is that of a planted fault or control."""
    planted = {plant.name for plant in load_plants(load_registry(ROOT))}
    text = (ROOT / name).read_text(encoding="utf-8").partition("| planted as |")[2].partition("\n\n")[0]
    rows = [line.rstrip("| ").rpartition("|")[2] for line in text.splitlines()[2:]]
    assert len(rows) >= 8
    for row in rows:
        names = re.findall(r"`(\w+)`", row)
        assert names, row
        assert set(names) <= planted, row


# ---- commands ----


def test_every_command_has_a_row_and_every_row_a_command() -> None:
    said = [item for item in all_said() if not item.is_synopsis]
    missing = sorted({f"{item.page}:{item.line}: {item.text}" for item in said if item.text not in ROWS})
    assert not missing, f"{TABLE.name} has no row for these commands; say how each is run:\n" + "\n".join(missing)
    unused = sorted(set(ROWS) - {item.text for item in said})
    assert not unused, f"{TABLE.name} has rows for commands that stand nowhere; remove them:\n" + "\n".join(unused)


def test_what_is_not_run_has_a_reason_that_was_looked_at() -> None:
    for row in ROWS.values():
        if row.reason:
            assert row.review is not None
            assert row.review > dt.datetime.now(dt.UTC).date(), f"{row.text!r}: look at it again: {row.reason}"


def test_what_others_run_they_run() -> None:
    """A row that names a script or a test says by which words the command, or its page, is found there."""
    for row in ROWS.values():
        if row.run_by:
            assert row.seen_as in (ROOT / row.run_by).read_text(encoding="utf-8"), row


def test_a_folder_that_a_command_writes_to_is_made_on_its_page() -> None:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text()
        for found in re.finditer(r"-artifact_prefix=(\w+)/", text):
            assert f"mkdir {found[1]}\n" in text[: found.start()], f"{page}: {found[0]}"


def test_commands_are_found_wherever_a_reader_would_copy_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "text\n\n    crosslane lint   # a comment\n    prose that is indented\n\n1. a list\n\n       ci/test\n\n"
        "```\n$ anything --goes\noutput\nNAME=3 crosslane \\\n   check\n```\n\n```sh\n# said\nunknown program\n```\n\n"
        "    X=1\n\n    crosslane check [--cell PATTERN]\n\n```c\ncrosslane no\n```\n"
    )
    found = list(commands_of(page, "page"))
    assert [item.text for item in found] == [
        "crosslane lint", "ci/test", "anything --goes", "NAME=3 crosslane check", "unknown program", "X=1",
        "crosslane check [--cell PATTERN]",
    ]  # fmt: skip
    assert [item.is_synopsis for item in found] == [False] * 6 + [True]
    assert found[0].line == 3


def commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))


def options_of(words: tuple[str, ...]) -> set[str]:
    """The options of a command and of the groups above it."""
    found: set[str] = set()
    command: click.Command = cli
    for word in (*words, None):
        found |= {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        if word is not None:
            assert isinstance(command, click.Group)
            command = command.commands[word]
    return found


def test_a_synopsis_names_options_that_there_are() -> None:
    known = dict(commands(cli))
    for said in all_said():
        if not said.is_synopsis or not said.text.startswith("crosslane "):
            continue
        words: tuple[str, ...] = ()
        for word in said.text.split()[1:]:
            if (*words, word) not in known:
                break
            words = (*words, word)
        assert words, said
        if words == ("report",):
            words = ("report", "show")  # the word may be left out
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", said.text))
        assert named <= options_of(words), (said, named - options_of(words))


def test_every_option_is_in_the_reference() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md"))
    for words, command in commands(cli):
        for parameter in command.params:
            names = [name for name in parameter.opts if name.startswith("-")]
            assert not names or any(name in text for name in names), f"crosslane {' '.join(words)} {names}"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where a reader works: ``crosslane`` and ``python`` are those of the tests, ``mine`` holds an SM4.

    ``page NAME FILE`` writes a file as a page has it. ``fuzz`` is the checkout's folder.
    """
    folder = tmp_path_factory.mktemp("desk")
    (folder / "bin").mkdir()
    for name, arguments in TOOLS.items():
        tool = folder / "bin" / name
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        tool.chmod(0o755)
    (folder / "fuzz").symlink_to(ROOT / "fuzz")
    done = at_desk(folder, "crosslane new sm4 mine --impls mine", folder)
    assert done.returncode == 0, done.stderr
    return folder


def at_desk(folder: Path, command: str, where: Path, interrupt_s: float = 0) -> subprocess.CompletedProcess[str]:
    """Run a command line as a shell does; one that goes on without end is interrupted after some seconds."""
    env = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    bash = shutil.which("bash")
    assert bash is not None, "install bash"
    process = subprocess.Popen(
        [bash, "-c", command], cwd=where, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=interrupt_s or (7200 if NIGHTLY else 300))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT if interrupt_s else signal.SIGKILL)
        out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@pytest.mark.parametrize("row", RUNS, ids=lambda row: row.text)
def test_a_command_does_what_the_page_says(desk: Path, row: Row) -> None:
    assert row.run is not None
    where = {"desk": desk, "checkout": ROOT}[row.run.where]
    for step in row.run.steps:
        done = at_desk(desk, step, where)
        assert done.returncode == 0, f"{step}: {done.stdout}{done.stderr}"
    text = row.text
    for placeholder, value in row.run.replace.items():
        pattern = rf"(?<![\w-]){re.escape(placeholder)}(?![\w-])"
        assert re.search(pattern, text), placeholder
        text = re.sub(pattern, lambda _, value=value: value, text)  # type: ignore[misc]
    done = at_desk(desk, text, where, row.run.interrupt_s)
    said = done.stdout + done.stderr
    assert done.returncode in row.run.status, f"{text}: status {done.returncode}: {said}"
    assert re.search(row.run.says, said), f"{text}: {row.run.says!r} is not in: {said}"
