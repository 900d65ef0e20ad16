# SPDX-License-Identifier: Apache-2.0
"""What is kept of a finding: its record as data, its id, and ``finding.toml``, written and read strictly."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crosslane.tomlread import Field, read_fields, read_toml

__all__ = ["RECORD_VERSION", "Key", "Record", "State", "read_record", "record_text"]

RECORD_VERSION = 1
_ID_LEN = 12

State = Literal["open", "accepted", "fixed", "flaky"]

_FIELDS = {
    "version": Field(kind="int", allowed=(RECORD_VERSION,)),
    "id": Field(kind="str", pattern=f"[0-9a-f]{{{_ID_LEN}}}"),
    "implementation": Field(kind="str", pattern="[a-z0-9_:-]+"),
    "algorithm": Field(kind="str", pattern=r"[a-z0-9_]+\([a-z0-9_]+\)"),
    "symptom": Field(kind="str", pattern="[a-z_]+"),
    "class": Field(kind="str", pattern=r"[a-z0-9_:+=,]+"),
    "state": Field(kind="str", allowed=("open", "accepted", "fixed", "flaky")),
    "verdict": Field(kind="str", allowed=("disagree", "reject", "crash", "hang")),
    "text": Field(kind="str"),
    "cells": Field(kind="str", many=True, min_num=1),
    "judge": Field(kind="str", allowed=("generic", "vector", "reference")),
    "shrunk": Field(kind="bool"),
    "rate": Field(kind="float"),
    "from_case": Field(kind="str"),
    "impls": Field(kind="str", many=True),
    "first_revision": Field(kind="str", pattern="[0-9a-f]*"),
    "last_revision": Field(kind="str", pattern="[0-9a-f]*"),
    "fixed_revision": Field(kind="str", pattern="[0-9a-f]*"),
    "case_sha256": Field(kind="str", pattern="[0-9a-f]{64}"),
    "repro_sha256": Field(kind="str", pattern="[0-9a-f]{64}"),
}
"""The keys of ``finding.toml`` in their order."""


@dataclass(frozen=True)
class Key:
    """What two sightings of one fault share."""

    implementation: str
    algorithm: str
    symptom: str
    fault_class: str

    @property
    def id(self) -> str:
        """The finding's id: of the key alone, so the same for every seed, machine and run."""
        parts = (self.implementation, self.algorithm, self.symptom, self.fault_class)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_ID_LEN]


@dataclass(frozen=True)
class Record:
    """One finding. ``cells`` are those it was seen in; ``judge`` is what the answer was held against.

    ``rate`` is the share of runs alone in which the case departed when that was last measured. ``from_case`` is the
    case id, or the vector, that it was shrunk from. ``impls`` are the folders that were given with ``--impls``.
    Revisions are those of the suite's checkout, or empty. ``repro_sha256`` is of ``repro.c`` and the files in
    ``harness`` in the order of their names, one behind the other.
    """

    key: Key
    state: State
    verdict: str
    text: str
    cells: tuple[str, ...]
    judge: Literal["generic", "vector", "reference"]
    shrunk: bool
    rate: float
    from_case: str
    impls: tuple[str, ...]
    first_revision: str
    last_revision: str
    fixed_revision: str
    case_sha256: str
    repro_sha256: str

    @property
    def id(self) -> str:
        """The finding's id."""
        return self.key.id


def _toml(value: object) -> str:
    """A value in TOML; a JSON string is a TOML string but for the delete character."""
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value).replace("\x7f", "\\u007f")
    return str(value)


def record_text(record: Record) -> str:
    """The text of ``finding.toml``."""
    key = record.key
    values: dict[str, object] = {
        "version": RECORD_VERSION,
        "id": key.id,
        "implementation": key.implementation,
        "algorithm": key.algorithm,
        "symptom": key.symptom,
        "class": key.fault_class,
        **{name: value for name, value in vars(record).items() if name != "key"},
    }
    return "".join(f"{name} = {_toml(values[name])}\n" for name in _FIELDS)


def read_record(path: Path) -> Record:
    """Read ``finding.toml``; raises BadInput in one sentence for anything that the suite would not have written."""
    values = read_fields(path, read_toml(path), _FIELDS)
    key = Key(values["implementation"], values["algorithm"], values["symptom"], values["class"])
    own = ("version", "id", "implementation", "algorithm", "symptom", "class")
    rest = {name: value for name, value in values.items() if name not in own}
    return Record(key=key, **rest)
