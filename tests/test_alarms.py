# SPDX-License-Identifier: Apache-2.0
"""Many seeds in the same processes: what each comes to must be what a run of its own comes to."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from planting import CTR, EMULATED, HOST, NATIVE, SAME_EMULATED, Plant, lay_out

from crosslane import conduct as conducting
from crosslane.alarms.seeds import SeedOutcome, run_seeds, with_seed
from crosslane.conduct import conduct, conduct_seeds
from crosslane.data import data_root
from crosslane.desk import Desk, open_desk
from crosslane.plan import Counts, Selection, make_plans
from crosslane.records import AlgorithmResult
from crosslane.registry import load_registry
from crosslane.vectors import all_vectors

SEEDS = ("one seed", "another seed", "a third one")
SELECTION = Selection(
    ("ctr(sm4)/sm4-*", "ctr(sm4)/libgcrypt", "gcm(twofish)/twofish-generic"), (NATIVE, EMULATED, SAME_EMULATED)
)
COUNTS = Counts().shared(20)


def crosslane(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "crosslane", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=dict(os.environ))


def lasting(result: AlgorithmResult) -> AlgorithmResult:
    """A result without what differs from run to run."""
    cells = tuple(replace(cell, cpu_s=0.0) for cell in result.cells)
    return replace(result, cells=cells, took_s=0.0, cpu_s=0.0)


def test_seeds_run_together_come_to_what_each_comes_to_alone() -> None:
    registry = load_registry(data_root())
    vectors, _ = all_vectors(registry, imported=False)
    alone = {
        seed: make_plans(registry, SELECTION, seed=seed, counts=COUNTS, vectors=vectors).algorithms for seed in SEEDS
    }
    for number, plan in enumerate(alone[SEEDS[0]]):
        plans = [with_seed(plan, seed) for seed in SEEDS]
        assert plans == [alone[seed][number] for seed in SEEDS]
        together = conduct_seeds(plans)
        assert len({result.digest for result in together}) == len(SEEDS)
        for result, one in zip(together, plans, strict=True):
            expected = lasting(conduct(one))
            assert lasting(result) == expected
            assert any(cell.comparisons > COUNTS.other for cell in expected.cells)


def test_a_result_does_not_depend_on_which_processes_live_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = load_registry(data_root())
    lanes = (NATIVE, SAME_EMULATED, f"{HOST}_clang_o3", f"{HOST}_ubsan")
    (plan,) = make_plans(registry, Selection(("ccm(sm4)/sm4-generic",), lanes), counts=COUNTS).algorithms
    alive: list[int] = []

    def watched(desk: Desk, block_len: int) -> None:
        open_desk(desk, block_len)
        alive.append(len({pid for pid in children() if pid not in before}))

    monkeypatch.setattr(conducting, "open_desk", watched)
    before = children()
    one_group = conduct(plan)
    monkeypatch.setattr(conducting, "_GROUP", 1)
    many, alive[:] = max(alive), []
    assert lasting(conduct(plan)) == lasting(one_group)
    assert max(alive) < many
    assert any(cell.num_sampled for cell in one_group.cells)
    assert all(cell.num_threaded for cell in one_group.cells)


def children() -> set[int]:
    """Processes that this one has started and that live."""
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def test_a_path_that_one_seed_took_does_not_stand_for_the_next() -> None:
    registry = load_registry(data_root())
    (plan,) = make_plans(
        registry, Selection(("ctr(sm4)/sm4-aesni-avx-x86_64",), (SAME_EMULATED,)), counts=COUNTS
    ).algorithms
    few = [replace(cell, comparisons=1) for cell in plan.cells]
    first, second = with_seed(plan, SEEDS[0]), with_seed(replace(plan, cells=tuple(few)), SEEDS[1])
    ran, after = conduct_seeds([first, second])
    (alone,) = (cell.paths for cell in conduct(second).cells)
    assert after.cells[0].paths == alone
    assert ran.cells[0].paths != alone


def outcomes(tmp_path: Path, name: str, cell: str) -> list[SeedOutcome]:
    folder = lay_out(tmp_path / "theirs", [Plant(name, name)])
    registry = load_registry(data_root(), (folder,))
    selection = Selection((f"{CTR}/planted-{name}", cell), (NATIVE,))
    return list(run_seeds(registry, selection, SEEDS, COUNTS, together=2, num_workers=1))


def test_a_cell_that_departs_is_red_with_each_seed_and_an_innocent_one_beside_it_is_not(tmp_path: Path) -> None:
    found = outcomes(tmp_path, "wrong_at_one_len", f"{CTR}/sm4-generic")
    assert [item.seed for item in found] == list(SEEDS)
    for item in found:
        assert (item.status, item.num_cells) == (1, 2)
        assert [cell.cell for cell in item.alarms] == [f"{CTR}/planted-wrong_at_one_len@{NATIVE}"]
        text = "\n".join(item.lines())
        assert f"seed {item.seed!r}: status 1" in text
        assert f"planted-wrong_at_one_len@{NATIVE}: fails agreement" in text
    assert len({item.alarms[0].findings[0].case_id for item in found}) == len(SEEDS)


def test_what_a_trial_shows_with_the_first_of_the_seeds_that_run_together_stands_with_each(tmp_path: Path) -> None:
    found = outcomes(tmp_path, "static_scratch", f"{CTR}/sm4-generic")
    assert [(item.seed, item.status, len(item.alarms)) for item in found] == [(seed, 1, 1) for seed in SEEDS]
    ids = [[finding.case_id for finding in item.alarms[0].findings] for item in found]
    assert ids[0] == ids[1] != ids[2]
    assert all(name.startswith("threads-") for names in ids for name in names)


@pytest.mark.parametrize("name", ["wrong_at_one_len", "honest"])
def test_the_command_says_of_each_seed_what_check_says(tmp_path: Path, name: str) -> None:
    folder = lay_out(tmp_path / "theirs", [Plant(name, name)])
    options: list[str | Path] = ["--cell", f"{CTR}/planted-{name}", "--lane", NATIVE, "--impls", folder]
    done = crosslane("alarms", *options, "--seeds", "2", "--first", "7")
    lines = done.stdout.splitlines()
    seeds = [line for line in lines if line.startswith("seed ")]
    assert [line.partition(":")[0] for line in seeds] == ["seed 'false alarm 7'", "seed 'false alarm 8'"]
    check = crosslane(
        "check", *options, "--share", "20", "--vectors", "own", "--no-findings", "--seed", "false alarm 8"
    )
    assert (check.stderr, done.stderr) == ("", "")
    assert f"status {check.returncode}: 1 cells, " in seeds[1]
    assert check.returncode == done.returncode == (0 if name == "honest" else 1)
    last = f"{0 if name == 'honest' else 2} of 2 seeds were not green, in "
    assert lines[-1].startswith(last)
    mine = [line.strip() for line in lines[lines.index(seeds[1]) + 1 : -1]]
    theirs = [line.strip() for line in check.stdout.splitlines()]
    for line in mine:
        assert line in theirs or ": fails " in line
    commands = [line.partition("crosslane ")[2] for line in mine if "crosslane repro" in line]
    assert bool(commands) is (name != "honest")
    for command in commands:
        again = crosslane(*shlex.split(command))
        assert (again.returncode, again.stderr) == (1, "")


def test_a_cell_of_which_no_shim_can_be_started_is_void() -> None:
    registry = load_registry(data_root())
    (plan,) = make_plans(registry, Selection((f"{CTR}/sm4-generic",), (NATIVE,)), counts=COUNTS).algorithms
    (cell,) = plan.cells
    broken = replace(cell, station=replace(cell.station, command=("/bin/false",)))
    for result in conduct_seeds([with_seed(replace(plan, cells=(broken,)), seed) for seed in SEEDS]):
        assert result.cells[0].state == "void"
