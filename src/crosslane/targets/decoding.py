# SPDX-License-Identifier: Apache-2.0
"""How inputs of a fuzz target are decoded to cases, for corpora of engines that are imported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.findings.case import Case
from crosslane.plan import native_lane
from crosslane.registry import load_registry
from crosslane.targets.rows import choose
from crosslane.targets.run import open_pair

__all__ = ["target_decoder"]


def target_decoder(family: str, patterns: tuple[str, ...], impls: tuple[Path, ...]) -> Callable[[bytes, str], Case]:
    """A function from an input, and where it was read, to its case; it raises BadInput for an input that means nothing.

    ``patterns`` are the cells that the target was run with. What decodes is built first.
    """
    registry = load_registry(data_root(), impls)
    pair = open_pair(registry, choose(registry, family, patterns, native_lane(registry)), only_decodes=True)

    def decode(data: bytes, where: str) -> Case:
        _, case = pair.decoded(data)
        if not case.operations:
            raise BadInput(f"{where}: means no operation to the target {family}; remove it")
        return case

    return decode
