# SPDX-License-Identifier: Apache-2.0
"""What a run will do: selections and what is wrong with them, plans of our own cells and of libraries, stations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from planting import EMULATED, HOST, NATIVE

from crosslane import linking, plan, sandbox, stations, toolchain, vectors
from crosslane.data import data_root
from crosslane.errors import BadInput, HarnessFault, MissingTool
from crosslane.importers.imported import Imported, merged, whole_file
from crosslane.lanes import lane_named
from crosslane.manifest import manifest_within
from crosslane.model import Registry
from crosslane.names import parse_algorithm
from crosslane.plan import AlgorithmPlan, Counts, Selection, make_plans, selected_cells
from crosslane.registry import implementation_named, load_registry
from crosslane.sandbox import SandboxState
from crosslane.stations import Stations
from crosslane.toolchain import Toolchain

GENERIC = f"ctr(aes)/aes-generic@{NATIVE}"
OPENSSL = f"ctr(aes)/openssl@{NATIVE}"
PROVIDERS = load_registry(data_root()).providers
LIBRARIES = tuple(provider.name for provider in PROVIDERS if provider.domain("ctr", "aes"))
COUNTS = Counts(native=800, emulated=400, other=80, provider=240)

pytestmark = pytest.mark.xdist_group("plan")


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(data_root())


# --- selections ---


def test_without_a_selection_there_is_all_that_the_gate_wants(registry: Registry) -> None:
    chosen, lanes = selected_cells(registry, Selection())
    assert all(lane.gate for lane in lanes)
    assert {cell.lane for cell in chosen} == {lane.name for lane in lanes}
    assert set(LIBRARIES) < {cell.driver for cell in chosen}


def test_lanes_are_those_that_are_named_once_and_in_order(registry: Registry) -> None:
    chosen, lanes = selected_cells(registry, Selection(lanes=(EMULATED, NATIVE, EMULATED)))
    assert [lane.name for lane in lanes] == [EMULATED, NATIVE]
    assert {cell.lane for cell in chosen} == {EMULATED, NATIVE}


def test_patterns_leave_no_lane_that_has_no_cell(registry: Registry) -> None:
    chosen, lanes = selected_cells(registry, Selection((GENERIC, OPENSSL)))
    assert [str(cell) for cell in chosen] == [GENERIC, OPENSSL]
    assert [lane.name for lane in lanes] == [NATIVE]


@pytest.mark.parametrize("without", [("openssl",), LIBRARIES, ("openssl", "openssl")])
def test_a_library_that_is_left_out_has_no_cell(registry: Registry, without: tuple[str, ...]) -> None:
    every, _ = selected_cells(registry, Selection())
    chosen, _ = selected_cells(registry, Selection(without=without))
    assert chosen == [cell for cell in every if cell.driver not in without]
    assert len(chosen) < len(every)


def test_a_python_library_that_is_left_out_takes_no_cell_away(registry: Registry) -> None:
    assert selected_cells(registry, Selection(without=("cryptography",))) == selected_cells(registry, Selection())


@pytest.mark.parametrize(
    ("selection", "sentence"),
    [
        (
            Selection(without=("opensssl",)),
            (
                "there is no library 'opensssl' to leave out: names are "
                f"{', '.join(provider.name for provider in PROVIDERS)}, cryptography, pycryptodome; correct the name"
            ),
        ),
        (Selection(without=("openssl", "aes-generic")), "there is no library 'aes-generic' to leave out"),
        (Selection(lanes=("x86_64_nativ",)), "'x86_64_nativ' is no lane of this host: lanes are aarch64_"),
        (Selection(("ctr(ase)",)), "the pattern 'ctr(ase)' matches nothing; nearest are ctr(aes)"),
        (Selection((GENERIC, "nothing-*")), "the pattern 'nothing-*' matches nothing"),
        (
            Selection((GENERIC,), (EMULATED,)),
            f"the pattern {GENERIC!r} matches cells such as {GENERIC}, but none in the lanes {EMULATED}: name its lane",
        ),
        (Selection((OPENSSL,), without=("openssl",)), f"{OPENSSL!r} matches only cells that --without openssl"),
        (Selection((OPENSSL,), (EMULATED,)), f"matches cells such as {OPENSSL}, but none in the lanes {EMULATED}"),
    ],
)  # fmt: skip
def test_a_selection_that_means_nothing_is_one_sentence(
    registry: Registry, selection: Selection, sentence: str
) -> None:
    with pytest.raises(BadInput) as raised:
        selected_cells(registry, selection)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


# --- plans ---


def plans(registry: Registry, *patterns: str, **more: Any) -> dict[str, AlgorithmPlan]:
    selection = Selection(patterns, without=more.pop("without", ()))
    made = make_plans(registry, selection, counts=COUNTS, **more).algorithms
    assert len({item.name for item in made}) == len(made)
    return {item.name: item for item in made}


def test_each_library_has_a_plan_within_its_domain(registry: Registry) -> None:
    made = plans(registry, f"ctr(aes)/*@{NATIVE}")
    assert set(made) == {"ctr(aes)", *(f"ctr(aes) within {name}" for name in LIBRARIES)}
    own = made.pop("ctr(aes)")
    assert not own.bounded
    assert {cell.provider for cell in own.cells} == {False}
    for name, item in made.items():
        (provider,) = (item for item in registry.providers if item.name == name.rpartition(" ")[2])
        domain = provider.domain("ctr", "aes")
        assert domain is not None
        assert item.bounded
        assert item.manifest == manifest_within(own.manifest, domain) != own.manifest
        cell, *backends = item.cells
        assert {item.cell.driver for item in backends} <= {cell.cell.driver}
        assert all(item.cell.backend for item in backends)
        assert (str(cell.cell), cell.provider, cell.comparisons) == (f"ctr(aes)/{provider.name}@{NATIVE}", True, 240)
        assert (item.oracle, item.blocks, item.reference) == (own.oracle, own.blocks, own.reference)
    assert len({item.manifest.digest for item in (own, *made.values())}) >= 4


def test_libraries_that_are_installed_vote(registry: Registry) -> None:
    item = plans(registry, GENERIC)["ctr(aes)"]
    assert [member.name for member in item.quorum] == list(LIBRARIES)
    assert all(member.manifest != item.manifest for member in item.quorum)
    some = plans(registry, GENERIC, without=("libgcrypt", "pycryptodome"))["ctr(aes)"]
    assert [member.name for member in some.quorum] == [name for name in LIBRARIES if name != "libgcrypt"]
    assert some.without == ("libgcrypt", "pycryptodome")
    assert plans(registry, f"lrw(aes)/aes-generic@{NATIVE}")["lrw(aes)"].quorum == ()


def test_cells_get_the_counts_of_their_lanes(registry: Registry) -> None:
    other = f"ctr(aes)/aes-generic@{HOST}_qemu_max"
    cells = plans(registry, GENERIC, f"ctr(aes)/aes-generic@{EMULATED}", other)["ctr(aes)"].cells
    assert {cell.cell.lane: (cell.comparisons, cell.native, cell.full) for cell in cells} == {
        NATIVE: (800, True, True), EMULATED: (400, False, True), f"{HOST}_qemu_max": (80, False, False),
    }  # fmt: skip


def test_plans_get_the_vectors_of_their_algorithm(registry: Registry) -> None:
    files, _ = vectors.all_vectors(registry, imported=False)
    made = plans(registry, GENERIC, OPENSSL, vectors=files)
    for item in made.values():
        assert item.vectors == tuple(file for file in files if file.algorithm == "ctr(aes)")
        assert item.vectors


@pytest.mark.parametrize("seed", ["", " \t"])
def test_an_empty_seed_is_refused(registry: Registry, seed: str) -> None:
    with pytest.raises(BadInput, match="the seed is empty; give any sentence with --seed, or leave the option out"):
        plans(registry, GENERIC, seed=seed)


def test_the_seed_decides_the_manifest(registry: Registry) -> None:
    first, again, other = (plans(registry, GENERIC, seed=seed)["ctr(aes)"].manifest for seed in ("a", "a", "b"))
    assert first == again
    assert other == replace(first, seed="b")
    assert first == plan.manifest_of(registry, parse_algorithm("ctr(aes)"), "a")


def without_header(found: Toolchain, name: str, **more: Any) -> Toolchain:
    """As on a machine that lacks the development package of OpenSSL."""
    if name == "openssl":
        more["headers"] = ("openssl/there_is_no_such_header.h",)
    return toolchain.find_library(found, name, **more)


def test_a_missing_library_names_its_package_where_its_cells_are_wanted(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linking, "find_library", without_header)
    for cell in plans(registry, OPENSSL)["ctr(aes) within openssl"].cells:
        said = cell.problem
    assert said == (
        "the header openssl/there_is_no_such_header.h is not installed, which the provider openssl needs; install the "
        "packages libssl-dev (as root: apt-get install libssl-dev), or leave it out with --without openssl"
    )
    rest = [name for name in LIBRARIES if name != "openssl"]
    assert [member.name for member in plans(registry, GENERIC)["ctr(aes)"].quorum] == rest
    assert set(plans(registry, f"ctr(aes)/*@{NATIVE}", without=("openssl",))) == {
        "ctr(aes)", *(f"ctr(aes) within {name}" for name in rest)
    }  # fmt: skip


def test_a_missing_python_library_is_said_before_anything_runs(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_root: Path, without: tuple[str, ...]) -> tuple[()]:
        if "pycryptodome" in without:
            return ()
        raise MissingTool("install pycryptodome")

    monkeypatch.setattr(plan, "load_oracles", load)
    with pytest.raises(MissingTool, match="install pycryptodome"):
        plans(registry, GENERIC)
    assert set(plans(registry, GENERIC, without=("pycryptodome",))) == {"ctr(aes)"}


# --- stations ---


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that refuses a layer of the sandbox."""
    granted = SandboxState(seccomp=True, landlock=0, no_new_privs=True)
    monkeypatch.setattr(sandbox, "probe", lambda _: granted)


