# SPDX-License-Identifier: Apache-2.0
"""Targets for OSS-Fuzz and ClusterFuzzLite: their build script, run here, and what it makes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from target_plants import plant_targets

from crosslane.data import data_root
from crosslane.isa import host_arch

pytestmark = [
    pytest.mark.xdist_group("targets_build"),
    pytest.mark.skipif(host_arch() != "x86_64", reason="the engines' images are of x86-64"),
]
TARGETS = tuple(f"crosslane_{family}" for family in ("oneshot", "streaming", "aead", "keyschedule"))
SANITIZERS = "-O1 -fno-omit-frame-pointer -gline-tables-only -fsanitize=address -fsanitize=fuzzer-no-link"
ENVIRONMENT = {
    "CC": "clang", "CXX": "clang++", "CFLAGS": SANITIZERS, "CXXFLAGS": SANITIZERS,
    "LIB_FUZZING_ENGINE": "-fsanitize=fuzzer",
}  # fmt: skip
# The script's python3: what it installs would land in the environment of the tests.
PYTHON = """#!/bin/sh
case "$*" in "-m pip install"*) exit 0;; esac
exec '{python}' "$@"
"""


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(data_root() / "src"), **environment}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=550, check=False, env=variables, stdin=subprocess.DEVNULL
    )


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """$OUT as the script leaves it."""
    folder = tmp_path_factory.mktemp("image")
    (folder / "src").mkdir()
    (folder / "src" / "crosslane").symlink_to(data_root())
    tools = folder / "tools"
    tools.mkdir()
    (tools / "python3").write_text(PYTHON.format(python=sys.executable))
    (tools / "python3").chmod(0o755)
    done = run(
        [str(data_root() / "fuzz" / "oss-fuzz" / "build.sh")],
        **ENVIRONMENT, OUT=str(folder / "out"), SRC=str(folder / "src"), PATH=f"{tools}:{os.environ['PATH']}",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "out"


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_keeps_the_contract_of_engines(out: Path, name: str, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(out, tmp_path / "elsewhere"))  # it is run from another place than where it was built
    program = moved / name
    assert b"LLVMFuzzerTestOneInput" in program.read_bytes()  # by which images know a target
    assert (moved / f"{name}.options").read_text().startswith("[libfuzzer]\n")
    corpus = tmp_path / "corpus"
    with zipfile.ZipFile(moved / f"{name}_seed_corpus.zip") as seeds:
        names = sorted(seeds.namelist())
        assert len(names) > 100
        for number in names[:: len(names) // 60]:
            seeds.extract(number, corpus)
    done = run([str(program), "-runs=300", "-seed=1", "-print_final_stats=1", str(corpus)])
    assert done.returncode == 0, done.stderr
    assert re.search(r"number_of_executed_units: [3-9]\d\d", done.stderr), done.stderr
    assert int(re.findall(r"cov: (\d+)", done.stderr)[-1]) > 300
    for file in sorted(corpus.iterdir())[:2]:  # an input by itself, as reports are replayed
        assert run([str(program), str(file)]).returncode == 0


def test_a_departure_ends_a_target_with_a_report(tmp_path: Path) -> None:
    plants = plant_targets(tmp_path / "plants")
    for name in ("magic", "wild"):
        shutil.rmtree(plants / "sm4" / name)
    command = [sys.executable, "-m", "crosslane", "targets", "build", "--impls", str(plants), "--out", str(tmp_path)]
    done = run(command, **ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(tmp_path / name) for name in TARGETS]
    done = run([str(tmp_path / "crosslane_oneshot"), "-runs=100000", "-seed=1", f"-artifact_prefix={tmp_path}/"])
    assert done.returncode == 77, done.stderr
    assert "sm4-wide departs from generic in output" in done.stderr
    assert "SUMMARY: " in done.stderr
    assert list(tmp_path.glob("crash-*"))


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "crosslane", "targets", "build", "--out", str(tmp_path)]
    done = run(command, **{**ENVIRONMENT, "LIB_FUZZING_ENGINE": ""})
    assert done.returncode == 2
    assert done.stderr.startswith("crosslane: the variable LIB_FUZZING_ENGINE is not set")
    done = run(command, **{**ENVIRONMENT, "CC": "no-such-clang"})
    assert done.returncode == 2
    assert "the compiler no-such-clang that CC names is not installed" in done.stderr


def test_both_services_run_one_script_on_one_image() -> None:
    ours, lite = data_root() / "fuzz" / "oss-fuzz", data_root() / ".clusterfuzzlite"
    assert (ours / "build.sh").read_text() == (lite / "build.sh").read_text()
    images = {
        re.findall(r"^FROM (\S+)$", (folder / "Dockerfile").read_text(), re.MULTILINE)[0] for folder in (ours, lite)
    }
    assert len(images) == 1
    assert re.search(r"^language: c$", (lite / "project.yaml").read_text(), re.MULTILINE)


@pytest.mark.parametrize("mode", ["pr", "batch", "prune", "coverage"])
def test_workflows_build_and_run_with_one_sanitizer(mode: str) -> None:
    text = (data_root() / "ci" / "templates" / f"clusterfuzzlite-{mode}.yml").read_text()
    build, fuzz = re.findall(r"uses: google/clusterfuzzlite/actions/(\w+)@[0-9a-f]{40} # v1\n((?: {8}.*\n)*)", text)
    assert (build[0], fuzz[0]) == ("build_fuzzers", "run_fuzzers")
    sanitizers = [re.findall(r"sanitizer: (.+)", part[1]) for part in (build, fuzz)]
    assert sanitizers[0] == sanitizers[1] != []
    assert f"mode: {'code-change' if mode == 'pr' else mode}\n" in fuzz[1]


def test_the_extra_brings_the_engine() -> None:
    project = tomllib.loads((data_root() / "pyproject.toml").read_text())
    assert [item.partition(">")[0] for item in project["project"]["optional-dependencies"]["fuzz"]] == ["atheris"]
