# SPDX-License-Identifier: Apache-2.0
"""Functions of an implementation that get nothing to do, as the mode code would not call all of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from crosslane.build import build_shim
from crosslane.data import data_root
from crosslane.lanes import lane_named
from crosslane.registry import load_registry
from crosslane.toolchain import runner_command

CALLER = Path(__file__).parent / "planted" / "empty.c"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our implementations, with the caller in place of the shim."""
    root, real = tmp_path_factory.mktemp("empty"), data_root()
    shutil.copytree(real / "impls", root / "impls", ignore=shutil.ignore_patterns("shim", "bench", "providers"))
    shutil.copytree(real / "ci", root / "ci")
    shim = root / "impls" / "shim"
    shim.mkdir()
    for header in (real / "impls" / "shim").glob("*.h"):
        shutil.copy(header, shim)
    shutil.copy(CALLER, shim / "empty.c")
    return root


def calls(root: Path, lane_name: str) -> subprocess.CompletedProcess[str]:
    registry = load_registry(root)
    lane = lane_named(registry.lanes, lane_name)
    program = build_shim(registry, lane, [item for item in registry.implementations if lane.takes(item)])
    return subprocess.run([*runner_command(lane), program], capture_output=True, check=False, text=True)


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_without_data_no_function_touches_data_or_iv(root: Path, arch: str) -> None:
    done = calls(root, f"{arch}_qemu_max")
    assert done.returncode == 0, done.stdout.splitlines()[-3:]
    assert "changed" not in done.stdout
    drivers = {line.split()[0] for line in done.stdout.splitlines()}
    assert drivers == {item.driver for item in load_registry(root).implementations if item.isa in ("any", arch)}


def test_the_caller_would_see_it(root: Path, tmp_path: Path) -> None:
    changed = tmp_path / "root"
    shutil.copytree(root, changed)
    header = changed / "impls" / "ciphers" / "serpent" / "serpent_modes.h"
    text = header.read_text()
    assert text.count("if (len < BLOCK_LEN) {") == 1
    header.write_text(text.replace("if (len < BLOCK_LEN) {", "if (len == 7) {"))
    done = calls(changed, "x86_64_qemu_max")
    assert done.returncode != 0
    assert done.stdout.splitlines()[-1].startswith("serpent-")
    assert done.stdout.splitlines()[-1].endswith("xts encrypt 15")
