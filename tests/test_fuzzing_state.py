# SPDX-License-Identifier: Apache-2.0
"""The state of a campaign: whole or not there, held by one process, and what is said where it cannot be used."""

from __future__ import annotations

import fcntl
import os
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from crosslane.errors import BadInput, HarnessFault
from crosslane.findings.record import Key, Record
from crosslane.findings.record import State as Kept
from crosslane.fuzzing import state as module
from crosslane.fuzzing.facts import CellOutcome, Outcome
from crosslane.fuzzing.state import State, read_state
from crosslane.fuzzing.status import status_lines

CELL = "ctr(sm4)/sm4-generic@x86_64_native"


def outcome(number: int, *, digest: str = "d", state: str = "ran", departed: int = 0) -> Outcome:
    kinds = (("disagree output alone", departed),) if departed else ()
    cell = CellOutcome(CELL, digest, state, "", 64, departed, (("1way", "2-3"), ("2way", "4-7")), kinds, 0.25)
    return Outcome(number, "ctr(sm4)", 8 * number, 64, (cell,), 1.0, 2.0)


def record(state: Kept = "open") -> Record:
    return Record(
        Key("sm4-x", "ctr(sm4)", "output", "partial"), state, "disagree", "byte 1 differs", (CELL,), "generic",
        shrunk=True, rate=1.0, from_case="a-0-1", impls=(), first_revision="", last_revision="", fixed_revision="",
        case_sha256="", repro_sha256="",
    )  # fmt: skip


def opened(path: Path, seed: str | None = None, campaign: str = "native") -> State:
    return State(path, campaign, seed, "a default")


def filled(path: Path, rounds: int = 3) -> None:
    with opened(path) as state:
        for number in range(1, rounds + 1):
            state.commit(outcome(number), (), ())


def refused(path: Path, seed: str | None = None, campaign: str = "native") -> str:
    with pytest.raises(BadInput) as caught, opened(path, seed, campaign):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_was_committed_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with opened(path, "a sentence") as state:
        assert (state.snapshot.seed, state.snapshot.totals.rounds) == ("a sentence", 0)
        state.commit(outcome(1, departed=3), [(CELL, record()), (CELL, record())], [("cell", "why")])
        state.commit(outcome(2, departed=2), [(CELL, record("accepted"))], ())
    snapshot, holder = read_state(path)
    assert holder == 0
    assert (snapshot.totals.rounds, snapshot.totals.comparisons, snapshot.totals.departed) == (2, 128, 5)
    assert snapshot.batches == {"ctr(sm4)": 16}
    facts = snapshot.cells[CELL]
    assert (facts.rounds, facts.last_round, facts.digest, facts.cpu_s) == (2, 2, "d", 0.5)
    assert snapshot.reached[CELL] == {("1way", "2-3"): 1, ("2way", "4-7"): 1}
    assert snapshot.kinds[CELL] == {"disagree output alone": 1}
    (finding,) = snapshot.findings
    assert (finding.sightings, finding.first_round, finding.last_round, finding.accepted) == (2, 1, 2, True)
    assert snapshot.left == (("cell", "why"),)
    with opened(path) as again:
        assert again.snapshot == snapshot


def test_other_code_makes_what_was_reached_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with opened(path) as state:
        state.commit(outcome(1, departed=1), (), ())
        state.commit(outcome(2, digest="new"), (), ())
    snapshot, _ = read_state(path)
    assert set(snapshot.reached[CELL].values()) == {2}
    assert snapshot.kinds == {}


