# SPDX-License-Identifier: Apache-2.0
"""Vector sets of NIST's Automated Cryptographic Validation Protocol (ACVP).

A set is one ``internalProjection.json``, or ``prompt.json`` with ``expectedResults.json`` beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from crosslane._json_lines import read_json
from crosslane._vector_fields import bad_line
from crosslane.corpora import MonteCarlo, MonteCarloRound, Vector
from crosslane.importers._json_cases import Case, ForeignFields
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

__all__ = ["import_acvp"]

_ALGORITHMS = {
    "ACVP-AES-ECB": "ecb(aes)",
    "ACVP-AES-CBC": "cbc(aes)",
    "ACVP-AES-CFB128": "cfb(aes)",
    "ACVP-AES-OFB": "ofb(aes)",
    "ACVP-AES-CTR": "ctr(aes)",
    "ACVP-AES-CBC-CS3": "cts_cbc(aes)",
    "ACVP-AES-XTS": "xts(aes)",
    "ACVP-AES-GCM": "gcm(aes)",
    "ACVP-AES-GMAC": "gcm(aes)",
    "ACVP-AES-CCM": "ccm(aes)",
    "ACVP-TDES-ECB": "ecb(des3_ede)",
    "ACVP-TDES-CBC": "cbc(des3_ede)",
    "ACVP-TDES-CFB64": "cfb(des3_ede)",
    "ACVP-TDES-OFB": "ofb(des3_ede)",
    "ACVP-TDES-CTR": "ctr(des3_ede)",
    "CMAC-AES": "cmac(aes)",
    "CMAC-TDES": "cmac(des3_ede)",
}
_SET = "vsId algorithm revision testGroups"
_SET_OPTIONAL = "mode isSample"
_GROUP_OPTIONAL = (
    "testType internalTestType direction keyLen ivLen ivGen ivGenMode payloadLen aadLen tagLen algoMode keyingOption "
    "incremental overflow rfcTestMode tweakMode dataUnitLen msgLen macLen"
)
_TEST_OPTIONAL = (
    "testPassed deferred pt ct key key1 key2 key3 aad iv tag payloadLen dataUnitLen tweakValue sequenceNumber message "
    "mac resultsArray"
)
_ROUND = "pt ct"
_ROUND_OPTIONAL = "key key1 key2 key3 iv"
_CALLS = {"ecb(aes)": 1_000, "ecb(des3_ede)": 10_000}
_DIRECTIONS = {"encrypt": "encrypt", "decrypt": "decrypt", "gen": "encrypt", "ver": "decrypt"}
_SECOND_HALF = "expectedResults.json"


@dataclass(frozen=True)
class _Group:
    """A group's algorithm, direction and further facts."""

    algorithm: str
    direction: Literal["encrypt", "decrypt"]
    fields: ForeignFields
    locator: str


def import_acvp(path: Path, source: str) -> Imported:
    """The vectors of one set, named by its projection or its prompt; ``BadInput`` names file and line."""
    if path.name == _SECOND_HALF:
        return whole_file(path, "answers, which are read together with prompt.json beside them")
    if path.name not in ("internalProjection.json", "prompt.json"):
        return whole_file(path, "no part of an ACVP vector set that has both questions and answers")
    if path.name == "prompt.json" and (path.parent / "internalProjection.json").is_file():
        return whole_file(path, "the cases of internalProjection.json beside it, which is read instead")
    root = _set(path)
    name = root.text("algorithm")
    if name not in _ALGORITHMS:
        return whole_file(path, f"{name} is no mode and cipher of the suite")
    answers = _answers(path.parent / _SECOND_HALF, name) if path.name == "prompt.json" else None
    collector = Collector(path, source)
    for node in root.nodes("testGroups"):
        fields = ForeignFields(path, node, "a group", "tgId tests", _GROUP_OPTIONAL)
        direction = _DIRECTIONS[fields.choice("direction", tuple(_DIRECTIONS), "encrypt")]
        kept = cast(Literal["encrypt", "decrypt"], direction)
        group = _Group(_ALGORITHMS[name], kept, fields, f"group {fields.count('tgId', least=0)}")
        for case, number in _cases(path, fields, answers):
            _add_case(case, Place(f"tc_{number}", case.line), group, collector)
    if answers:
        number, left = next(iter(answers.items()))
        raise bad_line(left.path, left.line, f"'tcId' {number} answers no question of {path.name}; remove it")
    return collector.result()


