# SPDX-License-Identifier: Apache-2.0
"""The engine's side of one shim process: starts it contained, speaks the protocol, notices when it dies or lies."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np

from crosslane import messages
from crosslane.errors import HarnessFault
from crosslane.messages import Kind, RunFlag
from crosslane.wire import CASE_RESULT, Verdict, Watch

__all__ = ["Opening", "SharedMemory", "Shim", "ShimDied", "SubjectEnded", "ended_without_a_word"]

HELLO_TIMEOUT_S = 30.0
STALL_TIMEOUT_S = 60.0
"""Wall time without any operation ending after which a shim counts as hung; its own watchdog counts CPU time."""

_MAY_END = (Kind.OPENED, Kind.THREADED, Kind.DIGESTS, Kind.COMPARED)
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM)
_LARGE_S_PER_MIB = 2.0
_MAX_SAID_LEN = 1 << 16
_F_ADD_SEALS = 1033
_F_SEAL_SHRINK = 0x0002
_F_SEAL_GROW = 0x0004
_F_SEAL_FUTURE_WRITE = 0x0010


class ShimDied(Exception):
    """The process ended without an answer: ``returncode`` as subprocess gives it, ``stalled`` where we ended it."""

    def __init__(self, returncode: int, said: str, *, stalled: bool = False) -> None:
        super().__init__(f"the shim ended with status {returncode}" + (f" and said: {said}" if said else ""))
        self.returncode = returncode
        self.said = said
        self.stalled = stalled

    @property
    def from_outside(self) -> bool:
        """Whether the process was ended by a signal that is sent by others, and not by this engine."""
        return not self.stalled and -self.returncode in _FROM_OUTSIDE


class SubjectEnded(Exception):
    """The subject crashed or hung in a request that is no batch, and the shim said so: ``ended``.

    ``said`` is what the process wrote to stderr, where a sanitizer reports.
    """

    def __init__(self, ended: messages.Ended, said: str) -> None:
        super().__init__(f"the subject ended: {ended.record}")
        self.ended = ended
        self.said = said


def ended_without_a_word(died: ShimDied) -> SubjectEnded:
    """A death in a request that is no batch, as the subject's: nothing else runs then."""
    record = np.zeros((), CASE_RESULT)
    record["verdict"] = Verdict.HANG if died.stalled else Verdict.CRASH
    record["signal"] = max(0, -died.returncode)
    return SubjectEnded(messages.Ended(0, record), died.said)


class SharedMemory:
    """Memory shared by descriptor (memfd); ``view`` is the engine's writable mapping of ``capacity`` bytes."""

    def __init__(self, name: str, capacity: int, *, sealed: bool) -> None:
        """Create it; with ``sealed`` nobody else can map it for writing (F_SEAL_FUTURE_WRITE, Linux 5.1)."""
        self.capacity = capacity
        try:
            self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(self.fd, capacity)
            self._map = mmap.mmap(self.fd, capacity)
            seals = _F_SEAL_SHRINK | _F_SEAL_GROW | (_F_SEAL_FUTURE_WRITE if sealed else 0)
            fcntl.fcntl(self.fd, _F_ADD_SEALS, seals)
        except OSError as error:
            raise HarnessFault(
                f"cannot share {capacity} bytes of memory with the shims ({error}): "
                "Linux 5.1 or newer and as much free memory are needed"
            ) from error
        self.view = memoryview(self._map)

    def forget(self) -> None:
        """Give the pages back to the system: all bytes are zero then. Not of sealed memory, which refuses it."""
        self._map.madvise(mmap.MADV_REMOVE)

    def close(self) -> None:
        """Release the descriptor, once; the mapping goes when the last view of it does."""
        if self.fd < 0:
            return
        os.close(self.fd)
        self.fd = -1
        with contextlib.suppress(BufferError):  # arrays that look into the memory keep it alive
            self.view.release()
            self._map.close()


@dataclass(frozen=True)
class Opening:
    """What a shim is opened with. The memories are shared with it where its hello offers that and ``inline`` is off."""

    mode: str
    symbol: str
    cipher: str
    hide: int
    watch: Watch
    batch: SharedMemory
    results: SharedMemory
    inline: bool = False


