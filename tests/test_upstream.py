# SPDX-License-Identifier: Apache-2.0
"""What maintainers of a library get of a finding: a program that needs the library alone, and who agrees with whom."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosslane.campaign import run_plans
from crosslane.data import data_root
from crosslane.execute import execute_alone
from crosslane.findings.case import case_of, whole_batch
from crosslane.findings.keep import Keeper
from crosslane.findings.record import Key
from crosslane.findings.store import Store
from crosslane.findings.upstream import Upstream, program_text
from crosslane.findings.upstream_report import agreement_rows, report_text
from crosslane.instances import instance_of
from crosslane.isa import host_arch
from crosslane.model import Algorithm, Cell, Provider
from crosslane.plan import AlgorithmPlan, Counts, Selection, make_plans
from crosslane.registry import load_registry
from crosslane.seal import finished_batch
from crosslane.wire import Watch

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
    subprocess.run(shlex.split(finding.command), cwd=folder, check=True)
    return subprocess.run(shlex.split(finding.run), cwd=folder, check=False, capture_output=True, text=True)


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
    assert finding.run == "env CROSSLANE_HIDE_FEATURES=all ./upstream"
    assert run(tmp_path, finding, program_text(finding)).returncode == 0


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
    for line in ("| openssl | agrees with the expected answer |", f"    {finding.command}", "| variables | none |"):
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
