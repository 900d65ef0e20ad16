# SPDX-License-Identifier: Apache-2.0
"""PyCryptodome: AES, triple DES and CAST5 in ecb, cbc, cfb, ofb, ctr, cmac, ccm and gcm."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from Crypto.Cipher import AES, CAST, DES3
from Crypto.Hash import CMAC

from crosslane.reference import Answer, Message

__all__ = ["run"]

_CIPHERS: dict[str, ModuleType] = {"aes": AES, "cast5": CAST, "des3_ede": DES3}
_SMALL_TAG = 4


def run(mode: str, cipher: str, message: Message) -> Answer | None:
    """What the library makes of a message; None outside its domain."""
    module = _CIPHERS.get(cipher)
    if module is None or not _takes(module, message.key):
        return None
    if mode == "cmac":
        mac = CMAC.new(message.key, ciphermod=module, mac_len=message.tag_len)
        return Answer(b"", b"", mac.update(message.data).digest())
    if mode in ("ccm", "gcm"):
        return _authenticated(mode, module, message)
    made = _plain(mode, module, message)
    if made is None:
        return None
    length, bs = len(message.data), int(module.block_size)
    data = message.data
    if mode == "cfb":  # the library takes whole segments: what stands behind the message does not change what it gives
        data += bytes(-length % bs)
    out = made.decrypt(data) if message.decrypting else made.encrypt(data)
    return Answer(out[:length], b"", b"")


def _takes(module: ModuleType, key: bytes) -> bool:
    """The library refuses triple keys that degenerate to single DES, parity aside."""
    if module is DES3:
        first, second, third = (bytes(b & 0xFE for b in key[i : i + 8]) for i in (0, 8, 16))
        return second not in (first, third)
    return True


def _plain(mode: str, module: ModuleType, message: Message) -> Any:
    bs = int(module.block_size)
    if mode == "ecb":
        return module.new(message.key, module.MODE_ECB)
    if mode in ("cbc", "ofb"):
        return module.new(message.key, module.MODE_CBC if mode == "cbc" else module.MODE_OFB, iv=message.iv)
    if mode == "cfb":
        return module.new(message.key, module.MODE_CFB, iv=message.iv, segment_size=8 * bs)
    first = int.from_bytes(message.iv, "big")
    if mode == "ctr" and first + len(message.data) // bs + 1 < 1 << (8 * bs):  # it refuses a counter that wraps
        return module.new(message.key, module.MODE_CTR, nonce=b"", initial_value=first)
    return None


def _authenticated(mode: str, module: ModuleType, message: Message) -> Answer | None:
    """Decrypting, the genuine tag is that of the plaintext encrypted again."""
    if int(module.block_size) != AES.block_size or (mode == "gcm" and message.tag_len < _SMALL_TAG):
        return None
    kind = module.MODE_CCM if mode == "ccm" else module.MODE_GCM
    lengths = {"msg_len": len(message.data), "assoc_len": len(message.aad)} if mode == "ccm" else {}

    def fresh() -> Any:
        made = module.new(message.key, kind, nonce=message.iv, mac_len=message.tag_len, **lengths)
        return made.update(message.aad)

    plaintext = fresh().decrypt(message.data) if message.decrypting else message.data
    ciphertext, tag = fresh().encrypt_and_digest(plaintext)
    return Answer(plaintext if message.decrypting else ciphertext, b"", tag)
