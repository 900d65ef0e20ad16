# SPDX-License-Identifier: Apache-2.0
"""What maintainers of a library get of a finding: a program that needs the library alone, and who agrees with whom."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosslane.campaign import run_plans
from crosslane.compare import Departure
from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.execute import execute_alone
from crosslane.findings import upstream_commands
from crosslane.findings.case import case_of, whole_batch
from crosslane.findings.keep import Keeper, ingredients
from crosslane.findings.record import Key
from crosslane.findings.reproducer import refuse_cxx, repro_text
from crosslane.findings.store import Store
from crosslane.findings.upstream import Upstream, program_text
from crosslane.findings.upstream_commands import commands_of
from crosslane.findings.upstream_report import agreement_rows, report_text
from crosslane.instances import instance_of, suite_lane
from crosslane.isa import host_arch
from crosslane.model import Algorithm, Cell, Instance, LibraryBuild, Package, Provider, Sysroot
from crosslane.plan import AlgorithmPlan, Counts, Selection, make_plans
from crosslane.registry import load_registry
from crosslane.seal import finished_batch
from crosslane.toolchain import Toolchain, library_file, library_toolchain
from crosslane.wire import Buffer, Symptom, Verdict, Watch

NATIVE = f"{host_arch()}_native"
REGISTRY = load_registry(data_root())
PROVIDERS = [provider for provider in REGISTRY.providers if provider.domains]
COUNTS = Counts.each(64)

pytestmark = pytest.mark.xdist_group("upstream")


def plan_of(provider: Provider, algorithm: Algorithm, backend: str = "") -> AlgorithmPlan:
    subject = f"{provider.name}:{backend}" if backend else provider.name
    return make_plans(REGISTRY, Selection((f"{algorithm}/{subject}@{NATIVE}",)), counts=COUNTS).algorithms[0]


def finding_of(
    provider: Provider, algorithm: Algorithm, number: int, backend: str = ""
) -> tuple[Upstream, AlgorithmPlan]:
    """A case of a library as if it were a finding."""
    plan = plan_of(provider, algorithm, backend)
    manifest = replace(plan.manifest, sessions_per_batch=number + 1)
    batch = finished_batch(
        manifest, 0, lambda part: execute_alone(plan.oracle, part), lambda part: execute_alone(plan.blocks, part)
    )
    case = case_of(batch, number, str(algorithm))
    expected = execute_alone(plan.oracle, whole_batch(case), watch=Watch(0))
    instance = instance_of(REGISTRY, Cell(algorithm, provider.name, NATIVE, backend))
    assert instance is not None
    key = Key(provider.name, str(algorithm), "output", "any")
    return Upstream(data_root(), key, instance, None, case, expected, "for a test"), plan


def run(folder: Path, finding: Upstream, text: str) -> subprocess.CompletedProcess[str]:
    (folder / finding.file_name).write_text(text)
    commands = finding.commands
    environment = {**os.environ, **{name: str(path) for name, path in commands.places}}
    subprocess.run(["sh", "-c", commands.build], cwd=folder, check=True, env=environment)
    command = ["sh", "-c", commands.run]
    return subprocess.run(command, cwd=folder, check=False, env=environment, capture_output=True, text=True)


def algorithms(provider: Provider) -> list[Algorithm]:
    """One algorithm of each kind: with an output, with a tag, with both."""
    kinds = (("ctr", "aes"), ("cmac", "aes"), ("gcm", "aes"), ("ccm", "aes"), ("cbc", "des3_ede"))
    return [Algorithm(*kind) for kind in kinds if provider.domain(*kind) is not None]


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_a_program_needs_the_library_alone_and_says_what_it_answers(tmp_path: Path, provider: Provider) -> None:
    for number, algorithm in enumerate(algorithms(provider)):
        finding, _ = finding_of(provider, algorithm, 3 + number)
        seen = run(tmp_path, finding, program_text(finding))
        assert (seen.returncode, seen.stdout.splitlines()[-1]) == (0, "agrees"), (algorithm, seen.stdout)
        assert seen.stdout.startswith(f"{provider.name} ")


def test_a_wrong_expectation_departs(tmp_path: Path) -> None:
    provider = next(item for item in PROVIDERS if item.name == "libgcrypt")
    finding, _ = finding_of(provider, Algorithm("ctr", "aes"), 5)
    wrong = replace(finding.expected, out=finding.expected.out ^ np.uint8(1))
    finding = replace(finding, expected=wrong)
    seen = run(tmp_path, finding, program_text(finding))
    assert (seen.returncode, seen.stdout.splitlines()[-1]) == (1, "departs")
    assert "expected: " in seen.stdout
    statuses = replace(finding.expected, statuses=finding.expected.statuses + np.uint8(1))
    seen = run(tmp_path, finding, program_text(replace(finding, expected=statuses)))
    assert "setkey (operation 0): status 0 instead of 1" in seen.stdout


def test_the_program_of_a_backend_runs_with_its_switch(tmp_path: Path) -> None:
    provider = next(item for item in PROVIDERS if item.name == "libgcrypt")
    finding, _ = finding_of(provider, Algorithm("ctr", "aes"), 2, "plain")
    assert finding.commands.run == "env CROSSLANE_HIDE_FEATURES=all ./upstream"
    assert run(tmp_path, finding, program_text(finding)).returncode == 0


def test_the_program_of_a_build_is_compiled_and_run_against_it(tmp_path: Path) -> None:
    """The folders of headers and libraries are variables; what the loader takes is the build's library."""
    provider = next(item for item in PROVIDERS if item.name == "libgcrypt")
    finding, _ = finding_of(provider, Algorithm("ctr", "aes"), 2)
    system = library_file(library_toolchain(finding.instance), "gcrypt")
    assert system is not None
    build = tmp_path / "a build"
    build.mkdir()
    shutil.copy(system.resolve(), build / "libgcrypt.so.20")
    (build / "libgcrypt.so").symlink_to("libgcrypt.so.20")
    instance = replace(finding.instance, name="new", build=LibraryBuild("new", "libgcrypt", build, build))
    finding = replace(finding, instance=instance)
    commands = finding.commands
    assert '"-B${BUILD}"' in commands.build
    assert '--library-path "${BUILD}" ./upstream' in commands.run
    assert str(tmp_path) not in commands.build + commands.run + "".join(commands.notes)
    assert "BUILD is the folder with the shared libraries of a build of libgcrypt." in commands.notes
    assert run(tmp_path, finding, program_text(finding)).returncode == 0
    (build / "libgcrypt.so.20").write_bytes(b"no library")
    seen = subprocess.run(
        ["sh", "-c", commands.run], cwd=tmp_path, check=False, capture_output=True, env={"BUILD": str(build)}
    )
    assert seen.returncode == 127, seen.stderr


