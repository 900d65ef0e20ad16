# SPDX-License-Identifier: Apache-2.0
"""CFB as NIST SP 800-38A section 6.3 states it, the segments as long as a block."""

from __future__ import annotations

from crosslane.reference import Answer, Keyed, Message, blocks, require, xor
from crosslane.wire import Status

__all__ = ["run"]


def run(keyed: Keyed, message: Message) -> Answer:
    """C_j = P_j xor CIPH(C_{j-1}), C_0 = IV; of a partial block the leading bytes. The next iv is the last C_j."""
    cipher = keyed(message.key)
    require(len(message.iv) == cipher.block_len, Status.BAD_IV_LEN)
    feedback, out = message.iv, []
    for block in blocks(message.data, cipher.block_len):
        out.append(xor(block, cipher.encrypt(feedback)))
        feedback = block if message.decrypting else out[-1]
    return Answer(b"".join(out), feedback if len(feedback) == cipher.block_len else b"", b"")
