# SPDX-License-Identifier: Apache-2.0
"""``ci/setup``, ``ci/conform``, ``ci/test`` and ``.ci/run``: order, statuses, words, and doing nothing twice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import prepare
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
    wanted = ["gcc", "libc6-dev", compiler, libc, "g++", compiler.replace("gcc", "g++"), "clang", *portable]
    assert packages == [*wanted, "qemu-user", *judges, "gdb-multiarch", "llvm-19", "linux-source", "python3-venv"]


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


def test_the_workflow_template_has_a_native_job_of_each_architecture_and_runs_what_ci_runs() -> None:
    text = (prepare.ROOT / "ci" / "templates" / "github.yml").read_text()
    assert "{name: x86_64, runner: ubuntu-24.04}" in text
    assert "{name: arm64, runner: ubuntu-24.04-arm}" in text
    assert "pull_request_target" not in text
    (run,) = [line.split("run: ")[1] for line in text.splitlines() if line.strip().startswith("- run: ")]
    assert os.access(prepare.ROOT / run, os.X_OK)
