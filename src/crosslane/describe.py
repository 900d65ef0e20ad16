# SPDX-License-Identifier: Apache-2.0
"""Sentences for departures and sessions: what a person reads."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

from crosslane.compare import Departure
from crosslane.wire import Batch, Buffer, Edge, Flag, OpKind, Status, Symptom, Verdict, displacement

__all__ = ["departure_text", "register_names", "session_lines", "signal_name"]

_X86_REGISTERS = (
    "rbx",
    "rbp",
    "r12",
    "r13",
    "r14",
    "r15",
    "rsp",
    "DF",
    "MXCSR",
    "x87 control word",
    "x87 stack",
    "rdi",
    "rsi",
    *(f"xmm{i}" for i in range(6, 16)),
)
_ARM_REGISTERS = (*(f"x{i}" for i in range(19, 30)), *(f"d{i}" for i in range(8, 16)), "sp", "FPCR")
_BUFFERS = {
    Buffer.KEY: "the key", Buffer.IV_IN: "the iv given to setiv", Buffer.IN: "the input", Buffer.OUT: "the output",
    Buffer.IV: "the iv", Buffer.AAD: "the associated data", Buffer.TAG: "the tag", Buffer.CTX: "the context",
    Buffer.CTX2: "the second context", Buffer.RESULTS: "the shim's results", Buffer.BATCH: "the shared inputs",
}  # fmt: skip


def _op_name(batch: Batch, case: int, op: int) -> str:
    """Such as ``update 2 of message 3 (17 bytes, in place)``."""
    first = int(batch.cases["first_op"][case])
    ops = batch.ops[first : first + op + 1]
    kind = OpKind(int(ops[-1]["kind"]))
    message = int((ops["kind"] == OpKind.SETIV).sum())
    if kind in (OpKind.SETKEY, OpKind.REINIT):
        return f"{kind.name.lower()} before message {message + 1}"
    if kind is not OpKind.UPDATE:
        return f"{kind.name.lower()}" + (f" of message {message}" if message else "")
    since = int((ops["kind"] == OpKind.SETIV).nonzero()[0][-1]) if message else 0
    number = int((ops["kind"][since:] == OpKind.UPDATE).sum())
    flags = Flag(int(ops[-1]["flags"]))
    place = ", overlapping" if flags & Flag.OVERLAP else ", in place" if flags & Flag.IN_PLACE else ""
    return f"update {number} of message {message} ({int(ops[-1]['in_len'])} bytes{place})"


def register_names(mask: int, arch: str) -> str:
    """The registers of a bit set, as the architecture calls them, with commas."""
    names = _X86_REGISTERS if arch == "x86_64" else _ARM_REGISTERS
    return ", ".join(name for bit, name in enumerate(names) if mask >> bit & 1)


def signal_name(number: int) -> str:
    """Such as SIGSEGV."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _status_name(value: bytes) -> str:
    try:
        return Status(value[0]).name.lower()
    except (ValueError, IndexError):
        return f"status {value[0]}" if value else "nothing"


def _where(departure: Departure) -> str:
    if departure.buffer is Buffer.NONE:
        return f"at address {departure.offset:#x}"
    offset = departure.offset
    place = f"{-offset} bytes before" if offset < 0 else f"{offset} bytes from the start of"
    return f"{place} {_BUFFERS[departure.buffer]}"


def departure_text(batch: Batch, departure: Departure, arch: str) -> str:
    """One sentence that says what departed, and where."""
    where = _op_name(batch, departure.case, departure.op)
    if departure.verdict in (Verdict.CRASH, Verdict.HANG, Verdict.VOID) and departure.symptom is Symptom.NONE:
        return f"{where} {_ended_text(departure)}"
    if departure.symptom in (Symptom.OUTPUT, Symptom.IV):
        return _answer_text(departure, where)
    if departure.symptom is Symptom.WIPE and departure.buffer:
        return f"{where} leaves bytes of {_BUFFERS[departure.buffer]} behind, {_left_in(departure, arch)}"
    if departure.symptom is Symptom.NONDETERMINISM:
        return _changed_text(departure, where)
    return _watched_text(departure, where, arch)


