# SPDX-License-Identifier: Apache-2.0
"""Assembly behind C code, built for both x86-64 conventions: what it does not keep is found at its own calls."""

from __future__ import annotations

import pytest
from planting import HOST, NATIVE, Plant, Planted

from crosslane.data import data_root
from crosslane.registry import cells, load_registry
from crosslane.trials import is_trial

pytestmark = pytest.mark.skipif(HOST != "x86_64", reason="both conventions are x86-64's")

WIN64 = "x86_64_native_win64"
# The fault, its instructions, what is said, and whether System V forbids it too.
FAULTS = {
    "rdi": ("movl $1, %edi;", "does not keep rdi", False),
    "rsi": ("movl $1, %esi;", "does not keep rsi", False),
    "xmm6": ("pxor %xmm6, %xmm6;", "does not keep xmm6", False),
    "upper_half": ("movq %xmm15, %xmm15;", "does not keep xmm15", False),
    "swapped": ("xchgq %rbx, %r12;", "does not keep rbx, r12", True),
    "rsp": ("ret $16;", "does not keep rsp", True),
    "df": ("std;", "does not keep DF", True),
    "mxcsr": ("pushq $0x9f80; ldmxcsr (%rsp); popq %rcx;", "does not keep MXCSR", True),
    "x87": ("fld1;", "does not keep x87 stack", True),
}


def asm(name: str, leave: str = "") -> Plant:
    return Plant(f"x86_64_asm_{name}", source="asm_leaf.c", assembly="asm_leaf.S", leave=leave, isa="x86_64")


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    plants = [asm("honest"), *(asm(name, row[0]) for name, row in FAULTS.items())]
    return Planted(tmp_path_factory.mktemp("asm"), plants)


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("lane", [NATIVE, WIN64])
def test_what_a_convention_wants_kept_is_compared_at_the_call(planted: Planted, name: str, lane: str) -> None:
    _, words, everywhere = FAULTS[name]
    cell = planted.run(f"x86_64_asm_{name}", lane, 64)
    findings = [item for item in cell.findings if not is_trial(item.case_id)]
    kinds = {(item.verdict, item.symptom, item.repeats) for item in findings}
    assert kinds == ({("disagree", "abi", "alone")} if everywhere or lane == WIN64 else set())
    assert all(words in item.text for item in findings)


@pytest.mark.parametrize("lane", [NATIVE, WIN64])
def test_honest_assembly_agrees_under_both_conventions(planted: Planted, lane: str) -> None:
    cell = planted.run("x86_64_asm_honest", lane, 4096)
    assert (cell.state, cell.findings, cell.num_departed) == ("ran", (), 0)
    assert cell.comparisons == 4096


def test_only_assembly_has_cells_in_the_lane_of_the_other_convention(planted: Planted) -> None:
    drivers = {cell.driver for cell in cells(planted.registry) if cell.lane == WIN64}
    own = load_registry(data_root())
    with_assembly = {item.driver for item in own.implementations if item.has_assembly and item.isa == "x86_64"}
    assert drivers == {f"planted-x86_64_asm_{name}" for name in ("honest", *FAULTS)} | with_assembly
    assert {cell.driver for cell in cells(own) if cell.lane == WIN64} == with_assembly
