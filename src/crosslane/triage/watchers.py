# SPDX-License-Identifier: Apache-2.0
"""Classes of what a watcher saw, with the lengths at which it shows."""

from __future__ import annotations

from collections.abc import Callable

from crosslane.triage.named import Named, bytes_text
from crosslane.triage.observations import Observations

__all__ = ["watched", "when"]

_BUFFERS = {
    "key": "the key", "iv_in": "the iv", "in": "the input", "out": "the output", "iv": "the iv",
    "aad": "associated data", "tag": "the tag", "ctx": "the context", "ctx2": "the second context",
    "results": "the shim's results", "batch": "the shared inputs", "none": "no buffer of the call",
}  # fmt: skip


def watched(seen: Observations) -> Named | None:
    """The class of a departure that a watcher objected to, or that ended the process; None for a wrong answer."""
    rule = _RULES.get(seen.watched.symptom)
    return rule(seen) if rule is not None else None


def when(seen: Observations) -> str:
    """At which lengths it shows, in words; empty where at all, or where that is not known."""
    lens = {length for length, departs in seen.watched_lens.items() if departs}
    others = set(seen.watched_lens) - lens
    if not lens or not others:
        return ""
    return " " + (_by_residue(lens, others, seen.facts.block_len) or _by_bound(lens, others))


def _by_residue(lens: set[int], others: set[int], block_len: int) -> str:
    """What the lengths have in common modulo the block; empty where that does not tell them from the others."""
    residues = {length % block_len for length in lens}
    if not residues.isdisjoint(length % block_len for length in others):
        return ""
    if len(residues) == 1:
        return f"when the length is {residues.pop()} mod {block_len}"
    return f"when the length is no multiple of {block_len}" if 0 not in residues else ""


def _by_bound(lens: set[int], others: set[int]) -> str:
    least = min(lens)
    if len(lens) == 1:
        return f"when the length is {bytes_text(least)}" if least else "when there is no data"
    if max(others) < least:
        return f"from {bytes_text(least)} on"
    if max(lens) < min(others):
        return f"up to {bytes_text(max(lens))}"
    return f"at some lengths, the least of {bytes_text(least)}"


def _where(seen: Observations) -> str:
    place = _BUFFERS.get(seen.watched.buffer, seen.watched.buffer)
    if seen.watched.buffer == "none":
        return "where there is no buffer of the call"
    offset, length = seen.watched.offset, seen.watched.buffer_len
    if offset < 0:
        return f"{bytes_text(-offset)} before {place}"
    return (
        f"{bytes_text(offset - length + 1)} beyond {place}"
        if length
        else f"behind {place}, {bytes_text(offset)} from its start"
    )


def _read(seen: Observations) -> Named:
    return Named("over_read", f"reads {_where(seen)}{when(seen)}")


def _write(seen: Observations) -> Named:
    shows = [length for length, departs in seen.watched_lens.items() if departs]
    if shows == [0] and any(not departs for departs in seen.watched_lens.values()):
        return Named("empty", f"writes {_where(seen)} when there is no data, as if there were a block")
    return Named("over_write", f"writes {_where(seen)}{when(seen)}")


def _abi(seen: Observations) -> Named:
    return Named("abi", f"does not keep {seen.watched.registers}")


def _input(seen: Observations) -> Named:
    place = _BUFFERS.get(seen.watched.buffer, seen.watched.buffer)
    return Named("input_changed", f"changes byte {seen.watched.offset} of {place}, which is only read{when(seen)}")


def _context(seen: Observations) -> Named:
    if seen.refused:
        return Named("refusal", "a call that is rightly refused changes the context")
    return Named("context_changed", f"changes byte {seen.watched.offset} of the context outside of setkey{when(seen)}")


def _wipe(_: Observations) -> Named:
    return Named("secrets_left", "leaves bytes of a secret in registers or on the stack")


def _shared(_: Observations) -> Named:
    return Named("context", "answers otherwise while another thread works: something is kept beside contexts")


def _ended(seen: Observations) -> Named | None:
    if seen.watched.verdict == "hang":
        return Named("hang", f"does not come back{when(seen)}")
    if seen.watched.signal == "SIGILL":
        return Named("dispatch", "executes an instruction that this CPU has not")
    report = seen.watched.report
    if "AddressSanitizer" in report:
        return Named("over_write" if "WRITE" in report else "over_read", report)
    if report:
        return Named("compiler", f"does what C leaves undefined: {report}")
    if seen.needs("align", "edge") or seen.watched.signal in ("SIGBUS", "SIGSEGV"):
        return Named("alignment", f"ends with {seen.watched.signal} where a buffer is not aligned{when(seen)}")
    return None


_RULES: dict[str, Callable[[Observations], Named | None]] = {
    "guard_read": _read, "guard_write": _write, "canary": _write, "abi": _abi, "input": _input, "context": _context,
    "wipe": _wipe, "nondeterminism": _shared, "none": _ended,
}  # fmt: skip
