# SPDX-License-Identifier: Apache-2.0
"""Compilers as confined child processes: limits on time and memory, a fixed environment, and none left behind.

What is compiled may be hostile, so that a compiler gets no terminal, no inherited settings and a bounded share of the
machine. ``Compilers`` owns the children; leaving it ends those that still run.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from crosslane.data import shown
from crosslane.errors import BadInput, HarnessFault

__all__ = ["Compilers", "included_files"]

_CPU_LIMIT_S = 120
_TIME_LIMIT_S = 300.0
_MEMORY_LIMIT_BYTES = 4 << 30
_FILE_LIMIT_BYTES = 256 << 20
_MAX_WORDS_LINES = 40
# The shell sets the limits between fork and exec, where Python cannot run safely beside threads.
_SCRIPT = 'ulimit -c 0; ulimit -t "$1"; ulimit -v "$2"; ulimit -f "$3"; shift 3; exec "$@"'
_DISK_FULL = ("No space left on device", "Disk quota exceeded")


def _limit(kind: int, wanted: int) -> int:
    """Return the wanted limit or the hard one that is in force already, whichever is lower."""
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


class Compilers:
    """Runs compilers, from several threads at once; as a context manager it ends what still runs."""

    def __init__(self, work: Path) -> None:
        """``work`` is the folder for temporary files; it must outlive this object."""
        self._work = work
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False
        self._limits = (
            str(_limit(resource.RLIMIT_CPU, _CPU_LIMIT_S)),
            str(_limit(resource.RLIMIT_AS, _MEMORY_LIMIT_BYTES) // 1024),
            str(_limit(resource.RLIMIT_FSIZE, _FILE_LIMIT_BYTES) // 512),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self._closed = True
            running = list(self._running)
        for child in running:
            _end(child)

    def run(self, command: Sequence[str], *, subject: Path, task: str) -> None:
        """Run one compiler, linker or objcopy to its end.

        ``subject`` is the file that an error is about and ``task`` what failed, as in "does not compile". Raises
        ``BadInput`` with the compiler's words, and ``HarnessFault`` where the disk is full.
        """
        child = self._start(command)
        try:
            words = child.communicate(timeout=_TIME_LIMIT_S)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            raise BadInput(
                f"{shown(subject)}: {task}: the compiler ran longer than {_TIME_LIMIT_S:.0f} s; simplify the source"
            ) from None
        finally:
            _end(child)
            if child.stdout is not None:
                child.stdout.close()
            with self._lock:
                self._running.discard(child)
        if child.returncode == 0:
            return
        if any(text in words for text in _DISK_FULL):
            raise HarnessFault(f"{shown(self._work)}: the disk is full; free some space and run the same command again")
        raise BadInput(_failure(child.returncode, words, subject, task))

    def _start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "TMPDIR": str(self._work),
        }
        with self._lock:
            if self._closed:
                raise HarnessFault("the build was ended before it was complete; run the same command again")
            child = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "sh", *self._limits, *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self._work,
                start_new_session=True,
            )
            self._running.add(child)
        return child


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the child's whole process group, unless it was waited for already."""
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _failure(status: int, words: str, subject: Path, task: str) -> str:
    lines = words.strip().splitlines()
    if len(lines) > _MAX_WORDS_LINES:
        lines = [*lines[:_MAX_WORDS_LINES], f"... and {len(lines) - _MAX_WORDS_LINES} more lines"]
    if status < 0 or not lines:
        lines.append(f"(the compiler ended with status {status}, limits: {_CPU_LIMIT_S} s CPU, 4 GiB memory)")
    return "\n".join([f"{shown(subject)}: {task}; correct what the compiler says:", *lines])


def included_files(dependencies: Path) -> list[Path]:
    """Return the user files that a compilation read, from the make rule that ``-MMD`` wrote."""
    text = dependencies.read_text(errors="surrogateescape").replace("\\\n", " ").partition(":")[2]
    names = text.replace("\\ ", "\0").replace("\\#", "#").replace("$$", "$").split()
    return [Path(name.replace("\0", " ")) for name in names]
