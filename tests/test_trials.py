# SPDX-License-Identifier: Apache-2.0
"""Trials against planted subjects: each fault that they are for is found and named, what is allowed stays green."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from planting import CTR, LANES, NATIVE, Plant, Planted, lay_out

from crosslane.data import data_root

THREADED = {
    "static_scratch": ("disagree", "answers otherwise while another thread works: byte"),
    "static_pointer": ("crash", "with another thread beside it"),
}
GETTERS = {
    "null": ("*(volatile int *)(uintptr_t)16 = 1;", "crash", "crashes with SIGSEGV"),
    "trap": ("abort();", "crash", "crashes with SIGABRT"),
    "spin": ('for (;;) { __asm__ volatile(""); }', "hang", "does not come back"),
}
PLANTS = (
    Plant("honest"),
    *(Plant(name, name) for name in THREADED),
    *(Plant(f"getter_{name}", getter=row[0]) for name, row in GETTERS.items()),
)


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return Planted(tmp_path_factory.mktemp("trials"), PLANTS)


@pytest.mark.parametrize("name", THREADED)
@pytest.mark.parametrize("lane", LANES)
def test_what_two_calls_share_is_found_by_two_threads(planted: Planted, name: str, lane: str) -> None:
    verdict, words = THREADED[name]
    cell = planted.run(name, lane, 256)
    (finding,) = cell.findings
    assert (finding.verdict, finding.symptom) == (verdict, "nondeterminism")
    assert words in finding.text
    assert finding.case_id.startswith("threads-")
    assert cell.red


@pytest.mark.parametrize("lane", LANES)
def test_two_threads_find_nothing_in_what_shares_nothing(planted: Planted, lane: str) -> None:
    cell = planted.run("honest", lane, 256)
    assert cell.findings == ()
    assert cell.num_threaded == 64
    assert "threads" not in cell.unwatched


@pytest.mark.parametrize("name", GETTERS)
@pytest.mark.parametrize("lane", LANES)
def test_a_getter_that_does_not_return_is_a_finding(planted: Planted, name: str, lane: str) -> None:
    _, verdict, words = GETTERS[name]
    cell = planted.run(f"getter_{name}", lane, 64)
    (finding,) = cell.findings
    assert (finding.case_id, finding.verdict, finding.symptom) == ("getter", verdict, "none")
    assert words in finding.text
    assert cell.state == "ran"
    assert cell.red


def crosslane(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(data_root() / "src")}
    return subprocess.run(
        [sys.executable, "-m", "crosslane", *arguments], capture_output=True, text=True, timeout=120, check=False,
        cwd=cwd, env=environment,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["static_scratch", "getter_null"])
def test_a_trial_that_departed_is_seen_again_by_its_command(name: str, tmp_path: Path) -> None:
    lay_out(tmp_path / "mine", [plant for plant in PLANTS if plant.name == name])
    cell = f"{CTR}/planted-{name}@{NATIVE}"
    done = crosslane("check", "--cell", cell, "--count", "64", "--vectors", "own", "--impls", "mine", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    again = re.search(r"see it again: crosslane (repro .*)", done.stdout)
    assert again is not None, done.stdout
    assert "is no case that could be shrunk" in done.stdout
    seen = crosslane(*again[1].replace("'", "").split(), cwd=tmp_path)
    assert seen.returncode == 1, seen.stderr
    assert seen.stdout.startswith(cell), seen.stdout
    generic = crosslane(*again[1].split()[:2], "--cell", f"{CTR}/sm4-generic@{NATIVE}", cwd=tmp_path)
    assert (generic.returncode, generic.stdout) == (0, f"{CTR}/sm4-generic@{NATIVE}: agrees\n")
