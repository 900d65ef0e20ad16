# SPDX-License-Identifier: Apache-2.0
"""``ci/setup``, ``ci/conform``, ``ci/test``, ``ci/nightly`` and ``.ci/run``: order, statuses, words, and doing nothing
twice.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import nightly
import prepare
import publish
import pytest
import steps

from crosslane.lanes import load_lanes
from crosslane.toolchain import emulator_name, packages_for

ROOT = Path(__file__).resolve().parents[1]
DEBIAN = "debian 12"


def machine(system: str = DEBIAN, installer: tuple[str, ...] | None = ()) -> prepare.Machine:
    return prepare.Machine("x86_64", system, installer)


def need(package: str, *, present: bool = False) -> prepare.Need:
    return prepare.Need(package, f"purpose of {package}", lambda: present)


# ---- what is installed, and how ----


def test_root_installs_only_what_is_missing() -> None:
    missing = prepare.missing_packages((need("gcc", present=True), need("qemu-user"), need("python3-venv")))
    update, install = prepare.install_commands(machine(), missing)
    assert update[-1] == "update"
    assert update[0] == "env"
    assert install[-3:] == ["--no-install-recommends", "qemu-user", "python3-venv"]


def test_sudo_never_asks_for_a_password() -> None:
    for command in prepare.install_commands(machine(installer=("sudo", "-n")), [need("gcc")]):
        assert command[:2] == ["sudo", "-n"]


def test_without_root_the_packages_to_ask_for_are_named() -> None:
    with pytest.raises(prepare.SetupFailed, match=r"apt-get install --no-install-recommends gcc qemu-user$") as caught:
        prepare.install_commands(machine(installer=None), [need("gcc"), need("qemu-user")])
    assert caught.value.status == 2
    assert "purpose of gcc" in str(caught.value)


def test_an_unknown_system_is_told_what_the_suite_needs() -> None:
    with pytest.raises(prepare.SetupFailed, match=r"fedora 41.*debian 12, debian 13, ubuntu 24\.04.*gcc") as caught:
        prepare.install_commands(machine("fedora 41"), [need("gcc")])
    assert caught.value.status == 2


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(prepare.SetupFailed, match=r"riscv64.*x86_64 and aarch64"):
        prepare.needs("riscv64")


@pytest.mark.parametrize(
    ("architecture", "compiler", "libc"),
    [
        ("x86_64", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"),
        ("aarch64", "gcc-x86-64-linux-gnu", "libc6-dev-amd64-cross"),
    ],
)
def test_each_host_gets_the_compiler_of_the_other(architecture: str, compiler: str, libc: str) -> None:
    packages = [wanted.package for wanted in prepare.needs(architecture)]
    portable = [name for _, _, *names in prepare.PORTABLE_PACKAGES for name in names]
    judges = [package for _, _, package in prepare.LIBRARIES]
    wanted = [
        "gcc",
        "libc6-dev",
        compiler,
        libc,
        "g++",
        compiler.replace("gcc", "g++"),
        "clang",
        "libclang-rt-dev",
        *portable,
    ]
    disk = [package for _, package, _ in prepare.DISK_TOOLS]
    rest = ["gnupg", "chromium", "gdb-multiarch", "llvm-19", *disk, "linux-source", "python3-venv"]
    assert packages == [*wanted, "qemu-user", *judges, *rest]


def test_a_newer_system_gets_the_release_that_it_has() -> None:
    old, new = ({wanted.package for wanted in prepare.needs("x86_64", name)} for name in ("debian 12", "debian 13"))
    assert (old - new, new - old) == ({"libbotan-2-dev"}, {"libbotan-3-dev"})


def test_set_up_installs_what_every_lane_needs() -> None:
    lanes = load_lanes(ROOT / "ci" / "lanes.toml")
    for host in ("x86_64", "aarch64"):
        packages = {wanted.package for wanted in prepare.needs(host)}
        for lane in lanes:
            if host in lane.hosts:
                assert packages.issuperset(packages_for(lane.arch, compiler=lane.compiler, host=host)), lane.name
    emulators = {emulator_name(lane.arch) for lane in lanes if lane.runner == "qemu"}
    assert emulators == set(prepare.EMULATORS)


@pytest.mark.parametrize(
    ("text", "system"),
    [
        ('PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\nVERSION_ID="12"\n', "debian 12"),
        ('NAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\n', "ubuntu 24.04"),
        ("ID=debian\nPRETTY_NAME='Debian GNU/Linux trixie/sid'\n", "debian"),
        (None, "unknown"),
    ],
)
def test_the_system_is_read_from_os_release(tmp_path: Path, text: str | None, system: str) -> None:
    path = tmp_path / "os-release"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert prepare.describe_machine(path).system == system


# ---- times and budgets ----


def test_the_summary_says_which_budget_was_missed() -> None:
    within = steps.summary("ci/conform", [steps.Step("set-up", 3.0), steps.Step("build", 20.0)])
    assert within == "ci/conform: set-up 3.0 s of 240 s, build 20.0 s of 120 s; all within budget"
    missed = steps.summary("ci/conform", [steps.Step("set-up", 3.0), steps.Step("build", 120.2)])
    assert missed.endswith("; over budget: build")
    assert steps.summary("ci/test", [steps.Step("tests", 999.0)]) == "ci/test: tests 999.0 s; all within budget"


# ---- the scripts themselves, in a checkout whose tools are planted ----


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that is set up already; its crosslane and tox write down how they are called, and end as told."""
    root = tmp_path / "checkout"
    shutil.copytree(ROOT / "ci", root / "ci", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / ".ci", root / ".ci")
    shutil.copy(ROOT / "pyproject.toml", root / "pyproject.toml")
    tools = root / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "python").symlink_to(sys.executable)
    for name in ("crosslane", "tox"):
        script = tools / name
        script.write_text(
            f'#!/bin/sh\necho "{name} $*"\nread -r line && exit 99\neval "exit \\${{STATUS_{name}_$1:-0}}"\n'
        )
        script.chmod(0o755)
    (root / ".venv" / "crosslane-setup.key").write_text(prepare.environment_key(root), encoding="ascii")
    return root