@pytest.mark.parametrize(("arch", "debian"), [("aarch64", "arm64"), ("x86_64", "amd64")])
def test_the_commands_of_a_sysroot_name_it_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arch: str, debian: str
) -> None:
    provider = next(item for item in PROVIDERS if item.name == "botan")
    root = tmp_path / "root"
    packages = (
        Package("libbotan-2-19", "2.19.5-1", "", ("libbotan-2.so.19",)),
        Package("libbotan-2-dev", "2.19.5-1", "", ()),
        Package("libc6", "2.41", "", ("libc.so.6",)),
    )
    sysroot = Sysroot("trixie", arch, root, ("botan",), packages, "")
    instance = Instance(provider, "botan", suite_lane(sysroot, "x86_64"), sysroot=sysroot)
    cxx = "aarch64-linux-gnu-g++" if arch == "aarch64" else "g++"
    toolchain = Toolchain(
        arch, f"/usr/bin/{cxx.replace('g++', 'gcc')}", "", "", "", cxx=f"/usr/bin/{cxx}",
        cxx_flags=("-isystem", "/usr/include/c++/12"),
        flags=(f"--sysroot={root}", "-nostdinc", "-isystem", "/own", "-isystem", f"{root}/usr/include/botan-2"),
    )  # fmt: skip
    release = provider.others[0]
    monkeypatch.setattr(upstream_commands, "linked_toolchain", lambda _: (release, toolchain))
    monkeypatch.setattr(upstream_commands, "own_headers", lambda _: "/own")
    commands = commands_of.__wrapped__(instance, "upstream.cc")
    assert commands.build.startswith(f"{cxx} -std=c++20 -isystem /usr/include/c++/12 ")
    compiler = cxx.replace("g++", "gcc")
    for words in (
        '"--sysroot=${SYSROOT}"', f'-isystem "$({compiler} -print-file-name=include)"', "-lbotan-2",
        '-isystem "${SYSROOT}/usr/include/botan-2"',
    ):  # fmt: skip
        assert words in commands.build
    if arch == "aarch64":
        assert commands.run.endswith('qemu-aarch64 -cpu max -L "${SYSROOT}" ./upstream')
    else:
        libraries = '--library-path "${SYSROOT}/usr/lib/x86_64-linux-gnu" ./upstream'
        assert commands.run.endswith(f'"${{SYSROOT}}/lib64/ld-linux-x86-64.so.2" --inhibit-cache {libraries}')
    note = commands.notes[0]
    assert "libbotan-2-19 2.19.5-1, libbotan-2-dev 2.19.5-1 of" in note
    assert f"`crosslane providers fetch --suite trixie --arch {debian} botan`" in note
    assert str(tmp_path) not in commands.build + commands.run + "".join(commands.notes)


