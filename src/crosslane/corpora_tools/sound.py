# SPDX-License-Identifier: Apache-2.0
"""Whether a stored case can be run at all: what its form cannot show. Pure: nothing runs here."""

from __future__ import annotations

from collections.abc import Mapping

from crosslane import wire
from crosslane.errors import BadInput, HarnessFault
from crosslane.findings.case import Case, Operation, batch_of
from crosslane.manifest import Manifest
from crosslane.model import Algorithm, Registry
from crosslane.plan import DEFAULT_SEED, manifest_of
from crosslane.wire import Flag, OpKind

__all__ = ["check_sound", "manifests"]

MOST_BYTES = 16 << 20
"""Of data and outputs together: a quarter of the memory that a batch has."""
_MOST = {
    OpKind.SETKEY: 256, OpKind.SETIV: 128 << 10, OpKind.AAD: 128 << 10, OpKind.UPDATE: 4 << 20, OpKind.TAG: 64,
}  # fmt: skip


def manifests(registry: Registry) -> dict[str, Manifest]:
    """The manifest of every algorithm of the suite, by name."""
    every = [
        Algorithm(mode=mode.name, cipher=cipher.name)
        for cipher in registry.ciphers
        for mode in registry.modes
        if cipher.block_len in mode.block_lens
    ]
    return {str(item): manifest_of(registry, item, DEFAULT_SEED) for item in every}


def check_sound(case: Case, known: Mapping[str, Manifest], where: str) -> Manifest:
    """The manifest of a case's algorithm; raises BadInput where the suite could not run the case.

    Its algorithm exists, the wire protocol takes it, outputs have the lengths that follow from its operations, and
    there are at most 16 MiB of data and outputs.
    """
    manifest = known.get(case.algorithm)
    if manifest is None:
        raise BadInput(
            f"{where}: is a case of {case.algorithm}, which the suite does not have; remove it, or add the cipher and "
            "the mode"
        )
    size = 0
    for session in case.sessions:
        for number, item in enumerate(session.operations):
            _check_operation(item, session, f"{where}: operation {number}")
            expected = _out_len(item, session, manifest)
            if item.out_len != expected:
                raise BadInput(
                    f"{where}: out_len of operation {number} is {item.out_len}, which the operation makes {expected}; "
                    "restore or remove the case"
                )
            size += item.in_len + item.out_len
    if size > MOST_BYTES:
        raise BadInput(f"{where}: takes and gives {size:,} bytes, allowed are {MOST_BYTES:,}; remove the case")
    batch = batch_of(case.sessions)
    encoded = bytearray(wire.batch_len(batch))
    try:
        wire.encode_batch_into(batch, memoryview(encoded))
        wire.decode_batch(memoryview(encoded))
    except HarnessFault as fault:
        raise BadInput(f"{where}: cannot be run: {fault}; restore or remove the case") from None
    return manifest


def _check_operation(item: Operation, case: Case, where: str) -> None:
    """Hold an operation against the limits of the shim (``impls/shim/shim.h``), which ends where they are exceeded."""
    most = _MOST.get(item.kind, 0)
    if item.in_len > most:
        raise BadInput(f"{where} takes {item.in_len} bytes, allowed are {most}; remove the case")
    if item.kind is OpKind.TAG and case.decrypting and item.in_len != case.tag_len:
        raise BadInput(f"{where} has a tag of {item.in_len} bytes, but tag_len is {case.tag_len}; remove the case")


def _out_len(item: Operation, case: Case, manifest: Manifest) -> int:
    if item.kind is OpKind.TAG:
        return 0 if case.decrypting else case.tag_len
    if item.kind is not OpKind.UPDATE:
        return 0
    return (0 if manifest.is_mac else item.in_len) + (manifest.block_len if item.flags & Flag.OBSERVE_IV else 0)
