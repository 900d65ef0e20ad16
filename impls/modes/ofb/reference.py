# SPDX-License-Identifier: Apache-2.0
"""OFB as NIST SP 800-38A section 6.4 states it."""

from __future__ import annotations

from crosslane.reference import Answer, Keyed, Message, blocks, require, xor
from crosslane.wire import Status

__all__ = ["run"]


def run(keyed: Keyed, message: Message) -> Answer:
    """O_j = CIPH(O_{j-1}), O_0 = IV, C_j = P_j xor O_j. The next iv is the last O_j, if its whole block was used."""
    cipher = keyed(message.key)
    require(len(message.iv) == cipher.block_len, Status.BAD_IV_LEN)
    output, out = message.iv, []
    for block in blocks(message.data, cipher.block_len):
        output = cipher.encrypt(output)
        out.append(xor(block, output))
    return Answer(b"".join(out), output if len(message.data) % cipher.block_len == 0 else b"", b"")
