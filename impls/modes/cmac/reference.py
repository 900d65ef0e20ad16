# SPDX-License-Identifier: Apache-2.0
"""CMAC as NIST SP 800-38B section 6 states it."""

from __future__ import annotations

from crosslane.reference import Answer, Keyed, Message, blocks, require, xor
from crosslane.wire import Status

__all__ = ["run"]

_R = {8: 0x1B, 16: 0x87}
"""R_b of section 5.3, by block length in bytes."""


def _double(block: bytes) -> bytes:
    """x << 1 where the most significant bit of x is 0, else (x << 1) xor R_b."""
    bits = 8 * len(block)
    value = int.from_bytes(block, "big") << 1
    if value >> bits:
        value = (value ^ _R[len(block)]) % (1 << bits)
    return value.to_bytes(len(block), "big")


def run(keyed: Keyed, message: Message) -> Answer:
    """C_i = CIPH(C_{i-1} xor M_i), M_n being masked with K1, or padded with 10* and masked with K2."""
    cipher = keyed(message.key)
    require(not message.iv, Status.BAD_IV_LEN)
    require(message.tag_len == cipher.block_len, Status.BAD_TAG_LEN)
    bs = cipher.block_len
    k1 = _double(cipher.encrypt(bytes(bs)))
    k2 = _double(k1)

    *before, last = blocks(message.data, bs) or [b""]
    last = xor(last, k1) if len(last) == bs else xor((last + b"\x80").ljust(bs, b"\0"), k2)
    chain = bytes(bs)
    for block in (*before, last):
        chain = cipher.encrypt(xor(chain, block))
    return Answer(b"", b"", chain[: message.tag_len])
