# SPDX-License-Identifier: Apache-2.0
"""``pytest conformance`` as a process: the same cells, counts and verdicts as ``crosslane check``, whatever ``-n``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from planting import CTR, NATIVE, Plant, lay_out

from crosslane.checks import load_checks
from crosslane.data import data_root

# Own cells of two algorithms and a library's, so that there are three plans for the workers to share.
CELLS = (f"{CTR}/sm4-generic@{NATIVE}", f"ecb(sm4)/sm4-generic@{NATIVE}", f"ecb(sm4)/libgcrypt@{NATIVE}")
COUNT = 256
WRONG = "wrong_at_one_len"
PLANTED_CELL = f"{CTR}/planted-{WRONG}@{NATIVE}"
NUM_CHECKS = len(load_checks(data_root()))

pytestmark = pytest.mark.xdist_group("plugin")


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    status: int
    lines: list[str]
    err: str

    def line(self, start: str) -> str:
        """The only line that begins so."""
        [found] = [line for line in self.lines if line.startswith(start)]
        return found


def start(*arguments: str | Path) -> Ended:
    done = subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=data_root(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Ended(done.returncode, done.stdout.splitlines(), done.stderr)


def options(prefix: str, cells: Sequence[str], *more: str | Path) -> list[str | Path]:
    chosen = [text for cell in cells for text in (f"--{prefix}cell", cell)]
    return [*chosen, f"--{prefix}count", str(COUNT), f"--{prefix}vectors", "own", *more]


def conformance(*arguments: str | Path) -> Ended:
    return start("pytest", "conformance", "-p", "no:cacheprovider", "-v", "--color=no", *arguments)


def totals(line: str) -> tuple[int, str, str]:
    """Cells, verdicts and comparisons of either report's last line."""
    found = re.fullmatch(r"(?:crosslane: )?(\d+) cells: (.*?); ([\d,]+) comparisons.*", line)
    assert found is not None, line
    return int(found[1]), found[2], found[3]


def by_item(lines: Sequence[str]) -> dict[str, str]:
    """Outcome of every test item, by cell and check."""
    outcome = re.compile(r"(PASSED|FAILED|SKIPPED|ERROR)")
    name = re.compile(r"test_cells\.py::test_cell\[(.*?)\](?:@\S+)?(?:\s|$)")
    found = {}
    for line in lines:
        item, ended = name.search(line), outcome.search(line)
        if item and ended and not line.startswith(("FAILED", "ERROR")):
            found[item[1]] = ended[1]
    return found


def places(lines: Sequence[str]) -> dict[str, set[str]]:
    """The workers that each algorithm's items ran on."""
    found: dict[str, set[str]] = {}
    for line in lines:
        ran = re.match(r"\[(gw\d+)\].*::test_cell\[(.*?)/", line)
        if ran:
            found.setdefault(ran[2], set()).add(ran[1])
    return found


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ended, dict[str, Any]]:
    """``crosslane check`` of the same cells, and its results by cell."""
    file = tmp_path_factory.mktemp("checked") / "results.json"
    ended = start("crosslane", "check", *options("", CELLS), "--json", file)
    assert (ended.status, ended.err) == (0, "")
    results = json.loads(file.read_text())
    return ended, {cell["cell"]: cell for algorithm in results["algorithms"] for cell in algorithm["cells"]}


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_pytest_says_what_check_says(checked: tuple[Ended, dict[str, Any]], workers: int, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    ended = conformance("-n", str(workers), f"--junitxml={report}", *options("crosslane-", CELLS))
    assert ended.status == 0, ended.lines
    check, cells = checked
    assert set(cells) == set(CELLS)
    assert totals(ended.line("crosslane: 3 cells")) == totals(check.line("3 cells"))
    judged = {f"{name}-{item['check']}" for name, cell in cells.items() for item in cell["judgements"]}
    assert by_item(ended.lines) == dict.fromkeys(judged, "PASSED")
    assert len(judged) == NUM_CHECKS * len(CELLS)
    ran_on = places(ended.lines)
    assert set(ran_on) == ({CTR, "ecb(sm4)"} if workers else set())
    assert all(len(some) == 1 for some in ran_on.values())
    assert len(set.union(set(), *ran_on.values())) == workers
    counted = dict(re.findall(r"'cell': '(.*?)'.*?'comparisons': (\d+)", report.read_text().replace("&#x27;", "'")))
    assert counted == {name: str(cell["comparisons"]) for name, cell in cells.items()}
    assert check.line("not judged: paths").removesuffix(": paths cannot be observed in this lane") in {
        line.removeprefix("crosslane: ") for line in ended.lines
    }


def test_a_wrong_sm4_of_a_third_party_is_red(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "theirs", [Plant(WRONG, WRONG)])
    cells = (PLANTED_CELL, CELLS[0])
    ended = conformance(*options("crosslane-", cells, "--crosslane-impls", folder, "--crosslane-count", "2048"))
    assert ended.status == 1
    outcomes = by_item(ended.lines)
    assert {name for name, outcome in outcomes.items() if outcome == "FAILED"} == {f"{PLANTED_CELL}-agreement"}
    assert len(outcomes) == NUM_CHECKS * len(cells)
    check = start("crosslane", "check", *options("", cells, "--impls", folder, "--count", "2048"))
    assert check.status == 1
    (_, verdicts, count), (_, checked, same) = totals(ended.line("crosslane: 2 cells")), totals(check.line("2 cells"))
    assert (verdicts, checked) == ("1 agreed, 1 red", "1 FINDING, 1 agreed")
    assert count == same
    said = (
        check.line(f"{PLANTED_CELL}: disagree, output, repeats alone").rpartition("repeats alone")[2].rpartition(": ")
    )
    assert any(line.startswith(f"{PLANTED_CELL}: not ") and line.endswith(said[2]) for line in ended.lines)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--crosslane-cell", CELLS[2], "--crosslane-without", "libgcrypt"),
            f"the pattern {CELLS[2]!r} matches only cells that --without libgcrypt leaves out",
        ),
        (("--crosslane-lane", "nowhere"), "'nowhere' is no lane of this host"),
        (("--crosslane-without", "nothing"), "there is no library 'nothing' to leave out"),
    ],
)
def test_wrong_use_is_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    ended = conformance(*arguments)
    assert ended.status == 2
    assert ended.line(sentence)
    assert not any("crosslane/" in line for line in ended.lines), ended.lines
