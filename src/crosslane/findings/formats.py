# SPDX-License-Identifier: Apache-2.0
"""The two forms of a case on disk: JSON (``corpora/schemas/case.schema.json``) and its compact binary twin.

Both hold the same case and nothing else; reading is strict. The binary form is ``XLCASE01``, the length of the
algorithm's name (one byte), the name, and the wire protocol's batch of this one case.
Findings are kept as JSON; no command reads or writes the binary form, which is for programs that import the package.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from crosslane import wire
from crosslane.errors import BadInput, HarnessFault
from crosslane.findings.case import Case, Operation, Place, case_of, whole_batch
from crosslane.names import parse_algorithm
from crosslane.wire import NUM_SLOTS, Edge, Flag, OpKind

__all__ = ["CASE_VERSION", "case_from_bytes", "case_from_json", "case_to_bytes", "case_to_json"]

CASE_VERSION = 1
_MAGIC = b"XLCASE01"
_POLICIES = ("degenerate", "weak_subkey")
_EDGES = {"end": Edge.END, "start": Edge.START, "middle": Edge.MIDDLE}
_FLAGS = {flag.name.lower(): flag for flag in Flag if flag.name}
_PLACE = re.compile(r"(end|start|middle)\+(0|[1-9]|[1-5][0-9]|6[0-3])")
_KINDS = {kind.name.lower(): kind for kind in OpKind}
_SESSION_KEYS = ("direction", "policy", "tag_len", "ctx", "operations")
_CASE_KEYS = ("version", "algorithm", *_SESSION_KEYS)
_NUMBERS = {
    "slot": (0, NUM_SLOTS - 1),
    "from_slot": (0, NUM_SLOTS - 1),
    "out_len": (0, 1 << 32),
    "fed_len": (0, 1 << 32),
    "aux0": (0, (1 << 64) - 1),
    "aux1": (0, (1 << 64) - 1),
}


def _place_text(place: Place) -> str:
    return f"{place.edge.name.lower()}+{place.align}"


def _operation_fields(item: Operation) -> dict[str, Any]:
    """What differs from the plainest operation of the kind."""
    fields: dict[str, Any] = {"op": item.kind.name.lower()}
    if item.data:
        fields["data"] = item.data.hex()
    if not item.place.plain:
        fields["in"] = _place_text(item.place)
    if not item.out_place.plain:
        fields["out"] = _place_text(item.out_place)
    flags = [name for name, flag in _FLAGS.items() if item.flags & flag]
    if flags:
        fields["flags"] = flags
    numbers = {
        "slot": item.slot, "from_slot": item.from_slot, "out_len": item.out_len, "fed_len": item.fed_len,
        "aux0": item.aux[0], "aux1": item.aux[1],
    }  # fmt: skip
    return fields | {name: value for name, value in numbers.items() if value}


def _session_text(case: Case, indent: str) -> str:
    """The members of a session's object behind the ones that name it, one operation a line."""
    head = {
        "direction": "decrypt" if case.decrypting else "encrypt",
        "policy": [name for bit, name in enumerate(_POLICIES) if case.policy >> bit & 1],
        "tag_len": case.tag_len,
        "ctx": "end" if case.ctx_edge == Edge.END else "middle",
    }
    lines = [f"{indent}{json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()]
    operations = [f"{indent} {json.dumps(_operation_fields(item))}" for item in case.operations]
    return "\n".join(lines) + f'\n{indent}"operations": [\n' + ",\n".join(operations) + f"\n{indent}]\n"


def case_to_json(case: Case) -> str:
    """The canonical text of a case: one operation a line, keys in a fixed order, a newline at the end."""
    head = {"version": CASE_VERSION, "algorithm": case.algorithm}
    lines = [f" {json.dumps(name)}: {json.dumps(value)},\n" for name, value in head.items()]
    before = ",\n".join(f"  {{\n{_session_text(item, '   ')}  }}" for item in case.neighbours)
    if before:
        lines.append(f' "neighbours": [\n{before}\n ],\n')
    return "{\n" + "".join(lines) + _session_text(case, " ") + "}\n"


class _Reader:
    """Checks values one by one; every complaint names the file."""

    def __init__(self, where: str) -> None:
        self.where = where

    def fail(self, what: str) -> BadInput:
        return BadInput(f"{self.where}: {what}; restore the file, or let `crosslane check` find the case again")

    def only(self, table: Any, allowed: tuple[str, ...], name: str) -> dict[str, Any]:
        if not isinstance(table, dict):
            raise self.fail(f"{name} is no object")
        for key in table:
            if key not in allowed:
                raise self.fail(f"{name} has an unknown key {key!r}, allowed are {', '.join(allowed)}")
        return table

    def one_of(self, value: Any, allowed: tuple[str, ...], name: str) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise self.fail(f"{name} is {value!r}, allowed are {', '.join(allowed)}")
        return value

    def words(self, value: Any, allowed: tuple[str, ...], name: str) -> list[str]:
        if not isinstance(value, list) or len({str(word) for word in value}) != len(value):
            raise self.fail(f"{name} is {value!r}, which is no list of different words")
        return [self.one_of(word, allowed, name) for word in value]

    def number(self, value: Any, least: int, most: int, name: str) -> int:
        if type(value) is not int or not least <= value <= most:
            raise self.fail(f"{name} is {value!r}, allowed are {least} to {most}")
        return value

    def data(self, value: Any, name: str) -> bytes:
        if not isinstance(value, str) or not re.fullmatch("([0-9a-f]{2})*", value):
            raise self.fail(f"{name} is no pairs of lower-case hexadecimal digits")
        return bytes.fromhex(value)

    def place(self, value: Any, name: str) -> Place:
        match = _PLACE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise self.fail(f"{name} is {value!r}, allowed are end, start or middle with +0 to +63, such as middle+3")
        return Place(_EDGES[match[1]], int(match[2]))


def _read_operation(reader: _Reader, number: int, value: Any) -> Operation:
    name = f"operation {number}"
    fields = reader.only(value, ("op", "data", "in", "out", "flags", *_NUMBERS), name)
    kind = _KINDS[reader.one_of(fields.get("op"), tuple(_KINDS), f"op of {name}")]
    flags = Flag(0)
    for word in reader.words(fields.get("flags", []), tuple(_FLAGS), f"flags of {name}"):
        flags |= _FLAGS[word]
    numbers = {
        key: reader.number(fields.get(key, 0), least, most, f"{key} of {name}")
        for key, (least, most) in _NUMBERS.items()
    }
    data = reader.data(fields.get("data", ""), f"data of {name}")
    if (data and flags & Flag.FEED) or (numbers["fed_len"] and not flags & Flag.FEED):
        raise reader.fail(f"{name} has data of its own and is fed, or fed_len and is not fed")
    if numbers["out_len"] and kind not in (OpKind.UPDATE, OpKind.TAG):
        raise reader.fail(f"{name} has out_len, which only update and tag have")
    return Operation(
        kind=kind,
        data=data,
        slot=numbers["slot"],
        from_slot=numbers["from_slot"],
        place=reader.place(fields.get("in", "middle+0"), f"in of {name}"),
        out_place=reader.place(fields.get("out", "middle+0"), f"out of {name}"),
        flags=flags,
        aux=(numbers["aux0"], numbers["aux1"]),
        out_len=numbers["out_len"],
        fed_len=numbers["fed_len"],
    )


def case_from_json(text: str, where: str) -> Case:
    """Read a case strictly; raises BadInput in one sentence that names ``where``."""
    reader = _Reader(where)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise reader.fail(f"is no JSON ({error})") from None
    fields = reader.only(value, (*_CASE_KEYS, "neighbours"), "the case")
    for key in _CASE_KEYS:
        if key not in fields:
            raise reader.fail(f"the case lacks the key {key!r}")
    reader.number(fields["version"], CASE_VERSION, CASE_VERSION, "version")
    if not isinstance(fields["algorithm"], str) or not isinstance(fields.get("neighbours", []), list):
        raise reader.fail("algorithm is no string or neighbours is no list")
    algorithm = str(parse_algorithm(fields["algorithm"]))
    neighbours = [
        _read_session(reader, reader.only(item, _SESSION_KEYS, f"neighbour {number}"), algorithm)
        for number, item in enumerate(fields.get("neighbours", []))
    ]
    return replace(_read_session(reader, fields, algorithm), neighbours=tuple(neighbours))


def _read_session(reader: _Reader, fields: dict[str, Any], algorithm: str) -> Case:
    for key in _SESSION_KEYS:
        if key not in fields:
            raise reader.fail(f"a neighbour lacks the key {key!r}")
    if not isinstance(fields["operations"], list):
        raise reader.fail("operations is no list")
    policies = reader.words(fields["policy"], _POLICIES, "policy")
    return Case(
        algorithm=algorithm,
        operations=tuple(_read_operation(reader, i, item) for i, item in enumerate(fields["operations"])),
        decrypting=reader.one_of(fields["direction"], ("encrypt", "decrypt"), "direction") == "decrypt",
        policy=sum(1 << _POLICIES.index(word) for word in policies),
        tag_len=reader.number(fields["tag_len"], 0, 64, "tag_len"),
        ctx_edge=_EDGES[reader.one_of(fields["ctx"], ("end", "middle"), "ctx")],
    )


def case_to_bytes(case: Case) -> bytes:
    """The binary twin of ``case_to_json``."""
    batch, name = whole_batch(case), case.algorithm.encode()
    encoded = bytearray(wire.batch_len(batch))
    wire.encode_batch_into(batch, memoryview(encoded))
    return _MAGIC + bytes([len(name)]) + name + encoded


def case_from_bytes(data: bytes, where: str) -> Case:
    """Read the binary form strictly; raises BadInput."""
    name_len = data[8] if len(data) > 8 else 0
    if not data.startswith(_MAGIC) or len(data) < 9 + name_len:
        raise BadInput(f"{where}: does not begin as a case does, with {_MAGIC.decode()} and a name; restore the file")
    try:
        algorithm = str(parse_algorithm(data[9 : 9 + name_len].decode()))
        batch = wire.decode_batch(data[9 + name_len :])
        counts = batch.cases["num_ops"].astype(int)
        if not len(batch) or int(counts.sum()) != len(batch.ops) or batch.cases["first_op"].tolist() != [
            int(counts[:index].sum()) for index in range(len(batch))
        ]:  # fmt: skip
            raise BadInput(f"{where}: its cases are not one behind the other; restore the file")
        *neighbours, last = [case_of(batch, index, algorithm) for index in range(len(batch))]
        case = replace(last, neighbours=tuple(neighbours))
    except (HarnessFault, UnicodeDecodeError) as error:
        raise BadInput(f"{where}: {error}; restore the file") from None
    if case_to_bytes(case) != data:
        raise BadInput(f"{where}: is not in the canonical order of a case, or more follows it; restore the file")
    return case
