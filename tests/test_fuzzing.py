# SPDX-License-Identifier: Apache-2.0
"""``crosslane fuzz``: campaigns that go on from where they were ended, however that was."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fuzzing_runs import CAMPAIGN, Campaign, planted_campaign
from measure_campaigns import kill_once, rounds_of
from planting import CTR, EMULATED, NATIVE
from shrinking import SECTORS, sow

from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.fuzzing.cli import parse_duration
from crosslane.fuzzing.spec import campaign_names, load_campaign, read_campaign
from crosslane.fuzzing.state import read_state

COUNT, OF_A_ROUND = 32_768, 2_048


def crosslane(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "crosslane", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=dict(os.environ), cwd=cwd
    )


def refused(*arguments: str | Path, cwd: Path | None = None) -> str:
    """The sentence of a wrong use."""
    done = crosslane("fuzz", *arguments, cwd=cwd)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A campaign that nobody ended."""
    campaign = planted_campaign(tmp_path_factory.mktemp("whole"), count=OF_A_ROUND)
    done = campaign.run("--count", str(COUNT))
    assert done.returncode == 1, done.stderr
    assert "planted-rare, ctr(sm4), output, " in done.stdout
    return campaign


def other(whole: Campaign, tmp_path: Path) -> Campaign:
    """The same campaign, about to begin."""
    return planted_campaign(tmp_path / "other", whole.impls, OF_A_ROUND)


def test_a_campaign_finds_what_is_planted_and_goes_on(whole: Campaign) -> None:
    snapshot, holder = read_state(whole.state)
    assert holder == 0
    assert snapshot.totals.planned >= COUNT
    assert snapshot.totals.comparisons > COUNT * 3 // 4
    assert {cell.state for cell in snapshot.cells.values()} == {"ran"}
    assert min(cell.rounds for cell in snapshot.cells.values()) >= 3
    assert {name for name in snapshot.reached if snapshot.reached[name]} == set(snapshot.cells)
    assert [finding.text.split(", ")[:2] for finding in snapshot.findings] == [["planted-rare", "ctr(sm4)"]]
    assert snapshot.totals.void == 0
    assert [path.split("/")[1] for path in whole.findings()].count("finding.toml") == 1
    log = whole.state.with_suffix(".log").read_text().splitlines()
    assert any(": disagree" in line or "finding " in line for line in log)
    assert " comparisons, " in log[-1]


def test_its_finding_is_repeated_by_the_command_that_it_prints(whole: Campaign) -> None:
    (finding,) = read_state(whole.state)[0].findings
    done = crosslane("repro", finding.id, "--findings", whole.folder / "findings")
    assert done.returncode == 1
    assert "planted-rare" in done.stdout
    record = (whole.folder / "findings" / finding.id / "finding.toml").read_text()
    case = next(line.split('"')[1] for line in record.splitlines() if line.startswith("from_case"))
    assert int(case.split("-")[1]) >= 0
    again = crosslane("repro", case, "--cell", f"{CTR}/planted-rare@{NATIVE}", "--impls", whole.impls)
    assert again.returncode == 1, again.stderr


def test_status_says_how_far_it_is(whole: Campaign) -> None:
    done = crosslane("fuzz", "native", "--state", whole.state, "--status")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "campaign native, seed 'a planted campaign': not at work"
    assert " rounds, " in lines[1]
    assert any(line.startswith("hour of ") for line in lines)
    assert any(line.startswith("2 cells so far: 2 ran; ") for line in lines)
    assert any(line.startswith("finding ") for line in lines)


def test_a_campaign_that_is_through_does_nothing_more(whole: Campaign) -> None:
    before = whole.counts()
    done = whole.run("--count", str(COUNT))
    assert done.returncode == 1
    assert whole.counts() == before


def test_killed_again_and_again_it_has_the_counts_and_findings_of_one_that_was_not(
    whole: Campaign, tmp_path: Path
) -> None:
    campaign = other(whole, tmp_path)
    for delay_s in (0.05, 0.0):
        assert kill_once(campaign, ("--count", str(COUNT)), rounds_of(campaign), delay_s)
    done = campaign.run("--count", str(COUNT))
    assert done.returncode == 1, done.stderr
    assert campaign.counts() == whole.counts()
    assert campaign.findings() == whole.findings()


def test_the_number_of_workers_changes_nothing(whole: Campaign, tmp_path: Path) -> None:
    campaign = other(whole, tmp_path)
    assert campaign.run("--count", str(COUNT), "--jobs", "1").returncode == 1
    assert campaign.counts() == whole.counts()
    assert campaign.findings() == whole.findings()


