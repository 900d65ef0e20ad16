# SPDX-License-Identifier: Apache-2.0
"""Triage and bisection as a user meets them: planted faults, findings in a folder, a repository with a history."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from planting import EMULATED, HOST, NATIVE
from shrinking import FAULTS, Sown, sow

from crosslane.data import data_root
from crosslane.findings.store import Store

pytestmark = pytest.mark.xdist_group("triage")

LANES_8 = next(plant for plant in FAULTS if plant.name == "lanes_8")
GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main")


def crosslane(*arguments: str | Path, cwd: Path, limit_s: int = 280) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(data_root() / "src")}
    return subprocess.run(
        [sys.executable, "-m", "crosslane", *map(str, arguments)],
        capture_output=True, text=True, timeout=limit_s, check=False, cwd=cwd, env=environment,
    )  # fmt: skip


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run([*GIT, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(repo: Path, subject: str) -> str:
    git(repo, "add", "-A")
    git(repo, "commit", "--quiet", "--allow-empty", "-m", subject)
    return git(repo, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with one wrong implementation in a repository, and its finding."""
    folder = tmp_path_factory.mktemp("triage")
    sow(folder / "mine", [LANES_8])
    done = crosslane(
        "check", "--cell", f"{LANES_8.algorithm}/{LANES_8.driver}", "--lane", NATIVE, "--count", "512", "--vectors",
        "own", "--impls", "mine", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    return folder


def the_id(work: Path) -> str:
    return Store(work / "findings").ids()[0]


def leaf(repo: Path, plant: Sown) -> Path:
    return repo / "mine" / plant.cipher / plant.name / "fault.h"


@pytest.fixture(scope="module")
def history(work: Path) -> dict[str, str]:
    """Nine commits: the fault comes with the sixth; the third and the fifth do not compile, the seventh's build fails.

    The build of every commit fails the first time that it is run.
    """
    header = leaf(work, LANES_8)
    wrong = header.read_text(encoding="utf-8")
    right = re.sub(r"UINT32_C\(\d+\)", "UINT32_C(0)", wrong)
    made: dict[str, str] = {}
    git(work, "init", "--quiet")
    (work / ".gitignore").write_text("findings\nonce-*\n", encoding="utf-8")
    (work / "build.sh").write_text(
        '#!/bin/sh\ncommit=$(git rev-parse HEAD)\n[ -e "once-$commit" ] || { : >"once-$commit"; exit 1; }\n'
        "[ ! -e broken ]\n",
        encoding="utf-8",
    )
    (work / "build.sh").chmod(0o755)
    for number in range(1, 10):
        text = right if number < 6 else wrong
        header.write_text(
            f"#error {number}\n" + text if number in (3, 5) else f"{text}/* {number} */\n", encoding="utf-8"
        )
        broken = work / "broken"
        if number == 7:
            broken.touch()
        elif broken.exists():
            broken.unlink()
        made[str(number)] = commit(work, f"change number {number}")
    return made


def test_a_finding_is_explained_in_its_folder(work: Path) -> None:
    name = the_id(work)
    done = crosslane("triage", name, cwd=work)
    assert done.returncode == 0, done.stderr
    assert "computation: " in done.stdout
    assert "block 6 to 7" in done.stdout or "of every 8 blocks" in done.stdout
    text = (work / "findings" / name / "triage.md").read_text(encoding="utf-8")
    for part in (
        "## Versions", "## Smallest case", "## Expected and got", "^^", "## Who agrees with whom", "stands alone",
        "## What it depends on", f"crosslane repro {name}", "triage.svg", "-o repro",
    ):  # fmt: skip
        assert part in text, part
    assert str(work) not in text
    assert "<svg" in (work / "findings" / name / "triage.svg").read_text(encoding="utf-8")
    store = Store(work / "findings")
    store.update(name, last_revision="abc")
    assert (work / "findings" / name / "triage.md").is_file()
    assert store.read(name).record.last_revision == "abc"


@pytest.mark.skipif(HOST != "x86_64", reason="the lane named here is emulated on x86-64")
def test_under_an_emulator_it_is_run_one_instruction_at_a_time_too(work: Path) -> None:
    name = the_id(work)
    done = crosslane("triage", name, "--lane", EMULATED, cwd=work)
    assert done.returncode == 0, done.stderr
    assert "computation: " in done.stdout
    text = (work / "findings" / name / "triage.md").read_text(encoding="utf-8")
    assert re.search(r"^- qemu\S+ \S+(singlestep|one-insn-per-tb): departs too$", text, re.MULTILINE), text
    assert "qemu: " in text


def test_the_commit_is_found_among_broken_builds_and_flaky_ones(work: Path, history: dict[str, str]) -> None:
    before = git(work, "rev-parse", "HEAD")
    done = crosslane(
        "bisect", the_id(work), "--repo", ".", "--build", "./build.sh", "--good", history["1"], "--repeat", "2",
        cwd=work,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    last = done.stdout.strip().splitlines()
    said = "\n".join(last)
    assert history["6"][:7] in said
    assert "change number 6" in said
    assert ("since one of" in said) == ("change number 5" in said.partition("since one of")[2])
    assert git(work, "rev-parse", "HEAD") == before
    assert "crosslane-bisect" not in git(work, "worktree", "list")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--repo", "findings/../..", "--good", "1"), "is no checkout of a git repository"),
        (("--repo", "nowhere", "--good", "1"), "is no checkout of a git repository"),
        (("--repo", ".", "--good", "v9"), "is no revision of the repository"),
        (("--repo", ".", "--good", "9"), "are the same revision"),
        (("--repo", ".", "--good", "8", "--bad", "2"), "is no ancestor of"),
        (("--repo", ".", "--good", "6"), "the good revision"),
        (("--repo", ".", "--good", "1", "--bad", "2"), "the bad revision"),
        (("--repo", ".", "--good", "1", "--build", "no-such-program"), "there is no program 'no-such-program'"),
        (("--repo", ".", "--good", "1", "--build", "./no.sh"), "there is no program './no.sh'"),
        (("--repo", ".", "--good", "1", "--build", "'"), "cannot be cut into words"),
        (("--repo", ".", "--good", "1", "--build", ""), "--build is empty"),
        (("--repo", ".", "--good", "1", "--build", "false"), "cannot be built or run"),
        (("--repo", ".", "--good", "1", "--subject", "../x"), "leads out of the repository"),
    ],
)
def test_a_bisection_that_cannot_be_is_one_sentence(
    work: Path, history: dict[str, str], arguments: tuple[str, ...], sentence: str
) -> None:
    given = [history.get(item, item) for item in arguments]
    build = () if "--build" in given else ("--build", "true")
    done = crosslane("bisect", the_id(work), *given, *build, "--repeat", "1", cwd=work)
    assert done.returncode == 2, done.stdout + done.stderr
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_what_cannot_be_triaged_is_one_sentence(work: Path, tmp_path: Path) -> None:
    copy = tmp_path / "findings"
    shutil.copytree(work / "findings", copy)
    name = the_id(work)
    Store(copy).update(name, state="flaky", rate=0.3)
    gone = shutil.copytree(work / "findings", tmp_path / "gone")
    record = gone / name / "finding.toml"
    record.write_text(record.read_text(encoding="utf-8").replace("/mine", "/moved"), encoding="utf-8")
    for arguments, sentence in (
        (("beef",), "there is no finding 'beef'"),
        ((name, "--findings", copy), "is flaky"),
        ((name, "--findings", gone), "is not there any more"),
        ((name, "--lane", "moon"), "is no lane of this host"),
        ((), "takes the id of a finding, or --planted"),
        ((name, "--planted"), "takes the id of a finding, or --planted"),
        ((name, "--jobs", "2"), "go with --planted"),
        (("--planted", "--fault", "no_such"), "no planted fault is named no_such"),
    ):
        done = crosslane("triage", *arguments, cwd=work)
        assert done.returncode == 2, done.stdout + done.stderr
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


