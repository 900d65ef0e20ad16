# SPDX-License-Identifier: Apache-2.0
"""What implementations are held to: marks and their verdicts, published tables, short messages, ci/measure."""

from __future__ import annotations

import runpy
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from crosslane.bench import bench_command
from crosslane.bench.counting import Counts
from crosslane.bench.jobs import Job, Subject, choose_cells, plan_jobs, with_base, with_composed
from crosslane.bench.marks import Mark, check_marks, load_marks, marks_table, verdict
from crosslane.bench.measure import Clock, Measurement, Series
from crosslane.bench.modelled import Figure, Modelled
from crosslane.bench.published import choose_tables, jobs_of, load_tables
from crosslane.bench.small import (
    Excess,
    compare_small,
    fall_back,
    is_default_somewhere,
    small_sizes,
    small_table,
    with_fall_backs,
)
from crosslane.bench.stats import Estimate
from crosslane.bench.tables import counts_table
from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.isa import ARCHES, host_arch
from crosslane.lanes import lane_named
from crosslane.model import Registry
from crosslane.registry import implementation_named, load_registry

HOST = host_arch()
ROOT = Path(__file__).parents[1]
MARK = Mark(
    cipher="sm4",
    columns=("ctr-enc", "cmac"),
    subject="fast",
    unit="ratio",
    low=2.0,
    high=3.0,
    over="slow",
    kind="published",
    machine="m",
    source="s",
)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(data_root())


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(bench_command, list(arguments))


def job_of(registry: Registry, pattern: str) -> Job:
    job = plan_jobs(registry, choose_cells(registry, [f"{pattern}@{HOST}_native"]))[0]
    return replace(job, subjects=(Subject("slow", "slow", "sm4"), Subject("fast", "fast", "sm4")))


def timed(job: Job, **nanoseconds: tuple[float, ...]) -> Measurement:
    series = {(name, 1000): Series(1000, ns, tuple(2 * t for t in ns)) for name, ns in nanoseconds.items()}
    return Measurement(job, Clock("tsc", 2000.0, ""), series, {}, {}, 0)


# ---- marks


@pytest.mark.parametrize(
    ("unit", "low", "high", "found", "expected"),
    [
        ("ratio", 2.0, 3.0, (1.91, 1.90, 1.92), "holds"),
        ("ratio", 2.0, 3.0, (1.91, 1.89, 1.92), "undecided"),
        ("ratio", 2.0, 3.0, (1.80, 1.79, 1.89), "missed"),
        ("instruction ratio", 2.0, 2.0, (1.90, 1.90, 1.90), "holds"),
        ("instruction ratio", 2.0, 2.0, (1.89, 1.89, 1.89), "missed"),
        ("cycles/byte", 3.8, 3.8, (3.9, 3.8, 4.0), "holds"),
        ("cycles/byte", 3.8, 3.8, (3.9, 3.8, 4.1), "undecided"),
        ("cycles/byte", 3.8, 3.8, (4.3, 4.1, 4.4), "missed"),
        ("instructions/byte", 0.95, 0.95, (0.95, 0.95, 0.95), "holds"),
        ("instructions/byte", 0.95, 0.95, (0.951, 0.951, 0.951), "missed"),
        ("model cycles/byte", 1.0, 1.0, (1.01, 1.01, 1.01), "missed"),
    ],
)
def test_a_figure_holds_where_its_interval_is_not_below_the_tolerance(
    unit: str, low: float, high: float, found: tuple[float, float, float], expected: str
) -> None:
    mark = replace(MARK, unit=unit, low=low, high=high, over="slow" if "ratio" in unit else "")
    assert verdict(mark, Estimate(*found)) == expected


def test_a_ratio_is_of_any_two_that_were_measured_together(registry: Registry) -> None:
    found = timed(job_of(registry, "ctr(sm4)/sm4-generic"), slow=(2500.0,) * 30, fast=(1000.0,) * 30)
    lines = marks_table(registry, [MARK], [found]).splitlines()
    assert lines[2].split()[:3] == ["ctr-enc(sm4)", "128", "1000"]
    assert "2 to 3 x slow" in lines[2]
    assert "2.50 (fast)  holds" in lines[2]
    assert lines[-1] == "of 1 figures: 1 holds, 0 missed, 0 undecided"
    turned = replace(found, job=replace(found.job, subjects=found.job.subjects[::-1]))
    assert "2.50 (fast)  holds" in marks_table(registry, [MARK], [turned])


