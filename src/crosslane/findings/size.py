# SPDX-License-Identifier: Apache-2.0
"""How large a case is: the order in which shrinking goes down. Pure."""

from __future__ import annotations

from crosslane.findings.case import Case, Operation
from crosslane.wire import Edge, OpKind, displacement

__all__ = ["Measure", "measure"]

Measure = tuple[object, ...]

_DATA = (OpKind.UPDATE, OpKind.AAD)


def _features(case: Case) -> int:
    """Layout features: everything that is not aligned, in the middle and apart; a guard page counts twice."""
    places = [place for item in case.operations for place in (item.place, item.out_place)]
    pages = sum(place.edge != Edge.MIDDLE for place in places) + (case.ctx_edge != Edge.MIDDLE)
    return (
        pages
        + sum(not place.plain for place in places)
        + sum(item.in_place + 2 * item.overlapping for item in case.operations)
    )


def measure(case: Case) -> Measure:
    """How large a case is; a tuple that compares as cases do, the dimension that costs a reader most first."""
    ops = case.operations
    held = b"".join(item.data for item in ops)
    return (
        len(case.neighbours),
        case.num_messages,
        len(ops),
        sum(item.kind is OpKind.AAD for item in ops),
        sum(item.in_len for item in ops if item.kind in _DATA),
        case.decrypting,
        case.policy.bit_count(),
        _features(case),
        sum(len(item.data) for item in ops if item.kind is OpKind.SETKEY),
        sum(len(item.data) for item in ops if item.kind is OpKind.SETIV) + case.tag_len,
        sum(item.slot + item.from_slot for item in ops),
        sum((item.flags.value >> 2 & 1) + min(item.aux[0], 2) * (item.kind is OpKind.UPDATE) for item in ops),
        sum(item.place.align + item.out_place.align for item in ops),
        sum(_distance(item) for item in ops),
        sum(item.in_len for item in ops if item.kind is OpKind.UPDATE),
        len(held) - held.count(0),
        int.from_bytes(held).bit_count(),
        tuple(item.in_len for item in ops),
        held,
        *(measure(item) for item in case.neighbours),
    )


def _distance(item: Operation) -> int:
    """Twice the bytes between starts of buffers that overlap, one more backwards."""
    if not item.overlapping:
        return 0
    shift = displacement(item.aux[1])
    return 2 * abs(shift) + (shift < 0)
