# SPDX-License-Identifier: Apache-2.0
"""Implementations for fuzz targets to find something in: SM4 as generic computes it, with one fault each."""

from __future__ import annotations

import shutil
from pathlib import Path

from crosslane.data import data_root

__all__ = ["MAGIC", "TARGET_PLANTS", "plant_targets"]

MAGIC = bytes.fromhex("7e91a5c3")
"""Four bytes in a place of a block that no list of values contains."""
_LOOP = "crypt_blocks(keys->encrypt, dst, src, num_blocks);"
_HEAD = """    int hit = 0;
    for (size_t i = 0; i < num_blocks; i++) {{
        uint32_t word;
        memcpy(&word, src + 16 * i + 6, 4);
        hit |= {condition};
    }}
    crypt_blocks(keys->encrypt, dst, src, num_blocks);
    {then};
"""
TARGET_PLANTS = {
    "magic": ("word == 0x{word:08x}u".format(word=int.from_bytes(MAGIC, "little")), "dst[0] ^= (uint8_t)hit"),
    "wide": ("num_blocks >= 5", "dst[16 * num_blocks - 1] ^= (uint8_t)hit"),
    "wild": ("num_blocks == 5", "if (hit) { *(volatile uint8_t *)(uintptr_t)64 = 1; }"),
}
"""By name: when the fault shows, and what it does."""
_IMPL = """# SPDX-License-Identifier: Apache-2.0
driver = "sm4-{name}"
isa = "any"
features = []
priority = 150
ways = 2
sources = ["sm4_{name}.c"]
fused = []
paths = ["2way", "1way"]
constant_time = false
description = "Planted by the tests."
"""


def plant_targets(folder: Path) -> Path:
    """Lay all of them out below a folder for ``--impls``; returns it."""
    cipher = data_root() / "impls" / "ciphers" / "sm4"
    source = (cipher / "generic" / "sm4_generic.c").read_text()
    assert source.count(_LOOP) == 1
    for name, (condition, then) in TARGET_PLANTS.items():
        place = folder / "sm4" / name
        place.mkdir(parents=True)
        shutil.copy(cipher / "sm4_block.h", place)
        made = source.replace(f"    {_LOOP}\n", _HEAD.format(condition=condition, then=then))
        (place / f"sm4_{name}.c").write_text(made.replace("sm4_generic(", f"sm4_{name}("))
        (place / "impl.toml").write_text(_IMPL.format(name=name))
    return folder
