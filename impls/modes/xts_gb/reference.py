# SPDX-License-Identifier: Apache-2.0
"""XTS as GB/T 17964-2021 states it: that of IEEE Std 1619, but the bits of a tweak's bytes in reversed order."""

from __future__ import annotations

from crosslane.reference import Answer, Keyed, Message, data_unit

__all__ = ["run"]


def _double(tweak: bytes) -> bytes:
    """Multiply by the primitive element: byte 0 and bit 7 come first, x^128 = x^7 + x^2 + x + 1 is 0xE1 in byte 0."""
    number = int.from_bytes(tweak, "big")
    number = (number >> 1) ^ (0xE1 << 120 if number & 1 else 0)
    return number.to_bytes(16, "big")


def run(keyed: Keyed, message: Message) -> Answer:
    """Key = K1 | K2; one call is one data unit."""
    return data_unit(keyed, message, _double)
