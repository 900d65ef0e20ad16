# SPDX-License-Identifier: Apache-2.0
"""A subject under an emulator: the process, contained as every shim is, and the memory that is shared with it."""

from __future__ import annotations

import contextlib
import ctypes
import struct
import subprocess
from pathlib import Path

from crosslane import sandbox
from crosslane.build import build_launcher
from crosslane.client import SharedMemory
from crosslane.errors import BadInput, HarnessFault
from crosslane.stations import memory_limit
from crosslane.targets.rows import WATCHED, Choice
from crosslane.toolchain import runner_command
from crosslane.wire import Watch

__all__ = ["Guest"]

# Places and sizes of fuzz/targets/native/target.h.
_MAX_OPS, _MAX_BLOB_LEN, _MAX_RESULTS_LEN = 48, 32768, 65536
_COUNTERS_AT, _MAX_COUNTERS = 4096, 16384
_NAMES_AT = _COUNTERS_AT + _MAX_COUNTERS + 24 * 64
_NAME_LEN = 32
_REQUEST_MEMORY = 4096 + 192 + 48 * _MAX_OPS + _MAX_BLOB_LEN + 4096
_ANSWER_MEMORY = _NAMES_AT + 64 * _NAME_LEN + _MAX_RESULTS_LEN
_ANSWER = struct.Struct("<8I")
_CPU_LIMIT_S = 400 * 86400
"""A target runs until its engine ends it; its own watchdog ends a hang."""


class Guest:
    """The process that runs the subject; it can be started again and again."""

    start_limit_ms = 30_000

    def __init__(self, root: Path, program: Path, choice: Choice, watch: Watch = WATCHED) -> None:
        """Nothing is started yet."""
        self.name = choice.lane.name
        self._requests = SharedMemory("crosslane-requests", _REQUEST_MEMORY, sealed=True)
        self._answers = SharedMemory("crosslane-answers", _ANSWER_MEMORY, sealed=False)
        runner = runner_command(choice.lane)
        fds = (self._requests.fd, self._answers.fd)
        arguments = [str(program), *map(str, fds), str(int(watch)), *map(str, choice.chosen)]
        self._command = sandbox.launcher_argv(
            build_launcher(root),
            [*runner, *arguments],
            memory_limit=memory_limit(choice.lane),
            cpu_limit_s=_CPU_LIMIT_S,
            read_paths=[program, *sandbox.system_read_paths()],
            require=False,
        )
        self._process: subprocess.Popen[bytes] | None = None
        self.addresses = tuple(
            ctypes.addressof(ctypes.c_char.from_buffer(memory.view)) for memory in (self._requests, self._answers)
        )

    def start(self) -> None:
        """Start the program, in the place of one that ended."""
        self.end()
        self._answers.view[: _ANSWER.size] = bytes(_ANSWER.size)
        self._requests.view[:16] = bytes(16)
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(self._requests.fd, self._answers.fd),
                env={},
                process_group=0,
            )
        except OSError as error:
            raise HarnessFault(f"cannot start {self._command[0]} ({error.strerror}): run the target again") from error

    @property
    def pid(self) -> int:
        """Of the process that runs."""
        assert self._process is not None
        return self._process.pid

    def end(self) -> None:
        """End the process, if one runs."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
            self._process = None

    def ended(self) -> str:
        """How it ended, for people."""
        status = self._process.poll() if self._process is not None else None
        return "it still runs" if status is None else f"it ended with status {status}"

    def _answer(self) -> tuple[int, ...]:
        return _ANSWER.unpack(self._answers.view[: _ANSWER.size])

    def check_declined(self) -> None:
        """Raise BadInput where the emulated CPU cannot run an implementation."""
        if self._answer()[6]:
            raise BadInput(
                f"the CPU of the lane {self.name} lacks what an implementation of the target needs; name a cell of "
                "another lane, as `crosslane list cells` prints them"
            )

    @property
    def counters(self) -> tuple[int, int]:
        """Address and number of its counters."""
        return self.addresses[1] + _COUNTERS_AT, self._answer()[4]

    @property
    def paths(self) -> list[str]:
        """Names of its code paths."""
        names = bytes(self._answers.view[_NAMES_AT : _NAMES_AT + _NAME_LEN * min(self._answer()[3], 64)])
        return [names[at : at + _NAME_LEN].rstrip(b"\0").decode() for at in range(0, len(names), _NAME_LEN)]
