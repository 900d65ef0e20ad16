# SPDX-License-Identifier: Apache-2.0
"""Fuzz targets as their users start them: processes, flags of the engine, findings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from target_plants import plant_targets

from crosslane.data import data_root
from crosslane.findings.store import Store
from crosslane.isa import host_arch
from crosslane.names import match_cell, parse_cell
from crosslane.plan import native_lane
from crosslane.registry import load_registry
from crosslane.targets.rows import choose

pytestmark = [
    pytest.mark.xdist_group("targets"),
    pytest.mark.skipif(host_arch() != "x86_64", reason="atheris has no wheel for AArch64"),
]
NATIVE = "x86_64_native"
EMULATED = "aarch64_qemu_max"


def run(command: list[str], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(data_root() / "src"), **environment}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=cwd,
        env=variables,
        stdin=subprocess.DEVNULL,
    )


def target(family: str, *arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    script = data_root() / "fuzz" / "targets" / f"{family}.py"
    return run([sys.executable, str(script), *map(str, arguments)], cwd, **environment)


def crosslane(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "crosslane", *map(str, arguments)], cwd)


@pytest.fixture(scope="module")
def plants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plant_targets(tmp_path_factory.mktemp("plants"))


def executions(words: str) -> int:
    return int(re.findall(r"number_of_executed_units: (\d+)", words)[-1])


@pytest.mark.parametrize("family", ["oneshot", "streaming", "aead", "keyschedule"])
def test_sides_agree_and_the_mutator_is_used(family: str, tmp_path: Path) -> None:
    done = target(family, "-runs=3000", "-seed=1", "-print_final_stats=1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert executions(done.stderr) == 3000
    assert "execution" not in re.sub("-execution", "", done.stderr).replace("executions", "")
    mutations = set(re.findall(r"([A-Za-z]+)-", " ".join(re.findall(r"MS: \d+ (\S+)", done.stderr))))
    assert {"Custom", "CustomCrossOver"} <= mutations  # the engine names those that it was given
    assert not list(tmp_path.iterdir())


def test_merge_keeps_what_teaches_something(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "less").mkdir()
    target("oneshot", "-runs=3000", "-seed=1", "corpus", cwd=tmp_path)
    found = len(list((tmp_path / "corpus").iterdir()))
    done = target("oneshot", "-merge=1", "less", "corpus", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert 3 < len(list((tmp_path / "less").iterdir())) < found, done.stderr


def test_jobs_run_beside_each_other_with_our_flags(tmp_path: Path) -> None:
    cell = f"cbc(sm4)/sm4-aesni-avx-x86_64@{NATIVE}"
    done = target("oneshot", "--cell", cell, "-jobs=2", "-workers=2", "-runs=500", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for number in range(2):
        words = (tmp_path / f"fuzz-{number}.log").read_text()
        assert "Done 500 runs" in words
        assert f"oneshot: {cell}\n" in words


def test_fork_runs_inputs_and_counts_no_false_crash(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    done = target("oneshot", "-fork=1", "-max_total_time=8", "corpus", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^#(\d+): .*oom/timeout/crash: (\d+)/(\d+)/(\d+)", done.stderr, re.MULTILINE)
    assert lines, done.stderr
    assert int(lines[-1][0]) > 0
    assert lines[-1][1:] == ("0", "0", "0")


def test_a_departure_is_kept_and_the_run_goes_on(plants: Path, tmp_path: Path) -> None:
    (tmp_path / "seen").mkdir()
    cell = f"ecb(sm4)/sm4-wide@{NATIVE}"
    done = target(
        "streaming", "--impls", plants, "--cell", cell, "-runs=4000", "-seed=3", "-artifact_prefix=seen/",
        "-print_final_stats=1", "-timeout=2", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert executions(done.stderr) == 4000
    assert list((tmp_path / "seen").glob("departure-*"))
    (name, *_) = Store(tmp_path / "findings").ids()
    kept = Store(tmp_path / "findings").read(name)
    assert kept.record.key.implementation == "sm4-wide"
    assert kept.record.from_case.startswith("target:")
    assert kept.record.shrunk
    assert sum(item.in_len for item in kept.case.operations) <= 16 + 16 * 9
    again = crosslane("repro", name, "--impls", plants, cwd=tmp_path)
    assert again.returncode == 1, again.stdout + again.stderr
    shown = crosslane("targets", "show", "streaming", "--impls", plants, "--cell", cell, "seen", cwd=tmp_path)
    assert "update" in shown.stdout


def test_departures_under_fork_are_told_and_kept(plants: Path, tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    flags = ("--impls", plants, "--cell", f"ecb(sm4)/sm4-wide@{NATIVE}")
    done = target("streaming", *flags, "-fork=1", "-max_total_time=8", "-artifact_prefix=./", "corpus", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "; the input is departure-" in done.stderr
    assert Store(tmp_path / "findings").ids()


def test_a_fault_in_process_says_how_to_go_on(plants: Path, tmp_path: Path) -> None:
    flags = ("--impls", plants, "--cell", f"ecb(sm4)/sm4-wild@{NATIVE}", f"-artifact_prefix={tmp_path}/")
    done = target("streaming", *flags, "-runs=100000", "-seed=3", cwd=tmp_path)
    assert done.returncode == 1, done.stderr  # the status with which the engine ends for a fault
    assert "-fork=1 -ignore_crashes=1" in done.stderr
    (crash,) = tmp_path.glob("crash-*")
    kept = crosslane("targets", "keep", "streaming", *flags[:4], crash, cwd=tmp_path)
    assert kept.returncode == 1, kept.stderr
    assert re.search(r"finding [0-9a-f]{12}: sm4-wild, ecb\(sm4\), (crash|guard_write)", kept.stdout), kept.stdout
    shutil.rmtree(tmp_path / "findings")
    (tmp_path / "corpus").mkdir()
    done = target("streaming", *flags, "-fork=1", "-ignore_crashes=1", "-max_total_time=12", "corpus", cwd=tmp_path)
    assert re.search(r"crash: 0/0/[1-9]", done.stderr), done.stderr
    assert re.search(
        r"fuzzed for 1[2-9] seconds", done.stderr
    )  # it went on to its end; its status is that of its last job


@pytest.mark.parametrize(
    ("family", "pattern"),
    [
        ("oneshot", "ctr(aes)/aes-aesni"),
        ("streaming", "twofish-avx2-x86_64"),
        ("oneshot", "ctr(sm4)/sm4-ce@aarch64_qemu_max"),
    ],
)
def test_patterns_mean_cells_of_one_lane(family: str, pattern: str) -> None:
    registry = load_registry(data_root())
    choice = choose(registry, family, (pattern,), native_lane(registry))
    assert choice.lane.name == (EMULATED if pattern.endswith(EMULATED) else NATIVE)
    assert all(match_cell(parse_cell(cell), pattern) for cell in choice.cells)
    assert len(choice.cells) == 1 or family == "streaming"


COUNTING = """
import ctypes, sys
from crosslane.data import data_root
from crosslane.plan import native_lane
from crosslane.registry import load_registry
from crosslane.targets.engine import load_engine
from crosslane.targets.rows import choose
from crosslane.targets.run import open_pair
from crosslane.targets.seeds import seeds_of

