# SPDX-License-Identifier: Apache-2.0
"""Ivs that come to a wanted block under the case's own key: GCM's J0 and the encrypted tweak of XTS.

Both need the block cipher, which the oracle is asked for; the rest is algebra. GCM hashes an iv of 16 bytes to
J0 = IV * H^2 + L * H with H = E_K(0) and L the block of its length (NIST SP 800-38D, sections 6.4 and 7.1), so that
IV = (J0 + L * H) * H^-2. XTS encrypts an iv under its second key (IEEE Std 1619, section 5.1), so that IV = D_K2(T0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from crosslane import gf128
from crosslane.errors import HarnessFault
from crosslane.generate import Drawn
from crosslane.manifest import Manifest
from crosslane.wire import CASE, OP, Batch, Flag, OpKind, Results, Verdict

__all__ = ["Ask", "ask_blocks", "solve_ivs"]

Ask = Callable[[Batch], Results]
"""Runs a batch on the oracle, or on its block function as ECB."""

_IV_BITS = 128


def ask_blocks(ask: Ask, keys: Sequence[bytes], blocks: NDArray[np.uint8], *, decrypting: bool) -> NDArray[np.uint8]:
    """The block function of each block (n x block length) under its own key; raises HarnessFault where one fails."""
    count, bs = blocks.shape
    ops = np.zeros((count, 4), OP)
    ops["kind"] = (OpKind.SETKEY, OpKind.SETIV, OpKind.UPDATE, OpKind.FINAL)
    ops["flags"][:, 2] = int(Flag.LAST)
    lens = np.array([len(key) for key in keys], np.int64)
    ops["in_len"][:, 0], ops["in_off"][:, 0] = lens, np.cumsum(lens) - lens
    ops["in_len"][:, 2], ops["in_off"][:, 2] = bs, int(lens.sum()) + np.arange(count) * bs
    ops["out_off"][:, 2] = np.arange(count) * bs
    cases = np.zeros(count, CASE)
    cases["first_op"], cases["num_ops"], cases["decrypting"] = np.arange(count) * 4, 4, decrypting
    blob = np.concatenate([np.frombuffer(b"".join(keys), np.uint8), blocks.reshape(-1)])
    results = ask(Batch(cases, ops.reshape(-1), blob, count * bs, np.ones(count, np.int64)))
    if bool(results.statuses.any()) or bool((results.cases["verdict"] != Verdict.RAN).any()):
        raise HarnessFault("the generic block function refused a key of a legal length")
    return results.out.copy().reshape(count, bs)


def solve_ivs(manifest: Manifest, drawn: Drawn, ask: Ask) -> None:
    """Put the ivs that a drawn batch lacks in their places."""
    ops, blob = drawn.batch.ops, drawn.batch.blob
    if not len(drawn.solved):
        return
    places = ops["in_off"][drawn.solved].astype(np.int64)[:, None] + np.arange(manifest.block_len)
    if manifest.iv == "hashed":
        blob[places] = _hashed(drawn, blob[places], ask)
    else:
        keys = [key[len(key) // 2 :] for key in _keys(drawn.batch, drawn.keyed)]
        blob[places] = ask_blocks(ask, keys, blob[places], decrypting=True)


def _keys(batch: Batch, setkeys: NDArray[np.int64]) -> list[bytes]:
    starts, lens = (batch.ops[name][setkeys].tolist() for name in ("in_off", "in_len"))
    return [batch.blob[start : start + length].tobytes() for start, length in zip(starts, lens, strict=True)]


def _hashed(drawn: Drawn, wanted: NDArray[np.uint8], ask: Ask) -> NDArray[np.uint8]:
    """Ivs of 16 bytes for the wanted J0."""
    setkeys, which = np.unique(drawn.keyed, return_inverse=True)
    keys = _keys(drawn.batch, setkeys)
    zeros = np.zeros((len(keys), 16), np.uint8)
    h = gf128.elements_of(ask_blocks(ask, keys, zeros, decrypting=False))
    inverse = gf128.inverse(h)
    lengths = np.tile(np.array([0, _IV_BITS], np.uint64), (len(keys), 1))
    added, factor = gf128.multiply(h, lengths), gf128.square(inverse)
    ivs = gf128.multiply(gf128.elements_of(wanted) ^ added[which], factor[which])
    return ivs.astype(">u8").view(np.uint8).reshape(-1, 16)