class Shim:
    """One living shim process, opened for one implementation and mode. Use as a context manager."""

    def __init__(self, command: Sequence[str], opening: Opening, environment: Sequence[tuple[str, str]] = ()) -> None:
        """Start ``command`` (launcher, runner and program) with just these variables, and open it.

        Raises ShimDied, SubjectEnded where the implementation's getter crashes or hangs, or HarnessFault.
        """
        self._opening = opening
        self.said = ""  # what it wrote to stderr, once it has ended
        fds = (opening.batch.fd, opening.results.fd)
        self._stderr, stderr = os.pipe()
        os.set_blocking(self._stderr, False)
        os.set_blocking(stderr, False)  # a talkative subject loses its words instead of waiting for a reader
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                bufsize=0,
                pass_fds=() if opening.inline else fds,
                env=dict(environment),  # and nothing of the user's, which could choose the code that runs
                process_group=0,  # Ctrl-C is for the engine, which ends its shims: it must not look like their crash
            )
        except OSError as error:
            os.close(self._stderr)
            raise HarnessFault(f"cannot start {command[0]} ({error.strerror}): run `crosslane build` again") from error
        finally:
            os.close(stderr)
        try:
            self.hello = messages.decode_hello(self._receive(Kind.HELLO, HELLO_TIMEOUT_S))
            self.mapped = "mapped" in self.hello.transports and not opening.inline
            self._send(
                messages.encode_open(
                    opening.mode,
                    opening.symbol,
                    cipher=opening.cipher,
                    hide=opening.hide,
                    watch=opening.watch,
                    batch_capacity=opening.batch.capacity,
                    result_capacity=opening.results.capacity,
                    fds=fds if self.mapped else (-1, -1),
                )
            )
            self.opened = messages.decode_opened(self._receive(Kind.OPENED, HELLO_TIMEOUT_S))
        except BaseException:
            self.kill()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id of the launcher, which becomes the runner and the shim."""
        return self._process.pid

    def start_run(self, first_case: int, num_cases: int, flags: RunFlag, batch: bytes | memoryview = b"") -> None:
        """Send RUN; the answer is fetched with ``finish_run``."""
        self._send(messages.encode_run(first_case, num_cases, flags, batch))

    def finish_run(self) -> messages.Done:
        """Wait for DONE; raises ShimDied where the process ends or stalls instead."""
        return messages.decode_done(self._receive(Kind.DONE, STALL_TIMEOUT_S))

    def bare(self, num_messages: int, message_len: int, messages_per_key: int) -> int:
        """CPU time in ns of the same calls without the suite."""
        self._send(messages.encode_bare(num_messages, message_len, messages_per_key))
        return messages.decode_timed(self._receive(Kind.TIMED, 10 * STALL_TIMEOUT_S))[0]

    def threads(
        self, first_case: int, num_cases: int, num_rounds: int, batch: bytes | memoryview | None = None
    ) -> messages.Threaded:
        """Run cases in two threads at once, so many rounds of them; ``batch`` where it is not in shared memory.

        Raises SubjectEnded where the subject crashes or hangs, and ShimDied.
        """
        self._send(messages.encode_threads(first_case, num_cases, num_rounds, batch))
        return messages.decode_threaded(self._receive(Kind.THREADED, STALL_TIMEOUT_S))

    def large(self, request: messages.LargeRequest) -> messages.Digests:
        """Run one message that the shim makes itself; raises SubjectEnded and ShimDied as ``threads`` does."""
        self._send(messages.encode_large(request))
        timeout_s = STALL_TIMEOUT_S + _LARGE_S_PER_MIB * (request.data_len >> 20)
        return messages.decode_digests(self._receive(Kind.DIGESTS, timeout_s))

    def bulk(self, request: messages.BulkRequest) -> messages.Compared:
        """Hold many blocks at once against one at a time; raises SubjectEnded and ShimDied as ``threads`` does."""
        self._send(messages.encode_bulk(request))
        return messages.decode_compared(self._receive(Kind.COMPARED, STALL_TIMEOUT_S))

    def hang_up(self) -> None:
        """Order the process to leave."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()

    def close(self) -> None:
        """End the process in an orderly way."""
        self.hang_up()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reap()

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._reap()

    def _reap(self) -> None:
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if self._stderr >= 0:
            with contextlib.suppress(OSError):
                self.said += os.read(self._stderr, _MAX_SAID_LEN).decode("utf-8", "replace")
            os.close(self._stderr)
            self._stderr = -1

    def _send(self, message: bytes) -> None:
        assert self._process.stdin is not None
        view = memoryview(message)
        try:
            while view:
                view = view[self._process.stdin.write(view) or 0 :]
        except OSError as error:
            raise self._death() from error

    def _progress(self) -> bytes:
        return bytes(self._opening.results.view[8:24])

    def _read(self, length: int, timeout_s: float) -> bytes:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        poller = select.poll()
        poller.register(fd, select.POLLIN)
        parts: list[bytes] = []
        seen, deadline = self._progress(), time.monotonic() + timeout_s
        while length > 0:
            if not poller.poll(500):
                now = self._progress()
                if now != seen:
                    seen, deadline = now, time.monotonic() + timeout_s
                elif time.monotonic() > deadline:
                    raise self._death(stalled=True)
                continue
            part = os.read(fd, min(length, 1 << 20))
            if not part:
                raise self._death()
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def _receive(self, expected: Kind, timeout_s: float) -> bytes:
        try:
            kind, length = messages.decode_header(self._read(messages.HEADER_LEN, timeout_s))
            payload = self._read(length, timeout_s)
        except HarnessFault:
            self.kill()
            raise
        if kind == Kind.ERROR:
            sentence = payload.decode("utf-8", "replace")
            self.kill()
            raise HarnessFault(f"the shim refused: {sentence}")
        if kind == Kind.ENDED and expected in _MAY_END:
            self.close()
            raise SubjectEnded(messages.decode_ended(payload), self.said)
        if kind != expected:
            self.kill()
            raise HarnessFault(f"the shim answered garbage: {kind.name} where {expected.name} was due")
        return payload

    def _death(self, *, stalled: bool = False) -> ShimDied:
        if stalled:
            self._process.kill()
        self._process.wait()
        self._reap()
        return ShimDied(self._process.returncode, self.said.strip()[:4096], stalled=stalled)
