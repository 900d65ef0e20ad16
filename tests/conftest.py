# SPDX-License-Identifier: Apache-2.0
"""Fixtures that several test files share."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslane.data import data_root
from crosslane.manifest import GENERATOR_VERSION, STEERING, Manifest
from crosslane.records import CellResult
from crosslane.wire import CASE_RESULT, Batch, Results, Verdict

os.environ["XDG_DATA_HOME"] = "/nosuchfolder"  # what the user has fetched of libraries is nothing to any test

_SPDX_C = "/* SPDX-License-Identifier: Apache-2.0 */\n"
_SPDX = "# SPDX-License-Identifier: Apache-2.0\n"

_CIPHER = """name = "toy"
title = "Toy"
standard = "none"
block_len = 8
key_lens = [8, 16]
policies = []
"""

_IMPL = """driver = "{driver}"
isa = "{isa}"
features = {features}
priority = {priority}
ways = 1
sources = ["toy.c", "more.c", "toy.h"]
fused = []
paths = ["1way"]
constant_time = true
description = "Adds the key to each byte."
"""

_MODE = """name = "{name}"
title = "{name}"
standard = "none"
split = "block"
serial = false
partial = "refused"
min_len_blocks = 0
iv = "none"
iv_lens = []
iv_out = "none"
directions = ["encrypt", "decrypt"]
aad = false
tag_lens = []
num_keys = 1
key_extra_len = 0
block_lens = {block_lens}
"""

# Every implementation has the same global helper(), which must not clash where they are linked together.
_TOY_H = "extern int helper(void);\n"
_TOY_MORE = '#include "toy.h"\nint helper(void)\n{\n    return 1;\n}\n'
_TOY_C = """#include "subject.h"
#include "toy.h"

static void blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    SUBJECT_PATH("1way");
    (void)ctx;
    memmove(dst, src, num_blocks * 8);
}

static int setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    (void)policy;
    memcpy(ctx, key, key_len);
    return SUBJECT_OK;
}

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = 8,
    .ways = 1,
    .ctx_len = 16,
    .ctx_align = 1,
    .setkey = setkey,
    .encrypt_blocks = blocks,
    .decrypt_blocks = blocks,
};

const struct subject_leaf *@SYMBOL@(uint64_t features);

const struct subject_leaf *@SYMBOL@(uint64_t features)
{
    return (features & UINT64_C(@NEEDS@)) == UINT64_C(@NEEDS@) && helper() ? &leaf : NULL;
}
"""

# A shim that only says what it was built with.
_MAIN_C = """#include <stdio.h>

#include "shim_tables.h"

int main(void)
{
    for (const struct shim_implementation *i = shim_implementations; i->driver != NULL; i++) {
        printf("%s %s %s %s %d\\n", i->driver, i->cipher, i->symbol, i->paths, i->getter(0) != NULL);
    }
    for (const struct shim_mode *m = shim_modes; m->name != NULL; m++) {
        printf("%s\\n", m->name);
    }
    return 0;
}
"""


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _write_implementation(folder: Path, *, driver: str, isa: str, features: str, priority: int) -> None:
    metadata = _IMPL.format(driver=driver, isa=isa, features=features, priority=priority)
    code = _TOY_C.replace("@SYMBOL@", f"toy_{folder.name}").replace("@NEEDS@", "1" if isa != "any" else "0")
    _write(folder / "impl.toml", _SPDX + metadata)
    _write(folder / "toy.c", _SPDX_C + code)
    _write(folder / "toy.h", _SPDX_C + _TOY_H)
    _write(folder / "more.c", _SPDX_C + _TOY_MORE)


def pytest_configure() -> None:
    """A CI that starts its jobs in the background has them ignore interrupts, which tests send to what they start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def fake_root(tmp_path: Path) -> Path:
    """A sound content folder: cipher toy (block 8) in three implementations, modes ecb and wide (block 16 only)."""
    root = tmp_path / "root"
    toy = root / "impls" / "ciphers" / "toy"
    _write(toy / "cipher.toml", _SPDX + _CIPHER)
    _write_implementation(toy / "generic", driver="toy-generic", isa="any", features="[]", priority=100)
    _write_implementation(
        toy / "x86_64_avx2", driver="toy-avx2-x86_64", isa="x86_64", features='["avx2"]', priority=300
    )
    _write_implementation(toy / "aarch64_ce", driver="toy-ce", isa="aarch64", features='["neon", "sm4"]', priority=300)
    for name, block_lens in (("ecb", "[8, 16]"), ("wide", "[16]")):
        folder = root / "impls" / "modes" / name
        _write(folder / "mode.toml", _SPDX + _MODE.format(name=name, block_lens=block_lens))
        mode = f'const struct subject_mode subject_mode_{name} = {{.name = "{name}", .num_ctx = 1}};\n'
        _write(folder / f"{name}.c", f'{_SPDX_C}#include "subject.h"\n{mode}')
        _write(folder / "reference.py", _SPDX)
    shim = root / "impls" / "shim"
    _write(shim / "main.c", _SPDX_C + _MAIN_C)
    _write(shim / "other_x86_64.S", f"{_SPDX_C}#ifndef __x86_64__\n#error wrong architecture\n#endif\n")
    _write(shim / "other_aarch64.S", f"{_SPDX_C}#ifndef __aarch64__\n#error wrong architecture\n#endif\n")
    _write(shim / "launcher.c", f"{_SPDX_C}int main(void)\n{{\n    return 7;\n}}\n")
    real = data_root()
    for name in ("subject.h", "subject_bytes.h", "subject_path.h", "shim_tables.h"):
        shutil.copy(real / "impls" / "shim" / name, shim / name)
    _write(root / "ci" / "lanes.toml", (real / "ci" / "lanes.toml").read_text())
    return root


