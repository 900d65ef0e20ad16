# SPDX-License-Identifier: Apache-2.0
"""ECB as NIST SP 800-38A section 6.1 states it."""

from __future__ import annotations

from crosslane.reference import Answer, Keyed, Message, blocks, require
from crosslane.wire import Status

__all__ = ["run"]


def run(keyed: Keyed, message: Message) -> Answer:
    """C_j = CIPH(P_j); P_j = CIPH^-1(C_j). There is no iv."""
    cipher = keyed(message.key)
    require(not message.iv, Status.BAD_IV_LEN)
    require(len(message.data) % cipher.block_len == 0, Status.BAD_DATA_LEN)
    step = cipher.decrypt if message.decrypting else cipher.encrypt
    return Answer(b"".join(step(block) for block in blocks(message.data, cipher.block_len)), b"", b"")
