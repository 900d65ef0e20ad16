# SPDX-License-Identifier: Apache-2.0
"""Faults planted in a library's adapter: shrunk within the domain that provider.toml declares, and no further."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from planting import NATIVE
from shrinking import lines

from crosslane.data import data_root
from crosslane.findings.case import Case, Operation
from crosslane.findings.domain import may_be_tried
from crosslane.findings.gather import Suspect
from crosslane.findings.measure import measure_cell
from crosslane.isa import host_arch
from crosslane.manifest import Manifest
from crosslane.plan import Counts, Selection, make_plans
from crosslane.registry import load_registry
from crosslane.wire import Flag, OpKind

pytestmark = pytest.mark.xdist_group("findings_providers")

_UPDATE = "    const uint8_t *in = dst == src ? NULL : src;"
_HERE = "s->mode->mode == GCRY_CIPHER_MODE_{} && s->cipher->cipher == GCRY_CIPHER_{}"
_EDITS = (
    (
        _UPDATE,
        (
        f"    if ({_HERE.format('CBC', 'SM4')} && s->mode->flags == 0 && len == 48) {{\n"
        "        return SUBJECT_BAD_DATA_LEN;\n    }\n"
        f"    if ({_HERE.format('ECB', 'AES')} && len == 64) {{\n        abort();\n    }}\n" + _UPDATE
        ),
    ),
    (
        "    return refusal(error, SUBJECT_BAD_DATA_LEN);",
        (
        f"    if ({_HERE.format('XTS', 'AES')} && len % 16 == 7) {{\n        dst[len - 1] ^= 1;\n    }}\n"
        f"    if ({_HERE.format('CTR', 'AES')} && len > 40) {{\n        dst[40] ^= 1;\n    }}\n"
        "    return refusal(error, SUBJECT_BAD_DATA_LEN);"
        ),
    ),
    (
        "        return refusal(s->decrypting ? gcry_cipher_checktag(s->handle, bytes, len)",
        (
        f"        if ({_HERE.format('GCM', 'AES')} && s->decrypting && len == 8) {{\n"
        "            (void)gcry_cipher_checktag(s->handle, bytes, len);\n            return SUBJECT_OK;\n        }\n"
        "        return refusal(s->decrypting ? gcry_cipher_checktag(s->handle, bytes, len)"
        ),
    ),
    (
        "    gcry_cipher_close(s->handle);\n    s->handle = handle;\n",
        (
        f"    if ({_HERE.format('CBC', 'TWOFISH')} && s->handle != NULL) {{\n        gcry_cipher_close(handle);\n"
        "        return SUBJECT_OK;\n    }\n"
        "    gcry_cipher_close(s->handle);\n    s->handle = handle;\n"
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """What a planted fault comes to: its symptom or verdict, its class, its least case."""

    algorithm: str
    symptom: str
    fault_class: str
    least: tuple[str, ...]


FAULTS = (
    Fault("cbc(sm4)", "output", "refuses+blocks:=3", ("setkey 16", "setiv 16", "update 48", "final 0")),
    Fault("ecb(aes)", "crash", "sigabrt+blocks:=4", ("setkey 16", "setiv 0", "update 64", "final 0")),
    Fault("xts(aes)", "output", "stealing", ("setkey 32", "setiv 16", "update 23", "final 0")),
    Fault("ctr(aes)", "output", "blocks:3", ("setkey 16", "setiv 16", "update 41", "final 0")),
    Fault(
        "gcm(aes)", "output", "accepts+wrong_tag",
        ("decrypt", "setkey 16", "setiv 1", "final 0", "tag 3c2fa7a9aaaee8e1"),  # ends in ...e0
    ),
    Fault(
        "cbc(twofish)", "output", "rekey",
        ("setkey 16", f"setkey {'00' * 15}01", "setiv 16", "update 16", "final 0"),
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a build needs, with faults in libgcrypt's adapter."""
    folder = tmp_path_factory.mktemp("tree")
    for name in ("impls", "ci", "conformance"):
        shutil.copytree(data_root() / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for provider in (folder / "impls" / "providers").iterdir():
        if provider.is_dir() and provider.name != "libgcrypt":
            shutil.rmtree(provider)
    path = folder / "impls" / "providers" / "libgcrypt" / "adapter.c"
    text = path.read_text()
    for old, new in _EDITS:
        assert text.count(old) == 1
        text = text.replace(old, new)
    path.write_text(text)
    return folder


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.algorithm)
def test_a_fault_of_a_library_is_one_finding_with_the_least_case(tree: Path, fault: Fault) -> None:
    registry = load_registry(tree)
    run = make_plans(registry, Selection((f"{fault.algorithm}/libgcrypt",), (NATIVE,)), counts=Counts())
    (plan,) = run.algorithms
    assert plan.bounded
    (cell,) = plan.cells
    manifest = replace(plan.manifest, sessions_per_batch=256)
    suspect = Suspect(manifest, plan.oracle, cell.station, host_arch(), plan.bounded)
    found = measure_cell(cell, suspect, "a seed", 1)
    assert [(key.symptom, key.fault_class) for key in found.keys] == [(fault.symptom, fault.fault_class)]
    (case,) = found.cases
    assert lines(case) == fault.least
    assert found.cpu_s < 10


