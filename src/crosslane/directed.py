# SPDX-License-Identifier: Apache-2.0
"""Cases with known answers: published vectors as sessions, with the results that they must give."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crosslane.corpora import Vector, VectorFile
from crosslane.generate import output_lens, select_cases
from crosslane.manifest import POLICY_BITS, Manifest
from crosslane.wire import CASE, CASE_RESULT, OP, Batch, Edge, Flag, OpKind, Results, Status, Verdict

__all__ = [
    "DirectedBatch",
    "DirectedBuilder",
    "Known",
    "NamedBatch",
    "select_directed",
    "spread",
    "vector_batch",
    "within",
]

_MAX_ITERATIONS_BOTH_WAYS = 10_000
_LONG_ITERATIONS = 100_000
"""From so many on a vector takes an emulator seconds."""

_LEAST_OF_SOURCE = 8
_CASE = struct.Struct("<QIIBBHIQ")
_OP = struct.Struct("<8B5Q")
"""Records of ``wire.CASE`` and ``wire.OP``: a hundred thousand cases as Python's numbers would take 150 MB."""


@dataclass(frozen=True)
class NamedBatch:
    """A batch of stored cases, ready to run, and a name for each; generic answers it."""

    batch: Batch
    names: tuple[str, ...]


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


@dataclass(frozen=True)
class Known:
    """One message with its answer.

    ``answer`` is what the updates put out, ``tag`` what the tag operation gives or, when decrypting, is given.
    ``refused`` where the tag is wrong: then nothing is put out. ``repeats`` feeds the output back.
    """

    name: str
    decrypting: bool
    key: bytes
    iv: bytes
    data: bytes
    answer: bytes
    aad: bytes = b""
    tag: bytes = b""
    refused: bool = False
    repeats: int = 0


class DirectedBuilder:
    """Collects cases one by one; ``build`` returns them as a batch."""

    def __init__(self, *, policy: int = 0) -> None:
        """``policy`` is the key-refusal policy of every case, as bits."""
        self._policy = policy
        self._cases = bytearray()
        self._ops = bytearray()
        self._statuses = bytearray()
        self._blob = bytearray()
        self._out = bytearray()
        self._names: list[str] = []

    def _op(self, kind: OpKind, data: bytes, layout: _Layout, *, flags: int = 0, aux: tuple[int, int] = (0, 0)) -> None:
        self._ops += _OP.pack(
            kind, 0, flags, layout.in_edge, layout.in_align, layout.out_edge, layout.out_align, 0,
            len(self._blob), len(data), len(self._out), *aux
        )  # fmt: skip
        self._statuses.append(Status.OK)
        self._blob += data

    def add(self, known: Known, layout: _Layout = _LAYOUTS[0]) -> None:
        """Add a session of this one message."""
        first = len(self._statuses)
        self._op(OpKind.SETKEY, known.key, layout)
        self._op(OpKind.SETIV, known.iv, layout, aux=(len(known.aad), len(known.data)))
        if known.aad:
            self._op(OpKind.AAD, known.aad, layout)
        flags = Flag.LAST | (Flag.IN_PLACE if layout.in_place else 0)
        self._op(OpKind.UPDATE, known.data, layout, flags=int(flags), aux=(known.repeats, 0))
        self._out += bytes(len(known.answer)) if known.refused else known.answer
        self._op(OpKind.FINAL, b"", layout)
        if known.tag:
            self._op(OpKind.TAG, known.tag if known.decrypting else b"", layout)
            self._out += b"" if known.decrypting else known.tag
            self._statuses[-1] = Status.BAD_TAG if known.refused else Status.OK
        num_ops = len(self._statuses) - first
        self._cases += _CASE.pack(first, num_ops, self._policy, known.decrypting, 0, 0, len(known.tag), 0)
        self._names.append(known.name)

    def build(self) -> DirectedBatch:
        """The batch and what it must give."""
        cases, ops = np.frombuffer(bytes(self._cases), CASE), np.frombuffer(bytes(self._ops), OP)
        blob = np.frombuffer(bytes(self._blob), np.uint8)
        batch = Batch(cases, ops, blob, len(self._out), np.ones(len(cases), np.int64))
        ran = np.zeros(len(cases), CASE_RESULT)
        ran["verdict"] = Verdict.RAN
        out = np.frombuffer(bytes(self._out), np.uint8)
        expected = Results(np.zeros(8, np.uint64), ran, np.frombuffer(bytes(self._statuses), np.uint8), out)
        return DirectedBatch(batch, expected, tuple(self._names))


