# SPDX-License-Identifier: Apache-2.0
"""Classes of answers that are right in plain sessions: told by the condition that the least case has."""

from __future__ import annotations

from crosslane.triage.named import Named, bytes_text
from crosslane.triage.observations import Observations

__all__ = ["conditional"]

_LARGE = 4096
_USES = {
    "rekey": "another key in the same context", "reinit": "a context that is used anew",
    "clone": "a context that is copied", "interleaved": "another context in use before the message ends",
    "messages": "a message before it",
}  # fmt: skip


def conditional(seen: Observations) -> Named | None:
    """The class of a departure that needs a condition which plain sessions have not."""
    for rule in (_block_function, _layout, _headers, _large, _counters, _uses, _pieces, _bytes):
        found = rule(seen)
        if found is not None:
            return found
    return None


def _block_function(seen: Observations) -> Named | None:
    if seen.blocks and not seen.needs("in_place", "align"):
        return Named("computation", "the block function by itself is wrong for some data")
    return None


def _layout(seen: Observations) -> Named | None:
    if seen.needs("in_place"):
        return Named("in_place", "it is right apart, and wrong where the output lies over the input")
    if seen.needs("align", "edge", "context_edge"):
        return Named("alignment", "it is right where buffers are aligned, and wrong at some offsets")
    return None


def _headers(seen: Observations) -> Named | None:
    wrong = [what for what, departs in seen.headers.items() if departs]
    if wrong:
        right = len(seen.headers) - len(wrong)
        return Named(
            "aead_header", f"it is wrong with {wrong[0]}" + (f", and right with {right} others" if right else "")
        )
    if seen.needs("aad"):
        return Named("aead_header", "it needs associated data")
    return None


def _large(seen: Observations) -> Named | None:
    if seen.length >= _LARGE and seen.length > max(seen.plain, default=0):
        return Named("large", f"shorter messages are right, and {bytes_text(seen.length)} are not")
    return None


def _counters(seen: Observations) -> Named | None:
    facts = seen.facts
    departing = {place: answer for place, answer in seen.carries.items() if answer.departs}
    if departing:
        bits, before = min(departing, key=lambda place: (not departing[place].answers_wrong, place[0], -place[1]))
        where = f"a counter that carries out of its low {bits} bits within {before} blocks"
        if not any(answer.answers_wrong for answer in departing.values()):
            return Named("iv_writeback", f"the answer is right, and the iv left behind {where} is not")
        if facts.iv == "index":
            return Named("tweak", f"the block function is right, and tweaks are wrong behind {where}")
        return Named("counter", f"the block function is right, and {facts.mode} is wrong behind {where}")
    if seen.needs("counter"):
        return Named("tweak" if facts.iv == "index" else "counter", "it needs a counter that carries")
    if facts.iv == "hashed" and seen.has("iv"):
        return Named("counter", "it needs a nonce whose counter wraps in its low 32 bits: other nonces are right")
    return None


def _uses(seen: Observations) -> Named | None:
    for word, what in _USES.items():
        if seen.needs(word):
            return Named("context", f"it needs {what}")
    return None


def _pieces(seen: Observations) -> Named | None:
    if seen.has("split"):
        bs = seen.facts.block_len
        if seen.facts.is_mac and all(length % bs == 0 for length in seen.pieces):
            return Named(
                "step", "one call is right, and several of whole blocks are not: what goes from one to the next"
            )
        if seen.facts.is_mac:
            return Named("mac", "one call is right, and several are not: what is buffered between them is wrong")
        return Named("partial_block", "one call is right, and several that begin or end within a block are not")
    if not seen.length and not seen.has("aad"):
        kind = "mac" if seen.facts.is_mac else "empty"
        return Named(kind, "messages with data are right, and one without is not")
    return None


def _bytes(seen: Observations) -> Named | None:
    if seen.needs("key"):
        return Named("key_schedule", "it needs certain keys")
    if seen.facts.iv in ("tweak", "index") and seen.has("iv"):
        return Named("tweak", "it needs certain tweaks")
    return None