def test_a_refused_layer_is_told_or_an_error_as_is_wanted(registry: Registry, refused: None) -> None:
    assert Stations(registry, {}, require_sandbox=False).missing == ("landlock",)
    with pytest.raises(HarnessFault, match=r"refuses the sandbox layers landlock and --require-sandbox was given: run"):
        Stations(registry, {}, require_sandbox=True)


@pytest.mark.parametrize(
    ("arch", "features", "bits"),
    [
        ("x86_64", (), 0), ("x86_64", ("ssse3",), 1), ("x86_64", ("aes", "avx2"), 0b100100),
        ("aarch64", ("neon",), 1 << 32), ("aarch64", ("aes", "sm4"), 0b1010 << 32),
    ],
)  # fmt: skip
def test_hidden_features_are_the_bits_of_the_contract(
    registry: Registry, arch: str, features: tuple[str, ...], bits: int
) -> None:
    lane = replace(lane_named(registry.lanes, NATIVE), arch=arch, hides=features)
    program = Path(__file__)
    every = Stations(registry, {(lane.name, "aes-generic"): program}, require_sandbox=False)
    station = every.of(implementation_named(registry, "aes-generic"), lane, "ctr")
    assert (station.symbol, station.mode, station.cipher, station.hide) == ("aes_generic", "ctr", "aes", bits)
    assert str(program) in station.command


