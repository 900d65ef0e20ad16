# SPDX-License-Identifier: Apache-2.0
"""Who agrees with whom: one departing case on every independent source whose domain holds it.

Generic stays the judge. Where it stands alone against others that agree with each other, it is named the suspect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosslane.errors import HarnessFault
from crosslane.execute import Station, execute_unless_declined
from crosslane.generate import output_lens
from crosslane.manifest import POLICY_BITS, Manifest
from crosslane.wire import Batch, Flag, OpKind, Results, Verdict

__all__ = ["Member", "answer", "case_within", "voices_of", "vote"]

LEAST_SOURCES = 3


@dataclass(frozen=True)
class Member:
    """An independent source: a library, with the manifest that its domain bounds."""

    name: str
    station: Station
    manifest: Manifest


def case_within(manifest: Manifest, batch: Batch) -> bool:
    """Whether every operation of a batch of one case lies in a manifest's domain; illegal lengths never do."""
    case = batch.cases[0]
    way = "decrypt" if case["decrypting"] else "encrypt"
    kinds = batch.ops["kind"]
    always, known = (_bits(names) for names in (manifest.always_policies, manifest.policies))
    if int(case["policy"]) & always != always or int(case["policy"]) & ~(always | known):
        return False
    if bool((batch.ops["flags"] & Flag.OVERLAP).any()):
        return False
    if way not in manifest.directions or (manifest.tag_lens and int(case["tag_len"]) not in manifest.tag_lens):
        return False
    if (not manifest.clone and bool((kinds == OpKind.CLONE).any())) or (
        not manifest.reinit and bool((kinds == OpKind.REINIT).any())
    ):
        return False
    return _keys_within(manifest, batch) and _messages_within(manifest, batch)


def _bits(policies: Sequence[str]) -> int:
    return sum(POLICY_BITS[name] for name in policies)


def _keys_within(manifest: Manifest, batch: Batch) -> bool:
    legal = {length * manifest.num_keys + manifest.key_extra_len for length in manifest.key_lens}
    for op in batch.ops[batch.ops["kind"] == OpKind.SETKEY]:
        start, length = int(op["in_off"]), int(op["in_len"])
        key = batch.blob[start : start + length].tobytes()
        equal = manifest.num_keys > 1 and key[: length // 2] == key[length // 2 :]
        if length not in legal or (equal and not manifest.equal_keys):
            return False
    return True


def _messages(ops: NDArray[Any]) -> list[list[int]]:
    """The operations of each message of one case, from its setiv on, through copies of its context."""
    found: list[list[int]] = []
    begun: dict[int, list[int]] = {}
    for index, (kind, slot, from_slot) in enumerate(ops[["kind", "slot", "from_slot"]].tolist()):
        if kind == OpKind.SETIV:
            begun[slot] = [index]
            found.append(begun[slot])
        elif kind == OpKind.CLONE and from_slot in begun:
            begun[slot] = begun[from_slot]
        elif kind == OpKind.SETKEY:
            begun.pop(slot, None)
        elif slot in begun:
            begun[slot].append(index)
    return found


def _messages_within(manifest: Manifest, batch: Batch) -> bool:
    for message in _messages(batch.ops):
        ops = batch.ops[message]
        updates = ops[ops["kind"] == OpKind.UPDATE]
        aad_lens = ops["in_len"][ops["kind"] == OpKind.AAD]
        pieces, num_aad = updates["in_len"].astype(np.int64), len(aad_lens)
        length = int(pieces.sum())
        least = max(manifest.min_len, manifest.min_len_blocks * manifest.block_len, 0 if manifest.empty else 1)
        fits = (
            int(ops["in_len"][0]) in (manifest.iv_lens or (0,))
            and length >= least
            and (not manifest.max_len or length <= manifest.max_len)
            and (not manifest.max_aad_len or int(aad_lens.sum()) <= manifest.max_aad_len)
            and (manifest.partial != "refused" or length % manifest.block_len == 0)
            and (manifest.in_place or not bool((updates["flags"] & Flag.IN_PLACE).any()))
            and (manifest.split != "none" or max(len(pieces), num_aad) <= 1)
            and (manifest.split != "block" or not bool((pieces[:-1] % manifest.block_len).any()))
        )
        if not fits:
            return False
    return True


def answer(batch: Batch, results: Results, *, with_iv: bool = False) -> bytes:
    """Everything a source can be asked for: statuses, data and tags; the running iv only of those that show it."""
    lens = output_lens(batch, np.arange(len(batch.ops)))
    parts = [results.statuses.tobytes()]
    for index in np.flatnonzero(lens).tolist():
        start = int(batch.ops["out_off"][index])
        update = batch.ops["kind"][index] == OpKind.UPDATE and not with_iv
        length = min(int(batch.ops["in_len"][index]), int(lens[index])) if update else int(lens[index])
        parts.append(results.out[start : start + length].tobytes())
    return b"".join(parts)


def voices_of(batch: Batch, members: Sequence[Member], *, with_iv: bool = False) -> dict[str, bytes]:
    """The answers of the libraries whose domains hold a batch of one case, by their names."""
    voices: dict[str, bytes] = {}
    for member in members:
        if not case_within(member.manifest, batch) or (with_iv and member.manifest.iv_out == "none"):
            continue
        try:
            results = execute_unless_declined(member.station, batch)
        except HarnessFault:
            continue  # the member's own cell says so
        if results is not None and results.cases["verdict"][0] == Verdict.RAN:
            voices[member.name] = answer(batch, results, with_iv=with_iv)
    return voices


def vote(batch: Batch, generic: Results, subject: Results, members: Sequence[Member]) -> str:
    """One sentence on who agrees with whom in a batch of one case; empty where fewer than three sources can say."""
    with_iv = answer(batch, generic) == answer(batch, subject)  # then they differ in the iv, if in any answer
    sides = {
        "generic": answer(batch, generic, with_iv=with_iv),
        "the subject": answer(batch, subject, with_iv=with_iv),
    }
    if sides["generic"] == sides["the subject"]:
        return ""  # they differ in what no library is asked for
    voices = voices_of(batch, members, with_iv=with_iv)
    if len(voices) + len(sides) < LEAST_SOURCES:
        return ""
    with_generic = [name for name, said in voices.items() if said == sides["generic"]]
    with_subject = [name for name, said in voices.items() if said == sides["the subject"]]
    alone = [name for name, said in voices.items() if said not in sides.values()]
    parts = [f"agree with generic: {', '.join(with_generic) or 'none'}"]
    if with_subject:
        parts.append(f"agree with the subject: {', '.join(with_subject)}")
    if alone:
        parts.append(f"agree with neither: {', '.join(alone)}")
    if with_subject and not with_generic:
        parts.append("generic stands alone: it is the suspect")
    elif with_generic and not with_subject:
        parts.append("the subject stands alone")
    elif len(with_generic) != len(with_subject):
        fewer = "generic's" if len(with_generic) < len(with_subject) else "the subject's"
        parts.append(f"the minority is {fewer} side")
    return "; ".join(parts)
