# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from crosslane.data import data_root
from crosslane.errors import BadInput, MissingTool
from crosslane.isa import feature_flags
from crosslane.lanes import lane_named, lanes_for_host, load_lanes
from crosslane.model import Registry
from crosslane.stations import memory_limit
from crosslane.toolchain import find_qemu, find_toolchain, runner_command

GOOD = """[x86_64_native]
comment = "here"
arch = "x86_64"
runner = "native"
cpu = ""
compiler = "gcc"
opt = "-O2"
sanitizer = "none"
hosts = ["x86_64"]
hides = []
gate = true
full = ["x86_64"]
"""
EMULATED = (
    "x86_64_qemu_max x86_64_qemu_nehalem x86_64_qemu_noxsave aarch64_qemu_max aarch64_qemu_cortex_a57 "
    "aarch64_qemu_no_ce"
)
PORTABLE = "s390x_qemu ppc64_qemu i386_qemu armhf_qemu riscv64_qemu"
BUILDS = ("gcc_o0", "gcc_o1", "gcc_o3", "gcc_lto", "gcc_protector", "clang_o0", "clang_o1", "clang_o2", "clang_lto")
NIGHTLY = {*(f"aarch64_{build}" for build in BUILDS), "x86_64_qemu_v2", "x86_64_qemu_v3"}
NIGHTLY_NATIVE = {f"x86_64_{build}" for build in BUILDS}


def registry_for(host: str) -> Registry:
    lanes = load_lanes(data_root() / "ci" / "lanes.toml", host=host)
    return Registry(ciphers=(), modes=(), implementations=(), lanes=lanes, root=data_root())


@pytest.mark.parametrize(
    ("host", "names", "full"),
    [
        (
            "x86_64",
            (
                "x86_64_native x86_64_native_win64 x86_64_asan x86_64_ubsan x86_64_clang_o3 aarch64_clang_o3 "
                f"{EMULATED} {PORTABLE}"
            ),
            "x86_64_native aarch64_qemu_max",
        ),
        (
            "aarch64",
            f"aarch64_native aarch64_clang_o3 {EMULATED} {PORTABLE}",
            "aarch64_native x86_64_qemu_max",
        ),
    ],
)
def test_each_host_has_its_lanes(host: str, names: str, full: str) -> None:
    lanes = lanes_for_host(registry_for(host), host)
    assert {lane.name for lane in lanes if lane.gate} == set(names.split())
    assert {lane.name for lane in lanes if lane.full} == set(full.split())
    nightly = NIGHTLY | (NIGHTLY_NATIVE if host == "x86_64" else set())
    assert {lane.name for lane in lanes if not lane.gate} == nightly


def test_each_lane_is_built_as_its_name_says() -> None:
    builds = {lane.name: lane for lane in registry_for("x86_64").lanes}
    for name, lane in builds.items():
        last = name.removeprefix(f"{lane.arch}_")
        special = re.fullmatch("(gcc|clang)_(o[0-3]|lto|protector)", last)
        assert lane.compiler == (special[1] if special else "gcc"), name
        assert lane.lto == last.endswith("lto"), name
        assert lane.protector == last.endswith("protector"), name
        assert lane.floor == (f"x86-64-{last[-2:]}" if last in ("qemu_v2", "qemu_v3") else ""), name
        if special and special[2][0] == "o":
            assert lane.opt == f"-{special[2].upper()}", name
    usual = {name for name, lane in builds.items() if lane.usual}
    assert usual == {"x86_64_native", "aarch64_native", *EMULATED.split(), *PORTABLE.split()}
    assert builds["x86_64_native_win64"].abi == "win64"
    # The native lane and those of qemu share a build: three of x86_64, three of aarch64.
    assert len({lane.build for lane in builds.values()}) == len(builds) - 6


def test_what_a_lane_leaves_out_has_its_default(tmp_path: Path) -> None:
    path = tmp_path / "lanes.toml"
    path.write_text(GOOD.replace('compiler = "gcc"\n', ""))
    (lane,) = load_lanes(path, host="x86_64")
    assert (lane.compiler, lane.lto, lane.protector, lane.floor, lane.usual) == ("gcc", False, False, "", True)


def test_a_host_without_lanes_is_told_the_allowed_ones() -> None:
    with pytest.raises(BadInput, match="architecture 'riscv64'; allowed are aarch64, x86_64"):
        lanes_for_host(registry_for("x86_64"), "riscv64")


