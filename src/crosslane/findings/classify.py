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
from crosslane.findings.case import Case, Operation, Place, batch_of
from crosslane.findings.judge import Judge, normalised
from crosslane.findings.steps import is_counter
from crosslane.manifest import Manifest
from crosslane.wire import Buffer, Edge, Flag, OpKind, Status, Symptom, Verdict

__all__ = ["Classified", "classify", "face", "same_face", "without"]

_WRITES = (Symptom.CANARY, Symptom.GUARD_WRITE)
_LARGE = 1 << 16
"""Bytes from which on a message is called large."""
_OTHER_TWEAKS = 16
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


def _prefix(departure: Departure, arch: str, registers: int, *, aead: bool) -> list[str]:
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
    return ["tag"] if departure.buffer is Buffer.TAG and aead else []  # a MAC gives nothing else


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name.lower() if number else "exit"
    except ValueError:
        return f"signal_{number}"


def classify(
    judge: Judge, case: Case, departure: Departure, *, arch: str, registers: int = 0, dirty: bool = False
) -> Classified:
    """The class of a shrunk case. Asks the subject about the cases beside it.

    ``dirty`` says that the answer changes with what registers and dead stack held before the calls.
    """
    features = sorted({*_layout(case, departure), *_shape(case), *_values(case, judge.manifest)})
    features = sorted({*features, *_by_asking(judge, case, departure)})
    words = [*_prefix(departure, arch, registers, aead=judge.manifest.is_aead), *(["dirty_state"] if dirty else [])]
    words += ["tweak"] if _depends_on_tweak(judge, case, departure) else []
    words += [*(["refused"] if _holds_refusal(judge, case, departure) else []), *features]
    return Classified(tuple(features), "+".join(words) or "any")


def _depends_on_tweak(judge: Judge, case: Case, departure: Departure) -> bool:
    """Whether other tweaks agree: a wrong carry between the tweaks of two blocks shows with one tweak in two."""
    if judge.manifest.iv != "tweak" or departure.symptom not in _ANSWERS:
        return False
    others = [
        _each(case, lambda item, n=number: replace(item, data=bytes([n]) * len(item.data)) if item.kind is OpKind.SETIV
              else item)
        for number in range(1, _OTHER_TWEAKS)
    ]  # fmt: skip
    return not all(judge.all([normalised(item, judge.manifest) for item in others]))


def _holds_refusal(judge: Judge, case: Case, departure: Departure) -> bool:
    """Whether the departure needs an operation that is rightly refused, and shows in something else than its answer."""
    if departure.symptom is Symptom.OUTPUT and departure.buffer is Buffer.NONE:
        return False
    statuses = judge.encrypt(batch_of(judge.sealed([case]))).statuses
    wrong_tags = any(item.kind is OpKind.TAG and any(item.data) for item in case.operations)
    return not wrong_tags and bool((statuses != Status.OK).any())


def _layout(case: Case, departure: Departure) -> Iterable[str]:
    guarded = departure.symptom in (Symptom.GUARD_READ, Symptom.GUARD_WRITE)
    places = [place for item in case.operations for place in (item.place, item.out_place)]
    if any(item.in_place for item in case.operations):
        yield "in_place"
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


def _by_asking(judge: Judge, case: Case, departure: Departure) -> list[str]:
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
    for other in _other_nonces(case, manifest):
        questions[f"iv {other}"] = _with_nonce(case, other)
    if not length and any(item.kind in (OpKind.UPDATE, OpKind.FINAL) for item in case.operations):
        questions["filled"] = _filled(case, bs)
    elif any(item.kind is OpKind.UPDATE and not item.in_len for item in case.operations):
        questions["filled"] = _stretched(case, 0, bs)
    if length % bs:
        questions["whole"] = _stretched(case, length, -length % bs)
    elif length and manifest.partial != "refused":
        questions["ragged"] = _stretched(case, length, 1)
    if length:
        questions["more"] = _stretched(case, length, bs)
    asked = judge.all([normalised(item, manifest) for item in questions.values()])
    departs = {
        name: found is not None and face(found) == face(departure) for name, found in zip(questions, asked, strict=True)
    }
    return list(_answers(case, manifest, departs, length))


