# SPDX-License-Identifier: Apache-2.0
"""Planted subjects with exactly one fault each: the engine finds it, says what it is, and blames nobody else."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from planting import LANES, NATIVE, SAME_EMULATED, Plant, Planted

from crosslane.generate import generate_batch
from crosslane.manifest import parse_case_id
from crosslane.records import CellResult, Finding
from crosslane.trials import is_trial
from crosslane.wire import Batch, Flag, OpKind


@dataclass(frozen=True)
class Row:
    """A plant, what every finding must be, words of its sentence, and how many messages it takes to show."""

    plant: Plant
    verdict: str
    symptom: str
    words: str
    count: int = 64


def fault(name: str, verdict: str, symptom: str, words: str, count: int = 64) -> Row:
    return Row(Plant(name, name), verdict, symptom, words, count)


FAULTS = (
    fault("wrong_at_one_len", "disagree", "output", "of the output after update", 2048),
    fault("refuses_a_good_key", "reject", "output", "answers weak_key, expected ok", 256),
    fault("null_deref", "crash", "none", "crashes with SIGSEGV"),
    fault("illegal_instruction", "crash", "none", "crashes with SIGILL"),
    fault("breakpoint", "crash", "none", "crashes with SIGTRAP"),
    fault("stack_overflow", "crash", "none", "crashes with SIGSEGV"),
    fault("exits", "crash", "none", "by ending the process"),
    fault("aborts", "crash", "none", "crashes with SIGABRT"),
    fault("kills_itself", "crash", "none", "crashes with SIGKILL"),
    fault("reads_behind_the_input", "crash", "guard_read", "reads where it may not"),
    fault("reads_far_behind_the_input", "crash", "none", "crashes with SIGSEGV at address 0x"),
    fault("reads_before_the_input", "crash", "guard_read", "1 bytes before the"),
    fault("changes_the_input", "disagree", "input", "of the input, which is only read"),
    fault("changes_the_key", "disagree", "input", "changes byte 15 of the key"),
    fault("changes_the_context", "disagree", "context", "byte 128 of the context changed"),
    fault("refuses_and_writes", "disagree", "context", "byte 3 of the context changed", 512),
)
# Wrong in the running iv, and so in what follows.
CHAINED = (
    Row(Plant("carry_lost", counter_len=8), "", "", "after update", 1024),
    fault("iv_not_written_back", "", "", "after update", 256),
)
# Where the buffer ends at a guard page the write is a crash, elsewhere it changes a canary.
FENCED = (
    fault("writes_behind_the_output", "", "", "the output"),
    fault("writes_before_the_output", "", "", "1 bytes before the output", 256),
    fault("writes_behind_the_iv", "", "", "16 bytes from the start of the iv"),
    fault("writes_behind_the_context", "", "", "144 bytes from the start of the context"),
)


def clobber(isa: str, register: str, leave: str) -> Row:
    name = f"{isa}_{register.lower().replace(' ', '_')}"
    return Row(Plant(name, leave=leave, isa=isa), "disagree", "abi", f"does not keep {register}")


def stale(isa: str, name: str, entry: str, features: tuple[str, ...] = ()) -> Row:
    plant = Plant(f"{isa}_{name}", entry=entry, isa=isa, features=features)
    return Row(plant, "disagree", "output", "byte 0 of the output")


X86 = (
    *(clobber("x86_64", name, f"movl $1, %{name}d" if name[1] == "1" else f"movl $1, %e{name[1:]}")
      for name in ("rbx", "rbp", "r12", "r13", "r14", "r15")),
    clobber("x86_64", "rsp", "ret $16"),
    clobber("x86_64", "DF", "std"),
    clobber("x86_64", "MXCSR", "subq $8, %rsp; movl $0x9f80, (%rsp); ldmxcsr (%rsp); addq $8, %rsp"),
    clobber("x86_64", "x87 control word", "subq $8, %rsp; movw $0x27f, (%rsp); fldcw (%rsp); addq $8, %rsp"),
    clobber("x86_64", "x87 stack", "fld1"),
    stale("x86_64", "vector_register", "movq %xmm9, %r9"),
    stale("x86_64", "upper_half", "vextractf128 $1, %ymm14, %xmm9; vmovq %xmm9, %r9; vzeroupper", ("avx",)),
    stale("x86_64", "dead_stack", "movq -96(%rsp), %r9"),
    Row(Plant("x86_64_misaligned", "misaligned_load", isa="x86_64"), "crash", "none", "crashes with SIGSEGV"),
)  # fmt: skip
ARM = (
    *(clobber("aarch64", f"x{number}", f"mov x{number}, #1") for number in (19, 24, 28, 29)),
    *(clobber("aarch64", f"d{number}", f"fmov d{number}, #1.0") for number in (8, 11, 15)),
    clobber("aarch64", "sp", "add sp, sp, #16"),
    clobber("aarch64", "FPCR", "mov x9, #0x1000000; msr fpcr, x9"),
    stale("aarch64", "vector_register", "fmov x5, d17"),
    stale("aarch64", "upper_half", "mov x5, v9.d[1]"),
    stale("aarch64", "dead_stack", "ldr x5, [sp, #-96]"),
)
# An emulator that keeps no x87 tags cannot show this one.
MMX = Row(Plant("x86_64_mmx", leave="pxor %mm3, %mm3", isa="x86_64"), "disagree", "abi", "does not keep x87 stack")
POLICY = Row(Plant("upper_bits_of_policy", "upper_bits"), "reject", "output", "answers weak_key, expected ok")
WILD = (
    fault("writes_over_the_batch", "crash", "guard_write", "bytes from the start of the shared inputs", 2048),
    fault(
        "unlocks_and_writes_over_the_batch", "crash", "guard_write", "bytes from the start of the shared inputs", 2048
    ),
    fault("writes_over_an_earlier_output", "crash", "guard_write", "bytes from the start of the shim's results", 2048),
    fault("writes_over_an_earlier_verdict", "crash", "guard_write", "bytes from the start of the shim's results", 2048),
    fault("clears_an_earlier_verdict", "crash", "guard_write", "bytes from the start of the shim's results", 2048),
)
HANGS = (
    fault("spins", "hang", "none", "does not come back", 8),
    fault("sleeps", "hang", "none", "does not come back", 8),
)
FORTIETH = Row(Plant("fortieth", "wrong_at_the_fortieth_call"), "disagree", "output", "byte 0 of the output", 256)
HONEST = (
    Plant("honest"),
    Plant("prefetches", "prefetches_beyond"),
    Plant("talks_on_stderr", "talks_on_stderr"),
    Plant("talks_on_stdout", "talks_on_stdout"),
    Plant("reads_stdin", "reads_stdin"),
    Plant("x86_64_rbp_restored", leave="pushq %rbp; movl $1, %ebp; popq %rbp", isa="x86_64"),
    Plant("x86_64_vzeroupper", leave="vzeroupper", isa="x86_64", features=("avx",)),
    Plant(
        "x86_64_scratch", leave="movl $1, %ecx; movl $1, %r11d; pxor %xmm15, %xmm15; movq %rcx, -64(%rsp)", isa="x86_64"
    ),
    Plant("x86_64_sse_flags", leave="pxor %xmm0, %xmm0; divsd %xmm0, %xmm0", isa="x86_64"),
    Plant("x86_64_x87_flags", leave="fldz; fdiv %st(0), %st; fstp %st(0)", isa="x86_64"),
    Plant("aarch64_upper_half_changed", leave="mov v8.d[1], xzr", isa="aarch64"),
    Plant("aarch64_flags", leave="movi d0, #0; fdiv d0, d0, d0", isa="aarch64"),
    Plant("aarch64_restored", leave="str x19, [sp, #-16]!; mov x19, #1; ldr x19, [sp], #16", isa="aarch64"),
)
ROWS = (*FAULTS, *CHAINED, *FENCED, *X86, *ARM, MMX, POLICY, *WILD, *HANGS, FORTIETH)


def in_lanes(rows: tuple[Row, ...], lanes: tuple[str, ...] = LANES) -> list[object]:
    """One parameter for each row and each lane of its instruction set; a lane's tests share a worker."""
    return [
        pytest.param(row, lane, id=f"{row.plant.name}-{lane}", marks=pytest.mark.xdist_group(f"planted_{lane}"))
        for row in rows
        for lane in lanes
        if row.plant.isa == "any" or lane.startswith(row.plant.isa)
    ]


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return Planted(tmp_path_factory.mktemp("planted"), [*(row.plant for row in ROWS), *HONEST])


