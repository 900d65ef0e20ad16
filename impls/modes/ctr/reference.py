# SPDX-License-Identifier: Apache-2.0
"""CTR as NIST SP 800-38A section 6.5 and appendix B.1 state it, the counter over the whole block."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["decrypt", "encrypt"]

Block = Callable[[bytes], bytes]


def encrypt(forward: Block, inverse: Block, iv: bytes, data: bytes, block_len: int) -> tuple[bytes, bytes]:
    """C_j = P_j xor CIPH(T_j), T_{j+1} = T_j + 1 mod 2^(8 block_len). Returns ciphertext and the next counter."""
    counter = int.from_bytes(iv, "big")
    out = bytearray()
    for i in range(0, len(data), block_len):
        keystream = forward(counter.to_bytes(block_len, "big"))
        piece = data[i : i + block_len]
        out += bytes(p ^ k for p, k in zip(piece, keystream, strict=False))
        counter = (counter + 1) % (1 << (8 * block_len))
    return bytes(out), counter.to_bytes(block_len, "big")


def decrypt(forward: Block, inverse: Block, iv: bytes, data: bytes, block_len: int) -> tuple[bytes, bytes]:
    """The same operation as encryption: P_j = C_j xor CIPH(T_j)."""
    return encrypt(forward, inverse, iv, data, block_len)
