# SPDX-License-Identifier: Apache-2.0
"""CBC-MAC: ISO/IEC 9797-1 MAC algorithm 1, padding method 1; the empty message gives zeros, as in Linux."""

from __future__ import annotations

from crosslane.reference import Answer, Keyed, Message, blocks, require, xor
from crosslane.wire import Status

__all__ = ["run"]


def run(keyed: Keyed, message: Message) -> Answer:
    """H_i = CIPH(D_i xor H_{i-1}), H_0 = 0, the last D_i filled with zeros. The tag is the last H_i."""
    cipher = keyed(message.key)
    require(not message.iv, Status.BAD_IV_LEN)
    require(message.tag_len == cipher.block_len, Status.BAD_TAG_LEN)
    chain = bytes(cipher.block_len)
    for block in blocks(message.data, cipher.block_len):
        chain = cipher.encrypt(xor(chain, block.ljust(cipher.block_len, b"\0")))
    return Answer(b"", b"", chain[: message.tag_len])
