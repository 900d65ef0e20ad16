# SPDX-License-Identifier: Apache-2.0
"""What the readable Python references of the modes (``impls/modes/<mode>/reference.py``) are written against.

A reference defines ``run(keyed, message) -> Answer``, which raises ``Refused`` where the mode does not take a message.
It gets block ciphers by key and knows nothing else of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from crosslane.wire import Status

__all__ = ["Answer", "BlockCipher", "Keyed", "Message", "Refused", "blocks", "require", "xor"]


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
    """One message of a session. ``key`` is the mode's whole key; ``tag_len`` in bytes, 0 where the mode has no tag.

    ``announced`` are the bytes of associated data and of data that were said to come, where others came.
    """

    decrypting: bool
    key: bytes
    iv: bytes
    aad: bytes
    data: bytes
    tag_len: int
    announced: tuple[int, int] | None = None


@dataclass(frozen=True)
class Answer:
    """What a message gives: the transformed data (empty for a MAC), the next iv where the mode defines one, the tag.

    Decrypting, ``tag`` is the tag that a genuine message would carry.
    """

    data: bytes
    iv: bytes
    tag: bytes


class Refused(Exception):
    """The mode does not take the message; ``status`` is what the call answers that refuses it."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.name)
        self.status = status


def require(holds: bool, status: Status) -> None:
    """Raise ``Refused`` where a condition does not hold."""
    if not holds:
        raise Refused(status)


def xor(first: bytes, second: bytes) -> bytes:
    """Bytewise exclusive or; the result is as long as the shorter one."""
    return bytes(a ^ b for a, b in zip(first, second, strict=False))


def blocks(data: bytes, block_len: int) -> list[bytes]:
    """``data`` in pieces of ``block_len`` bytes, the last one shorter where it does not divide."""
    return [data[i : i + block_len] for i in range(0, len(data), block_len)]