def _set(path: Path) -> ForeignFields:
    """The set itself, alone or as the second item of a list after the version."""
    node = read_json(path)
    if isinstance(node.value, list) and len(node.value) == 2:
        ForeignFields(path, node.value[0], "the version", "acvVersion")
        node = node.value[1]
    return ForeignFields(path, node, "the vector set", _SET, _SET_OPTIONAL)


def _answers(path: Path, name: str) -> dict[int, ForeignFields]:
    """The answers by number; each is taken out when its question is read."""
    root = _set(path)
    if root.text("algorithm") != name:
        raise root.bad(
            "algorithm", f"'algorithm' is {root.text('algorithm')!r} but the prompt's is {name!r}; pair them"
        )
    found: dict[int, ForeignFields] = {}
    for node in root.nodes("testGroups"):
        group = ForeignFields(path, node, "a group", "tgId tests", _GROUP_OPTIONAL)
        for item in group.nodes("tests"):
            test = ForeignFields(path, item, "an answer", "tcId", _TEST_OPTIONAL)
            number = test.count("tcId", least=0)
            if number in found:
                raise test.bad("tcId", f"'tcId' {number} stands twice; allowed is once, remove one")
            found[number] = test
    return found


def _cases(path: Path, group: ForeignFields, answers: dict[int, ForeignFields] | None) -> Iterator[tuple[Case, int]]:
    for item in group.nodes("tests"):
        test = ForeignFields(path, item, "a test", "tcId", _TEST_OPTIONAL)
        number = test.count("tcId", least=0)
        if answers is None:
            yield Case(path, [test]), number
            continue
        if number not in answers:
            raise test.bad("tcId", f"'tcId' {number} has no answer in {_SECOND_HALF}; restore it or remove the test")
        yield Case(path, [test, answers.pop(number)]), number


def _add_case(case: Case, place: Place, group: _Group, collector: Collector) -> None:
    if group.fields.choice("testType", ("AFT", "MCT", "CTR"), "AFT") == "MCT":
        _add_chain(case, place, group, collector)
        return
    reason = _reason_against(case, group)
    if reason is not None:
        collector.refuse(reason)
        return
    passed = _verdict(case)
    vector = _vector(case, place, group, passed=passed)
    reason = unfit(group.algorithm, vector)
    if reason is not None:
        collector.refuse(reason)
        return
    if passed and vector.ciphertext and len(vector.plaintext) != len(vector.ciphertext):
        sentence = f"the test has {len(vector.plaintext)} bytes of plaintext but {len(vector.ciphertext)} of ciphertext"
        raise bad_line(case.path, case.line, f"{sentence}; both must be equally long, correct one")
    collector.add(group.algorithm, group.locator, vector)


def _number(case: Case, group: _Group, name: str) -> int | None:
    """A number of the test or, where that has none, of its group."""
    if name in case:
        return case.part(name).count(name, least=0)
    return group.fields.count(name, least=0) if name in group.fields else None


def _verdict(case: Case) -> bool:
    return case.part("testPassed").flag("testPassed", default=True) if "testPassed" in case else True


def _reason_against(case: Case, group: _Group) -> str | None:
    """Why a test does not apply, or ``None``."""
    lengths = [
        _number(case, group, name) for name in ("payloadLen", "dataUnitLen", "aadLen", "msgLen", "ivLen", "macLen")
    ]
    if any(length is not None and length % 8 for length in lengths):
        return "a length that is no whole number of bytes, which no mode of the suite takes"
    if lengths[1] is not None and lengths[0] is not None and lengths[0] != lengths[1]:
        return "several data units in one test"
    if group.algorithm.startswith("cmac"):
        if not _verdict(case):
            return WRONG_MAC
        return CUT_MAC if _tag_len(group, "macLen") < (8 if group.algorithm.endswith("(des3_ede)") else 16) else None
    takes_iv = not group.algorithm.startswith(("ecb", "xts"))
    if takes_iv and "iv" not in case:
        return "its iv is chosen by the implementation under test"
    return None


