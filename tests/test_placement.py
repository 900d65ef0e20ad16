# SPDX-License-Identifier: Apache-2.0
"""What a library allocates is watched: faults planted in one that keeps its contexts on the heap, and in real ones."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosslane.client import SharedMemory
from crosslane.compare import Comparison, Departure, compare
from crosslane.data import data_root
from crosslane.describe import departure_text
from crosslane.execute import CAPACITY, Executor, execute_alone
from crosslane.isa import host_arch
from crosslane.lanes import lane_named
from crosslane.manifest import manifest_within
from crosslane.model import Algorithm, Instance, Provider
from crosslane.plan import manifest_of
from crosslane.registry import load_registry
from crosslane.seal import finished_batch
from crosslane.stations import Stations, programs_for
from crosslane.wire import Batch, Buffer, Edge, Symptom, Verdict, Watch

NATIVE = f"{host_arch()}_native"

# A library as small as can be: a context of its own beside each session of libgcrypt's adapter.
_STRUCT = "struct session {\n    const struct mode_entry *mode;\n"
_OPEN = "        s->decrypting = decrypting;\n    }\n    return s;\n"
_CLOSE = "    gcry_cipher_close(s->handle);\n    gcry_mac_close(s->mac);\n    free(s);\n"
_UPDATE = "    (void)last;\n    if (is_mac(s)) {\n"
CONTEXT_LEN = 104


def spoilt(text: str, *, update: str = "", close: str = "free(s->own);", setkey: str = "", opened: str = "") -> str:
    """The adapter with that library in it."""
    for old, new in (
        (_STRUCT, _STRUCT + "    uint8_t *own;\n"),
        (_OPEN, _OPEN.replace("    }\n", f"        s->own = malloc({CONTEXT_LEN});\n        {opened}\n    }}\n")),
        (_CLOSE, _CLOSE.replace("    free(s);\n", f"    {close}\n    free(s);\n")),
        (_UPDATE, f"    {update}\n" + _UPDATE),
        ("    gcry_cipher_hd_t handle;\n    if (is_mac(s)) {\n",
         f"    gcry_cipher_hd_t handle;\n    {setkey}\n    if (is_mac(s)) {{\n"),
    ):  # fmt: skip
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("impls", "ci", "conformance"):
        shutil.copytree(data_root() / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(tree: Path, name: str, mode: str, cipher: str, *, num_sessions: int = 192) -> tuple[Batch, Comparison, Watch]:
    """One batch of a provider's cell held against generic, and what the shim says that it cannot see."""
    registry = load_registry(tree)
    lane = lane_named(registry.lanes, NATIVE)
    stations = Stations(registry, programs_for(registry, [lane]), require_sandbox=False)
    provider: Provider = next(item for item in registry.providers if item.name == name)
    domain = provider.domain(mode, cipher)
    assert domain is not None
    generic = next(item for item in registry.implementations if item.cipher == cipher and item.is_generic)
    oracle = stations.of(generic, lane, mode)
    bounded = manifest_within(manifest_of(registry, Algorithm(mode, cipher), "placement"), domain)
    manifest = replace(bounded, sessions_per_batch=num_sessions)
    batch = finished_batch(
        manifest, 0, lambda part: execute_alone(oracle, part), lambda part: execute_alone(oracle.blocks, part)
    )
    subject = stations.of_instance(Instance(provider, provider.name, lane), mode, cipher)
    memory = SharedMemory("test-batch", CAPACITY, sealed=True)
    executor = Executor(subject, memory)
    try:
        blind = executor.open().opened.blind
    finally:
        executor.release()
        memory.close()
    return batch, compare(batch, execute_alone(oracle, batch), execute_alone(subject, batch)), blind


def departures(tree: Path, adapter: str) -> tuple[Batch, tuple[Departure, ...]]:
    path = tree / "impls/providers/libgcrypt/adapter.c"
    path.write_text(adapter)
    batch, comparison, _ = run(tree, "libgcrypt", "cbc", "sm4")
    return batch, comparison.departures


def libgcrypt(tree: Path) -> str:
    return (tree / "impls/providers/libgcrypt/adapter.c").read_text()


def test_a_library_that_keeps_to_its_context_is_green(tree: Path) -> None:
    """Nothing is seen in a context of which every byte is written, grown, copied and freed."""
    text = spoilt(
        libgcrypt(tree),
        opened=f"memset(s->own, 7, {CONTEXT_LEN});",
        update=f"s->own = realloc(s->own, {CONTEXT_LEN} + len % 5); s->own[{CONTEXT_LEN} - 1 + len % 5] = 1;",
    )
    assert departures(tree, text)[1] == ()


