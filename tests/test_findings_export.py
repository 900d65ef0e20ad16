# SPDX-License-Identifier: Apache-2.0
"""Cases for other people's tools: Wycheproof's JSON fits its schema, a vector for the kernel is C that compiles."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.findings.case import Case, Operation
from crosslane.findings.export import testmgr_text as kernel_text
from crosslane.findings.export import wycheproof_text
from crosslane.findings.record import Key, Record
from crosslane.registry import load_registry
from crosslane.wire import OpKind

pytestmark = pytest.mark.xdist_group("findings_export")

REGISTRY = load_registry(data_root())
SCHEMA = json.loads((data_root() / "corpora" / "schemas" / "wycheproof.schema.json").read_text())
STRUCTURES = """
#include <stdbool.h>
struct cipher_testvec {
    const char *key, *iv, *iv_out, *ptext, *ctext;
    unsigned char wk;
    unsigned short klen;
    unsigned int len;
    bool fips_skip, generates_iv;
    int setkey_error, crypt_error;
};
struct aead_testvec {
    const char *key, *iv, *ptext, *assoc, *ctext;
    unsigned char novrfy, wk, klen;
    unsigned int plen, clen, alen;
    int setkey_error, setauthsize_error, crypt_error;
};
struct hash_testvec {
    const char *key, *plaintext, *digest;
    unsigned int psize;
    unsigned short ksize;
    int setkey_error, digest_error;
    bool fips_skip;
};
"""
KEY, END = Operation(OpKind.SETKEY, bytes(16)), Operation(OpKind.FINAL)


def begin(iv_len: int, length: int) -> tuple[Operation, ...]:
    return (KEY, Operation(OpKind.SETIV, bytes(iv_len), aux=(0, length)))


def data(length: int, *, mac: bool = False) -> Operation:
    return Operation(OpKind.UPDATE, bytes(length), out_len=0 if mac else length)


TAG = "58e2fccefa7e3061367f1d57a4e7455a"  # McGrew and Viega, The Galois/Counter Mode of Operation, test case 1
CASES = {
    "cipher": Case("ctr(aes)", (*begin(16, 17), data(17))),
    "no_iv": Case("ecb(aes)", (*begin(0, 16), data(16))),
    "aead": Case("gcm(aes)", (*begin(12, 1), data(1)), tag_len=16),
    "refused": Case(
        "gcm(aes)", (*begin(12, 0), END, Operation(OpKind.TAG, bytes(16))), decrypting=True, tag_len=16
    ),
    "accepted": Case(
        "gcm(aes)", (*begin(12, 0), END, Operation(OpKind.TAG, bytes.fromhex(TAG))), decrypting=True, tag_len=16
    ),
    "mac": Case("cmac(aes)", (*begin(0, 3), data(3, mac=True)), tag_len=16),
}  # fmt: skip


def record(case: Case) -> Record:
    facts: dict[str, Any] = {
        "key": Key("toy", case.algorithm, "output", "any"), "state": "open", "verdict": "disagree", "text": "byte 0",
        "cells": ("x",), "judge": "generic", "shrunk": True, "rate": 1.0, "from_case": "", "impls": (),
        "first_revision": "", "last_revision": "", "fixed_revision": "", "case_sha256": "", "repro_sha256": "",
    }  # fmt: skip
    return Record(**facts)


@pytest.mark.parametrize("name", CASES)
def test_wycheproof_s_form_fits_the_schema(name: str) -> None:
    file = json.loads(wycheproof_text(REGISTRY, record(CASES[name]), CASES[name]))
    jsonschema.validate(file, SCHEMA)
    ((test,),) = (group["tests"] for group in file["testGroups"])
    assert test["result"] == ("invalid" if name == "refused" else "valid")
    assert len(test.get("tag", "")) == (32 if name in ("aead", "refused", "accepted", "mac") else 0)


@pytest.mark.parametrize("kind", ["cipher", "aead", "mac"])
def test_the_schema_refuses_what_lacks_a_member_or_has_another(kind: str) -> None:
    text = wycheproof_text(REGISTRY, record(CASES[kind]), CASES[kind])
    for name in json.loads(text)["testGroups"][0]["tests"][0]:
        file = json.loads(text)
        del file["testGroups"][0]["tests"][0][name]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(file, SCHEMA)
    file = json.loads(text)
    file["testGroups"][0]["tests"][0]["speed"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(file, SCHEMA)


@pytest.mark.parametrize("name", CASES)
def test_a_vector_for_the_kernel_is_c(tmp_path: Path, name: str) -> None:
    text = kernel_text(REGISTRY, record(CASES[name]), CASES[name])
    source = tmp_path / "vector.c"
    array = f"crosslane_{record(CASES[name]).id}_tv_template"
    member = "digest" if name == "mac" else "ctext"
    main = f"#include <stdio.h>\nint main(void)\n{{\n    return puts({array}[0].{member}) < 0;\n}}\n"
    source.write_text(STRUCTURES + text + main)
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]
    done = subprocess.run(
        ["gcc", *flags, "-o", str(tmp_path / "vector"), str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    if name in ("refused", "accepted"):
        assert (".novrfy\t= 1" in text) == (name == "refused")
        ran = subprocess.run([str(tmp_path / "vector")], capture_output=True, check=True)
        assert ran.stdout == (bytes.fromhex(TAG) + b"\n" if name == "accepted" else b"\n")


def test_more_than_one_message_is_refused() -> None:
    case = CASES["cipher"]
    two = case.with_operations([*case.operations, *begin(16, 1)[1:], data(1)])
    for wrong in (two, replace(case, neighbours=(case,))):
        with pytest.raises(BadInput, match="more than one message under one key"):
            wycheproof_text(REGISTRY, record(wrong), wrong)