def _known_messages(file: VectorFile, vector: Vector, directions: Sequence[str]) -> Iterator[Known]:
    """The message in each direction that the mode has and the source allows."""
    repeats = vector.iterations if vector.iterations > 1 else 0
    refused = vector.expect == "bad_tag"
    for way in ("encrypt", "decrypt"):
        decrypting = way == "decrypt"
        if refused and not decrypting:
            continue
        if vector.direction not in ("both", way) or (way not in directions and not refused):
            continue
        if decrypting and repeats > _MAX_ITERATIONS_BOTH_WAYS:
            continue
        data, answer = (vector.ciphertext, vector.plaintext) if decrypting else (vector.plaintext, vector.ciphertext)
        if "decrypt" not in directions:
            data, answer = vector.plaintext, b""  # a MAC takes data and puts out a tag alone
        elif refused:
            answer = bytes(len(data))
        yield Known(
            name=f"{file.source}:{vector.id}:{way}",
            decrypting=decrypting,
            key=vector.key,
            iv=vector.iv,
            aad=vector.aad,
            data=data,
            answer=answer,
            tag=vector.tag,
            refused=refused,
            repeats=repeats,
        )


def _knowns(file: VectorFile, vector: Vector, directions: Sequence[str]) -> Iterator[Known]:
    """A vector as messages: each direction of a message, or each listed round of ecb's Monte Carlo test by itself."""
    if vector.kind == "message":
        yield from _known_messages(file, vector, directions)
    chain = vector.monte_carlo
    for item in chain.rounds if chain and not chain.with_iv else ():
        yield Known(
            name=f"{file.source}:{vector.id}:round_{item.index}:{vector.direction}",
            decrypting=vector.direction == "decrypt",
            key=item.key,
            iv=b"",
            data=item.input,
            answer=item.output,
            repeats=chain.num_inner if chain else 0,
        )


def vector_batch(
    files: Iterable[VectorFile], manifest: Manifest, *, bounded: bool = False, long: bool = False
) -> DirectedBatch:
    """All vectors of the manifest's algorithm that are sessions.

    Messages come in two layouts and in the mode's directions as far as the source allows them, with them the rounds of
    ecb's Monte Carlo tests. Those of other modes and chained vectors are run by ``chains``. With ``long`` there are
    only the vectors of very many iterations, otherwise all but those. With ``bounded`` only what the manifest's bounds,
    those of a provider, allow.
    """
    builder = DirectedBuilder(policy=sum(POLICY_BITS[name] for name in manifest.always_policies))
    ours = ((file, vector) for file in files if file.algorithm == manifest.algorithm for vector in file.vectors)
    for file, vector in ours:
        if (vector.iterations >= _LONG_ITERATIONS) is not long:
            continue
        for known in _knowns(file, vector, manifest.directions):
            if bounded and not within(manifest, known):
                continue
            builder.add(known)
            if not known.repeats and manifest.in_place:
                builder.add(replace(known, name=f"{known.name}:in_place"), _LAYOUTS[1])
    return builder.build()


def select_directed(directed: DirectedBatch, indexes: NDArray[np.int64]) -> DirectedBatch:
    """Just some cases with their names and answers; order as given."""
    batch, expected = directed.batch, directed.expected
    counts = batch.cases["num_ops"][indexes].astype(np.int64)
    starts = batch.cases["first_op"][indexes].astype(np.int64)
    ops = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
    lens = output_lens(batch, ops)
    offsets = batch.ops["out_off"][ops].astype(np.int64)
    out = np.repeat(offsets - (np.cumsum(lens) - lens), lens) + np.arange(int(lens.sum()))
    answers = Results(expected.header, expected.cases[indexes], expected.statuses[ops], expected.out[out])
    return DirectedBatch(select_cases(batch, indexes), answers, tuple(directed.names[i] for i in indexes.tolist()))


def spread(directed: DirectedBatch, most: int) -> DirectedBatch:
    """Of more cases than ``most`` about so many: whole vectors, evenly from each source and at least a few of each."""
    if len(directed.batch) <= most:
        return directed
    sources: dict[str, dict[str, list[int]]] = {}
    for number, name in enumerate(directed.names):
        source, vector = name.split(":")[:2]
        sources.setdefault(source, {}).setdefault(vector, []).append(number)
    chosen: list[int] = []
    for vectors in sources.values():
        count = max(len(vectors) * most // len(directed.batch), min(len(vectors), _LEAST_OF_SOURCE))
        listed = list(vectors.values())
        chosen += [number for i in range(count) for number in listed[i * len(listed) // count]]
    return select_directed(directed, np.array(sorted(chosen)))


def within(manifest: Manifest, known: Known) -> bool:
    """Whether lengths, direction and shape of a message are those of the manifest; wrong tags count as any tag."""
    way = "decrypt" if known.decrypting else "encrypt"
    key_lens = {length * manifest.num_keys + manifest.key_extra_len for length in manifest.key_lens}
    half = len(known.key) // 2
    equal = manifest.num_keys > 1 and known.key[:half] == known.key[half:]
    length = len(known.data)
    return (
        (way in manifest.directions or known.refused)
        and len(known.key) in key_lens
        and len(known.iv) in (manifest.iv_lens or (0,))
        and (not known.tag or len(known.tag) in manifest.tag_lens)
        and length >= max(manifest.min_len, 0 if manifest.empty else 1)
        and (not manifest.max_len or length <= manifest.max_len)
        and (not manifest.max_aad_len or len(known.aad) <= manifest.max_aad_len)
        and (manifest.equal_keys or not equal)
        and (manifest.split != "none" or not known.repeats)
    )
