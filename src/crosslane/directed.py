# SPDX-License-Identifier: Apache-2.0
"""Cases with known answers: published vectors as sessions, with the results that they must give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from crosslane.corpora import Vector, VectorFile
from crosslane.wire import CASE, CASE_RESULT, OP, Batch, Edge, Flag, OpKind, Results, Verdict

__all__ = ["DirectedBatch", "DirectedBuilder", "vector_batch"]

_MAX_ITERATIONS_BOTH_WAYS = 10_000


@dataclass(frozen=True)
class DirectedBatch:
    """A batch, the results that every subject must give, and a name for each case."""

    batch: Batch
    expected: Results
    names: tuple[str, ...]


@dataclass(frozen=True)
class _Layout:
    in_edge: Edge
    in_align: int
    out_edge: Edge
    out_align: int
    in_place: bool


_LAYOUTS = (_Layout(Edge.END, 0, Edge.END, 0, in_place=False), _Layout(Edge.MIDDLE, 1, Edge.MIDDLE, 1, in_place=True))


class DirectedBuilder:
    """Collects cases one by one; ``build`` returns them as a batch."""

    def __init__(self) -> None:
        self._cases: list[tuple[int, int, int]] = []
        self._ops: list[tuple[int, ...]] = []
        self._blob = bytearray()
        self._out = bytearray()
        self._names: list[str] = []

    def _put(self, data: bytes) -> tuple[int, int]:
        offset = len(self._blob)
        self._blob += data
        return offset, len(data)

    def _op(self, kind: OpKind, data: bytes, layout: _Layout, flags: int = 0, repeats: int = 0) -> None:
        offset, length = self._put(data)
        self._ops.append(
            (kind, 0, flags, layout.in_edge, layout.in_align, layout.out_edge, layout.out_align, 0,
             offset, length, len(self._out), repeats, 0)
        )  # fmt: skip

    def add(
        self,
        name: str,
        *,
        decrypting: bool,
        key: bytes,
        iv: bytes,
        data: bytes,
        answer: bytes,
        repeats: int,
        layout: _Layout,
    ) -> None:
        """Add a session of one message that must turn ``data`` into ``answer`` (after ``repeats`` rounds)."""
        first = len(self._ops)
        self._op(OpKind.SETKEY, key, layout)
        self._op(OpKind.SETIV, iv, layout)
        flags = Flag.LAST | (Flag.IN_PLACE if layout.in_place else 0)
        self._op(OpKind.UPDATE, data, layout, int(flags), repeats)
        self._out += answer
        self._op(OpKind.FINAL, b"", layout)
        self._cases.append((first, len(self._ops) - first, int(decrypting)))
        self._names.append(name)

    def build(self) -> DirectedBatch:
        """The batch and what it must give."""
        cases = np.zeros(len(self._cases), CASE)
        for index, (first, count, decrypting) in enumerate(self._cases):
            cases[index]["first_op"], cases[index]["num_ops"], cases[index]["decrypting"] = first, count, decrypting
        ops = np.array(self._ops, OP) if self._ops else np.zeros(0, OP)
        blob = np.frombuffer(bytes(self._blob), np.uint8)
        batch = Batch(cases, ops, blob, len(self._out), np.ones(len(cases), np.int64))
        ran = np.zeros(len(cases), CASE_RESULT)
        ran["verdict"] = Verdict.RAN
        expected = Results(
            np.zeros(8, np.uint64), ran, np.zeros(len(ops), np.uint8), np.frombuffer(bytes(self._out), np.uint8)
        )
        return DirectedBatch(batch, expected, tuple(self._names))


def _add_vector(builder: DirectedBuilder, file: VectorFile, vector: Vector) -> None:
    repeats = vector.iterations if vector.iterations > 1 else 0
    layouts: Sequence[_Layout] = _LAYOUTS if not repeats else _LAYOUTS[:1]
    for number, layout in enumerate(layouts):
        for decrypting in (False, True):
            wanted = vector.direction in ("both", "decrypt" if decrypting else "encrypt")
            if not wanted or (decrypting and repeats > _MAX_ITERATIONS_BOTH_WAYS):
                continue
            source, answer = (
                (vector.ciphertext, vector.plaintext) if decrypting else (vector.plaintext, vector.ciphertext)
            )
            way = "decrypt" if decrypting else "encrypt"
            builder.add(
                f"{file.source}:{vector.id}:{way}" + (":in_place" if number else ""),
                decrypting=decrypting,
                key=vector.key,
                iv=vector.iv,
                data=source,
                answer=answer,
                repeats=repeats,
                layout=layout,
            )


def _add_rounds(builder: DirectedBuilder, file: VectorFile, vector: Vector) -> None:
    """Each listed round of a Monte Carlo test by itself: its inner iterations under the round's key."""
    chain = vector.monte_carlo
    if chain is None:
        return
    for item in chain.rounds:
        builder.add(
            f"{file.source}:{vector.id}:round_{item.index}:{vector.direction}",
            decrypting=vector.direction == "decrypt",
            key=item.key,
            iv=b"",
            data=item.input,
            answer=item.output,
            repeats=chain.num_inner,
            layout=_LAYOUTS[0],
        )


def vector_batch(files: Iterable[VectorFile], algorithm: str) -> DirectedBatch:
    """All vectors of one algorithm that are sessions: messages in two layouts and both directions where the source allows
    both, and the rounds of Monte Carlo tests. Chained vectors are run by ``chains``.
    """
    builder = DirectedBuilder()
    for file in files:
        if file.algorithm == algorithm:
            for vector in file.vectors:
                if vector.kind == "message":
                    _add_vector(builder, file, vector)
                elif vector.kind == "monte_carlo":
                    _add_rounds(builder, file, vector)
    return builder.build()
