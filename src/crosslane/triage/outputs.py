# SPDX-License-Identifier: Apache-2.0
"""Expected and got, side by side, with the bytes that differ marked. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from crosslane.compare import Departure
from crosslane.generate import output_lens
from crosslane.wire import Batch, Flag, OpKind, Results, Symptom

__all__ = ["Differing", "differing", "hex_lines"]

_MOST_LINES = 24
_PER_LINE = 16


@dataclass(frozen=True)
class Differing:
    """What one operation put out: its index in the case, what it put out, and the expected and the got bytes."""

    op: int
    what: str
    expected: bytes
    got: bytes


def differing(batch: Batch, expected: Results, got: Results, departure: Departure, block_len: int) -> Differing | None:
    """The output of the operation that departed; None where it is not its bytes that do."""
    if departure.symptom not in (Symptom.OUTPUT, Symptom.IV) or not departure.buffer:
        return None
    number = int(batch.cases["first_op"][departure.case]) + departure.op
    record = batch.ops[number]
    start, length = int(record["out_off"]), int(output_lens(batch, np.array([number]))[0])
    observed = block_len if int(record["flags"]) & Flag.OBSERVE_IV and record["kind"] == OpKind.UPDATE else 0
    data_len = length - observed
    if departure.symptom is Symptom.IV:
        start, length, what = start + data_len, observed, "iv left for the next call"
    else:
        length, what = data_len, "tag" if record["kind"] == OpKind.TAG else "output"
    ours, theirs = (side.out[start : start + length].tobytes() for side in (expected, got))
    return Differing(departure.op, what, ours, theirs)


def hex_lines(found: Differing) -> Iterator[str]:
    """Lines of 16 bytes, those that agree left out; below each pair what differs is marked."""
    shown = 0
    for at in range(0, len(found.expected), _PER_LINE):
        ours, theirs = found.expected[at : at + _PER_LINE], found.got[at : at + _PER_LINE]
        if ours == theirs:
            continue
        if shown == _MOST_LINES:
            yield "..."
            return
        shown += 1
        yield f"{at:6}  expected  {ours.hex(' ')}"
        yield f"        got       {theirs.hex(' ')}"
        marks = " ".join("^^" if one != other else "  " for one, other in zip(ours, theirs, strict=True))
        yield f"                  {marks}".rstrip()
