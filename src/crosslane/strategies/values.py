# SPDX-License-Identifier: Apache-2.0
"""Strategies for what operations take: keys, ivs, lengths, contents, places. Each shrinks towards the plainest value.

Contents are made from one number, since Hypothesis shrinks a number well and a thousand bytes badly: what data lie in a
message matters far less to block ciphers than how much and where.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from hypothesis import strategies as st

from crosslane.data import data_root
from crosslane.findings.case import Place
from crosslane.manifest import Manifest
from crosslane.names import parse_algorithm
from crosslane.plan import DEFAULT_SEED, manifest_of
from crosslane.registry import load_registry
from crosslane.wire import Edge

__all__ = [
    "contents",
    "contents_of",
    "filled",
    "iv_lens_of",
    "ivs",
    "key_lens_of",
    "keys",
    "lengths",
    "manifest_named",
    "places",
]

_SPARE_LEN = 3
_NUM_BYTES = 256
_LARGEST_SEED = (1 << 32) - 1
_PLACES = (*(Place(Edge.MIDDLE, align) for align in range(64)), *[Place(Edge.END), Place(Edge.START)] * 8)
_CARRIES = (8, 16, 32, 64, 128)


@lru_cache(maxsize=64)
def manifest_named(algorithm: str) -> Manifest:
    """The manifest of an algorithm of the suite, such as ``ctr(sm4)``; raises BadInput where it has none."""
    return manifest_of(load_registry(data_root()), parse_algorithm(algorithm), DEFAULT_SEED)


def filled(length: int, seed: int) -> bytes:
    """Bytes made of a number: 0 zeros, up to 255 that byte again and again, else the stream of SHAKE128 of it."""
    if seed < _NUM_BYTES:
        return bytes([seed]) * length
    return hashlib.shake_128(seed.to_bytes(8, "big")).digest(length)


_SEEDS = st.integers(0, _LARGEST_SEED)


def contents(length: int) -> st.SearchStrategy[bytes]:
    """Bytes of a length; they shrink to zeros."""
    return _SEEDS.map(lambda seed: filled(length, seed))


def contents_of(lens: st.SearchStrategy[int]) -> st.SearchStrategy[bytes]:
    """Bytes of a drawn length; they shrink to few, and to zeros."""
    return st.tuples(lens, _SEEDS).map(lambda pair: filled(*pair))


_DRAWN_PLACES = st.integers(0, len(_PLACES) - 1).map(_PLACES.__getitem__)


def places() -> st.SearchStrategy[Place]:
    """Where a buffer lies; shrinks to a 64-byte boundary in the middle of its room."""
    return _DRAWN_PLACES


def key_lens_of(manifest: Manifest) -> list[int]:
    """The lengths in bytes of a whole key that the algorithm takes."""
    return sorted(length * manifest.num_keys + manifest.key_extra_len for length in manifest.key_lens)


def iv_lens_of(manifest: Manifest) -> list[int]:
    """The lengths in bytes of an iv that the algorithm takes."""
    return sorted(manifest.iv_lens or (0,))


def _lens(legal: list[int], what: str, manifest: Manifest, *, refusals: bool) -> st.SearchStrategy[int]:
    """A legal length; with ``refusals``, and where the manifest has them, at times any near one."""
    if not (refusals and what in manifest.refusals):
        return st.sampled_from(legal)
    return st.one_of(st.sampled_from(legal), st.integers(0, legal[-1] + _SPARE_LEN))


def keys(manifest: Manifest, *, refusals: bool = False) -> st.SearchStrategy[bytes]:
    """Keys of all lengths. Two keys in one differ where the manifest's domain asks for that."""

    def differing(key: bytes) -> bytes:
        half = len(key) // 2
        return key[:-1] + bytes([key[-1] ^ 1]) if key and key[:half] == key[half:] else key

    drawn = contents_of(_lens(key_lens_of(manifest), "key", manifest, refusals=refusals))
    return drawn.map(differing) if manifest.num_keys > 1 and not manifest.equal_keys else drawn


def ivs(manifest: Manifest, *, refusals: bool = False) -> st.SearchStrategy[bytes]:
    """Ivs of all lengths; where they count, every other one's lowest bits are about to carry."""
    plain = contents_of(_lens(iv_lens_of(manifest), "iv", manifest, refusals=refusals))
    if manifest.iv not in ("counter", "index"):
        return plain
    length = manifest.block_len

    def carrying(drawn: tuple[int, int, int]) -> bytes:
        bits, before, seed = drawn
        high = int.from_bytes(filled(length, seed), "big") >> bits << bits
        return (high | ((1 << bits) - 1 - min(before, (1 << bits) - 1))).to_bytes(length, "big")

    bits = st.sampled_from([bits for bits in _CARRIES if bits <= 8 * length])
    before = st.integers(0, 1) | st.integers(0, 2 * manifest.ways)
    return plain | st.tuples(bits, before, _SEEDS).map(carrying)


def lengths(manifest: Manifest, *, last: bool = True, most: int = 0) -> st.SearchStrategy[int]:
    """Bytes of one call that a message may have, ``last``: of its last one, up to two runs of the widest path and one.

    ``most`` bounds them further. Shrinks to the least length.
    """
    bs = manifest.block_len
    largest = min([(2 * manifest.ways + 2) * bs, *(limit for limit in (manifest.max_len, most) if limit)])
    least = max(manifest.min_len, manifest.min_len_blocks * bs) if last else 0
    least = max(least, 0 if manifest.empty else 1)
    in_blocks = manifest.partial == "refused" or (not last and manifest.split == "block")
    if in_blocks:
        return st.integers(-(-least // bs), max(-(-least // bs), largest // bs)).map(lambda count: count * bs)
    few = min(max(least, 2 * bs), max(largest, least))
    return st.one_of(st.integers(least, few), st.integers(least, max(largest, least)))
