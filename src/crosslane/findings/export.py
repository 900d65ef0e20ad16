# SPDX-License-Identifier: Apache-2.0
"""A finding's case for other people's tools: Wycheproof's JSON and a vector as the kernel's ``testmgr.h`` has them.

Both know one message under one key; a case that needs more is refused in a sentence. The vector holds the right answer.
Layout and pieces, for which neither format has words, go into its comment; the kernel's own tests vary them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from crosslane.describe import session_lines
from crosslane.errors import BadInput
from crosslane.execute import execute_alone
from crosslane.findings.case import Case, Operation, batch_of
from crosslane.findings.record import Record
from crosslane.lanes import lanes_for_host
from crosslane.model import Registry
from crosslane.names import parse_algorithm
from crosslane.plan import Selection, make_plans
from crosslane.registry import mode_named
from crosslane.wire import Flag, OpKind, Status, Watch

__all__ = ["Message", "message_of", "testmgr_text", "wycheproof_text"]

_KERNEL_NAMES = {"cts_cbc": "cts(cbc({cipher}))"}


@dataclass(frozen=True)
class Message:
    """A case as one message. ``plaintext`` and ``ciphertext`` are the same whichever way the case goes.

    ``iv_out`` is the iv behind it, where the case reads that back.
    """

    key: bytes
    iv: bytes
    aad: bytes
    plaintext: bytes
    ciphertext: bytes
    tag: bytes
    iv_out: bytes
    valid: bool
    decrypting: bool


def _answer(registry: Registry, case: Case) -> tuple[list[int], list[bytes]]:
    """The generic implementation's statuses and outputs of each operation."""
    algorithm = parse_algorithm(case.algorithm)
    lane = next(lane for lane in lanes_for_host(registry) if lane.runner == "native" and lane.gate and lane.full)
    generic = next(item for item in registry.implementations if item.cipher == algorithm.cipher and item.is_generic)
    plans = make_plans(registry, Selection((f"{algorithm}/{generic.driver}",), (lane.name,)))
    results = execute_alone(plans.algorithms[0].oracle, batch_of([case]), watch=Watch(0))
    out, parts, at = results.out.tobytes(), [], 0
    for item in case.operations:
        parts.append(out[at : at + item.out_len])
        at += item.out_len
    return results.statuses.tolist(), parts


def message_of(registry: Registry, case: Case) -> Message:
    """The one message that a case is, with the right answer; raises BadInput where it is more than that."""
    kinds = [item.kind for item in case.operations]
    plain = all(kinds.count(kind) <= 1 for kind in (OpKind.SETKEY, OpKind.SETIV, OpKind.TAG)) and not case.neighbours
    if not plain or kinds[:1] != [OpKind.SETKEY] or OpKind.CLONE in kinds or any(
        item.flags & Flag.FEED or (item.kind is OpKind.UPDATE and item.aux[0] > 1) for item in case.operations
    ):  # fmt: skip
        raise BadInput(
            "the case is more than one message under one key, which this format cannot say: use --as case or --as repro"
        )
    case = _with_tag(registry, case)
    statuses, outputs = _answer(registry, case)
    given = {kind: b"".join(item.data for item in case.operations if item.kind is kind) for kind in OpKind}
    pieces = [
        out[: item.in_len] for item, out in zip(case.operations, outputs, strict=True) if item.kind is OpKind.UPDATE
    ]
    answer = b"".join(pieces)
    observed = [(item, out) for item, out in zip(case.operations, outputs, strict=True) if item.flags & Flag.OBSERVE_IV]
    tags = [out for item, out in zip(case.operations, outputs, strict=True) if item.kind is OpKind.TAG]
    data = given[OpKind.UPDATE]
    return Message(
        key=given[OpKind.SETKEY],
        iv=given[OpKind.SETIV],
        aad=given[OpKind.AAD],
        plaintext=answer if case.decrypting else data,
        ciphertext=data if case.decrypting else answer,
        tag=given[OpKind.TAG] if case.decrypting else b"".join(tags),
        iv_out=next((out[item.in_len :] for item, out in reversed(observed)), b""),
        valid=all(status == Status.OK for status in statuses),
        decrypting=case.decrypting,
    )


def _with_tag(registry: Registry, case: Case) -> Case:
    """The case with the end of its message: what it departs in may come before the tag, which both formats hold."""
    kinds = [item.kind for item in case.operations]
    mode = mode_named(registry, parse_algorithm(case.algorithm).mode)
    if not mode.tag_lens or case.decrypting or OpKind.TAG in kinds or OpKind.SETIV not in kinds:
        return case
    end = [] if OpKind.FINAL in kinds else [Operation(OpKind.FINAL)]
    return case.with_operations([*case.operations, *end, Operation(OpKind.TAG, out_len=case.tag_len)])


