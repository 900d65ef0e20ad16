# SPDX-License-Identifier: Apache-2.0
"""Findings from ``check`` to ``fixed``, as a user sees them: processes, files, exit statuses."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from planting import EMULATED, NATIVE, SAME_EMULATED, Plant, lay_out
from shrinking import FAULTS, KEEPING, TWO, Sown, lines, sow

from crosslane.compare import Departure
from crosslane.data import data_root
from crosslane.errors import MissingTool
from crosslane.execute import Station
from crosslane.findings.formats import case_from_json
from crosslane.findings.gather import first_departure
from crosslane.findings.replay import debug, retest
from crosslane.findings.store import Store
from crosslane.registry import load_registry
from crosslane.toolchain import revision_of
from crosslane.wire import Batch

pytestmark = pytest.mark.xdist_group("findings_cli")

CARRY = next(plant for plant in FAULTS if plant.name == "carry_64")
READS = next(plant for plant in FAULTS if plant.name == "reads_tail")


def crosslane(*arguments: str | Path, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(data_root() / "src")}
    return subprocess.run(
        [sys.executable, "-m", "crosslane", *map(str, arguments)],
        capture_output=True, text=True, timeout=120, check=False, cwd=cwd, env=environment, input=stdin,
    )  # fmt: skip


def check(work: Path, plant: Sown, *more: str, lane: str = NATIVE) -> subprocess.CompletedProcess[str]:
    return crosslane(
        "check", "--cell", f"{plant.algorithm}/{plant.driver}", "--lane", lane, "--count", "1024", "--vectors", "own",
        "--impls", "mine", *more, cwd=work,
    )  # fmt: skip


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with three wrong implementations, of which two were checked."""
    folder = tmp_path_factory.mktemp("work")
    sow(folder / "mine", [CARRY, READS, TWO, *KEEPING])
    for plant in (CARRY, READS):
        done = check(folder, plant)
        assert done.returncode == 1, done.stderr
        assert re.search(r"finding [0-9a-f]{12}: " + plant.driver, done.stdout), done.stdout
    return folder


def finding(work: Path, plant: Sown) -> str:
    kept, _ = Store(work / "findings").read_all()
    (name,) = (item.record.id for item in kept if item.record.key.implementation == plant.driver)
    return name


def test_each_fault_is_one_finding(work: Path) -> None:
    kept, wrong = Store(work / "findings").read_all()
    assert wrong == []
    assert {(item.record.key.symptom, item.record.key.fault_class) for item in kept} == {
        ("iv", "counter:64"), ("guard_read", "in:behind+tail"),
    }  # fmt: skip
    listed = json.loads(crosslane("findings", "list", "--json", cwd=work).stdout)
    assert {row["id"] for row in listed} == {item.record.id for item in kept}
    assert all(row["state"] == "open" for row in listed)


def test_workers_side_by_side_keep_the_same(work: Path, tmp_path: Path) -> None:
    """Both implementations in one run on two workers, and one after the other: the same bytes, in the same order."""
    cells = [part for plant in (READS, CARRY) for part in ("--cell", f"{plant.algorithm}/{plant.driver}")]
    done = check(work, CARRY, *cells, "--jobs", "2", "--findings", str(tmp_path))
    assert done.returncode == 1, done.stderr
    said = re.findall(r"^finding [0-9a-f]{12}: (\S+),", done.stdout, re.MULTILINE)
    assert said == [CARRY.driver, READS.driver]
    assert Store(tmp_path).ids() == Store(work / "findings").ids()
    for name in Store(tmp_path).ids():
        for file in ("case.json", "finding.toml", "repro.c"):
            assert (tmp_path / name / file).read_text() == (work / "findings" / name / file).read_text()


