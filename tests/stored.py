# SPDX-License-Identifier: Apache-2.0
"""A finding in a store, explained or not, as tests of what shows it need one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crosslane.findings.case import Case, Operation
from crosslane.findings.record import Key, Record
from crosslane.findings.store import TRIAGE, Kept, Store
from crosslane.records import FaultSeen
from crosslane.wire import OpKind

KEY = Key("toy-avx2-x86_64", "ctr(toy)", "output", "tail")
CASE = Case("ctr(toy)", (Operation(OpKind.SETKEY, bytes(16)), Operation(OpKind.UPDATE, b"\1", out_len=1)))


def stored(folder: Path, *, triage: str = "", svg: str = "", key: Key = KEY) -> FaultSeen:
    """Keep a finding with what triage wrote, and return how a cell names it."""
    facts: dict[str, Any] = {
        "key": key, "state": "open", "verdict": "disagree", "text": "byte 0 differs", "judge": "generic",
        "shrunk": True, "cells": ("ctr(toy)/toy-avx2-x86_64@x86_64_native",), "rate": 1.0,
        "from_case": "0123456789abcdef-0-1", "impls": (),
        "first_revision": "", "last_revision": "", "fixed_revision": "", "case_sha256": "", "repro_sha256": "",
    }  # fmt: skip
    store = Store(folder)
    store.put(Kept(Record(**facts), CASE, "/* repro */\n"))
    texts = {name: text for name, text in zip(TRIAGE, (triage, svg), strict=True) if text}
    if texts:
        store.attach(key.id, texts)
    return FaultSeen(key.id, key.symptom, key.fault_class, "byte 0 differs")
