# SPDX-License-Identifier: Apache-2.0
"""XTS as IEEE Std 1619 section 5 states it."""

from __future__ import annotations

from crosslane.reference import Answer, Keyed, Message, data_unit

__all__ = ["run"]


def _double(tweak: bytes) -> bytes:
    """Multiply by the primitive element (section 5.2): byte 0 and bit 0 come first, x^128 = x^7 + x^2 + x + 1."""
    number = int.from_bytes(tweak, "little") << 1
    if number >> 128:
        number ^= (1 << 128) | 0x87
    return number.to_bytes(16, "little")


def run(keyed: Keyed, message: Message) -> Answer:
    """Key = K1 | K2; one call is one data unit."""
    return data_unit(keyed, message, _double)
