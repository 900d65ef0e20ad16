# SPDX-License-Identifier: Apache-2.0
"""GCM as NIST SP 800-38D states it. A block is an integer whose most significant bit is the coefficient of x^0."""

from __future__ import annotations

from crosslane.reference import Answer, Keyed, Message, blocks, require, xor
from crosslane.wire import Status

__all__ = ["run"]

_R = 0xE1 << 120


def _multiply(x: int, y: int) -> int:
    """X * Y (section 6.3, algorithm 1)."""
    z, v = 0, y
    for i in range(128):
        if x >> (127 - i) & 1:
            z ^= v
        v = (v >> 1) ^ _R if v & 1 else v >> 1
    return z


def _ghash(h: int, data: bytes) -> bytes:
    """GHASH_H of whole blocks (section 6.4, algorithm 2)."""
    y = 0
    for block in blocks(data, 16):
        y = _multiply(y ^ int.from_bytes(block, "big"), h)
    return y.to_bytes(16, "big")


def _padded(data: bytes) -> bytes:
    """The data with as many zeros as fill its last block."""
    return data + bytes(-len(data) % 16)


def _bit_len(data: bytes) -> bytes:
    """The length in bits as 64 bits."""
    return (8 * len(data)).to_bytes(8, "big")


def _inc32(block: bytes) -> bytes:
    """The block with its last 32 bits one higher modulo 2^32 (section 6.2)."""
    return block[:12] + ((int.from_bytes(block[12:], "big") + 1) % (1 << 32)).to_bytes(4, "big")


def run(keyed: Keyed, message: Message) -> Answer:
    """C = GCTR_K(inc32(J_0), P), the tag is MSB_t(GCTR_K(J_0, S)), S the hash of A, C and their lengths (section 7)."""
    cipher = keyed(message.key)
    require(len(message.iv) > 0, Status.BAD_IV_LEN)
    require(message.tag_len in (4, 8, 12, 13, 14, 15, 16), Status.BAD_TAG_LEN)
    h = int.from_bytes(cipher.encrypt(bytes(16)), "big")
    if len(message.iv) == 12:
        j0 = message.iv + bytes([0, 0, 0, 1])
    else:
        j0 = _ghash(h, _padded(message.iv) + bytes(8) + _bit_len(message.iv))

    counter, pieces = j0, []
    for piece in blocks(message.data, 16):
        counter = _inc32(counter)
        pieces.append(xor(piece, cipher.encrypt(counter)))
    out = b"".join(pieces)

    ciphertext = message.data if message.decrypting else out
    s = _ghash(h, _padded(message.aad) + _padded(ciphertext) + _bit_len(message.aad) + _bit_len(ciphertext))
    return Answer(out, b"", xor(s, cipher.encrypt(j0))[: message.tag_len])
