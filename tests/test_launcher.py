# SPDX-License-Identifier: Apache-2.0
"""Planted programs try to escape the launcher, natively and under qemu-user: each attempt has to be refused."""

from __future__ import annotations

import mmap
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crosslane import sandbox
from crosslane.errors import BadInput, HarnessFault

ROOT = Path(__file__).resolve().parents[1]
SHIM = ROOT / "impls" / "shim"
PLANTED = Path(__file__).parent / "planted" / "escapes.c"
WARNINGS = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
MIB = 1 << 20

HOST = platform.machine()
CROSS = {"x86_64": "aarch64", "aarch64": "x86_64"}[HOST]
CROSS_GCC = {"aarch64": "aarch64-linux-gnu-gcc", "x86_64": "x86_64-linux-gnu-gcc"}[CROSS]
QEMU = shutil.which(f"qemu-{CROSS}")
QEMU_OF_HOST = shutil.which(f"qemu-{HOST}")

RUNNERS = ["native", "native_dynamic", "qemu", "qemu_of_host"]
ESCAPES = {
    "socket": "refused EPERM",
    "write_file": "refused EACCES",
    "truncate_file": "refused",
    "read_file": "refused EACCES",
    "kill_parent": "refused EPERM",
    "kill_group": "refused EPERM",
    "kill_everyone": "refused EPERM",
    "signal_parent_by_owner": "refused EPERM",
    "fork": "refused",
    "trace_parent": "refused",
    "raise_limit": "refused",
    "type_into_terminal": "refused EPERM",
    "remove_file": "refused",
}

Runner = Callable[..., "subprocess.CompletedProcess[str]"]


def compile_c(compiler: str, source: Path, target: Path, *flags: str) -> Path:
    subprocess.run([compiler, *WARNINGS, *flags, "-o", str(target), str(source)], check=True)
    return target


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("launcher")
    compile_c("gcc", SHIM / "launcher.c", folder / "launcher")
    compile_c("gcc", PLANTED, folder / "native", "-static")
    compile_c("gcc", PLANTED, folder / "native_dynamic")
    shutil.copy(folder / "native", folder / "qemu_of_host")
    compile_c(CROSS_GCC, PLANTED, folder / "qemu", "-static")
    return folder


def command(built: Path, runner: str, *arguments: str, memory_limit: int = 0, cpu_limit_s: int = 20) -> list[str]:
    """Return the contained command of one runner. ``memory_limit`` 0 is what the runner needs."""
    subject = built / runner
    program = [str(subject), *arguments]
    if runner.startswith("qemu"):
        qemu = QEMU if runner == "qemu" else QEMU_OF_HOST
        assert qemu is not None, "qemu-user is not installed: run ci/setup"
        program = [str(Path(qemu).resolve()), *program]
    return sandbox.launcher_argv(
        built / "launcher",
        program,
        memory_limit=memory_limit or 512 * MIB,
        cpu_limit_s=cpu_limit_s,
        read_paths=[subject, *sandbox.system_read_paths()],
        require=sandbox.probe(built / "launcher").missing == (),
    )


@pytest.fixture
def run(built: Path) -> Runner:
    def start(runner: str, *arguments: str, **limits: int) -> subprocess.CompletedProcess[str]:
        argv = command(built, runner, *arguments, **limits)
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, start_new_session=True)

    return start


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("nobody may read or change this\n")
    return path


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("escape", ESCAPES)
def test_an_escape_is_refused(built: Path, run: Runner, secret: Path, runner: str, escape: str) -> None:
    if escape == "read_file" and not sandbox.probe(built / "launcher").landlock:
        pytest.skip("only Landlock refuses reading, and this host has none")
    done = run(runner, escape, str(secret))
    assert done.returncode == 0
    assert done.stdout.startswith(ESCAPES[escape])
    assert secret.read_text() == "nobody may read or change this\n"


