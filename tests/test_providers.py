# SPDX-License-Identifier: Apache-2.0
"""Libraries behind adapters: they agree within the domain they declare, and an adapter that departs is seen."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslane import toolchain
from crosslane.build import build_instance
from crosslane.client import SharedMemory
from crosslane.compare import Comparison, compare
from crosslane.cxx import with_cxx
from crosslane.data import data_root
from crosslane.errors import BadInput, HarnessFault, MissingTool
from crosslane.execute import CAPACITY, Executor, Station, execute_alone, execute_unless_declined
from crosslane.isa import host_arch
from crosslane.lanes import lane_named
from crosslane.lint import lint
from crosslane.manifest import Manifest, manifest_within
from crosslane.model import Algorithm, Domain, Instance, Lane, Provider, Registry
from crosslane.plan import manifest_of
from crosslane.registry import load_registry
from crosslane.seal import finished_batch
from crosslane.stations import Stations, programs_for
from crosslane.wire import Batch, OpKind, Results, Status, Symptom, Watch

NATIVE = f"{host_arch()}_native"
REGISTRY = load_registry(data_root())
EVERY = [(provider, domain) for provider in REGISTRY.providers for domain in provider.domains]
LIBGCRYPT = Path("impls/providers/libgcrypt")
# What conformance/deviations.toml accepts of some of their versions shows in place alone, or with other nonces.
KNOWN: dict[tuple[str, str], dict[str, Any]] = {
    **{(name, "xts"): {"in_place": False} for name in ("mbedtls", "wolfssl")},
    ("cryptopp", "cts_cbc"): {"in_place": False},
    ("cryptopp", "gcm"): {"iv_lens": (12,)},
}
BLIND = Watch.REGISTERS | Watch.PATHS


def provider_named(name: str) -> Provider:
    (provider,) = (item for item in REGISTRY.providers if item.name == name)
    return provider


def named(pair: tuple[Provider, Domain]) -> str:
    provider, domain = pair
    return f"{domain.mode}({domain.cipher})/{provider.name}"


@dataclass(frozen=True)
class Bench:
    """The oracle and the providers of a tree, in the host's native lane."""

    registry: Registry
    lane: Lane
    stations: Stations

    def manifest(self, provider: Provider, domain: Domain, **changes: Any) -> Manifest:
        algorithm = Algorithm(domain.mode, domain.cipher)
        manifest = manifest_within(manifest_of(self.registry, algorithm, f"of {provider.name}"), domain)
        return replace(manifest, **{"sessions_per_batch": 192, **changes})

    def oracle(self, domain: Domain) -> Station:
        items = self.registry.implementations
        generic = next(item for item in items if item.cipher == domain.cipher and item.is_generic)
        return self.stations.of(generic, self.lane, domain.mode)

    def provider(self, provider: Provider, mode: str, cipher: str) -> Station:
        return self.stations.of_instance(Instance(provider, provider.name, self.lane), mode, cipher)

    def batch(self, manifest: Manifest, domain: Domain, number: int = 0) -> Batch:
        oracle = self.oracle(domain)
        return finished_batch(manifest, number, partial(execute_alone, oracle), partial(execute_alone, oracle.blocks))

    def run(self, provider: Provider, domain: Domain, batch: Batch) -> tuple[Results, Results]:
        theirs = execute_alone(self.provider(provider, domain.mode, domain.cipher), batch)
        return execute_alone(self.oracle(domain), batch), theirs

    def lacks(self, provider: Provider, domain: Domain) -> bool:
        """Whether the installed library has been built without an algorithm."""
        batch = self.batch(self.manifest(provider, domain, sessions_per_batch=1), domain)
        station = self.provider(provider, domain.mode, domain.cipher)
        return execute_unless_declined(station, batch) is None

    def compare(self, provider: Provider, domain: Domain, **changes: Any) -> Comparison:
        batch = self.batch(self.manifest(provider, domain, **changes), domain)
        return compare(batch, *self.run(provider, domain, batch))


