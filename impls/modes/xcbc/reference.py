# SPDX-License-Identifier: Apache-2.0
"""XCBC as RFC 3566 section 4 states it for AES, over any cipher of 16-byte blocks; the tag is the whole last block."""

from __future__ import annotations

from crosslane.reference import Answer, Keyed, Message, blocks, require, xor
from crosslane.wire import Status

__all__ = ["run"]


def run(keyed: Keyed, message: Message) -> Answer:
    """E[i] = CIPH_K1(E[i-1] xor M[i]), M[n] being masked with K2, or padded with 10* and masked with K3."""
    derive = keyed(message.key).encrypt
    require(not message.iv, Status.BAD_IV_LEN)
    require(message.tag_len == 16, Status.BAD_TAG_LEN)
    k1, k2, k3 = (derive(bytes([i]) * 16) for i in (1, 2, 3))
    cipher = keyed(k1)

    *before, last = blocks(message.data, 16) or [b""]
    last = xor(last, k2) if len(last) == 16 else xor((last + b"\x80").ljust(16, b"\0"), k3)
    chain = bytes(16)
    for block in (*before, last):
        chain = cipher.encrypt(xor(chain, block))
    return Answer(b"", b"", chain[: message.tag_len])
