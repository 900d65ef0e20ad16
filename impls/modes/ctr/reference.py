# SPDX-License-Identifier: Apache-2.0
"""CTR as NIST SP 800-38A section 6.5 and appendix B.1 state it, the counter over the whole block."""

from __future__ import annotations

from crosslane.reference import Answer, Keyed, Message, blocks, require, xor
from crosslane.wire import Status

__all__ = ["run"]


def run(keyed: Keyed, message: Message) -> Answer:
    """C_j = P_j xor CIPH(T_j), T_{j+1} = T_j + 1 mod 2^(8 block_len). The next iv is the next counter."""
    cipher = keyed(message.key)
    require(len(message.iv) == cipher.block_len, Status.BAD_IV_LEN)
    counter, out = int.from_bytes(message.iv, "big"), []
    for block in blocks(message.data, cipher.block_len):
        out.append(xor(block, cipher.encrypt(counter.to_bytes(cipher.block_len, "big"))))
        counter = (counter + 1) % (1 << (8 * cipher.block_len))
    return Answer(b"".join(out), counter.to_bytes(cipher.block_len, "big"), b"")