def bench_of(registry: Registry) -> Bench:
    lane = lane_named(registry.lanes, NATIVE)
    return Bench(registry, lane, Stations(registry, programs_for(registry, [lane]), require_sandbox=False))


@pytest.fixture(scope="module")
def bench() -> Bench:
    return bench_of(REGISTRY)


def test_there_are_six_and_each_cipher_is_with_one_of_them() -> None:
    assert {provider.name for provider in REGISTRY.providers} >= {
        "libgcrypt", "openssl", "libtomcrypt", "nettle", "mbedtls", "wolfssl",
    }  # fmt: skip
    assert {domain.cipher for _, domain in EVERY} == {cipher.name for cipher in REGISTRY.ciphers}


@pytest.mark.parametrize("pair", EVERY, ids=named)
def test_a_library_agrees_within_its_domain(bench: Bench, pair: tuple[Provider, Domain]) -> None:
    provider, domain = pair
    if bench.lacks(provider, domain):
        assert domain.optional
        return
    comparison = bench.compare(*pair, **KNOWN.get((provider.name, domain.mode), {}))
    assert comparison.departures == ()
    assert (comparison.num_departed, comparison.not_run) == (0, 0)
    assert comparison.comparisons == 192 * 8


REFUSED = {
    "key": Status.BAD_KEY_LEN,
    "iv": Status.BAD_IV_LEN,
    "tag": Status.BAD_TAG_LEN,
    "data": Status.BAD_DATA_LEN,
    "weak": Status.WEAK_KEY,
}


def refusals() -> Iterator[tuple[Provider, Domain, str]]:
    """One algorithm of each provider for each kind of refusal that it declares."""
    for provider in REGISTRY.providers:
        for kind in REFUSED:
            for domain in provider.domains:
                if kind in domain.refusals or (kind == "weak" and {*domain.policies, *domain.always_policies}):
                    yield provider, domain, kind
                    break


@pytest.mark.parametrize(
    ("provider", "domain", "kind"), [pytest.param(*case, id=f"{named(case[:2])}-{case[2]}") for case in refusals()]
)
def test_the_refusals_that_are_declared_come(bench: Bench, provider: Provider, domain: Domain, kind: str) -> None:
    """Among cases that are to be refused some are, by both alike."""
    batch = bench.batch(bench.manifest(provider, domain, steering=("refusals",)), domain)
    ours, theirs = bench.run(provider, domain, batch)
    assert np.array_equal(ours.statuses, theirs.statuses)
    assert np.count_nonzero(theirs.statuses == REFUSED[kind]) > 0


def test_wrong_tags_are_refused_and_give_no_plaintext(bench: Bench) -> None:
    for provider, domain in EVERY:
        if (domain.mode, domain.cipher) not in (("ccm", "aes"), ("gcm", "aes")):
            continue
        known = KNOWN.get((provider.name, domain.mode), {})
        batch = bench.batch(bench.manifest(provider, domain, **known), domain)
        ours, theirs = bench.run(provider, domain, batch)
        assert np.count_nonzero(theirs.statuses == Status.BAD_TAG) > 0
        assert np.array_equal(ours.out, theirs.out)


@pytest.mark.parametrize("provider", REGISTRY.providers, ids=lambda provider: provider.name)
def test_what_a_library_lacks_is_declined(bench: Bench, provider: Provider) -> None:
    batch = bench.batch(bench.manifest(provider, provider.domains[0]), provider.domains[0])
    assert execute_unless_declined(bench.provider(provider, "lrw", "aes"), batch) is None
    assert execute_unless_declined(bench.provider(provider, "ecb", "rot13"), batch) is None


def test_what_cannot_be_watched_is_said(bench: Bench) -> None:
    provider, domain = EVERY[0]
    memory = SharedMemory("test-batch", CAPACITY, sealed=True)
    executor = Executor(bench.provider(provider, domain.mode, domain.cipher), memory)
    try:
        shim = executor.open()
        assert shim.opened.blind == BLIND
        assert re.fullmatch(rf"{provider.name} [0-9]+\.[0-9.a-z]+", shim.hello.libraries[0])
    finally:
        executor.release()
        memory.close()


