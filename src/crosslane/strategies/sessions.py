# SPDX-License-Identifier: Apache-2.0
"""The strategy for whole sessions of one algorithm, within the domain that its manifest describes.

A session is drawn as contexts that hold messages, and only then laid out as operations: taking a message, a piece or a
context away leaves a session, and so shrinking goes far. What follows from the operations, such as announced lengths,
is not drawn (``findings.judge.normalised``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, TypeVar

from hypothesis import strategies as st

from crosslane.findings.case import Case, Operation, Place
from crosslane.findings.judge import normalised
from crosslane.manifest import LIBRARY_STEERING, POLICY_BITS, Manifest
from crosslane.strategies.values import contents_of, ivs, keys, lengths, manifest_named, places
from crosslane.wire import Edge, Flag, OpKind

__all__ = ["policies", "sessions", "tag_lens", "wrong_bits"]

T = TypeVar("T")

_ONE_IN = 8
_MOST_MESSAGES = 3
_MOST_PIECES = 4
_MOST_AAD_PIECES = 2
_MOST_AAD_LEN = 80
_LONG_AAD_LENS = (0xFEFF, 0xFF00, 0xFF01)
"""Around the length from which CCM writes it in six bytes (SP 800-38C, A.2.2)."""


@dataclass(frozen=True)
class _Message:
    """A message as it is drawn, whatever the session is: operations but for their slots, and how it ends.

    ``rekeyed``: a new key, or none. ``clone_at`` is the piece before which its context is copied, or -1.
    """

    rekeyed: tuple[Operation, ...]
    reinit: bool
    begin: Operation
    aad: tuple[Operation, ...]
    pieces: tuple[Operation, ...]
    clone_at: int
    ends: bool
    wrong_bit: int
    tag: Operation


def _some(items: st.SearchStrategy[T], *, least: int = 0, most: int) -> st.SearchStrategy[list[T]]:
    """Lists of ``least`` (0 or 1) to ``most`` items, each of which shrinks away by one number that becomes 0.

    Of plain lists Hypothesis takes away few draws at once, and an item is many. The last one stays where one must.
    """

    def kept(drawn: list[tuple[int, T]]) -> list[T]:
        found = [item for number, item in drawn if number]
        return found or [item for _, item in drawn[-least:]] if least else found

    return st.lists(st.tuples(st.integers(0, _ONE_IN - 1), items), min_size=least, max_size=most).map(kept)


def policies(manifest: Manifest) -> st.SearchStrategy[int]:
    """Bits of the policies that a session asks for, with those that are always in force."""
    always = sum(POLICY_BITS[name] for name in manifest.always_policies)
    known = [0, *(POLICY_BITS[name] for name in manifest.policies)]
    return st.sampled_from(known).map(lambda bits: bits | always)


def tag_lens(manifest: Manifest) -> st.SearchStrategy[int]:
    """Lengths of a session's tags in bytes; 0 where the mode has none."""
    return st.sampled_from(sorted(manifest.tag_lens or (0,)))


def wrong_bits(tag_len: int) -> st.SearchStrategy[bytes]:
    """What is wrong in the tag that a decrypting session is given: nothing, or one bit."""
    return st.integers(0, 8 * tag_len).map(lambda bit: _with_bit(bit, tag_len))


def _with_bit(bit: int, tag_len: int) -> bytes:
    return ((1 << bit % (8 * tag_len + 1)) >> 1).to_bytes(tag_len, "little")


def _operations(
    kind: OpKind, data: st.SearchStrategy[bytes], out: st.SearchStrategy[Place] | None = None
) -> st.SearchStrategy[Operation]:
    """Operations of a kind with their places; without ``out`` there is no output whose place matters."""
    return st.tuples(data, places(), out if out is not None else st.just(Place())).map(
        lambda drawn: Operation(kind, drawn[0], place=drawn[1], out_place=drawn[2])
    )


def _updates(manifest: Manifest, lens: st.SearchStrategy[int]) -> st.SearchStrategy[Operation]:
    """Updates that may be in place, each followed by a look at the running iv where the mode has one."""
    in_place = st.booleans() if manifest.in_place else st.just(value=False)

    def flagged(drawn: tuple[Operation, bool]) -> Operation:
        return replace(drawn[0], flags=Flag.OBSERVE_IV | (Flag.IN_PLACE if drawn[1] else Flag(0)))

    return st.tuples(_operations(OpKind.UPDATE, contents_of(lens), places()), in_place).map(flagged)


def _pieces(manifest: Manifest) -> st.SearchStrategy[tuple[Operation, ...]]:
    """The updates of a message, as the mode and the domain let it be cut."""
    needs_one = manifest.split == "none" or manifest.min_len or manifest.min_len_blocks or not manifest.empty
    most = 1 if manifest.split == "none" else _MOST_PIECES
    share = manifest.max_len // most if manifest.max_len else 0
    inner = _updates(manifest, lengths(manifest, last=False, most=share))
    last = _updates(manifest, lengths(manifest, most=share))
    before = _some(inner, most=most - 1)
    after = _some(last, least=1 if needs_one else 0, most=1)
    return st.tuples(before, after).map(lambda drawn: (*drawn[0], *drawn[1]))


