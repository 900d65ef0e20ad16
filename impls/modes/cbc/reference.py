# SPDX-License-Identifier: Apache-2.0
"""CBC as NIST SP 800-38A section 6.2 states it."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["decrypt", "encrypt"]

Block = Callable[[bytes], bytes]


def _xor(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))


def _blocks(data: bytes, block_len: int) -> list[bytes]:
    return [data[i : i + block_len] for i in range(0, len(data), block_len)]


def encrypt(forward: Block, inverse: Block, iv: bytes, data: bytes, block_len: int) -> tuple[bytes, bytes]:
    """C_1 = CIPH(P_1 xor IV), C_j = CIPH(P_j xor C_{j-1}). Returns ciphertext and the next iv, its last block."""
    out = []
    for p in _blocks(data, block_len):
        iv = forward(_xor(p, iv))
        out.append(iv)
    return b"".join(out), iv


def decrypt(forward: Block, inverse: Block, iv: bytes, data: bytes, block_len: int) -> tuple[bytes, bytes]:
    """P_1 = CIPH^-1(C_1) xor IV, P_j = CIPH^-1(C_j) xor C_{j-1}. Returns plaintext and the next iv."""
    out = []
    for c in _blocks(data, block_len):
        out.append(_xor(inverse(c), iv))
        iv = c
    return b"".join(out), iv