def test_an_unknown_lane_gets_the_nearest_names() -> None:
    lanes = registry_for("x86_64").lanes
    assert lane_named(lanes, "x86_64_native").name == "x86_64_native"
    with pytest.raises(BadInput, match="no lane 'x86_64_natve'; nearest are x86_64_native"):
        lane_named(lanes, "x86_64_natve")
    with pytest.raises(BadInput, match="no lane 'zz'; nothing is named alike"):
        lane_named(lanes, "zz")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[x86_64_native]", "[x86_64_native", r"malformed TOML: .*line 1"),
        (
            'arch = "x86_64"',
            'arch = "mips"',
            "arch has 'mips'; allowed are x86_64, aarch64, s390x, ppc64, i386, armhf, riscv64",
        ),
        ('runner = "native"', 'runner = "docker"', "runner has 'docker'; allowed are native, qemu"),
        ('runner = "native"', 'runner = "qemu"', "cpu is empty; a qemu lane needs a CPU model"),
        ('cpu = ""', 'cpu = "max"', "a native lane has cpu"),
        ('cpu = ""', 'cpu = "max; rm"', "cpu has 'max; rm'; it must be of the form"),
        ('compiler = "gcc"', 'compiler = "tcc"', "compiler has 'tcc'; allowed are gcc, clang"),
        ("gate = true", "gate = true\nlto = 1", "lto has 1; it must be true or false"),
        ("gate = true", 'gate = true\nprotector = "all"', "protector has 'all'; it must be true or false"),
        ("gate = true", 'gate = true\nfloor = "native"', "has 'native'; allowed for x86_64 are x86-64-v2, x86-64-v3"),
        ('opt = "-O2"', 'opt = "-Ofast"', "opt has '-Ofast'; allowed are -O0"),
        ('sanitizer = "none"', 'sanitizer = ""', "sanitizer has ''; allowed are none, address, undefined"),
        ('hosts = ["x86_64"]', 'hosts = ["s390x"]', "hosts has 's390x'; allowed are x86_64, aarch64"),
        ('hosts = ["x86_64"]', 'hosts = "x86_64"', "hosts is 'x86_64'; it must be a list"),
        ('hosts = ["x86_64"]', "hosts = []", r"hosts is \[\]; it needs 1 or more"),
        ('hosts = ["x86_64"]', 'hosts = ["aarch64"]', "a native lane has cpu"),
        ("hides = []", 'hides = ["sm4"]', "hides has 'sm4'; allowed for x86_64 are ssse3"),
        ("gate = true", "gate = 1", "gate has 1; it must be true or false"),
        ("gate = true\n", "", "the key 'gate' is missing; add it"),
        ("gate = true", "gate = true\ncolour = 1", "unknown key 'colour'; allowed are comment, arch"),
        ('full = ["x86_64"]', 'full = ["aarch64"]', "full has 'aarch64'; allowed are its hosts, x86_64"),
        ("[x86_64_native]", "[native]", r"\[native\]: the name must be of the form x86_64_"),
        ("[x86_64_native]", "[x86_64_Native]", "the name must be of the form x86_64_"),
        ("[x86_64_native]", "x86_64_native = 3\n[x86_64_b]", "'x86_64_native' is no table"),
    ],
)
def test_a_bad_lane_is_one_sentence(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "lanes.toml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(BadInput, match=message) as caught:
        load_lanes(path, host="x86_64")
    assert "lanes.toml: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_sanitizer_needs_a_native_lane(tmp_path: Path) -> None:
    path = tmp_path / "lanes.toml"
    emulated = GOOD.replace('"native"', '"qemu"').replace('cpu = ""', 'cpu = "max"')
    path.write_text(emulated.replace('"none"', '"address"'))
    with pytest.raises(BadInput, match='sanitizer has \'address\', which needs runner = "native"; write "none"'):
        load_lanes(path, host="x86_64")


@pytest.mark.parametrize("other", ['compiler = "clang"', 'compiler = "gcc"\nlto = true'])
def test_a_sanitizer_is_of_gcc_and_without_lto(tmp_path: Path, other: str) -> None:
    path = tmp_path / "lanes.toml"
    path.write_text(GOOD.replace('compiler = "gcc"', other).replace('"none"', '"undefined"'))
    with pytest.raises(BadInput, match="sanitizer has 'undefined', which needs gcc without lto"):
        load_lanes(path, host="x86_64")


def test_portable_architectures_have_gcc_alone_and_no_floor(tmp_path: Path) -> None:
    path = tmp_path / "lanes.toml"
    emulated = GOOD.replace('"native"', '"qemu"').replace('cpu = ""', 'cpu = "max"').replace("x86_64_native", "s390x_a")
    portable = emulated.replace('arch = "x86_64"', 'arch = "s390x"')
    path.write_text(portable.replace('"gcc"', '"clang"'))
    with pytest.raises(BadInput, match="compiler has 'clang'; allowed for s390x is gcc"):
        load_lanes(path, host="x86_64")
    path.write_text(portable + 'floor = "z15"\n')
    with pytest.raises(BadInput, match="floor has 'z15'; allowed for s390x are none, leave the key out"):
        load_lanes(path, host="x86_64")


def test_an_empty_and_a_missing_and_a_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "lanes.toml"
    with pytest.raises(BadInput, match=r"lanes.toml: cannot be read \(No such file"):
        load_lanes(path)
    path.write_text("")
    with pytest.raises(BadInput, match="there is no lane"):
        load_lanes(path)
    path.write_bytes(b"a = '\xff'")
    with pytest.raises(BadInput, match="byte 5 is not UTF-8"):
        load_lanes(path)


@pytest.mark.parametrize(
    ("arch", "features", "flags"),
    [
        ("x86_64", [], ["-march=x86-64", "-mtune=generic"]),
        ("x86_64", ["sse4_1", "vpclmul"], ["-march=x86-64", "-mtune=generic", "-msse4.1", "-mvpclmulqdq"]),
        ("aarch64", [], ["-march=armv8-a"]),
        ("aarch64", ["neon", "aes", "pmull"], ["-march=armv8-a+crypto"]),
        ("aarch64", ["sm4", "aes"], ["-march=armv8.2-a+crypto+sm4"]),
        ("aarch64", ["sha3"], ["-march=armv8.2-a+sha3"]),
        ("s390x", [], ["-march=z196"]),
        ("i386", [], ["-march=i686", "-mtune=generic"]),
    ],
)
def test_flags_follow_from_features(arch: str, features: list[str], flags: list[str]) -> None:
    assert list(feature_flags(arch, features)) == flags


def test_a_floor_replaces_the_first_instruction_set_and_keeps_the_features() -> None:
    assert list(feature_flags("x86_64", ["aes"], "x86-64-v3")) == ["-march=x86-64-v3", "-mtune=generic", "-maes"]


def test_a_missing_clang_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    wanted = "the program clang is not installed, which the aarch64 lanes of clang need; install the packages clang "
    with pytest.raises(MissingTool, match=wanted + "gcc-aarch64-linux-gnu libc6-dev-arm64-cross "):
        find_toolchain("aarch64", compiler="clang", host="x86_64")
    with pytest.raises(MissingTool, match="install the packages clang gcc libc6-dev "):
        find_toolchain("x86_64", compiler="clang", host="x86_64")


def test_clang_is_told_which_architecture_and_its_version_is_in_the_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("objcopy", "aarch64-linux-gnu-objcopy"):
        (tmp_path / name).write_text("#!/bin/sh\n")
    script = '#!/bin/sh\ncase "$*" in --version) echo clang 99;; *libc.a) echo "$0";; esac\n'
    (tmp_path / "clang").write_text(script)
    for path in tmp_path.iterdir():
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    cross = find_toolchain("aarch64", compiler="clang", host="x86_64")
    assert cross.command == (str(tmp_path / "clang"), "--target=aarch64-linux-gnu", "-Qunused-arguments")
    assert Path(cross.objcopy).name == "aarch64-linux-gnu-objcopy"
    assert "clang 99" in cross.identity
    assert find_toolchain("x86_64", compiler="clang", host="x86_64").flags[0] == "--target=x86_64-linux-gnu"
    assert Path(find_toolchain("x86_64", compiler="clang", host="x86_64").objcopy).name == "objcopy"


def test_a_missing_tool_names_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool, match="gcc-aarch64-linux-gnu libc6-dev-arm64-cross"):
        find_toolchain("aarch64", host="x86_64")
    with pytest.raises(MissingTool, match="gcc-x86-64-linux-gnu libc6-dev-amd64-cross"):
        find_toolchain("x86_64", host="aarch64")
    with pytest.raises(MissingTool, match="install the packages gcc libc6-dev "):
        find_toolchain("x86_64", host="x86_64")
    with pytest.raises(MissingTool, match="install the package qemu-user "):
        find_qemu("aarch64")
    with pytest.raises(MissingTool, match="the program qemu-arm is not installed, which the armhf qemu lanes need"):
        find_qemu("armhf")


