# SPDX-License-Identifier: Apache-2.0
"""Authenticated decryption needs what encryption gave: batches are drawn as plaintext and sealed by the oracle.

A generated batch of an AEAD mode marks its decrypting cases. The oracle first encrypts every case; its ciphertexts and
tags then become the inputs of the decrypting ones, some of which are tampered with (``tamper``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crosslane.generate import Drawn, draw_batch, output_lens
from crosslane.layouts import laid_out
from crosslane.manifest import Manifest
from crosslane.solve import Ask, solve_ivs
from crosslane.tamper import tampered
from crosslane.wire import Batch, Flag, OpKind

__all__ = ["finished_batch", "sealed"]


def finished_batch(manifest: Manifest, number: int, encrypt: Ask, blocks: Ask, count: int | None = None) -> Batch:
    """Batch ``number`` of a manifest, ready to run; with ``count`` only so many of its first cases.

    ``encrypt`` runs a batch of the manifest's algorithm on the oracle, ``blocks`` one of the same cipher's ECB; each is
    asked only where the mode needs it.
    """
    data = number // manifest.batches_alike
    drawn = draw_batch(manifest, data)
    if count is not None and count < len(drawn.batch):
        drawn = _first_cases(drawn, count)
    solve_ivs(manifest, drawn, blocks)
    batch = tampered(manifest, data, sealed(drawn, encrypt)) if manifest.is_aead else drawn.batch
    return laid_out(manifest, number, batch) if number % manifest.batches_alike else batch


def _first_cases(drawn: Drawn, count: int) -> Drawn:
    """Fewer cases than a drawn batch has, ``count``: those behind them are not solved, sealed or sent for nothing."""
    batch = drawn.batch
    num_ops, num_messages = int(batch.cases["first_op"][count]), int(batch.messages[:count].sum())
    fewer = replace(
        batch,
        cases=batch.cases[:count],
        ops=batch.ops[:num_ops],
        out_len=int(batch.ops["out_off"][num_ops]),
        messages=batch.messages[:count],
        marks=None if batch.marks is None else batch.marks[:num_messages],
    )
    within = drawn.solved < num_ops
    return replace(
        drawn, batch=fewer, solved=drawn.solved[within], keyed=drawn.keyed[within], owner=drawn.owner[:num_ops]
    )


def sealed(drawn: Drawn, encrypt: Ask) -> Drawn:
    """A drawn batch with the oracle's ciphertexts and tags for its decrypting cases."""
    batch = drawn.batch
    cases = batch.cases.copy()
    cases["decrypting"] = 0
    out = encrypt(replace(batch, cases=cases)).out
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
    lens[tags] = 0
    ops["out_off"] = np.cumsum(lens) - lens
    blob = np.concatenate([batch.blob, out])
    return replace(drawn, batch=replace(batch, ops=ops, blob=blob, out_len=int(lens.sum())))
