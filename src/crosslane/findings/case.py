# SPDX-License-Identifier: Apache-2.0
"""One case by itself: operations that own their bytes, and the way from and to a batch of the wire protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosslane.generate import output_lens
from crosslane.wire import CASE, OP, Batch, Edge, Flag, OpKind

__all__ = ["Case", "Operation", "Place", "batch_of", "case_of", "in_turn", "segments", "whole_batch"]

_NO_FLAG = Flag(0)


@dataclass(frozen=True)
class Place:
    """Where a buffer lies: an edge, and an offset of 0..63 bytes past a 64-byte boundary where that is the middle."""

    edge: Edge = Edge.MIDDLE
    align: int = 0

    @property
    def plain(self) -> bool:
        """Whether nothing is special about it."""
        return self.edge == Edge.MIDDLE and self.align == 0


@dataclass(frozen=True)
class Operation:
    """One operation of a session with the bytes it takes.

    ``fed_len`` is the length in bytes of what a fed operation takes from an earlier output, then ``data`` is empty.
    ``aux`` are the two numbers of the wire format: lengths of the whole message, or repeats and, where input and output
    overlap, the displacement. ``out_len`` is in bytes.
    """

    kind: OpKind
    data: bytes = b""
    slot: int = 0
    from_slot: int = 0
    place: Place = Place()
    out_place: Place = Place()
    flags: Flag = _NO_FLAG
    aux: tuple[int, int] = (0, 0)
    out_len: int = 0
    fed_len: int = 0

    @property
    def in_place(self) -> bool:
        """Whether the output overwrites the input."""
        return bool(self.flags.value & 1)  # Flag.IN_PLACE; millions of candidates are looked at

    @property
    def overlapping(self) -> bool:
        """Whether input and output share bytes but do not begin together: a call to be refused."""
        return bool(self.flags.value & 16)  # Flag.OVERLAP

    @property
    def in_len(self) -> int:
        """Bytes that the operation takes."""
        return self.fed_len or len(self.data)


@dataclass(frozen=True)
class Case:
    """One session of an algorithm. ``policy`` is a bit set, ``tag_len`` is in bytes.

    ``neighbours`` are the sessions, none with neighbours of its own, that run before it in the same process.
    """

    algorithm: str
    operations: tuple[Operation, ...]
    decrypting: bool = False
    policy: int = 0
    tag_len: int = 0
    ctx_edge: Edge = Edge.MIDDLE
    neighbours: tuple[Case, ...] = ()

    @property
    def sessions(self) -> tuple[Case, ...]:
        """The neighbours and then the case itself, each by itself."""
        return (*self.neighbours, replace(self, neighbours=())) if self.neighbours else (self,)

    @property
    def num_messages(self) -> int:
        """Messages begun, what comparisons are counted in."""
        return sum(item.kind is OpKind.SETIV for item in self.operations)

    def with_operations(self, operations: Iterable[Operation]) -> Case:
        """The same case with other operations."""
        return replace(self, operations=tuple(operations))


def segments(case: Case) -> list[list[int]]:
    """The operations of each message, with the setkey and reinit operations that stand before it in its context.

    In the order of their setiv operations; what no message follows comes last.
    """
    groups: list[list[int]] = []
    begun: dict[int, list[int]] = {}
    before: dict[int, list[int]] = {}
    for at, item in enumerate(case.operations):
        if item.kind in (OpKind.SETKEY, OpKind.REINIT):
            begun.pop(item.slot, None)
            before.setdefault(item.slot, []).append(at)
        elif item.kind is OpKind.SETIV:
            begun[item.slot] = [*before.pop(item.slot, []), at]
            groups.append(begun[item.slot])
        else:
            source = item.from_slot if item.kind is OpKind.CLONE else item.slot
            group = begun.get(source)
            if group is None:
                group = before.setdefault(item.slot, [])
            elif item.kind is OpKind.CLONE:
                begun[item.slot] = group
            group.append(at)
    left = sorted(at for group in before.values() for at in group)
    return [*groups, left] if left or not groups else groups


def in_turn(case: Case) -> Case:
    """One message after the other, where contexts are interleaved."""
    return case.with_operations(case.operations[at] for group in segments(case) for at in group)


def case_of(batch: Batch, index: int, algorithm: str) -> Case:
    """Case ``index`` of a batch."""
    record = batch.cases[index]
    first, count = int(record["first_op"]), int(record["num_ops"])
    lens = output_lens(batch, np.arange(first, first + count))
    return Case(
        algorithm=algorithm,
        operations=tuple(_operation(batch, first + i, int(lens[i])) for i in range(count)),
        decrypting=bool(record["decrypting"]),
        policy=int(record["policy"]),
        tag_len=int(record["tag_len"]),
        ctx_edge=Edge(int(record["ctx_edge"])),
    )


def _operation(batch: Batch, at: int, out_len: int) -> Operation:
    op = batch.ops[at]
    start, length, flags = int(op["in_off"]), int(op["in_len"]), Flag(int(op["flags"]))
    fed = bool(flags & Flag.FEED)
    return Operation(
        kind=OpKind(int(op["kind"])),
        data=b"" if fed else batch.blob[start : start + length].tobytes(),
        slot=int(op["slot"]),
        from_slot=int(op["from_slot"]),
        place=Place(Edge(int(op["in_edge"])), int(op["in_align"])),
        out_place=Place(Edge(int(op["out_edge"])), int(op["out_align"])),
        flags=flags,
        aux=(int(op["aux0"]), int(op["aux1"])),
        out_len=out_len,
        fed_len=length if fed else 0,
    )


def whole_batch(case: Case) -> Batch:
    """A batch of a case behind its neighbours: it is the last one."""
    return batch_of(case.sessions)


def batch_of(cases: Sequence[Case]) -> Batch:
    """A batch of these cases in their order, which must be of one algorithm, without their neighbours."""
    records = np.zeros(len(cases), CASE)
    rows: list[tuple[int, ...]] = []
    blob, out_len = bytearray(), 0
    for index, case in enumerate(cases):
        records[index] = (
            len(rows), len(case.operations), case.policy, case.decrypting, case.ctx_edge, 0, case.tag_len, 0
        )  # fmt: skip
        for item in case.operations:
            writes = item.kind in (OpKind.UPDATE, OpKind.TAG)
            rows.append(
                (item.kind, item.slot, item.flags, item.place.edge, item.place.align, item.out_place.edge,
                 item.out_place.align, item.from_slot, len(blob), item.in_len, out_len if writes else 0, *item.aux)
            )  # fmt: skip
            blob += item.data
            out_len += item.out_len
    ops = np.array(rows, OP) if rows else np.zeros(0, OP)
    messages = np.array([case.num_messages for case in cases], np.int64)
    return Batch(records, ops, np.frombuffer(bytes(blob), np.uint8), out_len, messages)