def run(checkout: Path, script: str, *arguments: str, **statuses: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(checkout / script), *arguments],
        cwd=checkout.parent,
        env={**os.environ, **{f"STATUS_{name}": status for name, status in statuses.items()}, "PATH": _path()},
        capture_output=True,
        text=True,
        input="nobody reads this\n",
        timeout=60,
        check=False,
    )


def _path() -> str:
    """PATH on which ``python3`` is the interpreter of the tests, so that the planted key holds."""
    folder = str(Path(sys.executable).resolve().parent)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_setup_of_a_ready_checkout_does_nothing(checkout: Path) -> None:
    before = sorted(checkout.rglob("*"))
    done = run(checkout, "ci/setup")
    assert (done.returncode, done.stderr) == (0, "")
    assert "installing" not in done.stdout
    assert [path for path in sorted(checkout.rglob("*")) if "__pycache__" not in path.parts] == before


def test_conform_builds_then_checks_and_passes_arguments_on(checkout: Path) -> None:
    done = run(checkout, "ci/conform", "--cell", "*sm4*")
    assert done.returncode == 0
    lines = [line for line in done.stdout.splitlines() if line.startswith("crosslane")]
    assert lines == ["crosslane build", "crosslane check --cell *sm4*"]
    assert done.stdout.splitlines()[-1].startswith("ci/conform: set-up ")


@pytest.mark.parametrize("status", ["1", "2", "3", "130"])
def test_conform_ends_with_the_status_of_the_check(checkout: Path, status: str) -> None:
    assert run(checkout, "ci/conform", crosslane_check=status).returncode == int(status)


def test_conform_does_not_check_what_did_not_build(checkout: Path) -> None:
    done = run(checkout, "ci/conform", crosslane_build="2")
    assert done.returncode == 2
    assert "crosslane check" not in done.stdout


def test_a_check_ended_by_a_signal_is_void(checkout: Path) -> None:
    (checkout / ".venv" / "bin" / "crosslane").write_text("#!/bin/sh\nkill -KILL $$\n")
    done = run(checkout, "ci/conform")
    assert done.returncode == 3
    assert "build was ended by signal 9" in done.stderr


