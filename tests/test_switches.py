# SPDX-License-Identifier: Apache-2.0
"""Backends: cells of their own, switches that are seen to work, and those that change nothing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from crosslane import switches
from crosslane.build import build_launcher
from crosslane.checks import judge_all, load_checks
from crosslane.conduct import conduct
from crosslane.data import data_root
from crosslane.errors import BadInput, MissingTool
from crosslane.instances import instance_of, instances, unreached_backends
from crosslane.isa import host_arch
from crosslane.libraries import library_rows
from crosslane.lint import lint
from crosslane.loading import library_environment
from crosslane.model import Algorithm, Backend, Cell, Instance, Registry, Sysroot
from crosslane.plan import Counts, RunPlan, Selection, make_plans, manifest_of, selected_cells
from crosslane.registry import load_registry
from crosslane.switches import Effect, Prober, effect_text, messages_of
from crosslane.verdicts import cell_verdict

ARCH = host_arch()
NATIVE = f"{ARCH}_native"
LIBGCRYPT = Path("impls/providers/libgcrypt")
PLAIN = f"ctr(aes)/libgcrypt:plain@{NATIVE}"
COUNTS = Counts.each(64)

pytestmark = pytest.mark.xdist_group("switches")


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(data_root())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("impls", "ci", "conformance"):
        shutil.copytree(data_root() / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def with_backend(registry: Registry, name: str, **changes: object) -> Instance:
    """The system's libgcrypt by a backend of the test's own."""
    usual = next(item for item in instances(registry) if item.name == "libgcrypt" and item.backend is None)
    return replace(usual, backend=Backend(name, (ARCH,), "for a test", **changes))  # type: ignore[arg-type]


def effects(registry: Registry, instance: Instance, *names: tuple[str, str]) -> dict[str, Effect]:
    algorithms = [Algorithm(mode, cipher) for mode, cipher in names]
    asked = {str(item): messages_of(manifest_of(registry, item, "")) for item in algorithms}
    prober = Prober(registry, build_launcher(registry.root))
    return {name: effect for (_, name), effect in prober.effects({instance: asked}).items()}


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known of any switch."""
    monkeypatch.setattr(switches, "_FORMAT", f"a test in {tmp_path}")


# ---- what a switch is seen to do ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("cold")
def test_a_switch_works_for_some_algorithms_and_not_for_others(registry: Registry) -> None:
    """CAST5 has one code path in libgcrypt, AES one for each generation of the CPU."""
    instance = with_backend(registry, "plain", environment=("CROSSLANE_HIDE_FEATURES=all",))
    found = effects(registry, instance, ("ctr", "aes"), ("ecb", "cast5"))
    assert found["ctr(aes)"].unit == "functions"
    assert found["ctr(aes)"].num_changed > 3
    assert found["ecb(cast5)"].unit == "instructions"
    assert found["ecb(cast5)"].num_changed == 0
    assert found["ecb(cast5)"].without == found["ecb(cast5)"].with_it > 10_000


@pytest.mark.parametrize("name", ["botan", "libgcrypt", "nettle", "openssl"])
def test_each_library_s_switch_to_its_plain_code_works(registry: Registry, name: str) -> None:
    (instance,) = [
        item for item in instances(registry)
        if (item.name, item.lane.name) == (name, NATIVE) and item.backend and item.backend.name == "plain"
    ]  # fmt: skip
    assert effects(registry, instance, ("ecb", "aes"))["ecb(aes)"].num_changed > 0


@pytest.mark.usefixtures("cold")
def test_a_switch_that_nothing_heeds_is_seen_to_change_nothing(registry: Registry) -> None:
    instance = with_backend(registry, "planted", environment=("LIBGCRYPT_NO_SUCH_SWITCH=1",))
    found = effects(registry, instance, ("ctr", "aes"))
    assert not found["ctr(aes)"].effective


