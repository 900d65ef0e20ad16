# SPDX-License-Identifier: Apache-2.0
"""``crosslane check`` and ``repro`` as processes: a wrong SM4 on both architectures, interrupts, bad surroundings."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from planting import CTR, EMULATED, NATIVE, Plant, lay_out

COMMAND = [sys.executable, "-m", "crosslane"]
WRONG = "wrong_at_one_len"
QUIET_S = 5.0


def crosslane(*arguments: str | Path, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end, with another PATH where one is given."""
    environment = {**os.environ, **({"PATH": path} if path is not None else {})}
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False, env=environment
    )


def plant(tmp_path: Path, name: str) -> Path:
    return lay_out(tmp_path / "theirs", [Plant(name, name)])


# --- a wrong SM4 in a folder of one's own ---


@pytest.mark.parametrize("lane", [NATIVE, EMULATED])
def test_a_wrong_sm4_is_caught_named_and_replayed(tmp_path: Path, lane: str) -> None:
    folder = plant(tmp_path, WRONG)
    file = tmp_path / "results.json"
    cell = f"{CTR}/planted-{WRONG}@{lane}"
    options: list[str | Path] = ["--cell", f"{CTR}/*", "--lane", lane, "--count", "2048", "--impls", folder]
    done = crosslane("check", *options, "--no-findings", "--json", file)
    assert (done.returncode, done.stderr) == (1, "")
    cells = {item["cell"]: item for item in json.loads(file.read_text())["algorithms"][0]["cells"]}
    assert [name for name, item in cells.items() if item["findings"]] == [cell]
    (finding,) = cells[cell]["findings"]
    assert (finding["verdict"], finding["symptom"], finding["repeats"]) == ("disagree", "output", "alone")
    assert "of the output after update" in finding["text"]
    command = next(line.partition("crosslane ")[2] for line in done.stdout.splitlines() if "crosslane repro" in line)
    assert finding["case_id"] in command
    again = crosslane(*shlex.split(command))
    assert (again.returncode, again.stderr) == (1, "")
    assert again.stdout.splitlines()[-1] == f"{cell}: {finding['text']}"
    innocent = crosslane("repro", finding["case_id"], "--impls", folder, "--cell", f"{CTR}/sm4-generic@{lane}")
    assert innocent.returncode == 0
    assert f"{CTR}/sm4-generic@{lane}: agrees" in innocent.stdout.splitlines()


# --- interrupts ---


def session_of(pid: int) -> list[tuple[int, str]]:
    """Process ids and command lines of all that lives in the session that ``pid`` leads."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == pid and fields[0] != "Z":
                found.append((int(entry.name), (entry / "cmdline").read_text().replace("\0", " ")))
    return found


def until(happened: Callable[[], bool], limit_s: float = 60.0) -> bool:
    """Wait until something happened; whether it did."""
    end = time.monotonic() + limit_s
    while not happened():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def cpu_ticks(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])
    return 0


def to_group(pid: int) -> None:
    os.killpg(pid, signal.SIGINT)


def to_parent(pid: int) -> None:
    os.kill(pid, signal.SIGINT)


@pytest.mark.parametrize("interrupt", [to_group, to_parent])
@pytest.mark.parametrize("subject", ["honest", "spins", "sleeps"])
def test_an_interrupt_ends_everything_and_says_what_was_compared(
    tmp_path: Path, subject: str, interrupt: Callable[[int], None]
) -> None:
    folder = plant(tmp_path, subject)
    warm = crosslane("build", "--impls", folder, "--lane", NATIVE, "--lane", EMULATED)
    assert warm.returncode == 0
    lane = NATIVE if subject == "sleeps" else EMULATED
    arguments = ["check", "--cell", f"{CTR}/planted-{subject}@{lane}", "--lane", lane, "--count", "50000000"]
    with subprocess.Popen(
        [*COMMAND, *arguments, "--impls", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:

            def shims() -> list[int]:
                return [pid for pid, line in session_of(process.pid) if line.rstrip().endswith("/shim")]

            # A shim lives, and has had some time to work or to hang.
            assert until(lambda: shims() != [])
            assert until(lambda: subject == "sleeps" or sum(map(cpu_ticks, shims())) > 20)
            time.sleep(0.3)
            interrupt(process.pid)
            out, err = process.communicate(timeout=30)
            assert (process.returncode, err) == (130, "")
            last = out.splitlines()[-1]
            assert last.startswith("interrupted: ")
            assert last.endswith(
                "comparisons were made, 0 of 1 algorithms are complete and shown above; the rest did not run"
            )
            made = int(last.split()[1].replace(",", ""))
            assert (made > 0) is (subject == "honest")
            assert until(lambda: session_of(process.pid) == [], QUIET_S), session_of(process.pid)
        finally:
            for pid, _ in session_of(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


# --- bad surroundings: one sentence ---


def test_a_compile_error_of_a_third_party_shows_the_compilers_words(tmp_path: Path) -> None:
    folder = plant(tmp_path, "honest")
    source = folder / "sm4" / "honest" / "leaf.c"
    source.write_text(source.read_text().replace("= sizeof(struct sm4)", "= sizeof(struct sm5)"))
    done = crosslane("check", "--cell", CTR, "--lane", NATIVE, "--no-findings", "--impls", folder)
    assert done.returncode == 2
    assert "sm4/honest/leaf.c: does not compile; correct what the compiler says:" in done.stderr
    assert "invalid application of 'sizeof' to incomplete type 'struct sm5'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_qemu_names_the_package(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    cross = f"{EMULATED.removesuffix('_qemu_max')}-linux-gnu-"
    for name in (
        "sh",
        "git",
        "gcc",
        "objcopy",
        "as",
        "ld",
        f"{cross}gcc",
        f"{cross}objcopy",
        f"{cross}as",
        f"{cross}ld",
    ):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    done = crosslane("check", "--cell", CTR, "--lane", EMULATED, "--count", "8", path=str(tools))
    assert done.returncode == 2
    (sentence,) = [line for line in done.stderr.splitlines() if line]
    assert "install the package qemu-user (as root: apt-get install qemu-user)" in sentence
    ours = f"{CTR}/sm4-*"  # whether a library's switch works is seen under an emulator
    assert crosslane("check", "--cell", ours, "--lane", NATIVE, "--count", "1024", path=str(tools)).returncode == 0


def test_a_full_disk_is_one_sentence_and_the_report_stands(tmp_path: Path) -> None:
    """By way of a link, so that a mistake would replace the link and not the machine's device."""
    full = tmp_path / "results.json"
    full.symlink_to("/dev/full")
    cell = f"{CTR}/sm4-generic@{NATIVE}"
    done = crosslane("check", "--cell", cell, "--count", "64", "--no-findings", "--json", full)
    assert done.returncode == 3
    assert any(line.split()[:2] == [cell, "agreed"] for line in done.stdout.splitlines())
    assert "1 cells: 1 agreed" in done.stdout
    (sentence,) = done.stderr.splitlines()
    assert "results.json: the results cannot be written (No space left on device)" in sentence
    assert full.is_symlink()
    assert stat.S_ISCHR(full.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
