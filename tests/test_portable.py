# SPDX-License-Identifier: Apache-2.0
"""Portable and sanitized lanes: each sees the fault that it is for, and the lanes that cannot see it stay green."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from crosslane.conduct import conduct
from crosslane.data import data_root
from crosslane.isa import PORTABLE_ARCHES, host_arch
from crosslane.lanes import load_lanes
from crosslane.model import Registry
from crosslane.plan import Counts, Selection, make_plans
from crosslane.records import CellResult, Finding
from crosslane.registry import load_registry
from crosslane.trials import is_trial

PLANTED = Path(__file__).parent / "planted"
HOST = host_arch()
NATIVE = f"{HOST}_native"
PORTABLE = tuple(f"{arch}_qemu" for arch in PORTABLE_ARCHES)
ASAN, UBSAN = f"{HOST}_asan", f"{HOST}_ubsan"
HAS_SANITIZERS = any(
    lane.name == ASAN and HOST in lane.hosts for lane in load_lanes(data_root() / "ci" / "lanes.toml", host=HOST)
)
OTHERS = (*PORTABLE, *((ASAN, UBSAN) if HAS_SANITIZERS else ()))
COUNT = 160

_IMPL = """# SPDX-License-Identifier: Apache-2.0
cipher = "sm4"
driver = "planted-{name}"
isa = "any"
features = []
priority = 150
ways = 1
sources = ["portable.c", "sm4.h", "fault.h"]
fused = ["ctr"]
paths = ["ctr"]
constant_time = false
description = "Planted by the tests."
"""


@dataclass(frozen=True)
class Fault:
    """A fault of portable.c, the lanes that see it and what they say, and lanes that do not."""

    name: str
    seen: tuple[str, ...]
    verdict: str
    words: str
    unseen: tuple[str, ...]


BIG_ENDIAN = ("s390x_qemu", "ppc64_qemu")
NARROW = ("i386_qemu", "armhf_qemu")
FAULTS = (
    Fault("byte_order", BIG_ENDIAN, "disagree", "of the output", (NATIVE, "riscv64_qemu", *NARROW)),
    Fault("narrow", NARROW, "disagree", "", (NATIVE, "riscv64_qemu", *BIG_ENDIAN)),
)
SANITIZED = (
    Fault("stack", (ASAN,), "crash", "AddressSanitizer: stack-buffer-overflow", (NATIVE,)),
    Fault("heap", (ASAN,), "crash", "AddressSanitizer: heap-buffer-overflow", (NATIVE,)),
    Fault("table", (ASAN,), "crash", "AddressSanitizer: global-buffer-overflow", (NATIVE,)),
    Fault("shift", (UBSAN,), "crash", "runtime error: shift exponent 32 is too large", (NATIVE, ASAN)),
)

GREEDY = Fault("greedy", (ASAN,), "crash", "AddressSanitizer: hard rss limit exhausted", ())


def plant(folder: Path, name: str) -> Registry:
    """Lay one fault out (``honest``: none) and return the registry with it."""
    folder = folder / name
    folder.mkdir()
    for source in ("portable.c", "sm4.h"):
        shutil.copy(PLANTED / source, folder / source)
    define = "" if name == "honest" else f"#define FAULT_{name.upper()} 1\n"
    (folder / "fault.h").write_text(f"/* SPDX-License-Identifier: Apache-2.0 */\n#define GETTER sm4_{name}\n{define}")
    (folder / "impl.toml").write_text(_IMPL.format(name=name))
    return load_registry(data_root(), [folder])


def run(registry: Registry, name: str, lanes: tuple[str, ...], count: int = COUNT) -> dict[str, CellResult]:
    """Run a plant in some lanes as ``crosslane check`` does; the results by lane."""
    selection = Selection((f"ctr(sm4)/planted-{name}",), lanes)
    plan = make_plans(registry, selection, counts=Counts(count, count, count)).algorithms[0]
    return {cell.cell.partition("@")[2]: cell for cell in conduct(plan).cells}


def assert_seen(fault: Fault, cell: CellResult) -> tuple[Finding, ...]:
    assert cell.state == "ran", cell.reason
    findings = tuple(item for item in cell.findings if not is_trial(item.case_id))
    assert findings
    for finding in findings:
        assert (finding.verdict, finding.repeats) == (fault.verdict, "alone"), finding
        assert fault.words in finding.text
    return findings


def assert_green(cell: CellResult, count: int) -> None:
    assert (cell.state, cell.reason, cell.findings, cell.num_departed, cell.skipped) == ("ran", "", (), 0, 0)
    assert cell.comparisons >= count


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.name))
def test_a_portable_lane_sees_what_it_is_for(tmp_path: Path, fault: Fault) -> None:
    results = run(plant(tmp_path, fault.name), fault.name, (*fault.seen, *fault.unseen))
    for lane in fault.seen:
        assert_seen(fault, results[lane])
    for lane in fault.unseen:
        assert_green(results[lane], COUNT)


@pytest.mark.parametrize("name", ["read_beyond", "write_beyond", "nowhere", "honest"])
def test_guard_pages_canaries_and_signals_work_in_every_lane(tmp_path: Path, name: str) -> None:
    seen = {
        "read_beyond": {("crash", "guard_read")},
        "write_beyond": {("crash", "guard_write"), ("disagree", "canary")},
        "nowhere": {("crash", "none")},
        "honest": set(),
    }
    for lane, cell in run(plant(tmp_path, name), name, OTHERS).items():
        assert cell.state == "ran", cell.reason
        assert {(finding.verdict, finding.symptom) for finding in cell.findings} == seen[name], lane
        assert {finding.repeats for finding in cell.findings} <= {"alone"}
        assert cell.unwatched == (("paths", "registers") if lane in PORTABLE else ())


@pytest.mark.skipif(not HAS_SANITIZERS, reason="this host has no sanitized lanes")
@pytest.mark.parametrize("fault", SANITIZED, ids=lambda fault: str(fault.name))
def test_a_sanitizers_report_is_a_finding_with_its_words(tmp_path: Path, fault: Fault) -> None:
    results = run(plant(tmp_path, fault.name), fault.name, (*fault.seen, *fault.unseen))
    for lane in fault.seen:
        findings = assert_seen(fault, results[lane])
        assert [is_trial(finding.case_id) for finding in findings].count(False) == 1
        for finding in findings:  # in two threads at once as well
            assert "crashes with SIGABRT" in finding.text
            assert "portable.c:" in finding.text
    for lane in fault.unseen:
        assert_green(results[lane], COUNT)


@pytest.mark.skipif(not HAS_SANITIZERS, reason="this host has no sanitized lanes")
def test_memory_is_limited_where_the_address_space_cannot_be(tmp_path: Path) -> None:
    results = run(plant(tmp_path, GREEDY.name), GREEDY.name, (ASAN,), 8)
    assert_seen(GREEDY, results[ASAN])