@pytest.mark.usefixtures("cold")
def test_what_was_seen_is_kept_until_the_switch_is_another(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Instance] = []
    run = switches._run

    def counted(instance: Instance, command: Sequence[str]) -> str:
        runs.append(instance)
        return run(instance, command)

    monkeypatch.setattr(switches, "_run", counted)
    instance = with_backend(registry, "plain", environment=("CROSSLANE_HIDE_FEATURES=all",))
    first = effects(registry, instance, ("ctr", "aes"))
    assert len(runs) == 3  # with the switch, without it, and with a variable that means nothing
    assert effects(registry, instance, ("ctr", "aes")) == first
    assert len(runs) == 3
    other = with_backend(registry, "plain", environment=("CROSSLANE_HIDE_FEATURES=",))
    assert not effects(registry, other, ("ctr", "aes"))["ctr(aes)"].effective
    assert len(runs) > 3


@pytest.mark.parametrize(
    "kept",
    [
        "",
        "{}",
        "[]",
        '{"unit":"pages","without":1,"with_it":1,"num_changed":1}',
        '{"unit":"functions","without":1,"with_it":1,"num_changed":1,"absent":1}',
    ],
)
def test_what_was_kept_and_is_damaged_is_seen_again(tmp_path: Path, kept: str) -> None:
    path = tmp_path / "switch.json"
    path.write_text(kept)
    assert switches._read(path) is None


