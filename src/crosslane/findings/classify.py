# SPDX-License-Identifier: Apache-2.0
"""The class of a shrunk case: which features its departure needs, and what a case is like without each of them.

A feature is read off the shrunk case, which has nothing that the departure does not need, and off a few cases beside
it (longer, the other direction, other key lengths). ``without`` takes a feature out of any case: a departure that is
gone without each feature of a finding is the same fault, one that stays is another.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from crosslane.compare import Departure
from crosslane.describe import register_names
from crosslane.findings.case import Case, Operation, Place, in_turn
from crosslane.findings.judge import Tries, normalised
from crosslane.findings.steps import is_counter
from crosslane.manifest import Manifest
from crosslane.wire import Buffer, Edge, Flag, OpKind, Symptom, Verdict

__all__ = ["REMOVABLE", "Classified", "classify", "face", "prefix_of", "same_face", "without"]

_WRITES = (Symptom.CANARY, Symptom.GUARD_WRITE)
_ANSWERS = (Symptom.OUTPUT, Symptom.IV)


@dataclass(frozen=True)
class Classified:
    """``features`` are sorted names; ``text`` is the class as findings have it."""

    features: tuple[str, ...]
    text: str


def face(departure: Departure) -> tuple[object, ...]:
    """What a watcher saw, as far as one fault shows the same; a write is one whether a canary or a page noticed it."""
    symptom = departure.symptom
    buffer = departure.buffer
    if symptom is Symptom.GUARD_READ and buffer is Buffer.OUT:  # the input of a call in place lies there
        buffer = Buffer.IN
    place = (buffer, departure.offset < 0)
    if symptom in _ANSWERS:
        return ("answer",)
    if symptom in _WRITES:
        return ("write", *place)
    if symptom is Symptom.ABI:
        return ("abi",)
    if symptom is Symptom.NONE:
        return ("ended", departure.verdict, departure.signal)
    return (symptom, *place) if symptom is Symptom.GUARD_READ else (symptom, buffer)


def same_face(one: Departure, other: Departure) -> bool:
    """Whether two departures look like one fault to the watchers."""
    return face(one) == face(other) and other.registers & ~one.registers == 0


def prefix_of(departure: Departure, arch: str, registers: int = 0) -> list[str]:
    """What the watcher itself says of the fault."""
    symptom = departure.symptom
    side = "before" if departure.offset < 0 else "behind"
    if symptom is Symptom.ABI:
        names = register_names(registers or departure.registers, arch).replace(" ", "_").replace(",_", ",")
        return [f"register:{names.lower()}"]
    if symptom in (*_WRITES, Symptom.GUARD_READ):
        return [departure.buffer.name.lower() + (f":{side}" if departure.buffer else "")]
    if symptom is Symptom.NONE:
        return ["hang" if departure.verdict is Verdict.HANG else _signal_name(departure.signal)]
    if symptom is Symptom.OUTPUT and departure.buffer is Buffer.NONE:
        return ["refuses" if departure.verdict is Verdict.REJECT else "accepts"]
    if symptom in (Symptom.INPUT, Symptom.CONTEXT):
        return [departure.buffer.name.lower()]
    return ["tag"] if departure.buffer is Buffer.TAG else []


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name.lower() if number else "exit"
    except ValueError:
        return f"signal_{number}"


def classify(judge: Tries, case: Case, departure: Departure, *, arch: str, registers: int = 0) -> Classified:
    """The class of a shrunk case. Asks the subject about the cases beside it."""
    features = sorted({*_layout(case, departure), *_shape(case), *_values(case, judge.manifest)})
    features = sorted({*features, *_by_asking(judge, case, departure)})
    if "rekey" in features:  # which needs another key, of whatever bytes and length
        features = [name for name in features if name.partition(":")[0] not in ("key", "key_len")]
    words = [*prefix_of(departure, arch, registers), *features]
    return Classified(tuple(features), "+".join(words) or "any")


def _layout(case: Case, departure: Departure) -> Iterable[str]:
    guarded = departure.symptom in (Symptom.GUARD_READ, Symptom.GUARD_WRITE)
    places = [place for item in case.operations for place in (item.place, item.out_place)]
    if any(item.in_place for item in case.operations):
        yield "in_place"
    if any(item.overlapping for item in case.operations):
        yield "overlap"
    if any(place.edge is Edge.MIDDLE and place.align for place in places):
        yield "align"
    if any(place.edge is not Edge.MIDDLE for place in places) and not guarded:
        yield "edge"
    if case.ctx_edge is not Edge.MIDDLE and not guarded:
        yield "context_edge"
    if case.policy:
        yield "policy"


def _shape(case: Case) -> Iterable[str]:
    kinds = [item.kind for item in case.operations]
    if case.num_messages > 1:
        yield "messages"
    if kinds.count(OpKind.SETKEY) > 1:
        yield "rekey"
    if in_turn(case) != case:
        yield "interleaved"
    if OpKind.CLONE in kinds:
        yield "clone"
    if OpKind.REINIT in kinds:
        yield "reinit"
    if any(one is other is OpKind.UPDATE for one, other in pairwise(kinds)):
        yield "split"
    if any(item.kind is OpKind.AAD for item in case.operations):
        yield "aad"


def _values(case: Case, manifest: Manifest) -> Iterable[str]:
    for item in case.operations:
        if not any(item.data):
            continue
        if item.kind is OpKind.SETIV and is_counter(item, manifest):
            yield _carry(int.from_bytes(item.data, "big"), -(-_longest(case) // manifest.block_len), manifest)
        elif item.kind in (OpKind.SETIV, OpKind.SETKEY):
            yield "iv" if item.kind is OpKind.SETIV else "key"
        elif item.kind is OpKind.TAG:
            yield "wrong_tag"
        else:
            yield "data"


def _carry(value: int, blocks: int, manifest: Manifest) -> str:
    """The widest carry that a counter makes within so many blocks."""
    bits = [n for n in range(8, 8 * manifest.block_len + 1, 8) if value % (1 << n) + max(1, blocks) >= 1 << n]
    return f"counter:{bits[-1]}" if bits else "iv"


def _longest(case: Case) -> int:
    return max((item.in_len for item in case.operations if item.kind is OpKind.UPDATE), default=0)


def _legal_keys(manifest: Manifest) -> list[int]:
    return sorted(n * manifest.num_keys + manifest.key_extra_len for n in manifest.key_lens)


def _by_asking(judge: Tries, case: Case, departure: Departure) -> list[str]:
    """Features that show by comparison: direction, key length, a partial block, a number of blocks."""
    manifest, bs = judge.manifest, judge.manifest.block_len
    length = _longest(case)
    questions: dict[str, Case] = {}
    if len(manifest.directions) == 2:
        questions["direction"] = replace(case, decrypting=not case.decrypting)
    keys = [len(item.data) for item in case.operations if item.kind is OpKind.SETKEY]
    legal = _legal_keys(manifest)
    for other in legal:
        if len(set(keys)) == 1 and keys[0] in legal and other != keys[0]:
            questions[f"key {other}"] = _keyed(case, keys[0], other)
    ivs = {len(item.data) for item in case.operations if item.kind is OpKind.SETIV}
    for other in manifest.iv_lens if manifest.iv == "nonce" and ivs & set(manifest.iv_lens) else ():
        if len(ivs) == 1 and other not in ivs:
            questions[f"iv {other}"] = _with_ivs(case, other)
    if any(item.kind is OpKind.UPDATE and not item.in_len for item in case.operations):
        questions["filled"] = _stretched(case, 0, bs)
    if length % bs:
        questions["whole"] = _stretched(case, length, -length % bs)
    if length:
        questions["more"] = _stretched(case, length, bs)
    normal = {name: normalised(item, manifest) for name, item in questions.items()}
    asked = {name: item for name, item in normal.items() if judge.may_be_tried(item)}
    answers = judge.all(list(asked.values()))
    departs = {
        name: found is not None and face(found) == face(departure) for name, found in zip(asked, answers, strict=True)
    }
    return list(_answers(case, manifest, departs, length))


def _answers(case: Case, manifest: Manifest, departs: dict[str, bool], length: int) -> Iterable[str]:
    if departs.get("direction") is False and any(item.kind is OpKind.UPDATE for item in case.operations):
        yield "decrypt" if case.decrypting else "encrypt"
    others = [value for name, value in departs.items() if name.startswith("key ")]
    key_len = next((len(item.data) for item in case.operations if item.kind is OpKind.SETKEY), 0)
    if others and (key_len != _legal_keys(manifest)[0] or not any(others)):
        yield f"key_len:{key_len}"
    nonces = [value for name, value in departs.items() if name.startswith("iv ")]
    iv_len = next((len(item.data) for item in case.operations if item.kind is OpKind.SETIV), 0)
    if nonces and (iv_len != min(manifest.iv_lens) or not any(nonces)):
        yield f"iv_len:{iv_len}"
    if departs.get("whole") is False:
        yield "stealing" if manifest.partial == "stealing" else "tail"
    if departs.get("filled") is False:
        yield "empty"
    blocks = -(-length // manifest.block_len)
    least = max(1, manifest.min_len_blocks)
    exact = departs.get("more") is False
    if blocks > least + (manifest.partial == "stealing" and departs.get("whole") is False) or (exact and length):
        yield f"blocks:{'=' if exact else ''}{blocks}"


def _keyed(case: Case, length: int, other: int) -> Case:
    """With keys of another length in place of those of ``length``: cut, or longer by zeros."""
    return case.with_operations(
        replace(item, data=(item.data + bytes(other))[:other])
        if item.kind is OpKind.SETKEY and len(item.data) == length
        else item
        for item in case.operations
    )


def _with_ivs(case: Case, length: int) -> Case:
    """With ivs of another length: cut, or longer by zeros."""
    return _each(
        case,
        lambda item: replace(item, data=(item.data + bytes(length))[:length]) if item.kind is OpKind.SETIV else item,
    )


def _stretched(case: Case, length: int, more: int) -> Case:
    """With ``more`` zero bytes behind the pieces of ``length``."""
    return case.with_operations(
        replace(item, data=item.data + bytes(more)) if item.kind is OpKind.UPDATE and item.in_len == length else item
        for item in case.operations
    )


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
    for item in case.operations:
        last = made[-1] if made else None
        joins = last and item.kind is last.kind is OpKind.UPDATE and item.slot == last.slot and not last.fed_len
        if last and joins and not item.overlapping and not last.overlapping:
            made[-1] = replace(item, data=last.data + item.data, place=last.place, out_place=last.out_place)
        else:
            made.append(item)
    return case.with_operations(made)


def _one_context(case: Case) -> Case:
    kept = [item for item in case.operations if item.kind is not OpKind.CLONE]
    return case.with_operations(replace(item, slot=0, from_slot=0) for item in kept)


def _no_chaining(case: Case, manifest: Manifest, value: str) -> Case:
    """Nothing that shows or uses the iv which a call leaves behind."""
    made = _joined(_one_context(case), manifest, value)
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


def _no_empty(case: Case, _: Manifest, __: str) -> Case:
    return case.with_operations(item for item in case.operations if item.kind is not OpKind.UPDATE or item.in_len)


def _padded(case: Case, manifest: Manifest, _: str) -> Case:
    def pad(item: Operation) -> Operation:
        more = -len(item.data) % manifest.block_len
        return replace(item, data=item.data + bytes(more)) if item.kind is OpKind.UPDATE else item

    return _each(case, pad)


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
    other = next(length for length in _legal_keys(manifest) if length != int(value))
    return _keyed(case, int(value), other)


def _other_iv_len(case: Case, manifest: Manifest, value: str) -> Case:
    other = next(length for length in sorted(manifest.iv_lens) if length != int(value))

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
    "split": _joined,
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
    "blocks": _other_blocks,
    "chaining": _no_chaining,
}
REMOVABLE = tuple(_WITHOUT)
"""Features that ``without`` can take out of a case."""
