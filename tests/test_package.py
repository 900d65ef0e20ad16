# SPDX-License-Identifier: Apache-2.0
"""What a release makes, and what it is once installed: wheel, version, changelog, the suite in others' projects."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from planting import NATIVE, Plant, lay_out

ROOT = Path(__file__).resolve().parents[1]
SUITE = "crosslane/_suite"
FOLDERS = ("impls", "conformance", "corpora", "fuzz")
WRONG = "wrong_at_one_len"
CACHE = Path(
    os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache"
)  # what other tests have compiled is good here

pytestmark = pytest.mark.xdist_group("package")


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Installed:
    """A virtual environment with the wheel in it, and a home where nothing was run yet."""

    folder: Path
    home: Path

    @property
    def packages(self) -> Path:
        return next((self.folder / "lib").glob("python*/site-packages"))

    def files(self) -> set[str]:
        """What lies in the package, but for the bytecode that Python leaves."""
        return {str(path) for path in (self.packages / "crosslane").rglob("*") if "__pycache__" not in path.parts}

    def run(self, *command: str | Path, cwd: Path, cache: Path | None = None) -> Ended:
        """Run Python there; ``cache`` is where compiled code is kept, the user's own unless one is given."""
        env = clean(self.home) | ({} if cache is None else {"XDG_CACHE_HOME": str(cache)})
        return run([self.folder / "bin" / "python", *command], cwd=cwd, env=env)


def clean(home: Path) -> dict[str, str]:
    """The environment of a user who knows nothing of this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "XDG_", "CROSSLANE_"))}
    home.mkdir(exist_ok=True)
    return {**kept, "HOME": str(home)}


def run(command: Sequence[str | Path], *, cwd: Path, env: dict[str, str] | None = None, timeout: float = 600) -> Ended:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout, check=False
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    done = run(["git", *who, *arguments], cwd=folder)
    assert done.status == 0, done.err
    return done.out


def environment(folder: Path) -> Path:
    """A virtual environment that has what this one has installed, but no crosslane."""
    assert run([sys.executable, "-m", "venv", "--without-pip", folder], cwd=ROOT).status == 0
    [packages] = (folder / "lib").glob("python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def pip(folder: Path, *arguments: str | Path) -> None:
    python = folder / "bin" / "python"
    options = ("--quiet", "--no-deps", "--ignore-installed")  # the environment of these tests may have the same version
    done = run([sys.executable, "-m", "pip", "--python", python, "install", *options, *arguments], cwd=ROOT)
    assert done.status == 0, done.err


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source distribution of this checkout, and the wheel that was built from that."""
    folder = tmp_path_factory.mktemp("dist")
    done = run([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT], cwd=folder)
    assert done.status == 0, done.err
    [source], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return source, wheel