@pytest.mark.usefixtures("cold")
def test_functions_that_nothing_lists_are_no_proof(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library without a table of its functions shows none: its instructions are counted."""
    entered = Prober._entered

    def nothing(self: Prober, instance: Instance, messages: Sequence[str]) -> switches._Trace:
        seen = entered(self, instance, messages)
        return replace(seen, num=0, addresses=seen.addresses[:0])

    monkeypatch.setattr(Prober, "_entered", nothing)
    instance = with_backend(registry, "planted", environment=("LIBGCRYPT_NO_SUCH_SWITCH=1",))
    found = effects(registry, instance, ("ecb", "cast5"))["ecb(cast5)"]
    assert (found.unit, found.num_changed, found.absent) == ("instructions", 0, False)
    assert found.without > 10_000
    assert not found.effective


@pytest.mark.parametrize(
    ("answers", "absent"), [("absent\nabsent", True), ("ran\nabsent", False), ("ran\nentered 10\nran\nentered", False)]
)
def test_an_algorithm_is_absent_where_the_library_says_so(registry: Registry, answers: str, absent: bool) -> None:
    asked = ["ctr,aes,0", "ctr,aes,1"]
    assert switches._parsed(with_backend(registry, "plain"), asked, answers)[2] is absent
    assert Effect("functions", 0, 0, 0, absent=True).effective
    assert not Effect("functions", 0, 0, 0).effective
    assert effect_text(Backend("b", (ARCH,), "", ("A=1",)), Effect("functions", 0, 0, 0, absent=True)) == (
        "A=1 has nothing to change: the library lacks the algorithm"
    )


def test_a_process_that_cannot_be_looked_into_is_one_sentence(registry: Registry) -> None:
    with pytest.raises(MissingTool, match=r"whether a switch of libgcrypt in .* works cannot be seen \(status 3\)"):
        switches._run(with_backend(registry, "plain"), ["/bin/sh", "-c", "exit 3"])


def test_the_sentence_says_what_ran() -> None:
    backend = Backend("b", (ARCH,), "", ("A=1", "B=2"), "Nehalem")
    assert effect_text(backend, Effect("functions", 31, 35, 12)) == (
        "with A=1 B=2 -cpu Nehalem 35 functions are entered instead of 31, at 12 addresses in one of the two cases "
        "alone"
    )
    assert effect_text(backend, Effect("instructions", 4100, 4100, 0)) == (
        "A=1 B=2 -cpu Nehalem changes none of the 4,100 instructions that its messages take"
    )


# ---- cells --------------------------------------------------------------------------------------------------------


def test_a_backend_is_a_cell_with_its_variables_and_no_others(registry: Registry) -> None:
    instance = instance_of(registry, Cell(Algorithm("ctr", "aes"), "libgcrypt", NATIVE, "plain"))
    assert instance is not None
    assert library_environment(instance) == (("CROSSLANE_HIDE_FEATURES", "all"),)
    usual = instance_of(registry, Cell(Algorithm("ctr", "aes"), "libgcrypt", NATIVE))
    assert usual is not None
    assert library_environment(usual) == ()


def test_the_user_s_variables_choose_no_code(registry: Registry, monkeypatch: pytest.MonkeyPatch, cold: None) -> None:
    """What hides features from a library in the user's shell does not reach it."""
    _ = cold
    instance = with_backend(registry, "planted", environment=("LIBGCRYPT_NO_SUCH_SWITCH=1",))
    before = effects(registry, instance, ("ctr", "aes"))["ctr(aes)"]
    monkeypatch.setattr(switches, "_FORMAT", f"{switches._FORMAT} again")
    monkeypatch.setenv("CROSSLANE_HIDE_FEATURES", "all")
    assert effects(registry, instance, ("ctr", "aes"))["ctr(aes)"] == before


def test_a_shim_has_just_its_variables(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    start = subprocess.Popen

    def started(*command: object, **options: object) -> object:
        if "process_group" in options:  # a shim
            seen.append(options.get("env"))
        return start(*command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", started)
    monkeypatch.setenv("OPENSSL_ia32cap", "0")
    (plan,) = make_plans(registry, Selection((PLAIN,)), counts=COUNTS).algorithms
    seen.clear()
    conduct(plan)
    assert {tuple(item) for item in seen if isinstance(item, dict)} == {(), ("CROSSLANE_HIDE_FEATURES",)}
    assert all(isinstance(item, dict) for item in seen)


def test_backends_run_unasked_only_where_they_are_of_the_gate(registry: Registry) -> None:
    def chosen(*patterns: str, providers: tuple[str, ...] = ()) -> set[str]:
        cells, _ = selected_cells(registry, Selection(patterns, providers=providers))
        return {cell.backend for cell in cells if cell.driver == "libgcrypt"}

    every = {item.backend.name for item in instances(registry) if item.name == "libgcrypt" and item.backend}
    assert chosen() == {"", "plain"}
    assert chosen("libgcrypt") == {"", "plain"}
    assert chosen("libgcrypt:*") == every
    assert chosen(providers=("libgcrypt",)) == {"", *every}


def test_backends_belong_to_architectures(registry: Registry) -> None:
    found = [item for item in instances(registry) if item.backend is not None]
    assert found
    assert all(item.lane.arch in item.backend.arches for item in found if item.backend)
    sysroot = Sysroot("trixie", "aarch64", Path("/nowhere"), ("libgcrypt",), (), "")
    other = load_registry(data_root(), sysroots=[sysroot])
    of_sysroot = [item for item in instances(other) if item.sysroot and item.name == "libgcrypt"]
    names = {item.backend.name for item in of_sysroot if item.backend}
    assert {"plain", "neon"} <= names
    assert "noaesni" not in names


def test_a_cpu_model_is_a_backend_where_an_emulator_has_it(tree: Path) -> None:
    metadata = tree / LIBGCRYPT / "provider.toml"
    table = '\n[backend.old]\narches = ["x86_64", "aarch64"]\nwhat = "an old CPU"\ncpu = "{}"\n\n[cipher.cast5]'
    cpu = {"x86_64": "Nehalem", "aarch64": "cortex-a57"}[ARCH]
    metadata.write_text(metadata.read_text().replace("\n[cipher.cast5]", table.format(cpu)))
    found = [item for item in instances(load_registry(tree)) if item.backend and item.backend.name == "old"]
    assert [(item.lane.runner, item.lane.cpu, item.lane.arch) for item in found] == [("qemu", cpu, ARCH)]
    metadata.write_text(metadata.read_text().replace(cpu, "pentium"))
    assert not [item for item in instances(load_registry(tree)) if item.backend and item.backend.name == "old"]


def test_a_backend_that_no_emulator_runs_is_said_to_be_unreached(tree: Path) -> None:
    """The library of a sysroot for this machine runs natively: no CPU model is to be had there."""
    metadata = tree / LIBGCRYPT / "provider.toml"
    table = f'\n[backend.old]\narches = ["{ARCH}"]\nwhat = "an old CPU"\ncpu = "pentium"\n\n[cipher.cast5]'
    metadata.write_text(metadata.read_text().replace("\n[cipher.cast5]", table))
    registry = load_registry(tree)
    usual = next(item for item in instances(registry) if item.name == "libgcrypt" and item.backend is None)
    assert [backend.name for backend in unreached_backends(registry, usual)] == ["old"]
    aes = Algorithm("ctr", "aes")
    planned = SimpleNamespace(cells=[SimpleNamespace(cell=usual.cell("ctr", "aes"), provider=True)])
    rows = library_rows(registry, RunPlan((planned,), (), ()), [])  # type: ignore[arg-type]
    assert {(row.backend, row.verdict) for row in rows if row.algorithm == str(aes)} == {
        ("", "not promised"), ("old", "not promised"),
    }  # fmt: skip


def test_an_effective_backend_agrees_and_one_that_is_not_is_said_not_to_be(registry: Registry) -> None:
    idle = f"ecb(cast5)/libgcrypt:plain@{NATIVE}"
    made = make_plans(registry, Selection((PLAIN, idle)), counts=COUNTS)
    results = {cell.cell: cell for plan in made.algorithms for cell in conduct(plan).cells}
    checks = load_checks(data_root())
    for name, verdict in ((PLAIN, "agreed"), (idle, "not effective")):
        cell = replace(results[name], judgements=judge_all(checks, results[name]))
        assert cell_verdict(cell) == verdict
        assert not cell.red
    assert results[PLAIN].comparisons >= 64
    assert "functions are entered instead of" in results[PLAIN].switch
    assert (results[idle].comparisons, results[idle].wanted) == (0, 0)
    assert results[idle].reason.startswith("CROSSLANE_HIDE_FEATURES=all changes none of the ")


# ---- metadata -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[backend.plain]", "[backend.Plain]", r"\[backend.Plain\]: is no backend; allowed are tables whose names"),
        ("[backend.plain]", "[backend]\nplain = 1\n[backend.other]", r"\[backend.plain\]: is no backend"),
        ('arches = ["x86_64", "aarch64"]', 'arches = ["x86"]', r"\[backend.plain\]: arches has 'x86'; allowed are"),
        ('arches = ["x86_64", "aarch64"]', "arches = []", r"\[backend.plain\]: arches"),
        ('"CROSSLANE_HIDE_FEATURES=all"', '"CROSSLANE_HIDE_FEATURES"', "environment has 'CROSSLANE_HIDE_FEATURES'"),
        ('environment = ["CROSSLANE_HIDE_FEATURES=all"]\n', "", r"\[backend.plain\]: has no switch; give it"),
        ("gate = true", 'gate = "yes"', r"\[backend.plain\]: gate"),
        ("gate = true", "gate = true\nspeed = 1", r"\[backend.plain\]: unknown key 'speed'"),
        ("wipes = true", 'contexts = "stack"', "contexts has 'stack'; allowed are heap, own"),
    ],
)  # fmt: skip
def test_a_backend_of_another_kind_is_refused(tree: Path, old: str, new: str, message: str) -> None:
    path = tree / LIBGCRYPT / "provider.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(BadInput, match=message):
        load_registry(tree)


def test_lint_takes_the_backends_as_they_are() -> None:
    assert lint(data_root()) == []
