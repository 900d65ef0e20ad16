# SPDX-License-Identifier: Apache-2.0
"""What Hypothesis draws lies in the domain and shrinks to the least case; a pair finds, shows and keeps a fault."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from planting import CTR, EMULATED, NATIVE, Plant, lay_out

from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.findings.case import Case, Operation, in_turn
from crosslane.findings.domain import may_be_tried
from crosslane.findings.judge import normalised
from crosslane.findings.store import Store
from crosslane.manifest import Manifest, manifest_within
from crosslane.names import parse_algorithm
from crosslane.plan import DEFAULT_SEED, manifest_of
from crosslane.registry import cells, load_registry
from crosslane.strategies import Departed, Pair, load_profile, machine_for, manifest_named, open_pair, sessions, spread
from crosslane.wire import Flag, OpKind

QUIET = settings(derandomize=True, database=None, deadline=None, max_examples=30)
SEARCH = settings(derandomize=True, database=None, deadline=None, max_examples=5000)
REGISTRY = load_registry(data_root())
MODES = sorted(mode.name for mode in REGISTRY.modes)
DOMAINS = [(provider, domain) for provider in REGISTRY.providers for domain in provider.domains]
PLANTS = (Plant("short_wrap", fault="short_wrap"), Plant("honest"), Plant("iv_kept", fault="iv_not_written_back"))


@pytest.mark.parametrize("mode", MODES)
def test_a_session_of_each_mode_is_in_its_normal_form(mode: str) -> None:
    manifest = manifest_named(f"{mode}(aes)")

    @QUIET
    @given(sessions(manifest))
    def holds(case: Case) -> None:
        assert case == normalised(case, manifest)
        assert may_be_tried(in_turn(case), manifest, bounded=False)
        assert case.operations[0].kind is OpKind.SETKEY

    holds()


def _bounded() -> list[tuple[str, Manifest]]:
    found = {}
    for provider, domain in DOMAINS:
        algorithm = parse_algorithm(f"{domain.mode}({domain.cipher})")
        manifest = manifest_within(manifest_of(REGISTRY, algorithm, DEFAULT_SEED), domain)
        found[provider.name, domain.mode] = manifest
    return [(f"{provider}-{mode}", manifest) for (provider, mode), manifest in sorted(found.items())]


@pytest.mark.parametrize("manifest", [pytest.param(manifest, id=name) for name, manifest in _bounded()])
def test_a_session_of_a_library_lies_in_its_domain(manifest: Manifest) -> None:
    @settings(QUIET, max_examples=10)
    @given(sessions(manifest))
    def holds(case: Case) -> None:
        assert may_be_tried(in_turn(case), manifest, bounded=True)

    holds()


def _departs(case: Case) -> bool:
    """Whether a call of 17 to 31 bytes begins at a counter whose low 64 bits are all ones."""
    iv = b""
    for item in case.operations:
        if item.kind is OpKind.SETIV:
            iv = item.data
        elif item.kind is OpKind.UPDATE:
            if 17 <= item.in_len <= 31 and iv[8:] == b"\xff" * 8:
                return True
            iv = b""
    return False


def _least(iv: bytes) -> tuple[Operation, ...]:
    return (
        Operation(OpKind.SETKEY, bytes(16)),
        Operation(OpKind.SETIV, iv, aux=(0, 17)),
        Operation(OpKind.UPDATE, bytes(17), flags=Flag.OBSERVE_IV | Flag.LAST, out_len=33),
    )


WRAPS = bytes(8) + b"\xff" * 8


def seeded() -> Random:
    """The same search in every run."""
    return Random(1)  # noqa: S311 - nothing secret comes of it


def test_a_condition_on_length_and_counter_shrinks_to_its_least_case() -> None:
    manifest = manifest_named(CTR)
    found = find(sessions(manifest, max_messages=1), _departs, settings=SEARCH, random=seeded())
    assert (found.operations, found.decrypting, found.policy, found.tag_len) == (_least(WRAPS), False, 0, 0)


@pytest.mark.parametrize(
    ("wanted", "kinds"),
    [
        (OpKind.CLONE, ["setkey", "setiv", "clone"]),
        (OpKind.REINIT, ["setkey", "reinit", "setiv"]),
        (OpKind.FINAL, ["setkey", "setiv", "final"]),
    ],
)
def test_an_operation_shrinks_to_what_it_needs(wanted: OpKind, kinds: list[str]) -> None:
    found = find(
        sessions(CTR),
        lambda case: any(item.kind is wanted for item in case.operations),
        settings=SEARCH,
        random=seeded(),
    )
    assert [item.kind.name.lower() for item in found.operations] == kinds


def test_contexts_that_take_turns_shrink_to_two_short_messages() -> None:
    def mixed(case: Case) -> bool:
        slots = [item.slot // 2 for item in case.operations]
        return sum(a != b for a, b in pairwise(slots)) > 1

    found = find(sessions(CTR), mixed, settings=SEARCH)
    assert sum(item.in_len for item in found.operations if item.kind is OpKind.UPDATE) == 0
    assert found.num_messages == 2


def test_refusals_are_drawn_where_they_are_asked_for() -> None:
    def is_refused(case: Case) -> bool:
        return any(item.kind is OpKind.SETKEY and len(item.data) != 16 for item in case.operations)

    find(sessions(CTR, refusals=True), is_refused, settings=SEARCH)

    @QUIET
    @given(sessions(CTR))
    def never(case: Case) -> None:
        assert not is_refused(case)

    never()


@pytest.fixture(scope="module")
def impls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("impls"), PLANTS)


@pytest.fixture
def planted(impls: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pair]:
    name, lane = request.param
    cell = f"{CTR}/planted-{name}@{lane}"
    with open_pair(cell, impls=[impls], findings=tmp_path / "findings") as pair:
        assert not pair.declined
        yield pair


@pytest.mark.parametrize("planted", [("short_wrap", NATIVE)], indirect=True)
def test_a_planted_fault_is_found_shrinks_and_is_kept(planted: Pair, tmp_path: Path) -> None:
    seen: list[Case] = []

    @settings(SEARCH, max_examples=1500)
    @given(sessions(planted.manifest, max_messages=1))
    def agree(case: Case) -> None:
        seen.append(case)
        planted.check(case)

    with pytest.raises(Departed, match=r"ctr\(sm4\)/planted-short_wrap@.*: byte 16 of the output after update 1"):
        agree()
    assert seen[-1].operations == _least(WRAPS)
    planted.close()
    [kept] = Store(tmp_path / "findings").read_all()[0]
    assert (kept.record.key.symptom, kept.record.state) == ("output", "open")
    assert kept.record.from_case.startswith("hypothesis:")
    assert [record.id for record in planted.kept.records] == [kept.record.id]


@pytest.mark.parametrize("planted", [("honest", NATIVE), ("honest", EMULATED)], indirect=True)
def test_an_honest_subject_agrees_and_nothing_is_kept(planted: Pair, tmp_path: Path) -> None:
    @QUIET
    @given(sessions(planted.manifest, refusals=True))
    def agree(case: Case) -> None:
        planted.check(case)

    agree()
    run_state_machine_as_test(machine_for(planted), settings=settings(QUIET, max_examples=10, stateful_step_count=10))
    assert planted.num_compared > 40
    planted.close()
    assert not (tmp_path / "findings").exists()


@pytest.mark.parametrize("planted", [("iv_kept", NATIVE), ("iv_kept", EMULATED)], indirect=True)
def test_the_machine_finds_a_planted_fault(planted: Pair, tmp_path: Path) -> None:
    found = settings(SEARCH, max_examples=100, stateful_step_count=6, phases=[Phase.generate])  # keeping shrinks
    with pytest.raises(Departed, match="planted-iv_kept"):
        run_state_machine_as_test(machine_for(planted), settings=found)
    planted.close()
    [kept] = Store(tmp_path / "findings").read_all()[0]
    assert [item.kind.name for item in kept.case.operations] == ["SETKEY", "SETIV", "UPDATE"]


def test_a_cell_that_is_none_is_said() -> None:
    with pytest.raises(BadInput, match="no lane of this host"):
        open_pair(f"{CTR}/sm4-generic@nowhere")
    with pytest.raises(BadInput, match="is no single cell: give one whole id"):
        open_pair(f"*(sm4)/sm4-generic@{NATIVE}")
    with pytest.raises(BadInput):
        manifest_named("ctr(rot13)")


def test_profiles_are_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    before = settings()
    try:
        chosen = load_profile("ci")
        assert (chosen.derandomize, chosen.database, chosen.deadline) == (True, None, None)
        monkeypatch.setenv("CROSSLANE_HYPOTHESIS_PROFILE", "nightly")
        assert load_profile().max_examples > 10 * chosen.max_examples
        monkeypatch.setenv("CROSSLANE_HYPOTHESIS_PROFILE", "weekly")
        with pytest.raises(BadInput, match="is 'weekly', allowed are ci, nightly; correct it"):
            load_profile()
    finally:
        settings.register_profile("before", before)
        settings.load_profile("before")


def test_a_short_run_has_every_driver_and_every_mode() -> None:
    every = [cell for cell in cells(REGISTRY) if cell.lane == NATIVE]
    found = spread(every, 2)
    assert found == spread(reversed(every), 2)
    assert Counter(cell.driver for cell in found) == dict.fromkeys({cell.driver for cell in every}, 2)
    assert {cell.algorithm.mode for cell in found} == {cell.algorithm.mode for cell in every}
    assert [str(cell) for cell in spread(every[:1], 2)] == [str(every[0])]


@pytest.mark.parametrize("profile", ["ci", "nightly"])
def test_the_suites_own_tests_have_every_driver_natively(profile: str) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "fuzz"]
    environment = {**os.environ, "CROSSLANE_HYPOTHESIS_PROFILE": profile}
    done = subprocess.run(command, cwd=data_root(), env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("test_drivers.py", "test_machine.py"):
        ids = re.findall(rf"^fuzz/{name}::\w+\[(.*)/(.*)@(.*)\]$", done.stdout, re.MULTILINE)
        natively = [(algorithm, driver) for algorithm, driver, lane in ids if lane == NATIVE]
        own = {item.driver for item in REGISTRY.implementations}
        every = [cell for cell in cells(REGISTRY) if cell.lane == NATIVE and cell.driver in own]
        assert {driver for _, driver in natively} == {cell.driver for cell in every}
        assert (len(natively) == len(every)) is (profile == "nightly")
        assert 5 <= len({driver for _, driver, lane in ids if lane != NATIVE}) < len(every)


def test_the_same_examples_are_drawn_every_time() -> None:
    def drawn() -> list[Case]:
        cases: list[Case] = []

        @QUIET
        @given(sessions("gcm(aes)"))
        def collect(case: Case) -> None:
            cases.append(case)

        collect()
        return cases

    assert drawn() == drawn()


def test_without_hypothesis_the_extra_is_named() -> None:
    program = "import sys; sys.modules['hypothesis'] = None; import crosslane.strategies"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (
        "crosslane.strategies needs Hypothesis: install it with `pip install '.[test]'` in a clone of crosslane"
        in done.stderr
    )


@given(st.sampled_from(MODES), st.data())
def test_a_tag_is_whole_or_wrong_in_one_bit(mode: str, data: st.DataObject) -> None:
    case = data.draw(sessions(f"{mode}(aes)", max_messages=1))
    for item in case.operations:
        if item.kind is OpKind.TAG and case.decrypting:
            assert len(item.data) == case.tag_len
            assert int.from_bytes(item.data, "big").bit_count() <= 1


HOW_TO = data_root() / "docs" / "how-to" / "test-with-hypothesis.md"


@pytest.mark.parametrize(("fault", "status"), [("honest", 0), ("iv_not_written_back", 1)])
def test_the_code_of_the_how_to_runs(tmp_path: Path, fault: str, status: int) -> None:
    folder = lay_out(tmp_path / "mine", [Plant("mine", fault=fault)]) / "sm4" / "mine" / "impl.toml"
    folder.write_text(folder.read_text().replace("planted-mine", "sm4-mine"))
    blocks = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", HOW_TO.read_text(), re.DOTALL)
    assert [name for name, _ in blocks] == ["test_mine.py", "test_mine_contexts.py"]
    for name, text in blocks:
        (tmp_path / name).write_text(text.replace("x86_64_native", NATIVE))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(name for name, _ in blocks)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout
    assert (tmp_path / "findings").exists() is bool(status)
    if status:
        assert "sm4-mine@" in done.stdout
        assert "of the iv after update 1 of message 1" in done.stdout
