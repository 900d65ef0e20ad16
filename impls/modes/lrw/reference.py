# SPDX-License-Identifier: Apache-2.0
"""LRW as the drafts of IEEE P1619 before XTS state it."""

from __future__ import annotations

from crosslane.reference import Answer, Keyed, Message, blocks, require, xor
from crosslane.wire import Status

__all__ = ["run"]

_KEY2_LEN = 16
_MODULUS = (1 << 128) | 0x87


def _multiply(first: int, second: int) -> int:
    """The product in GF(2^128) modulo x^128 + x^7 + x^2 + x + 1; bit i of a number is the coefficient of x^i."""
    product = 0
    for i in reversed(range(128)):
        product <<= 1
        if product >> 128:
            product ^= _MODULUS
        if (second >> i) & 1:
            product ^= first
    return product


def run(keyed: Keyed, message: Message) -> Answer:
    """Key = K1 | K2; T = K2 * I, C = E_K1(P xor T) xor T; I is big-endian and rises by one a block modulo 2^128."""
    cipher = keyed(message.key[:-_KEY2_LEN])
    require(len(message.iv) == cipher.block_len, Status.BAD_IV_LEN)
    require(len(message.data) % cipher.block_len == 0, Status.BAD_DATA_LEN)
    key2, index = int.from_bytes(message.key[-_KEY2_LEN:], "big"), int.from_bytes(message.iv, "big")
    step = cipher.decrypt if message.decrypting else cipher.encrypt
    out = []
    for block in blocks(message.data, cipher.block_len):
        tweak = _multiply(key2, index).to_bytes(16, "big")
        out.append(xor(step(xor(block, tweak)), tweak))
        index = (index + 1) % (1 << 128)
    return Answer(b"".join(out), index.to_bytes(16, "big"), b"")
