# SPDX-License-Identifier: Apache-2.0
"""Findings that generic itself is the subject of: kept with the published answer or the reference, and run again."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from planting import NATIVE

from crosslane.data import data_root
from crosslane.findings.store import Store

pytestmark = pytest.mark.xdist_group("findings_judges")

MODE = Path("impls/modes/ctr/ctr.c")
CIPHER = Path("impls/ciphers/aes/generic/aes.c")
_PARTIAL = "    xor_bytes(dst, src, s->keystream, len);\n"
_EXPANDED = "    for (size_t i = nk, j = 0; i < num_words; i++) {\n"
_EDITS = {
    MODE: (_PARTIAL, _PARTIAL + "    dst[0] ^= 1;\n"),
    CIPHER: (_EXPANDED, "    w[0] ^= 1;\n" + _EXPANDED),
}


def crosslane(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    return subprocess.run(
        [sys.executable, "-m", "crosslane", *arguments], capture_output=True, text=True, timeout=120, check=False,
        cwd=tree, env=environment,
    )  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the suite whose counter mode and whose generic AES are wrong, with the findings of one run."""
    folder = tmp_path_factory.mktemp("tree")
    for name in ("src", "impls", "ci", "conformance", "corpora"):
        shutil.copytree(data_root() / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(data_root() / "pyproject.toml", folder)
    for path, (old, new) in _EDITS.items():
        text = (folder / path).read_text()
        assert text.count(old) == 1
        (folder / path).write_text(text.replace(old, new))
    done = crosslane(
        folder, "check", "--lane", NATIVE, "--cell", f"ctr(sm4)/sm4-generic@{NATIVE}", "--cell",
        f"ecb(aes)/aes-generic@{NATIVE}", "--count", "2048", "--vectors", "own",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    return folder


def finding(tree: Path, judge: str, mode: str) -> str:
    kept, wrong = Store(tree / "findings").read_all()
    assert wrong == []
    return next(item.record.id for item in kept if (item.record.judge, item.record.key.algorithm[:3]) == (judge, mode))


@pytest.mark.parametrize(("judge", "mode", "path"), [("reference", "ctr", MODE), ("vector", "ecb", CIPHER)])
def test_generic_s_own_findings_run_again(tree: Path, judge: str, mode: str, path: Path) -> None:
    name = finding(tree, judge, mode)
    done = crosslane(tree, "repro", name)
    assert done.returncode == 1, done.stderr
    assert re.search(rf"generic@{NATIVE}: .*expected|departs|differs", done.stdout), done.stdout
    done = crosslane(tree, "findings", "retest", name)
    assert (done.returncode, "departs 10 of 10 times: open" in done.stdout) == (1, True), done.stdout + done.stderr
    wrong = (tree / path).read_text()
    try:
        (tree / path).write_text((data_root() / path).read_text())
        done = crosslane(tree, "findings", "retest", name)
        assert (done.returncode, "departs 0 of 10 times: fixed" in done.stdout) == (0, True), done.stdout + done.stderr
    finally:
        (tree / path).write_text(wrong)
