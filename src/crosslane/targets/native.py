# SPDX-License-Identifier: Apache-2.0
"""Both sides of a target in this process, or the oracle here and the subject in a guest: what one input comes to."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslane.errors import BadInput, HarnessFault
from crosslane.findings.case import Case, case_of
from crosslane.targets.guest import Guest
from crosslane.targets.programs import Built
from crosslane.targets.rows import FAMILIES, WATCHED, Choice
from crosslane.wire import OpKind, Watch, decode_batch

__all__ = ["AGREES", "GONE", "Pair", "Seen"]

AGREES, STATUS, OUTPUT, WATCHER, GONE = range(5)
"""What an input came to, as ``fuzz/targets/native/pair.h`` numbers it."""
_WORDS = ("agrees", "another status", "another output", "a watcher objects", "the process of the subject ended")
_DEPARTURE = struct.Struct("<6IQ")
_NUM_CLASSES = 16
_ROW_DECLINED = 1


@dataclass(frozen=True)
class Seen:
    """How the last input departed: ``what`` is a number of those above, ``key`` is what sightings of one kind share."""

    what: int
    cell: str
    op: str
    symptom: int
    key: tuple[object, ...]

    @property
    def face(self) -> tuple[object, ...]:
        """The key without lengths and layout."""
        return self.key[:5]

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.cell}: {_WORDS[self.what]}" + (f", in {self.op}" if self.op else "")


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.addressof(ctypes.c_char.in_dll(library, name))


class Pair:
    """A target's two sides. ``one`` is what an engine calls; the rest is for what it finds."""

    def __init__(
        self,
        built: Built,
        choice: Choice,
        *,
        guest: Guest | None = None,
        only_decodes: bool = False,
        watch: Watch = WATCHED,
    ) -> None:
        """Load what was built; raises BadInput where the CPU cannot run an implementation, HarnessFault.

        With ``only_decodes`` no subject is there to run anything, and no engine is needed.
        """
        self.choice = choice
        self.guest = guest
        self._oracle = _load(built.oracle)
        self._subject = _load(built.subject) if guest is None and not only_decodes else None
        self._pair = _load(built.pair)
        self._declare()
        subject = _address(self._subject, "subject_side") if self._subject is not None else None
        self._pair.pair_open(_address(self._oracle, "oracle_side"), subject, FAMILIES.index(choice.family), int(watch))
        if guest is not None:
            self._begin(guest)
        for number, cell in zip(choice.chosen, choice.cells, strict=True):
            answer = self._pair.pair_add(number)
            if answer == _ROW_DECLINED:
                raise BadInput(f"{cell}: this CPU lacks what the implementation needs; name a cell of an emulator")
            if answer:
                raise BadInput("a target takes 256 cells at most; name fewer with --cell")
        self.one = self._pair.pair_one

    def _declare(self) -> None:
        pair = self._pair
        pair.pair_open.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        pair.pair_one.argtypes = pair.pair_decode.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        pair.pair_one.restype = ctypes.c_int
        pair.pair_decode.restype = None
        pair.pair_counters.restype = pair.pair_found.restype = pair.pair_batch.restype = ctypes.c_void_p
        pair.pair_path_name.restype = ctypes.c_char_p
        pair.pair_batch.argtypes = [ctypes.POINTER(ctypes.c_uint64)]
        pair.remote_use.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]

    def _begin(self, guest: Guest) -> None:
        """Start the guest anew and wait for it."""
        guest.start()
        self._pair.remote_use(*guest.addresses, guest.pid)
        if self._pair.remote_wait_ready(guest.start_limit_ms):
            raise HarnessFault(f"{guest.name}: the program did not come up: {guest.ended()}")
        guest.check_declined()

    def again(self) -> None:
        """Put another guest in the place of one that ended."""
        if self.guest is not None:
            self._begin(self.guest)

    def counters(self) -> tuple[int, int]:
        """Address and number of the bytes in which code paths, and what a guest executes, are counted."""
        if self.guest is not None:
            return self.guest.counters
        return self._pair.pair_counters(), _NUM_CLASSES * self._pair.pair_num_paths()

    @property
    def paths(self) -> list[str]:
        """Names of the code paths that are counted, each with its implementation."""
        if self.guest is not None:
            return self.guest.paths
        return [self._pair.pair_path_name(i).decode() for i in range(self._pair.pair_num_paths())]

    def seen(self) -> Seen:
        """The departure of the last input."""
        what, op, kind, verdict, symptom, _, _ = _DEPARTURE.unpack(
            ctypes.string_at(self._pair.pair_found(), _DEPARTURE.size)
        )
        cell = self.cell
        record = self._batch()[128 + 48 * op : 176 + 48 * op]
        length = int.from_bytes(record[16:24], "little")
        block_len = self._row().manifest.block_len
        shape = (min((length // block_len).bit_length(), 7), length % block_len != 0, record[2:3])
        name = OpKind(kind).name.lower() if kind else ""
        return Seen(what, cell, name, symptom, (cell, what, kind, verdict, symptom, *shape))

    def _row(self) -> Any:
        return self.choice.rows[self._pair.pair_row()]

    @property
    def num_executions(self) -> int:
        """Inputs run so far."""
        executions, messages = ctypes.c_uint64(), ctypes.c_uint64()
        self._pair.pair_counts(ctypes.byref(executions), ctypes.byref(messages))
        return executions.value

    @property
    def cell(self) -> str:
        """The cell that the last input was about."""
        return f"{self._row().name}@{self.choice.lane.name}"

    def _batch(self) -> bytes:
        length = ctypes.c_uint64()
        address = self._pair.pair_batch(ctypes.byref(length))
        return ctypes.string_at(address, length.value)

    def decoded(self, data: bytes) -> tuple[str, Case]:
        """The cell and the case that an input means, as it runs; nothing runs on the subject."""
        self._pair.pair_decode(data, len(data))
        return self.cell, case_of(decode_batch(self._batch()), 0, str(self._row().algorithm))


def _load(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise HarnessFault(f"{path}: cannot be loaded into this process ({error})") from None
