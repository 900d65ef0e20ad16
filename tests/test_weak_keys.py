# SPDX-License-Identifier: Apache-2.0
"""The weak keys of des3_ede: what makes them weak, by a library; generic refuses them just where it is asked to, and
every implementation takes the same keys through all of its paths."""

from __future__ import annotations

import platform
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, modes

from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.execute import execute_alone
from crosslane.findings.case import Case, Operation, batch_of
from crosslane.lanes import lane_named
from crosslane.manifest import POLICY_BITS
from crosslane.metadata import read_cipher
from crosslane.model import Implementation
from crosslane.registry import cipher_named, load_registry
from crosslane.stations import Stations, programs_for
from crosslane.wire import OpKind, Status, Verdict

WEAK = tuple(bytes.fromhex(key) for key in cipher_named(load_registry(data_root()), "des3_ede").weak_keys)
OTHERS = bytes.fromhex("0123456789abcdef"), bytes.fromhex("fedcba9876543210")
REGISTRY = load_registry(data_root())
FASTER = [item for item in REGISTRY.implementations if item.cipher == "des3_ede" and not item.is_generic]


def des(key: bytes, block: bytes) -> bytes:
    turn = Cipher(TripleDES(3 * key), modes.ECB()).encryptor()  # noqa: S305 - one block
    return turn.update(block)


def test_there_are_four_that_undo_themselves_and_six_pairs_that_undo_each_other() -> None:
    block = b"anything"
    partners = {key: [other for other in WEAK if des(other, des(key, block)) == block] for key in WEAK}
    assert len(set(WEAK)) == 16
    assert all(len(found) == 1 for found in partners.values())
    assert sum(found == [key] for key, found in partners.items()) == 4


def test_generic_refuses_them_under_the_policy_alone_at_each_place_whatever_their_parity() -> None:
    registry = load_registry(data_root())
    lane = lane_named(registry.lanes, f"{platform.machine()}_native")
    stations = Stations(registry, programs_for(registry, [lane]), require_sandbox=False)
    generic = next(item for item in registry.implementations if item.cipher == "des3_ede" and item.is_generic)
    asked, wanted = [], []
    for weak, place, flips, policy in product(WEAK, range(3), (0, 1, 0x55), range(4)):
        parts = [*OTHERS, bytes(byte ^ (flips >> (i % 8) & 1) for i, byte in enumerate(weak))]
        key = b"".join(parts[(i - place - 1) % 3] for i in range(3))
        asked.append(Case("ecb(des3_ede)", (Operation(OpKind.SETKEY, key),), policy=policy))
        wanted.append(Status.WEAK_KEY if policy & POLICY_BITS["weak_subkey"] else Status.OK)
    results = execute_alone(stations.of(generic, lane, "ecb"), batch_of(asked))
    assert results.statuses.tolist() == [int(status) for status in wanted]
    assert len(np.unique(results.statuses)) == 2


@pytest.mark.parametrize("mode", ["ecb", "cbc", "cfb", "ofb", "ctr", "cts_cbc"])
@pytest.mark.parametrize("item", FASTER, ids=lambda item: item.driver)
def test_every_path_of_an_implementation_is_taken_under_each_policy(item: Implementation, mode: str) -> None:
    lane = lane_named(
        REGISTRY.lanes, f"{item.isa}_native" if item.isa == platform.machine() else f"{item.isa}_qemu_max"
    )
    stations = Stations(REGISTRY, programs_for(REGISTRY, [lane]), require_sandbox=False)
    generic = next(other for other in REGISTRY.implementations if other.cipher == "des3_ede" and other.is_generic)
    third = bytes.fromhex("1f7a3c5d2e4b6900")
    keys = b"".join([*OTHERS, third]), b"".join([OTHERS[0], *OTHERS]), OTHERS[0] + third + WEAK[5]
    lengths = [8 * n for n in (1, item.ways // 8 + 2, item.ways // 2 + 1, item.ways, 2 * item.ways + 2)]
    asked = []
    for key, policy, length, decrypting in product(keys, range(4), lengths, (False, True)):
        iv = Operation(OpKind.SETIV, b"" if mode == "ecb" else b"\xff" * 8)
        update = Operation(OpKind.UPDATE, bytes(i * i % 251 for i in range(length)), out_len=length)
        operations = (Operation(OpKind.SETKEY, key), iv, update, Operation(OpKind.FINAL))
        asked.append(Case(f"{mode}(des3_ede)", operations, policy=policy, decrypting=decrypting))
    wanted = execute_alone(stations.of(generic, lane, mode), batch_of(asked))
    results = execute_alone(stations.of(item, lane, mode), batch_of(asked))
    assert set(results.cases["verdict"].tolist()) == {int(Verdict.RAN)}
    assert results.statuses.tolist() == wanted.statuses.tolist()
    assert results.out.tobytes() == wanted.out.tobytes()
    assert wanted.statuses.tolist().count(int(Status.WEAK_KEY)) == 2 * len(lengths) * 4


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('weak_keys = ["01", "0202"]', "weak_keys have 1, 2 bytes"),
        ('weak_keys = ["010203"]', "weak_keys have 3 bytes; all have the length of one part of a key"),
        ('weak_keys = ["0g"]', "weak_keys"),
        ("weak_keys = []", "weak_keys"),
        ("ignored_bits = 256", "ignored_bits is 256; allowed are bits of a byte, 1 to 255"),
        ("ignored_bits = 0", "ignored_bits"),
    ],
)
def test_weak_keys_that_cannot_be_are_refused(fake_root: Path, line: str, message: str) -> None:
    folder = fake_root / "impls" / "ciphers" / "toy"
    text = (folder / "cipher.toml").read_text()
    (folder / "cipher.toml").write_text(f"{text}{line}\n")
    with pytest.raises(BadInput, match=re.escape(message)):
        read_cipher(folder)
