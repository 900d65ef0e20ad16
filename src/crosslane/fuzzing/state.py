# SPDX-License-Identifier: Apache-2.0
"""The state of a campaign: one SQLite database (WAL), in which a round is whole or not at all.

Rounds are committed in the order of their numbers, each in one transaction, after what they found has been kept. So
whatever ends the process, and whenever, the state stands at the end of a round, and the next process goes on with the
round behind it. Nothing in it grows with time but the throughput of hours, of which the last ``_MOST_HOURS`` are kept.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Self

from crosslane.data import shown
from crosslane.errors import BadInput, CrosslaneError, HarnessFault
from crosslane.findings.record import Record
from crosslane.fuzzing.facts import CellFacts, CellOutcome, Hour, KeptFinding, Outcome, Snapshot, Totals

__all__ = ["SCHEMA_VERSION", "State", "read_state"]

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x584C465A
_MOST_HOURS = 24 * 92
_HOUR_S = 3600
_LOCK_PATIENCE_S = 1.0
_BUSY_S = 30.0
_MOST = 1 << 53
"""Above every count and time of a campaign."""
_MOST_CLOCK_S = 253_370_764_800.0
"""The beginning of the year 9999, in seconds since the epoch."""

_SCHEMA = """
CREATE TABLE campaign (
    id INTEGER PRIMARY KEY CHECK (id = 0), name TEXT NOT NULL, seed TEXT NOT NULL,
    rounds INTEGER NOT NULL, planned INTEGER NOT NULL, comparisons INTEGER NOT NULL, departed INTEGER NOT NULL,
    void INTEGER NOT NULL, busy_s REAL NOT NULL, cpu_s REAL NOT NULL, clock_s REAL NOT NULL) STRICT;
