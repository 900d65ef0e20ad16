# SPDX-License-Identifier: Apache-2.0
"""The engine against shims that break the protocol; the shim's path traps against a subject that tells the truth."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from planting import EMULATED, LANES, NATIVE, PLANTED, Plant, Planted

from crosslane import wire
from crosslane.client import SharedMemory
from crosslane.execute import CAPACITY, Executor, Station
from crosslane.generate import generate_batch
from crosslane.records import CellResult
from crosslane.trials import is_trial
from crosslane.wire import OpKind, Status, class_name

PATHS = ("short", "wide", "tail", "third", "middle", "never", "always")
TELLER = Plant("teller", source="paths.c", fused=("ecb", "ctr"), paths=PATHS)
UNREACHED = Plant("unreached", paths=("ctr", "xctr"))
VOID = {
    "hangs": "the shim ended with status -9",
    "dies": "the shim ended with status 7 and said: this shim cannot start",
    "garbage": "answered garbage: a message began with b'Welcome to the o'",
    "old_header": "speaks protocol version 2, this engine 1",
    "old_hello": "speaks protocol version 2, this engine 1",
    "no_json": "hello is no JSON",
    "wrong_kind": "answered garbage: OPENED where HELLO was due",
    "unknown_kind": "answered garbage: message kind 0x55",
    "endless": "answered garbage: message kind 0x81 of 1099511627776 bytes",
    "cut_short": "the shim ended with status 0",
    "other_block": "says block_len 8, but cipher.toml says 16",
    "other_paths": "OPENED has status 0 and 56 bytes for 3 paths",
    "other_status": "OPENED has status 9",
    "dies_when_opened": "ended between two batches",
    "beyond": "case 69 is next, of cases 0 to 64",
    "early": "case 63 is next, of cases 0 to 64",
    "no_progress": "case 0 is next, of cases 0 to 64",
    "other_reason": "DONE gives reason 9",
}


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return Planted(tmp_path_factory.mktemp("shim"), [Plant("honest"), UNREACHED, TELLER])


def run_fake(planted: Planted, way: str, count: int = 512) -> CellResult:
    """Run the honest plant's cell, whose shim is a fake."""
    station = Station((sys.executable, str(PLANTED / "fake_shim.py"), way), "sm4_honest", "ctr", "sm4")
    return planted.run("honest", NATIVE, count, station=station)


@pytest.mark.parametrize("way", VOID)
def test_a_shim_that_breaks_the_protocol_is_void_and_says_how(
    planted: Planted, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "hangs":
        monkeypatch.setattr("crosslane.client.HELLO_TIMEOUT_S", 0.5)
    cell = run_fake(planted, way)
    assert cell.state == "void"
    assert VOID[way] in cell.reason
    assert len(cell.reason.splitlines()) == 1
    assert cell.red


def test_a_shim_that_ends_between_batches_is_void(planted: Planted) -> None:
    assert "ended between two batches" in run_fake(planted, "dies_between", 16384).reason


@pytest.mark.parametrize(("way", "verdict"), [("dies_in_run", "crash"), ("hangs_in_run", "hang")])
def test_a_shim_that_ends_in_a_case_is_that_cases_verdict(
    planted: Planted, way: str, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosslane.client.STALL_TIMEOUT_S", 0.2)
    cell = run_fake(planted, way, 16)
    cases = [finding for finding in cell.findings if not is_trial(finding.case_id)]
    assert [finding.verdict for finding in cases] == [verdict]
    assert cell.red


def test_a_shim_that_declines_without_a_reason_is_red(planted: Planted) -> None:
    cell = run_fake(planted, "declines")
    failed = [(item.check, item.reason) for item in cell.judgements if item.passed is False]
    assert cell.state == "declined"
    assert failed == [("declines", "declines although the CPU has all that impl.toml asks for")]


def test_what_the_lane_hides_may_be_declined(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = run_fake(planted, "declines")
    needed = cell.cpu_features[:1]
    item, lane = planted.implementation("honest"), planted.lane(NATIVE)
    monkeypatch.setattr(planted, "implementation", lambda _name: replace(item, features=needed))
    monkeypatch.setattr(planted, "lane", lambda _name: replace(lane, hides=needed))
    hidden = run_fake(planted, "declines")
    assert (needed, hidden.cpu_features) == (("avx",), ())
    assert [item.passed for item in hidden.judgements if item.check == "declines"] == [True]


def test_a_shim_that_says_it_ran_and_did_not_is_red(planted: Planted) -> None:
    cell = run_fake(planted, "does_nothing")
    assert cell.num_departed - sum(is_trial(finding.case_id) for finding in cell.findings) == 64
    assert cell.red


def test_no_fake_is_left_behind(planted: Planted) -> None:
    run_fake(planted, "unknown_kind")
    names = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [name for name in names if b"fake_shim.py\0unknown_kind" in name]


def observed(planted: Planted, lane: str, mode: str) -> tuple[list[set[str]], list[set[str]]]:
    """For each length class the paths that the traps saw, and those that the outputs tell."""
    manifest = planted.manifest(f"{mode}(sm4)", split="none", sessions_per_batch=1024, ways=8)
    memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
    executor = Executor(planted.station("teller", lane, mode), memory)
    told: list[set[str]] = [set() for _ in range(wire.NUM_CLASSES)]
    try:
        names = executor.open().opened.paths
        batch = generate_batch(manifest, 0)
        wire.encode_batch_into(batch, memory.view)
        executor.start(batch, len(batch))
        results = executor.finish()
        ran = (batch.ops["kind"] == OpKind.UPDATE) & (results.statuses == Status.OK) & (batch.ops["in_len"] > 0)
        for op in batch.ops[np.flatnonzero(ran)]:
            blocks, rest = divmod(int(op["in_len"]), 16)
            said = int(results.out[int(op["out_off"])])
            told[2 * min(blocks.bit_length(), 7) + (rest != 0)] |= {PATHS[i] for i in range(7) if said >> i & 1}
        seen = [{name for bit, name in enumerate(names) if taken >> bit & 1} for taken in executor.taken]
        return seen, told
    finally:
        executor.release()
        memory.close()


@pytest.mark.parametrize("mode", ["ctr", "ecb"])
@pytest.mark.parametrize("lane", LANES)
def test_the_traps_see_what_the_subject_tells(planted: Planted, lane: str, mode: str) -> None:
    seen, told = observed(planted, lane, mode)
    assert seen == told
    reached = {name: [class_name(c) for c in range(wire.NUM_CLASSES) if name in seen[c]] for name in PATHS}
    assert reached["never"] == []
    assert reached["wide"] == [
        name for name in reached["always"] if name.rstrip("+") in ("8-15", "16-31", "32-63", "64..")
    ]
    assert len(reached["always"]) == (15 if mode == "ctr" else 7)  # armed again for each class
    assert len(reached["third"]) > 3


@pytest.mark.parametrize("lane", [NATIVE, EMULATED])
def test_paths_that_code_and_metadata_tell_differently_are_void(planted: Planted, lane: str) -> None:
    cell = planted.run("unreached", lane, 64)
    assert cell.state == "void"
    assert "marks the paths" in cell.reason
    assert "xctr" in cell.reason
