# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crosslane.build import build_lanes, build_launcher, build_shim, trust_groups
from crosslane.buildcache import cache_folder, cached, digest, entry_path, scratch, store
from crosslane.buildplan import plan_shim
from crosslane.compiling import Compilers, included_files
from crosslane.data import data_root
from crosslane.errors import BadInput, HarnessFault
from crosslane.isa import PORTABLE_ARCHES, host_arch
from crosslane.lanes import lane_named, load_lanes
from crosslane.model import Lane, Registry
from crosslane.precompiled import prefix_of
from crosslane.registry import implementation_named, load_registry
from crosslane.toolchain import find_toolchain, lane_toolchain, runner_command

HOST = host_arch()
OTHER = "aarch64" if HOST == "x86_64" else "x86_64"
OF_OTHER_KINDS = [
    lane.name
    for lane in load_lanes(data_root() / "ci" / "lanes.toml")
    if HOST in lane.hosts and (lane.arch in PORTABLE_ARCHES or not lane.usual) and lane.abi == "system"
]
GENERIC = Path("impls") / "ciphers" / "toy" / "generic"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def native(registry: Registry) -> Lane:
    return lane_named(registry.lanes, f"{HOST}_native")


def run(program: Path, lane: Lane) -> list[str]:
    done = subprocess.run([*runner_command(lane), program], capture_output=True, check=True, text=True)
    return done.stdout.splitlines()


def build_generic(root: Path) -> Path:
    registry = load_registry(root)
    return build_shim(registry, native(registry), [implementation_named(registry, "toy-generic")])


@pytest.mark.parametrize("name", [f"{HOST}_native", f"{OTHER}_qemu_max", f"{OTHER}_qemu_" + "*", *OF_OTHER_KINDS])
def test_a_shim_says_what_it_was_built_with(fake_root: Path, name: str) -> None:
    registry = load_registry(fake_root)
    lane = next(lane for lane in registry.lanes if lane.name.startswith(name.rstrip("*")))
    programs = build_lanes(registry, [lane])[lane.name]
    special = {"x86_64": "toy-avx2-x86_64 toy toy_x86_64_avx2 1way 0", "aarch64": "toy-ce toy toy_aarch64_ce 1way 0"}
    assert len(programs) == 1
    lines = run(programs[0].path, lane)
    assert lines[-3:] == ["toy-generic toy toy_generic 1way 1", "ecb", "wide"]
    assert lines[:-3] == ([special[lane.arch]] if lane.arch in special else [])


def test_a_sanitizer_watches_the_code_under_test_and_not_the_shim(fake_root: Path) -> None:
    registry = load_registry(fake_root)
    lane = lane_named(registry.lanes, "x86_64_asan")
    program = plan_shim(registry, lane, [implementation_named(registry, "toy-generic")], find_toolchain(HOST))
    watched = {unit.name for unit in program.units if "-fsanitize=address" in unit.flags}
    assert watched == {"toy_generic", "mode_ecb", "mode_wide"}
    assert "-static" not in program.link_flags


def _flags(registry: Registry, lane: Lane) -> dict[str, tuple[str, ...]]:
    program = plan_shim(registry, lane, [implementation_named(registry, "toy-generic")], lane_toolchain(lane))
    return {unit.name: unit.flags for unit in program.units}