def _answers(case: Case, manifest: Manifest, departs: dict[str, bool], length: int) -> Iterable[str]:
    if departs.get("direction") is False and any(item.kind is OpKind.UPDATE for item in case.operations):
        yield "decrypt" if case.decrypting else "encrypt"
    others = [value for name, value in departs.items() if name.startswith("key ")]
    key_len = next((len(item.data) for item in case.operations if item.kind is OpKind.SETKEY), 0)
    legal = _legal_keys(manifest)
    illegal = any(len(item.data) not in legal for item in case.operations if item.kind is OpKind.SETKEY)
    if illegal or (others and (key_len != legal[0] or not any(others))):
        yield f"key_len:{key_len}"
    nonces = [value for name, value in departs.items() if name.startswith("iv ")]
    if not all(nonces):
        yield f"iv_len:{_nonce_lens(case)[0]}"
    if departs.get("whole") is False:
        yield "stealing" if manifest.partial == "stealing" else "tail"
    if departs.get("ragged") is False and departs.get("more"):
        yield "whole"
    if departs.get("filled") is False:
        yield "empty"
    if length >= _LARGE:
        yield "large"
    blocks = -(-length // manifest.block_len)
    least = max(1, manifest.min_len_blocks)
    exact = departs.get("more") is False
    if blocks > least + (manifest.partial == "stealing" and departs.get("whole") is False) or (exact and length):
        yield f"blocks:{'=' if exact else ''}{blocks}"


def _nonce_lens(case: Case) -> list[int]:
    return sorted({len(item.data) for item in case.operations if item.kind is OpKind.SETIV})


def _other_nonces(case: Case, manifest: Manifest) -> list[int]:
    """Other legal lengths of the nonce, where all nonces of the case have one legal length."""
    held, legal = _nonce_lens(case), sorted(manifest.iv_lens)
    if manifest.iv != "nonce" or len(held) != 1 or held[0] not in legal:
        return []
    return [length for length in legal if length != held[0]]


def _with_nonce(case: Case, length: int) -> Case:
    """With nonces of this length: cut, or longer by zeros."""
    return _each(
        case,
        lambda item: replace(item, data=(item.data + bytes(length))[:length]) if item.kind is OpKind.SETIV else item,
    )


def _usual_nonce(case: Case, manifest: Manifest, value: str) -> Case:
    usual = manifest.iv_lens[0]
    return _with_nonce(case, usual if usual != int(value) else manifest.iv_lens[-1])


def _keyed(case: Case, length: int, other: int) -> Case:
    """With keys of another length in place of those of ``length``: cut, or longer by zeros."""
    return case.with_operations(
        replace(item, data=(item.data + bytes(other))[:other])
        if item.kind is OpKind.SETKEY and len(item.data) == length
        else item
        for item in case.operations
    )


def _stretched(case: Case, length: int, more: int) -> Case:
    """With ``more`` zero bytes behind the pieces of ``length``."""
    return case.with_operations(
        replace(item, data=item.data + bytes(more)) if item.kind is OpKind.UPDATE and item.in_len == length else item
        for item in case.operations
    )


def _filled(case: Case, length: int) -> Case:
    """With zero bytes in messages that have none."""
    if any(item.kind is OpKind.UPDATE for item in case.operations):
        return _stretched(case, 0, length)
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


def _no_edge(case: Case, _: Manifest, __: str) -> Case:
    return _each(case, lambda item: replace(item, place=Place(), out_place=Place()))


def _joined(case: Case, _: Manifest, __: str) -> Case:
    made: list[Operation] = []
    for item in case.operations:
        last = made[-1] if made else None
        if last and item.kind is last.kind is OpKind.UPDATE and item.slot == last.slot and not last.fed_len:
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
    begins = [at for at, item in enumerate(case.operations) if item.kind is OpKind.SETIV]
    keys = [item for item in case.operations[: begins[-1]] if item.kind is OpKind.SETKEY] if begins else []
    return _one_context(case.with_operations((*keys[-1:], *case.operations[begins[-1] :]))) if begins else case


def _one_key(case: Case, _: Manifest, __: str) -> Case:
    first = next((at for at, item in enumerate(case.operations) if item.kind is OpKind.SETKEY), 0)
    return case.with_operations(
        item for at, item in enumerate(case.operations) if item.kind is not OpKind.SETKEY or at == first
    )


def _no_empty(case: Case, manifest: Manifest, _: str) -> Case:
    """Without empty pieces; with data in a message that has no other."""
    if not _longest(case):
        return _filled(case, manifest.block_len)
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
    most = (_LARGE - 1) // manifest.block_len * manifest.block_len
    return _each(case, lambda item: replace(item, data=item.data[:most]) if item.kind is OpKind.UPDATE else item)


def _other_blocks(case: Case, manifest: Manifest, value: str) -> Case:
    """Pieces of fewer blocks; where just one number of blocks departs, of one block more."""
    exact, bs = value.startswith("="), manifest.block_len
    blocks = int(value.lstrip("="))

    def change(item: Operation) -> Operation:
        if item.kind is not OpKind.UPDATE:
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


_WITHOUT: dict[str, Callable[[Case, Manifest, str], Case]] = {
    "in_place": _no_in_place,
    "align": lambda case, manifest, value: _no_edge(_joined(case, manifest, value), manifest, value),
    "edge": _no_edge,
    "context_edge": lambda case, _, __: replace(case, ctx_edge=Edge.MIDDLE),
    "policy": lambda case, _, __: replace(case, policy=0),
    "messages": _last_message,
    "rekey": _one_key,
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
    "decrypt": lambda case, _, __: replace(case, decrypting=not case.decrypting),
    "encrypt": lambda case, _, __: replace(case, decrypting=not case.decrypting),
    "key_len": _other_key_len,
    "iv_len": _usual_nonce,
    "tail": _padded,
    "stealing": _padded,
    "whole": _ragged,
    "large": _cut,
    "blocks": _other_blocks,
    "chaining": _no_chaining,
}
