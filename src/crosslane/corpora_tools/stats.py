# SPDX-License-Identifier: Apache-2.0
"""What the cases of a corpus exercise, as words, and how many there are of each. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crosslane.corpora_tools.stored import Entry
from crosslane.findings.case import Case, Operation
from crosslane.manifest import Manifest
from crosslane.wire import Edge, OpKind, class_name

__all__ = ["AlgorithmStats", "features_of", "length_class", "stats_of"]

_MANY_PIECES = 3


@dataclass(frozen=True)
class AlgorithmStats:
    """One algorithm's cases: how many, their messages and operations, bytes of data, and how often each feature."""

    algorithm: str
    cases: int
    messages: int
    operations: int
    data_len: int
    features: Mapping[str, int]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "features": dict(sorted(self.features.items()))}


def stats_of(entries: Iterable[Entry], known: Mapping[str, Manifest]) -> list[AlgorithmStats]:
    """Numbers for each algorithm, in the order of names. Features count cases that have them."""
    by_name: dict[str, list[Case]] = {}
    for entry in entries:
        by_name.setdefault(entry.case.algorithm, []).append(entry.case)
    return [
        AlgorithmStats(
            algorithm=name,
            cases=len(cases),
            messages=sum(case.num_messages for case in cases),
            operations=sum(len(case.operations) for case in cases),
            data_len=sum(item.in_len for case in cases for item in case.operations),
            features=Counter(word for case in cases for word in features_of(case, known[name])),
        )
        for name, cases in sorted(by_name.items())
    ]


def length_class(length: int, block_len: int) -> str:
    """The class of a length, as code paths are observed by: whole blocks in octaves, and whether a part is left."""
    blocks = length // block_len
    return class_name(2 * min(7, blocks.bit_length()) + bool(length % block_len))


def features_of(case: Case, manifest: Manifest) -> set[str]:
    """Words for what a case exercises beside the code paths of an implementation."""
    return {word for session in case.sessions for word in (*_session(session, manifest), *_messages(session, manifest))}


def _session(case: Case, manifest: Manifest) -> Iterator[str]:
    yield "decrypt" if case.decrypting else "encrypt"
    if case.policy:
        yield f"policy:{case.policy}"
    if case.ctx_edge != Edge.MIDDLE:
        yield "guard:ctx"
    if manifest.tag_lens:
        yield f"tag:{case.tag_len}" if case.tag_len in manifest.tag_lens else "tag:refused"
    if len({item.slot for item in case.operations}) > 1:
        yield "contexts"
    keys = [item for item in case.operations if item.kind is OpKind.SETKEY]
    legal = {length * manifest.num_keys + manifest.key_extra_len for length in manifest.key_lens}
    for item in keys:
        yield f"key:{len(item.data)}" if len(item.data) in legal else "key:refused"
    if len(keys) > 1:
        yield "rekeyed"
    for kind in (OpKind.REINIT, OpKind.CLONE):
        if any(item.kind is kind for item in case.operations):
            yield kind.name.lower()


def _messages(case: Case, manifest: Manifest) -> Iterator[str]:
    """By the order of operations in each context: a message is what stands between two setiv operations."""
    for slot in sorted({item.slot for item in case.operations}):
        message: list[Operation] = []
        for item in case.operations:
            if item.slot != slot:
                continue
            if item.kind is OpKind.SETIV:
                yield from _message(message, manifest)
                message = []
            message.append(item)
        yield from _message(message, manifest)


def _message(message: list[Operation], manifest: Manifest) -> Iterator[str]:
    if not message or message[0].kind is not OpKind.SETIV:
        return
    updates = [item for item in message if item.kind is OpKind.UPDATE]
    pieces = [item.in_len for item in updates if not item.overlapping]
    yield f"len:{length_class(sum(pieces), manifest.block_len)}"
    yield "pieces:many" if len(pieces) >= _MANY_PIECES else f"pieces:{len(pieces)}"
    aad = [item.in_len for item in message if item.kind is OpKind.AAD]
    if aad:
        yield f"aad:{length_class(sum(aad), manifest.block_len)}"
    if manifest.iv in ("nonce", "hashed"):
        yield f"iv:{len(message[0].data)}"
    for name, found in (
        ("in_place", any(item.in_place for item in updates)),
        ("overlap", any(item.overlapping for item in updates)),
        ("guard:in", any(item.place.edge != Edge.MIDDLE for item in updates)),
        ("guard:out", any(item.out_place.edge != Edge.MIDDLE for item in updates)),
        ("misaligned", any(item.place.align or item.out_place.align for item in updates)),
        ("carry", _carries(message[0].data, sum(pieces), manifest)),
    ):
        if found:
            yield name


def _carries(iv: bytes, length: int, manifest: Manifest) -> bool:
    """Whether the lower half of a counter wraps within the message."""
    if manifest.iv not in ("counter", "index") or len(iv) != manifest.block_len:
        return False
    half = 8 * manifest.block_len // 2
    low = int.from_bytes(iv, "big") % (1 << half)
    return low + -(-length // manifest.block_len) > 1 << half