@pytest.fixture(scope="module")
def installed(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    environment(folder / "venv")
    pip(folder / "venv", "--no-index", built[1])
    return Installed(folder / "venv", folder / "home")


# ---- what is built ----


def test_nothing_top_level_is_installed_but_crosslane(built: tuple[Path, Path]) -> None:
    names = zipfile.ZipFile(built[1]).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert "crosslane" in tops
    assert all(top == "crosslane" or (top.startswith("crosslane-") and top.endswith(".dist-info")) for top in tops)


def test_the_wheel_has_all_content_and_the_engine(built: tuple[Path, Path]) -> None:
    """It was built from the source distribution, so that this holds of both."""
    names = set(zipfile.ZipFile(built[1]).namelist())
    listed = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", *FOLDERS, "src/crosslane").splitlines()
    there = [name for name in listed if (ROOT / name).is_file()]
    wanted = {name.removeprefix("src/") if name.startswith("src/") else f"{SUITE}/{name}" for name in there}
    wanted.add(f"{SUITE}/ci/lanes.toml")
    assert {name for name in names if ".dist-info/" not in name} == wanted
    assert {f"{SUITE}/{name}" for name in FOLDERS} <= {"/".join(name.split("/")[:3]) for name in names}


def test_the_source_distribution_brings_what_tests_and_changelog_need(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"tests/conftest.py", "tox.ini", "docs/tutorial/first-check.md", "changelog.d/README.md"} <= names


# ---- what is installed ----


def test_an_installed_copy_finds_its_content(installed: Installed, tmp_path: Path) -> None:
    done = installed.run("-c", "import crosslane.data as d; print(d.data_root())", cwd=tmp_path)
    assert (done.out.strip(), done.err) == (str(installed.packages / SUITE), "")
    done = installed.run("-c", "import crosslane.buildcache as b; print(b.cache_folder())", cwd=tmp_path)
    assert done.out.strip() == str(installed.home / ".cache" / "crosslane" / "build")
    done = installed.run("-m", "crosslane", "lint", cwd=tmp_path)
    assert (done.status, done.err) == (0, "")


def test_an_installed_copy_refuses_to_be_written(installed: Installed, tmp_path: Path) -> None:
    done = installed.run("-m", "crosslane", "selftest", "--store", cwd=tmp_path)
    assert done.status == 2
    why = "--store writes cases into a checkout, but this crosslane is an installed copy: run it from a clone of git"
    assert done.err == f"crosslane: {why}\n"


def test_regressions_of_an_installed_copy_lie_with_its_user(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "regressions").mkdir()
    code = (
        "from crosslane.data import data_root; from crosslane.registry import load_registry; "
        "from crosslane.corpora_tools.regressions import place_for, regression_folders; "
        "from types import SimpleNamespace as N; r = data_root(); "
        "print(place_for(N(record=N(judge='generic', impls=())), r), *regression_folders(load_registry(r)))"
    )
    done = installed.run("-c", code, cwd=tmp_path)
    suite = installed.packages / SUITE / "corpora" / "regressions"
    assert (done.out.split(), done.err) == (["regressions", str(suite), "regressions"], "")


def test_an_editable_installation_reads_the_checkout(tmp_path: Path) -> None:
    here = Installed(environment(tmp_path / "venv"), tmp_path / "home")
    pip(here.folder, "--no-build-isolation", "--editable", ROOT)
    done = here.run("-c", "import crosslane.data as d; print(d.data_root())", cwd=tmp_path)
    assert done.out.strip() == str(ROOT)
    done = here.run(
        "-m", "pytest", "--pyargs", "crosslane._suite.conformance", "--collect-only", "-q", "-p", "no:cacheprovider",
        "--crosslane-cell", f"ctr(sm4)/sm4-generic@{NATIVE}", "--crosslane-count", "8", "--crosslane-vectors", "own",
        cwd=tmp_path, cache=CACHE,
    )  # fmt: skip
    assert done.status == 0, done.out
    assert f"test_cell[ctr(sm4)/sm4-generic@{NATIVE}-agreement]" in done.out


def test_the_suite_runs_in_another_project(installed: Installed, tmp_path: Path) -> None:
    """The project names its folder once; its own cells run, and all that a run leaves lies with the user."""
    project = tmp_path / "project"
    lay_out(project / "ciphers", [Plant(WRONG, WRONG), Plant("right")])
    addopts = f"--pyargs --crosslane-impls ciphers --crosslane-lane {NATIVE} --crosslane-vectors own"
    (project / "pytest.ini").write_text(f"[pytest]\naddopts = {addopts} --crosslane-count 2048 -n 2\n")
    before = installed.files()
    done = installed.run(
        "-m", "pytest", "crosslane._suite.conformance", "--crosslane-cell", "ctr(sm4)/planted-*", cwd=project,
        cache=CACHE,
    )  # fmt: skip
    assert done.status == 1, done.out + done.err
    assert "crosslane: 2 cells: 1 agreed, 1 red; " in done.out
    failed = [line for line in done.out.splitlines() if line.startswith("FAILED ")]
    assert [line for line in failed if f"planted-{WRONG}@{NATIVE}-agreement" not in line] == []
    assert failed
    assert installed.files() == before
    assert not (installed.home / ".crosslane").exists()


def test_a_project_without_patterns_gets_the_cells_of_its_own_code(installed: Installed, tmp_path: Path) -> None:
    lay_out(tmp_path / "ciphers", [Plant("right")])
    done = installed.run(
        "-m", "pytest", "--pyargs", "crosslane._suite.conformance", "--collect-only", "-q",
        "--crosslane-impls", "ciphers", "--crosslane-lane", NATIVE, "--crosslane-vectors", "own", cwd=tmp_path,
        cache=CACHE,
    )  # fmt: skip
    items = [line for line in done.out.splitlines() if "::test_cell[" in line]
    assert items
    assert all("/planted-right@" in line for line in items)


@pytest.mark.slow
def test_pipx_installs_a_crosslane_that_checks(built: tuple[Path, Path], tmp_path: Path) -> None:
    """As its users get it: from the wheel, with dependencies from the registry, into a home that is new."""
    env = clean(tmp_path / "home")
    pipx: list[str | Path] = [sys.executable, "-m", "pipx", "install", "--backend", "pip", built[1]]
    done = run(pipx, cwd=tmp_path, env=env, timeout=1200)
    assert done.status == 0, done.out + done.err
    command = tmp_path / "home" / ".local" / "bin" / "crosslane"
    checked = run([command, "check", "--cell", f"ctr(sm4)/*@{NATIVE}"], cwd=tmp_path, env=env)
    assert checked.status == 0, checked.out + checked.err
    assert f"ctr(sm4)/sm4-generic@{NATIVE}" in checked.out
    assert " 0 agreed" not in checked.out
    assert not (tmp_path / "home" / "findings").exists()


# ---- the tutorial ----


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """Code blocks of a page and comments that state a status, in order: what they are, and their content."""
    for token in MarkdownIt("commonmark").parse(page):
        if token.type == "html_block":
            status = re.fullmatch(r"<!-- status: (\d+) -->\s*", token.content)
            assert status is not None, token.content
            yield "status", status[1]
        elif token.type == "code_block" or (token.type == "fence" and token.info == "console"):
            yield "commands", token.content
        elif token.type == "fence":
            yield token.info or "output", token.content


def assert_printed(sample: str, out: str) -> None:
    """Each line of a sample stands in the output, in order; ``...`` is what is left out, alone or at a line's end."""
    left = [" ".join(line.split()) for line in out.splitlines()]
    for line in sample.splitlines():
        wanted, _, rest = " ".join(line.split()).partition("...")
        assert not rest, line
        if not wanted:
            continue
        at = next(
            (i for i, said in enumerate(left) if said == wanted or ("..." in line and said.startswith(wanted))), None
        )
        assert at is not None, f"{line!r} is not printed, or not there: {out}"
        left = left[at + 1 :]


def test_a_sample_that_is_not_printed_is_found() -> None:
    assert_printed("one\n...\nthree is ...\n", "one\ntwo\nthree  is 3\n")
    for wrong in ("two\none", "On", "three", "four ..."):
        with pytest.raises(AssertionError):
            assert_printed(wrong, "one\ntwo\nthree is 3\n")


@pytest.mark.skipif(NATIVE != "x86_64_native", reason="the page's lanes and words are those of an x86-64 host")
def test_the_tutorial_holds_to_the_letter_in_an_empty_folder(installed: Installed, tmp_path: Path) -> None:
    """Its commands, files, statuses and what it prints, with the wheel that was installed."""
    page = (ROOT / "docs" / "tutorial" / "first-check.md").read_text(encoding="utf-8")
    path = f"{installed.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = clean(installed.home) | {"PATH": path, "XDG_CACHE_HOME": str(CACHE)}
    status, out, appended = 0, "", False
    for kind, content in blocks(page):
        if kind == "status":
            status = int(content)
        elif kind == "commands":
            out = ""
            commands = [line.removeprefix("$ ") for line in content.replace("\\\n", " ").splitlines()]
            for number, command in enumerate(commands, 1):
                done = run(["bash", "-c", command], cwd=tmp_path, env=env)
                assert done.status == (status if number == len(commands) else 0), f"{command}: {done.out}{done.err}"
                out += done.out + done.err
            status = 0
        elif kind == "output":
            assert_printed(content, out)
        elif kind == "c" and not appended:
            with (tmp_path / "mine" / "sm4" / "first" / "first.c").open("a") as file:
                file.write(content)
            appended = True
        else:  # a line of the code, shown again
            assert content.strip() in (tmp_path / "mine" / "sm4" / "first" / "first.c").read_text()
    assert sum(path.is_dir() for path in (tmp_path / "findings").iterdir()) == 2


# ---- version and changelog ----


def test_the_version_is_the_tag_or_counts_from_it(tmp_path: Path) -> None:
    """A clone of a CI may have no tags or one commit, an archive has no git: all of them build."""
    project = tmp_path / "project"
    project.mkdir()
    shutil.copy(ROOT / "pyproject.toml", project)

    def version(folder: Path = project) -> str:
        done = run([sys.executable, "-m", "hatchling", "version"], cwd=folder)
        assert done.status == 0, done.err
        return done.out.strip()

    assert version() == "0.1.dev0"
    git(project, "init", "--quiet")
    git(project, "add", ".")
    for message in ("one", "two"):
        git(project, "commit", "--quiet", "--allow-empty", "--message", message)
    assert version().startswith("0.1.dev2+g")
    git(tmp_path, "clone", "--quiet", "--depth", "1", project.as_uri(), "shallow")
    assert version(tmp_path / "shallow").startswith("0.1.dev1+g")
    git(project, "tag", "v0.2.0")
    assert version() == "0.2.0"
    git(project, "commit", "--quiet", "--allow-empty", "--message", "three")
    assert version().startswith("0.2.1.dev1+g")


def test_a_release_takes_the_fragments_into_the_changelog(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "changelog.d", tmp_path / "changelog.d")
    (tmp_path / "changelog.d" / "+planted.fixed.md").write_text("A planted fragment.\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    towncrier = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", "9.9.9", "--date", "2026-12-01"]
    done = run(towncrier, cwd=tmp_path)
    assert done.status == 0, done.out + done.err
    old, new = (folder.joinpath("CHANGELOG.md").read_text() for folder in (ROOT, tmp_path))
    head, _, rest = new.partition("\n## 9.9.9 - 2026-12-01\n")
    assert "- A planted fragment." in rest
    assert old.startswith(head)
    assert rest.endswith(old.partition("come below this line -->\n")[2])
    assert [path.name for path in (tmp_path / "changelog.d").iterdir()] == ["README.md"]


def test_every_fragment_has_a_kind_that_a_release_takes() -> None:
    names = [path.name for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]
    wrong = [name for name in names if name.split(".")[-2:] not in [[kind, "md"] for kind in KINDS]]
    assert not wrong, f"rename changelog.d/{wrong}: <issue>.<kind>.md with a kind of {', '.join(KINDS)}"


KINDS = ("added", "changed", "fixed", "removed")