def test_an_input_outside_the_domain_is_told_apart(bench: Bench) -> None:
    """An iv that libgcrypt would cut without a word."""
    provider = provider_named("libgcrypt")
    domain = provider.domain("cbc", "aes")
    assert domain is not None
    batch = bench.batch(bench.manifest(provider, domain, refusals=("iv",), steering=("refusals",)), domain)
    _, theirs = bench.run(provider, domain, batch)
    assert np.count_nonzero(theirs.statuses == Status.UNSUPPORTED) > 0


# ---- adapters with a fault ------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what a build needs, with libgcrypt's adapter to be spoilt."""
    return copied_tree(tmp_path, "libgcrypt")


def copied_tree(root: Path, provider: str) -> Path:
    """A copy of what a build needs, with one library."""
    for name in ("impls", "ci", "conformance"):
        shutil.copytree(data_root() / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (root / "impls" / "providers").iterdir():
        if folder.is_dir() and folder.name != provider:
            shutil.rmtree(folder)
    return root


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


_RETURN = "    return refusal(error, SUBJECT_BAD_DATA_LEN);"
_UPDATE = "    (void)last;\n"
_SWAP = "    gcry_cipher_close(s->handle);\n    s->handle = handle;\n"
FAULTS = {
    "output": (_RETURN, "    dst[len / 2] ^= (uint8_t)(len > 40);\n" + _RETURN),
    "reject": (_UPDATE, _UPDATE + "    if (len == 48) {\n        return SUBJECT_BAD_DATA_LEN;\n    }\n"),
    "canary": (_RETURN, "    dst[len] ^= 1;\n" + _RETURN),
    "input": (_UPDATE, _UPDATE + "    *(uint8_t *)(uintptr_t)src ^= (uint8_t)(len > 0);\n"),
    "crash": (_UPDATE, _UPDATE + "    if (len == 48) {\n        abort();\n    }\n"),
    "stale": (_SWAP, "    s->handle = s->handle == NULL ? handle : s->handle;\n"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_adapter_is_seen(tree: Path, fault: str) -> None:
    edit(tree / LIBGCRYPT / "adapter.c", *FAULTS[fault])
    bench = bench_of(load_registry(tree))
    provider = bench.registry.providers[0]
    domain = provider.domain("cbc", "sm4")
    assert domain is not None
    comparison = bench.compare(provider, domain)
    symptoms = {departure.symptom for departure in comparison.departures}
    verdicts = {departure.verdict.name.lower() for departure in comparison.departures}
    assert comparison.num_departed > 0
    if fault in ("reject", "crash"):
        assert fault in verdicts
    else:
        wanted = {"canary": Symptom.CANARY, "input": Symptom.INPUT}.get(fault, Symptom.OUTPUT)
        assert wanted in symptoms


@pytest.mark.parametrize(
    ("thrown", "status"), [("std::string().at(1)", Status.BAD_DATA_LEN), ("throw 1", Status.UNSUPPORTED)]
)
def test_what_a_library_throws_is_a_refusal(tmp_path: Path, thrown: str, status: Status) -> None:
    tree = copied_tree(tmp_path, "botan")
    file = tree / "impls/providers/botan/botan_simple.cc"
    edit(file, "        if (decrypting_) {", f"        if (len == 48) {{\n{thrown};\n}}\n        if (decrypting_) {{")
    bench = bench_of(load_registry(tree))
    provider = bench.registry.providers[0]
    domain = provider.domain("ecb", "sm4")
    assert domain is not None
    batch = bench.batch(bench.manifest(provider, domain), domain)
    ours, theirs = bench.run(provider, domain, batch)
    updates = (batch.ops["kind"] == OpKind.UPDATE) & (batch.ops["in_len"] == 48) & (ours.statuses == Status.OK)
    assert updates.any()
    assert (theirs.statuses[updates] == status).all()
    assert np.array_equal(ours.statuses[~updates], theirs.statuses[~updates])


def test_a_domain_that_is_too_wide_is_seen(tree: Path) -> None:
    """The legal differences are differences: without the restriction they show."""
    edit(tree / LIBGCRYPT / "provider.toml", "key_lens = [0, 4, 8, 12, 16, 20, 24, 28, 32]", "key_lens = [7, 16]")
    bench = bench_of(load_registry(tree))
    provider = bench.registry.providers[0]
    domain = provider.domain("ecb", "serpent")
    assert domain is not None
    assert bench.compare(provider, domain).num_departed > 0


def test_an_adapter_that_breaks_the_contract_ends_the_run(tree: Path) -> None:
    edit(tree / LIBGCRYPT.parent / "adapter.h", ".reinit = reinit,", ".reinit = NULL,")
    edit(
        tree / LIBGCRYPT / "adapter.c",
        "static int reinit(void *session)",
        "int reinit(void *session);\nint reinit(void *session)",
    )
    bench = bench_of(load_registry(tree))
    provider = bench.registry.providers[0]
    with pytest.raises(HarnessFault, match="the adapter breaks the contract: see struct subject_session"):
        bench.compare(provider, provider.domains[0])


# ---- what is missing or wrong before anything runs ---------------------------------------------------------------


def test_a_missing_header_names_the_package() -> None:
    provider = provider_named("libgcrypt")
    lane = lane_named(REGISTRY.lanes, NATIVE)
    with pytest.raises(MissingTool) as caught:
        build_instance(REGISTRY, Instance(replace(provider, headers=("nosuchthing.h",)), "libgcrypt", lane))
    assert str(caught.value) == (
        "the header nosuchthing.h is not installed, which the provider libgcrypt needs; install the packages "
        "libgcrypt20-dev (as root: apt-get install libgcrypt20-dev), or leave it out with --without libgcrypt"
    )


def test_a_missing_library_names_the_package() -> None:
    provider = provider_named("openssl")
    lane = lane_named(REGISTRY.lanes, NATIVE)
    with pytest.raises(
        MissingTool, match=r"the library libnosuchthing\.so is not installed.*apt-get install libssl-dev"
    ):
        build_instance(REGISTRY, Instance(replace(provider, libraries=("nosuchthing",)), "openssl", lane))


def build(provider: Provider) -> Path:
    return build_instance(REGISTRY, Instance(provider, provider.name, lane_named(REGISTRY.lanes, NATIVE)))


def test_a_missing_folder_of_headers_names_the_package() -> None:
    provider = replace(provider_named("cryptopp"), includes=("nosuchfolder",))
    with pytest.raises(MissingTool, match=r"the folder of headers nosuchfolder is not installed.*libcrypto\+\+-dev"):
        build(provider)


def test_a_release_that_is_there_is_taken() -> None:
    """Where none is installed the message names the packages of the last."""
    provider = provider_named("libgcrypt")
    newer = replace(provider, packages=("libnosuchthing-dev",), libraries=("nosuchthing",))
    assert build(replace(newer, others=(provider,))) == build(provider)
    older = replace(provider, packages=("libnosuchthing1-dev",), libraries=("nosuchthing1",))
    with pytest.raises(MissingTool, match=r"libnosuchthing1\.so is not installed.*apt-get install libnosuchthing1-dev"):
        build(replace(newer, others=(older,)))


@pytest.mark.parametrize(
    ("cc", "program", "package"),
    [
        ("gcc", "g++", "g++"),
        ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"),
        ("x86_64-linux-gnu-gcc", "x86_64-linux-gnu-g++", "g++-x86-64-linux-gnu"),
        ("clang", "clang++", "clang g++"),
    ],
)
def test_a_missing_compiler_of_c_plus_plus_names_the_package(
    monkeypatch: pytest.MonkeyPatch, cc: str, program: str, package: str
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    found = toolchain.Toolchain(arch="x86_64", cc=f"/usr/bin/{cc}", objcopy="", version="", identity="")
    with pytest.raises(MissingTool) as caught:
        with_cxx(found, "botan")
    assert str(caught.value) == (
        f"the program {program} is not installed, which the provider botan needs: its adapter is in C++; install the "
        f"packages {package} (as root: apt-get install {package}), or leave it out with --without botan"
    )


def test_an_adapter_in_c_plus_plus_shares_what_is_inline_with_its_library() -> None:
    """Botan 2's features of the CPU are static in an inline function: a copy of its own would switch nothing."""
    table = subprocess.run(
        ["nm", "-D", str(build(provider_named("botan").others[0]))], capture_output=True, text=True, check=True
    ).stdout  # fmt: skip
    assert re.search(r" [uV] _ZZN5Botan5CPUID5stateEvE7g_cpuid$", table, re.MULTILINE)


def test_a_library_is_part_of_the_program_s_key() -> None:
    found = toolchain.find_toolchain(host_arch())
    both = [
        toolchain.find_library(found, item.name, headers=item.headers, libraries=item.libraries, packages=item.packages)
        for item in map(provider_named, ("libgcrypt", "openssl"))
    ]
    assert len({found.identity, *(item.identity for item in both)}) == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "libgcrypt"', 'name = "gcrypt"', "name is 'gcrypt'; allowed is its folder's name, 'libgcrypt'"),
        ('title = "', 'colour = "red"\ntitle = "', "unknown key 'colour'; allowed are name, title"),
        ('packages = ["libgcrypt20-dev"]', "packages = []", "packages is .* needs 1 or more"),
        ('sources = ["adapter.c"]', 'sources = ["other.c"]', "other.c: the file is missing"),
        ("[cipher.cast5]", "[cipher.cast6]", r"\[cipher.cast6\]: no such cipher; allowed are aes, cast5"),
        ("key_lens = [16]", "key_lens = [17]", r"\[cipher.cast5\]: key_lens has 17; allowed are 5, 6"),
        ('policies = ["weak_subkey"]', 'policies = ["weak"]', "policies has 'weak'; allowed are degenerate"),
        ('mode = "ecb"', 'mode = "cbc"', r"cbc\(aes\) stands in two tables \[\[algorithm\]\]"),
        ('mode = "ecb"', 'mode = "pcbc"', "mode has 'pcbc'; allowed are cbc, cbcmac"),
        ('mode = "ecb"\nciphers = ["aes",', 'mode = "ecb"\nciphers = ["rot13",', "ciphers has 'rot13'; allowed are"),
        ('mode = "xts"\nciphers = ["aes",', 'mode = "xts"\nciphers = ["cast5",', "blocks have 8 bytes; xts allows 16"),
        ('mode = "ecb"\n', 'mode = "ecb"\nsplit = "byte"\n', "split is 'byte', finer than the mode's"),
        ('mode = "cbc"\n', 'mode = "cbc"\niv_lens = [12]\n', "iv_lens has 12; allowed are 16"),
        ("releases_plaintext = true\n", "", "the key 'releases_plaintext' is missing"),
        ('refusals = ["key", "data"]', 'refusals = ["keys"]', "refusals has 'keys'; allowed are key, iv, tag, data"),
        ("observes_iv = false\n", "", "the key 'observes_iv' is missing"),
        ("[[algorithm]]", "[algorithm]", "malformed TOML"),
        ('title = "', 'ship = "no"\ntitle = "', "ship has 'no'; it must be true or false"),
        ("[cipher.cast5]\n", "[cipher.cast5]\noptional = 1\n", "optional has 1; it must be true or false"),
        ('mode = "ccm"\n', 'mode = "ccm"\nmax_aad_len = 0\n', "max_aad_len has 0; the least allowed is 1"),
        ('headers = ["gcrypt.h"]', 'headers = ["../gcrypt.h"]', "headers has '../gcrypt.h'; it must be of the form"),
        ('["adapter.c"]', '["adapter.cpp"]', "sources has 'adapter.cpp'"),
        ('["gcrypt"]', '["gcrypt"]\nincludes = ["../gcrypt"]', "includes has '../gcrypt'"),
        ('["gcrypt"]', '["gcrypt"]\nrelease = "new"', r"release holds 'new'; write each as a table \[\[release\]\]"),
        ("[cipher.cast5]", "[[release]]\nheaders = []\n[cipher.cast5]", r"\[\[release\]\]: unknown key 'headers'"),
        ("[cipher.cast5]", '[[release]]\npackages = ["x2"]\n[cipher.cast5]', "the key 'libraries' is missing; add it"),
    ],
)  # fmt: skip
def test_a_provider_of_another_kind_is_refused(tree: Path, old: str, new: str, message: str) -> None:
    edit(tree / LIBGCRYPT / "provider.toml", old, new)
    with pytest.raises(BadInput, match=message):
        load_registry(tree)


def test_what_is_built_with_a_library_under_the_gpl_is_not_distributed() -> None:
    assert [provider.name for provider in REGISTRY.providers if not provider.ship] == ["wolfssl"]


def test_what_not_every_build_has_is_said_of_a_cipher_or_an_algorithm() -> None:
    optional = {(provider.name, domain.mode, domain.cipher) for provider, domain in EVERY if domain.optional}
    assert {name for name in optional if name[0] == "nettle"} == {
        ("nettle", mode, "sm4") for mode in ("cbc", "ccm", "cfb", "cmac", "ctr", "ecb", "gcm", "xts")
    }
    assert {name for name in optional if name[0] == "wolfssl"} == {("wolfssl", "cts_cbc", "aes")}


def test_a_domain_has_what_mode_and_cipher_say_where_it_says_nothing() -> None:
    domain = provider_named("libgcrypt").domain("ccm", "twofish")
    assert domain is not None
    assert domain.key_lens == (16, 32)
    assert domain.iv_lens == (7, 8, 9, 10, 11, 12, 13)
    assert (domain.split, domain.min_len, domain.empty, domain.reinit) == ("byte", 0, True, True)
    assert domain.refusals == ("iv", "tag")  # keys of 24 bytes are ours alone
    weak = provider_named("libgcrypt").domain("cmac", "des3_ede")
    assert weak is not None
    assert (weak.policies, weak.always_policies) == (("weak_subkey",), ("weak_subkey",))
    assert provider_named("openssl").domain("xcbc", "aes") is None


def test_a_driver_may_not_have_a_provider_s_name(tree: Path) -> None:
    edit(tree / "impls/ciphers/sm4/generic/impl.toml", 'driver = "sm4-generic"', 'driver = "libgcrypt"')
    with pytest.raises(BadInput, match="driver 'libgcrypt' is the name of the provider in"):
        load_registry(tree)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("adapter.c", "PROVIDER_SESSION = {", "OTHER_SESSION = {", "no source defines the session"),
        ("provider.toml", '"gcrypt.h"', '"gcrypt.h", "gpg-error.h"', "has 'gpg-error.h', which no source includes"),
        ("adapter.c", "SPDX-License-Identifier", "Licence", "adapter.c: its first 2 lines do not hold"),
    ],
)  # fmt: skip
def test_lint_holds_an_adapter_to_the_contract(tree: Path, file: str, old: str, new: str, message: str) -> None:
    edit(tree / LIBGCRYPT / file, old, new)
    assert re.search(message, "\n".join(map(str, lint(tree))))


def test_lint_wants_nothing_else_beside_an_adapter(tree: Path) -> None:
    (tree / LIBGCRYPT / "notes.txt").write_text("")
    assert "notes.txt: does not belong to a provider" in "\n".join(map(str, lint(tree)))


def test_the_last_operation_of_a_message_with_a_tag_is_that_tag(bench: Bench) -> None:
    """What the shim tells an adapter that wants the tag beforehand relies on it."""
    provider = provider_named("openssl")
    domain = provider.domain("ccm", "aes")
    assert domain is not None
    batch = bench.batch(bench.manifest(provider, domain), domain)
    owner = np.repeat(np.arange(len(batch)), batch.cases["num_ops"])
    chosen = np.isin(batch.ops["kind"], (int(OpKind.SETIV), int(OpKind.TAG)))
    contexts = (owner * 4 + batch.ops["slot"])[chosen]
    kinds = batch.ops["kind"][chosen][np.argsort(contexts, kind="stable")]  # those of one context behind each other
    assert (kinds[0::2] == OpKind.SETIV).all()
    assert (kinds[1::2] == OpKind.TAG).all()
