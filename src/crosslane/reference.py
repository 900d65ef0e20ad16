# SPDX-License-Identifier: Apache-2.0
"""What the readable Python references of the modes (``impls/modes/<mode>/reference.py``) are written against.

A reference defines ``run(keyed, message) -> Answer``. It gets block ciphers by key and knows nothing else of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Answer", "BlockCipher", "Keyed", "Message", "blocks", "xor"]


class BlockCipher(Protocol):
    """A block cipher under one key; ``block_len`` in bytes."""

    @property
    def block_len(self) -> int:
        """Length of a block in bytes."""

    def encrypt(self, block: bytes) -> bytes:
        """The forward cipher function of one block."""

    def decrypt(self, block: bytes) -> bytes:
        """The inverse cipher function of one block."""


Keyed = Callable[[bytes], BlockCipher]
"""Takes a cipher key to its block cipher."""


@dataclass(frozen=True)
class Message:
    """One message of a session. ``key`` is the mode's whole key; ``tag_len`` in bytes, 0 where the mode has no tag."""

    decrypting: bool
    key: bytes
    iv: bytes
    aad: bytes
    data: bytes
    tag_len: int


@dataclass(frozen=True)
class Answer:
    """What a message gives: the transformed data (empty for a MAC), the next iv where the mode defines one, the tag.

    Decrypting, ``tag`` is the tag that a genuine message would carry.
    """

    data: bytes
    iv: bytes
    tag: bytes


def xor(first: bytes, second: bytes) -> bytes:
    """Bytewise exclusive or; the result is as long as the shorter one."""
    return bytes(a ^ b for a, b in zip(first, second, strict=False))


def blocks(data: bytes, block_len: int) -> list[bytes]:
    """``data`` in pieces of ``block_len`` bytes, the last one shorter where it does not divide."""
    return [data[i : i + block_len] for i in range(0, len(data), block_len)]
