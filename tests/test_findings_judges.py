# SPDX-License-Identifier: Apache-2.0
"""A copy of the suite: findings of generic itself run again, and what deviations do to the exit status.

They do the same in ``crosslane check``, in the pytest suite and in ``crosslane alarms``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from planting import NATIVE
from shrinking import FAULTS, sow

from crosslane.data import data_root
from crosslane.findings.store import Store
from crosslane.isa import host_arch

pytestmark = pytest.mark.xdist_group("findings_judges")

MODE = Path("impls/modes/ctr/ctr.c")
CIPHER = Path("impls/ciphers/aes/generic/aes.c")
_PARTIAL = "    xor_bytes(dst, src, s->keystream, len);\n"
_EXPANDED = "    for (size_t i = nk, j = 0; i < num_words; i++) {\n"
_EDITS = {
    MODE: (_PARTIAL, _PARTIAL + "    dst[0] ^= 1;\n"),
    CIPHER: (_EXPANDED, "    w[0] ^= 1;\n" + _EXPANDED),
}


def start(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    return subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=120, check=False,
        cwd=tree, env=environment,
    )  # fmt: skip


def crosslane(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return start(tree, "crosslane", *arguments)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the suite whose counter mode and whose generic AES are wrong, with the findings of one run."""
    folder = tmp_path_factory.mktemp("tree")
    for name in ("src", "impls", "ci", "conformance", "corpora"):
        shutil.copytree(data_root() / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(data_root() / "pyproject.toml", folder)
    for path, (old, new) in _EDITS.items():
        text = (folder / path).read_text()
        assert text.count(old) == 1
        (folder / path).write_text(text.replace(old, new))
    done = crosslane(
        folder, "check", "--lane", NATIVE, "--cell", f"ctr(sm4)/sm4-generic@{NATIVE}", "--cell",
        f"ecb(aes)/aes-generic@{NATIVE}", "--count", "2048", "--vectors", "own",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    return folder


def finding(tree: Path, judge: str, mode: str) -> str:
    kept, wrong = Store(tree / "findings").read_all()
    assert wrong == []
    return next(item.record.id for item in kept if (item.record.judge, item.record.key.algorithm[:3]) == (judge, mode))


@pytest.mark.parametrize(("judge", "mode", "path"), [("reference", "ctr", MODE), ("vector", "ecb", CIPHER)])
def test_generic_s_own_findings_run_again(tree: Path, judge: str, mode: str, path: Path) -> None:
    name = finding(tree, judge, mode)
    done = crosslane(tree, "repro", name)
    assert done.returncode == 1, done.stderr
    assert re.search(rf"generic@{NATIVE}: .*expected|departs|differs", done.stdout), done.stdout
    done = crosslane(tree, "findings", "retest", name)
    assert (done.returncode, "departs 10 of 10 times: open" in done.stdout) == (1, True), done.stdout + done.stderr
    wrong = (tree / path).read_text()
    try:
        (tree / path).write_text((data_root() / path).read_text())
        done = crosslane(tree, "findings", "retest", name)
        assert (done.returncode, "departs 0 of 10 times: fixed" in done.stdout) == (0, True), done.stdout + done.stderr
    finally:
        (tree / path).write_text(wrong)


PLANT = next(plant for plant in FAULTS if plant.name == "cbc_in_place")
ASAN = f"{host_arch()}_asan"


@pytest.fixture(scope="module")
def accepted(tree: Path) -> str:
    """The id of a finding in a third party's implementation that was accepted; its run ended with status 1."""
    sow(tree / "mine", [PLANT])
    done = check_mine(tree)
    assert done.returncode == 1, done.stderr
    (name,) = Store(tree / "accepted").ids()
    arguments = ("findings", "accept", name, "--findings", "accepted", "--reason", "upstream will not change it")
    done = crosslane(tree, *arguments, "--link", "https://example.org/1", "--review", "2999-12-31")
    assert done.returncode == 0, done.stderr
    return name


def check_mine(tree: Path) -> subprocess.CompletedProcess[str]:
    """A run with default counts, of one cell in a lane where these are small."""
    return crosslane(
        tree, "check", "--cell", f"{PLANT.algorithm}/{PLANT.driver}@{ASAN}", "--lane", ASAN, "--vectors", "own",
        "--impls", "mine", "--findings", "accepted",
    )  # fmt: skip


def conformance_of_mine(tree: Path) -> subprocess.CompletedProcess[str]:
    """The same cell as a pytest suite."""
    return start(
        tree, "pytest", "conformance", "-p", "no:cacheprovider", "-rfxX", "--color=no", "--crosslane-cell",
        f"{PLANT.algorithm}/{PLANT.driver}@{ASAN}", "--crosslane-lane", ASAN, "--crosslane-vectors", "own",
        "--crosslane-impls", "mine",
    )  # fmt: skip


def alarms_of_mine(tree: Path) -> subprocess.CompletedProcess[str]:
    """The same cell with two seeds."""
    return crosslane(
        tree, "alarms", "--cell", f"{PLANT.algorithm}/{PLANT.driver}@{ASAN}", "--lane", ASAN, "--impls", "mine",
        "--seeds", "2", "--share", "1",
    )  # fmt: skip


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """How many items passed, failed and failed as expected, of the last line of pytest."""
    last = done.stdout.splitlines()[-1]
    return {name: int(count) for count, name in re.findall(r"(\d+) (passed|failed|xfailed|error)", last)}


def test_a_run_whose_findings_are_all_accepted_ends_with_0(tree: Path, accepted: str) -> None:
    done = check_mine(tree)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(f"finding {accepted}: .*: accepted, in 1 cell", done.stdout)
    assert "1 FINDING" in done.stdout  # it is counted as before
    done = conformance_of_mine(tree)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"accepted finding {accepted}: upstream will not change it" in done.stdout
    assert set(outcomes(done)) == {"passed", "xfailed"}
    assert "crosslane: 1 cells: 1 red; " in done.stdout
    done = alarms_of_mine(tree)
    assert done.returncode == 0, done.stdout + done.stderr
    *seeds, told, last = done.stdout.splitlines()
    assert [line.endswith(" comparisons, green") for line in seeds] == [True, True]
    assert re.fullmatch(f"accepted finding {accepted}: .*: with 2 of 2 seeds, such as in .*@{ASAN}", told)
    assert last.startswith("0 of 2 seeds were not green")


def test_an_accepted_finding_excuses_no_other(tree: Path, accepted: str) -> None:
    assert Store(tree / "accepted").read(accepted).record.state == "accepted"
    header = tree / "mine" / PLANT.cipher / PLANT.name / "fault.h"
    wrong = header.read_text()
    try:
        header.write_text(re.sub(r"FAULTS UINT32_C\((\d+)\)", lambda m: f"FAULTS {int(m[1]) | 1 << 5}u", wrong))
        done = check_mine(tree)
        assert done.returncode == 1, done.stdout + done.stderr
        assert ": open, in 1 cell" in done.stdout
        done = conformance_of_mine(tree)
        assert done.returncode == 1, done.stdout + done.stderr
        assert set(outcomes(done)) == {"passed", "failed"}
        done = alarms_of_mine(tree)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "2 of 2 seeds were not green" in done.stdout
        assert "accepted finding" not in done.stdout
    finally:
        header.write_text(wrong)


def test_a_deviation_that_is_not_used_is_an_error(tree: Path, accepted: str) -> None:
    header = tree / "mine" / PLANT.cipher / PLANT.name / "fault.h"
    wrong = header.read_text()
    try:
        header.write_text(re.sub(r"FAULTS UINT32_C\(\d+\)", "FAULTS 0u", wrong))
        done = check_mine(tree)
        assert done.returncode == 2, done.stdout + done.stderr
        assert f"the deviation {accepted} ({PLANT.driver}, " in done.stderr
        assert "is unused: this run did not see its finding; remove it" in done.stderr
        said = done.stderr.strip().removeprefix("crosslane: ")
        done = conformance_of_mine(tree)
        assert (done.returncode, set(outcomes(done))) == (1, {"failed"}), done.stdout + done.stderr
        assert said in done.stdout
    finally:
        header.write_text(wrong)


def test_a_deviation_whose_review_is_due_is_an_error(tree: Path, accepted: str) -> None:
    path = tree / "conformance" / "deviations.toml"
    kept = path.read_text()
    try:
        path.write_text(kept.replace("2999-12-31", "2020-12-31"))
        done = check_mine(tree)
        assert done.returncode == 2, done.stdout + done.stderr
        assert f"the deviation {accepted} " in done.stderr
        due = "was to be reviewed by 2020-12-31; look at it again and set a new date, or remove it"
        assert due in done.stderr
        done = conformance_of_mine(tree)
        assert (done.returncode, due in done.stdout) == (2, True), done.stdout + done.stderr
    finally:
        path.write_text(kept)