def test_test_runs_the_labelled_environments(checkout: Path) -> None:
    assert "tox run -m check" in run(checkout, "ci/test").stdout
    assert "tox run -e lint" in run(checkout, "ci/test", "-e", "lint").stdout
    assert run(checkout, "ci/test", tox_run="1").returncode == 1


def test_gate_holds_a_run_against_the_policy_of_a_pull_request(checkout: Path) -> None:
    done = run(checkout, "ci/gate", "--json", "out.json")
    assert f"crosslane gate --policy {checkout / 'ci' / 'gate-pull-request.toml'} --json out.json" in done.stdout
    assert "gate " in done.stdout.splitlines()[-1]
    assert " of 180 s" in done.stdout.splitlines()[-1]
    assert run(checkout, "ci/gate", crosslane_gate="1").returncode == 1


def test_selftest_passes_arguments_on_and_ends_with_its_status(checkout: Path) -> None:
    assert "crosslane selftest --fault ctr*" in run(checkout, "ci/selftest", "--fault", "ctr*").stdout
    assert run(checkout, "ci/selftest", crosslane_selftest="1").returncode == 1


def test_false_alarms_passes_arguments_on_and_ends_with_its_status(checkout: Path) -> None:
    script = str(checkout / "ci" / "false_alarms.py")
    for status in ("0", "1"):
        done = subprocess.run(
            [sys.executable, script, "--first", "40"], capture_output=True, text=True, timeout=60, check=False,
            env={**os.environ, "STATUS_crosslane_alarms": status}, cwd=checkout.parent, input="nobody reads this\n",
        )  # fmt: skip
        assert (done.stdout, done.returncode) == ("crosslane alarms --first 40\n", int(status))


@pytest.mark.parametrize(
    ("tests", "check", "selftest", "status"),
    [("0", "0", "0", 0), ("1", "0", "0", 1), ("0", "3", "0", 3), ("1", "3", "0", 1), ("0", "0", "1", 1)],
)
def test_ci_run_runs_all_and_fails_with_any(checkout: Path, tests: str, check: str, selftest: str, status: int) -> None:
    done = run(checkout, ".ci/run", tox_run=tests, crosslane_check=check, crosslane_selftest=selftest)
    assert done.returncode == status
    assert "crosslane selftest" in done.stdout
    assert "tox run -m check" in done.stdout
    assert "crosslane check" in done.stdout
    assert "--seed first --json results/selftest.json" in done.stdout


def test_an_old_score_is_not_published_again(checkout: Path) -> None:
    (checkout / "results").mkdir()
    (checkout / "results" / "selftest.json").write_text("{}")
    assert run(checkout, ".ci/run", tox_run="1").returncode == 1
    assert not (checkout / "results" / "selftest.json").exists()


# ---- the night ----

DAY = date(2026, 12, 1)
STEPS = ("compilers", "lanes", "selftest", "alarms", "campaign", "selftest-large", "large", "fetch-bookworm",
         "fetch-trixie", "sysroots", "docs")  # fmt: skip


@pytest.mark.parametrize("host", ["x86_64", "aarch64"])
def test_a_night_runs_every_lane_that_the_gate_leaves_out(host: str) -> None:
    night = nightly.read_night(ROOT, DAY, 5, host)
    planned = {step.name: step.arguments for step in nightly.plan(night)}
    assert tuple(planned) == STEPS
    lanes = [name for step in ("compilers", "lanes") for word, name in pairwise(planned[step]) if word == "--lane"]
    left_out = [lane.name for lane in load_lanes(ROOT / "ci" / "lanes.toml") if not lane.gate and host in lane.hosts]
    assert sorted(lanes) == sorted(left_out)
    assert {"aarch64_gcc_o0", "aarch64_gcc_o1", "aarch64_gcc_lto", "aarch64_clang_lto"} <= set(planned["compilers"])
    assert "x86_64_qemu_v3" in planned["lanes"]
    assert f"*({CIPHERS[334 % 6]})/*@{host}_native" in planned["large"]
    assert planned["large"][:4] == ("check", "--large", "--jobs", "1")
    assert all(
        "nightly 2026-12-01" in planned[step]
        for step in STEPS
        if step.partition("-")[0] not in {"alarms", "fetch", "docs"}
    )
    assert planned["docs"] == ("run", "-e", "docs-nightly")
    assert planned["sysroots"][3:7] == ("--lane", "aarch64_bookworm", "--lane", "aarch64_trixie")
    assert planned["fetch-trixie"][:6] == ("providers", "fetch", "--suite", "trixie", "--arch", "arm64")
    assert planned["alarms"] == ("alarms", "--first", "1670", "--seeds", "5")