def found(planted: Planted, row: Row, lane: str) -> tuple[Finding, ...]:
    """The findings of a plant, whose cell must be red."""
    cell = planted.run(row.plant.name, lane, row.count)
    assert cell.state == "ran", cell.reason
    assert cell.red
    findings = tuple(item for item in cell.findings if not is_trial(item.case_id))
    assert findings
    assert all(row.words in finding.text for finding in findings), findings
    return findings


def assert_green(cell: CellResult, count: int) -> None:
    assert cell.findings == ()
    assert [item for item in cell.judgements if item.passed is False] == []
    assert (cell.state, cell.num_departed, cell.skipped) == ("ran", 0, 0)
    assert cell.comparisons == count


@pytest.mark.parametrize(("row", "lane"), in_lanes((*FAULTS, POLICY)))
def test_a_fault_is_found_and_named(planted: Planted, row: Row, lane: str) -> None:
    findings = found(planted, row, lane)
    assert {(item.verdict, item.symptom, item.repeats) for item in findings} == {(row.verdict, row.symptom, "alone")}


@pytest.mark.parametrize(
    ("row", "lane"), [*in_lanes((*X86, *ARM), (*LANES, SAME_EMULATED)), *in_lanes((MMX,), (NATIVE,))]
)
def test_a_departure_from_the_calling_convention_is_found(planted: Planted, row: Row, lane: str) -> None:
    findings = found(planted, row, lane)
    assert {(item.verdict, item.symptom, item.repeats) for item in findings} == {(row.verdict, row.symptom, "alone")}