@pytest.mark.parametrize("escape", ["socket", "write_file", "truncate_file", "read_file", "fork", "remove_file"])
def test_the_same_escape_succeeds_without_the_launcher(built: Path, secret: Path, escape: str) -> None:
    """The control: the planted programs are able to do what the launcher refuses. Only harmless escapes."""
    argv = [str(built / "native"), escape, str(secret)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "succeeded\n"


@pytest.mark.parametrize("runner", RUNNERS)
def test_memory_beyond_the_limit_is_refused(run: Runner, runner: str) -> None:
    done = run(runner, "allocate", str(1024 * MIB))
    assert (done.returncode, done.stdout) == (0, "refused ENOMEM\n")


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_loop_ends_at_the_cpu_limit(run: Runner, runner: str) -> None:
    started = time.monotonic()
    done = run(runner, "spin", cpu_limit_s=1)
    assert done.returncode != 0
    assert done.stdout == ""
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_caught_cpu_limit_is_followed_by_a_kill(run: Runner, runner: str) -> None:
    assert run(runner, "spin_stubbornly", cpu_limit_s=1).returncode == -9


@pytest.mark.parametrize("runner", RUNNERS)
def test_work_of_an_honest_shim_goes_through(run: Runner, runner: str) -> None:
    done = run(runner, "honest")
    assert (done.returncode, done.stdout) == (0, "thread signal timer memory raise\n")


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_fault_is_reported_as_the_signal_it_is(run: Runner, runner: str) -> None:
    assert run(runner, "abort").returncode == -6


@pytest.mark.parametrize("runner", RUNNERS)
def test_inherited_memory_stays_usable_and_sealed(built: Path, runner: str) -> None:
    fd = os.memfd_create("batch", os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, mmap.PAGESIZE)
        with mmap.mmap(fd, mmap.PAGESIZE) as view:
            argv = command(built, runner, "write_inherited", str(fd))
            done = subprocess.run(argv, pass_fds=(fd,), capture_output=True, text=True, timeout=60, check=False)
            assert done.stdout == "wrote\ntruncate refused EPERM\nseal refused EPERM\n"
            assert view[:5] == b"guest"
    finally:
        os.close(fd)


def test_probe_agrees_with_what_the_launcher_says(built: Path) -> None:
    state = sandbox.probe(built / "launcher")
    argv = [str(built / "launcher"), "--", str(built / "native"), "fork"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    told = [layer for layer in ("seccomp", "landlock", "no_new_privs") if f"refuses {layer}" in done.stderr]
    assert tuple(told) == state.missing


def test_a_missing_layer_is_one_line_and_red_only_when_required(built: Path) -> None:
    """Seccomp of the outer launcher refuses every layer to the inner one."""
    inner = [str(built / "launcher"), "--", str(built / "native"), "fork"]
    outer = [str(built / "launcher"), "--landlock-read", "/", "--"]
    done = subprocess.run([*outer, *inner], capture_output=True, text=True, timeout=60, check=False)
    assert len(done.stderr.splitlines()) == 5  # the parent-death signal, limits, and the three layers of --probe
    assert "this host refuses landlock" in done.stderr
    assert "the program runs without it" in done.stderr
    inner.insert(1, "--require")
    done = subprocess.run([*outer, *inner], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 125
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 125, "misses -- and a program"),
        (["--"], 125, "misses -- and a program"),
        (["--limit-as", "much", "--", "/bin/true"], 125, "--limit-as takes a decimal number, not 'much'"),
        (["--limit-as", "-1", "--", "/bin/true"], 125, "not '-1'"),
        (["--limit-as", "99999999999999999999999", "--", "/bin/true"], 125, "decimal number"),
        (["--colour", "red", "--", "/bin/true"], 125, "does not know --colour"),
        (["--limit-cpu"], 125, "misses a value after --limit-cpu"),
        (["--landlock-read", "/nowhere", "--", "/bin/true"], 125, "--landlock-read /nowhere cannot be opened"),
        (["--", "/nowhere/at/all"], 127, "cannot start /nowhere/at/all"),
        (["--", "/"], 126, "cannot start /"),
    ],
)
def test_wrong_use_is_one_sentence(built: Path, arguments: list[str], status: int, words: str) -> None:
    argv = [str(built / "launcher"), *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status
    assert words in done.stderr.splitlines()[-1]


def test_bad_arguments_of_the_python_side_are_named(built: Path, tmp_path: Path) -> None:
    def build(program: list[str], memory_limit: int, read_paths: list[Path]) -> list[str]:
        return sandbox.launcher_argv(
            built / "launcher",
            program,
            memory_limit=memory_limit,
            cpu_limit_s=1,
            read_paths=read_paths,
            require=False,
        )

    with pytest.raises(BadInput, match="needs a program"):
        build([], 1, [])
    with pytest.raises(BadInput, match="memory_limit is 0"):
        build([str(built / "native")], 0, [])
    with pytest.raises(BadInput, match="absent does not exist"):
        build([str(built / "native")], 1, [tmp_path / "absent"])


def test_a_launcher_that_answers_garbage_is_a_harness_fault(tmp_path: Path) -> None:
    liar = tmp_path / "launcher"
    liar.write_text(f"#!{sys.executable}\nprint('all fine')\n")
    liar.chmod(0o755)
    with pytest.raises(HarnessFault, match="all fine"):
        sandbox.probe(liar)
    with pytest.raises(HarnessFault, match="could not run"):
        sandbox.probe(tmp_path / "absent")
