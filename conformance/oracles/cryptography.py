# SPDX-License-Identifier: Apache-2.0
"""pyca/cryptography: AES, SM4, triple DES and CAST5 in ecb, cbc, cfb, ofb, ctr, xts, cmac, ccm and gcm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cryptography.hazmat.decrepit.ciphers.algorithms import CAST5, TripleDES
from cryptography.hazmat.decrepit.ciphers.modes import CFB, OFB
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESCCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES, SM4
from cryptography.hazmat.primitives.ciphers.modes import CBC, CTR, ECB, GCM, XTS
from cryptography.hazmat.primitives.cmac import CMAC

from crosslane.reference import Answer, Message

__all__ = ["run"]

_CIPHERS: dict[str, Any] = {"aes": AES, "sm4": SM4, "des3_ede": TripleDES, "cast5": CAST5}
_WITH_IV: dict[str, Any] = {"cbc": CBC, "cfb": CFB, "ofb": OFB, "ctr": CTR}
_IN: dict[str, tuple[str, ...]] = {
    "ecb": ("aes", "sm4", "des3_ede", "cast5"),
    "cbc": ("aes", "sm4", "des3_ede", "cast5"),
    "cfb": ("aes", "sm4", "des3_ede", "cast5"),
    "ofb": ("aes", "sm4", "des3_ede", "cast5"),
    "ctr": ("aes", "sm4"),
    "xts": ("aes",),
    "cmac": ("aes", "des3_ede"),
    "ccm": ("aes",),
    "gcm": ("aes", "sm4"),
}
_XTS_KEYS = (32, 64)
_GCM_IV_LENS = range(8, 129)
_GCM_LEAST_TAG = 4


def run(mode: str, cipher: str, message: Message) -> Answer | None:
    """What the library makes of a message; None outside its domain."""
    if cipher not in _IN.get(mode, ()):
        return None
    special: dict[str, Callable[[str, Message], Answer | None]] = {
        "ccm": _ccm,
        "cmac": _cmac,
        "gcm": _gcm,
        "xts": _xts,
    }
    if mode in special:
        return special[mode](cipher, message)
    chosen = ECB() if mode == "ecb" else _WITH_IV[mode](message.iv)
    return _through(Cipher(_CIPHERS[cipher](message.key), chosen), message)


def _through(cipher: Any, message: Message) -> Answer:
    context = cipher.decryptor() if message.decrypting else cipher.encryptor()
    return Answer(context.update(message.data) + context.finalize(), b"", b"")


def _cmac(cipher: str, message: Message) -> Answer:
    mac = CMAC(_CIPHERS[cipher](message.key))
    mac.update(message.data)
    return Answer(b"", b"", mac.finalize())


def _xts(_cipher: str, message: Message) -> Answer | None:
    half = len(message.key) // 2
    if len(message.key) not in _XTS_KEYS or message.key[:half] == message.key[half:] or not message.data:
        return None
    return _through(Cipher(AES(message.key), XTS(message.iv)), message)


def _ccm(_cipher: str, message: Message) -> Answer | None:
    """Only encrypting: decryption gives nothing without the genuine tag."""
    if message.decrypting:
        return None
    out = AESCCM(message.key, tag_length=message.tag_len).encrypt(message.iv, message.data, message.aad)
    split = len(out) - message.tag_len
    return Answer(out[:split], b"", out[split:])


def _gcm(cipher: str, message: Message) -> Answer | None:
    """Decrypting, the genuine tag is that of the plaintext encrypted again."""
    if len(message.iv) not in _GCM_IV_LENS or message.tag_len < _GCM_LEAST_TAG:
        return None

    def encrypt(plaintext: bytes) -> tuple[bytes, bytes]:
        context = Cipher(_CIPHERS[cipher](message.key), GCM(message.iv)).encryptor()
        context.authenticate_additional_data(message.aad)
        out = context.update(plaintext) + context.finalize()
        return out, context.tag[: message.tag_len]

    data, tag = encrypt(message.data)
    if message.decrypting:  # counter mode is its own inverse: the first pass gave the plaintext
        tag = encrypt(data)[1]
    return Answer(data, b"", tag)
