# SPDX-License-Identifier: Apache-2.0
"""Calls on overlapping buffers: drawn for every mode with output, and refused before anything is changed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from crosslane.data import data_root
from crosslane.execute import Station, execute_alone
from crosslane.findings.case import Case, batch_of, case_of
from crosslane.lanes import lane_named
from crosslane.manifest import Manifest
from crosslane.model import Algorithm
from crosslane.plan import manifest_of
from crosslane.registry import load_registry
from crosslane.seal import finished_batch
from crosslane.stations import Stations, programs_for
from crosslane.wire import Batch, Flag, OpKind, Results, Status, Verdict, displacement

MakeManifest = Callable[..., Manifest]

MODES = ["cbc", "ccm", "cfb", "ctr", "cts_cbc", "ecb", "gcm", "lrw", "ofb", "xts", "xts_gb"]
FILL = 0xA5


@dataclass(frozen=True)
class Asked:
    """Cases of one algorithm in which calls are to be refused, and what generic answered."""

    manifest: Manifest
    station: Station
    batch: Batch
    results: Results

    @property
    def overlapping(self) -> list[int]:
        return np.flatnonzero(self.batch.ops["flags"] & Flag.OVERLAP).tolist()

    def shift(self, op: int) -> int:
        return displacement(int(self.batch.ops["aux1"][op]))

    def data(self, op: int) -> bytes:
        record = self.batch.ops[op]
        return self.batch.blob[int(record["in_off"]) :][: int(record["in_len"])].tobytes()


@pytest.fixture(scope="module")
def ask() -> Callable[[str], Asked]:
    registry = load_registry(data_root())
    lane = lane_named(registry.lanes, "x86_64_native")
    stations = Stations(registry, programs_for(registry, [lane]), require_sandbox=False)
    generic = next(item for item in registry.implementations if item.cipher == "sm4" and item.is_generic)
    kept: dict[str, Asked] = {}

    def make(mode: str) -> Asked:
        if mode not in kept:
            drawn = manifest_of(registry, Algorithm(mode, "sm4"), "overlap")
            manifest = Manifest(**{**vars(drawn), "sessions_per_batch": 192, "steering": ("refusals",)})
            station = stations.of(generic, lane, mode)
            batch = finished_batch(manifest, 0, partial(execute_alone, station), partial(execute_alone, station.blocks))
            kept[mode] = Asked(manifest, station, batch, execute_alone(station, batch))
        return kept[mode]

    return make


@pytest.mark.parametrize("mode", MODES)
def test_every_distance_is_drawn_in_both_directions(ask: Callable[[str], Asked], mode: str) -> None:
    asked = ask(mode)
    shifts = {(asked.shift(op), len(asked.data(op))) for op in asked.overlapping}
    assert len(asked.overlapping) > 100
    assert {shift for shift, _ in shifts} >= {*range(1, 17), *range(-16, 0)}
    assert all(0 < abs(shift) < length for shift, length in shifts)
    for sign in (1, -1):
        assert {length for shift, length in shifts if shift == sign * (length - 1) and length > 18}


@pytest.mark.parametrize("mode", MODES)
def test_each_is_followed_by_the_same_call_on_other_buffers(ask: Callable[[str], Asked], mode: str) -> None:
    asked = ask(mode)
    ops = asked.batch.ops
    for op in asked.overlapping:
        one, other = ops[op], ops[op + 1]
        assert one["kind"] == other["kind"] == OpKind.UPDATE
        assert one["slot"] == other["slot"]
        assert int(one["in_len"]) - int(other["in_len"]) in (0, 1 if mode in ("ccm", "gcm") else 0)  # cut by tampering
        assert not other["flags"] & Flag.OVERLAP
        assert not one["flags"] & Flag.IN_PLACE
        assert one["flags"] & Flag.LAST == other["flags"] & Flag.LAST


@pytest.mark.parametrize("mode", MODES)
def test_generic_refuses_and_leaves_the_buffers_as_they_were(ask: Callable[[str], Asked], mode: str) -> None:
    """As they were: the fill, and over it the input."""
    asked = ask(mode)
    assert (asked.results.cases["verdict"] == Verdict.RAN).all()
    refused = 0
    owner = np.repeat(asked.batch.cases["decrypting"], asked.batch.cases["num_ops"])
    for op in asked.overlapping:
        if asked.results.statuses[op] == Status.BAD_ORDER:  # after a setiv that was refused for its tag
            continue
        assert asked.results.statuses[op] == Status.OVERLAP
        refused += 1
        if asked.manifest.is_aead and owner[op]:  # whose output is withheld where the tag is wrong
            continue
        data, shift, start = asked.data(op), asked.shift(op), int(asked.batch.ops["out_off"][op])
        stretch = bytearray([FILL]) * (len(data) + 2 * abs(shift))
        stretch[abs(shift) : abs(shift) + len(data)] = data
        wanted = stretch[abs(shift) + shift :][: len(data)]
        assert asked.results.out[start : start + len(data)].tobytes() == wanted
    assert refused > 60


def without(case: Case) -> Case:
    return case.with_operations(item for item in case.operations if not item.overlapping)


@pytest.mark.parametrize("mode", MODES)
def test_the_message_goes_on_as_if_nothing_had_been(ask: Callable[[str], Asked], mode: str) -> None:
    asked = ask(mode)
    cases = [case_of(asked.batch, index, asked.manifest.algorithm) for index in range(len(asked.batch))]
    plain = batch_of([without(case) for case in cases])
    results = execute_alone(asked.station, plain)
    kept = np.flatnonzero((asked.batch.ops["flags"] & Flag.OVERLAP) == 0)
    assert results.statuses.tolist() == asked.results.statuses[kept].tolist()
    ends = np.append(asked.batch.ops["out_off"], asked.batch.out_len).astype(np.int64)
    writes = np.isin(asked.batch.ops["kind"], (int(OpKind.UPDATE), int(OpKind.TAG)))
    places = np.append(np.flatnonzero(writes), len(ends) - 1)
    out = b"".join(
        asked.results.out[ends[one] : ends[two]].tobytes()
        for one, two in itertools.pairwise(places)
        if not asked.batch.ops["flags"][one] & Flag.OVERLAP
    )
    assert results.out.tobytes() == out
