# SPDX-License-Identifier: Apache-2.0
"""Twenty planted faults: one finding each, the same for every seed and lane, shrunk to the exact least case."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from planting import EMULATED, NATIVE
from shrinking import AEAD_FAULTS, DIRTY, FAULTS, LEAST, TWO, Sown, is_small, lines, sow

from crosslane.data import data_root
from crosslane.findings.formats import case_to_json
from crosslane.findings.gather import Suspect, faults_of, raw_departures
from crosslane.findings.judge import Judge
from crosslane.findings.measure import Measured, measure_folder
from crosslane.findings.shrink import shrink
from crosslane.findings.size import measure
from crosslane.isa import host_arch
from crosslane.plan import RunPlan, Selection, make_plans
from crosslane.registry import load_registry

pytestmark = pytest.mark.xdist_group("findings_shrink")

EMULATED_TOO = ("carry_64", "cbc_in_place", "dirty", "reads_tail", "register", "xts_in_place")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sow(tmp_path_factory.mktemp("sown"), [*FAULTS, *AEAD_FAULTS, DIRTY, TWO])


@pytest.fixture(scope="module")
def natively(folder: Path) -> dict[str, Measured]:
    return {item.driver: item for item in measure_folder(folder, [NATIVE], ["a test of shrinking"], num_batches=1)}


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Measured]:
    some = sow(tmp_path_factory.mktemp("some"), [plant for plant in [*FAULTS, DIRTY] if plant.name in EMULATED_TOO])
    return {item.driver: item for item in measure_folder(some, [EMULATED], ["another seed"], num_batches=1)}


def expected_class(plant: Sown, arch: str) -> str:
    register = {"x86_64": ("rbx", "r12"), "aarch64": ("x19", "x20")}[arch][plant.name == "register_at_8"]
    return plant.fault_class.format(register)


@pytest.mark.parametrize("plant", [*FAULTS, *AEAD_FAULTS, DIRTY], ids=lambda plant: plant.name)
def test_a_fault_is_one_finding_with_the_least_case(natively: dict[str, Measured], plant: Sown) -> None:
    found = natively[plant.driver]
    assert [(key.symptom, key.fault_class) for key in found.keys] == [
        (plant.symptom, expected_class(plant, host_arch()))
    ]
    (case,) = found.cases
    assert lines(case) == LEAST[plant.name]
    assert found.cpu_s < 10


@pytest.mark.parametrize("name", EMULATED_TOO)
def test_an_emulator_comes_to_the_same(emulated: dict[str, Measured], natively: dict[str, Measured], name: str) -> None:
    plant = next(item for item in [*FAULTS, DIRTY] if item.name == name)
    found = emulated[plant.driver]
    arch = "aarch64" if host_arch() == "x86_64" else "x86_64"
    assert [key.fault_class for key in found.keys] == [expected_class(plant, arch)]
    assert found.cases == natively[plant.driver].cases
    if not plant.registers:
        assert [key.id for key in found.keys] == [key.id for key in natively[plant.driver].keys]
    assert found.cpu_s < 30


def test_two_faults_of_one_implementation_are_two_findings(natively: dict[str, Measured]) -> None:
    found = natively[TWO.driver]
    assert {key.fault_class for key in found.keys} == {"in_place", "tail"}
    assert len({key.id for key in found.keys}) == 2


def plans(folder: Path, plant: Sown) -> RunPlan:
    registry = load_registry(data_root(), [folder])
    return make_plans(registry, Selection((f"{plant.algorithm}/{plant.driver}",), (NATIVE,)))


@pytest.mark.parametrize("name", ["carry_64", "xts_in_place", "writes_tail"])
def test_shrinking_is_deterministic_idempotent_and_never_larger(folder: Path, name: str) -> None:
    plant = next(item for item in FAULTS if item.name == name)
    (plan,) = plans(folder, plant).algorithms
    suspect = Suspect(plan.manifest, plan.oracle, plan.cells[0].station, host_arch())
    with Judge(plan.manifest, suspect.oracle, suspect.subject) as judge:
        raws = raw_departures(judge, 0, 256)
        first = faults_of(judge, suspect, raws)
        assert faults_of(judge, suspect, list(reversed(raws))) == first
        (fault,) = first
        assert all(measure(fault.case)[:5] <= measure(raw.case)[:5] for raw in raws)
        again = shrink(judge, fault.case, fault.departure)
        assert again.case == fault.case
        assert again.departure.key == fault.departure.key


def test_the_least_cases_are_small(natively: dict[str, Measured]) -> None:
    """At most two blocks beyond what the fault needs and one layout feature, in 19 of 20."""
    assert sum(is_small(plant, case) for plant in FAULTS for case in natively[plant.driver].cases) >= 19


def test_a_round_of_candidates_takes_one_batch_each(folder: Path) -> None:
    plant = FAULTS[0]
    (plan,) = plans(folder, plant).algorithms
    with Judge(plan.manifest, plan.oracle, plan.cells[0].station) as judge:
        raw = raw_departures(judge, 0, 256)[0]
        begun = time.process_time()
        found = shrink(judge, raw.case, raw.departure)
        assert found.num_tried > 100
        assert time.process_time() - begun < 10
        assert "update" in case_to_json(found.case)