@pytest.mark.parametrize(
    ("arch", "packages"),
    [
        ("s390x", "gcc-s390x-linux-gnu libc6-dev-s390x-cross"),
        ("ppc64", "gcc-powerpc64-linux-gnu libc6-dev-ppc64-cross"),
        ("i386", "gcc-i686-linux-gnu libc6-dev-i386-cross"),
        ("armhf", "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross"),
        ("riscv64", "gcc-riscv64-linux-gnu libc6-dev-riscv64-cross"),
    ],
)
def test_a_missing_portable_compiler_names_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arch: str, packages: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool, match=f"which the {arch} lanes need; install the packages {packages} "):
        find_toolchain(arch)


def test_a_missing_sanitizer_library_is_a_missing_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "objcopy").write_text("#!/bin/sh\n")
    (tmp_path / "gcc").write_text(
        '#!/bin/sh\ncase "$1" in --version) echo gcc 1;; *libc.a) echo "$0";; *) echo libasan.so;; esac\n'
    )
    for name in ("gcc", "objcopy"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_toolchain("x86_64", host="x86_64").version == "gcc 1"
    with pytest.raises(MissingTool, match=r"gcc's library libasan\.so is not installed"):
        find_toolchain("x86_64", sanitizer="address", host="x86_64")


def test_every_lane_of_portable_code_is_limited_in_memory() -> None:
    lanes = {lane.name: memory_limit(lane) for lane in registry_for("x86_64").lanes}
    assert [name for name, limit in lanes.items() if limit is None] == ["x86_64_asan"]
    assert {name for name, limit in lanes.items() if (limit or 0) > 4 << 30} == {"i386_qemu", "armhf_qemu"}


def test_a_broken_compiler_and_a_missing_library_are_missing_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gcc", "objcopy"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool, match=r"a working .*gcc"):
        find_toolchain("x86_64", host="x86_64")
    (tmp_path / "gcc").write_text("#!/bin/sh\necho libc.a\n")
    with pytest.raises(MissingTool, match=r"libc\.a"):
        find_toolchain("x86_64", host="x86_64")


@pytest.mark.parametrize(
    ("lane", "cpu", "message"),
    [
        (
            "aarch64_qemu_max",
            "cortex-a75",
            "cpu has 'cortex-a75', which .* does not know; nearest are cortex-a7",
        ),
        (
            "aarch64_qemu_max",
            "zzz",
            "allowed are .*cortex-a57, .*max.*; `qemu-aarch64 -cpu help` lists all",
        ),
        ("s390x_qemu", "zzz", "which qemu-s390x does not know; allowed are .*"),
        ("x86_64_qemu_max", "max,-xsav", "but qemu-x86_64 knows no property 'xsav' of it; nearest are xsave"),
    ],
)
def test_a_model_that_the_emulator_does_not_have_is_one_sentence(lane: str, cpu: str, message: str) -> None:
    known = lane_named(registry_for("x86_64").lanes, lane)
    try:
        assert runner_command(known)[2] == known.cpu
    except MissingTool as error:
        pytest.skip(str(error))
    with pytest.raises(BadInput, match=rf"lanes.toml: \[{lane}\]: .*{message}") as caught:
        runner_command(replace(known, cpu=cpu))
    assert "\n" not in str(caught.value)
    assert "(alias" not in str(caught.value)


def test_static_qemu_serves_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "qemu-aarch64-static"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    lanes = registry_for("x86_64").lanes
    assert runner_command(lane_named(lanes, "aarch64_qemu_max")) == (str(program), "-cpu", "max")
    assert runner_command(lane_named(lanes, "x86_64_native")) == ()


def test_only_x86_64_has_another_calling_convention(tmp_path: Path) -> None:
    text = (data_root() / "ci" / "lanes.toml").read_text()
    wrong = tmp_path / "lanes.toml"
    wrong.write_text(text.replace("[aarch64_native]\n", '[aarch64_native]\nabi = "win64"\n'))
    with pytest.raises(BadInput, match='abi has "win64", which needs arch = "x86_64"'):
        load_lanes(wrong)
