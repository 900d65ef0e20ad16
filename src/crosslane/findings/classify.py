# SPDX-License-Identifier: Apache-2.0
"""The class of a shrunk case: which features its departure needs, and what a case is like without each of them.

A feature is read off the shrunk case, which has nothing that the departure does not need, and off a few cases beside
it (longer, the other direction, other key lengths). ``without`` takes a feature out of any case: a departure that is
gone without each feature of a finding is the same fault, one that stays is another.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from crosslane.compare import Departure
from crosslane.describe import register_names
from crosslane.findings.case import Case, in_turn
from crosslane.findings.judge import Tries, normalised
from crosslane.findings.steps import is_counter
from crosslane.findings.without import LARGE, filled, keyed, legal_keys, longest, stretched, with_ivs
from crosslane.manifest import Manifest
from crosslane.wire import Buffer, Edge, OpKind, Symptom, Verdict

__all__ = ["Classified", "class_unasked", "classify", "face", "prefix_of", "same_face"]

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


def prefix_of(departure: Departure, arch: str, registers: int = 0, *, is_mac: bool = False) -> list[str]:
    """What the watcher itself says of the fault. A MAC has no other output than its tag."""
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
    return ["tag"] if departure.buffer is Buffer.TAG and not is_mac else []


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name.lower() if number else "exit"
    except ValueError:
        return f"signal_{number}"


def classify(
    judge: Tries, case: Case, departure: Departure, *, arch: str, registers: int = 0, seen: Sequence[str] = ()
) -> Classified:
    """The class of a shrunk case. Asks the subject about the cases beside it.

    ``seen`` are words that other runs of the case gave.
    """
    asked = _by_asking(judge, case, departure)
    prefix = prefix_of(departure, arch, registers, is_mac=judge.manifest.is_mac)
    return _classified(prefix, {*_read_off(case, departure, judge.manifest), *asked}, seen)


def class_unasked(case: Case, departure: Departure, manifest: Manifest, arch: str) -> Classified:
    """As much of the class as can be read off the case and its departure."""
    prefix = prefix_of(departure, arch, is_mac=manifest.is_mac)
    return _classified(prefix, _read_off(case, departure, manifest), ())


def _read_off(case: Case, departure: Departure, manifest: Manifest) -> set[str]:
    return {*_layout(case, departure), *_shape(case), *_values(case, manifest)}


def _classified(prefix: Sequence[str], names: set[str], seen: Sequence[str]) -> Classified:
    features = sorted(names)
    if "rekey" in features:  # which needs another key, of whatever bytes and length
        features = [name for name in features if name.partition(":")[0] not in ("key", "key_len")]
    return Classified(tuple(features), "+".join([*prefix, *features, *seen]) or "any")


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
            yield _carry(int.from_bytes(item.data, "big"), -(-longest(case) // manifest.block_len), manifest)
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


def _by_asking(judge: Tries, case: Case, departure: Departure) -> list[str]:
    """Features that show by comparison: direction, key length, a partial block, a number of blocks."""
    manifest, bs = judge.manifest, judge.manifest.block_len
    length = longest(case)
    questions: dict[str, Case] = {}
    if len(manifest.directions) == 2:
        questions["direction"] = replace(case, decrypting=not case.decrypting)
    keys = [len(item.data) for item in case.operations if item.kind is OpKind.SETKEY]
    legal = legal_keys(manifest)
    for other in legal:
        if len(set(keys)) == 1 and keys[0] in legal and other != keys[0]:
            questions[f"key {other}"] = keyed(case, keys[0], other)
    ivs = {len(item.data) for item in case.operations if item.kind is OpKind.SETIV}
    for other in manifest.iv_lens if ivs & set(manifest.iv_lens) else ():
        if len(ivs) == 1 and other not in ivs:
            questions[f"iv {other}"] = with_ivs(case, other)
    if not length or any(item.kind is OpKind.UPDATE and not item.in_len for item in case.operations):
        questions["filled"] = filled(case, bs)
    if length % bs:
        questions["whole"] = stretched(case, length, -length % bs)
    elif length and manifest.partial != "refused":
        questions["ragged"] = stretched(case, length, 1)
    if length:
        questions["more"] = stretched(case, length, bs)
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
    legal = legal_keys(manifest)
    illegal = any(len(item.data) not in legal for item in case.operations if item.kind is OpKind.SETKEY)
    if illegal or (others and (key_len != legal[0] or not any(others))):
        yield f"key_len:{key_len}"
    nonces = [value for name, value in departs.items() if name.startswith("iv ")]
    iv_len = next((len(item.data) for item in case.operations if item.kind is OpKind.SETIV), 0)
    if nonces and (iv_len != min(manifest.iv_lens) or not all(nonces)):
        yield f"iv_len:{iv_len}"
    if departs.get("whole") is False:
        yield "stealing" if manifest.partial == "stealing" else "tail"
    if departs.get("ragged") is False and departs.get("more"):
        yield "whole"
    if departs.get("filled") is False:
        yield "empty"
    if length >= LARGE:
        yield "large"
    blocks = -(-length // manifest.block_len)
    least = max(1, manifest.min_len_blocks)
    exact = departs.get("more") is False
    if blocks > least + (manifest.partial == "stealing" and departs.get("whole") is False) or (exact and length):
        yield f"blocks:{'=' if exact else ''}{blocks}"