CREATE TABLE plans (name TEXT PRIMARY KEY, next_batch INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE cells (
    cell TEXT PRIMARY KEY, rounds INTEGER NOT NULL, comparisons INTEGER NOT NULL, departed INTEGER NOT NULL,
    last_round INTEGER NOT NULL, last_s REAL NOT NULL, digest TEXT NOT NULL, state TEXT NOT NULL,
    reason TEXT NOT NULL, cpu_s REAL NOT NULL, declined INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE paths (
    cell TEXT NOT NULL, path TEXT NOT NULL, class TEXT NOT NULL, first_round INTEGER NOT NULL,
    PRIMARY KEY (cell, path, class)) STRICT, WITHOUT ROWID;
CREATE TABLE kinds (
    cell TEXT NOT NULL, kind TEXT NOT NULL, first_round INTEGER NOT NULL, cases INTEGER NOT NULL,
    PRIMARY KEY (cell, kind)) STRICT, WITHOUT ROWID;
CREATE TABLE findings (
    id TEXT PRIMARY KEY, text TEXT NOT NULL, accepted INTEGER NOT NULL, first_round INTEGER NOT NULL,
    last_round INTEGER NOT NULL, sightings INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE left_over (cell TEXT PRIMARY KEY, reason TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE hours (
    begin_s INTEGER PRIMARY KEY, rounds INTEGER NOT NULL, comparisons INTEGER NOT NULL, cpu_s REAL NOT NULL) STRICT;
"""
_UNREADABLE = {"SQLITE_CORRUPT", "SQLITE_NOTADB"}
_REFUSED = {"SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"}


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what SQLite refuses into one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        raise _as_sentence(path, error) from None


def _as_sentence(path: Path, error: sqlite3.Error) -> CrosslaneError:
    name = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
    if name in _UNREADABLE or (isinstance(error, sqlite3.OperationalError) and "no such" in str(error)):
        return _damaged(path, str(error))
    if name in _REFUSED:
        return BadInput(
            f"{shown(path)}: cannot be opened and written as the state of a campaign ({error}): make the file and its "
            "folder writable, or name another with --state"
        )
    cure = "free some space" if name in ("SQLITE_FULL", "SQLITE_IOERR") else "remedy that"
    return HarnessFault(
        f"{shown(path)}: the state cannot be written ({error}): {cure} and start the campaign again, which goes on "
        "behind the last round that was kept"
    )


def _damaged(path: Path, why: str) -> BadInput:
    return BadInput(
        f"{shown(path)}: is damaged or no state of a campaign ({why}): restore it, or begin anew with another file "
        "given with --state; what was found is in the folder of findings"
    )


class State:
    """The state of one campaign, held by this process alone. Use as a context manager."""

    def __init__(self, path: Path, campaign: str, seed: str | None, default_seed: str) -> None:
        """Open or begin it; ``seed`` is what the user asks for, None for whatever it was begun with.

        Raises BadInput where another process has it, where it is of another campaign or seed, or no state at all.
        """
        self.path = path
        self._lock = _locked(path)
        self._begun_here = not path.exists()
        try:
            with _explained(path):
                self._connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
                _prepare(self._connection, path, campaign, seed or default_seed)
            self.snapshot = _read(self._connection, path)
            self._check(campaign, seed)
        except BaseException:
            self.close()
            raise
        self.notes = _clock_notes(self.snapshot)
        self._clock_s = max(self.snapshot.totals.clock_s, time.time())
        self._seen_s = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def tentative(self) -> Iterator[None]:
        """Where what is done in it fails, a state that was begun here is taken away again: nothing has run from it."""
        try:
            yield
        except BaseException:
            if self._begun_here:
                self._connection.close()
                for suffix in ("", "-wal", "-shm", ".lock"):
                    self.path.with_name(f"{self.path.name}{suffix}").unlink(missing_ok=True)
            raise

    def close(self) -> None:
        """Give the database back, and the lock."""
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()
        os.close(self._lock) if self._lock >= 0 else None
        self._lock = -1

    def _check(self, campaign: str, seed: str | None) -> None:
        found = self.snapshot
        if found.campaign != campaign:
            raise BadInput(
                f"{shown(self.path)}: is the state of the campaign {found.campaign}, not of {campaign}: name another "
                "file with --state, or the other campaign"
            )
        if seed is not None and seed != found.seed:
            raise BadInput(
                f"{shown(self.path)}: was begun with the seed {found.seed!r}: leave --seed out to go on, or name "
                "another file with --state to begin anew"
            )

    def now_s(self) -> float:
        """The state's clock: what the system's said at the beginning, and the time that has passed since."""
        passed, self._seen_s = time.monotonic() - self._seen_s, time.monotonic()
        self._clock_s += max(0.0, passed)
        return self._clock_s

    def commit(
        self, outcome: Outcome, sightings: Sequence[tuple[str, Record]], failed: Sequence[tuple[str, str]]
    ) -> float:
        """Note a round, in one transaction; returns the state's clock. Raises HarnessFault where that cannot be."""
        now = self.now_s()
        with _explained(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._note(outcome, now)
                for cell in outcome.cells:
                    self._note_cell(outcome.number, cell, now)
                self._note_findings(outcome.number, sightings, failed)
                self._note_hour(outcome, now)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        return now

    def _note(self, outcome: Outcome, now: float) -> None:
        void = sum(cell.state in ("void", "not_run") for cell in outcome.cells)
        departed = sum(cell.departed for cell in outcome.cells)
        changed = self._connection.execute(
            "UPDATE campaign SET rounds = rounds + 1, planned = planned + ?, comparisons = comparisons + ?, "
            "departed = departed + ?, void = void + ?, busy_s = busy_s + ?, cpu_s = cpu_s + ?, clock_s = ? "
            "WHERE rounds = ?",
            (
                outcome.planned, outcome.comparisons, departed, void, outcome.took_s, outcome.cpu_s, now,
                outcome.number - 1,
            ),
        )  # fmt: skip
        if changed.rowcount != 1:
            raise HarnessFault(f"{shown(self.path)}: is not at the round before {outcome.number}: report this")
        self._connection.execute(
            "INSERT INTO plans VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET next_batch = excluded.next_batch",
            (outcome.plan, outcome.next_batch),
        )

    def _note_cell(self, number: int, cell: CellOutcome, now: float) -> None:
        run = self._connection.execute
        known = run("SELECT digest, declined FROM cells WHERE cell = ?", (cell.cell,)).fetchone()
        declined = 0
        if cell.state == "declined":
            declined = known[1] if known and known[1] and known[0] == cell.digest else number
        if known and known[0] != cell.digest:  # other code: what is known of its paths was of the former one
            run("DELETE FROM paths WHERE cell = ?", (cell.cell,))
            run("DELETE FROM kinds WHERE cell = ?", (cell.cell,))
        run(
            "INSERT INTO cells VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (cell) DO UPDATE SET "
            "rounds = rounds + 1, comparisons = comparisons + excluded.comparisons, "
            "departed = departed + excluded.departed, last_round = excluded.last_round, last_s = excluded.last_s, "
            "digest = excluded.digest, state = excluded.state, reason = excluded.reason, "
            "cpu_s = cpu_s + excluded.cpu_s, declined = excluded.declined",
            (
                cell.cell, cell.comparisons, cell.departed, number, now, cell.digest, cell.state, cell.reason,
                cell.cpu_s, declined,
            ),
        )  # fmt: skip
        self._connection.executemany(
            "INSERT INTO paths VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            [(cell.cell, path, length_class, number) for path, length_class in cell.taken],
        )
        self._connection.executemany(
            "INSERT INTO kinds VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET cases = cases + excluded.cases",
            [(cell.cell, kind, number, cases) for kind, cases in cell.kinds],
        )

    def _note_findings(
        self, number: int, sightings: Sequence[tuple[str, Record]], failed: Sequence[tuple[str, str]]
    ) -> None:
        for record in {record.id: record for _, record in sightings}.values():
            key = record.key
            text = f"{key.implementation}, {key.algorithm}, {key.symptom}, {key.fault_class}: {record.text}"
            self._connection.execute(
                "INSERT INTO findings VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT (id) DO UPDATE SET text = excluded.text, "
                "accepted = excluded.accepted, last_round = excluded.last_round, sightings = sightings + 1",
                (record.id, text, record.state == "accepted", number, number),
            )
        self._connection.executemany(
            "INSERT INTO left_over VALUES (?, ?) ON CONFLICT (cell) DO UPDATE SET reason = excluded.reason", failed
        )

    def _note_hour(self, outcome: Outcome, now: float) -> None:
        begin = int(now) // _HOUR_S * _HOUR_S
        self._connection.execute(
            "INSERT INTO hours VALUES (?, 1, ?, ?) ON CONFLICT (begin_s) DO UPDATE SET rounds = rounds + 1, "
            "comparisons = comparisons + excluded.comparisons, cpu_s = cpu_s + excluded.cpu_s",
            (begin, outcome.comparisons, outcome.cpu_s),
        )
        self._connection.execute("DELETE FROM hours WHERE begin_s < ?", (begin - _MOST_HOURS * _HOUR_S,))


def _clock_notes(snapshot: Snapshot) -> tuple[str, ...]:
    """Says where the system's clock lies before the state's."""
    behind = snapshot.totals.clock_s - time.time()
    if behind < 1:
        return ()
    return (f"the clock of this machine went back by {behind:,.0f} s: ages go on from what the state has",)


def _locked(path: Path) -> int:
    """Take the lock beside a state, in which the holder's process id stands; raises BadInput."""
    lock = path.with_name(f"{path.name}.lock")
    end = time.monotonic() + _LOCK_PATIENCE_S  # one who asks for the status holds it for a moment
    while True:
        descriptor = _opened(path, lock)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
            if time.monotonic() > end:
                os.close(descriptor)
                raise BadInput(
                    f"{shown(path)}: another campaign is at work on this state (process {holder}): wait for it, or "
                    "give this one a state of its own with --state"
                ) from None
        else:
            if os.fstat(descriptor).st_nlink:  # else its holder took it away while this one opened it
                break
        os.close(descriptor)
        time.sleep(0.05)
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        os.close(descriptor)
        raise HarnessFault(
            f"{shown(lock)}: cannot be written ({error.strerror}): free some space and start the campaign again"
        ) from None
    return descriptor


def _opened(path: Path, lock: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise BadInput(
            f"{shown(lock)}: cannot be written ({error.strerror}): make the folder of the state writable, or name "
            "another file with --state"
        ) from None


def _prepare(connection: sqlite3.Connection, path: Path, campaign: str, seed: str) -> None:
    """Make a new database's tables, or see that they are ours."""
    run = connection.execute
    if not run("PRAGMA page_count").fetchone()[0]:
        run("PRAGMA journal_mode = WAL")
        run("BEGIN IMMEDIATE")
        for statement in filter(str.strip, _SCHEMA.split(";")):
            run(statement)
        run("INSERT INTO campaign VALUES (0, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0)", (campaign, seed))
        run(f"PRAGMA application_id = {_APPLICATION_ID}")
        run(f"PRAGMA user_version = {SCHEMA_VERSION}")
        run("COMMIT")
    _check_schema(connection, path)
    (checked,) = run("PRAGMA quick_check(1)").fetchone()
    if checked != "ok":
        raise _damaged(path, checked.splitlines()[-1])
    run("PRAGMA journal_mode = WAL")
    run("PRAGMA synchronous = NORMAL")


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if application != _APPLICATION_ID:
        raise BadInput(
            f"{shown(path)}: is a database of something else, not the state of a campaign: name another with --state"
        )
    if version != SCHEMA_VERSION:
        raise BadInput(
            f"{shown(path)}: has the schema version {version}, and this crosslane knows {SCHEMA_VERSION}: use the "
            "crosslane that wrote it, or begin anew with another file given with --state"
        )
    if _tables(connection) != _our_tables():
        raise _damaged(path, "its tables are not those of a campaign")


def _tables(connection: sqlite3.Connection) -> dict[str, str]:
    """The tables of a database, as they were declared."""
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
    return {name: " ".join(sql.split()) for name, sql in rows}


@cache
def _our_tables() -> dict[str, str]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        return _tables(connection)


def _read(connection: sqlite3.Connection, path: Path) -> Snapshot:
    """All that a database holds; raises BadInput where it is damaged."""

    def run(query: str) -> list[tuple[Any, ...]]:
        rows = connection.execute(query).fetchall()
        if any(not 0 <= value < _MOST for row in rows for value in row if isinstance(value, int | float)):
            raise _damaged(path, f"{query.split()[3]} holds a number that no campaign comes to")
        return rows

    with _explained(path):
        totals = run("SELECT * FROM campaign")
        if not totals:
            raise _damaged(path, "the row of the campaign is missing")
        name, seed, *sums = totals[0][1:]
        reached: dict[str, dict[tuple[str, str], int]] = {}
        for cell, taken, length_class, first in run("SELECT * FROM paths"):
            reached.setdefault(cell, {})[taken, length_class] = first
        kinds: dict[str, dict[str, int]] = {}
        for cell, kind, first, _ in run("SELECT * FROM kinds"):
            kinds.setdefault(cell, {})[kind] = first
        hours = tuple(Hour(*row) for row in run("SELECT * FROM hours ORDER BY begin_s"))
        cells = run("SELECT * FROM cells")
        if max((sums[-1], *(hour.begin_s for hour in hours), *(row[5] for row in cells))) >= _MOST_CLOCK_S:
            raise _damaged(path, "it holds a time behind the year 9998")
        return Snapshot(
            name,
            seed,
            Totals(*sums),
            {row[0]: CellFacts(*row) for row in cells},
            dict(run("SELECT * FROM plans")),
            reached,
            kinds,
            tuple(
                KeptFinding(row[0], row[1], bool(row[2]), *row[3:])
                for row in run("SELECT * FROM findings ORDER BY first_round, id")
            ),
            tuple(run("SELECT * FROM left_over ORDER BY cell")),
            hours,
        )


def read_state(path: Path) -> tuple[Snapshot, int]:
    """A state as it stands, and the process that works on it (0: none); changes nothing. Raises BadInput."""
    if not path.is_file():
        raise BadInput(
            f"{shown(path)}: there is no such state: start the campaign with `crosslane fuzz`, or name its file with "
            "--state"
        )
    holder = _holder(path)
    uri = f"{path.resolve().as_uri()}?mode=ro"
    if not path.with_name(f"{path.name}-wal").exists() and not os.access(path.parent, os.W_OK):
        uri += "&immutable=1"  # a folder in which nobody can write, where the database cannot be locked either
    with _explained(path):
        connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None)
        try:
            _check_schema(connection, path)
            connection.execute("BEGIN")
            return _read(connection, path), holder
        finally:
            connection.close()


def _holder(path: Path) -> int:
    """The process that holds a state's lock, 0 for none."""
    try:
        descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return 0
    except OSError:
        text = os.read(descriptor, 32).decode("ascii", "replace").strip()
        return int(text) if text.isdecimal() else -1
    finally:
        os.close(descriptor)