@pytest.mark.parametrize(
    ("name", "flag"),
    [(f"{HOST}_gcc_protector", "-fstack-protector-strong"), ("x86_64_qemu_v3", "-march=x86-64-v3")],
)
def test_what_a_lane_adds_is_built_into_the_code_under_test_alone(fake_root: Path, name: str, flag: str) -> None:
    registry = load_registry(fake_root)
    flags = _flags(registry, lane_named(registry.lanes, name))
    assert {unit for unit, found in flags.items() if flag in found} == {"toy_generic", "mode_ecb", "mode_wide"}
    assert not any(flag in found for found in _flags(registry, native(registry)).values())


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_link_time_optimisation_reaches_across_the_files_of_a_subject(fake_root: Path, compiler: str) -> None:
    """The getter calls helper() of the other file, which disappears in it; each subject keeps a helper of its own."""
    registry = load_registry(fake_root)
    calls = {}
    for name in (f"{HOST}_native", f"{HOST}_{compiler}_lto"):
        lane = lane_named(registry.lanes, name)
        program = build_lanes(registry, [lane])[name][0]
        assert run(program.path, lane)[-3:] == ["toy-generic toy toy_generic 1way 1", "ecb", "wide"]
        tools = lane_toolchain(lane)
        plan = plan_shim(registry, lane, [implementation_named(registry, "toy-generic")], tools)
        (unit,) = (unit for unit in plan.units if unit.name == "toy_generic")
        made = entry_path(cache_folder(), unit.key, unit.file_name)
        text = subprocess.run(["objdump", "-dr", made], capture_output=True, check=True, text=True).stdout
        getter = text[text.index("<toy_generic>:") :].partition("\n\n")[0]
        calls[name] = bool(re.search(r"\b(call|jmp|bl?)\b.*(helper|toy_generic\+)|R_.*helper", getter))
        symbols = subprocess.run(["nm", "-g", made], capture_output=True, check=True, text=True).stdout.split()
        assert [word for word in symbols if "toy" in word or "helper" in word] == ["toy_generic"]
    assert list(calls.values()) == [True, False]


def test_a_third_party_gets_a_program_of_its_own(fake_root: Path, third_party: Path) -> None:
    registry = load_registry(fake_root, [third_party])
    lane = native(registry)
    groups = trust_groups(registry, lane)
    assert [[item.driver for item in group] for group in groups][1:] == [["toy-theirs"]]
    programs = build_lanes(registry, [lane])[lane.name]
    assert [program.implementations for program in programs] == groups
    assert run(programs[1].path, lane) == ["toy-theirs toy toy_theirs 1way 1", "ecb", "wide"]


def test_the_launcher_is_not_part_of_the_shim(fake_root: Path) -> None:
    assert subprocess.run([build_launcher(fake_root)], check=False).returncode == 7


def test_a_second_build_compiles_nothing(fake_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    registry = load_registry(fake_root)
    first = build_lanes(registry, [native(registry)], progress=steps.append)
    assert sum(step.startswith("compiled") for step in steps) >= 6
    assert sum(step.startswith("linked shim") for step in steps) == 1
    monkeypatch.setattr(Compilers, "run", lambda *_, **__: pytest.fail("a compiler ran"))
    start = time.monotonic()
    assert build_lanes(registry, [native(registry)]) == first
    assert time.monotonic() - start < 1


def test_only_what_changed_is_compiled_again(fake_root: Path) -> None:
    build_generic(fake_root)
    edit(fake_root / GENERIC / "more.c", "return 1", "return 2")
    steps: list[str] = []
    registry = load_registry(fake_root)
    build_lanes(registry, [native(registry)], progress=steps.append)
    compiled = {step.split()[1] for step in steps if step.startswith("compiled")}
    assert "toy_generic" in compiled
    assert "main" not in compiled
    assert "mode_ecb" not in compiled


def test_a_precompiled_header_changes_no_byte_of_an_object(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    registry = load_registry(data_root())
    lane = native(registry)
    toolchain = lane_toolchain(lane)
    items = [item for item in registry.implementations if item.cipher == "sm4" and lane.takes(item)]
    vector = next(item for item in items if item.features)
    generic = next(item for item in items if item.is_generic)
    program = plan_shim(registry, lane, [vector, generic], toolchain)
    (unit,) = [unit for unit in program.units if prefix_of(unit, toolchain) is not None]
    assert unit.name == vector.symbol
    commands: list[list[str]] = []
    compiler = Compilers.run

    def watched(self: Compilers, command: list[str], *, subject: Path, task: str) -> None:
        commands.append(command)
        compiler(self, command, subject=subject, task=task)

    monkeypatch.setattr(Compilers, "run", watched)
    made = []
    for least, expected in ((1, (1, 1)), (2, (0, 0))):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(least)))
        monkeypatch.setattr("crosslane.precompiled.LEAST_UNITS", least)
        commands.clear()
        build_shim(registry, lane, [vector, generic])
        assert tuple(sum(word in command for command in commands) for word in ("c-header", "-include")) == expected
        made.append(entry_path(cache_folder(), unit.key, unit.file_name).read_bytes())
    assert made[0] == made[1]


