# SPDX-License-Identifier: Apache-2.0
"""What is in a LUKS header, by ``cryptsetup luksDump``: specification, sector length, payload offset, volume key.

cryptsetup opens key slots by the kernel's ciphers. Where the running kernel lacks one, and has no device mapper
instead, a slot of LUKS1 is opened here from the fields that cryptsetup prints, by generic: the LUKS1 On-Disk Format
Specification, sections 2.4 (anti-forensic splitter) and 4.2, gives the steps, and the header's digest of the volume key
says whether the outcome is right.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crosslane.data import read_files, shown
from crosslane.disk.spec import SECTOR_LENS, CipherSpec, parse_spec
from crosslane.disk.tools import Said, run_tool, told
from crosslane.errors import BadInput

__all__ = ["Decrypt", "Header", "merged", "read_header", "volume_key"]

Decrypt = Callable[[CipherSpec, bytes, NDArray[np.uint8]], NDArray[np.uint8]]
"""A specification, a key and sectors of shape (n, sector_len) numbered from 0: the same decrypted."""
_NO_CIPHER = ("device-mapper", "not available", "not supported", "dm_mod", "kernel")
_WRONG_KEY = 2
_SLOT_SECTOR = 512


@dataclass(frozen=True)
class Header:
    """``payload`` is in bytes from the beginning of the image. ``fields`` are what LUKS1 says of itself."""

    spec: CipherSpec
    version: int
    sector_len: int
    payload: int
    fields: dict[str, str]


def read_header(image: Path) -> Header:
    """The header of an image; raises BadInput where it is none, or of a cipher that cannot be judged."""
    said = run_tool("cryptsetup", ["luksDump", str(image)])
    if said.status:
        raise BadInput(f"{shown(image)}: is no LUKS image ({said.last}): name one that qemu-img or cryptsetup made")
    fields = _fields(said.out)
    try:
        if fields.get("Version") == "1":
            spec = parse_spec(f"{fields['Cipher name']}-{fields['Cipher mode']}")
            return Header(spec, 1, 512, int(fields["Payload offset"]) * 512, fields)
        return _header_2(image)
    except (KeyError, ValueError, TypeError) as error:
        raise BadInput(
            f"{shown(image)}: cryptsetup prints no header of LUKS1 or LUKS2 ({type(error).__name__}: {error}): make "
            "the image again"
        ) from None
    except BadInput as error:
        raise BadInput(f"{shown(image)}: {error}") from None


def _header_2(image: Path) -> Header:
    said = run_tool("cryptsetup", ["luksDump", "--dump-json-metadata", str(image)])
    if said.status:
        raise told("cryptsetup", said, "the header")
    (segment,) = json.loads(said.out)["segments"].values()
    sector_len, first = int(segment["sector_size"]), int(segment["iv_tweak"])
    if segment["type"] != "crypt" or sector_len not in SECTOR_LENS or first:
        raise BadInput(
            f"its segment has sectors of {sector_len} bytes from {first} on: allowed are 512 and 4096 from 0"
        )
    return Header(parse_spec(segment["encryption"]), 2, sector_len, int(segment["offset"]), {})


def _fields(text: str) -> dict[str, str]:
    """Name and value of each line; values in hexadecimal go on in the lines below, the first slot comes first."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not colon and name and re.fullmatch(r"[\s0-9a-f]+", line):
            found[name] += " " + line.strip()
        elif colon:
            name = key.strip()
            if name in found:
                name = ""
            else:
                found[name] = value.strip()
    return found


def volume_key(image: Path, header: Header, passphrase: bytes, decrypt: Decrypt) -> bytes:
    """The volume key under a passphrase; raises BadInput where it opens no slot."""
    with tempfile.TemporaryDirectory(prefix="crosslane-disk-") as name:
        secret, out = Path(name) / "passphrase", Path(name) / "key"
        secret.write_bytes(passphrase)
        said = run_tool(
            "cryptsetup",
            ["luksDump", "--dump-volume-key", "--volume-key-file", str(out), "--batch-mode", "--key-file", str(secret),
             str(image)],
        )  # fmt: skip
        if said.status == 0 and out.exists():
            return out.read_bytes()
    if header.version == 1 and _lacks_cipher(said):
        key = _open_slot(image, header, passphrase, decrypt)
        if key is not None:
            return key
    elif said.status != _WRONG_KEY:
        raise told("cryptsetup", said, f"the key slots of {shown(image)}")
    raise BadInput(f"{shown(image)}: the passphrase opens no key slot: give the right one with --key-file")


def _lacks_cipher(said: Said) -> bool:
    return any(word in said.error for word in _NO_CIPHER)


def _open_slot(image: Path, header: Header, passphrase: bytes, decrypt: Decrypt) -> bytes | None:
    fields, key_len = header.fields, int(header.fields["MK bits"]) // 8
    name, stripes = fields["Hash spec"], int(fields["AF stripes"])
    slot_key = hashlib.pbkdf2_hmac(name, passphrase, bytes.fromhex(fields["Salt"]), int(fields["Iterations"]), key_len)
    at, size = int(fields["Key material offset"]) * _SLOT_SECTOR, key_len * stripes
    (data,) = read_files([image])
    rows = -(-size // _SLOT_SECTOR)
    material = np.frombuffer(data[at : at + rows * _SLOT_SECTOR], np.uint8).reshape(rows, _SLOT_SECTOR)
    key = merged(decrypt(header.spec, slot_key, material).tobytes()[:size], key_len, stripes, name)
    salt, rounds = bytes.fromhex(fields["MK salt"]), int(fields["MK iterations"])
    digest = bytes.fromhex(fields["MK digest"])
    return key if hashlib.pbkdf2_hmac(name, key, salt, rounds, len(digest)) == digest else None


def merged(material: bytes, key_len: int, stripes: int, name: str) -> bytes:
    """The key that an anti-forensic splitter spread over stripes of its length."""
    total = bytes(key_len)
    for number in range(stripes):
        part = material[number * key_len : (number + 1) * key_len]
        total = bytes(a ^ b for a, b in zip(total, part, strict=True))
        if number < stripes - 1:
            total = _diffused(total, name)
    return total


def _diffused(data: bytes, name: str) -> bytes:
    size = hashlib.new(name).digest_size
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    made = (
        hashlib.new(name, number.to_bytes(4, "big") + part).digest()[: len(part)] for number, part in enumerate(parts)
    )
    return b"".join(made)
