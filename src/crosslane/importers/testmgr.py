# SPDX-License-Identifier: Apache-2.0
"""Vectors of the Linux kernel's self tests, ``crypto/testmgr.h``.

That file is under GPL-2.0-or-later and no part of this project: it is read where it is installed and never shipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from crosslane._vector_fields import bad_line
from crosslane.corpora import Vector
from crosslane.importers._c_tables import Name, Row, find_tables, read_rows
from crosslane.importers.imported import Collector, Imported, Place, message, read_text, unfit

__all__ = ["import_testmgr"]

_CIPHERS = {"tf": "twofish"}
_MODES = {
    None: "ecb",
    "cts": "cts_cbc",
    "cmac64": "cmac",
    "cmac128": "cmac",
    "xcbc128": "xcbc",
    "ctr_rfc3686": "ctr",
    "gcm_rfc4106": "gcm",
    "ccm_rfc4309": "ccm",
}
_NAME = re.compile(
    r"(aes|cast5|des3_ede|serpent|sm4|tf)(?:_(cbc|cfb|ofb|ctr|ctr_rfc3686|cts|lrw|xts|gcm|gcm_rfc4106|ccm|ccm_rfc4309|"
    r"cmac64|cmac128|xcbc128|cbcmac))?_tv_template"
)
_FIELDS = {
    "cipher_testvec": "key klen iv iv_out ptext ctext len wk fips_skip generates_iv setkey_error crypt_error",
    "hash_testvec": "key ksize plaintext psize digest fips_skip setkey_error digest_error",
    "aead_testvec": "key klen iv ptext plen assoc alen ctext clen novrfy wk setkey_error setauthsize_error crypt_error",
}
_EXPECTED_ERRORS = ("wk", "setkey_error", "setauthsize_error", "crypt_error", "digest_error", "generates_iv")
_CTS_OF_AES = "cts_mode_tv_template"  # the table of cts(cbc(aes)) has this name
_COUNTER_START = b"\0\0\0\1"


def import_testmgr(path: Path, source: str) -> Imported:
    """The vectors of all tables whose algorithm the suite has; ``BadInput`` names the line of anything unexpected.

    ``iv_out`` is not kept: the model of vectors has no place for it.
    """
    text = read_text(path)
    collector = Collector(path, source)
    others: list[str] = []
    for table in find_tables(text):
        algorithm, variant = _algorithm(table.name)
        if not algorithm:
            others.append(table.name)
            continue
        if table.kind not in _FIELDS:
            sentence = f"{table.name} is of struct {table.kind}; allowed are {', '.join(_FIELDS)}"
            raise bad_line(path, table.line, sentence)
        for number, row in enumerate(read_rows(path, text, table)):
            entry = _Entry(path, row, table.kind)
            if entry.expects_error():
                collector.refuse("a call that the kernel must refuse, or an iv that the kernel generates")
                continue
            place = Place(f"{table.name.removesuffix('_tv_template')}_{number}", row.line)
            vector = _READERS[table.kind](entry, place, algorithm, variant)
            reason = unfit(algorithm, vector)
            if reason is not None:
                raise bad_line(path, row.line, f"the vector has {reason}; restore it")
            collector.add(algorithm, table.name, vector)
    if others:
        collector.refuse(f"{len(others)} tables of no mode and cipher of the suite: {', '.join(others)}", 0)
    return collector.result()


def _algorithm(name: str) -> tuple[str, str]:
    """The algorithm of a table (empty: none of the suite's) and its variant in the kernel's spelling."""
    if name == _CTS_OF_AES:
        return "cts_cbc(aes)", "cts"
    match = _NAME.fullmatch(name)
    if match is None:
        return "", ""
    cipher, variant = match.groups()
    return f"{_MODES.get(variant, variant)}({_CIPHERS.get(cipher, cipher)})", variant or ""


class _Entry:
    """A row with its values by type."""

    def __init__(self, path: Path, row: Row, kind: str) -> None:
        self.path = path
        self.line = row.line
        self._values = row.values
        allowed = _FIELDS[kind].split()
        for name, (line, _) in row.values.items():
            if name not in allowed:
                sentence = f"unknown field {name!r} of struct {kind}; allowed are {', '.join(allowed)}; correct it"
                raise bad_line(path, line, sentence)

    def expects_error(self) -> bool:
        return any(self.number(name) for name in _EXPECTED_ERRORS)

    def line_of(self, name: str) -> int:
        """The line of the field, or of the row where it is absent."""
        return self._values.get(name, (self.line, None))[0]

    def number(self, name: str) -> int:
        """A number; 0 where the field is absent, as C has it."""
        line, value = self._values.get(name, (self.line, 0))
        if not isinstance(value, int):
            raise bad_line(self.path, line, f"{name!r} is no number; write one")
        return value

    def iv(self, length: int) -> bytes:
        """The first ``length`` bytes of the iv: the kernel reads no more, though some literals have more."""
        _, value = self._values.get("iv", (self.line, None))
        return value[:length] if isinstance(value, bytes) and len(value) > length else self.data("iv", length)

    def data(self, name: str, length: int) -> bytes:
        """``length`` bytes; zeros where the field is absent, ``NULL`` or ``zeroed_string``.

        The zero that ends a literal counts where the length says so; no bytes may be written as one zero byte.
        """
        line, value = self._values.get(name, (self.line, None))
        if value is None or value == Name("zeroed_string") or (length == 0 and value == b"\0"):
            return bytes(length)
        if not isinstance(value, bytes):
            raise bad_line(self.path, line, f"{name!r} is no string; allowed are literals, NULL and zeroed_string")
        if len(value) + 1 == length:
            return value + b"\0"
        if len(value) != length:
            sentence = f"{name!r} has {len(value)} bytes but its length is {length}; correct one of them"
            raise bad_line(self.path, line, sentence)
        return value


def _cipher(entry: _Entry, place: Place, algorithm: str, variant: str) -> Vector:
    key, length = entry.data("key", entry.number("klen")), entry.number("len")
    block_len = 8 if algorithm.endswith(("(cast5)", "(des3_ede)")) else 16
    if variant == "ctr_rfc3686":
        # RFC 3686, section 4: nonce, iv and a block counter that starts at one; the kernel's key ends with the nonce.
        key, iv = key[:-4], key[-4:] + entry.iv(8) + _COUNTER_START
    else:
        iv = b"" if algorithm.startswith("ecb") else entry.iv(block_len)
    plaintext, ciphertext = entry.data("ptext", length), entry.data("ctext", length)
    return message(place, key=key, iv=iv, plaintext=plaintext, ciphertext=ciphertext)


def _hash(entry: _Entry, place: Place, algorithm: str, _: str) -> Vector:
    tag_len = 8 if algorithm.endswith(("(cast5)", "(des3_ede)")) else 16
    key, data = entry.data("key", entry.number("ksize")), entry.data("plaintext", entry.number("psize"))
    return message(place, key=key, plaintext=data, tag=entry.data("digest", tag_len))


def _aead(entry: _Entry, place: Place, algorithm: str, variant: str) -> Vector:
    key, aad = entry.data("key", entry.number("klen")), entry.data("assoc", entry.number("alen"))
    length, sealed = entry.number("plen"), entry.data("ctext", entry.number("clen"))
    if len(sealed) <= length:
        raise bad_line(
            entry.path, entry.line, f"'clen' is {len(sealed)} and 'plen' {length}: no tag is left; correct it"
        )
    if variant in ("gcm_rfc4106", "ccm_rfc4309"):
        # RFC 4106, section 4, and RFC 4309, section 4: the salt ends the kernel's key, the iv ends its assoc unsigned.
        salt_len = 4 if variant == "gcm_rfc4106" else 3
        key, iv, aad = key[:-salt_len], key[-salt_len:] + entry.iv(8), aad[:-8]
    elif algorithm.startswith("gcm"):
        iv = entry.iv(12)
    else:
        iv = _ccm_nonce(entry)
    return message(
        place,
        key=key,
        iv=iv,
        aad=aad,
        plaintext=entry.data("ptext", length),
        ciphertext=sealed[:length],
        tag=sealed[length:],
        use="bad_tag" if entry.number("novrfy") else "both",
    )


def _ccm_nonce(entry: _Entry) -> bytes:
    """The nonce in the kernel's iv, a counter block of RFC 3610, section 2.3: L - 1, nonce, L bytes of zero."""
    block = entry.iv(16)
    counter_len = block[0] + 1
    if not 2 <= counter_len <= 8 or any(block[-counter_len:]):
        raise bad_line(entry.path, entry.line_of("iv"), "'iv' is no first counter block of ccm; restore it")
    return block[1:-counter_len]


_READERS: dict[str, Callable[[_Entry, Place, str, str], Vector]] = {
    "cipher_testvec": _cipher,
    "hash_testvec": _hash,
    "aead_testvec": _aead,
}