def test_a_mark_is_of_its_size_key_and_column_alone(registry: Registry) -> None:
    found = timed(job_of(registry, "ctr(sm4)/sm4-generic"), slow=(2500.0,) * 30, fast=(1000.0,) * 30)
    nothing = "marks: none is on file for what was measured"
    assert marks_table(registry, [replace(MARK, size=1000, key_len=16)], [found]) != nothing
    assert marks_table(registry, [replace(MARK, size=999)], [found]) == nothing
    assert marks_table(registry, [replace(MARK, key_len=24)], [found]) == nothing
    assert marks_table(registry, [replace(MARK, columns=("ctr-dec",))], [found]) == nothing
    assert marks_table(registry, [replace(MARK, cipher="aes")], [found]) == nothing


def test_counts_and_simulations_have_marks_of_their_own(registry: Registry) -> None:
    job = job_of(registry, "cmac(sm4)/sm4-generic")
    subjects = (Subject("fast:composed", "fast:composed", "sm4"), *job.subjects)
    counts = Counts(replace(job, subjects=subjects), {("fast:composed", 64): 200, ("fast", 64): 100}, {})
    per_byte = replace(MARK, unit="instructions/byte", over="")
    gain = replace(MARK, unit="instruction ratio", over="fast:composed")
    assert "1.56 (fast)" in marks_table(registry, [per_byte], [], [counts])
    assert "2.00 (fast)  holds" in marks_table(registry, [gain], [], [counts])
    model = Modelled(job, "c", "19", {("fast", 64): Figure(2.0, 3.5)}, {})
    assert "3.50 (fast)  missed" in marks_table(
        registry, [replace(MARK, unit="model cycles/byte", over="")], [], [], [model]
    )


def test_a_gain_is_also_said_without_what_the_program_itself_takes(registry: Registry) -> None:
    job = job_of(registry, "cmac(sm4)/sm4-generic")
    counts = Counts(job, {("fast:composed", 64): 200, ("fast", 64): 100, ("slow", 64): 150}, {}, own=50)
    line = "fast, 64 bytes: 150 instructions composed, 50 fused, 3.00x, without 50 of the program that calls the mode"
    assert counts_table(counts).splitlines()[-1] == line
    assert "without" not in counts_table(replace(counts, instructions={("slow", 64): 150}))


def test_marks_name_what_exists(registry: Registry) -> None:
    assert load_marks()
    check_marks(load_marks(), registry)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"cipher": "serpant"}, "cipher 'serpant'"),
        ({"columns": ("ctr-enc", "ctx-enc")}, "column 'ctx-enc'"),
        ({"columns": ("ctr",)}, "column 'ctr'"),
        ({"columns": ("cmac-enc",)}, "column 'cmac-enc'"),
        ({"subject": "libgcript"}, "subject 'libgcript'"),
        ({"subject": "serpent-avx-x86_64"}, "subject 'serpent-avx-x86_64'"),
        ({"arch": "aarch64", "subject": "sm4-vaes-avx2"}, "subject 'sm4-vaes-avx2'"),
        ({"over": "sm4-generik"}, "over 'sm4-generik'"),
    ],
)
def test_a_misspelt_mark_is_refused(registry: Registry, changes: dict[str, Any], named: str) -> None:
    good = replace(MARK, subject="libgcrypt", over="sm4-generic")
    check_marks([good, replace(good, subject="sm4-ce", over="sm4-ce:composed")], registry)
    with pytest.raises(BadInput, match=f"mark 2: {named} is not in the registry"):
        check_marks([good, replace(good, **changes)], registry)


def test_best_existing_code_is_held_against_the_best_of_ours(registry: Registry) -> None:
    """Where that was not asked for, what is slower than the mark is no miss; where it was, it is one."""
    base = job_of(registry, "ctr(sm4)/sm4-generic")
    first = max(
        (item for item in registry.implementations if item.cipher == "sm4" and item.isa in ("any", HOST)),
        key=lambda item: item.priority,
    ).driver
    mark = replace(MARK, subject="libgcrypt", kind="peer", unit="cycles/byte", over="", low=2.0, high=2.0)
    slow = timed(base, slow=(2500.0,) * 30)
    slower = timed(replace(base, subjects=(Subject("slow", "slow", "sm4"),)), slow=(3500.0,) * 30)
    nothing = "marks: none is on file for what was measured"
    assert marks_table(registry, [mark], [slow]) == nothing
    assert "holds" in marks_table(registry, [replace(mark, low=9.0, high=9.0)], [slow])
    declined = replace(slow, job=replace(base, subjects=(*base.subjects, Subject(first, first, "sm4"))))
    assert marks_table(registry, [mark], [declined, slower]).endswith("of 1 figures: 0 holds, 1 missed, 0 undecided")
    own = replace(mark, subject="slow")
    assert "missed" in marks_table(registry, [own], [slow])