def test_the_library_of_a_revision_is_what_its_build_left(work: Path, tmp_path: Path) -> None:
    """The build puts the system's library where --library says: it agrees, and the end does not hold."""
    found = Store(work / "findings").read(the_id(work))
    key = replace(found.record.key, implementation="libgcrypt")
    record = replace(found.record, key=key, cells=(f"{key.algorithm}/libgcrypt@{NATIVE}",), impls=())
    store = Store(tmp_path / "findings")
    store.put(replace(found, record=record))
    shared = subprocess.run(["gcc", "-print-file-name=libgcrypt.so"], capture_output=True, text=True, check=True)
    repo = tmp_path / "library"
    repo.mkdir()
    git(repo, "init", "--quiet")
    first, last = (commit(repo, text) for text in ("one", "two"))
    copied = f"cp -L {shared.stdout.strip()} lib/libgcrypt.so.20"
    build = f"sh -c 'mkdir -p lib && {copied} && ln -sf libgcrypt.so.20 lib/libgcrypt.so'"
    for library, sentence in (
        ("libgcrypt:lib", f"the bad revision {last} agrees on the case"),
        ("libgcrypt:nowhere", f"the bad revision {last} cannot be built or run"),
        ("libgcrypt:../lib", "is not PROVIDER:FOLDER"),
        ("moon:lib", f"the bad revision {last} cannot be built or run"),
    ):
        done = crosslane(
            "bisect", record.id, "--findings", tmp_path / "findings", "--repo", repo, "--build", build, "--good", first,
            "--bad", last, "--library", library, "--repeat", "1", cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 2, done.stdout + done.stderr
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
    done = crosslane("triage", record.id, "--findings", tmp_path / "findings", cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "its case agrees in" in done.stderr


@pytest.mark.skipif(HOST != "x86_64", reason="the faults named here are in code for x86-64")
def test_planted_faults_are_named_natively() -> None:
    names = ("avx_rbx_lost", "avx_wrap_late", "avx_tail_of_three", "aesni_xts_steal_after_store", "aes_rcon_unreduced")
    chosen = [word for item in names for word in ("--fault", item)]
    done = crosslane("triage", "--planted", "--lane", NATIVE, *chosen, cwd=data_root())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 of 5 classes named as their tables say" in done.stdout
    assert "4 of 4 that depend on CPU features have the smallest set" in done.stdout


@pytest.mark.skipif(HOST != "x86_64", reason="the fault named here is in code for AArch64, which is emulated")
def test_planted_faults_are_named_under_an_emulator() -> None:
    done = crosslane("triage", "--planted", "--lane", EMULATED, "--fault", "smc_ecb_lane", cwd=data_root())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 classes named" in done.stdout