def _aad(manifest: Manifest) -> st.SearchStrategy[tuple[Operation, ...]]:
    if not manifest.aad:
        return st.just(())
    pieces = 1 if manifest.split == "none" else _MOST_AAD_PIECES
    bound = manifest.max_aad_len // pieces if manifest.max_aad_len else 0
    lens: st.SearchStrategy[int] = st.integers(0 if manifest.empty else 1, min(_MOST_AAD_LEN, bound or _MOST_AAD_LEN))
    long = [length for length in _LONG_AAD_LENS if not bound or length <= bound]
    drawn = _operations(OpKind.AAD, contents_of(lens | st.sampled_from(long) if long else lens))
    return _some(drawn, most=pieces).map(tuple)


def _messages(manifest: Manifest, *, refusals: bool) -> st.SearchStrategy[_Message]:
    nowhere = Operation(OpKind.TAG)
    rekeyed = _operations(OpKind.SETKEY, keys(manifest, refusals=refusals))
    return st.builds(
        _Message,
        rekeyed=st.lists(rekeyed, max_size=1).map(tuple),
        reinit=st.booleans() if manifest.reinit else st.just(value=False),
        begin=_operations(OpKind.SETIV, ivs(manifest, refusals=refusals), places()),
        aad=_aad(manifest),
        pieces=_pieces(manifest),
        clone_at=_clone_places(manifest),
        ends=st.booleans(),
        wrong_bit=st.integers(0, 8 * max(manifest.tag_lens or (0,))),
        tag=_operations(OpKind.TAG, st.just(b""), places()) if manifest.tag_lens else st.just(nowhere),
    )


def _clone_places(manifest: Manifest) -> st.SearchStrategy[int]:
    """Before which piece a context is copied; -1, to which it shrinks, for never."""
    return st.integers(0, _MOST_PIECES + 1).map(lambda number: number - 1) if manifest.clone else st.just(-1)


@dataclass(frozen=True)
class _Frame:
    """What holds for a whole session. ``whole``: its messages mean something as a whole alone."""

    has_tag: bool
    decrypting: bool
    tag_len: int
    whole: bool


def _laid_out(key: Operation, messages: Sequence[_Message], slot: int, frame: _Frame) -> Iterator[Operation]:
    """The operations of one context, ``slot``, and of its copies, the slot behind it."""
    yield replace(key, slot=slot)
    for message in messages:
        yield from (replace(item, slot=slot) for item in message.rekeyed)
        if message.reinit:
            yield Operation(OpKind.REINIT, slot=slot)
        yield from (replace(item, slot=slot) for item in (message.begin, *message.aad))
        clone_at = min(message.clone_at, len(message.pieces))
        at = slot
        for number in range(len(message.pieces) + 1):
            if number == clone_at:
                yield Operation(OpKind.CLONE, slot=slot + 1, from_slot=slot)
                at = slot + 1
            yield from (replace(item, slot=at) for item in message.pieces[number : number + 1])
        if message.ends or frame.whole:
            yield Operation(OpKind.FINAL, slot=at)
            if frame.has_tag:
                wrong = _with_bit(message.wrong_bit, frame.tag_len) if frame.decrypting else b""
                yield replace(message.tag, data=wrong, slot=at)


def _interleaved(contexts: Sequence[Sequence[Operation]], turn: int) -> Iterator[Operation]:
    """The contexts' operations, so many of each in turn; one context after the other where that is 0."""
    if turn == 0:
        yield from (item for operations in contexts for item in operations)
        return
    chunks = [[ops[at : at + turn] for at in range(0, len(ops), turn)] for ops in contexts]
    for row in zip_longest(*chunks, fillvalue=()):
        for chunk in row:
            yield from chunk


def sessions(
    of: Manifest | str,
    *,
    max_messages: int = _MOST_MESSAGES,
    refusals: bool = False,
    decrypting: bool | None = None,
) -> st.SearchStrategy[Case]:
    """Sessions of an algorithm: of its manifest, which may keep to a provider's domain, or by its name.

    Up to ``max_messages`` messages in each of one or two contexts, which take turns; keys, ivs and tags of all lengths,
    messages in pieces, re-initialised and cloned contexts, buffers in place, misaligned and at guard pages.
    ``refusals``: also keys and ivs of lengths that are to be refused. ``decrypting`` fixes the direction. Cases are in
    the form that ``Pair`` takes: what decrypts with a tag holds its plaintext, and of the tag the bits that are wrong.
    Raises BadInput for an algorithm that the suite does not have.
    """
    manifest = manifest_named(of) if isinstance(of, str) else of
    ways = sorted(name == "decrypt" for name in manifest.directions) if decrypting is None else [decrypting]
    key = _operations(OpKind.SETKEY, keys(manifest, refusals=refusals))
    messages = _some(_messages(manifest, refusals=refusals), least=1, most=max_messages)

    def made(drawn: tuple[Any, ...]) -> Case:
        contexts, way, tag_len, policy, edge, turn = drawn
        whole = manifest.steering == LIBRARY_STEERING or (way and manifest.is_aead)
        frame = _Frame(bool(manifest.tag_lens), way, tag_len, whole)
        laid_out = [list(_laid_out(first, some, 2 * at, frame)) for at, (first, some) in enumerate(contexts)]
        operations = tuple(_interleaved(laid_out, turn if len(contexts) > 1 else 0))
        return normalised(Case(manifest.algorithm, operations, way, policy, tag_len, edge), manifest)

    return st.tuples(
        _some(st.tuples(key, messages), least=1, most=2),
        st.sampled_from(ways),
        tag_lens(manifest),
        policies(manifest),
        st.sampled_from([Edge.MIDDLE, Edge.END]),
        st.integers(0, 3),
    ).map(made)
