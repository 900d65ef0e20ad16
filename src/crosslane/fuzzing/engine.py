# SPDX-License-Identifier: Apache-2.0
"""The engine of a campaign: chooses rounds, has workers run them, keeps what they found, commits them in order.

Workers live as long as the engine does; one that is ended from outside is replaced, and its round begun again. What is
in memory is bounded by ``HORIZON`` rounds and the number of cells.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace

from crosslane.campaign import WORKER_DIED, end_workers
from crosslane.errors import HarnessFault
from crosslane.findings.keep import Keeper
from crosslane.findings.record import Record
from crosslane.fuzzing.choose import HORIZON, Board
from crosslane.fuzzing.facts import Outcome
from crosslane.fuzzing.rounds import Task, begin_round_worker, run_round, task_of
from crosslane.fuzzing.state import State
from crosslane.model import Lane
from crosslane.plan import AlgorithmPlan

__all__ = ["MOST_WORKERS", "Engine", "Limits", "View", "Work"]

MOST_WORKERS = HORIZON
_AHEAD = 2
"""Rounds under way for each worker: the next one waits while it runs one."""
_MOST_DEATHS = 4
"""Times that workers are replaced without a round coming to its end."""
_LOOK_EVERY_S = 0.5


@dataclass(frozen=True)
class Limits:
    """When to end: after so many seconds, or when so many comparisons were asked for in the state; None: never."""

    seconds: float | None = None
    comparisons: int | None = None


@dataclass(frozen=True)
class Work:
    """What a campaign runs: plans in the order of their names' planning, the lanes of their cells, and the workload."""

    plans: tuple[AlgorithmPlan, ...]
    lanes: tuple[Lane, ...]
    workload: str


@dataclass
class View:
    """What a campaign has come to, for those who print it. Counts are of the whole state, ``here`` of this process.

    ``over``: no further round is begun. ``earlier`` has the text of each finding that the state had at the beginning,
    ``findings`` what this process saw.
    """

    rounds: int
    comparisons: int
    void: int
    num_cells: int
    num_run: int = 0
    oldest: int = 0
    under_way: int = 0
    here: int = 0
    over: bool = False
    earlier: dict[str, str] = field(default_factory=dict)
    findings: dict[str, Record] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def num_findings(self) -> int:
        """Findings of the whole state."""
        return len(self.earlier.keys() | self.findings.keys())


class Engine:
    """One campaign at work in this process and its workers."""

    def __init__(self, work: Work, board: Board, state: State, keeper: Keeper, *, num_workers: int) -> None:
        """Nothing is started yet; ``board`` has what the state holds."""
        self._work = work
        self._board = board
        self._state = state
        self._keeper = keeper
        self._num_workers = num_workers
        totals = state.snapshot.totals
        self._next = totals.rounds + 1
        self._committed = totals.rounds
        self._planned = totals.planned
        self._tasks: dict[int, Task] = {}
        self._running: dict[Future[Outcome], int] = {}
        self._done: dict[int, Outcome] = {}
        self._deaths = 0
        self._over = False
        earlier = {finding.id: finding.text for finding in state.snapshot.findings}
        self.view = View(totals.rounds, totals.comparisons, totals.void, len(board.candidates), earlier=earlier)

    def run(self, limits: Limits, tell: Callable[[View], None] = lambda _: None) -> View:
        """Run until a limit, or without end; raises KeyboardInterrupt where it is interrupted.

        Raises HarnessFault where the state or the findings cannot be written, or workers die again and again.
        """
        end = None if limits.seconds is None else time.monotonic() + limits.seconds
        pool = self._pool()
        try:
            while True:
                if end is not None and time.monotonic() >= end and not self._over:
                    self._end_early()
                self._submit(pool, limits)
                if not self._running:
                    return self._look(tell)
                finished, _ = wait(self._running, timeout=_LOOK_EVERY_S, return_when=FIRST_COMPLETED)
                try:
                    for future in finished:
                        self._done[self._running[future]] = future.result()
                        del self._running[future]
                except BrokenProcessPool as error:
                    pool = self._revived(pool, error)
                self._commit_ready()
                self._look(tell)
        except BaseException:
            end_workers(pool)
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._num_workers, mp_context=multiprocessing.get_context("spawn"), initializer=begin_round_worker
        )

    def _end_early(self) -> None:
        """The time is over: rounds that no worker has begun are left to the next process."""
        self._over = True
        for future in [future for future in self._running if future.cancel()]:
            del self._tasks[self._running.pop(future)]

    def _submit(self, pool: ProcessPoolExecutor, limits: Limits) -> None:
        """Have as many rounds under way as keep the workers busy."""
        while len(self._running) < _AHEAD * self._num_workers and self._next <= self._committed + HORIZON:
            if self._over or (limits.comparisons is not None and self._planned >= limits.comparisons):
                return
            choice = self._board.choose(self._next)
            if choice is None:
                self._over = True
                self.view.notes.append("no cell is left to run: all that were chosen decline on this machine")
                return
            task = task_of(self._work.plans, choice, self._work.workload)
            self._tasks[task.number] = task
            self._planned += task.planned
            self._next += 1
            try:
                self._running[pool.submit(run_round, task)] = task.number
            except BrokenProcessPool:
                self._running[_broken()] = task.number

    def _revived(self, pool: ProcessPoolExecutor, error: BrokenProcessPool) -> ProcessPoolExecutor:
        """A new pool in place of one whose worker died, with the rounds that were under way begun again."""
        self._deaths += 1
        if self._deaths > _MOST_DEATHS:
            raise HarnessFault(f"worker processes die again and again ({error}): {WORKER_DIED}") from error
        end_workers(pool)
        pool.shutdown(wait=False, cancel_futures=True)
        new = self._pool()
        numbers = sorted(self._running.values())
        self._running = {new.submit(run_round, self._tasks[number]): number for number in numbers}
        return new

    def _commit_ready(self) -> None:
        """Keep and commit the rounds that are done, as far as none before them is missing."""
        while self._committed + 1 in self._done:
            outcome = self._done.pop(self._committed + 1)
            kept = self._keeper.put(outcome.looked, self._work.lanes)
            failed = (*kept.failed, *outcome.failed)
            outcome = replace(outcome, looked=())
            self._state.commit(outcome, kept.sightings, failed)
            self._board.note(outcome)
            self._committed += 1
            self._deaths = 0
            del self._tasks[outcome.number]
            self._tell_view(outcome, kept.sightings, failed)

    def _tell_view(
        self, outcome: Outcome, sightings: Sequence[tuple[str, Record]], failed: Sequence[tuple[str, str]]
    ) -> None:
        view = self.view
        view.rounds += 1
        view.comparisons += outcome.comparisons
        view.here += outcome.comparisons
        view.void += sum(cell.state in ("void", "not_run") for cell in outcome.cells)
        view.findings.update({record.id: record for _, record in sightings})
        view.left.update(failed)
        view.notes += [f"{cell.cell}: void: {cell.reason}" for cell in outcome.cells if cell.state == "void"]

    def _look(self, tell: Callable[[View], None]) -> View:
        board, view = self._board, self.view
        run = board.last > 0
        view.num_run, view.under_way, view.over = int(run.sum()), len(self._running), self._over
        view.oldest = int((self._committed - board.last[run & board.eligible]).max(initial=0))
        tell(view)
        view.notes.clear()
        return view


def _broken() -> Future[Outcome]:
    future: Future[Outcome] = Future()
    future.set_exception(BrokenProcessPool("a worker ended before a round was given to it"))
    return future
