# SPDX-License-Identifier: Apache-2.0
"""Trials against planted subjects: each fault that they are for is found and named, what is allowed stays green."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from planting import CTR, LANES, NATIVE, SAME_EMULATED, Plant, Planted, lay_out

from crosslane.data import data_root
from crosslane.plan import LARGE_LEN

THREADED = {
    "static_scratch": ("disagree", "answers otherwise while another thread works: byte"),
    "static_pointer": ("crash", "with another thread beside it"),
}
GETTERS = {
    "null": ("*(volatile int *)(uintptr_t)16 = 1;", "crash", "crashes with SIGSEGV"),
    "trap": ("abort();", "crash", "crashes with SIGABRT"),
    "spin": ('for (;;) { __asm__ volatile(""); }', "hang", "does not come back"),
}
# What is left behind, the instruction set, the instructions, and where it is found.
LEFT = {
    "x86_64_vector": ("movdqu 16(%r11), %xmm5", "in vector register 5"),
    "x86_64_word": ("movd 20(%r11), %xmm6; pshufd $0, %xmm6, %xmm6", "in vector register 6"),
    "x86_64_general": ("movq 64(%r11), %rsi", "in rsi"),
    "x86_64_stack": ("movq 32(%r11), %rax; movq %rax, -640(%rsp)", "648 bytes below the stack pointer"),
    "x86_64_deep": ("movq 32(%r11), %rax; movq %rax, -3000(%rsp)", "3008 bytes below the stack pointer"),
    "aarch64_vector": ("ldr q5, [x11, #16]", "in vector register 5"),
    "aarch64_upper_half": ("ldr x9, [x11, #16]; mov v9.d[1], x9; mov x9, xzr", "in vector register 9"),
    "aarch64_general": ("ldr x17, [x11, #64]", "in x17"),
    "aarch64_stack": (
        "ldr x9, [x11, #32]; sub x8, sp, #640; str x9, [x8]; mov x9, xzr",
        "640 bytes below the stack pointer",
    ),
}


def wiping(name: str, leave: str = "") -> Plant:
    isa = "x86_64" if name.startswith("x86_64") else "aarch64"
    return Plant(f"{isa}_wipes{name.removeprefix(isa)}", source="wiping.c", leave=leave, isa=isa, wipes=True)


CUT = {
    "cut_to_16_bits": ("disagree", "output", "MiB 0 of the output differs, and 1 behind it"),
    "cut_to_20_bits": ("disagree", "output", "MiB 0 of the output differs, and 1 behind it"),
    "crashes_beyond_1_mib": ("crash", "none", "crashes with SIGABRT"),
}
BULK = {
    "counter_of_64_bits": "with a counter whose lower 64 bits wrap gives another iv afterwards",
    "iv_not_written_back": "gives another iv afterwards than one block at a time, from byte 15 on",
}
PLANTS = (
    Plant("counter_of_64_bits", counter_len=8),
    Plant("iv_not_written_back", "iv_not_written_back"),
    Plant("honest"),
    Plant("cut_to_32_bits", "cut_to_32_bits"),
    *(Plant(name, name) for name in CUT),
    wiping("x86_64"),
    wiping("aarch64"),
    *(wiping(name, row[0]) for name, row in LEFT.items()),
    Plant("claims", wipes=True),
    *(Plant(name, name) for name in THREADED),
    *(Plant(f"getter_{name}", getter=row[0]) for name, row in GETTERS.items()),
)


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return Planted(tmp_path_factory.mktemp("trials"), PLANTS)


@pytest.mark.parametrize("name", THREADED)
@pytest.mark.parametrize("lane", LANES)
def test_what_two_calls_share_is_found_by_two_threads(planted: Planted, name: str, lane: str) -> None:
    verdict, words = THREADED[name]
    cell = planted.run(name, lane, 256)
    (finding,) = cell.findings
    assert (finding.verdict, finding.symptom) == (verdict, "nondeterminism")
    assert words in finding.text
    assert finding.case_id.startswith("threads-")
    assert cell.red


@pytest.mark.parametrize("lane", LANES)
def test_two_threads_find_nothing_in_what_shares_nothing(planted: Planted, lane: str) -> None:
    cell = planted.run("honest", lane, 256)
    assert cell.findings == ()
    assert cell.num_threaded == 64
    assert "threads" not in cell.unwatched


@pytest.mark.parametrize("name", GETTERS)
@pytest.mark.parametrize("lane", LANES)
def test_a_getter_that_does_not_return_is_a_finding(planted: Planted, name: str, lane: str) -> None:
    _, verdict, words = GETTERS[name]
    cell = planted.run(f"getter_{name}", lane, 64)
    (finding,) = cell.findings
    assert (finding.case_id, finding.verdict, finding.symptom) == ("getter", verdict, "none")
    assert words in finding.text
    assert cell.state == "ran"
    assert cell.red


@pytest.mark.parametrize(
    ("name", "lane"),
    [(name, lane) for name in LEFT for lane in (*LANES, SAME_EMULATED) if lane.startswith(wiping(name).isa)],
)
def test_a_secret_that_is_left_behind_is_found_where_it_is(planted: Planted, name: str, lane: str) -> None:
    cell = planted.run(wiping(name).name, lane, 256)
    assert cell.findings
    assert {(item.verdict, item.symptom, item.repeats) for item in cell.findings} == {("disagree", "wipe", "alone")}
    assert all(LEFT[name][1] in item.text and "leaves bytes of the" in item.text for item in cell.findings)
    assert "secrets_wiped" in [item.check for item in cell.judgements if item.passed is False]


@pytest.mark.parametrize("lane", [*LANES, SAME_EMULATED])
def test_what_wipes_everything_stays_green(planted: Planted, lane: str) -> None:
    cell = planted.run("x86_64_wipes" if lane.startswith("x86_64") else "aarch64_wipes", lane, 16384)
    assert cell.findings == ()
    assert [item.passed for item in cell.judgements if item.check == "secrets_wiped"] == [True]


@pytest.mark.parametrize("lane", LANES)
def test_only_a_claim_is_held_to(planted: Planted, lane: str) -> None:
    """The same C code, which clears nothing, with and without the claim."""
    claims, silent = planted.run("claims", lane, 256), planted.run("honest", lane, 256)
    assert {item.symptom for item in claims.findings} == {"wipe"}
    assert silent.findings == ()
    assert [item.passed for item in silent.judgements if item.check == "secrets_wiped"] == [None]


@pytest.mark.parametrize("name", CUT)
@pytest.mark.parametrize("lane", LANES)
def test_a_length_that_does_not_fit_is_found_in_a_large_message(planted: Planted, name: str, lane: str) -> None:
    verdict, symptom, words = CUT[name]
    cell = planted.run(name, lane, 64, large_len=LARGE_LEN)
    large = [item for item in cell.findings if item.case_id.startswith("large-")]
    assert {(item.verdict, item.symptom, item.repeats) for item in large} == {(verdict, symptom, "alone")}
    assert len(large) == 2  # encrypting and decrypting
    assert all(words in item.text and "1,048,609 bytes" in item.text for item in large)
    assert [item.passed for item in cell.judgements if item.check == "large"] == [False]


@pytest.mark.parametrize("lane", LANES)
def test_a_large_message_is_answered_as_generic_answers_it(planted: Planted, lane: str) -> None:
    cell = planted.run("cut_to_32_bits", lane, 64, large_len=LARGE_LEN)  # fits, at this size
    assert (cell.findings, cell.num_large) == ((), 2)
    assert [item.passed for item in cell.judgements if item.check == "large"] == [True]


@pytest.mark.parametrize("name", BULK)
@pytest.mark.parametrize("lane", LANES)
def test_many_blocks_at_once_that_are_not_single_ones_are_found(planted: Planted, name: str, lane: str) -> None:
    cell = planted.run(name, lane, 64)
    bulk = [item for item in cell.findings if item.case_id.startswith("bulk-")]
    wanted = [
        f"{doing} 1 block in one call under a key of 16 bytes {BULK[name]}" for doing in ("encrypting", "decrypting")
    ]
    assert [item.text.startswith(text) for item, text in zip(bulk, wanted, strict=True)] == [True, True]
    assert {(item.verdict, item.repeats) for item in bulk} == {("disagree", "alone")}
    assert [item.passed for item in cell.judgements if item.check == "bulk_selftest"] == [False]


@pytest.mark.parametrize("lane", LANES)
def test_many_blocks_at_once_that_are_single_ones_stay_green(planted: Planted, lane: str) -> None:
    cell = planted.run("honest", lane, 64)
    assert cell.num_bulk == 32  # 1, 2, 3 and 5 blocks, 4 ivs, encrypting and decrypting
    assert [item.passed for item in cell.judgements if item.check == "bulk_selftest"] == [True]


def crosslane(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(data_root() / "src")}
    return subprocess.run(
        [sys.executable, "-m", "crosslane", *arguments], capture_output=True, text=True, timeout=120, check=False,
        cwd=cwd, env=environment,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "trial"),
    [
        ("static_scratch", "threads-"), ("getter_null", "getter"), ("cut_to_20_bits", "large-"),
        ("counter_of_64_bits", "bulk-"),
    ],
)  # fmt: skip
def test_a_trial_that_departed_is_seen_again_by_its_command(name: str, trial: str, tmp_path: Path) -> None:
    lay_out(tmp_path / "mine", [plant for plant in PLANTS if plant.name == name])
    cell = f"{CTR}/planted-{name}@{NATIVE}"
    done = crosslane("check", "--cell", cell, "--count", "64", "--vectors", "own", "--impls", "mine", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    again = re.search(rf"see it again: crosslane (repro {trial}.*)", done.stdout)
    assert again is not None, done.stdout
    known_by_cases = trial == "bulk-"  # what the self-test shows is then among the findings already
    assert ("is no case that could be shrunk" in done.stdout) is not known_by_cases
    seen = crosslane(*again[1].replace("'", "").split(), cwd=tmp_path)
    assert seen.returncode == 1, seen.stderr
    assert seen.stdout.startswith(cell), seen.stdout
    generic = crosslane(*again[1].split()[:2], "--cell", f"{CTR}/sm4-generic@{NATIVE}", cwd=tmp_path)
    assert (generic.returncode, generic.stdout) == (0, f"{CTR}/sm4-generic@{NATIVE}: agrees\n")