def test_the_round_since_which_a_cell_declines_is_known(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    declined = []
    with opened(path) as state:
        for number, (digest, what) in enumerate(
            [("d", "ran"), ("d", "declined"), ("d", "declined"), ("e", "declined"), ("e", "ran")], 1
        ):
            state.commit(outcome(number, digest=digest, state=what), (), ())
            declined.append(read_state(path)[0].cells[CELL].declined)
    assert declined == [0, 2, 2, 4, 0]


def test_a_round_out_of_order_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with opened(path) as state:
        state.commit(outcome(1), (), ())
        before = read_state(path)[0]
        with pytest.raises(HarnessFault, match="not at the round before 3"):
            state.commit(outcome(3), (), ())
        assert read_state(path)[0] == before


def test_a_transaction_that_fails_in_its_middle_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.sqlite"
    with opened(path) as state:
        state.commit(outcome(1), (), ())
        before = read_state(path)[0]

        def broken(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(State, "_note_hour", broken)
        with pytest.raises(KeyboardInterrupt):
            state.commit(outcome(2), (), ())
        assert read_state(path)[0] == before
        monkeypatch.undo()
        state.commit(outcome(2), (), ())
    assert read_state(path)[0].totals.rounds == 2


def test_status_is_read_while_a_campaign_writes(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with opened(path) as state:
        for number in range(1, 20):
            state.commit(outcome(number), (), ())
            snapshot, holder = read_state(path)
            assert (snapshot.totals.rounds, holder) == (number, os.getpid())


def test_two_campaigns_on_one_state_are_one_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOCK_PATIENCE_S", 0.1)
    path = tmp_path / "x.sqlite"
    with opened(path):
        text = refused(path)
        assert f"another campaign is at work on this state (process {os.getpid()}): wait for it, or give" in text
        with opened(tmp_path / "y.sqlite"):
            pass
    with opened(path):
        pass


def test_a_state_is_of_one_campaign_and_one_seed(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    filled(path)
    assert "is the state of the campaign native, not of disk: name another file" in refused(path, campaign="disk")
    assert "was begun with the seed 'a default': leave --seed out" in refused(path, "another")
    with opened(path, "a default"):
        pass


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"x" * 5000, "is damaged or no state of a campaign (file is not a database): restore it, or begin anew"),
        (b"SQLite format 3\0" + b"\xff" * 5000, "is damaged or no state of a campaign ("),
    ],
)
def test_a_file_of_garbage_is_no_state(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(content)
    assert words in refused(path)
    with pytest.raises(BadInput) as caught:
        read_state(path)
    assert words in str(caught.value)
    assert path.read_bytes() == content


@pytest.mark.parametrize("at", [1, 2, 3, 5, 7])
def test_a_damaged_page_is_noticed(tmp_path: Path, at: int) -> None:
    path = tmp_path / "x.sqlite"
    filled(path)
    data = bytearray(path.read_bytes())
    assert len(data) > (at + 1) * 4096
    data[at * 4096 : at * 4096 + 2048] = b"\xa5" * 2048
    path.write_bytes(data)
    assert "is damaged or no state of a campaign (" in refused(path)


def test_half_a_database_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    filled(path)
    path.write_bytes(path.read_bytes()[:8192])
    assert "is damaged or no state of a campaign (" in refused(path)


def test_a_newer_schema_and_somebody_elses_database_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    assert "has the schema version 2, and this crosslane knows 1: use the crosslane that wrote it" in refused(path)
    other = tmp_path / "y.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    assert "is a database of something else, not the state of a campaign: name another with --state" in refused(other)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("DELETE FROM campaign", "the row of the campaign is missing"),
        ("DROP TABLE hours", "its tables are not those of a campaign"),
        ("ALTER TABLE cells ADD COLUMN more INTEGER", "its tables are not those of a campaign"),
        ("ALTER TABLE left_over ADD COLUMN more INTEGER", "its tables are not those of a campaign"),
        ("UPDATE campaign SET clock_s = 1e15", "it holds a time behind the year 9998"),
        ("UPDATE campaign SET clock_s = 1e20", "campaign holds a number that no campaign comes to"),
        ("UPDATE campaign SET clock_s = -1e20", "campaign holds a number that no campaign comes to"),
        ("UPDATE campaign SET rounds = -1", "campaign holds a number that no campaign comes to"),
        ("UPDATE campaign SET cpu_s = 9e999", "campaign holds a number that no campaign comes to"),
        ("UPDATE cells SET last_s = 1e15", "it holds a time behind the year 9998"),
        ("UPDATE cells SET last_round = 9223372036854775807", "cells holds a number that no campaign comes to"),
        ("INSERT INTO hours VALUES (9223372036854775807, 1, 1, 1)", "hours holds a number that no campaign comes to"),
        ("INSERT INTO hours VALUES (1000000000000000, 1, 1, 1)", "it holds a time behind the year 9998"),
    ],
)
def test_a_database_that_somebody_changed_is_one_sentence(tmp_path: Path, change: str, words: str) -> None:
    path = tmp_path / "x.sqlite"
    filled(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(change)
        connection.commit()
    words = f"x.sqlite: is damaged or no state of a campaign ({words}): restore it, or begin anew"
    assert words in refused(path)
    with pytest.raises(BadInput) as caught:
        list(status_lines(*read_state(path)))
    assert words in str(caught.value)


@contextmanager
def full_disk(limit: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_one_sentence_and_loses_no_round_that_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with opened(path) as state:
        state.commit(outcome(1), (), ())
        wal = path.with_name("x.sqlite-wal").stat().st_size
        with full_disk(wal + 100), pytest.raises(HarnessFault) as caught:
            state.commit(outcome(2), (), ())
        text = str(caught.value)
        assert "the state cannot be written (" in text
        assert "free some space and start the campaign again, which goes on behind the last round" in text
        assert read_state(path)[0].totals.rounds == 1
        state.commit(outcome(2), (), ())
    assert read_state(path)[0].totals.rounds == 2


def test_a_state_that_was_begun_for_nothing_is_taken_away_and_an_older_one_is_not(tmp_path: Path) -> None:
    path, older = tmp_path / "x.sqlite", tmp_path / "older" / "y.sqlite"
    filled(older)
    before = sorted(older.parent.iterdir())
    for place in (path, older):
        with pytest.raises(BadInput, match="nonsense"), opened(place) as state, state.tentative():
            raise BadInput("the pattern 'nonsense' matches nothing")
    assert list(tmp_path.iterdir()) == [older.parent]
    assert sorted(older.parent.iterdir()) == before
    assert read_state(older)[0].totals.rounds == 3


def test_the_status_of_a_campaign_without_a_round_has_no_time(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with opened(path):
        lines = list(status_lines(*read_state(path)))
    at_work = f"campaign native, seed 'a default': at work (process {os.getpid()})"
    assert lines == [at_work, "no round has come to its end yet"]
    filled(path, 1)
    assert list(status_lines(*read_state(path)))[1].startswith("1 round, 64 comparisons, 0 cases departed, 0 cells ")


def test_a_lock_that_its_holder_takes_away_holds_nobody_else(tmp_path: Path) -> None:
    path, lock = tmp_path / "x.sqlite", tmp_path / "x.sqlite.lock"
    holder = os.open(lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(holder, fcntl.LOCK_EX)

    def take_away() -> None:
        lock.unlink()
        os.close(holder)

    taken = threading.Timer(0.3, take_away)
    taken.start()
    with opened(path):
        assert lock.read_text() == f"{os.getpid()}\n"
        assert "another campaign is at work on this state" in refused(path)
    taken.join()


READ_ONLY = """
import sys
from pathlib import Path
from crosslane.errors import CrosslaneError
from crosslane.fuzzing.state import State, read_state
path = Path(sys.argv[1])
print(read_state(path)[0].totals.rounds)
try:
    State(path, "native", None, "x")
except CrosslaneError as error:
    print(error.exit_status, error)
"""


def test_a_folder_that_cannot_be_written_is_one_sentence_and_its_status_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "states" / "x.sqlite"
    path.parent.mkdir()
    filled(path)
    command = [sys.executable, "-c", READ_ONLY, str(path)]
    if os.geteuid() == 0:  # whom permissions do not stop: a mount of its own does
        where = str(path.parent)
        mounts = f'mount --bind {where} {where} && mount -o remount,bind,ro {where} && exec "$@"'
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", mounts, "sh", *command]
    else:
        path.parent.chmod(0o555)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0 and "unshare" in done.stderr:
        pytest.fail(f"this test needs to mount: {done.stderr}")
    rounds, sentence = done.stdout.splitlines()
    assert rounds == "3"
    assert sentence.startswith("2 ")
    assert "make the folder of the state writable, or name another file with --state" in sentence


def test_a_clock_that_goes_back_makes_no_negative_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.sqlite"
    filled(path, 1)
    before = read_state(path)[0].totals.clock_s
    monkeypatch.setattr(time, "time", lambda: before - 86400.0)
    with opened(path) as state:
        assert state.notes == ("the clock of this machine went back by 86,400 s: ages go on from what the state has",)
        assert state.commit(outcome(2), (), ()) >= before
        monkeypatch.setattr(time, "time", lambda: 0.0)  # while it runs a jump has no effect at all
        assert before <= state.commit(outcome(3), (), ()) < before + 60
    snapshot, _ = read_state(path)
    assert snapshot.totals.clock_s >= snapshot.cells[CELL].last_s >= before


def test_nothing_but_hours_grows_with_rounds_and_hours_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.sqlite"
    monkeypatch.setattr(module, "_MOST_HOURS", 10)
    monkeypatch.setattr(time, "time", lambda: 490_000 * 3600.0)  # two rounds an hour, and one in the last
    with opened(path) as state:
        for number in range(1, 1001):
            state._clock_s += 1800.0
            state.commit(outcome(number), (), ())
        size = path.stat().st_size + path.with_name("x.sqlite-wal").stat().st_size
    snapshot, _ = read_state(path)
    assert len(snapshot.hours) == 11
    assert sum(hour.rounds for hour in snapshot.hours) in (21, 22)  # by the half of an hour in which this runs
    assert size < 6 << 20
    assert path.stat().st_size < 1 << 17