def candidate(*operations: Operation, decrypting: bool = False, tag_len: int = 0) -> Case:
    return Case("ctr(toy)", operations, decrypting=decrypting, tag_len=tag_len)


_KEY = Operation(OpKind.SETKEY, bytes(16))
_IV = Operation(OpKind.SETIV, bytes(16))
_DATA = Operation(OpKind.UPDATE, bytes(16))
_END = Operation(OpKind.FINAL)
_TAG = Operation(OpKind.TAG, bytes(16))


@pytest.mark.parametrize(
    ("bounds", "operations"),
    [
        ({}, (_KEY, _IV, _DATA)),
        ({}, (_IV, _DATA, _END)),
        ({}, (_KEY, _IV, _END, _DATA)),
        ({"refusals": ()}, (replace(_KEY, data=bytes(17)), _IV, _DATA, _END)),
        ({"refusals": ()}, (_KEY, replace(_IV, data=b""), _DATA, _END)),
        ({"min_len": 32, "refusals": ()}, (_KEY, _IV, _DATA, _END)),
        ({"max_len": 8}, (_KEY, _IV, _DATA, _END)),
        ({"empty": False}, (_KEY, _IV, replace(_DATA, data=b""), _END)),
        ({"in_place": False}, (_KEY, _IV, replace(_DATA, flags=Flag.IN_PLACE), _END)),
        ({"clone": False}, (_KEY, _IV, Operation(OpKind.CLONE, slot=1), replace(_DATA, slot=1), _END)),
        ({"reinit": False}, (_KEY, Operation(OpKind.REINIT), _IV, _DATA, _END)),
        ({"split": "none"}, (_KEY, _IV, _DATA, _DATA, _END)),
        ({"split": "block"}, (_KEY, _IV, replace(_DATA, data=b"\0"), _DATA, _END)),
        ({"num_keys": 2, "key_lens": (8,), "equal_keys": False}, (_KEY, _IV, _DATA, _END)),
        ({"always_policies": ("degenerate",)}, (_KEY, _IV, _DATA, _END)),
        ({"directions": ("decrypt",)}, (_KEY, _IV, _DATA, _END)),
        ({"tag_lens": (16,), "refusals": ()}, (_KEY, _IV, _DATA, _END, _TAG)),
    ],
)
def test_a_candidate_stays_in_the_domain(
    make_manifest: Callable[..., Manifest], bounds: dict[str, object], operations: tuple[Operation, ...]
) -> None:
    manifest = make_manifest(**{"key_lens": (16,), "iv_lens": (16,), "block_len": 16, **bounds})
    assert may_be_tried(candidate(_KEY, _IV, _DATA, _END), make_manifest(key_lens=(16,), iv_lens=(16,)), bounded=True)
    assert not may_be_tried(candidate(*operations), manifest, bounded=True)
    assert may_be_tried(candidate(*operations), manifest, bounded=False)


def test_an_aead_decrypts_whole_messages(make_manifest: Callable[..., Manifest]) -> None:
    manifest = make_manifest(key_lens=(16,), iv_lens=(16,), aad=True, tag_lens=(16,))
    cut = (_KEY, _IV, _DATA)
    assert may_be_tried(candidate(*cut, tag_len=16), manifest, bounded=False)
    assert not may_be_tried(candidate(*cut, tag_len=16, decrypting=True), manifest, bounded=False)
    assert may_be_tried(candidate(*cut, _END, _TAG, tag_len=16, decrypting=True), manifest, bounded=False)
