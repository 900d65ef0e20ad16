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

__all__ = ["Answer", "BlockCipher", "Keyed", "Message", "Refused", "blocks", "data_unit", "require", "xor"]


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


def _tweaked(cipher: BlockCipher, block: bytes, tweak: bytes, decrypting: bool) -> bytes:
    """C = E_K1(P xor T) xor T, and the inverse."""
    step = cipher.decrypt if decrypting else cipher.encrypt
    return xor(step(xor(block, tweak)), tweak)


def data_unit(keyed: Keyed, message: Message, double: Callable[[bytes], bytes]) -> Answer:
    """What the variants of XTS have alike; ``double`` multiplies a tweak by the primitive element alpha.

    Key = K1 | K2; T_0 = E_K2(i), T_{j+1} = T_j * alpha. A partial block C_m is stolen from the block before it.
    Encrypting, C_{m-1} and C_m are CC = E(P_{m-1}; T_{m-1}) cut, and E(P_m | rest of CC; T_m); decrypting, the same
    with the last two tweaks exchanged.
    """
    half = len(message.key) // 2
    cipher = keyed(message.key[:half])
    require(len(message.iv) == cipher.block_len, Status.BAD_IV_LEN)
    require(len(message.data) >= cipher.block_len, Status.BAD_DATA_LEN)
    tweak = keyed(message.key[half:]).encrypt(message.iv)
    pieces, tweaks = blocks(message.data, cipher.block_len), []
    for _ in pieces:
        tweaks.append(tweak)
        tweak = double(tweak)
    stealing = len(pieces[-1]) < cipher.block_len
    if stealing and message.decrypting:
        tweaks[-2:] = tweaks[-1], tweaks[-2]
    num_whole = len(pieces) - stealing
    out = [_tweaked(cipher, pieces[j], tweaks[j], message.decrypting) for j in range(num_whole)]
    if stealing:
        stolen, tail = out.pop(), pieces[-1]
        out.append(_tweaked(cipher, tail + stolen[len(tail) :], tweaks[-1], message.decrypting))
        out.append(stolen[: len(tail)])
    return Answer(b"".join(out), b"", b"")
