# SPDX-License-Identifier: Apache-2.0
"""Cases beside a shrunk one: longer, with other keys and ivs, and without each feature that a class can name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from crosslane.findings.case import Case, Operation, Place, in_turn
from crosslane.findings.judge import normalised
from crosslane.findings.steps import is_counter
from crosslane.manifest import Manifest
from crosslane.wire import Edge, Flag, OpKind

__all__ = ["LARGE", "REMOVABLE", "filled", "keyed", "legal_keys", "longest", "stretched", "with_ivs", "without"]

LARGE = 1 << 16
"""Bytes from which on a message is called large."""


def longest(case: Case) -> int:
    """Bytes of the longest piece."""
    return max((item.in_len for item in case.operations if item.kind is OpKind.UPDATE), default=0)


def legal_keys(manifest: Manifest) -> list[int]:
    """Lengths in bytes that a key may have, all parts of it together."""
    return sorted(n * manifest.num_keys + manifest.key_extra_len for n in manifest.key_lens)


def keyed(case: Case, length: int, other: int) -> Case:
    """With keys of another length in place of those of ``length``: cut, or longer by zeros."""
    return case.with_operations(
        replace(item, data=(item.data + bytes(other))[:other])
        if item.kind is OpKind.SETKEY and len(item.data) == length
        else item
        for item in case.operations
    )


def with_ivs(case: Case, length: int) -> Case:
    """With ivs of another length: cut, or longer by zeros."""
    return _each(
        case,
        lambda item: replace(item, data=(item.data + bytes(length))[:length]) if item.kind is OpKind.SETIV else item,
    )


def stretched(case: Case, length: int, more: int) -> Case:
    """With ``more`` zero bytes behind the pieces of ``length``."""
    return case.with_operations(
        replace(item, data=item.data + bytes(more)) if item.kind is OpKind.UPDATE and item.in_len == length else item
        for item in case.operations
    )


def filled(case: Case, length: int) -> Case:
    """With zero bytes in empty pieces, and in messages that have no piece."""
    if any(item.kind is OpKind.UPDATE for item in case.operations):
        return stretched(case, 0, length)
    made: list[Operation] = []
    for item in case.operations:
        made += [Operation(OpKind.UPDATE, bytes(length), slot=item.slot)] if item.kind is OpKind.FINAL else []
        made.append(item)
    return case.with_operations(made)


def _each(case: Case, change: Callable[[Operation], Operation]) -> Case:
    return case.with_operations(change(item) for item in case.operations)


def without(case: Case, feature: str, manifest: Manifest) -> Case:
    """The case without a feature, in the form in which it is handled here."""
    name, _, value = feature.partition(":")
    made = _WITHOUT[name](case, manifest, value)
    return normalised(made, manifest)


def _dropping(kind: OpKind) -> Callable[[Case, Manifest, str], Case]:
    def drop(case: Case, manifest: Manifest, value: str) -> Case:
        del manifest, value
        return case.with_operations(item for item in case.operations if item.kind is not kind)

    return drop


def _zeroing(kind: OpKind) -> Callable[[Case, Manifest, str], Case]:
    def zero(case: Case, manifest: Manifest, value: str) -> Case:
        del manifest, value
        return _each(case, lambda item: replace(item, data=bytes(len(item.data))) if item.kind is kind else item)

    return zero


def _no_in_place(case: Case, _: Manifest, __: str) -> Case:
    return _each(case, lambda item: replace(item, flags=item.flags & ~Flag.IN_PLACE))


def _no_overlap(case: Case, _: Manifest, __: str) -> Case:
    return case.with_operations(item for item in case.operations if not item.overlapping)


def _no_edge(case: Case, _: Manifest, __: str) -> Case:
    return _each(case, lambda item: replace(item, place=Place(), out_place=Place()))


def _joined(case: Case, _: Manifest, __: str) -> Case:
    made: list[Operation] = []
    for item in in_turn(case).operations:
        last = made[-1] if made else None
        joins = last and item.kind is last.kind is OpKind.UPDATE and item.slot == last.slot and not last.fed_len
        if last and joins and not item.overlapping and not last.overlapping:
            made[-1] = replace(item, data=last.data + item.data, place=last.place, out_place=last.out_place)
        else:
            made.append(item)
    return case.with_operations(made)


def _whole(case: Case, manifest: Manifest, value: str) -> Case:
    """Each message in one call: refused ones between its pieces are left out."""
    return _joined(_no_overlap(case, manifest, value), manifest, value)


def _one_context(case: Case) -> Case:
    kept = [item for item in in_turn(case).operations if item.kind is not OpKind.CLONE]
    return case.with_operations(replace(item, slot=0, from_slot=0) for item in kept)


def _no_chaining(case: Case, manifest: Manifest, value: str) -> Case:
    """Nothing that shows or uses the iv which a call leaves behind."""
    made = _whole(_one_context(case), manifest, value)
    return _each(made, lambda item: replace(item, flags=item.flags & ~Flag.OBSERVE_IV))


def _last_message(case: Case, _: Manifest, __: str) -> Case:
    """The last message alone, under the last key."""
    case = in_turn(case)
    begins = [at for at, item in enumerate(case.operations) if item.kind is OpKind.SETIV]
    keys = [item for item in case.operations[: begins[-1]] if item.kind is OpKind.SETKEY] if begins else []
    return _one_context(case.with_operations((*keys[-1:], *case.operations[begins[-1] :]))) if begins else case


def _one_key(case: Case, _: Manifest, __: str) -> Case:
    first = next((at for at, item in enumerate(case.operations) if item.kind is OpKind.SETKEY), 0)
    return case.with_operations(
        item for at, item in enumerate(case.operations) if item.kind is not OpKind.SETKEY or at == first
    )


def _no_empty(case: Case, manifest: Manifest, _: str) -> Case:
    if not longest(case):
        return filled(case, manifest.block_len)
    return case.with_operations(item for item in case.operations if item.kind is not OpKind.UPDATE or item.in_len)


def _padded(case: Case, manifest: Manifest, _: str) -> Case:
    def pad(item: Operation) -> Operation:
        more = -len(item.data) % manifest.block_len
        return replace(item, data=item.data + bytes(more)) if item.kind is OpKind.UPDATE else item

    return _each(case, pad)


def _ragged(case: Case, manifest: Manifest, _: str) -> Case:
    def add(item: Operation) -> Operation:
        whole = item.kind is OpKind.UPDATE and item.in_len and item.in_len % manifest.block_len == 0
        return replace(item, data=item.data + bytes(1)) if whole else item

    return _each(case, add)


def _cut(case: Case, manifest: Manifest, _: str) -> Case:
    most = (LARGE - 1) // manifest.block_len * manifest.block_len
    return _each(case, lambda item: replace(item, data=item.data[:most]) if item.kind is OpKind.UPDATE else item)


def _other_blocks(case: Case, manifest: Manifest, value: str) -> Case:
    """Pieces of fewer blocks; where just one number of blocks departs, of one block more."""
    exact, bs = value.startswith("="), manifest.block_len
    blocks = int(value.lstrip("="))

    def change(item: Operation) -> Operation:
        if item.kind not in (OpKind.UPDATE, OpKind.AAD):
            return item
        if exact:
            alike = -(-item.in_len // bs) == blocks
            return replace(item, data=item.data + bytes(bs)) if alike else item
        return replace(item, data=item.data[: (blocks - 1) * bs])

    return _each(case, change)


def _no_carry(case: Case, manifest: Manifest, value: str) -> Case:
    """Counters that do not carry beyond so many bits."""
    at = -(int(value) // 8)

    def change(item: Operation) -> Operation:
        if item.kind is not OpKind.SETIV or not is_counter(item, manifest):
            return item
        data = bytearray(item.data)
        data[at] = 0
        return replace(item, data=bytes(data))

    return _each(case, change)


def _other_key_len(case: Case, manifest: Manifest, value: str) -> Case:
    other = next(length for length in legal_keys(manifest) if length != int(value))
    return keyed(case, int(value), other)


def _other_iv_len(case: Case, manifest: Manifest, value: str) -> Case:
    usual = manifest.iv_lens[0]
    other = usual if usual != int(value) else manifest.iv_lens[-1]

    def change(item: Operation) -> Operation:
        if item.kind is not OpKind.SETIV or len(item.data) != int(value):
            return item
        return replace(item, data=(item.data + bytes(other))[:other])

    return _each(case, change)


_WITHOUT: dict[str, Callable[[Case, Manifest, str], Case]] = {
    "in_place": _no_in_place,
    "overlap": _no_overlap,
    "align": lambda case, manifest, value: _no_edge(_joined(case, manifest, value), manifest, value),
    "edge": _no_edge,
    "context_edge": lambda case, _, __: replace(case, ctx_edge=Edge.MIDDLE),
    "policy": lambda case, _, __: replace(case, policy=0),
    "messages": _last_message,
    "rekey": _one_key,
    "interleaved": lambda case, _, __: in_turn(case),
    "clone": lambda case, _, __: _one_context(case),
    "reinit": _dropping(OpKind.REINIT),
    "split": _whole,
    "empty": _no_empty,
    "aad": _dropping(OpKind.AAD),
    "iv": _zeroing(OpKind.SETIV),
    "key": _zeroing(OpKind.SETKEY),
    "data": _zeroing(OpKind.UPDATE),
    "wrong_tag": _zeroing(OpKind.TAG),
    "counter": _no_carry,
    "decrypt": lambda case, _, __: replace(case, decrypting=False),
    "encrypt": lambda case, _, __: replace(case, decrypting=True),
    "key_len": _other_key_len,
    "iv_len": _other_iv_len,
    "tail": _padded,
    "stealing": _padded,
    "whole": _ragged,
    "large": _cut,
    "blocks": _other_blocks,
    "chaining": _no_chaining,
}
REMOVABLE = tuple(_WITHOUT)
"""Features that ``without`` can take out of a case."""