# ---- fused and composed


def test_a_fused_mode_is_counted_beside_the_same_one_composed() -> None:
    driver = "sm4-ce"
    done = invoke("--cell", f"ctr(sm4)/{driver}@aarch64_qemu_max", "--composed", "--size", "16", "--size", "1024")
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.output.splitlines() if line.startswith("1024")]
    assert [row[1] for row in rows[:2]] == [f"{driver}:composed", driver]
    assert int(rows[1][3]) < int(rows[0][3])
    assert float(rows[1][4].rstrip("x")) > 1.0


def test_a_mode_that_is_not_fused_has_no_other(registry: Registry) -> None:
    jobs = plan_jobs(registry, choose_cells(registry, [f"ctr(sm4)/sm4-generic@{HOST}_native"]))
    assert with_composed(registry, jobs) == jobs


def test_instructions_are_counted_natively_where_asked() -> None:
    done = invoke("--cell", f"ecb(aes)/aes-generic@{HOST}_native", "--instructions", "--size", "16", "--key-len", "16")
    assert done.exit_code == 0, done.output
    assert "instructions/message" in done.output


# ---- published tables


def test_published_tables_are_of_what_exists(registry: Registry) -> None:
    for table in load_tables().values():
        items = [implementation_named(registry, name) for name in (*table.drivers, *filter(None, [table.base]))]
        arch = next((item.isa for item in items if item.isa != "any"), HOST)
        lane = lane_named(registry.lanes, f"{arch}_native")
        if arch == HOST:
            jobs = jobs_of(table, registry, lane)
            assert [job.column for job in jobs] == list(table.columns) * len(table.key_lens)
    ten = ["ecb-enc", "ecb-dec", "cbc-enc", "cbc-dec", "ctr-enc", "ctr-dec", "lrw-enc", "lrw-dec", "xts-enc", "xts-dec"]
    for name in ("serpent-avx", "twofish-avx", "serpent-avx-aes", "twofish-avx-aes"):
        assert load_tables()[name].columns == tuple(ten)
        assert load_tables()[name].sizes == (16, 64, 256, 1024, 8192)
        assert load_tables()[name].key_lens == (16, 32)


@pytest.mark.skipif(HOST != "x86_64", reason="the published figures are of x86-64 implementations")
@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("cast5-avx", "cast5-avx-x86_64 against cast5-generic, 128-bit key"),
        ("des3_ede", "nanosecs/byte  mebibytes/sec  cycles/byte"),
    ],
)
def test_a_published_table_is_printed_with_its_marks(name: str, head: str) -> None:
    done = invoke("published", "--table", name, "--sample-us", "10", "--max-noise", "100")
    assert done.exit_code in (0, 3), done.output  # on a busy machine a slope may be anything
    assert head in done.output
    assert "cbc-dec" in done.output or "CBC DEC" in done.output
    assert " published " in done.output


def test_a_table_that_is_not_on_file_is_refused(registry: Registry) -> None:
    other = "aarch64" if HOST == "x86_64" else "x86_64"
    for arch, name, why in ((HOST, "nonsense", "is not on file"), ("aarch64", "cast5-avx", "is of drivers that")):
        lane = lane_named(registry.lanes, f"{arch}_native")
        with pytest.raises(BadInput, match=f"--table {name} {why}"):
            choose_tables(registry, lane, [name])
    assert other != HOST
    with pytest.raises(BadInput, match="bring their own cells"):
        raise invoke("published", "--size", "16").exception or AssertionError


# ---- short messages


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        ("serpent-avx2-x86_64", "serpent-avx-x86_64"),
        ("serpent-avx-x86_64", "serpent-sse2-x86_64"),
        ("serpent-sse2-x86_64", "serpent-generic"),
        ("serpent-neon", "serpent-generic"),
        ("twofish-avx2-x86_64", "twofish-avx-x86_64"),
        ("twofish-x86_64-3way", "twofish-generic"),
        ("cast5-avx-x86_64", "cast5-generic"),
    ],
)
def test_the_fall_back_is_what_runs_without_a_feature(registry: Registry, driver: str, expected: str) -> None:
    item = implementation_named(registry, driver)
    assert fall_back(item, registry).driver == expected
    assert is_default_somewhere(item, registry)


def test_what_another_precedes_everywhere_is_no_default(registry: Registry) -> None:
    assert not is_default_somewhere(implementation_named(registry, "twofish-avx2-shuffle"), registry)