def _watched_text(departure: Departure, where: str, arch: str) -> str:
    """What a watcher saw."""
    buffer = _BUFFERS.get(departure.buffer, "an unknown buffer")
    if departure.symptom in (Symptom.GUARD_READ, Symptom.GUARD_WRITE):
        doing = "reads" if departure.symptom is Symptom.GUARD_READ else "writes"
        by = f" ({signal_name(departure.signal)})" if departure.signal else ""
        return f"{where} {doing} where it may not, {_where(departure)}{by}"
    if departure.symptom is Symptom.CANARY:
        return f"{where} changes memory {_where(departure)}"
    if departure.symptom is Symptom.INPUT:
        return f"{where} changes byte {departure.offset} of {buffer}, which is only read"
    if departure.symptom is Symptom.CONTEXT:
        freed = departure.registers == _FREED
        buffer, when = ("memory", "that the library had freed") if freed else (buffer, "outside an accepted setkey")
        return f"byte {departure.offset} of {buffer} changed {when}"
    if departure.symptom is Symptom.ABI:
        return f"{where} does not keep {register_names(departure.registers, arch)}"
    return f"{where} departs: {departure.verdict.name.lower()}, {departure.symptom.name.lower()}"


_FREED, _IN_FREED = 1, 1 << 63
"""What ``registers`` says of a library's memory (``impls/shim/shim.h``)."""
_X86_GENERAL = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")


def _left_in(departure: Departure, arch: str) -> str:
    """Where a secret was left: bits 0 to 31 of ``registers`` are vector registers, those from 32 on general ones."""
    if departure.registers == _IN_FREED:
        return f"in memory that it frees, {departure.offset} bytes from its start"
    if not departure.registers:
        return f"{-departure.offset} bytes below the stack pointer"
    number = departure.registers.bit_length() - 1
    if number < 32:
        return f"in vector register {number}"
    number -= 32
    return "in " + (_X86_GENERAL[min(number, 8)] if arch == "x86_64" else f"x{number}")


def _changed_text(departure: Departure, where: str) -> str:
    """An answer that was another one before."""
    when = "the second time in one thread" if departure.registers == 1 else "while another thread works"
    what = f"byte {departure.offset} of {_BUFFERS[departure.buffer]}" if departure.buffer else "the status"
    return f"{where} answers otherwise {when}: {what} differs"


def _ended_text(departure: Departure) -> str:
    """How the process ended."""
    if departure.verdict is Verdict.HANG:
        return "does not come back (3 s of CPU time, and 1 s for each 128 KiB of data)"
    if departure.verdict is Verdict.VOID:
        return "could not be judged: the shim gave up on it"
    how = f"with {signal_name(departure.signal)}" if departure.signal else "by ending the process"
    at = f" at address {departure.offset:#x}" if departure.offset else ""
    return f"crashes {how}{at}" + (f": {departure.report}" if departure.report else "")


def _answer_text(departure: Departure, where: str) -> str:
    """How the answer differs from the oracle's."""
    if departure.buffer is Buffer.NONE:
        return f"{where} answers {_status_name(departure.got)}, expected {_status_name(departure.expected)}"
    return (
        f"byte {departure.offset} of {_BUFFERS[departure.buffer]} after {where} differs: "
        f"got {departure.got.hex()}, expected {departure.expected.hex()}"
    )


def _placement(edge: int, align: int) -> str:
    if edge == Edge.MIDDLE:
        return f"offset {align}"
    return "ends at a guard page" if edge == Edge.END else "begins behind a guard page"


def _output_placement(op: Any) -> str:
    if op["flags"] & Flag.OVERLAP:
        return f"out: {displacement(int(op['aux1'])):+} bytes from in, overlapping"
    if op["flags"] & Flag.IN_PLACE:
        return "in place"
    return f"out: {_placement(int(op['out_edge']), int(op['out_align']))}"


def session_lines(batch: Batch, case: int) -> Iterator[str]:
    """The operations of one case, one line each."""
    record = batch.cases[case]
    yield f"session: {'decrypt' if record['decrypting'] else 'encrypt'}, policy {int(record['policy'])}"
    first = int(record["first_op"])
    for op in batch.ops[first : first + int(record["num_ops"])]:
        kind, length, offset = OpKind(int(op["kind"])), int(op["in_len"]), int(op["in_off"])
        data = batch.blob[offset : offset + length].tobytes()
        shown = data[:32].hex() + ("..." if length > 32 else "")
        parts = [kind.name.lower(), f"slot {int(op['slot'])}"]
        if kind is OpKind.CLONE:
            parts.append(f"from slot {int(op['from_slot'])}")
        if kind in (OpKind.SETKEY, OpKind.SETIV, OpKind.AAD, OpKind.UPDATE):
            parts += [f"{length} bytes {shown}".rstrip(), f"in: {_placement(int(op['in_edge']), int(op['in_align']))}"]
        if kind is OpKind.UPDATE:
            parts.append(_output_placement(op))
        yield "  " + ", ".join(parts)
