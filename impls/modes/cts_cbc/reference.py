# SPDX-License-Identifier: Apache-2.0
"""CBC with ciphertext stealing as RFC 3962 section 5 and the addendum to NIST SP 800-38A (CBC-CS3) state it."""

from __future__ import annotations

from crosslane.reference import Answer, BlockCipher, Keyed, Message, blocks, require, xor
from crosslane.wire import Status

__all__ = ["run"]


def _encrypt(cipher: BlockCipher, iv: bytes, data: bytes) -> bytes:
    """CBC of the data padded with zeros; the last two blocks change places and what is too much is cut off."""
    chain, out = iv, []
    for block in blocks(data, cipher.block_len):
        chain = cipher.encrypt(xor(block.ljust(cipher.block_len, b"\0"), chain))
        out.append(chain)
    if len(out) > 1:
        out[-2:] = out[-1], out[-2]
    return b"".join(out)[: len(data)]


def _decrypt(cipher: BlockCipher, iv: bytes, data: bytes) -> bytes:
    """The padding's zeros show the bytes that were cut off; with them it is CBC of blocks in their former order."""
    pieces = blocks(data, cipher.block_len)
    if len(pieces) > 1:
        swapped, cut = pieces[-2:]
        pieces[-2:] = cut + cipher.decrypt(swapped)[len(cut) :], swapped
    chain, out = iv, []
    for block in pieces:
        out.append(xor(cipher.decrypt(block), chain))
        chain = block
    return b"".join(out)[: len(data)]


def run(keyed: Keyed, message: Message) -> Answer:
    """At least one block; exactly one is plain CBC. The next iv is undefined."""
    turn = _decrypt if message.decrypting else _encrypt
    cipher = keyed(message.key)
    require(len(message.iv) == cipher.block_len, Status.BAD_IV_LEN)
    require(len(message.data) >= cipher.block_len, Status.BAD_DATA_LEN)
    return Answer(turn(cipher, message.iv, message.data), b"", b"")
