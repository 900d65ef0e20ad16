# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from crosslane.bench import bench_command, modelled
from crosslane.bench.counting import Counter, count, counter_for, trace
from crosslane.bench.jobs import Job, choose_cells, plan_jobs
from crosslane.bench.llvm import DEFAULT_CORES, Llvm, disassemble, find_llvm, require_core, simulate
from crosslane.bench.measure import Settings
from crosslane.bench.modelled import Model, model_job, model_table
from crosslane.build import build_bench
from crosslane.data import data_root
from crosslane.errors import BadInput, HarnessFault, MissingTool
from crosslane.isa import host_arch
from crosslane.model import Registry
from crosslane.registry import load_registry

HOST = host_arch()
SETTINGS = Settings(sizes=(64,), clock="none")


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(data_root())


@pytest.fixture(scope="module")
def llvm() -> Llvm:
    return find_llvm()


@pytest.fixture(scope="module")
def native(registry: Registry) -> tuple[Path, Counter, Job]:
    (cell,) = choose_cells(registry, [f"ctr(sm4)/sm4-generic@{HOST}_native"])
    job = plan_jobs(registry, [cell])[0]
    items = [item for item in registry.implementations if item.isa in ("any", HOST)]
    return build_bench(registry, job.lane, items), counter_for(registry.root, job.lane), job


# ---- the stepper


def test_instructions_are_counted_natively(native: tuple[Path, Counter, Job]) -> None:
    program, counter, job = native
    sizes = replace(SETTINGS, sizes=(16, 1024, 2048, 3072))
    found = count(program, counter, job, sizes)
    assert found == count(program, counter, job, sizes)
    numbers = [found.instructions["sm4-generic", size] for size in sizes.sizes]
    assert numbers[3] - numbers[2] == numbers[2] - numbers[1]
    assert 16 * 20 < numbers[0] < 2000


def test_a_trace_has_every_instruction_in_its_place(native: tuple[Path, Counter, Job]) -> None:
    program, counter, job = native
    sizes = replace(SETTINGS, sizes=(16, 64))
    counted, traced = count(program, counter, job, sizes), trace(program, counter, job, sizes)
    short, long = (traced.addresses["sm4-generic", size] for size in sizes.sizes)
    counts = [counted.instructions["sm4-generic", size] for size in sizes.sizes]
    assert len(long) - len(short) == counts[1] - counts[0]
    # What comes before the data is the same in both, and a loop runs through its addresses again.
    assert long[:40] == short[:40]
    assert len(set(long)) < len(long) / 2


def test_a_stepper_that_cannot_trace_is_one_sentence(native: tuple[Path, Counter, Job], tmp_path: Path) -> None:
    _, counter, job = native
    found = count(tmp_path / "none", counter, job, SETTINGS)
    assert found.instructions == {}
    assert "instructions cannot be counted natively (stepper: this machine lets no process" in found.unavailable
    traced = trace(tmp_path / "none", counter, job, SETTINGS)
    assert traced.unavailable == found.unavailable


def test_a_program_that_fails_between_its_marks_is_our_fault(native: tuple[Path, Counter, Job], tmp_path: Path) -> None:
    _, counter, job = native
    program = tmp_path / "bench"
    program.write_text("#!/bin/sh\nexit 4\n")
    program.chmod(0o755)
    stepper = tmp_path / "stepper"
    stepper.write_text(f'#!/bin/sh\necho 7 >"${{1#out=}}"\nexec {program}\n')
    stepper.chmod(0o755)
    with pytest.raises(HarnessFault, match="failed under the stepper"):
        count(program, Counter((), stepper), job, SETTINGS)
    assert counter.runner == ()


# ---- LLVM


def test_a_chain_takes_its_latency_and_independent_work_does_not(llvm: Llvm) -> None:
    chain, why = simulate(llvm, "aarch64", "neoverse-n2", ["sm4e v0.4s, v1.4s"] * 100)
    assert why == ""
    spread, _ = simulate(llvm, "aarch64", "neoverse-n2", [f"sm4e v{i % 20}.4s, v31.4s" for i in range(100)])
    # Four cycles each, one a cycle: Arm's optimisation guide for the core.
    assert 400 <= chain <= 410
    assert 100 <= spread <= 115
    adds, _ = simulate(llvm, "x86_64", "znver3", ["addq %rax, %rbx"] * 100)
    assert 100 <= adds <= 110