CIPHERS = ("aes", "cast5", "des3_ede", "serpent", "sm4", "twofish")


def test_nights_share_no_seed_and_come_to_every_cipher() -> None:
    nights = [nightly.read_night(ROOT, DAY + timedelta(days=days), 5, "x86_64") for days in range(6)]
    planned = [{step.name: step.arguments for step in nightly.plan(night)} for night in nights]
    assert len({night.seed for night in nights}) == 6
    firsts = [int(steps["alarms"][2]) for steps in planned]
    assert [later - first for first, later in pairwise(firsts)] == [5] * 5
    assert len({steps["large"] for steps in planned}) == 6
    assert sorted(nights[0].ciphers) == sorted(CIPHERS)


def test_the_steps_of_a_night_are_listed_and_not_run(checkout: Path) -> None:
    shutil.copytree(ROOT / "impls" / "ciphers", checkout / "impls" / "ciphers")
    done = run(checkout, "ci/nightly", "--list", "--day", "2026-12-01")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "ci/nightly: seed 'nightly 2026-12-01'"
    assert [line.partition(":")[0] for line in lines[1:]] == list(STEPS)
    assert lines[3].endswith("crosslane selftest --seed 'nightly 2026-12-01' --json results/selftest.json")
    assert not (checkout / "results").exists()