def session(leader: int) -> list[int]:
    """Processes of a session, by what /proc says."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == leader and fields[0] != "Z":
                    found.append(int(entry.name))
    return found


def until_gone(leader: int) -> bool:
    end = time.monotonic() + 15
    while session(leader):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def shims(leader: int) -> list[int]:
    found = []
    for pid in session(leader):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if any(word.endswith(b"/shim") for word in words):
                found.append(pid)
    return found


def test_shims_killed_from_outside_make_no_finding_and_lose_none(whole: Campaign, tmp_path: Path) -> None:
    campaign = other(whole, tmp_path)
    process = subprocess.Popen(
        campaign.command("--count", str(COUNT)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=dict(os.environ), start_new_session=True,
    )  # fmt: skip
    killed, over = 0, threading.Event()

    def kill_some() -> None:
        nonlocal killed
        luck = random.Random(1)  # noqa: S311 - whom to kill is no secret
        while not over.wait(0.2):
            for pid in luck.sample(found := shims(process.pid), min(2, len(found))):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1

    killer = threading.Thread(target=kill_some)
    killer.start()
    out, _ = process.communicate(timeout=200)
    over.set()
    killer.join()
    assert killed > 0
    assert process.returncode == 1, out
    assert campaign.counts() == whole.counts()
    assert campaign.findings() == whole.findings()


def test_a_worker_that_is_killed_is_replaced(whole: Campaign, tmp_path: Path) -> None:
    campaign = other(whole, tmp_path)
    process = subprocess.Popen(
        campaign.command("--count", str(COUNT)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=dict(os.environ), start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + 30
    while not shims(process.pid) and time.monotonic() < end:
        time.sleep(0.05)
    parents = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in shims(process.pid)}
    os.kill(min(parents - {process.pid}), signal.SIGKILL)
    out, _ = process.communicate(timeout=200)
    assert process.returncode == 1, out
    assert campaign.counts() == whole.counts()
    assert campaign.findings() == whole.findings()


def test_an_interrupt_keeps_what_was_done_and_leaves_no_process(whole: Campaign, tmp_path: Path) -> None:
    campaign = other(whole, tmp_path)
    process = subprocess.Popen(
        campaign.command("--for", "1h"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=dict(os.environ), start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with contextlib.suppress(BadInput):
            if read_state(campaign.state)[0].totals.rounds >= 2:
                break
        time.sleep(0.1)
    status = crosslane("fuzz", "native", "--state", campaign.state, "--status")
    assert f"at work (process {process.pid})" in status.stdout
    beside = campaign.run("--count", "1")
    assert beside.returncode == 2
    assert f"another campaign is at work on this state (process {process.pid})" in beside.stderr
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")
    rounds = read_state(campaign.state)[0].totals.rounds
    assert out.splitlines()[-1] == f"interrupted, with {rounds} rounds kept; the same command goes on"
    assert until_gone(process.pid)


def test_it_ends_when_the_time_is_over(whole: Campaign, tmp_path: Path) -> None:
    campaign = other(whole, tmp_path)
    begun = time.monotonic()
    assert campaign.run("--for", "2s").returncode in (0, 1)
    assert time.monotonic() - begun < 60
    assert read_state(campaign.state)[0].totals.rounds > 0


def test_findings_that_cannot_be_written_end_it_before_the_round_is_kept(whole: Campaign, tmp_path: Path) -> None:
    campaign = other(whole, tmp_path)
    in_the_way = campaign.folder / "findings" / ".lock"
    in_the_way.mkdir(parents=True)
    done = campaign.run("--count", str(COUNT))
    assert done.returncode == 3
    assert "the findings cannot be written (Is a directory): make it writable, or name another folder" in done.stderr
    assert "Traceback" not in done.stderr
    assert read_state(campaign.state)[0].totals.rounds == 0
    in_the_way.rmdir()
    assert campaign.run("--count", str(COUNT)).returncode == 1
    assert campaign.counts() == whole.counts()
    assert campaign.findings() == whole.findings()


def test_the_disk_workload_is_a_campaign(tmp_path: Path) -> None:
    state = tmp_path / "disk.sqlite"
    arguments = (
        "fuzz", "disk", "--cell", f"xts(sm4)/*@{NATIVE}", "--cell", f"cbc(sm4)/sm4-generic@{EMULATED}",
        "--state", state, "--findings", tmp_path / "findings", "--seed", "disks", "--count",
    )  # fmt: skip
    first = crosslane(*arguments, "6000")
    assert first.returncode == 0, first.stdout + first.stderr
    before = read_state(state)[0]
    second = crosslane(*arguments, "12000")
    assert second.returncode == 0, second.stdout + second.stderr
    after = read_state(state)[0]
    assert after.totals.planned >= 12000 > before.totals.planned >= 6000
    assert after.totals.comparisons == after.totals.planned
    assert {cell.state for cell in after.cells.values()} == {"ran"}
    assert all(after.batches[name] > before.batches[name] for name in before.batches)


def test_a_fault_in_sectors_is_found_by_the_disk_campaign_and_repeats(tmp_path: Path) -> None:
    plant = SECTORS[0]
    places = ("--impls", sow(tmp_path / "impls", [plant]), "--findings", tmp_path / "findings")
    state = tmp_path / "disk.sqlite"
    cell = f"{plant.algorithm}/{plant.driver}@{NATIVE}"
    done = crosslane("fuzz", "disk", "--cell", cell, "--count", "1", "--state", state, "--jobs", "1", *places)
    assert done.returncode == 1, done.stdout + done.stderr
    (finding,) = read_state(state)[0].findings
    assert finding.text.startswith(f"{plant.driver}, {plant.algorithm}, ")
    assert crosslane("repro", finding.id, *places).returncode == 1


# --- wrong use: one sentence ---


def test_an_unknown_campaign_names_the_nearest() -> None:
    assert "there is no campaign 'everythin'; nearest are everything" in refused("everythin")
    names = ", ".join(campaign_names(data_root()))
    assert f"there is no campaign 'zzz'; allowed are {names}" in refused("zzz")


@pytest.mark.parametrize("text", ["soon", "8", "8 h", "-8h", "8h30", "h", "", "0s", "1.5h", "8h\n", "9999999999h"])
def test_a_duration_of_garbage_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"is no (duration|time at all): give "):
        parse_duration(text)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("45m", 2700), ("8h", 28800), ("1d12h", 129600)])
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


def test_options_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    assert "--for and --count both say when to end: give one of them" in refused("--for", "8h", "--count", "5")
    assert "'soon' is no duration" in refused("--for", "soon", cwd=tmp_path)
    assert "--status runs nothing: give it a campaign or --state" in refused("--status", "--count", "5")
    assert "there is no such state: start the campaign with `crosslane fuzz`" in refused("--status", cwd=tmp_path)
    state = ("--state", tmp_path / "x.sqlite")
    assert "the seed is empty" in refused("native", "--seed", " ", *state)
    assert "--jobs 1000: a campaign has at most 32 workers" in refused("native", "--jobs", "1000", *state)
    assert "the pattern 'nosuch' matches nothing" in refused("native", "--cell", "nosuch", *state)
    assert "but none in the lanes" in refused("native", "--cell", f"*@{EMULATED}", *state)
    assert not list(tmp_path.iterdir())
    assert "no cell of the campaign libraries is left to run" in refused(
        "libraries", "--cell", f"ctr(sm4)/sm4-generic@{NATIVE}", "--state", tmp_path / "y.sqlite"
    )


def test_every_campaign_can_be_read_and_has_the_name_of_its_file() -> None:
    names = campaign_names(data_root())
    assert {"everything", "native", "emulated", "libraries", "disk", "weekly"} <= set(names)
    for name in names:
        campaign = load_campaign(data_root(), name)
        assert campaign.name == name
        assert campaign.num_cells > 0


GOOD = CAMPAIGN.format(count=64)


def test_a_campaign_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    assert load_campaign(data_root(), str(path)).counts.native == 64
    state = tmp_path / "x.sqlite"
    done = crosslane("fuzz", path, "--cell", f"ctr(sm4)/sm4-generic@{NATIVE}", "--state", state, "--count", "300")
    assert done.returncode == 0, done.stderr
    assert read_state(state)[0].totals.comparisons == 320


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("gate = true", "gate = true\nspeed = 9", "unknown key 'speed'; allowed are title, workload"),
        ("gate = true", "", "the key 'gate' is missing; add it (true or false)"),
        ('"cases"', '"tapes"', "workload has 'tapes'; allowed are cases, disk"),
        ("native = 64", "native = 0", "[round]: native has 0; the least allowed is 1"),
        ("native = 64", "native = 64\nfast = 1", "[round]: unknown key 'fast'"),
        ("[round]", "[rounds]", "the table [round] is missing; add it"),
        ('["*_native"]', "[]", "it needs 1 or more of"),
        ("title = ", "title = = ", "malformed TOML"),
    ],
)
def test_a_campaign_file_that_is_wrong_is_refused(tmp_path: Path, before: str, after: str, words: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace(before, after, 1))
    with pytest.raises(BadInput) as caught:
        read_campaign(path)
    assert words in str(caught.value)


def test_a_campaign_file_whose_name_is_none_or_that_is_not_there_is_refused(tmp_path: Path) -> None:
    shutil.copy(data_root() / "fuzz" / "campaigns" / "native.toml", tmp_path / "My Own.toml")
    with pytest.raises(BadInput, match="consists of a-z, 0-9 and _; rename the file"):
        read_campaign(tmp_path / "My Own.toml")
    with pytest.raises(BadInput, match="cannot be read"):
        load_campaign(data_root(), str(tmp_path / "nosuch.toml"))