@pytest.mark.parametrize(("name", "in_cxx"), [("botan", True), ("libgcrypt", False)])
def test_the_c_program_of_an_adapter_in_cxx_refers_to_this_one(name: str, in_cxx: bool) -> None:
    provider = next(item for item in PROVIDERS if item.name == name)
    finding, _ = finding_of(provider, Algorithm("ctr", "aes"), 2)
    made_of = ingredients(REGISTRY, name, "ctr", finding.instance.lane)
    departure = Departure(0, Verdict.DISAGREE, Symptom.OUTPUT, 0, Buffer.OUT, 0, 0, 0, 0, b"", b"")
    text = repro_text(made_of, finding.key, finding.case, departure, expected=finding.expected, text="for a test")
    said = "in C++, which this C program is not compiled with: build and run upstream.cc"
    assert (said in text, "Build and run it" in text) == (in_cxx, not in_cxx)
    if in_cxx:
        with pytest.raises(BadInput, match=r"build upstream\.cc beside it"):
            refuse_cxx(made_of)
    else:
        refuse_cxx(made_of)


def test_the_report_says_who_agrees_with_whom() -> None:
    provider = next(item for item in PROVIDERS if item.name == "libgcrypt")
    finding, plan = finding_of(provider, Algorithm("ctr", "aes"), 4)
    subject = replace(finding.expected, out=finding.expected.out ^ np.uint8(1))
    rows = dict(agreement_rows(finding, subject, plan.quorum, judge="generic, of Crosslane"))
    assert rows["generic, of Crosslane"] == "the expected answer"
    assert rows["libgcrypt"] == "what departs"
    assert rows["openssl"] == "agrees with the expected answer"
    assert set(rows.values()) <= {
        "the expected answer", "what departs", "agrees with the expected answer", "outside its domain"
    }  # fmt: skip
    swapped = dict(agreement_rows(replace(finding, expected=subject), finding.expected, plan.quorum, judge="a vector"))
    assert swapped["openssl"] == "agrees with libgcrypt"
    text = report_text(finding, list(rows.items()))
    for line in (
        "| openssl | agrees with the expected answer |",
        f"    {finding.commands.build}",
        "| variables | none |",
    ):
        assert line in text.splitlines()


def test_a_finding_of_a_library_has_all_that_its_maintainers_need(tmp_path: Path) -> None:
    """A defect planted in a library: the least case departs in a program of its own, and the sound library agrees."""
    tree = tmp_path / "tree"
    for name in ("impls", "ci", "conformance"):
        shutil.copytree(data_root() / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    adapter = tree / "impls/providers/libgcrypt/adapter.c"
    old = "    return refusal(error, SUBJECT_BAD_DATA_LEN);"
    text = adapter.read_text()
    assert text.count(old) == 1
    adapter.write_text(text.replace(old, "    dst[len - 1] ^= (uint8_t)(len % 16 == 7);\n" + old))
    registry = load_registry(tree)
    selection = Selection((f"ctr(aes)/libgcrypt@{NATIVE}",))
    plans = make_plans(registry, selection, counts=Counts.each(512))
    results = run_plans(plans.algorithms, num_workers=1)
    store = Store(tmp_path / "findings")
    kept = Keeper(registry, store, revision="").keep(plans, results)
    assert not kept.failed
    record = next(item for item in kept.records if item.key.symptom == "output")
    folder = store.folder / record.id
    report = (folder / "upstream.md").read_text()
    assert "package libgcrypt20" in report
    assert "| openssl | agrees with the expected answer |" in report
    command = next(line.strip() for line in report.splitlines() if line.startswith("    gcc "))
    subprocess.run(shlex.split(command), cwd=folder, check=True)
    assert subprocess.run(["./upstream"], cwd=folder, check=False, capture_output=True).returncode == 1
    spoilt = (folder / "upstream.c").read_text()
    (folder / "upstream.c").write_text(spoilt.replace("dst[len - 1] ^= (uint8_t)(len % 16 == 7);", ""))
    subprocess.run(shlex.split(command), cwd=folder, check=True)
    assert subprocess.run(["./upstream"], cwd=folder, check=False, capture_output=True).returncode == 0
