# SPDX-License-Identifier: Apache-2.0
"""First inputs of a target: each of its cells, in both directions, with lengths about the implementation's width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crosslane.targets.mutator import GIVEN, HEADER_LEN, given_code, length_code
from crosslane.targets.rows import Row

__all__ = ["seeds_of"]

_UPDATE, _SETIV, _SETKEY, _AAD = 0, {"oneshot": 3, "streaming": 3, "aead": 4, "keyschedule": 5}, 6, 2
_SETKEYS = {"oneshot": 5, "streaming": 6, "aead": 6, "keyschedule": 0}
_UPDATES = {"oneshot": 0, "streaming": 0, "aead": 0, "keyschedule": 3}
_MIDDLE = 0x80
_BYTES = bytes((7 * i + 1) & 255 for i in range(256))


def _record(kind: int, code: int, data: bytes, *, eightfold: bool = False, place: int = _MIDDLE) -> bytes:
    given = given_code(len(data))
    head = bytes((kind, 4 * eightfold, place, place, code & 255, code >> 8, given))
    return head + data.ljust(GIVEN[given], b"\0")


def _of_row(family: str, number: int, row: Row) -> Iterator[bytes]:
    block_len, ways = row.manifest.block_len, row.implementation.ways
    for decrypts in range(len(row.manifest.directions)):
        for choice, key_len in enumerate(row.key_lens[:3]):
            header = bytes((number, decrypts, choice)).ljust(HEADER_LEN, b"\0")
            begun = _record(_SETKEYS[family], choice, _BYTES[:key_len])
            iv_len = row.manifest.iv_lens[0] if row.manifest.iv_lens else 0
            begun += _record(_SETIV[family], 0, (b"\xff" * 16)[:iv_len])
            begun += _record(_AAD, 13, _BYTES[:13]) if family == "aead" else b""
            for blocks in sorted({1, ways, 2 * ways + 1}):
                length = blocks * block_len + (choice if row.manifest.partial != "refused" else 0)
                code, eightfold = length_code(length)
                yield header + begun + _record(_UPDATES[family], code, _BYTES[:32], eightfold=eightfold)


def seeds_of(family: str, rows: Sequence[Row]) -> list[bytes]:
    """Inputs for the rows that a target's inputs choose among, each once, in a fixed order."""
    return list(dict.fromkeys(seed for number, row in enumerate(rows) for seed in _of_row(family, number, row)))