def test_sizes_are_those_of_different_messages_below_64_bytes(registry: Registry) -> None:
    for pattern, sizes in (("ecb(sm4)/sm4-generic", [16, 32, 48]), ("ecb(cast5)/cast5-generic", list(range(8, 57, 8)))):
        assert [size // sizes[0] * sizes[0] for size in small_sizes(job_of(registry, pattern))] == sizes
    assert 63 in small_sizes(job_of(registry, "ctr(sm4)/sm4-generic"))


def test_a_verdict_is_that_of_the_worst_message(registry: Registry) -> None:
    job = job_of(registry, "ecb(sm4)/sm4-generic")
    good = Excess(job, "a", "b", True, {16: (105, 100), 32: (50, 200)})
    bad = replace(good, name="c", numbers={16: (106, 100), 32: (50, 200)})
    asked = replace(bad, name="d", is_default=False)
    assert [item.verdict for item in (good, bad, asked)] == ["holds", "missed", "not default"]
    text = small_table([good, bad, asked])
    assert "+6.0 %" in text
    assert "-75.0 %" in text
    assert text.endswith("of 3 implementations 1 need more: c")


def test_short_messages_are_counted_under_qemu(registry: Registry) -> None:
    done = invoke("small", "--cell", "ecb(twofish)/twofish-*@x86_64_qemu_max")
    assert done.exit_code == 0, done.output
    assert "of 4 implementations none needs more by default" in done.output
    assert "not default" in done.output
    with pytest.raises(BadInput, match="none of the chosen cells is of an implementation with a fall-back"):
        raise invoke("small", "--cell", "ecb(twofish)/twofish-generic@x86_64_qemu_max").exception or AssertionError


def test_what_the_emulator_lacks_is_counted_natively(registry: Registry) -> None:
    chosen = choose_cells(registry, ["ecb(serpent)/serpent-avx2-x86_64@x86_64_qemu_nehalem"])
    jobs = plan_jobs(registry, chosen)
    native = lane_named(registry.lanes, f"{HOST}_native")
    found, notes = compare_small(registry, jobs, native, lambda _: None)
    ran = [(item.job.lane.name, item.name) for item in found]
    assert set(ran) <= {("x86_64_native", "serpent-avx2-x86_64")}
    assert bool(ran) != bool(notes)
    if notes:
        assert "serpent-avx2-x86_64: declines on this CPU (x86_64_qemu_nehalem)" in notes


def test_the_shortest_key_alone_is_looked_at(registry: Registry) -> None:
    jobs = plan_jobs(registry, choose_cells(registry, ["ecb(serpent)/serpent-avx2-x86_64@x86_64_qemu_max"]))
    assert len(jobs) == 6
    assert {job.key_len for job in with_fall_backs(registry, jobs)} == {16}


# ---- ci/measure


def test_the_script_lists_commands_that_the_command_line_takes(registry: Registry) -> None:
    done = subprocess.run([ROOT / "ci" / "measure", "--list"], capture_output=True, text=True, check=True)
    lines = [shlex.split(line) for line in done.stdout.splitlines()]
    assert len(lines) > 10
    for line in lines:
        assert line[:3] == ["$", "crosslane", "bench"]
        name = line[3] if not line[3].startswith("-") else ""
        command = bench_command.commands[name] if name else bench_command
        command.make_parser(command.make_context("bench", [], resilient_parsing=True)).parse_args(
            line[4 if name else 3 :]
        )


@pytest.mark.parametrize("machine", ARCHES)
def test_the_parts_are_of_what_their_machine_has(registry: Registry, machine: str) -> None:
    """Each pattern takes cells that a host of the machine has, and each base fits all that is held against it."""
    parts = runpy.run_path(str(ROOT / "ci" / "measure.py"))["parts"](machine)
    assert ("model-x86" in parts, "serpent-vs" in parts, "des3_ede-vs" in parts) == (machine == "x86_64",) * 3
    for name, text in parts.items():
        words = shlex.split(text)
        patterns = [words[i + 1] for i, word in enumerate(words) if word == "--cell"]
        assert bool(patterns) == (name not in ("published", "small"))
        chosen = choose_cells(registry, patterns, host=machine) if patterns else []
        if "--vs" in words:
            assert with_base(registry, plan_jobs(registry, chosen), words[words.index("--vs") + 1])


def test_the_script_refuses_an_unknown_part() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "ci" / "measure.py", "x"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no part is called x; there are published, cast5" in done.stderr


def test_a_mark_of_one_of_ours_is_of_its_own_architecture() -> None:
    isas = {item.driver: item.isa for item in load_registry(data_root()).implementations}
    ours = [mark for mark in load_marks() if mark.arch and mark.subject in isas]
    assert {mark.arch for mark in ours} == {"x86_64", "aarch64"}
    assert [mark for mark in ours if isas[mark.subject] not in (mark.arch, "any")] == []
