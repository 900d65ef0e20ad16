# SPDX-License-Identifier: Apache-2.0
"""Which cases may be tried: whole authenticated messages, and what a library's domain holds. Pure: nothing runs here.

A candidate outside of the domain that a provider declares would show a difference that nobody promised not to have.
"""

from __future__ import annotations

from collections.abc import Iterator

from crosslane.findings.case import Case, Operation
from crosslane.manifest import POLICY_BITS, Manifest
from crosslane.wire import OpKind

__all__ = ["may_be_tried"]

_ORDER = (OpKind.SETIV, OpKind.AAD, OpKind.UPDATE, OpKind.FINAL, OpKind.TAG)
_BEFORE = (OpKind.SETKEY, OpKind.REINIT)


def may_be_tried(case: Case, manifest: Manifest, *, bounded: bool) -> bool:
    """Whether a case, in its normal form, may be run.

    Where an AEAD decrypts, what was decrypted means nothing without its tag: its messages are whole. ``bounded`` is
    whether the manifest keeps to a provider's domain, of which the case must then be in every respect.
    """
    if (bounded or (manifest.is_aead and case.decrypting)) and not all(_whole(m, manifest) for m in _messages(case)):
        return False
    return not bounded or _within(case, manifest)


def _messages(case: Case) -> Iterator[list[Operation]]:
    """The operations of each message, from its setiv on; clones belong to none."""
    message: list[Operation] = []
    for item in case.operations:
        if item.kind is OpKind.SETIV or item.kind in _BEFORE:
            if message:
                yield message
            message = []
        if item.kind not in (*_BEFORE, OpKind.CLONE):
            message.append(item)
    if message:
        yield message


def _whole(message: list[Operation], manifest: Manifest) -> bool:
    """Whether a message is complete and in order."""
    places = [_ORDER.index(item.kind) for item in message]
    ends = [OpKind.FINAL, OpKind.TAG] if manifest.tag_lens else [OpKind.FINAL]
    return (
        places == sorted(places)
        and message[0].kind is OpKind.SETIV
        and [item.kind for item in message if item.kind in (OpKind.SETIV, OpKind.FINAL, OpKind.TAG)]
        == [OpKind.SETIV, *ends]
    )


def _within(case: Case, manifest: Manifest) -> bool:
    kinds = {item.kind for item in case.operations}
    always, known = (
        sum(POLICY_BITS[name] for name in names) for names in (manifest.always_policies, manifest.policies)
    )
    way = "decrypt" if case.decrypting else "encrypt"
    return (
        case.operations[:1] != ()
        and case.operations[0].kind is OpKind.SETKEY
        and case.policy & always == always
        and not case.policy & ~(always | known)
        and way in manifest.directions
        and _legal(case.tag_len, manifest.tag_lens or (0,), "tag", manifest)
        and (manifest.clone or OpKind.CLONE not in kinds)
        and (manifest.reinit or OpKind.REINIT not in kinds)
        and all(_key_within(item.data, manifest) for item in case.operations if item.kind is OpKind.SETKEY)
        and all(_message_within(message, manifest) for message in _messages(case))
    )


def _legal(length: int, legal: tuple[int, ...], what: str, manifest: Manifest) -> bool:
    """A length that is computed, or one that the library promises to refuse."""
    return length in legal or what in manifest.refusals


def _key_within(key: bytes, manifest: Manifest) -> bool:
    legal = tuple(length * manifest.num_keys + manifest.key_extra_len for length in manifest.key_lens)
    equal = manifest.num_keys > 1 and key[: len(key) // 2] == key[len(key) // 2 :]
    return _legal(len(key), legal, "key", manifest) and (manifest.equal_keys or not equal)


def _message_within(message: list[Operation], manifest: Manifest) -> bool:
    pieces = [item.in_len for item in message if item.kind is OpKind.UPDATE]
    aad_lens = [item.in_len for item in message if item.kind is OpKind.AAD]
    length, bs = sum(pieces), manifest.block_len
    least = max(manifest.min_len, manifest.min_len_blocks * bs)
    partial = manifest.partial == "refused" and length % bs != 0
    return (
        _legal(len(message[0].data), manifest.iv_lens or (0,), "iv", manifest)
        and (manifest.empty or (length > 0 and 0 not in pieces))
        and (not manifest.max_len or length <= manifest.max_len)
        and (not manifest.max_aad_len or sum(aad_lens) <= manifest.max_aad_len)
        and ((length >= least and not partial) or "data" in manifest.refusals)
        and (manifest.in_place or not any(item.in_place for item in message if item.kind is OpKind.UPDATE))
        and (manifest.split != "none" or (len(pieces) <= 1 and len(aad_lens) <= 1))
        and (manifest.split != "block" or not any(piece % bs for piece in pieces[:-1]))
        and (manifest.empty or all(aad_lens))
    )