def _key(case: Case, group: _Group) -> bytes:
    if group.algorithm.endswith("(des3_ede)"):
        return b"".join(case.sized(name, 8) for name in ("key1", "key2", "key3"))
    bits = _number(case, group, "keyLen")
    if bits is None:
        return case.hex("key")
    return case.sized("key", bits // 8 * (2 if group.algorithm.startswith("xts") else 1))


def _iv(case: Case, group: _Group) -> bytes:
    if not group.algorithm.startswith("xts"):
        return case.hex_or_none("iv")
    if "sequenceNumber" in case:
        return case.part("sequenceNumber").count("sequenceNumber", least=0).to_bytes(16, "little")
    return case.sized("tweakValue", 16)


def _tag_len(group: _Group, name: str) -> int:
    if name not in group.fields:
        raise bad_line(group.fields.path, group.fields.line, f"the group lacks {name!r}; restore it")
    return group.fields.count(name) // 8


def _vector(case: Case, place: Place, group: _Group, *, passed: bool) -> Vector:
    """The test as a vector."""
    mode = group.algorithm.partition("(")[0]
    use: Use = group.direction if passed else "bad_tag"
    aad, tag = b"", b""
    if mode == "cmac":
        plaintext, tag, use = case.hex("message"), case.sized("mac", _tag_len(group, "macLen")), "both"
        ciphertext = b""
    else:
        ciphertext = case.hex_or_none("ct")
        plaintext = case.hex_or_none("pt") if passed else b""
    if mode == "gcm":
        aad, tag = case.hex_or_none("aad"), case.sized("tag", _tag_len(group, "tagLen"))
    elif mode == "ccm":
        length = len(ciphertext) - _tag_len(group, "tagLen")
        if length < 0:
            raise case.part("ct").bad("ct", f"'ct' has {len(ciphertext)} bytes, less than its tag; restore it")
        aad, ciphertext, tag = case.hex_or_none("aad"), ciphertext[:length], ciphertext[length:]
    return message(
        place,
        key=_key(case, group),
        iv=_iv(case, group),
        aad=aad,
        plaintext=plaintext,
        ciphertext=ciphertext,
        tag=tag,
        use=use,
    )


def _add_chain(case: Case, place: Place, group: _Group, collector: Collector) -> None:
    """A Monte Carlo test of ecb: of AES as one chain, of 3DES, whose next keys take three outputs, round by round."""
    if group.algorithm not in _CALLS:
        collector.refuse("a Monte Carlo test with an iv, which is read from files of CAVP alone")
        return
    path = case.part("resultsArray").path
    forth = group.direction == "encrypt"
    rounds = []
    for index, node in enumerate(case.part("resultsArray").nodes("resultsArray")):
        item = Case(path, [ForeignFields(path, node, "a round", _ROUND, _ROUND_OPTIONAL)])
        first, last = (item.hex(name) for name in (("pt", "ct") if forth else ("ct", "pt")))
        rounds.append(MonteCarloRound(index, _key(item, group), first, last))
        if index and rounds[index - 1].output != first:
            sentence = f"the input of round {index} is not the output of the round before; correct one of them"
            raise bad_line(path, node.line, sentence)
    calls = _CALLS[group.algorithm]
    if group.algorithm == "ecb(aes)":
        chain = MonteCarlo(num_outer=len(rounds), num_inner=calls, rounds=tuple(rounds))
        collector.add(group.algorithm, group.locator, monte_carlo(place, group.direction, chain))
        return
    for item_round in rounds:
        vector = message(
            Place(f"{place.id}_{item_round.index}", place.line),
            key=item_round.key,
            plaintext=item_round.input if forth else item_round.output,
            ciphertext=item_round.output if forth else item_round.input,
            use=group.direction,
        )
        collector.add(group.algorithm, group.locator, replace(vector, iterations=calls))
