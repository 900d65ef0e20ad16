# SPDX-License-Identifier: Apache-2.0
"""ECB as NIST SP 800-38A section 6.1 states it."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["decrypt", "encrypt"]

Block = Callable[[bytes], bytes]


def _blocks(data: bytes, block_len: int) -> list[bytes]:
    return [data[i : i + block_len] for i in range(0, len(data), block_len)]


def encrypt(forward: Block, inverse: Block, iv: bytes, data: bytes, block_len: int) -> tuple[bytes, bytes]:
    """C_j = CIPH(P_j). Returns ciphertext and the next iv, which ECB does not have."""
    return b"".join(forward(p) for p in _blocks(data, block_len)), b""


def decrypt(forward: Block, inverse: Block, iv: bytes, data: bytes, block_len: int) -> tuple[bytes, bytes]:
    """P_j = CIPH^-1(C_j). Returns plaintext and the next iv, which ECB does not have."""
    return b"".join(inverse(c) for c in _blocks(data, block_len)), b""