@pytest.mark.parametrize(
    "place", [GENERIC / "toy.h", Path("impls/shim/subject.h"), Path("impls/ciphers/toy/shared.h"), GENERIC / "toy.c"]
)
def test_a_changed_source_or_header_is_another_program(fake_root: Path, place: Path) -> None:
    before = build_generic(fake_root)
    assert build_generic(fake_root) == before
    with (fake_root / place).open("a") as file:
        file.write("/* more */\n")
    after = build_generic(fake_root)
    assert after != before
    assert before.exists()


def test_two_checkouts_share_the_cache(fake_root: Path, tmp_path: Path) -> None:
    shutil.copytree(fake_root, tmp_path / "another place")
    assert build_generic(fake_root) == build_generic(tmp_path / "another place")


def test_a_folder_with_blanks_and_signs_builds(fake_root: Path, tmp_path: Path) -> None:
    odd = tmp_path / "a b#c$d'e"
    fake_root.rename(odd)
    assert build_generic(odd).exists()


def test_a_compile_error_shows_the_compilers_words_and_keeps_the_rest(fake_root: Path) -> None:
    edit(fake_root / GENERIC / "toy.c", "return SUBJECT_OK;", "return SUBJECT_FINE;")
    registry = load_registry(fake_root)
    steps: list[str] = []
    with pytest.raises(
        BadInput, match=r"generic/toy\.c: does not compile; correct what the compiler says:\n"
    ) as caught:
        build_lanes(registry, [native(registry)], progress=steps.append)
    assert "'SUBJECT_FINE' undeclared" in str(caught.value)
    assert any("compiled mode_ecb" in step for step in steps)
    edit(fake_root / GENERIC / "toy.c", "SUBJECT_FINE", "SUBJECT_OK")
    assert build_generic(fake_root).exists()


def test_warnings_stop_our_own_code_but_not_a_third_partys(fake_root: Path, third_party: Path) -> None:
    for folder in (fake_root / GENERIC, third_party / "toy" / "theirs"):
        edit(folder / "toy.c", "    (void)policy;\n", "    int unused;\n")
    registry = load_registry(fake_root, [third_party])
    assert build_shim(registry, native(registry), [implementation_named(registry, "toy-theirs")]).exists()
    with pytest.raises(BadInput, match="unused"):
        build_generic(fake_root)


def test_a_missing_getter_does_not_link(fake_root: Path, third_party: Path) -> None:
    edit(third_party / "toy" / "theirs" / "toy.c", "toy_theirs", "toy_mine")
    registry = load_registry(fake_root, [third_party])
    with pytest.raises(BadInput, match=r"toy/theirs: the program shim does not link.*\n(.*\n)*.*toy_theirs"):
        build_shim(registry, native(registry), [implementation_named(registry, "toy-theirs")])