def test_the_memory_limit_is_none_where_a_sanitizer_reserves_it_and_more_for_narrow_emulation(
    registry: Registry,
) -> None:
    limits = {lane.name: stations.memory_limit(lane) for lane in registry.lanes}
    assert limits[NATIVE] == limits[EMULATED] == 4 << 30
    assert {limits[lane.name] for lane in registry.lanes if lane.sanitizer == "address"} == {None}
    assert limits["armhf_qemu"] == limits["i386_qemu"] == 9 << 30


# --- vectors ---


def test_own_vectors_alone_are_those_of_corpora() -> None:
    files, notes = vectors.all_vectors(load_registry(data_root()), imported=False)
    assert files
    assert all(file.path.is_relative_to(data_root() / "corpora" / "vectors") for file in files)
    assert notes == ("only the vectors of corpora were judged by: leave --vectors away for all",)


def test_imported_vectors_come_behind_our_own_with_notes_on_what_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, _ = vectors.all_vectors(load_registry(data_root()), imported=False)
    more: Imported = merged(
        [
            Imported((own[0],), ()),
            whole_file(Path("some-package"), "not installed; install some-package, which crosslane[vectors] brings"),
            whole_file(Path("some.rsp"), "prose, no vectors"),
        ]
    )
    monkeypatch.setattr(vectors, "imported_files", lambda: more)
    files, notes = vectors.all_vectors(load_registry(data_root()))
    assert files == (*own, own[0])
    assert notes == ("vectors of some-package: not installed; install some-package, which crosslane[vectors] brings",)


def test_a_damaged_corpus_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no such folder of vectors"):
        vectors.all_vectors(replace(load_registry(data_root()), root=tmp_path), imported=False)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"xcbc(aes)"', '"xcbd(aes)"', "there is no algorithm xcbd"),
        ('"key": "000102030405060708090a0b0c0d0e0f"', '"key": "000102030405060708090a0b0c0d0e"', "has 15 bytes"),
    ],
)
def test_a_vector_that_no_session_can_hold_is_bad_input(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    folder = tmp_path / "corpora" / "vectors" / "rfc3566"
    folder.mkdir(parents=True)
    text = (data_root() / "corpora" / "vectors" / "rfc3566" / "xcbc.json").read_text()
    assert old in text
    (folder / "xcbc.json").write_text(text.replace(old, new, 1))
    with pytest.raises(BadInput, match=sentence):
        vectors.all_vectors(replace(load_registry(data_root()), root=tmp_path), imported=False)