@pytest.mark.parametrize(("row", "lane"), in_lanes(CHAINED))
def test_a_lost_carry_shows_in_the_output_and_in_the_iv(planted: Planted, row: Row, lane: str) -> None:
    findings = found(planted, row, lane)
    assert {(item.verdict, item.symptom, item.repeats) for item in findings} == {
        ("disagree", "output", "alone"),
        ("disagree", "iv", "alone"),
    }


@pytest.mark.parametrize(("row", "lane"), in_lanes(FENCED, (*LANES, SAME_EMULATED)))
def test_a_write_beyond_a_buffer_is_found_with_and_without_a_guard_page(planted: Planted, row: Row, lane: str) -> None:
    findings = found(planted, row, lane)
    kinds = {(item.verdict, item.symptom) for item in findings}
    assert {item.repeats for item in findings} == {"alone"}
    assert kinds == {("disagree", "canary"), ("crash", "guard_write")}


@pytest.mark.parametrize(("row", "lane"), in_lanes(HANGS))
def test_a_hang_is_found(planted: Planted, row: Row, lane: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if row.plant.name == "sleeps":
        monkeypatch.setattr("crosslane.client.STALL_TIMEOUT_S", 0.5)
    (finding,) = found(planted, row, lane)
    assert (finding.verdict, finding.symptom, finding.repeats) == ("hang", "none", "alone")


@pytest.mark.parametrize(("row", "lane"), in_lanes((FORTIETH,)))
def test_a_departure_that_needs_its_neighbours_says_so(planted: Planted, row: Row, lane: str) -> None:
    (finding,) = found(planted, row, lane)
    assert (finding.verdict, finding.symptom, finding.repeats) == ("disagree", "output", "in_batch")


def culprits(batch: Batch, count: int) -> set[int]:
    """Cases in which ctr is given what CULPRIT in faults.h asks for."""
    cases = set()
    for index in range(count):
        first = int(batch.cases["first_op"][index])
        done = 0
        for op in batch.ops[first : first + int(batch.cases["num_ops"][index])]:
            if op["kind"] == OpKind.SETIV:
                done = 0
            if op["kind"] == OpKind.UPDATE:
                length = int(op["in_len"])
                spent = min(-done % 16, length)
                begins = int(op["in_off"]) + spent
                left = length - spent if op["flags"] & Flag.LAST else (length - spent) // 16 * 16
                if (
                    left > 16
                    and not op["flags"] & Flag.IN_PLACE
                    and batch.blob[begins] == 0x5A
                    and batch.blob[begins + 1] < 0x60
                ):
                    cases.add(index)
                done += length
    return cases


@pytest.mark.parametrize(("row", "lane"), in_lanes(WILD, (*LANES, SAME_EMULATED)))
def test_a_wild_write_is_blamed_on_the_case_that_makes_it(planted: Planted, row: Row, lane: str) -> None:
    guilty = culprits(generate_batch(planted.manifest(), 0), row.count // 8)
    assert guilty
    assert 0 not in guilty
    for finding in found(planted, row, lane):
        assert parse_case_id(finding.case_id).index in guilty
        assert (finding.verdict, finding.symptom) == (row.verdict, row.symptom)
        assert finding.repeats == ("alone" if "batch" in row.plant.name else "in_batch")


@pytest.mark.parametrize(
    ("row", "lane"), in_lanes(tuple(Row(plant, "", "", "") for plant in HONEST), (*LANES, SAME_EMULATED))
)
def test_what_is_allowed_stays_green(planted: Planted, row: Row, lane: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslane.client.STALL_TIMEOUT_S", 10.0)
    assert_green(planted.run(row.plant.name, lane, 1024), 1024)
