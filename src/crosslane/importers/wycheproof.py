# SPDX-License-Identifier: Apache-2.0
"""Files of Project Wycheproof (the schemas v1 of aead, ind-cpa and mac tests)."""

from __future__ import annotations

import re
from pathlib import Path

from crosslane._json_lines import Node, read_json
from crosslane._vector_fields import bad_line
from crosslane.data import shown
from crosslane.errors import BadInput
from crosslane.importers._json_cases import ForeignFields
from crosslane.importers.imported import WRONG_MAC, Collector, Imported, Place, message, unfit, whole_file

__all__ = ["import_wycheproof"]

_ALGORITHMS = {
    "AES-CCM": "ccm(aes)",
    "AES-CMAC": "cmac(aes)",
    "AES-GCM": "gcm(aes)",
    "AES-XTS": "xts(aes)",
    "SM4-CCM": "ccm(sm4)",
    "SM4-GCM": "gcm(sm4)",
}
_ALGORITHM = re.compile(rb'"algorithm"\s*:\s*"([^"\n]*)"')
_FILE = "algorithm schema numberOfTests header notes testGroups"
_FILE_OPTIONAL = "generatorVersion"
_SIZES = {"key": "keySize", "iv": "ivSize", "tag": "tagSize"}
_WRONG_TAG = frozenset(("ModifiedTag",))


def import_wycheproof(path: Path, source: str) -> Imported:
    """The vectors of one file; ``BadInput`` names file and line of the first departure from the schema."""
    try:
        named = _ALGORITHM.search(path.read_bytes())
    except OSError as error:
        raise BadInput(f"{shown(path)}: cannot be read ({error.strerror}); make it readable") from error
    name = named.group(1).decode("ascii", "replace") if named is not None else ""
    if name and name not in _ALGORITHMS:
        return whole_file(path, f"{name} is no mode and cipher of the suite")
    root = ForeignFields(path, read_json(path), "the file", _FILE, _FILE_OPTIONAL)
    collector = Collector(path, source)
    seen: dict[int, int] = {}
    for node in root.nodes("testGroups"):
        _group(path, node, _ALGORITHMS[name], collector, seen)
    if root.count("numberOfTests") != len(seen):
        found = f"'numberOfTests' is {root.count('numberOfTests')} but the file has {len(seen)} tests"
        raise root.bad("numberOfTests", f"{found}; the two must agree, correct the count or restore the tests")
    return collector.result()


def _group(path: Path, node: Node, algorithm: str, collector: Collector, seen: dict[int, int]) -> None:
    mode = algorithm.partition("(")[0]
    kind = {"cmac": "MacTest", "xts": "IndCpaTest"}.get(mode, "AeadTest")
    sizes = {"cmac": "keySize tagSize", "xts": "keySize ivSize"}.get(mode, "keySize ivSize tagSize")
    group = ForeignFields(path, node, "a group", f"type source {sizes} tests")
    group.choice("type", (kind,))
    bits = {name: group.count(name, least=0) for name in sizes.split()}
    fields = {"cmac": "key msg tag", "xts": "key iv msg ct"}.get(mode, "key iv aad msg ct tag")
    locator = ", ".join(f"{name} {value}" for name, value in bits.items())
    for item in group.nodes("tests"):
        test = ForeignFields(path, item, "a test", f"tcId comment flags {fields} result")
        number = test.count("tcId")
        if number in seen:
            raise test.bad("tcId", f"'tcId' {number} was given at line {seen[number]} already; rename one")
        seen[number] = item.line
        _test(test, Place(f"tc_{number}", item.line), algorithm, collector, (locator, bits))


def _test(
    test: ForeignFields, place: Place, algorithm: str, collector: Collector, group: tuple[str, dict[str, int]]
) -> None:
    locator, bits = group
    values = {name: test.any_hex(name) if name in test else b"" for name in ("key", "iv", "aad", "msg", "ct", "tag")}
    result, flags = test.choice("result", ("valid", "invalid", "acceptable")), frozenset(test.texts("flags"))
    if result != "valid" and not flags <= _WRONG_TAG:
        collector.refuse(
            f"{result} for {', '.join(sorted(flags))}: no wrong tag, a parameter that is refused or disputed"
        )
        return
    if result != "valid" and algorithm.startswith("cmac"):
        collector.refuse(WRONG_MAC)
        return
    for name, size in _SIZES.items():
        if size in bits and 8 * len(values[name]) != bits[size]:
            sentence = f"{name!r} has {len(values[name])} bytes but the group's {size!r} is {bits[size]} bits"
            raise test.bad(name, f"{sentence}; the two must agree, correct one")
    iv = values["iv"]
    vector = message(
        place,
        key=values["key"],
        iv=iv.ljust(16, b"\0") if algorithm.startswith("xts") else iv,
        aad=values["aad"],
        plaintext=values["msg"],
        ciphertext=values["ct"],
        tag=values["tag"],
        use="both" if result == "valid" else "bad_tag",
    )
    reason = unfit(algorithm, vector)
    if reason is not None:
        collector.refuse(reason)
        return
    if "ct" in test and len(values["ct"]) != len(values["msg"]):
        sentence = f"the test has {len(values['msg'])} bytes of 'msg' but {len(values['ct'])} of 'ct'"
        raise bad_line(test.path, place.line, f"{sentence}; both must be equally long, correct one")
    collector.add(algorithm, locator, vector)