def wycheproof_text(registry: Registry, record: Record, case: Case) -> str:
    """The case as a file of Wycheproof's schema: of an AEAD, of a MAC, or of a cipher with an iv."""
    message = message_of(registry, case)
    mode = mode_named(registry, parse_algorithm(case.algorithm).mode)
    schema, kind = ("aead_test_schema_v1.json", "AeadTest") if mode.aad else (
        ("mac_test_schema_v1.json", "MacTest") if mode.tag_lens else ("ind_cpa_test_schema_v1.json", "IndCpaTest")
    )  # fmt: skip
    test: dict[str, object] = {"tcId": 1, "comment": record.text, "flags": ["Crosslane"], "key": message.key.hex()}
    group: dict[str, object] = {"type": kind, "source": {"name": "crosslane", "version": record.id}}
    group |= {"keySize": 8 * len(message.key)}
    if mode.aad or not mode.tag_lens:  # the schema asks for an iv of modes that have none too
        group["ivSize"] = 8 * len(message.iv)
        test["iv"] = message.iv.hex()
    if mode.aad:
        test["aad"] = message.aad.hex()
    if mode.tag_lens:
        group["tagSize"] = 8 * case.tag_len
    test["msg"] = message.plaintext.hex()
    if mode.aad or not mode.tag_lens:
        test["ct"] = message.ciphertext.hex()
    if mode.tag_lens:
        test["tag"] = message.tag.hex()
    test["result"] = "valid" if message.valid else "invalid"
    note = {"Crosslane": {"bugType": "UNKNOWN", "description": "; ".join(session_lines(batch_of([case]), 0))}}
    file = {
        "algorithm": case.algorithm,
        "schema": schema,
        "numberOfTests": 1,
        "header": [f"Finding {record.id} of crosslane: {record.key.implementation}, {record.key.fault_class}."],
        "notes": note,
        "testGroups": [{**group, "tests": [test]}],
    }
    return json.dumps(file, indent=2) + "\n"


def _c_string(data: bytes) -> str:
    rows = [data[i : i + 8] for i in range(0, len(data), 8)] or [b""]
    return "\n\t\t\t  ".join('"' + "".join(f"\\x{byte:02x}" for byte in row) + '"' for row in rows)


def _kernel_fields(message: Message, *, aead: bool, mac: bool) -> Iterator[tuple[str, str]]:
    yield ("key", _c_string(message.key))
    yield ("ksize" if mac else "klen", str(len(message.key)))
    if not mac and message.iv:
        yield ("iv", _c_string(message.iv))
    if not mac and message.iv_out:
        yield ("iv_out", _c_string(message.iv_out))
    if aead:
        yield ("assoc", _c_string(message.aad))
        yield ("alen", str(len(message.aad)))
    yield ("plaintext" if mac else "ptext", _c_string(message.plaintext))
    if mac:
        yield ("psize", str(len(message.plaintext)))
        yield ("digest", _c_string(message.tag))
        return
    yield ("plen" if aead else "len", str(len(message.plaintext)))
    yield ("ctext", _c_string(message.ciphertext + message.tag))
    if aead:
        yield ("clen", str(len(message.ciphertext + message.tag)))
        if not message.valid:
            yield ("novrfy", "1")


def testmgr_text(registry: Registry, record: Record, case: Case) -> str:
    """The case as an array of one vector in the manner of the kernel's ``crypto/testmgr.h``."""
    algorithm = parse_algorithm(case.algorithm)
    mode = mode_named(registry, algorithm.mode)
    message = message_of(registry, case)
    aead, mac = mode.aad, bool(mode.tag_lens) and not mode.aad
    kind = "aead_testvec" if aead else "hash_testvec" if mac else "cipher_testvec"
    name = _KERNEL_NAMES.get(mode.name, f"{mode.name}({{cipher}})").format(cipher=algorithm.cipher)
    session = "\n".join(f" * {line}" for line in session_lines(batch_of([case]), 0))
    fields = "\n".join(f"\t\t.{field}\t= {value}," for field, value in _kernel_fields(message, aead=aead, mac=mac))
    return (
        f"/* {name}: finding {record.id} of crosslane, {record.key.implementation}, {record.key.fault_class}.\n"
        f" * {record.text}\n{session}\n */\n"
        f"static const struct {kind} crosslane_{record.id}_tv_template[] = {{\n\t{{\n{fields}\n\t}},\n}};\n"
    )
