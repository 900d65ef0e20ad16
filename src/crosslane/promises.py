# SPDX-License-Identifier: Apache-2.0
"""Which dimensions of ``coverage`` the cases of a manifest must exercise: all that its mode and its bounds allow."""

from __future__ import annotations

from collections.abc import Callable

from crosslane.manifest import POLICY_BITS, Manifest
from crosslane.steer import LEAST_LONG_AAD, length_grid, takes_largest

__all__ = ["promised"]


def _takes_empty(manifest: Manifest) -> bool:
    return manifest.empty and not manifest.min_len and not manifest.min_len_blocks


def _is_cut(manifest: Manifest) -> bool:
    return manifest.split != "none"


def _refuses_data(manifest: Manifest) -> bool:
    short = manifest.min_len_blocks > 0 or manifest.partial == "refused"
    return "data" in manifest.refusals and short


def _walks_lengths(manifest: Manifest, *, times: int = 1) -> bool:
    """Whether the turns of one batch go round the grid of lengths: with 256 ways of 8 bytes they do not."""
    turns = manifest.steering.count("lengths") / len(manifest.steering)
    messages = manifest.sessions_per_batch * manifest.messages_per_session
    return not manifest.fixed_len and times * len(length_grid(manifest)) <= turns * messages


def _is_often_empty(manifest: Manifest) -> bool:
    """Whether a batch has so many empty messages that some of them have no call: half have none, by chance."""
    return _is_cut(manifest) and _takes_empty(manifest) and _walks_lengths(manifest, times=8)


_POLICY = "weak_keys_policy_"


def _can_ask(manifest: Manifest, bits: int) -> bool:
    """Whether a case can ask for just these key-refusal policies."""
    always = sum(POLICY_BITS[name] for name in manifest.always_policies)
    known = sum(POLICY_BITS[name] for name in manifest.policies) | always
    return bits & always == always and not bits & ~known


# What is not named here is promised wherever it is counted.
_CONDITIONS: dict[str, Callable[[Manifest], bool]] = {
    "each_length": _walks_lengths,
    "empty": _takes_empty,
    "large": takes_largest,
    "aad_len_long": lambda manifest: not manifest.max_aad_len or manifest.max_aad_len >= LEAST_LONG_AAD,
    "j0_wrap": lambda manifest: manifest.block_len in manifest.iv_lens,
    "splits_3": _is_cut,
    "splits_empty": lambda manifest: _is_cut(manifest) and _takes_empty(manifest),
    "splits_none": _is_often_empty,
    "interleaved": lambda manifest: _is_cut(manifest) and manifest.clone,
    "clone": lambda manifest: _is_cut(manifest) and manifest.clone,
    "reinit": lambda manifest: manifest.reinit,
    "in_place": lambda manifest: manifest.in_place,
    "key_len_refused": lambda manifest: "key" in manifest.refusals,
    "iv_len_refused": lambda manifest: "iv" in manifest.refusals and bool(manifest.iv_lens),
    "tag_len_refused": lambda manifest: "tag" in manifest.refusals,
    "data_len_refused": _refuses_data,
    "overlap_refused": lambda manifest: "overlap" in manifest.refusals,
    "announced_wrong": lambda manifest: manifest.iv == "nonce" and "data" in manifest.refusals,
}


def promised(manifest: Manifest, name: str) -> bool:
    """Whether cases of a manifest must exercise the dimension of that name."""
    if name.startswith("tail_") and name != "tail_0":
        return manifest.partial != "refused"
    if name.startswith("tamper_"):
        return manifest.is_aead and "decrypt" in manifest.directions
    if name.startswith(_POLICY):
        return _can_ask(manifest, int(name.removeprefix(_POLICY)))
    condition = _CONDITIONS.get(name)
    return condition is None or condition(manifest)
