# SPDX-License-Identifier: Apache-2.0
"""Execution of batches on one implementation in one lane, through as many shim processes as it takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from crosslane import wire
from crosslane.client import Opening, SharedMemory, Shim, ShimDied, SubjectEnded, ended_without_a_word
from crosslane.errors import HarnessFault, NotStarted
from crosslane.memory import private_bytes
from crosslane.messages import BulkRequest, Compared, Digests, Done, LargeRequest, Reason, RunFlag, Threaded
from crosslane.wire import Batch, Results, Verdict, Watch

__all__ = ["BLOCK_MODE", "Executor", "Station", "execute_alone", "execute_unless_declined", "sanitizer_report"]

CAPACITY = 64 << 20
"""Bytes of each shared memory; pages that no batch uses take no memory."""
MAX_RESTARTS = 16
MAX_HANGS = 2
"""Hanging cases of one batch after which the rest of it is skipped: each costs seconds."""
MAX_ENDED = 8
"""Times that one case is begun again where its process was ended from outside; then it is the case's own doing."""
_MAX_WHOLE = 4
"""Times that all cases of a batch are begun again for that."""
CPU_BUDGET_NS = 200 * 10**9
"""CPU time after which a shim is exchanged, well before the launcher's limit on it."""

_REPORT = re.compile(r"^(?:SUMMARY: |==\d+==)?(.*: runtime error: .*|AddressSanitizer: .*)$", re.MULTILINE)
_PLACE = re.compile(r"^/.*/(?=[^/]+/[^/]+:\d+:\d+: runtime error: )")
_MAX_REPORT_LEN = 240
BLOCK_MODE = "ecb"
"""The mode that is a cipher's block function."""
_Answer = TypeVar("_Answer")
_WRITTEN_OVER = 0xFF
"""In place of NOT_RUN for a case that the shim says it ran: a record that no shim writes."""


@dataclass(frozen=True)
class Station:
    """How to start a subject: ``command`` is launcher, runner and program; ``hide`` masks CPU features.

    ``inline`` sends batches on the stream even where the shim could share memory, as for a board or a virtual machine.
    ``environment`` are all variables that the process has.
    """

    command: tuple[str, ...]
    symbol: str
    mode: str
    cipher: str
    hide: int = 0
    inline: bool = False
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def blocks(self) -> Station:
        """The same implementation's block function, as ECB."""
        return replace(self, mode=BLOCK_MODE)


def sanitizer_report(said: str) -> str:
    """The line of a sanitizer's report that says what was wrong and where, or nothing."""
    found = _REPORT.search(said)
    text = _PLACE.sub("", found[1]) if found else ""
    return "".join(c for c in text if c.isprintable())[:_MAX_REPORT_LEN]


