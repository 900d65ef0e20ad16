# SPDX-License-Identifier: Apache-2.0
"""What a campaign says of the state that it goes on from: its log, what was found, what is accepted since."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzzing_runs import Campaign, planted_campaign
from rich.console import Console

from crosslane.errors import BadInput
from crosslane.findings.store import Store
from crosslane.fuzzing.engine import View
from crosslane.fuzzing.job import as_stored, log_of, show_status, status_of
from crosslane.fuzzing.state import read_state
from crosslane.fuzzing.status import Reporter


@pytest.mark.parametrize(
    ("state", "log"),
    [("x.sqlite", "x.log"), ("x.db", "x.db.log"), ("x.y.sqlite", "x.y.log"), ("x.y", "x.y.log"), ("x", "x.log")],
)
def test_each_name_of_a_state_has_a_log_of_its_own(state: str, log: str) -> None:
    assert log_of(Path("a") / state) == Path("a") / log


def test_a_state_with_the_name_of_a_log_is_refused() -> None:
    with pytest.raises(BadInput, match=r"x\.log: has the name of a log: name a state NAME\.sqlite with --state"):
        log_of(Path("x.log"))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A campaign with a finding."""
    campaign = planted_campaign(tmp_path_factory.mktemp("found"))
    done = campaign.run("--count", "60000")
    assert done.returncode == 1, done.stdout + done.stderr
    return campaign


def test_a_campaign_that_goes_on_counts_and_shows_what_was_found_before(found: Campaign) -> None:
    log = log_of(found.state)
    before = len(log.read_text().splitlines())
    assert found.run("--count", "60000").returncode == 1  # which runs no round more
    assert ", 1 finding, " in log.read_text().splitlines()[before:][-1]


def test_the_picture_shows_earlier_findings(tmp_path: Path) -> None:
    console = Console(record=True, width=120)
    with Reporter(console, "a title", tmp_path / "x.log") as reporter:
        view = View(1, 2, 0, 3, earlier={"0123": "sm4-x, ctr(sm4): differs"})
        console.print(reporter._picture(view))
        assert ", 1 finding, " in reporter.line(view)
    text = console.export_text()
    assert "0123  sm4-x, ctr(sm4): differs" in text


def test_a_finding_is_accepted_as_soon_as_the_store_says_so(found: Campaign) -> None:
    snapshot, _ = read_state(found.state)
    store = Store(found.folder / "findings")
    assert status_of(as_stored(snapshot, store)) == 1
    (finding,) = snapshot.findings
    store.update(finding.id, state="accepted")
    try:
        assert status_of(as_stored(snapshot, store)) == 0
        assert found.run("--count", "60000").returncode == 0
        lines: list[str] = []
        show_status(found.state, found.folder / "findings", lines.append)
        assert any(line.startswith(f"finding {finding.id}: accepted, ") for line in lines)
    finally:
        store.update(finding.id, state="open")
    assert status_of(as_stored(snapshot, Store(found.folder / "nowhere"))) == 1
