# SPDX-License-Identifier: Apache-2.0
"""Why the domain of Crypto++'s gcm has ivs of 12 bytes alone: a fault that this holds against the installed release."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from crosslane import gf128
from crosslane.data import data_root
from crosslane.registry import load_registry

KEY = bytes(range(16))
HASH_KEY = bytes.fromhex("c6a13b37878f5b826f4f8162a1c8d879")  # a block of zeros under KEY
DATA = bytes(48)
PROGRAM = r"""
#include <cryptopp/aes.h>
#include <cryptopp/gcm.h>
#include <cstdio>
int main()
{
    static const unsigned char key[] = {@KEY@}, iv[] = {@IV@};
    unsigned char in[@LEN@] = {0}, out[@LEN@], tag[16];
    CryptoPP::GCM<CryptoPP::AES>::Encryption gcm;
    gcm.SetKeyWithIV(key, sizeof key, iv, sizeof iv);
    gcm.EncryptAndAuthenticate(out, tag, sizeof tag, iv, sizeof iv, nullptr, 0, in, sizeof in);
    for (unsigned char byte : out) std::printf("%02x", byte);
    for (unsigned char byte : tag) std::printf("%02x", byte);
}
"""


def iv_for(counter: bytes) -> bytes:
    """The iv of 16 bytes whose initial counter block is ``counter`` (NIST SP 800-38D, section 7.1, step 2)."""
    blocks = np.frombuffer(HASH_KEY + (128).to_bytes(16, "big") + counter, np.uint8).reshape(3, 16)
    h, length, wanted = (gf128.elements_of(block[None]) for block in blocks)
    inverse = gf128.inverse(h)
    iv = gf128.multiply(gf128.multiply(wanted, inverse) ^ length, inverse)
    return iv.astype(">u8").tobytes()


def answer_of(folder: Path, iv: bytes) -> bytes:
    text = PROGRAM.replace("@LEN@", str(len(DATA)))
    for mark, data in (("@KEY@", KEY), ("@IV@", iv)):
        text = text.replace(mark, ", ".join(map(str, data)))
    (folder / "gcm.cc").write_text(text)
    subprocess.run(["g++", "-w", "-o", "gcm", "gcm.cc", "-lcrypto++"], cwd=folder, check=True)
    done = subprocess.run(["./gcm"], cwd=folder, check=True, capture_output=True, text=True)
    return bytes.fromhex(done.stdout)


def test_the_domain_is_as_narrow_as_the_fault_needs(tmp_path: Path) -> None:
    """One that fails here for the last line is a corrected release: take iv_lens out of its provider.toml."""
    provider = next(item for item in load_registry(data_root()).providers if item.name == "cryptopp")
    domain = provider.domain("gcm", "aes")
    assert domain is not None
    assert tuple(domain.iv_lens) == (12,)
    sound, wrong = iv_for(bytes(12) + b"\xff\xff\xff\xf0"), iv_for(bytes(12) + b"\xff\xff\xff\xff")
    assert answer_of(tmp_path, sound) == AESGCM(KEY).encrypt(sound, DATA, None)
    assert answer_of(tmp_path, wrong) != AESGCM(KEY).encrypt(wrong, DATA, None)
