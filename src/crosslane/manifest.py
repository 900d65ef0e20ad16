# SPDX-License-Identifier: Apache-2.0
"""The campaign manifest: all that the generation of cases depends on, content-addressed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from crosslane.errors import BadInput
from crosslane.model import Cipher, Domain, Implementation, Mode

__all__ = [
    "GENERATOR_VERSION",
    "LIBRARY_STEERING",
    "MESSAGES_PER_BATCH",
    "POLICY_BITS",
    "REFUSALS",
    "CaseId",
    "Manifest",
    "manifest_for",
    "manifest_within",
    "parse_case_id",
    "parse_manifest",
]

GENERATOR_VERSION = 2
"""Changes whenever the same manifest would generate other cases; golden tests pin it."""

SESSIONS_PER_BATCH = 1024
MESSAGES_PER_SESSION = 8
MESSAGES_PER_BATCH = SESSIONS_PER_BATCH * MESSAGES_PER_SESSION
"""Where the whole of a batch runs, its cases exercise all that the steering is for."""

# What the sessions of a batch are steered for, in turn. Layouts, in place and splits vary in all of them.
STEERING = (
    "lengths", "counters", "lengths", "splits", "counters", "lengths", "sizes", "lengths",
    "counters", "splits", "lengths", "counters", "splits", "lengths", "refusals", "counters",
)  # fmt: skip

# Those of a library, of which more is asked than short messages.
LIBRARY_STEERING = ("lengths", "counters", "long", *STEERING[3:])

_LEAST = {"block_len": 1, "ways": 1, "num_keys": 1, "sessions_per_batch": 1, "messages_per_session": 1,
          "max_aad_len": 1, "layouts": 1}  # fmt: skip
_LARGEST_NUMBER = 1 << 20
_LARGEST = {"max_len": 1 << 40, "layouts": 64}
_SAID_IF_BOUND = {"max_aad_len", "layouts"}
_ALLOWED = {
    "split": ("byte", "block", "none"),
    "partial": ("refused", "anywhere", "stealing"),
    "iv": ("none", "random", "counter", "index", "tweak", "nonce", "hashed"),
    "iv_out": ("none", "next", "next_whole"),
    "directions": ("encrypt", "decrypt"),
    "policies": ("degenerate", "weak_subkey"),
    "always_policies": ("degenerate", "weak_subkey"),
    "refusals": ("key", "iv", "tag", "data", "overlap", "announced", "missing"),
    "steering": tuple(sorted({*STEERING, *LIBRARY_STEERING})),
}
_NEVER_EMPTY = ("key_lens", "directions", "steering")

POLICY_BITS = {"degenerate": 1, "weak_subkey": 2}
"""Key-refusal policies as the bits of a case."""

REFUSALS = ("key", "iv", "tag", "data", "overlap", "announced", "missing")
"""What may be illegal in a case that is to be refused: the length of a key, an iv, a tag or the data; and, which no
library's domain has, an output that overlaps its input other than exactly, lengths announced that do not come or do not
fit, and data missing where a mode needs some."""

_DIGEST_LEN = 16
_CASE_ID = re.compile(rf"([0-9a-f]{{{_DIGEST_LEN}}})-([0-9]{{1,9}})-([0-9]{{1,9}})")


@dataclass(frozen=True)
class Manifest:
    """Facts of one algorithm's generation. ``ways`` is the widest parallel width in blocks of any implementation.

    ``fixed_len`` is 0, or the length in bytes of every message: benchmarks measure with it. ``weak_keys`` and
    ``ignored_bits`` are the cipher's (``model.Cipher``). The fields behind them bound generation to the domain of a
    provider (``model.Domain`` explains them); ``max_len`` and ``max_aad_len`` 0 are no bounds. The latter stands in
    the text only where there is a bound. ``layouts`` are the batches, one behind the other, that have the same data,
    each in a layout of its own (``layouts.py``); 0, which the text does not have, is one.
    """

    generator: int
    algorithm: str
    seed: str
    block_len: int
    key_lens: tuple[int, ...]
    policies: tuple[str, ...]
    split: str
    partial: str
    min_len_blocks: int
    iv: str
    iv_lens: tuple[int, ...]
    iv_out: str
    directions: tuple[str, ...]
    aad: bool
    tag_lens: tuple[int, ...]
    num_keys: int
    key_extra_len: int
    ways: int
    sessions_per_batch: int
    messages_per_session: int
    steering: tuple[str, ...]
    fixed_len: int = 0
    weak_keys: tuple[str, ...] = ()
    ignored_bits: int = 0
    min_len: int = 0
    max_len: int = 0
    empty: bool = True
    in_place: bool = True
    clone: bool = True
    reinit: bool = True
    equal_keys: bool = True
    always_policies: tuple[str, ...] = ()
    refusals: tuple[str, ...] = REFUSALS
    max_aad_len: int = 0
    layouts: int = 0

    def to_json(self) -> str:
        """Canonical text: sorted keys, no spaces."""
        said = {name: value for name, value in vars(self).items() if value or name not in _SAID_IF_BOUND}
        return json.dumps(said, sort_keys=True, separators=(",", ":"))

    @property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of the canonical text's SHA-256."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:_DIGEST_LEN]

    @property
    def is_mac(self) -> bool:
        """Whether messages give a tag and nothing else."""
        return bool(self.tag_lens) and not self.aad

    @property
    def is_aead(self) -> bool:
        """Whether decryption needs what encryption gave: ciphertext and tag."""
        return self.aad

    @property
    def batches_alike(self) -> int:
        """Batches that have the same data."""
        return max(1, self.layouts)

    @property
    def messages_per_batch(self) -> int:
        """Messages, and so comparisons, in one batch."""
        return self.sessions_per_batch * self.messages_per_session


@dataclass(frozen=True)
class CaseId:
    """Names one case anywhere: ``<manifest digest>-<batch>-<index>``."""

    digest: str
    batch: int
    index: int

    def __str__(self) -> str:
        return f"{self.digest}-{self.batch}-{self.index}"


def parse_case_id(text: str) -> CaseId:
    """Read a case id; raises BadInput where it is none."""
    match = _CASE_ID.fullmatch(text)
    if match is None:
        raise BadInput(
            f"{text!r} is no case id: give one as `crosslane check` prints it, "
            f"{_DIGEST_LEN} hexadecimal digits of the manifest, the batch and the index, such as 0123456789abcdef-3-17"
        )
    return CaseId(match[1], int(match[2]), int(match[3]))


def manifest_for(cipher: Cipher, mode: Mode, implementations: Sequence[Implementation], seed: str) -> Manifest:
    """The manifest of ``mode`` of ``cipher`` for a seed; all ``implementations`` of the cipher set the width."""
    return Manifest(
        generator=GENERATOR_VERSION,
        algorithm=f"{mode.name}({cipher.name})",
        seed=seed,
        block_len=cipher.block_len,
        key_lens=cipher.key_lens,
        policies=cipher.policies,
        split=mode.split,
        partial=mode.partial,
        min_len_blocks=mode.min_len_blocks,
        iv=mode.iv,
        iv_lens=tuple(length or cipher.block_len for length in mode.iv_lens),
        iv_out=mode.iv_out,
        directions=mode.directions,
        aad=mode.aad,
        tag_lens=tuple(length or cipher.block_len for length in mode.tag_lens),
        num_keys=mode.num_keys,
        key_extra_len=mode.key_extra_len,
        ways=max(implementation.ways for implementation in implementations),
        sessions_per_batch=SESSIONS_PER_BATCH,
        messages_per_session=MESSAGES_PER_SESSION,
        steering=STEERING,
        weak_keys=cipher.weak_keys,
        ignored_bits=cipher.ignored_bits,
    )


def manifest_within(manifest: Manifest, domain: Domain) -> Manifest:
    """The same manifest bounded to what a provider computes and shows of the algorithm."""
    return replace(
        manifest,
        key_lens=domain.key_lens,
        policies=domain.policies,
        always_policies=domain.always_policies,
        split=domain.split,
        iv_lens=domain.iv_lens,
        iv_out=manifest.iv_out if domain.observes_iv else "none",
        directions=domain.directions,
        tag_lens=domain.tag_lens,
        min_len=domain.min_len,
        max_len=domain.max_len,
        max_aad_len=domain.max_aad_len,
        empty=domain.empty,
        in_place=domain.in_place,
        clone=domain.clone,
        reinit=domain.reinit,
        equal_keys=domain.equal_keys,
        refusals=domain.refusals,
        steering=LIBRARY_STEERING,
    )


def parse_manifest(text: str, where: str) -> Manifest:
    """Read a manifest's text, strictly; raises BadInput naming ``where`` it came from."""
    try:
        fields: Any = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInput(f"{where}: the manifest is no JSON ({error}): run `crosslane check` again") from error
    generator = fields.get("generator") if isinstance(fields, dict) else None
    if type(generator) is int and generator != GENERATOR_VERSION:
        raise BadInput(
            f"{where}: the manifest is of generator version {generator}, this engine has {GENERATOR_VERSION}: "
            "use the revision of crosslane that wrote it"
        )
    names = Manifest.__dataclass_fields__
    if not isinstance(fields, dict) or set(fields) | _SAID_IF_BOUND != set(names):
        raise BadInput(f"{where}: a manifest has exactly the fields {', '.join(names)}: run `crosslane check` again")
    values: dict[str, Any] = {
        name: _field(where, name, str(spec.type), fields[name]) for name, spec in names.items() if name in fields
    }
    return Manifest(**values)


def _field(where: str, name: str, kind: str, value: object) -> object:
    """The value of one field, lists as tuples; raises BadInput for one that no manifest of ours has."""
    item_type: type = bool if kind == "bool" else int if "int" in kind else str
    many = kind.startswith("tuple")
    items = value if isinstance(value, list) and many else [value]
    if isinstance(value, list) is not many or not all(type(item) is item_type for item in items):
        raise BadInput(f"{where}: {name} = {value!r} is no {kind}: run `crosslane check` again")
    allowed = _ALLOWED.get(name)
    if allowed is not None and not set(items) <= set(allowed):
        raise BadInput(f"{where}: {name} = {value!r}, allowed are {', '.join(allowed)}: run `crosslane check` again")
    least, most = _LEAST.get(name, 0), _LARGEST.get(name, _LARGEST_NUMBER)
    if not all(least <= item <= most for item in items if type(item) is int):
        raise BadInput(f"{where}: {name} = {value!r}, allowed are {least} to {most}: run `crosslane check` again")
    if name in _NEVER_EMPTY and not items:
        raise BadInput(f"{where}: {name} is empty, which no manifest is: run `crosslane check` again")
    return tuple(items) if many else value
