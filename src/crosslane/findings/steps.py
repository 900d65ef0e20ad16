# SPDX-License-Identifier: Apache-2.0
"""Simpler cases than a given one, dimension by dimension, the boldest first. Pure: nothing runs here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from crosslane.findings.case import Case, Operation, Place, in_turn, segments
from crosslane.manifest import Manifest
from crosslane.wire import Edge, Flag, OpKind

__all__ = ["STEPS", "Step", "is_counter", "with_counter"]

Step = Callable[[Case, Manifest], Iterator[Case]]

_DATA = (OpKind.UPDATE, OpKind.AAD)
_ALL_LENGTHS_BELOW = 1088
"""Up to this length in bytes every shorter one is tried, so that the least is found whatever the fault needs."""
_MOST_BYTES_ONE_BY_ONE = 512
_MOST_BEFORE = 9
"""Counters so many blocks before a carry are tried."""
_BOUNDARIES = (8, 16, 24, 32, 40, 48, 56, 64, 96, 120, 128)


def _flat(case: Case) -> Case:
    """All of it in one context, without clones."""
    return case.with_operations(
        replace(item, slot=0, from_slot=0) for item in case.operations if item.kind is not OpKind.CLONE
    )


def _keeping(case: Case, wanted: set[int], groups: list[list[int]]) -> Case:
    """Just some messages, each with the last key set before it."""
    kept: list[Operation] = []
    key: Operation | None = None
    pending = False
    for number, group in enumerate(groups):
        for at in group:
            item = case.operations[at]
            if item.kind is OpKind.SETKEY:
                key, pending = item, number not in wanted
            if number in wanted:
                if item.kind is OpKind.SETIV and pending and key is not None:
                    kept.append(key)
                    pending = False
                kept.append(item)
    return case.with_operations(kept)


def fewer_messages(case: Case, _: Manifest) -> Iterator[Case]:
    """One message alone, two, or all but one."""
    groups = segments(case)
    count = len(groups)
    if count < 2:
        return
    choices = [{i} for i in reversed(range(count))]
    choices += [{i, j} for j in reversed(range(count)) for i in reversed(range(j))]
    choices += [set(range(count)) - {i} for i in range(count)]
    choices += [set(range(i)) for i in reversed(range(1, count))]
    for wanted in choices:
        made = _keeping(case, wanted, groups)
        yield _flat(made)
        yield made


def fewer_operations(case: Case, _: Manifest) -> Iterator[Case]:
    """Without the operations behind one, without one, without two."""
    ops = case.operations
    yield _flat(in_turn(case))
    yield _flat(case)
    for end in range(1, len(ops)):
        yield case.with_operations(ops[:end])
    for at in range(len(ops)):
        yield _without(case, at)
    if len(ops) <= 16:
        for second in range(len(ops)):
            for first in range(second):
                yield _without(_without(case, second), first)


def _without(case: Case, at: int) -> Case:
    """Without one operation; where it is a clone, what followed it goes on in the context that was cloned."""
    gone = case.operations[at]
    ops = list(case.operations[:at] + case.operations[at + 1 :])
    if gone.kind is OpKind.CLONE:
        ops[at:] = [replace(item, slot=gone.from_slot) if item.slot == gone.slot else item for item in ops[at:]]
    return case.with_operations(ops)


def fewer_splits(case: Case, manifest: Manifest) -> Iterator[Case]:
    """Neighbouring pieces joined: all, also cut shorter, then pair by pair."""
    joined = case
    at = 0
    while at + 1 < len(joined.operations):
        made = _joined(joined, at)
        joined, at = (made, at) if made is not None else (joined, at + 1)
    if joined == case:
        return
    yield joined
    for at, item in enumerate(joined.operations):
        if item.kind is OpKind.UPDATE:
            for length in _shorter(len(item.data), manifest.block_len):
                yield _with_data(joined, at, item.data[:length])
    for at in range(len(case.operations) - 1):
        made = _joined(case, at)
        if made is not None:
            yield made
            yield _second_alone(case, at, manifest.block_len)


def _second_alone(case: Case, at: int, block_len: int) -> Case:
    """Without the first of two pieces and what the second gave to the block begun, where the rest lay before."""
    one, other = case.operations[at : at + 2]
    spent = -len(one.data) % block_len
    places = [
        replace(place, align=(place.align + spent) % 64) if place.edge == Edge.MIDDLE else place
        for place in (other.place, other.out_place)
    ]
    rest = replace(other, data=other.data[spent:], place=places[0], out_place=places[1])
    return case.with_operations((*case.operations[:at], rest, *case.operations[at + 2 :]))


def _joined(case: Case, at: int) -> Case | None:
    one, other = case.operations[at : at + 2]
    if one.kind is not other.kind or one.kind not in _DATA or one.slot != other.slot or one.fed_len or other.fed_len:
        return None
    if one.overlapping or other.overlapping:
        return None
    both = replace(other, data=one.data + other.data, place=one.place, out_place=one.out_place)
    return case.with_operations((*case.operations[:at], both, *case.operations[at + 2 :]))


def _shorter(length: int, block_len: int) -> list[int]:
    """Lengths below ``length``, ascending: all where they are few."""
    if length <= _ALL_LENGTHS_BELOW:
        return list(range(length))
    steps = {length - (length >> k) for k in range(1, length.bit_length())}
    near = {length - k for k in (1, block_len, 2 * block_len) if k < length}
    marks = {(1 << k) + d for k in range(10, length.bit_length()) for d in (-1, 0, 1)} | {0xFEFF, 0xFF00, 0xFF01}
    return sorted(n for n in {*range(257), *steps, *near, *marks} if n < length)


def shorter(case: Case, manifest: Manifest) -> Iterator[Case]:
    """Every piece shorter, cut at its end; all pieces of a length at once first."""
    ops = case.operations
    lens = {len(item.data) for item in ops if item.kind is OpKind.UPDATE}
    if len(lens) > 1 or sum(item.kind is OpKind.UPDATE for item in ops) > 1:
        for length in _shorter(max(lens), manifest.block_len)[: 4 * manifest.block_len]:
            yield case.with_operations(
                replace(item, data=item.data[:length]) if item.kind is OpKind.UPDATE else item for item in ops
            )
    for at, item in enumerate(ops):
        if item.kind in _DATA and item.data:
            for length in _shorter(len(item.data), manifest.block_len):
                yield _with_data(case, at, item.data[:length])
    yield from _from_the_front(case, manifest)


def _from_the_front(case: Case, manifest: Manifest) -> Iterator[Case]:
    """Blocks cut off at the beginning, the counter moved on by as many."""
    last = -1
    for at, item in enumerate(case.operations):
        if item.kind is OpKind.SETIV and is_counter(item, manifest):
            last = at
        elif item.kind is OpKind.UPDATE and last >= 0 and not item.overlapping:
            counter = int.from_bytes(case.operations[last].data, "big")
            bits = 8 * manifest.block_len
            for blocks in reversed(range(1, min(len(item.data) // manifest.block_len, 64) + 1)):
                moved = ((counter + blocks) % (1 << bits)).to_bytes(manifest.block_len, "big")
                yield _with_data(_with_data(case, last, moved), at, item.data[blocks * manifest.block_len :])
            last = -1


def aad_as_data(case: Case, manifest: Manifest) -> Iterator[Case]:
    """Data in place of associated data, of any length: what a hash or a MAC does to the one it does to the other."""
    aad = [item for item in case.operations if item.kind is OpKind.AAD]
    if not aad:
        return
    bare = case.with_operations(item for item in case.operations if item.kind not in _DATA)
    length = max(item.in_len for item in case.operations if item.kind in _DATA)
    for at, item in enumerate(bare.operations):
        if item.kind is OpKind.SETIV:
            for data_len in range(min(length, _ALL_LENGTHS_BELOW) + 2 * manifest.block_len + 1):
                data = replace(aad[0], kind=OpKind.UPDATE, data=(aad[0].data + bytes(data_len))[:data_len])
                yield bare.with_operations((*bare.operations[: at + 1], data, *bare.operations[at + 1 :]))
    yield case.with_operations(
        replace(item, kind=OpKind.UPDATE) if item.kind is OpKind.AAD else item for item in case.operations
    )


def nonces_alone(case: Case, manifest: Manifest) -> Iterator[Case]:
    """Nonces of every legal length before one byte, or none: what a hash does to data it does to a long nonce."""
    if manifest.iv != "nonce":
        return
    byte = Operation(OpKind.UPDATE, b"\0")
    for length in sorted(manifest.iv_lens):
        bare = case.with_operations(
            replace(item, data=(item.data + bytes(length))[:length]) if item.kind is OpKind.SETIV else item
            for item in case.operations
            if item.kind not in _DATA
        )
        begins = [at for at, item in enumerate(bare.operations) if item.kind is OpKind.SETIV]
        for at in begins[-1:]:
            begun, rest = bare.operations[: at + 1], bare.operations[at + 1 :]
            slot = replace(byte, slot=begun[-1].slot)
            yield bare.with_operations((*begun, slot))
            yield bare.with_operations((*begun, slot, *rest))
        yield bare


def moved_splits(case: Case, manifest: Manifest) -> Iterator[Case]:
    """The same bytes, with less of them in the first of two pieces."""
    for at in range(len(case.operations) - 1):
        one, other = case.operations[at : at + 2]
        both = one.kind is OpKind.UPDATE and other.kind is OpKind.UPDATE and one.slot == other.slot
        if both and not one.overlapping and not other.overlapping:
            whole = one.data + other.data
            for length in _shorter(len(one.data), manifest.block_len):
                yield _with_data(_with_data(case, at, whole[:length]), at + 1, whole[length:])


def plainer_calls(case: Case, manifest: Manifest) -> Iterator[Case]:
    """Encrypting, no policy, one context, nothing observed, no repeats, a shorter tag."""
    yield replace(case, decrypting=False)
    yield replace(case, policy=0)
    for bit in (1, 2):
        yield replace(case, policy=case.policy & ~bit)
    yield case.with_operations(replace(item, slot=0, from_slot=0) for item in case.operations)
    yield case.with_operations(replace(item, flags=item.flags & ~Flag.OBSERVE_IV) for item in case.operations)
    for at, item in enumerate(case.operations):
        yield _with(case, at, replace(item, flags=item.flags & ~Flag.OBSERVE_IV))
        if item.kind is OpKind.UPDATE and item.aux[0]:
            for repeats in (0, 2, 3, item.aux[0] // 2):
                yield _with(case, at, replace(item, aux=(repeats, 0)))
        if item.slot:
            yield _with(case, at, replace(item, slot=0))
    tags = [item for item in case.operations if item.kind is OpKind.TAG]
    for length in sorted({*manifest.tag_lens, *(() if tags else (0,))}):
        if length < case.tag_len:
            yield replace(case, tag_len=length)


def plainer_layout(case: Case, _: Manifest) -> Iterator[Case]:
    """Everything aligned, apart and far from guard pages; then buffer by buffer; then smaller offsets."""
    apart = [replace(item, flags=item.flags & ~Flag.IN_PLACE) for item in case.operations]
    plain = Place()
    yield replace(case, ctx_edge=Edge.MIDDLE).with_operations(
        replace(item, place=plain, out_place=plain) for item in apart
    )
    yield replace(case, ctx_edge=Edge.MIDDLE).with_operations(
        replace(item, place=plain, out_place=plain) for item in case.operations
    )
    yield case.with_operations(apart)
    yield from _less_overlap(case)
    yield replace(case, ctx_edge=Edge.MIDDLE)
    for at, item in enumerate(case.operations):
        yield _with(case, at, replace(item, flags=item.flags & ~Flag.IN_PLACE, place=plain, out_place=plain))
        yield _with(case, at, replace(item, flags=item.flags & ~Flag.IN_PLACE))
        yield _with(case, at, replace(item, place=plain, out_place=plain))
        yield _with(case, at, replace(item, place=plain))
        yield _with(case, at, replace(item, out_place=plain))
    for at, item in enumerate(case.operations):
        if item.in_place:  # the input where it lay, the output elsewhere
            yield _with(
                case, at, replace(item, flags=item.flags & ~Flag.IN_PLACE, place=item.out_place, out_place=plain)
            )
    for at, item in enumerate(case.operations):
        yield _with(case, at, replace(item, place=_off_the_page(item.place, item.in_len)))
        yield _with(case, at, replace(item, out_place=_off_the_page(item.out_place, item.in_len)))
    for at, item in enumerate(case.operations):
        for align in sorted({0, *range(1, 9), 16, 32}):
            yield _with(case, at, replace(item, place=_nearer(item.place, align)))
            yield _with(case, at, replace(item, out_place=_nearer(item.out_place, align)))


def _less_overlap(case: Case) -> Iterator[Case]:
    """Buffers that overlap apart; or displaced by less, forwards first."""
    yield case.with_operations(_apart(item) for item in case.operations)
    for at, item in enumerate(case.operations):
        if item.overlapping:
            yield _with(case, at, _apart(item))
            for shift in (*range(1, 17), *range(-1, -17, -1)):
                yield _with(case, at, replace(item, aux=(item.aux[0], shift % (1 << 64))))


def _apart(item: Operation) -> Operation:
    if not item.overlapping:
        return item
    return replace(item, flags=item.flags & ~Flag.OVERLAP, aux=(item.aux[0], 0))


def _off_the_page(place: Place, length: int) -> Place:
    """In the middle, at the same offset within a page."""
    return Place(align=0 if place.edge == Edge.START else -length % 64) if place.edge != Edge.MIDDLE else place


def _nearer(place: Place, align: int) -> Place:
    """At a smaller offset; the offset of a buffer at a guard page means nothing."""
    return replace(place, align=0 if place.edge != Edge.MIDDLE else min(place.align, align))


def shorter_keys(case: Case, manifest: Manifest) -> Iterator[Case]:
    """Shorter keys and ivs: of legal lengths, or of any where it is an illegal one."""
    longest = max(manifest.key_lens) * manifest.num_keys + manifest.key_extra_len
    keys = sorted({n * manifest.num_keys + manifest.key_extra_len for n in manifest.key_lens})
    ivs = sorted(manifest.iv_lens or (0,))
    for kind, legal, most in ((OpKind.SETKEY, keys, longest), (OpKind.SETIV, ivs, max(ivs))):
        held = [item for item in case.operations if item.kind is kind]
        for length in legal if all(len(item.data) in legal for item in held) else range(most + 1):
            yield case.with_operations(
                replace(item, data=item.data[:length]) if item.kind is kind else item for item in case.operations
            )
        for at, item in enumerate(case.operations):
            if item.kind is kind and len(held) > 1:
                for length in legal if len(item.data) in legal else range(most + 1):
                    yield _with_data(case, at, item.data[:length])


def zeros(case: Case, _: Manifest) -> Iterator[Case]:
    """Zero bytes in place of others: everywhere, by kind, by operation, by halves down to single bytes; then bits."""
    kinds = (OpKind.UPDATE, OpKind.AAD, OpKind.SETKEY, OpKind.SETIV, OpKind.TAG)
    yield _zeroed(case, kinds)
    yield _zeroed(case, kinds[:4])
    yield _zeroed(case, kinds[:2])
    for kind in kinds:
        yield _zeroed(case, (kind,))
    for at, item in enumerate(case.operations):
        yield _with_data(case, at, bytes(len(item.data)))
    for at, item in enumerate(case.operations):
        size = len(item.data)
        while size > 1 and len(item.data) <= _MOST_BYTES_ONE_BY_ONE:
            size = (size + 1) // 2
            for start in range(0, len(item.data), size):
                if any(item.data[start : start + size]):
                    end = min(start + size, len(item.data))
                    yield _with_data(case, at, item.data[:start] + bytes(end - start) + item.data[end:])
    yield from _fewer_bits(case)


def _fewer_bits(case: Case) -> Iterator[Case]:
    """One bit alone in a byte, then one bit less."""
    for at, item in enumerate(case.operations):
        places = [i for i, byte in enumerate(item.data) if byte][:32]
        for single in (True, False):
            for i in places:
                byte = item.data[i]
                for bit in range(8):
                    value = 1 << bit if single else byte & ~(1 << bit)
                    if value != byte:
                        yield _with_data(case, at, item.data[:i] + bytes([value]) + item.data[i + 1 :])


def counters(case: Case, manifest: Manifest) -> Iterator[Case]:
    """Counters just before a carry, zero above it, in messages of one block or two."""
    bs = manifest.block_len
    for at, item in enumerate(case.operations):
        if item.kind is not OpKind.SETIV or not is_counter(item, manifest):
            continue
        following = next(
            (i for i in range(at + 1, len(case.operations)) if case.operations[i].kind is OpKind.UPDATE), None
        )
        if following is None:
            continue
        for value in [(1 << bits) - j for bits in _BOUNDARIES if bits <= 8 * bs for j in range(1, _MOST_BEFORE + 1)]:
            made = with_counter(case, at, value, bs)
            data = case.operations[following].data
            for length in sorted({1, bs, bs + 1, 2 * bs, 2 * bs + 1, len(data)}):
                if length <= len(data):
                    yield _with_data(made, following, data[:length])


def is_counter(item: Operation, manifest: Manifest) -> bool:
    """Whether the iv of a setiv operation is a number that the mode counts up."""
    return manifest.iv in ("counter", "index") and len(item.data) == manifest.block_len


def with_counter(case: Case, at: int, value: int, block_len: int) -> Case:
    """With another counter in operation ``at``."""
    return _with_data(case, at, value.to_bytes(block_len, "big"))


def _zeroed(case: Case, kinds: tuple[OpKind, ...]) -> Case:
    return case.with_operations(
        replace(item, data=bytes(len(item.data))) if item.kind in kinds else item for item in case.operations
    )


def _with(case: Case, at: int, item: Operation) -> Case:
    return case.with_operations((*case.operations[:at], item, *case.operations[at + 1 :]))


def _with_data(case: Case, at: int, data: bytes) -> Case:
    return _with(case, at, replace(case.operations[at], data=data))


STEPS: tuple[Step, ...] = (
    fewer_messages, fewer_operations, fewer_splits, nonces_alone, aad_as_data, shorter, plainer_calls, plainer_layout,
    shorter_keys, zeros, counters, moved_splits,
)  # fmt: skip