@pytest.mark.parametrize(
    ("update", "offset"),
    [(f"s->own[{CONTEXT_LEN}] = 1;", CONTEXT_LEN), ("s->own[-1] = 1;", -1)],
    ids=["behind", "before"],
)
def test_a_byte_beside_a_context_is_seen_wherever_it_lies(tree: Path, update: str, offset: int) -> None:
    batch, found = departures(tree, spoilt(libgcrypt(tree), update=f"if (len > 0) {{ {update} }}"))
    assert found
    assert {departure.buffer for departure in found} == {Buffer.CTX}
    assert {departure.offset for departure in found} == {offset}
    symptoms = {Edge(int(batch.cases["ctx_edge"][item.case])): item.symptom for item in found}
    touching = Edge.START if offset < 0 else Edge.END
    assert symptoms.pop(touching, Symptom.GUARD_WRITE) is (
        Symptom.GUARD_WRITE if offset < 0 else Symptom.CANARY  # 104 is no multiple of 16: eight bytes lie between
    )
    assert set(symptoms.values()) <= {Symptom.CANARY}


def test_a_read_beyond_a_context_is_seen(tree: Path) -> None:
    _, found = departures(tree, spoilt(libgcrypt(tree), update="if (len > 0) { s->own[1] = s->own[112]; }"))
    assert {(item.symptom, item.buffer, item.offset) for item in found} == {(Symptom.GUARD_READ, Buffer.CTX, 112)}


def test_writing_to_freed_memory_is_seen_in_its_case(tree: Path) -> None:
    batch, found = departures(tree, spoilt(libgcrypt(tree), close="free(s->own); s->own[9] = 0;"))
    assert {(item.symptom, item.buffer, item.offset) for item in found} == {(Symptom.CONTEXT, Buffer.CTX, 9)}
    assert departure_text(batch, found[0], host_arch()) == "byte 9 of memory changed that the library had freed"


def test_freeing_twice_ends_the_process(tree: Path) -> None:
    _, found = departures(tree, spoilt(libgcrypt(tree), close="free(s->own); free(s->own);"))
    assert {item.verdict for item in found} == {Verdict.CRASH}


def test_a_key_in_freed_memory_is_seen_where_the_library_says_that_it_wipes(tree: Path) -> None:
    text = spoilt(libgcrypt(tree), setkey="memcpy(s->own, key, key_len < 32 ? key_len : 32);")
    metadata = tree / "impls/providers/libgcrypt/provider.toml"
    claims = metadata.read_text()
    assert "wipes = true\n" in claims
    batch, found = departures(tree, text)
    assert {(item.symptom, item.buffer) for item in found} == {(Symptom.WIPE, Buffer.KEY)}
    assert "leaves bytes of the key behind, in memory that it frees, 0 bytes from" in departure_text(
        batch, found[0], host_arch()
    )
    metadata.write_text(claims.replace("wipes = true\n", ""))
    assert departures(tree, text)[1] == ()


def test_what_a_shared_library_allocates_is_watched(tree: Path) -> None:
    """The byte behind a context that libcrypto allocated itself."""
    path = tree / "impls/providers/openssl/adapter.c"
    text = path.read_text().replace(
        "    if (EVP_CipherUpdate(",
        "    if (len == 48) {\n        ((uint8_t *)s->ctx)[malloc_usable_size(s->ctx)] ^= 1;\n    }\n"
        "    if (EVP_CipherUpdate(",
    )
    path.write_text(text.replace("#include <stdlib.h>\n", "#include <malloc.h>\n#include <stdlib.h>\n"))
    _, comparison, blind = run(tree, "openssl", "cbc", "aes")
    assert blind == Watch.REGISTERS | Watch.PATHS
    assert {item.buffer for item in comparison.departures} == {Buffer.CTX}
    assert {item.symptom for item in comparison.departures} <= {Symptom.CANARY, Symptom.GUARD_WRITE}
    assert np.isin([item.symptom for item in comparison.departures], [Symptom.CANARY, Symptom.GUARD_WRITE]).any()


def test_contexts_of_a_library_s_own_are_said_to_be_unseen(tree: Path) -> None:
    metadata = tree / "impls/providers/libgcrypt/provider.toml"
    metadata.write_text(metadata.read_text().replace("wipes = true\n", 'wipes = true\ncontexts = "own"\n'))
    _, comparison, blind = run(tree, "libgcrypt", "cbc", "sm4")
    assert comparison.departures == ()
    assert blind == Watch.REGISTERS | Watch.PATHS | Watch.CONTEXT | Watch.WIPE
