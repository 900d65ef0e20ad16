# SPDX-License-Identifier: Apache-2.0
"""XTS as GB/T 17964-2021 states it: that of IEEE Std 1619, but the bits of a tweak's bytes in reversed order."""

from __future__ import annotations

from crosslane.reference import Answer, BlockCipher, Keyed, Message, blocks, require, xor
from crosslane.wire import Status

__all__ = ["run"]


def _double(tweak: bytes) -> bytes:
    """Multiply by the primitive element: byte 0 and bit 7 come first, x^128 = x^7 + x^2 + x + 1 is 0xE1 in byte 0."""
    number = int.from_bytes(tweak, "big")
    number = (number >> 1) ^ (0xE1 << 120 if number & 1 else 0)
    return number.to_bytes(16, "big")


def _block(cipher: BlockCipher, block: bytes, tweak: bytes, decrypting: bool) -> bytes:
    """C = E_K1(P xor T) xor T, and the inverse."""
    step = cipher.decrypt if decrypting else cipher.encrypt
    return xor(step(xor(block, tweak)), tweak)


def run(keyed: Keyed, message: Message) -> Answer:
    """Key = K1 | K2; T_0 = E_K2(i), T_{j+1} = T_j * alpha. A partial block C_m is stolen from the block before it.

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
        tweak = _double(tweak)
    stealing = len(pieces[-1]) < cipher.block_len
    if stealing and message.decrypting:
        tweaks[-2:] = tweaks[-1], tweaks[-2]
    num_whole = len(pieces) - stealing
    out = [_block(cipher, pieces[j], tweaks[j], message.decrypting) for j in range(num_whole)]
    if stealing:
        stolen, tail = out.pop(), pieces[-1]
        out.append(_block(cipher, tail + stolen[len(tail) :], tweaks[-1], message.decrypting))
        out.append(stolen[: len(tail)])
    return Answer(b"".join(out), b"", b"")