def test_a_header_from_elsewhere_is_refused(fake_root: Path, third_party: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.h").write_text("#define SECRET 1\n")
    edit(third_party / "toy" / "theirs" / "toy.c", '#include "toy.h"', '#include "toy.h"\n#include "../../../secret.h"')
    registry = load_registry(fake_root, [third_party])
    with pytest.raises(BadInput, match=r"toy\.c: includes .*secret\.h; allowed are headers"):
        build_shim(registry, native(registry), [implementation_named(registry, "toy-theirs")])


def test_hostile_code_cannot_hold_the_compiler_forever(
    fake_root: Path, third_party: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosslane.compiling._TIME_LIMIT_S", 1.0)
    theirs = third_party / "toy" / "theirs"
    (theirs / "pipe.h").unlink(missing_ok=True)
    os.mkfifo(theirs / "pipe")
    edit(theirs / "toy.c", '#include "toy.h"', '#include "toy.h"\n#include "pipe"')
    registry = load_registry(fake_root, [third_party])
    start = time.monotonic()
    with pytest.raises(BadInput, match="the compiler ran longer than 1 s; simplify the source"):
        build_shim(registry, native(registry), [implementation_named(registry, "toy-theirs")])
    assert time.monotonic() - start < 20


def test_a_file_that_grows_without_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslane.compiling._FILE_LIMIT_BYTES", 1 << 20)
    source = tmp_path / "big.S"
    source.write_text(".skip 1 << 24, 1\n")
    with Compilers(tmp_path) as compilers, pytest.raises(BadInput, match=r"big\.S: does not compile"):
        compilers.run(["gcc", "-c", str(source), "-o", "big.o"], subject=source, task="does not compile")


def test_builders_side_by_side_agree(fake_root: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from crosslane.build import build_lanes\n"
        "from crosslane.registry import load_registry\n"
        "registry = load_registry(Path(sys.argv[1]))\n"
        f"lanes = [lane for lane in registry.lanes if lane.name == '{HOST}_native']\n"
        f"print(build_lanes(registry, lanes)['{HOST}_native'][0].path)\n"
    )

    def build(_: int) -> str:
        return subprocess.run(
            [sys.executable, "-c", code, fake_root], check=True, capture_output=True, text=True
        ).stdout.strip()

    with ThreadPoolExecutor(3) as pool:
        paths = set(pool.map(build, range(3)))
    assert len(paths) == 1
    registry = load_registry(fake_root)
    assert run(Path(paths.pop()), native(registry))[-1] == "wide"
    assert not list(cache_folder().glob(".building-*"))


def test_an_interrupt_leaves_no_compiler_and_no_scratch(fake_root: Path, tmp_path: Path) -> None:
    slow = tmp_path / "bin"
    slow.mkdir()
    marker = tmp_path / "started"
    real = shutil.which("gcc")
    nap = str(1000 + os.getpid())  # nobody else's
    (slow / "gcc").write_text(
        f'#!/bin/sh\ncase "$*" in *-c*) touch "{marker}"; exec sleep {nap};; esac\nexec {real} "$@"\n'
    )
    (slow / "gcc").chmod(0o755)
    code = (
        "import sys; from pathlib import Path\n"
        "from crosslane.build import build_launcher\n"
        "build_launcher(Path(sys.argv[1]))\n"
    )
    environment = {**os.environ, "PATH": f"{slow}:{os.environ['PATH']}"}
    child = subprocess.Popen(
        [sys.executable, "-c", code, fake_root], env=environment, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 20
    while not marker.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    words = child.communicate(timeout=20)[1]
    assert "KeyboardInterrupt" in words
    assert not list(cache_folder().glob(".building-*"))
    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if os.access(path, os.R_OK)]
    assert f"sleep\0{nap}\0".encode() not in running


def test_a_full_disk_is_our_fault_and_says_so(tmp_path: Path) -> None:
    script = "echo 'as: out.o: No space left on device'; exit 1"
    with Compilers(tmp_path) as compilers, pytest.raises(HarnessFault, match="the disk is full; free some space"):
        compilers.run(["sh", "-c", script], subject=tmp_path, task="does not compile")


def test_a_cache_that_cannot_be_written_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with (
        pytest.raises(HarnessFault, match=r"cannot write to the build cache .*set XDG_CACHE_HOME"),
        scratch(cache_folder()),
    ):
        pass


def test_entries_appear_whole_and_old_ones_go(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    path = entry_path(folder, "key", "name")
    assert not cached(path)
    with scratch(folder) as work:
        for text in ("one", "two"):
            (work / "made").write_text(text)
            store(work / "made", path)
    assert cached(path)
    assert path.read_text() == "two"
    os.utime(path.parent, (0, 0))
    assert cached(path)
    with scratch(folder):
        assert cached(path)
    os.utime(path.parent, (0, 0))
    with scratch(folder):
        assert not path.exists()


def test_a_relative_cache_home_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    assert cache_folder() == Path.home() / ".cache" / "crosslane" / "build"


def test_digests_do_not_run_over() -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest([b"ab"]) == digest(["ab"])


def test_make_rules_are_read_with_their_escapes(tmp_path: Path) -> None:
    rule = tmp_path / "x.d"
    rule.write_text("x.o: a\\ b/x.c \\\n y\\#z.h $$d.h\n")
    assert included_files(rule) == [Path("a b/x.c"), Path("y#z.h"), Path("$d.h")]