def test_a_night_goes_on_behind_a_step_that_failed_and_ends_with_the_first_status(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "impls" / "ciphers", checkout / "impls" / "ciphers")
    page = tmp_path / "page.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    done = run(checkout, "ci/nightly", crosslane_selftest="3", crosslane_alarms="1")
    assert done.returncode == 3
    said = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("crosslane ")]
    steps = ["check", "check", "selftest", "alarms", "fuzz", "selftest", "check", "providers", "providers", "check"]
    assert said == steps
    last = done.stdout.splitlines()[-1]
    assert last.startswith("ci/nightly: compilers: status 0, 0 s; ")
    assert "selftest: status 3" in last
    assert "alarms: status 1" in last
    text = page.read_text()
    assert text.startswith("### Nightly, seed `nightly 20")
    assert text.count("\n- ") == len(STEPS)
    done = run(checkout, "ci/nightly", "alarms", "lanes", crosslane_alarms="1")
    assert done.returncode == 1
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("crosslane ")] == [
        "check", "alarms",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--day", "tomorrow"), "'tomorrow' is no day: give one as YYYY-MM-DD"),
        (("--day", "2025-12-31"), "lies before the first night, 2026-01-01: give a later day"),
        (("--seeds", "0"), "'0' is no number of seeds: give 1 or more"),
        (
            ("lane",),
            "no step is called 'lane'; there are compilers, lanes, selftest, alarms, campaign, selftest-large, large",
        ),
    ],
)
def test_a_night_that_cannot_be_is_refused(checkout: Path, arguments: tuple[str, ...], words: str) -> None:
    shutil.copytree(ROOT / "impls" / "ciphers", checkout / "impls" / "ciphers")
    done = run(checkout, "ci/nightly", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "crosslane " not in done.stdout


def test_lanes_that_cannot_be_read_end_a_night_before_it_begins(checkout: Path) -> None:
    (checkout / "ci" / "lanes.toml").write_text("[lane\n")
    done = run(checkout, "ci/nightly")
    assert done.returncode == 2
    assert "ci/lanes.toml: cannot be read" in done.stderr


# ---- the score ----


def test_the_score_of_a_search_is_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plants = [
        {"name": "off", "cell": "ecb(toy)/toy@lane", "control": False, "holds": False, "text": ""},
        {"name": "on", "cell": "ecb(toy)/toy@lane", "control": True, "holds": False, "text": ""},
        {"name": "fine", "cell": "ecb(toy)/toy@lane", "control": True, "holds": True, "text": ""},
    ]
    table = {
        "seed": "first", "holds": False, "num_faults": 9, "num_caught": 8, "num_cells": 20, "num_cells_caught": 17,
        "median_s": 0.5, "slowest_s": 2.25, "num_controls": 2, "num_green": 1, "lines": [], "tried": plants,
    }  # fmt: skip
    path = tmp_path / "selftest.json"
    path.write_text(json.dumps(table))
    assert publish.main([str(path), str(tmp_path / "large.json")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("### Planted faults: selftest, NOT ALL HOLD\n")
    assert "| 8 of 9 | 17 of 20 | 0.50 s | 2.25 s | 1 of 2 | `first` |" in said
    assert "- `off` in `ecb(toy)/toy@lane`: not caught\n- `on` in `ecb(toy)/toy@lane`: a control that departs\n" in said
    assert "`fine`" not in said
    assert "### Planted faults: large: no score, the search did not come to its end" in said


@pytest.mark.parametrize("content", ["{", "[]", '{"seed": "first"}'])
def test_what_is_no_score_is_not_published(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    path = tmp_path / "selftest.json"
    path.write_text(content)
    assert publish.main([str(path)]) == 2
    assert "is no table of `crosslane selftest --json`" in capsys.readouterr().err
    assert publish.main([]) == 2


def test_setup_takes_no_arguments(checkout: Path) -> None:
    done = run(checkout, "ci/setup", "--fast")
    assert done.returncode == 2
    assert "takes no arguments, but got --fast" in done.stderr


def test_another_pyproject_makes_the_environment_anew(checkout: Path) -> None:
    """It cannot be installed: setup says so instead of keeping the old environment."""
    (checkout / "pyproject.toml").write_text("[project\n")
    done = run(checkout, "ci/setup")
    assert done.returncode == 3
    assert "installing crosslane with its test tools" in done.stdout
    assert "ended with status" in done.stderr.splitlines()[-1]
    assert not (checkout / ".venv" / "crosslane-setup.key").exists()


def test_a_checkout_that_cannot_be_written_is_one_sentence(checkout: Path) -> None:
    shutil.rmtree(checkout / ".venv")
    (checkout / ".venv").write_text("a file where a folder should be\n")
    done = run(checkout, "ci/setup")
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1
    assert "make the checkout writable" in done.stderr


def test_missing_tools_are_installed_through_apt_get(checkout: Path, tmp_path: Path) -> None:
    """PATH holds no compiler and a planted ``apt-get`` that brings none: the packages are asked for, then missed."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, target in {"python3": sys.executable, "env": shutil.which("env"), "sh": shutil.which("sh")}.items():
        assert target is not None
        (tools / name).symlink_to(target)
    (tools / "dirname").symlink_to(shutil.which("dirname") or "")
    for name, body in {"apt-get": f'echo "apt-get $*" >>{tmp_path}/log', "sudo": 'shift; exec "$@"'}.items():
        (tools / name).write_text(f"#!{tools}/sh\n{body}\n")
        (tools / name).chmod(0o755)
    if prepare.describe_machine().system not in prepare.KNOWN_SYSTEMS:
        pytest.skip("apt-get is used on known systems only")
    done = subprocess.run(
        [str(checkout / "ci" / "setup")],
        env={"PATH": str(tools), "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "installing qemu-user: runs the emulated lanes" in done.stdout
    assert "gcc" in done.stderr
    assert "look at PATH" in done.stderr
    log = (tmp_path / "log").read_text().splitlines()
    assert log[0] == "apt-get -q -y update"
    assert log[1].startswith("apt-get -q -y install --no-install-recommends gcc libc6-dev ")
