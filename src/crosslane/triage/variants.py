# SPDX-License-Identifier: Apache-2.0
"""The sessions that triage tries: plain ones of many lengths, and those beside the least case. Pure: nothing runs here.

A plain session has a random key, a random iv and random data, apart, aligned and in one call: what is wrong there needs
no special condition, and its lengths and blocks say where. Its counter does not carry out of its low 16 bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from crosslane.findings.case import Case, Operation
from crosslane.findings.judge import normalised
from crosslane.findings.without import legal_keys, longest
from crosslane.manifest import Manifest
from crosslane.wire import Flag, OpKind

__all__ = ["Plain", "carries", "headers", "lengths", "plain", "usual", "watched_lens"]

_ALL_BLOCKS_BELOW = 34
_LEAST_BLOCKS = 18
_MOST_BLOCKS = 2 * 256 + 2


@dataclass(frozen=True)
class Plain:
    """A plain session before it is made. Lengths in bytes; ``value`` chooses its random bytes.

    ``iv`` ``key`` are given bytes, random ones where None.
    """

    length: int
    key_len: int
    value: int = 0
    decrypting: bool = False
    iv_len: int = 0
    tag_len: int = 0
    aad_len: int = 0
    iv: bytes | None = None
    key: bytes | None = None


def _random(label: str, length: int) -> bytes:
    return hashlib.shake_256(label.encode()).digest(length)


def usual(case: Case, manifest: Manifest) -> Plain:
    """The plain session that is nearest to a case: its direction, and its lengths where these are legal."""
    keys = [len(item.data) for item in case.operations if item.kind is OpKind.SETKEY]
    legal = legal_keys(manifest)
    key_len = next((length for length in reversed(keys) if length in legal), legal[0])
    return Plain(
        length=longest(case),
        key_len=key_len,
        decrypting=case.decrypting and "decrypt" in manifest.directions,
        iv_len=manifest.iv_lens[0] if manifest.iv_lens else 0,
        tag_len=max(manifest.tag_lens, default=0),
    )


def plain(wanted: Plain, manifest: Manifest) -> Case:
    """A plain session in its normal form, not sealed."""
    name = f"{wanted.value}"
    key = wanted.key if wanted.key is not None else _random(f"key {name}", wanted.key_len)
    iv = _random(f"iv {name}", wanted.iv_len) if wanted.iv is None else wanted.iv
    if wanted.iv is None and manifest.iv in ("counter", "index"):
        iv = iv[:-2] + b"\x01\x00"
    made = [Operation(OpKind.SETKEY, key), Operation(OpKind.SETIV, iv)]
    if wanted.aad_len:
        made.append(Operation(OpKind.AAD, _random(f"aad {name}", wanted.aad_len)))
    data = _random(f"data {name}", wanted.length)
    observed = Flag.OBSERVE_IV if manifest.iv_out != "none" else Flag(0)
    made += [Operation(OpKind.UPDATE, data, flags=observed)] if wanted.length or manifest.empty else []
    made.append(Operation(OpKind.FINAL))
    if manifest.tag_lens:
        made.append(Operation(OpKind.TAG))
    case = Case(manifest.algorithm, tuple(made), decrypting=wanted.decrypting, tag_len=wanted.tag_len)
    return normalised(replace(case, policy=_always(manifest)), manifest)


def _always(manifest: Manifest) -> int:
    bits = {"degenerate": 1, "weak_subkey": 2}
    return sum(bits[name] for name in manifest.always_policies)


def lengths(manifest: Manifest, ways: int) -> list[int]:
    """Lengths in bytes, ascending: numbers of blocks up to twice the width and two, partial blocks with some."""
    bs = manifest.block_len
    most = min(max(2 * ways + 2, _LEAST_BLOCKS), _MOST_BLOCKS)
    least = manifest.min_len_blocks
    widths = {width for width in (1, 2, 3, 4, 8, 16, 32, 64, 128, ways // 2, ways, 2 * ways) if width}
    edges = {width * times + more for width in widths for times in (1, 2) for more in (-1, 0, 1, 2)}
    blocks = {n for n in (*range(_ALL_BLOCKS_BELOW), *edges, most) if n <= most}
    found = {n * bs for n in blocks if n >= least}
    if manifest.partial != "refused":
        tails = (1, bs // 2 + 1, bs - 1)
        found |= {n * bs + tail for n in blocks if n < most and n >= least for tail in tails}
    return sorted(found)


def carries(manifest: Manifest, ways: int) -> list[tuple[int, int]]:
    """Numbers of bits that a counter carries out of, with the blocks that it is before that."""
    width = min(ways, 34)
    before = sorted({1, 2, 3, width // 2, width - 1, width, width + 1, 2 * width + 1} - {0, -1})
    bits = [n for n in (8, 16, 24, 32, 40, 48, 56, 64, 96, 120, 128) if n <= 8 * manifest.block_len]
    return [(n, j) for n in bits for j in before]


def headers(wanted: Plain, manifest: Manifest) -> Iterator[tuple[str, Plain]]:
    """Plain sessions with another nonce, tag or associated data, and their names."""
    bs = manifest.block_len
    lens = sorted(
        {n for n in manifest.iv_lens if n in (1, 7, 8, 12, 13, 16, 17, 20, 32, 60, 64)} | {*manifest.iv_lens[:4]}
    )
    for iv_len in lens:
        if iv_len != wanted.iv_len:
            yield f"a nonce of {iv_len} bytes", replace(wanted, iv_len=iv_len)
    for tag_len in manifest.tag_lens if manifest.is_aead else ():
        if tag_len != wanted.tag_len:
            yield f"a tag of {tag_len} bytes", replace(wanted, tag_len=tag_len)
    for aad_len in (1, 13, 14, 15, bs, bs + 1, 30, 2 * bs, 0xFEFF, 0xFF00, 0x10000) if manifest.aad else ():
        yield f"{aad_len} bytes of associated data", replace(wanted, aad_len=aad_len)


def watched_lens(case: Case, manifest: Manifest) -> Iterator[tuple[int, Case]]:
    """The least case with its longest piece at every length near its own, where it has one."""
    pieces = [item for item in case.operations if item.kind in (OpKind.UPDATE, OpKind.AAD)]
    if not pieces:
        return
    at = max(range(len(case.operations)), key=lambda i: (case.operations[i] in pieces, case.operations[i].in_len))
    item, bs = case.operations[at], manifest.block_len
    if item.overlapping or item.fed_len:
        return
    lens = {*range(3 * bs + 1), *(item.in_len + more for more in (-bs, -1, 0, 1, bs, 2 * bs))}
    for length in sorted(n for n in lens if n >= 0):
        data = (item.data + _random("more", length))[:length]
        changed = (*case.operations[:at], replace(item, data=data), *case.operations[at + 1 :])
        yield length, normalised(case.with_operations(changed), manifest)