def test_two_faults_are_two_findings_and_a_second_run_adds_none(work: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "kept"
    for seed in ("one", "two"):
        assert check(work, TWO, "--findings", str(elsewhere), "--seed", seed).returncode == 1
        kept, _ = Store(elsewhere).read_all()
        assert {item.record.key.fault_class for item in kept} == {"in_place", "tail"}


@pytest.mark.parametrize("plant", KEEPING, ids=lambda plant: plant.name)
def test_a_fault_that_needs_company_is_kept_with_just_that(work: Path, tmp_path: Path, plant: Sown) -> None:
    """A decrypting session of two blocks, or three of them, before the one that departs."""
    elsewhere = str(tmp_path / "kept")
    assert check(work, plant, "--findings", elsewhere).returncode == 1
    ((only,), wrong) = Store(tmp_path / "kept").read_all()
    assert wrong == []
    assert (only.record.key.symptom, only.record.key.fault_class, only.record.shrunk) == ("output", "neighbours", True)
    before = ("decrypt", "setkey 16", "setiv 16", "update 32")
    num, length = (1, 48) if plant.name == "keeps" else (3, 16)
    assert [lines(case) for case in only.case.sessions] == [
        *[before] * num, ("setkey 16", "setiv 16", f"update {length}"),
    ]  # fmt: skip
    again = crosslane("findings", "retest", only.record.id, "--findings", elsewhere, cwd=work)
    assert "departs 10 of 10 times: open" in again.stdout
    done = crosslane("repro", only.record.id, "--findings", elsewhere, cwd=work)
    assert (done.returncode, done.stdout.count("session: decrypt")) == (1, num)


def test_nothing_is_kept_without_departures_or_where_not_wanted(work: Path, tmp_path: Path) -> None:
    folder = tmp_path / "none"
    assert check(work, CARRY, "--findings", str(folder), "--no-findings").returncode == 1
    own = crosslane("check", "--cell", f"ctr(sm4)/sm4-generic@{NATIVE}", "--count", "8", "--findings", folder, cwd=work)
    assert own.returncode == 0
    assert not folder.exists()


def test_a_finding_is_shown_in_every_form(work: Path) -> None:
    name = finding(work, CARRY)
    case = crosslane("findings", "show", name[:5], "--as", "case", cwd=work).stdout
    assert case_from_json(case, "shown").num_messages == 1
    vector = json.loads(crosslane("findings", "show", name, "--as", "wycheproof", cwd=work).stdout)
    assert vector["schema"] == "ind_cpa_test_schema_v1.json"
    assert vector["testGroups"][0]["tests"][0]["iv"] == "0000000000000000ffffffffffffffff"
    kernel = crosslane("findings", "show", name, "--as", "testmgr", cwd=work).stdout
    assert "static const struct cipher_testvec" in kernel
    assert r'.iv_out	= "\x00\x00\x00\x00\x00\x00\x00\x01"' in kernel
    assert "counter:64" in crosslane("findings", "show", name, cwd=work).stdout


@pytest.mark.parametrize("plant", [CARRY, READS], ids=lambda plant: plant.name)
def test_repro_departs(work: Path, plant: Sown) -> None:
    done = crosslane("repro", finding(work, plant), cwd=work)
    assert done.returncode == 1, done.stderr
    assert f"{plant.algorithm}/{plant.driver}@{NATIVE}: " in done.stdout


def run_header(folder: Path, subject: Path) -> subprocess.CompletedProcess[str]:
    """Do what the first lines of repro.c say, in its folder."""
    text = (folder / "repro.c").read_text()
    command = re.search(r"Build and run it[^\n]*\n(.*?)\n \* It prints", text, re.DOTALL)
    assert command is not None
    lines = re.sub(r"^ \* *", "", command[1], flags=re.MULTILINE)
    environment = {"PATH": os.environ["PATH"], "SUBJECT": str(subject)}
    return subprocess.run(
        ["bash", "-c", "set -e\n" + lines], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("plant", "lane"), [(CARRY, NATIVE), (READS, NATIVE), (CARRY, EMULATED)], ids=["carry", "reads", "emulated"]
)
def test_the_c_program_stands_alone(work: Path, tmp_path: Path, plant: Sown, lane: str) -> None:
    """Compiled from the finding's folder and the subject's, far from the suite: 1 for the fault, 0 where mended."""
    store = work / "findings"
    if lane != NATIVE:
        store = tmp_path / "kept"
        assert check(work, plant, "--findings", str(store), lane=lane).returncode == 1
        (name,) = Store(store).ids()
    else:
        name = finding(work, plant)
    alone = shutil.copytree(store / name, tmp_path / "alone")
    assert str(data_root()) not in (alone / "repro.c").read_text()
    subject = shutil.copytree(work / "mine" / plant.cipher / plant.name, tmp_path / "subject")
    done = run_header(alone, subject)
    assert (done.returncode, "expected:" in done.stdout, "got:" in done.stdout) == (1, True, True), done.stderr
    code = subject / "modes_leaf.c"
    code.write_text(code.read_text().replace("#define HAS(name) (", "#define HAS(name) (0 & "))
    done = run_header(alone, subject)
    assert (done.returncode, done.stdout) == (0, "agrees\n"), done.stderr


WATCHED = {
    "wipe": (
        Plant("x86_64_wipes_xmm5", source="wiping.c", leave="movdqu 16(%r11), %xmm5", isa="x86_64", wipes=True),
        "x86_64_native", "leaves a secret behind", "layout, canary, registers, context, wipe",
    ),
    "win64": (
        Plant("x86_64_asm_rdi", source="asm_leaf.c", assembly="asm_leaf.S", leave="movl $1, %edi;", isa="x86_64"),
        "x86_64_native_win64", "does not keep registers", "layout, canary, registers, context",
    ),
}  # fmt: skip
"""Of what takes a watcher or a convention of its own: plant, lane, what the program says, what it watches."""


@pytest.mark.skipif(NATIVE != "x86_64_native", reason="the instructions of both are x86-64's")
@pytest.mark.parametrize("name", WATCHED)
def test_the_c_program_has_the_watcher_and_the_convention_of_its_finding(tmp_path: Path, name: str) -> None:
    plant, lane, says, watches = WATCHED[name]
    lay_out(tmp_path / "mine", [plant])
    cell = f"ctr(sm4)/planted-{plant.name}"
    done = crosslane(
        "check", "--cell", cell, "--lane", lane, "--count", "64", "--vectors", "own", "--impls", "mine", cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    (finding,) = Store(tmp_path / "findings").ids()
    folder = tmp_path / "findings" / finding
    (subject,) = (path.parent for path in (tmp_path / "mine").rglob("impl.toml"))
    assert f" * It watches {watches} as a shim does; it watches no code paths" in (folder / "repro.c").read_text()
    done = run_header(folder, subject)
    assert (done.returncode, says in done.stdout) == (1, True), done.stdout + done.stderr
    fault = subject / "fault.h"
    fault.write_text(fault.read_text().replace(plant.leave, ""))
    done = run_header(folder, subject)
    assert (done.returncode, done.stdout) == (0, "agrees\n"), done.stderr


@pytest.mark.parametrize("lane", [NATIVE, SAME_EMULATED, EMULATED])
def test_a_debugger_stops_at_the_subjects_call(work: Path, lane: str) -> None:
    done = crosslane("repro", finding(work, CARRY), "--gdb", "--lane", lane, cwd=work, stdin="kill\nquit\n")
    assert re.search(r"#0 .*planted_ctr_slot", done.stdout), done.stdout + done.stderr


def test_a_debugger_that_is_not_installed_is_named(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    registry = load_registry(data_root(), [work / "mine"])
    kept = Store(work / "findings").read(finding(work, CARRY))
    with pytest.raises(
        MissingTool, match=r"^gdb-multiarch is not installed: install the Debian package gdb-multiarch$"
    ):
        debug(registry, kept, [EMULATED])


def test_an_accepted_finding_does_not_fail_a_check(work: Path, tmp_path: Path) -> None:
    name = finding(work, READS)
    file = tmp_path / "deviations.toml"
    arguments = ("findings", "accept", name, "--reason", "upstream reads whole blocks", "--deviations", file)
    past = crosslane(*arguments, "--link", "https://example.org", "--review", "2020-01-01", cwd=work)
    assert (past.returncode, "has passed" in past.stderr) == (2, True)
    done = crosslane(*arguments, "--link", "https://example.org", "--review", "2999-01-01", cwd=work)
    assert done.returncode == 0, done.stderr
    assert name in file.read_text()
    assert Store(work / "findings").read(name).record.state == "accepted"


def test_a_mended_subject_is_fixed_and_one_that_does_not_build_is_said(work: Path, tmp_path: Path) -> None:
    name = finding(work, CARRY)
    assert "departs 10 of 10 times: open" in crosslane("findings", "retest", name, cwd=work).stdout
    code = work / "mine" / CARRY.cipher / CARRY.name / "modes_leaf.c"
    wrong = code.read_text()
    try:
        code.write_text(wrong.replace("HAS(CARRY_64) ? 8 : 16", "16"))
        done = crosslane("findings", "retest", name, cwd=work)
        assert (done.returncode, "departs 0 of 10 times: fixed" in done.stdout) == (0, True)
        record = Store(work / "findings").read(name).record
        assert (record.state, record.rate, record.fixed_revision) == ("fixed", 0.0, revision_of(data_root()))
        assert f"fixed at {record.fixed_revision or 'an unknown revision'}" in done.stdout
        code.write_text(wrong + "}\n")
        done = crosslane("findings", "retest", name, cwd=work)
        assert done.returncode == 2
        assert f"finding {name}: its subject no longer builds" in done.stderr
    finally:
        code.write_text(wrong)
    assert "open" in crosslane("findings", "retest", name, cwd=work).stdout


def test_a_case_that_departs_at_times_is_flaky_with_its_rate(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(work / "findings", tmp_path / "findings")
    store = Store(tmp_path / "findings")
    kept = store.read(finding(work, CARRY))
    calls = itertools.count()

    def at_times(batch: Batch, subject: Station, oracle: Station) -> Departure | None:
        return first_departure(batch, subject, oracle) if next(calls) % 5 == 0 else None

    monkeypatch.setattr("crosslane.findings.answers.first_departure", at_times)
    registry = load_registry(data_root(), [work / "mine"])
    done = retest(registry, store, kept, [NATIVE], revision="ab")
    assert (done.departed, done.record.state, done.record.rate) == (2, "flaky", 0.2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("findings", "show", "000000000000"), "there is no finding '000000000000'"),
        (("repro", "000000000000"), "there is no finding"),
        (("findings", "retest", "zzzz"), "there is no finding 'zzzz'"),
        (("findings", "retest", "--findings", "nosuch"), "nosuch: there is no such folder of findings: correct what"),
        (("findings", "list", "--findings", "nosuch"), "nosuch: there is no such folder of findings: correct what"),
        (("repro", "0123456789abcdef-0-1", "--gdb"), "is the id of a case: --gdb takes that of a finding"),
    ],
)
def test_wrong_use_is_one_sentence(work: Path, arguments: tuple[str, ...], words: str) -> None:
    done = crosslane(*arguments, cwd=work)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
