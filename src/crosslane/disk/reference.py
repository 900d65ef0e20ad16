# SPDX-License-Identifier: Apache-2.0
"""The iv generators of dm-crypt once more, one sector at a time in plain Python, to judge ``ivs`` by.

Nothing is shared with it: numbers are Python's own, and essiv is left to the libraries that have the block cipher.
"""

from __future__ import annotations

import hashlib

__all__ = ["essiv_question", "reference_iv"]


def reference_iv(generator: str, number: int, iv_len: int) -> bytes:
    """The iv of one sector; not of essiv."""
    number %= 1 << 64
    if generator == "plain":
        return (number % (1 << 32)).to_bytes(4, "little") + bytes(iv_len - 4)
    if generator == "plain64":
        return number.to_bytes(8, "little") + bytes(iv_len - 8)
    if generator == "plain64be":
        return bytes(iv_len - 8) + number.to_bytes(8, "big")
    if generator == "benbi":
        return bytes(iv_len - 8) + (number * (512 // iv_len) % (1 << 64) + 1).to_bytes(8, "big")
    raise ValueError(generator)


def essiv_question(key: bytes, number: int, block_len: int) -> tuple[bytes, bytes]:
    """Key and block that essiv:sha256 gives to the block cipher for one sector."""
    return hashlib.sha256(key).digest(), reference_iv("plain64", number, block_len)
