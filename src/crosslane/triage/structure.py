# SPDX-License-Identifier: Apache-2.0
"""Classes of answers that are wrong in plain sessions: told by where they are wrong, and by what else is right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crosslane.triage.blocks import Pattern, pattern, ranges
from crosslane.triage.named import Named, blocks_text
from crosslane.triage.observations import Answer, Observations

__all__ = ["structural"]

_TWEAKED = ("xts", "xts_gb", "lrw")


def structural(seen: Observations) -> Named | None:
    """The class of a departure that plain sessions show; None where they all agree."""
    if not _any(seen.plain.values()):
        return None
    return (
        _by_key(seen) or _by_mode(seen) or _by_iv(seen) or _by_blocks(seen) or _partial(seen) or _left_behind(seen)
    )  # fmt: skip


def _any(rows: Iterable[tuple[Answer, ...]]) -> bool:
    return any(answer.departs for answers in rows for answer in answers)


def _whole(seen: Observations) -> dict[int, tuple[Answer, ...]]:
    """The answers to messages of whole blocks, by their number."""
    bs = seen.facts.block_len
    return {length // bs: answers for length, answers in seen.plain.items() if length % bs == 0}


def _ragged(seen: Observations) -> dict[int, tuple[Answer, ...]]:
    """The answers to messages that end in a partial block, by their length in bytes."""
    return {length: answers for length, answers in seen.plain.items() if length % seen.facts.block_len}


def _wrong(rows: Mapping[int, tuple[Answer, ...]]) -> bool:
    return any(answer.answers_wrong for answers in rows.values() for answer in answers)


def blocks_of(seen: Observations) -> Pattern | None:
    """Where blocks of messages of whole blocks are wrong."""
    rows = _whole(seen)
    wrong = {n: frozenset(at for answer in answers for at in answer.wrong) for n, answers in rows.items()}
    departing = [answer for answers in rows.values() for answer in answers if answer.wrong]
    unwritten = bool(departing) and all(answer.unwritten for answer in departing)
    return pattern(wrong, seen.facts.ways, unwritten=unwritten)


def _by_key(seen: Observations) -> Named | None:
    """Keys of another length, or of zeros, are right throughout; the mode has no part in it."""
    key_lens = sorted(length for length, departs in seen.keys.items() if not departs)
    always = all(
        all(a.departs for a in answers) or not any(a.departs for a in answers) for answers in seen.plain.values()
    )
    if key_lens and always and (seen.blocks is not False or blocks_of(seen) is not None):
        return Named("key_schedule", f"keys of {', '.join(map(str, key_lens))} bytes are right, others are not")
    found = blocks_of(seen)
    if (
        seen.zero_key is False
        and seen.blocks is not False
        and found is not None
        and found.first == 0 == found.least - 1
    ):
        return Named("key_schedule", "a key of zeros is right, others are not")
    return None


def _by_mode(seen: Observations) -> Named | None:
    """What the mode does beside its blocks; the block function is right by itself."""
    facts = seen.facts
    if seen.blocks is not False:
        return None
    found = blocks_of(seen)
    if facts.mode == "cts_cbc":
        return Named("cts", f"the block function is right, and the end of the message is not: {_at(found)}")
    if facts.mode in _TWEAKED:
        return _by_tweaks(seen, found)
    if facts.is_mac:
        return _by_mac(seen)
    if facts.is_aead and found is None:
        return _by_tag(seen)
    return None


def _by_tweaks(seen: Observations, found: Pattern | None) -> Named | None:
    if found is None:
        if _wrong(_ragged(seen)):
            return Named("stealing", "whole blocks are right, and data units with a stolen tail are not")
        return None
    if found.unwritten:
        return _rest(found)
    return Named("tweak", f"the block function is right, and its tweaks are not: {_at(found)}")


def _by_mac(seen: Observations) -> Named:
    rows = _whole(seen)
    failing = [n for n, answers in sorted(rows.items()) if any(answer.departs for answer in answers)]
    if failing and failing[0] > 1:
        least = failing[0]
        if all(n in failing for n in rows if n >= least):
            return Named("step", f"the tag is wrong from {blocks_text(least)} on: what goes from step to step is lost")
        return Named("remainder", f"the tag is wrong for some numbers of blocks, the least {least}, and not for others")
    return Named("mac", "the block function is right, and the last block or what is buffered before it is not")


def _by_tag(seen: Observations) -> Named | None:
    """Of an authenticated mode whose data is right."""
    rows = _whole(seen)
    failing = [n for n, answers in sorted(rows.items()) if any(answer.tag for answer in answers)]
    if not failing:
        return (
            Named("ghash" if seen.facts.iv == "hashed" else "mac", "the tag is wrong behind a partial block")
            if any(answer.tag for answers in _ragged(seen).values() for answer in answers)
            else None
        )
    right = [what for what, departs in seen.headers.items() if not departs]
    if failing[0] == 0 and right:
        return Named("aead_header", f"the tag is wrong, and right with {right[0]}")
    if seen.facts.iv == "hashed":
        return Named("ghash", f"the data is right and the tag is not, from {blocks_text(failing[0])} on")
    if all(n in failing for n in rows if n >= failing[0]):
        return Named("step", f"the data is right and the tag is not, from {blocks_text(failing[0])} on")
    return Named(
        "remainder", f"the tag is wrong for some numbers of blocks, the least {failing[0]}, and not for others"
    )


def _by_iv(seen: Observations) -> Named | None:
    """Zeros as the counter are right at every length: the counter is handled wrongly."""
    if seen.facts.iv == "counter" and seen.zero_iv is False and not seen.blocks and _wrong(seen.plain):
        return Named("counter", "a counter of zeros is right at every length, others are not")
    return None


def _by_blocks(seen: Observations) -> Named | None:
    found = blocks_of(seen)
    if found is None:
        return None
    if found.unwritten or found.kind == "rest":
        return _rest(found)
    handed = found.first > 0 and any(answer.iv for answer in _whole(seen).get(found.first, ()))
    if found.kind == "step" or (handed and found.kind != "all"):
        return Named("step", f"what goes from one step to the next is wrong: {_at(found)}")
    return Named("computation", f"the computation of blocks is wrong: {_at(found)}")


def _rest(found: Pattern) -> Named:
    what = "is not written" if found.unwritten else "is wrong"
    return Named(
        "remainder",
        f"block {ranges(found.places)} of {blocks_text(found.shown)} {what}, and other numbers of blocks are right",
    )


def _at(found: Pattern | None) -> str:
    """The wrong blocks in words."""
    if found is None:
        return "partial blocks alone"
    if found.kind == "all":
        return "every block"
    places = found.places
    text = f"from {blocks_text(found.least)} on, " if found.least > 1 else ""
    if found.period > 1:
        text += f"of every {found.period} blocks "
        places = tuple(place for place in places if place < found.period)
    return f"{text}block {ranges(places)}" + ("" if found.period > 1 else f" of {found.shown}")


def _partial(seen: Observations) -> Named | None:
    if _wrong(_whole(seen)) or not _wrong(_ragged(seen)):
        return None
    if seen.facts.partial == "stealing":
        return Named("stealing", "whole blocks are right, and messages with a stolen tail are not")
    return Named("partial_block", "whole blocks are right, and a partial block at the end is not")


def _left_behind(seen: Observations) -> Named | None:
    """The answers are right, and the iv behind them is not."""
    if not _wrong(seen.plain):
        bs = seen.facts.block_len
        lens = sorted(n for n, answers in seen.plain.items() if any(answer.iv for answer in answers))
        least = f"{lens[0] // bs} blocks" if lens[0] % bs == 0 else f"{lens[0]} bytes"
        some = "" if len(lens) == len(seen.plain) else f", at some lengths, the least of {least}"
        return Named("iv_writeback", f"the answer is right, and the iv left for the next call is not{some}")
    return None
