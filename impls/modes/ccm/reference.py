# SPDX-License-Identifier: Apache-2.0
"""CCM as NIST SP 800-38C section 6 states it, with the formatting of its appendix A."""

from __future__ import annotations

from crosslane.reference import Answer, BlockCipher, Keyed, Message, blocks, require, xor
from crosslane.wire import Status

__all__ = ["run"]


def _encode_aad_len(aad_len: int) -> bytes:
    """The length that stands before the associated data (appendix A.2.2)."""
    if aad_len < (1 << 16) - (1 << 8):
        return aad_len.to_bytes(2, "big")
    if aad_len < 1 << 32:
        return b"\xff\xfe" + aad_len.to_bytes(4, "big")
    return b"\xff\xff" + aad_len.to_bytes(8, "big")


def _format(message: Message, payload: bytes) -> list[bytes]:
    """The blocks B_0, B_1 ... B_r (appendices A.2.1 to A.2.3)."""
    q = 15 - len(message.iv)
    flags = 0x40 * (len(message.aad) > 0) + 8 * ((message.tag_len - 2) // 2) + (q - 1)
    first = bytes([flags]) + message.iv + len(payload).to_bytes(q, "big")
    aad = _encode_aad_len(len(message.aad)) + message.aad if message.aad else b""
    return [block.ljust(16, b"\0") for part in (first, aad, payload) for block in blocks(part, 16)]


def _keystream(cipher: BlockCipher, nonce: bytes, num_blocks: int) -> list[bytes]:
    """S_0, S_1 ...: the forward cipher of the counter blocks (appendix A.3)."""
    q = 15 - len(nonce)
    return [cipher.encrypt(bytes([q - 1]) + nonce + i.to_bytes(q, "big")) for i in range(num_blocks)]


def _check(message: Message) -> None:
    """Lengths that the formatting has room for (section 5.4 and appendix A.1), and what was announced comes."""
    aad_len, data_len = message.announced or (len(message.aad), len(message.data))
    q = 15 - len(message.iv)
    require(2 <= q <= 8, Status.BAD_IV_LEN)
    require(message.tag_len in (4, 6, 8, 10, 12, 14, 16), Status.BAD_TAG_LEN)
    require(data_len < 1 << (8 * q), Status.BAD_DATA_LEN)
    require(len(message.aad) == aad_len, Status.BAD_AAD_LEN)
    require(len(message.data) == data_len, Status.BAD_DATA_LEN)


def run(keyed: Keyed, message: Message) -> Answer:
    """C = P xor MSB(S_1 || S_2 ...), the tag is MSB_Tlen(T xor S_0), T the CBC-MAC of the formatted plaintext."""
    _check(message)
    cipher = keyed(message.key)
    pieces = blocks(message.data, 16)
    s0, *stream = _keystream(cipher, message.iv, 1 + len(pieces))
    out = b"".join(xor(piece, s) for piece, s in zip(pieces, stream, strict=True))

    chain = bytes(16)
    for block in _format(message, out if message.decrypting else message.data):
        chain = cipher.encrypt(xor(chain, block))
    return Answer(out, b"", xor(chain, s0)[: message.tag_len])
