# SPDX-License-Identifier: Apache-2.0
"""Response files of NIST's Cryptographic Algorithm Validation Program (CAVP), and files laid out like them.

The name of a file says its algorithm, as NIST's own tools have it (AESVS, TMOVS, GCMVS, CCMVS, XTSVS, CMACVS).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

from crosslane._vector_fields import bad_line
from crosslane.corpora import MonteCarlo, MonteCarloRound, Vector
from crosslane.importers._rsp import Layout, Record, read_records
from crosslane.importers.imported import (
    CUT_MAC,
    WRONG_MAC,
    Collector,
    Imported,
    Place,
    Use,
    message,
    monte_carlo,
    unfit,
    whole_file,
)

__all__ = ["import_cavp"]

_DES_KEYS = ("KEY1", "KEY2", "KEY3")
_AES_ROUNDS, _AES_CALLS = 100, 1_000
_TDES_ROUNDS, _TDES_CALLS = 400, 10_000
_TDES_KLENS = (1, 2, 3)  # CMACVS counts the different keys of 3DES here


@dataclass(frozen=True)
class _File:
    """What the name of a file says; ``key_len`` in bytes, 0 where it says none."""

    path: Path
    algorithm: str
    key_len: int


_Read = Callable[[_File, Collector], None]

_PLAIN = Layout(frozenset(), frozenset(("KEY", "KEYS", *_DES_KEYS, "IV", "PLAINTEXT", "CIPHERTEXT")))
_TAGGED = Layout(frozenset(), frozenset(("KEY", "IV", "AAD", "TAG", "PLAINTEXT", "CIPHERTEXT")))
_MAC_EXAMPLE = Layout(frozenset(), frozenset(("KEY", *_DES_KEYS, "MESSAGE", "OUTPUT")))
_MAC = Layout(frozenset(), frozenset(("KLEN", "MLEN", "TLEN", "KEY", *_DES_KEYS, "MSG", "MAC", "RESULT")))
_GCM = Layout(
    frozenset(("KEYLEN", "IVLEN", "PTLEN", "AADLEN", "TAGLEN")),
    frozenset(("KEY", "IV", "PT", "AAD", "CT", "TAG")),
    frozenset(("FAIL",)),
)
_CCM = Layout(
    frozenset(("ALEN", "PLEN", "NLEN", "TLEN")),
    frozenset(("KEY", "NONCE", "ADATA", "PAYLOAD", "CT", "RESULT")),
)
_XTS = Layout(frozenset(), frozenset(("DATAUNITLEN", "KEY", "I", "DATAUNITSEQNUMBER", "PT", "CT")))


def import_cavp(path: Path, source: str) -> Imported:
    """The vectors of one file; ``BadInput`` names the line of the first departure from the format."""
    for pattern, reason in _NOT_OURS:
        if re.fullmatch(pattern, path.name):
            return whole_file(path, reason)
    for pattern, algorithm, read in _OURS:
        match = re.fullmatch(pattern, path.name)
        if match is not None:
            parts = {name: value.lower() for name, value in match.groupdict().items() if value}
            collector = Collector(path, source)
            read(_File(path, algorithm.format_map(parts), int(parts.get("bits", 0)) // 8), collector)
            return collector.result()
    return whole_file(path, "the name says no algorithm and kind of test of CAVP that the suite knows")


def _direction(record: Record) -> Use:
    if not record.section:
        return "both"
    return "encrypt" if record.section == "ENCRYPT" else "decrypt"


def _place(record: Record) -> Place:
    prefix = f"{record.section.lower()}_" if record.section else ""
    group = f"g{record.group}_" if record.settings else ""
    return Place(f"{prefix}{group}{record.number}", record.line)


def _key(file: _File, record: Record) -> bytes:
    """A key as a whole, as three keys of DES or as one that stands for all three."""
    if "KEYS" in record:
        return record.sized("KEYS", 8) * 3
    if "KEY1" in record:
        return b"".join(record.sized(name, 8) for name in _DES_KEYS)
    return record.sized("KEY", file.key_len) if file.key_len else record.hex("KEY")


def _add(file: _File, collector: Collector, vector: Vector, locator: str) -> None:
    """Keep a vector; where its lengths contradict the algorithm or each other the file is damaged."""
    reason = unfit(file.algorithm, vector)
    if reason is not None:
        raise bad_line(file.path, vector.line, f"the vector has {reason}; restore it")
    if vector.ciphertext and vector.expect == "ok" and len(vector.plaintext) != len(vector.ciphertext):
        sentence = f"the plaintext has {len(vector.plaintext)} bytes but the ciphertext {len(vector.ciphertext)}"
        raise bad_line(file.path, vector.line, f"{sentence}; both must be equally long, correct one")
    collector.add(file.algorithm, locator, vector)


def _read_plain(file: _File, collector: Collector) -> None:
    for record in read_records(file.path, _PLAIN):
        vector = message(
            _place(record),
            key=_key(file, record),
            iv=record.hex("IV") if "IV" in record else b"",
            plaintext=record.hex("PLAINTEXT"),
            ciphertext=record.hex("CIPHERTEXT"),
            use=_direction(record),
        )
        _add(file, collector, vector, record.section or "all")


def _read_tagged(file: _File, collector: Collector) -> None:
    for record in read_records(file.path, _TAGGED):
        vector = message(
            _place(record),
            key=_key(file, record),
            iv=record.hex("IV"),
            aad=record.hex("AAD"),
            plaintext=record.hex("PLAINTEXT"),
            ciphertext=record.hex("CIPHERTEXT"),
            tag=record.hex("TAG"),
        )
        _add(file, collector, vector, "all")


def _read_mac_example(file: _File, collector: Collector) -> None:
    for record in read_records(file.path, _MAC_EXAMPLE):
        data, tag = record.hex("MESSAGE"), record.hex("OUTPUT")
        _add(file, collector, message(_place(record), key=_key(file, record), plaintext=data, tag=tag), "all")


def _read_mac(file: _File, collector: Collector) -> None:
    """CMACVS; a message of no bytes is written as one zero byte."""
    block_len = 8 if file.algorithm == "cmac(des3_ede)" else 16
    for record in read_records(file.path, _MAC):
        key = _key(file, record)
        if record.whole("KLEN") not in (_TDES_KLENS if block_len == 8 else (len(key),)):
            sentence = f"'KLEN' is {record.text('KLEN')} but the key has {len(key)} bytes; correct one of them"
            raise bad_line(file.path, record.fields["KLEN"][0], sentence)
        data = record.sized("MSG", record.whole("MLEN"), empty_as_zero=True)
        tag = record.sized("MAC", record.whole("TLEN"))
        if "RESULT" in record and not _passed(record):
            collector.refuse(WRONG_MAC)
        elif len(tag) < block_len:
            collector.refuse(CUT_MAC)
        else:
            _add(file, collector, message(_place(record), key=key, plaintext=data, tag=tag), "all")


def _read_gcm(file: _File, collector: Collector) -> None:
    decrypting = file.path.name.startswith("gcmDecrypt")
    for record in read_records(file.path, _GCM):
        bits = {name: record.setting(name) for name in _GCM.settings}
        failed = "FAIL" in record
        length = bits["PTLEN"] // 8
        vector = message(
            _place(record),
            key=record.sized("KEY", bits["KEYLEN"] // 8),
            iv=record.sized("IV", bits["IVLEN"] // 8),
            aad=record.sized("AAD", bits["AADLEN"] // 8),
            plaintext=b"" if failed else record.sized("PT", length),
            ciphertext=record.sized("CT", length),
            tag=record.sized("TAG", bits["TAGLEN"] // 8),
            use="bad_tag" if failed else "decrypt" if decrypting else "encrypt",
        )
        if failed and (not decrypting or "PT" in record):
            raise bad_line(file.path, record.line, "'FAIL' stands beside a plaintext; remove one of them")
        _add(file, collector, vector, f"group {record.group}")


def _read_ccm(file: _File, collector: Collector) -> None:
    """CCMVS; the tag is the end of the ciphertext, and no bytes are written as one zero byte."""
    verifying = file.path.name.startswith("DVPT")
    for record in read_records(file.path, _CCM):
        length, tag_len = record.setting("PLEN"), record.setting("TLEN")
        sealed = record.sized("CT", length + tag_len)
        passed = not verifying or _passed(record)
        vector = message(
            _place(record),
            key=_key(file, record),
            iv=record.sized("NONCE", record.setting("NLEN")),
            aad=record.sized("ADATA", record.setting("ALEN"), empty_as_zero=True),
            plaintext=record.sized("PAYLOAD", length, empty_as_zero=True) if passed else b"",
            ciphertext=sealed[:length],
            tag=sealed[length:],
            use="bad_tag" if not passed else "decrypt" if verifying else "encrypt",
        )
        _add(file, collector, vector, f"group {record.group}")


def _passed(record: Record) -> bool:
    """The verdict of a verification: P, Pass, F or Fail, with a number and a reason in parentheses."""
    word = record.text("RESULT").split("(")[0].strip().lower()
    if word not in ("p", "pass", "f", "fail"):
        line = record.fields["RESULT"][0]
        raise bad_line(record.path, line, f"'RESULT' is {word!r}; allowed are Pass and Fail, correct it")
    return word in ("p", "pass")


def _read_xts(file: _File, collector: Collector) -> None:
    for record in read_records(file.path, _XTS):
        bits = record.whole("DATAUNITLEN")
        texts = [record.sized(name, (bits + 7) // 8) for name in ("PT", "CT")]
        if "DATAUNITSEQNUMBER" in record:
            tweak = record.whole("DATAUNITSEQNUMBER").to_bytes(16, "little")
        else:
            tweak = record.sized("I", 16)
        if bits % 8:
            collector.refuse("a data unit that is no whole number of bytes, which no mode of the suite takes")
            continue
        vector = message(
            _place(record),
            key=record.sized("KEY", 2 * file.key_len),
            iv=tweak,
            plaintext=texts[0],
            ciphertext=texts[1],
            use=_direction(record),
        )
        _add(file, collector, vector, record.section)


def _read_chain(file: _File, collector: Collector) -> None:
    """The Monte Carlo test of ecb: for AES as ``monte_carlo``, for 3DES, whose next keys take more outputs than two,
    round by round as iterated encryption.
    """
    tdes = file.algorithm == "ecb(des3_ede)"
    for found in _sections(file, _TDES_ROUNDS if tdes else _AES_ROUNDS):
        rounds = [_round(file, record) for record in found]
        for record, (before, after) in zip(found[1:], pairwise(rounds), strict=bool(found)):
            if after.input != before.output:
                sentence = (
                    f"the input of round {after.index} is not the output of the round before; correct one of them"
                )
                raise bad_line(file.path, record.line, sentence)
        _add_chain(file, collector, found, rounds)


def _sections(file: _File, wanted: int) -> Iterator[list[Record]]:
    """The rounds of each direction that a Monte Carlo file has."""
    records = read_records(file.path, _PLAIN)
    for section in ("ENCRYPT", "DECRYPT"):
        found = [record for record in records if record.section == section]
        if len(found) not in (0, wanted):
            sentence = f"[{section}] has {len(found)} rounds; a Monte Carlo test has {wanted}, restore them"
            raise bad_line(file.path, found[0].line, sentence)
        if found:
            yield found


def _read_dependent(file: _File, collector: Collector) -> None:
    """The Monte Carlo test of AES with an iv (AESAVS 6.4.2 to 6.4.4): each round begins with what the one before ended
    with, the iv with its last output, the input with that before, and the key with both added.
    """
    for found in _sections(file, _AES_ROUNDS):
        rounds = [replace(_round(file, record), iv=record.sized("IV", 16)) for record in found]
        linked = []
        for record, (before, after) in zip(found[1:], pairwise(rounds), strict=True):
            added = (after.input + before.output)[-len(before.key) :]
            key = bytes(a ^ b for a, b in zip(before.key, added, strict=True))
            for name, wanted, have in (("iv", before.output, after.iv), ("key", key, after.key)):
                if wanted != have:
                    sentence = f"the {name} of round {after.index} does not follow from the outputs of the round before"
                    raise bad_line(file.path, record.line, f"{sentence}; restore it")
            linked.append(replace(before, before=after.input))
        _add_chain(file, collector, found, [*linked, rounds[-1]])


def _round(file: _File, record: Record) -> MonteCarloRound:
    names = ("PLAINTEXT", "CIPHERTEXT") if record.section == "ENCRYPT" else ("CIPHERTEXT", "PLAINTEXT")
    block_len = 8 if file.algorithm == "ecb(des3_ede)" else 16
    first, last = (record.sized(name, block_len) for name in names)
    return MonteCarloRound(record.number, _key(file, record), first, last)


def _add_chain(file: _File, collector: Collector, records: list[Record], rounds: list[MonteCarloRound]) -> None:
    direction: Literal["encrypt", "decrypt"] = "encrypt" if records[0].section == "ENCRYPT" else "decrypt"
    if file.algorithm != "ecb(des3_ede)":
        chain = MonteCarlo(num_outer=len(rounds), num_inner=_AES_CALLS, rounds=tuple(rounds))
        vector = monte_carlo(Place(direction, records[0].line), direction, chain)
        collector.add(file.algorithm, direction, vector)
        return
    for record, item in zip(records, rounds, strict=True):
        forth = direction == "encrypt"
        vector = message(
            _place(record),
            key=item.key,
            plaintext=item.input if forth else item.output,
            ciphertext=item.output if forth else item.input,
            use=direction,
        )
        _add(file, collector, replace(vector, iterations=_TDES_CALLS), direction)


_AES_KINDS = "(GFSbox|KeySbox|VarTxt|VarKey|MMT)"
_TDES_KINDS = "(invperm|permop|subtab|vartext|varkey|MMT[123])"
_BITS = "(?P<bits>128|192|256)"
_ENDING = r"\.(rsp|txt)"
_CHAINED = "a Monte Carlo test of 3DES with an iv, whose procedure is not written: no installed package has such a file"
_NARROW = "feedback of {} instead of a whole block: another mode"
_SPLIT = "three interleaved or pipelined streams: another mode"

_NOT_OURS: tuple[tuple[str, str], ...] = (
    (rf"(CFB1|TCFB1)[A-Z_a-z].*{_ENDING}", _NARROW.format("one bit")),
    (rf"(CFB8|TCFB8)[A-Z_a-z].*{_ENDING}", _NARROW.format("one byte")),
    (rf"(TCBCI|TOFBI|TCFBP\d+)[A-Za-z].*{_ENDING}", _SPLIT),
    (rf"T(CBC|OFB|CFB64)Monte[123]{_ENDING}", _CHAINED),
    (rf"gcmEncryptIntIV\d+{_ENDING}", "its ivs are chosen by the implementation under test"),
)
_OURS: tuple[tuple[str, str, _Read], ...] = (
    (rf"(?P<mode>ECB|CBC|OFB){_AES_KINDS}{_BITS}{_ENDING}", "{mode}(aes)", _read_plain),
    (rf"CFB128{_AES_KINDS}{_BITS}{_ENDING}", "cfb(aes)", _read_plain),
    (rf"T(?P<mode>ECB|CBC|OFB){_TDES_KINDS}{_ENDING}", "{mode}(des3_ede)", _read_plain),
    (rf"TCFB64{_TDES_KINDS}{_ENDING}", "cfb(des3_ede)", _read_plain),
    (rf"ECBMCT{_BITS}{_ENDING}", "ecb(aes)", _read_chain),
    (rf"(?P<mode>CBC|OFB)MCT{_BITS}{_ENDING}", "{mode}(aes)", _read_dependent),
    (rf"CFB128MCT{_BITS}{_ENDING}", "cfb(aes)", _read_dependent),
    (rf"TECBMonte[123]{_ENDING}", "ecb(des3_ede)", _read_chain),
    (rf"XTSGenAES{_BITS}(_seqno)?{_ENDING}", "xts(aes)", _read_xts),
    (rf"gcm(EncryptExtIV|Decrypt){_BITS}{_ENDING}", "gcm(aes)", _read_gcm),
    (rf"(VADT|VNT|VPT|VTT|DVPT){_BITS}{_ENDING}", "ccm(aes)", _read_ccm),
    (rf"CMAC(Gen|Ver)AES{_BITS}{_ENDING}", "cmac(aes)", _read_mac),
    (rf"CMAC(Gen|Ver)TDES[123]{_ENDING}", "cmac(des3_ede)", _read_mac),
    (rf"nist-800-38b-aes{_BITS}{_ENDING}", "cmac(aes)", _read_mac_example),
    (rf"nist-800-38b-3des{_ENDING}", "cmac(des3_ede)", _read_mac_example),
    (rf"aes-{_BITS}-(?P<mode>ctr){_ENDING}", "{mode}(aes)", _read_plain),
    (rf"(?P<cipher>cast5)-(?P<mode>ecb|cbc|cfb|ofb|ctr){_ENDING}", "{mode}({cipher})", _read_plain),
    (rf"draft-ribose-cfrg-sm4-10-(?P<mode>ecb|cbc|cfb|ofb|ctr){_ENDING}", "{mode}(sm4)", _read_plain),
    (rf"rfc8998{_ENDING}", "gcm(sm4)", _read_tagged),
)
