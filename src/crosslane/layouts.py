# SPDX-License-Identifier: Apache-2.0
"""The data of a batch in another layout: where buffers lie, drawn anew.

What generic answers does not depend on where buffers lie (what an update that is refused leaves in its output does
depend on whether that is its input, so calls in place stay in place). So a campaign asks it once for several batches,
which differ in nothing else; each of their cases is a comparison of its own, and repeated by its own id.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crosslane.draws import U64, Draws, take_bits
from crosslane.manifest import Manifest
from crosslane.wire import Batch, Flag, OpKind

__all__ = ["laid_out"]

_STREAM = 13
"""Of the draws of a batch: no other part of generation takes words from it."""
_IN, _OUT = np.uint64(0xFFFF << 24), np.uint64(0xFFFF << 40)
_SIDES = {
    OpKind.SETKEY: _IN, OpKind.SETIV: _IN | _OUT, OpKind.AAD: _IN, OpKind.UPDATE: _IN | _OUT, OpKind.TAG: _OUT,
}  # fmt: skip
"""Of the first eight bytes of an operation, those that say where its buffers lie."""


def laid_out(manifest: Manifest, number: int, batch: Batch) -> Batch:
    """A finished batch as batch ``number`` lays it out: edges, alignments, and places of contexts.

    Drawn as they are at first: one buffer in four at each guard page. Calls on overlapping buffers stay as they are.
    """
    draws = Draws(manifest.digest, number, stream=_STREAM)
    case_words = draws.words(manifest.sessions_per_batch)[: len(batch.cases)]
    words = draws.words(len(batch.ops))
    cases, ops = batch.cases.copy(), batch.ops.copy()
    cases["ctx_edge"] = np.minimum(take_bits(case_words, 0, 2), 2)
    head = ops.view("<u8").reshape(-1, 6)[:, 0]
    changed = np.zeros(max(OpKind) + 1, np.uint64)
    for kind, sides in _SIDES.items():
        changed[kind] = sides
    mask = changed[ops["kind"]] * ((ops["flags"] & int(Flag.OVERLAP)) == 0)
    drawn = (_layout(words, 0) << np.uint64(24)) | (_layout(words, 8) << np.uint64(40))
    head[:] = (head & ~mask) | (drawn & mask)
    return replace(batch, cases=cases, ops=ops)


def _layout(words: U64, shift: int) -> U64:
    """Edge and alignment of one buffer as two bytes."""
    edge = np.minimum((words >> np.uint64(shift)) & np.uint64(3), np.uint64(2))
    layout: U64 = edge | (((words >> np.uint64(shift + 2)) & np.uint64(63)) << np.uint64(8))
    return layout
