# SPDX-License-Identifier: Apache-2.0
"""Authenticated decryption needs what encryption gave: batches are drawn as plaintext and sealed by the oracle.

A generated batch of an AEAD mode marks its decrypting cases. The oracle first encrypts every case; its ciphertexts and
tags then become the inputs of the decrypting ones. One message in eight is tampered with, so that its tag is wrong.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crosslane.draws import Draws, below, take_bits
from crosslane.generate import draw_batch, output_lens
from crosslane.manifest import Manifest
from crosslane.solve import Ask, solve_ivs
from crosslane.wire import Batch, Flag, OpKind

__all__ = ["finished_batch"]

Ints = NDArray[np.int64]

_TAMPER_STREAM = 1


def finished_batch(manifest: Manifest, number: int, encrypt: Ask, blocks: Ask) -> Batch:
    """Batch ``number`` of a manifest, ready to run.

    ``encrypt`` runs a batch of the manifest's algorithm on the oracle, ``blocks`` one of the same cipher's ECB; each is
    asked only where the mode needs it.
    """
    drawn = draw_batch(manifest, number)
    solve_ivs(manifest, drawn, blocks)
    return _sealed(manifest, number, drawn.batch, encrypt) if manifest.is_aead else drawn.batch


def _sealed(manifest: Manifest, number: int, batch: Batch, encrypt: Ask) -> Batch:
    cases = batch.cases.copy()
    cases["decrypting"] = 0
    out = encrypt(replace(batch, cases=cases)).out.copy()
    owner = np.repeat(np.arange(len(batch.cases)), batch.cases["num_ops"].astype(np.int64))
    decrypting = batch.cases["decrypting"][owner] == 1
    taken = (batch.ops["kind"] == OpKind.UPDATE) & ((batch.ops["flags"] & Flag.OVERLAP) == 0)
    updates = np.flatnonzero(decrypting & taken)
    tags = np.flatnonzero(decrypting & (batch.ops["kind"] == OpKind.TAG))
    lens = output_lens(batch, np.arange(len(batch.ops)))
    ops = batch.ops.copy()
    for at in (updates, tags):
        ops["in_off"][at] = len(batch.blob) + batch.ops["out_off"][at]
    ops["in_len"][tags] = lens[tags]
    _tamper(manifest, number, out, batch.ops["out_off"][tags].astype(np.int64), lens[tags])
    lens[tags] = 0
    ops["out_off"] = np.cumsum(lens) - lens
    blob = np.concatenate([batch.blob, out])
    return replace(batch, ops=ops, blob=blob, out_len=int(lens.sum()))


def _tamper(manifest: Manifest, number: int, out: NDArray[np.uint8], starts: Ints, lens: Ints) -> None:
    """Flip one bit in one tag of eight."""
    words = Draws(manifest.digest, number, stream=_TAMPER_STREAM).words(len(starts))
    chosen = np.flatnonzero((take_bits(words, 0, 3) == 0) & (lens > 0))
    at = starts[chosen] + below(words[chosen], 32, lens[chosen])
    out[at] ^= (1 << take_bits(words[chosen], 8, 3)).astype(np.uint8)
