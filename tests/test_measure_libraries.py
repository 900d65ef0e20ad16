# SPDX-License-Identifier: Apache-2.0
"""``ci/measure_libraries.py`` with a command line of crosslane's that answers as it is told."""

from __future__ import annotations

import sys
from pathlib import Path

import measure_libraries
import pytest

FAKE = """#!{python}
import json, sys, time
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(" ".join(words) + "\\n")
if words[0] == "providers":
    sys.exit({fetch})
time.sleep({sleep})
cell = {{"comparisons": {comparisons}}}
with open(words[words.index("--json") + 1], "w") as file:
    json.dump({{"algorithms": [{{"cells": [cell, cell]}}]}}, file)
sys.exit({check} if "--lane" in words else 0)
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose crosslane writes down what it was asked, in ``log``."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    monkeypatch.setattr(measure_libraries, "_ROOT", tmp_path)
    return tmp_path


def answering(suite: Path, *, fetch: int = 0, check: int = 0, comparisons: int = 2_000_000, sleep: float = 0.0) -> None:
    path = suite / ".venv" / "bin" / "crosslane"
    facts = {"fetch": fetch, "check": check, "comparisons": comparisons, "sleep": sleep}
    path.write_text(FAKE.format(python=sys.executable, log=str(suite / "log"), **facts))
    path.chmod(0o755)


def asked(suite: Path) -> list[str]:
    return [line.partition(" --json")[0] for line in (suite / "log").read_text().splitlines()]


def test_both_checks_are_made_and_their_comparisons_added(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answering(suite)
    assert measure_libraries.main(["--cell", "ctr"]) == 0
    assert asked(suite) == [
        "providers fetch --suite bookworm --arch arm64 libgcrypt openssl nettle botan",
        "providers fetch --suite trixie --arch arm64 libgcrypt openssl nettle botan",
        "check --provider libgcrypt,openssl,nettle,botan --cell ctr",
        "check --provider libgcrypt,openssl,nettle,botan --lane aarch64_bookworm --lane aarch64_trixie --cell ctr",
    ]
    said = capsys.readouterr().out
    assert "natively: status 0, 4,000,000 comparisons, " in said
    assert "s of 120 s" in said
    assert "arm64: status 0, 4,000,000 comparisons, " in said
    assert "s of 300 s" in said
    assert "together 8,000,000 comparisons of 5,000,000: held" in said


@pytest.mark.parametrize(
    ("facts", "status", "words"),
    [
        ({"comparisons": 1_000_000}, 1, "together 4,000,000 comparisons of 5,000,000: MISSED"),
        ({"check": 2}, 2, "arm64: status 2, 4,000,000 comparisons"),
        ({"check": 1}, 1, "arm64: status 1, 4,000,000 comparisons"),
    ],
)
def test_a_missed_bound_and_a_failed_check_are_statuses(
    suite: Path, capsys: pytest.CaptureFixture[str], facts: dict[str, int], status: int, words: str
) -> None:
    answering(suite, **facts)
    assert measure_libraries.main([]) == status
    assert words in capsys.readouterr().out


def test_too_long_is_missed(suite: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    answering(suite, sleep=0.3)
    monkeypatch.setattr(measure_libraries, "_CHECKS", {"natively": ([], 60), "arm64": (["--lane", "x"], 0.2)})
    assert measure_libraries.main([]) == 1
    assert "together 8,000,000 comparisons of 5,000,000: MISSED" in capsys.readouterr().out


def test_what_cannot_be_fetched_is_not_measured(suite: Path) -> None:
    answering(suite, fetch=2)
    assert measure_libraries.main([]) == 2
    assert asked(suite) == ["providers fetch --suite bookworm --arch arm64 libgcrypt openssl nettle botan"]