load_engine()
registry = load_registry(data_root())
pair = open_pair(registry, choose(registry, "oneshot", (sys.argv[1],), native_lane(registry)))
address, number = pair.counters()
seen = bytearray(number)
for seed in seeds_of("oneshot", [pair.choice.rows[i] for i in pair.choice.chosen]):
    assert pair.one(seed, len(seed)) == 0
    counters = ctypes.string_at(address, number)
    seen = bytearray(map(max, seen, counters))
for index, path in enumerate(pair.paths):
    print(path, *(i for i, hit in enumerate(seen[16 * index : 16 * index + 16]) if hit))
"""


@pytest.mark.parametrize(
    ("cell", "path"),
    [
        (f"ctr(cast5)/cast5-avx-x86_64@{NATIVE}", "cast5_x86_64_avx_16way:16way"),  # in assembly
        (f"ctr(sm4)/sm4-ce@{EMULATED}", "sm4_aarch64_ce:8way"),
    ],
)
def test_code_paths_are_counted_by_length(cell: str, path: str, tmp_path: Path) -> None:
    done = run([sys.executable, "-c", COUNTING, cell], tmp_path)
    assert done.returncode == 0, done.stderr
    hits = {words[0]: set(map(int, words[1:])) for words in map(str.split, done.stdout.splitlines())}
    assert hits[path], hits  # the length classes in which the widest path was taken
    assert min(hits[path]) >= 6  # and never in fewer than 4 blocks


def test_a_guest_guides_and_ends_with_its_target(tmp_path: Path) -> None:
    cell = f"ctr(sm4)/sm4-ce@{EMULATED}"
    done = target("oneshot", "--cell", cell, "-runs=1500", "-seed=1", "-print_final_stats=1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert executions(done.stderr) == 1500
    (number,) = re.findall(r"Loaded 1 modules +\((\d+) inline", done.stderr)
    assert int(number) > 100
    assert int(re.findall(r"cov: (\d+)", done.stderr)[-1]) > 30


def test_a_fault_in_a_guest_ends_the_guest_alone(plants: Path, tmp_path: Path) -> None:
    flags = ("--impls", plants, "--cell", f"ecb(sm4)/sm4-wild@{EMULATED}")
    done = target("streaming", *flags, "-runs=200", "-seed=3", "-print_final_stats=1", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert executions(done.stderr) == 200
    assert "the process of the subject ended" in done.stderr or "a watcher objects" in done.stderr
    assert Store(tmp_path / "findings").ids(), done.stderr


def test_garbage_and_a_huge_file_are_inputs(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number in range(20):
        (corpus / f"{number}").write_bytes(os.urandom(50 * number))
    with (corpus / "huge").open("wb") as huge:
        huge.truncate(1 << 30)
    done = target("aead", "-runs=100", "-max_len=4096", corpus, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = crosslane("targets", "show", "aead", corpus, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert sum("@x86_64_native" in line for line in shown.stdout.splitlines()) == len(list(corpus.iterdir()))


def test_wrong_use_is_said_in_a_sentence(tmp_path: Path) -> None:
    for arguments, words in {
        ("--cell", "ctr(sm4)/sm4-cee"): "sm4-ce",
        ("--cell", "gcm(sm4)"): "whose modes are",
        ("--cell", "libgcrypt"): "name an implementation's",
        ("--cell",): "--cell stands without a value",
        ("--cells=x",): "nearest are --cell",
        ("nowhere",): "nowhere: there is no such corpus",
        ("--cell", "ctr(sm4)/sm4-generic@s390x_qemu"): "there is no lane that a target can run in",
    }.items():
        done = target("oneshot", *arguments, cwd=tmp_path)
        assert done.returncode == 2, (arguments, done.stderr)
        assert words in done.stderr, done.stderr
        assert done.stderr.startswith("crosslane: ")
        assert done.stderr.count("\n") == 1
    done = crosslane("targets", "keep", "oneshot", "nowhere", cwd=tmp_path)
    assert done.returncode == 2
    assert "nowhere: cannot be read as an input" in done.stderr


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "atheris.py").write_text("raise ImportError")
    script = data_root() / "fuzz" / "targets" / "oneshot.py"
    path = f"{tmp_path}:{data_root() / 'src'}"
    done = run([sys.executable, str(script)], tmp_path, PYTHONPATH=path)
    assert done.returncode == 2
    assert done.stderr == (
        "crosslane: atheris is not installed, which fuzz targets need: install the extra fuzz "
        "(pip install '.[fuzz]' in a clone of crosslane)\n"
    )
    (tmp_path / "platform.py").write_text("import os\ndef machine(): return 'aarch64'\n")
    code = (
        "import sys, platform\nplatform.machine = lambda: 'aarch64'\n"
        "from crosslane.targets.run import main\nsys.exit(main('oneshot', ['oneshot.py']))"
    )
    (tmp_path / "platform.py").unlink()
    done = run([sys.executable, "-c", code], tmp_path, PYTHONPATH=path)
    assert done.returncode == 2
    assert done.stderr.startswith("crosslane: atheris has no wheel for AArch64, so that no target runs on this host: ")
    (tmp_path / "atheris.py").unlink()
    tools = tmp_path / "tools"
    tools.mkdir()
    done = target("oneshot", "-runs=1", cwd=tmp_path, PATH=str(tools), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 2
    assert "the program clang is not installed" in done.stderr