@pytest.fixture
def third_party(fake_root: Path, tmp_path: Path) -> Path:
    """A third party's folder for ``--impls``: toy/theirs, an implementation for any machine."""
    folder = tmp_path / "third" / "toy" / "theirs"
    shutil.copytree(fake_root / "impls" / "ciphers" / "toy" / "generic", folder)
    metadata = folder / "impl.toml"
    metadata.write_text(metadata.read_text().replace("toy-generic", "toy-theirs").replace("Adds", "Their own adds"))
    code = folder / "toy.c"
    code.write_text(code.read_text().replace("toy_generic", "toy_theirs"))
    return tmp_path / "third"


@pytest.fixture
def make_manifest() -> Callable[..., Manifest]:
    """A manifest as of ctr over a 16-byte block, 8-way, with changes; small batches unless told otherwise."""

    def make(**changes: Any) -> Manifest:
        facts: dict[str, Any] = {
            "generator": GENERATOR_VERSION, "algorithm": "ctr(toy)", "seed": "a test", "block_len": 16,
            "key_lens": (16,), "policies": (), "split": "byte", "partial": "anywhere", "min_len_blocks": 0,
            "iv": "counter", "iv_lens": (16,), "iv_out": "next", "directions": ("encrypt", "decrypt"), "aad": False,
            "tag_lens": (), "num_keys": 1, "key_extra_len": 0, "ways": 8, "sessions_per_batch": 64,
            "messages_per_session": 8, "steering": STEERING,
        }  # fmt: skip
        return Manifest(**{**facts, **changes})

    return make


@pytest.fixture
def make_results() -> Callable[[Batch], Results]:
    """What an oracle might have answered to a batch: every case ran, nothing was refused, the output is noise."""

    def make(batch: Batch) -> Results:
        cases = np.zeros(len(batch), CASE_RESULT)
        cases["verdict"] = Verdict.RAN
        out = np.frombuffer(np.random.default_rng(1).bytes(batch.out_len), np.uint8).copy()
        return Results(np.zeros(8, np.uint64), cases, np.zeros(len(batch.ops), np.uint8), out)

    return make


@pytest.fixture
def make_cell() -> Callable[..., CellResult]:
    """The result of a cell that agreed, with changes."""

    def make(**changes: Any) -> CellResult:
        facts: dict[str, Any] = {
            "cell": "ctr(toy)/toy-avx2-x86_64@x86_64_native", "state": "ran", "reason": "", "comparisons": 648,
            "wanted": 640, "skipped": 0, "num_vectors": 8, "num_departed": 0, "num_sampled": 0, "findings": (),
            "needed_features": ("avx2",), "cpu_features": ("avx", "avx2"), "declared_paths": ("1way", "wrap"),
            "paths": {"1way": ("1", "2-3+"), "wrap": ("8-15",)}, "unwatched": (), "cpu_s": 0.5,
        }  # fmt: skip
        return CellResult(**{**facts, **changes})

    return make