class Executor:
    """One subject, or the oracle, over many batches. Not opened until the first use."""

    def __init__(self, station: Station, batch_memory: SharedMemory, *, watch: Watch = Watch.ALL) -> None:
        self.station = station
        self.watch = watch
        self._batch_memory = batch_memory
        self._results_memory = SharedMemory("crosslane-results", CAPACITY, sealed=False)
        self._shim: Shim | None = None
        self._batch: Batch | None = None
        self._count = 0
        self._next = 0
        self._flags = RunFlag(0)
        self._anew = RunFlag(0)
        self.cpu_ns = 0
        self._shim_cpu_ns = 0
        self.skipped = 0
        self.taken = [0] * wire.NUM_CLASSES
        self.report = ""
        """What a sanitizer said of the last case that departed."""
        self.printed = False
        """Whether the subject has written to its standard output."""
        self.growth = 0
        """Bytes by which the memory of one process of its own grew at most since its first batch."""
        self._first_private = -1

    def open(self) -> Shim:
        """The living shim, started if there is none.

        Raises SubjectEnded where the implementation's getter crashes, HarnessFault where nothing can be started.
        """
        if self._shim is None:
            opening = Opening(
                self.station.mode, self.station.symbol, self.station.cipher, self.station.hide, self.watch,
                self._batch_memory, self._results_memory, inline=self.station.inline,
            )  # fmt: skip
            self._shim = self._started(opening)
            self._shim_cpu_ns, self._first_private = 0, -1
        return self._shim

    def _started(self, opening: Opening) -> Shim:
        for left in reversed(range(MAX_ENDED)):
            try:
                return Shim(self.station.command, opening, self.station.environment)
            except ShimDied as died:
                if not (left and died.from_outside):
                    raise NotStarted(f"the shim of {self.station.symbol} does not start: {died}") from died
        raise AssertionError(MAX_ENDED)

    def begin_anew(self, taken: Sequence[int]) -> None:
        """Go on as if these code paths (of each length class a bit set) were all that were taken yet."""
        self.taken, self._anew = list(taken), RunFlag.ANEW

    def start(self, batch: Batch, count: int, *, strict: bool = False) -> None:
        """Begin the first ``count`` cases of the batch that lies in the shared memory."""
        self._batch, self._count, self._next = batch, count, 0
        self._flags = RunFlag.STRICT if strict else RunFlag(0)
        self._view().cases["verdict"][:count] = Verdict.NOT_RUN
        self._start_rest()

    def _start_rest(self) -> None:
        """Ask for the cases that are left; a process that was ended from outside since the last ones is replaced."""
        assert self._batch is not None
        self._view().header[1:3] = 0  # the last batch's, as long as the shim has not begun with this one
        for left in reversed(range(MAX_ENDED)):
            shim = self.open()
            inline = b"" if shim.mapped else self._batch_memory.view[: wire.batch_len(self._batch)]
            flags = self._flags | self._anew | (RunFlag(0) if shim.mapped else RunFlag.INLINE)
            try:
                shim.start_run(self._next, self._count - self._next, flags, inline)
                break
            except ShimDied as died:
                self._shim = None
                if not (left and died.from_outside):
                    raise HarnessFault(f"the shim of {self.station.symbol} ended between two batches: {died}") from died
        self._anew = RunFlag(0)

    def _view(self) -> Results:
        assert self._batch is not None
        batch = self._batch
        return wire.view_results(self._results_memory.view, len(batch), len(batch.ops), batch.out_len)

    def finish(self) -> Results:
        """Wait for the cases begun with ``start``: views of the results, valid until the next ``start``.

        A process that ends with a departure is replaced and the batch resumed behind the case; after 16, or two that
        hung, the rest is skipped and counted. Raises HarnessFault where a shim breaks the protocol.
        """
        hangs = 0
        for _ in range(MAX_RESTARTS):
            if self._finish_process() or self._next >= self._count:
                break
            hangs += int(self._view().cases["verdict"][self._next - 1] == Verdict.HANG)
            if hangs == MAX_HANGS:
                self.skipped += self._count - self._next
                break
            self._start_rest()
        else:
            self.skipped += self._count - self._next
            if self._shim is not None:
                self._shim.kill()
                self._shim = None
        view = self._view()
        done = view.cases["verdict"][: self._next]
        done[done == Verdict.NOT_RUN] = _WRITTEN_OVER
        return view

    def _finish_process(self) -> bool:
        """Whether the living process ran all that was left; otherwise it is gone and ``_next`` stands behind it."""
        try:
            done = self._answer()
        except ShimDied as died:
            self._note_death(died)
            self._shim = None
            return False
        assert self._shim is not None
        possible = self._next < done.next_case <= self._count
        if not possible or (done.reason == Reason.DONE and done.next_case != self._count):
            raise HarnessFault(
                f"the shim of {self.station.symbol} answered garbage: it says that it is done and that case "
                f"{done.next_case} is next, of cases {self._next} to {self._count}"
            )
        if not self._shim.mapped:
            self._take_inline(done)
        self._next = done.next_case
        self.printed |= done.printed
        self.taken = [old | new for old, new in zip(self.taken, done.taken, strict=True)]
        self.cpu_ns += done.cpu_ns - self._shim_cpu_ns
        self._shim_cpu_ns = done.cpu_ns
        self._note_memory(self._shim.pid)
        if done.reason == Reason.DEPARTURE:
            shim = self._shim
            self.close()
            self.report = sanitizer_report(shim.said)
            return False
        if done.cpu_ns > CPU_BUDGET_NS:
            self.close()
        return True

    def _answer(self) -> Done:
        """What the process says when it is done. One that was ended from outside meanwhile is no verdict on a case.

        Its cases are run again, which also shows the code paths that it had noted, and after ``_MAX_WHOLE`` times those
        from the one on that it was in, so that it comes to an end. Raises ShimDied where it was always the same one.
        """
        ended, last, times = 0, -1, 0
        while True:
            assert self._shim is not None
            try:
                return self._shim.finish_run()
            except ShimDied as died:
                current = max(int(self._view().header[1]), self._next)
                times = times + 1 if current == last else 1
                if not died.from_outside or times == MAX_ENDED:
                    raise
            self._shim = None
            ended, last = ended + 1, current
            if ended > _MAX_WHOLE and current < self._count:
                self._next = current
            self._start_rest()

    def _note_memory(self, pid: int) -> None:
        private = private_bytes(pid)
        self._first_private = private if self._first_private < 0 else self._first_private
        self.growth = max(self.growth, private - self._first_private)

    def _take_inline(self, done: Done) -> None:
        """Put what came on the stream where shared memory would have it; cases that ran before keep their results."""
        batch = self._batch
        assert batch is not None
        came = wire.view_results(memoryview(done.results), len(batch), len(batch.ops), batch.out_len)
        mine = self._view()
        cases = slice(self._next, done.next_case)
        first_op = int(batch.cases["first_op"][self._next])
        ops = slice(
            first_op, int(batch.cases["first_op"][done.next_case - 1] + batch.cases["num_ops"][done.next_case - 1])
        )
        outs = slice(int(batch.ops["out_off"][first_op]), batch.out_len)
        mine.cases[cases], mine.statuses[ops], mine.out[outs] = came.cases[cases], came.statuses[ops], came.out[outs]

    def _note_death(self, died: ShimDied) -> None:
        """The process ended, or was ended, without a word: the case it was in gets the verdict."""
        view = self._view()
        current = max(int(view.header[1]), self._next)
        if current >= self._count:
            raise HarnessFault(f"the shim died outside any case: {died}") from died
        record = view.cases[current : current + 1]
        record["verdict"] = Verdict.HANG if died.stalled else Verdict.CRASH
        record["symptom"] = 0
        record["buffer"] = 0
        record["signal"] = max(0, -died.returncode)
        record["op"] = min(int(view.header[2]), len(self._view().statuses))
        record["offset"] = 0
        record["registers"] = 0
        record["pc"] = 0
        self._next = current + 1

    def threads(self, batch: Batch, num_rounds: int) -> Threaded:
        """Run all of the batch that lies in the shared memory in two threads at once.

        After it the process serves for nothing else. Raises SubjectEnded where the subject crashes, hangs or ends it.
        """
        shim = self.open()
        inline = None if shim.mapped else self._batch_memory.view[: wire.batch_len(batch)]
        try:
            return shim.threads(0, len(batch), num_rounds, inline)
        except ShimDied as died:
            self._shim = None
            raise ended_without_a_word(died) from died
        except SubjectEnded:
            self._shim = None
            raise

    def large(self, request: LargeRequest) -> Digests:
        """Run one message that the shim makes itself; raises SubjectEnded as ``threads`` does."""
        return self._ask(lambda shim: shim.large(request))

    def bulk(self, request: BulkRequest) -> Compared:
        """Hold many blocks at once against one at a time; raises SubjectEnded as ``threads`` does."""
        return self._ask(lambda shim: shim.bulk(request))

    def _ask(self, request: Callable[[Shim], _Answer]) -> _Answer:
        try:
            return request(self.open())
        except ShimDied as died:
            self._shim = None
            raise ended_without_a_word(died) from died
        except SubjectEnded:
            self._shim = None
            raise

    def bare(self, num_messages: int, message_len: int, messages_per_key: int) -> int:
        """CPU time in ns of the same calls without the suite; does not count towards ``cpu_ns``."""
        took = self.open().bare(num_messages, message_len, messages_per_key)
        self._shim_cpu_ns += took
        return took

    def close(self) -> None:
        """End the living process, if there is one."""
        if self._shim is not None:
            self._shim.close()
            self._shim = None

    def hang_up(self) -> None:
        """Tell the living process to end, and do not wait for it: ``close`` does."""
        if self._shim is not None:
            self._shim.hang_up()

    def forget(self) -> None:
        """Give back the memory of the last batch's results, which are gone then."""
        self._results_memory.forget()

    def release(self) -> None:
        """End the process and give the memory back."""
        self.close()
        self._results_memory.close()


def execute_alone(station: Station, batch: Batch, *, watch: Watch = Watch.ALL, strict: bool = False) -> Results:
    """Run a batch in a fresh process with memory of its own; the results are copies."""
    results = execute_unless_declined(station, batch, watch=watch, strict=strict)
    if results is None:
        raise HarnessFault(f"{station.symbol} declined a case that it ran before: the CPU's features changed")
    return results


def execute_unless_declined(
    station: Station, batch: Batch, *, watch: Watch = Watch.ALL, strict: bool = False
) -> Results | None:
    """As ``execute_alone``; None where the implementation declines on this CPU."""
    memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
    executor = Executor(station, memory, watch=watch)
    try:
        if executor.open().opened.declined:
            return None
        wire.encode_batch_into(batch, memory.view)
        executor.start(batch, len(batch), strict=strict)
        results = executor.finish().copy()
        return replace(results, report=executor.report if len(batch) == 1 else "")
    finally:
        executor.release()
        memory.close()