def test_what_a_core_cannot_run_is_named(llvm: Llvm) -> None:
    assert simulate(llvm, "aarch64", "neoverse-n2", ["add x0, x0, x0", "nonsense x1"]) == (
        0,
        "llvm-mca does not simulate neoverse-n2: unrecognized instruction mnemonic (nonsense x1)",
    )


def test_an_unknown_core_is_refused(llvm: Llvm) -> None:
    require_core(llvm, "aarch64", "neoverse-n2")
    require_core(llvm, "x86_64", "znver4")
    with pytest.raises(BadInput, match=r"--core znver4 is no aarch64 core of LLVM \d+\..*; `llvm-mca -mtriple=aarch64"):
        require_core(llvm, "aarch64", "znver4")


def test_calls_become_jumps_and_places_a_label(llvm: Llvm, native: tuple[Path, Counter, Job]) -> None:
    text = disassemble(llvm, native[0], HOST)
    assert len(text) > 1000
    assert not [line for line in text.values() if re.match(r"call|bl |blr |ret|svc|syscall", line) or "<" in line]
    assert [line for line in text.values() if re.match(r"jmp\s+\.Lplace|b\s+\.Lplace", line)]


def test_a_missing_tool_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    find_llvm.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(MissingTool, match=r"llvm-mca of LLVM 19 or newer .* install the package llvm-19 "):
        find_llvm()


def test_a_version_that_does_not_know_the_core_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    find_llvm.cache_clear()
    for name in ("llvm-mca", "llvm-objdump"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'Debian LLVM version 14.0.6'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=None)
    with pytest.raises(MissingTool):
        find_llvm()
    (tmp_path / "llvm-mca").write_text("#!/bin/sh\necho 'Debian LLVM version 19.1.7'\n")
    assert find_llvm().version == "19.1.7"
    find_llvm.cache_clear()


# ---- the model


def test_the_model_leaves_out_what_each_message_costs(llvm: Llvm, native: tuple[Path, Counter, Job]) -> None:
    program, counter, job = native
    counts = count(program, counter, job, replace(SETTINGS, sizes=(64, 128)))
    model = Model(llvm, program, HOST, DEFAULT_CORES[HOST])
    found = model_job(program, counter, job, SETTINGS, model)
    figure = found.figures["sm4-generic", 64]
    numbers = [counts.instructions["sm4-generic", size] for size in (64, 128)]
    assert figure.instructions == (numbers[1] - numbers[0]) / 64
    assert figure.instructions / 6 < figure.cycles < figure.instructions
    assert f"{figure.cycles:.3f}" in model_table([found])


def test_too_many_instructions_are_refused(
    llvm: Llvm, native: tuple[Path, Counter, Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, counter, job = native
    monkeypatch.setattr(modelled, "_MOST_INSTRUCTIONS", 100)
    found = model_job(program, counter, job, SETTINGS, Model(llvm, program, HOST, DEFAULT_CORES[HOST]))
    assert found.figures == {}
    assert "are too many to simulate; choose a smaller --size" in model_table([found])


def test_the_command_models_the_core_of_the_published_figures(tmp_path: Path) -> None:
    document = tmp_path / "model.json"
    done = CliRunner().invoke(
        bench_command, ["--model", "--cell", "ecb(sm4)/sm4-ce@aarch64_qemu_max", "--json", str(document)]
    )
    assert done.exit_code == 0, done.output
    row = r"^sm4-ce +ecb\(sm4\) +encrypt +128 +4096 +[\d.]+ +0\.[5-7]\d\d +neoverse-n2$"
    assert re.search(row, done.output, re.MULTILINE)
    (first, _) = json.loads(document.read_text())["modelled"]
    # Eight blocks of eight SM4E each need 64 cycles of the one unit.
    assert 0.5 <= first["figures"][0]["cycles_per_byte"] < 0.8


def test_a_core_without_a_model_is_wrong_use() -> None:
    done = CliRunner().invoke(bench_command, ["--core", "znver3"])
    assert isinstance(done.exception, BadInput)
    assert "give --model too" in str(done.exception)
