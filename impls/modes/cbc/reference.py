# SPDX-License-Identifier: Apache-2.0
"""CBC as NIST SP 800-38A section 6.2 states it."""

from __future__ import annotations

from crosslane.reference import Answer, Keyed, Message, blocks, require, xor
from crosslane.wire import Status

__all__ = ["run"]


def run(keyed: Keyed, message: Message) -> Answer:
    """C_j = CIPH(P_j xor C_{j-1}), P_j = CIPH^-1(C_j) xor C_{j-1}, C_0 = IV. The next iv is the last C_j."""
    cipher = keyed(message.key)
    require(len(message.iv) == cipher.block_len, Status.BAD_IV_LEN)
    require(len(message.data) % cipher.block_len == 0, Status.BAD_DATA_LEN)
    chain, out = message.iv, []
    for block in blocks(message.data, cipher.block_len):
        if message.decrypting:
            out.append(xor(cipher.decrypt(block), chain))
            chain = block
        else:
            chain = cipher.encrypt(xor(block, chain))
            out.append(chain)
    return Answer(b"".join(out), chain, b"")
