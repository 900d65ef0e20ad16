# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from crosslane.bench import bench_command, running
from crosslane.bench.counting import Counter, Counts, count, counter_for
from crosslane.bench.jobs import Job, Subject, choose_cells, hidden_bits, plan_jobs, real_len, with_base
from crosslane.bench.marks import load_marks, marks_table
from crosslane.bench.measure import Clock, Measurement, Series, Settings, measure, measure_all, pick_cpu, read_answers
from crosslane.bench.peers import LIBRARIES, is_plain_c, load_assembly, require_libraries
from crosslane.bench.plot import curves_of, draw
from crosslane.bench.report import to_json
from crosslane.bench.stats import Estimate, estimate, fit_line, ratio
from crosslane.bench.tables import (
    counts_table,
    grid,
    mib_per_s,
    noisy_figures,
    noisy_slopes,
    peers_table,
    slope_of,
    slope_table,
    speed_table,
    vs_tables,
)
from crosslane.bench.tcrypt import Layout, jobs_for, load_layouts, tcrypt_tables
from crosslane.build import build_bench
from crosslane.data import data_root
from crosslane.errors import BadInput, HarnessFault, MissingTool
from crosslane.isa import FEATURES, host_arch
from crosslane.lanes import lane_named
from crosslane.model import Lane, Registry
from crosslane.registry import load_registry
from crosslane.toolchain import runner_command

HOST = host_arch()
QEMU = "aarch64_qemu_max"
CLOCK = Clock("tsc", 2000.0, "")
QUICK = Settings(sizes=(16, 1420), rounds=30, sample_us=10, cpu=pick_cpu(), clock="none", max_noise=100.0, turn_s=0.0)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(data_root())


@pytest.fixture(scope="module")
def native(registry: Registry) -> Lane:
    return lane_named(registry.lanes, f"{HOST}_native")


@pytest.fixture(scope="module")
def program(registry: Registry, native: Lane) -> Path:
    return build_bench(registry, native, [item for item in registry.implementations if item.isa in ("any", HOST)])


def job_of(registry: Registry, pattern: str, *, direction: str = "encrypt", lane: str = f"{HOST}_native") -> Job:
    chosen = [cell for cell in choose_cells(registry, [pattern + "@" + lane]) if cell.lane == lane]
    return next(job for job in plan_jobs(registry, chosen) if job.direction == direction)


def made(job: Job, figures: dict[str, dict[int, float]], *, spread: float = 0.0, clock: Clock = CLOCK) -> Measurement:
    """A measurement of 30 rounds; ``figures`` are ns a byte by subject and size, and every third sample is off."""
    series = {}
    for name, sizes in figures.items():
        for size, ns in sizes.items():
            times = tuple(ns * size * (1.0 + spread * (i % 3 - 1)) for i in range(30))
            series[name, size] = Series(size, times, tuple(2.0 * t for t in times))
    return Measurement(job, clock, series, {}, {}, 0)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(bench_command, list(arguments))


# ---- statistics


def test_the_interval_of_a_median_is_that_of_the_sign_test() -> None:
    # Conover, Practical Nonparametric Statistics: for n = 30 the 95 % interval is from the 10th to the 21st value.
    found = estimate([float(i) for i in range(30, 0, -1)])
    assert (found.value, found.low, found.high) == (15.5, 10.0, 21.0)


@pytest.mark.parametrize(("num", "bounded"), [(1, False), (5, False), (6, True)])
def test_too_few_samples_bound_nothing(num: int, bounded: bool) -> None:
    found = estimate([float(i + 1) for i in range(num)])
    assert math.isfinite(found.high) is bounded
    assert math.isfinite(found.noise) is bounded


def test_the_interval_covers_the_true_median_as_often_as_it_says() -> None:
    state, inside = 12345, 0
    for _ in range(400):
        values = []
        for _ in range(30):
            # D. Knuth, MMIX
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            values.append((state >> 40) / 2**24)
        found = estimate(values)
        inside += found.low <= 0.5 <= found.high
    assert 0.92 <= inside / 400 <= 0.99


def test_a_ratio_is_taken_pair_by_pair_so_that_drift_cancels() -> None:
    drift = [1.0 + i / 10 for i in range(30)]
    found = ratio([3.0 * d for d in drift], drift)
    assert found == Estimate(3.0, pytest.approx(3.0), pytest.approx(3.0))  # type: ignore[arg-type]


def test_a_preempted_sample_does_not_move_the_estimate() -> None:
    assert estimate([10.0] * 29 + [1e9]).noise == 0.0


def test_a_slope_leaves_out_what_each_message_costs() -> None:
    line = fit_line([16.0, 64.0, 256.0], [100.0 + 2.0 * x for x in (16.0, 64.0, 256.0)])
    assert line.slope == pytest.approx(2.0)
    assert line.intercept == pytest.approx(100.0)


def test_a_slope_is_as_sure_as_its_points_lie_on_a_line() -> None:
    assert fit_line([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]).slope_error == pytest.approx(0.0)
    assert fit_line([1.0, 2.0], [10.0, 20.0]).slope_error == math.inf
    # s^2 = 2/3 over Sxx = 2, with one degree of freedom.
    bent = fit_line([1.0, 2.0, 3.0], [10.0, 21.0, 30.0])
    assert bent.slope_error == pytest.approx(12.706 * math.sqrt((2.0 / 3.0) / 2.0), rel=1e-3)


def test_an_estimate_turned_round_keeps_its_order() -> None:
    assert Estimate(2.0, 1.0, 4.0).inverse() == Estimate(0.5, 0.25, 1.0)


# ---- jobs


def test_features_are_hidden_by_the_bits_of_the_contract(native: Lane) -> None:
    header = (data_root() / "impls" / "shim" / "subject.h").read_text()
    words = {"x86_64": "X86", "aarch64": "ARM"}
    for arch, word in words.items():
        for feature in FEATURES[arch]:
            name = f"SUBJECT_{word}_{feature.upper().replace('_', '')}"
            match = re.search(rf"{name} \(UINT64_C\(1\) << (\d+)\)", header)
            assert match is not None, name
            assert hidden_bits(replace(native, arch=arch, hides=(feature,))) == 1 << int(match[1])
    assert hidden_bits(replace(native, hides=())) == 0


@pytest.mark.parametrize(
    ("pattern", "size", "length"),
    [("ctr(sm4)/*", 1420, 1420), ("cbc(sm4)/*", 1420, 1424), ("ecb(cast5)/*", 1420, 1424)],
)
def test_sizes_are_whole_blocks_where_the_mode_takes_no_others(
    registry: Registry, pattern: str, size: int, length: int
) -> None:
    assert real_len(job_of(registry, pattern), size) == length


def test_a_pattern_takes_native_cells_unless_it_names_a_lane(registry: Registry) -> None:
    def lanes(*patterns: str) -> set[str]:
        return {cell.lane for cell in choose_cells(registry, patterns)}

    assert lanes() == lanes("sm4") == lanes("ctr(sm4)/sm4-generic") == {f"{HOST}_native"}
    assert lanes(QEMU) == lanes(f"ctr(sm4)/*@{QEMU}") == {QEMU}
    assert lanes("*") == {f"{HOST}_native"}


def test_a_driver_of_another_architecture_is_taken_where_it_runs(registry: Registry) -> None:
    if HOST == "aarch64":
        pytest.skip("sm4-ce is native here")
    assert all(cell.lane.startswith("aarch64_") for cell in choose_cells(registry, ["sm4-ce"]))


def test_an_unknown_cell_names_the_nearest(registry: Registry) -> None:
    with pytest.raises(BadInput, match=r"nearest are .*ctr\(sm4\)"):
        choose_cells(registry, ["ctr(sm5)"])


def test_generic_is_the_base_of_ratios(registry: Registry) -> None:
    jobs = plan_jobs(registry, choose_cells(registry, [f"*@{HOST}_native"]))
    assert jobs
    assert all(job.subjects[0].name.endswith("-generic") for job in jobs)


def test_a_key_length_that_no_chosen_cipher_takes_is_refused(registry: Registry) -> None:
    with pytest.raises(BadInput, match="24 bytes; allowed are: sm4 16"):
        plan_jobs(registry, choose_cells(registry, ["sm4"]), key_lens=[24])


def test_a_base_may_be_of_another_cipher_but_not_of_another_block(registry: Registry) -> None:
    jobs = [job_of(registry, "ctr(sm4)/sm4-generic")]
    assert [subject.name for subject in with_base(registry, jobs, "aes-generic")[0].subjects] == [
        "aes-generic",
        "sm4-generic",
    ]
    with pytest.raises(BadInput, match="blocks of 8 bytes and sm4 of 16"):
        with_base(registry, jobs, "cast5-generic")
    with pytest.raises(BadInput, match="nothing is left to compare with sm4-generic"):
        with_base(registry, jobs, "sm4-generic")
    with pytest.raises(BadInput, match="there is no driver 'sm4-genric'; nearest are sm4-generic"):
        with_base(registry, jobs, "sm4-genric")


# ---- the program


def test_the_program_measures_all_subjects_in_turns(registry: Registry, program: Path) -> None:
    job = job_of(registry, "ctr(sm4)/*", direction="decrypt")
    found = measure(program, job, QUICK)
    assert set(found.series) | {(name, size) for name in found.absent for size in QUICK.sizes} == {
        (subject.name, size) for subject in job.subjects for size in QUICK.sizes
    }
    assert all(len(series.ns) == 30 and min(series.ns) > 0 for series in found.series.values())
    assert found.clock.name == "none"
    base = job.subjects[0].name
    assert found.series[base, 1420].ns_per_byte.value < found.series[base, 16].ns_per_byte.value


def test_the_time_stamp_counter_is_calibrated(registry: Registry, program: Path) -> None:
    if HOST != "x86_64":
        pytest.skip("only x86 has one")
    found = measure(program, job_of(registry, "ecb(sm4)/sm4-generic"), replace(QUICK, clock="tsc"))
    assert 500.0 < found.clock.cycles_per_us < 10000.0
    for series in found.series.values():
        rate = 1000.0 * series.cycles_per_byte.value / series.ns_per_byte.value
        assert rate == pytest.approx(found.clock.cycles_per_us, rel=0.1)


def test_subjects_that_compute_different_things_are_not_compared(registry: Registry, program: Path) -> None:
    job = job_of(registry, "ecb(sm4)/sm4-generic")
    other = Subject(name="aes-generic", symbol="aes_generic", cipher="sm4")
    with pytest.raises(BadInput, match="aes_generic does not compute what the first subject computes, for 16 bytes"):
        measure(program, replace(job, subjects=(*job.subjects, other)), QUICK)


def test_sizes_that_round_to_one_length_share_its_samples(registry: Registry, program: Path) -> None:
    job = job_of(registry, "ecb(sm4)/sm4-generic")
    found = measure(program, job, replace(QUICK, sizes=(1420, 1424)))
    assert found.series["sm4-generic", 1420] == found.series["sm4-generic", 1424]


@pytest.mark.parametrize(
    "argument",
    ["nonsense", "what=1", "sizes=0x", "cpu=70000", "clock=sundial", "sizes=99999999", "decrypting=2", "rounds=-1"],
)
def test_the_program_refuses_a_wrong_argument_in_one_sentence(program: Path, argument: str) -> None:
    done = subprocess.run(
        [program, "mode=ecb", "cipher=sm4", "key_len=16", "sizes=16", "subjects=sm4_generic", argument],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_an_unusable_clock_is_the_programs_sentence(registry: Registry, tmp_path: Path) -> None:
    fake = script(tmp_path / "bench", "echo 'the clock perf is unusable here (no counter)' >&2; exit 2")
    with pytest.raises(BadInput, match=r"^the clock perf is unusable here \(no counter\)$"):
        measure(fake, job_of(registry, "ecb(sm4)/sm4-generic"), QUICK)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kill -SEGV $$", "ended with status -11 while measuring"),
        ("exit 0", "ended before its last line"),
        ("echo hello", "'hello', which is none of its lines"),
        ("echo sample 16 0 x 1 1", "none of its lines"),
        ("echo subject 0 a lazy", "none of its lines"),
    ],
)
def test_a_program_that_fails_is_our_fault(registry: Registry, tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(HarnessFault, match=re.escape(sentence)):
        measure(script(tmp_path / "bench", text), job_of(registry, "ecb(sm4)/sm4-generic"), QUICK)


def test_a_subject_that_cannot_take_part_says_why(registry: Registry) -> None:
    job = job_of(registry, "ecb(sm4)/*")
    subjects = tuple(Subject(name=f"d{i}", symbol=f"s{i}", cipher="sm4") for i in range(3))
    text = (
        "clock tsc 2000.0 perf_event_open: No\nsubject 0 s0 ready \nsubject 1 s1 declined \nsubject 2 s2 ready 1.2\n"
        "refused 2 16 5\nsample 16 0 10 1000 2000\nretaken 3\nend\n"
    )
    found = read_answers(replace(job, subjects=subjects), [16], text)
    assert found.absent == {"d1": "declines on this CPU", "d2": "refuses messages of 16 bytes with status 5"}
    assert found.series["d0", 16] == Series(16, (100.0,), (200.0,))
    assert (found.retaken, found.clock.why) == (3, "perf_event_open: No")
    assert found.versions == {"d2": "1.2"}


def test_noisy_sizes_alone_are_measured_again_and_longer(registry: Registry, tmp_path: Path) -> None:
    # Every other sample of the size 64 takes twice as long while there are few.
    fake = script(
        tmp_path / "bench",
        f"""echo "$@" >> {tmp_path}/calls
echo "clock none 0.0 "; echo "subject 0 s ready "
for size in 16 64; do case "$*" in *sizes=$size*|*,$size*)
  for i in 1 2 3 4 5 6; do
    ns=100; case "$*" in *rounds=5*) [ $size = 64 ] && [ $((i % 2)) = 0 ] && ns=200;; esac
    echo "sample $size 0 1 $ns 0"; done;; esac; done
echo "retaken 0"; echo end""",
    )
    found = measure(fake, job_of(registry, "ecb(sm4)/sm4-generic"), replace(QUICK, sizes=(16, 64), max_noise=0.05))
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [re.findall(r"(?:sizes|rounds)=\S+", call) for call in calls] == [
        *6 * [["sizes=16,64", "rounds=5"]],
        *6 * [["sizes=64", "rounds=20"]],
    ]
    assert found.series["sm4-generic", 64].ns_per_byte.noise == 0.0


@pytest.mark.parametrize(("slow", "refused"), [(range(4, 8), True), (range(6, 8), False), (range(0), False)])
def test_an_episode_in_which_the_machine_is_slow_widens_intervals(
    registry: Registry, tmp_path: Path, slow: range, refused: bool
) -> None:
    # Twelve calls: two jobs in six turns. An episode of two turns is seen, and does not become the figure.
    (tmp_path / "calls").write_text("")
    fake = script(
        tmp_path / "bench",
        f"""echo "$1 $3" >> {tmp_path}/calls; number=$(wc -l < {tmp_path}/calls)
echo "clock none 0.0 "; echo "subject 0 s ready "; ns=100
for k in {" ".join(map(str, slow))}; do [ $number = $k ] && ns=150; done
for i in 1 2 3 4 5; do echo "sample 16 0 1 $ns 0"; done
echo "retaken 0"; echo end""",
    )
    jobs = [job_of(registry, "ecb(sm4)/sm4-generic", direction=name) for name in ("encrypt", "decrypt")]
    turns: list[str] = []
    quick = replace(QUICK, sizes=(16,), max_noise=0.05 if refused else 10.0)
    found = measure_all([(fake, job) for job in jobs], quick, turns.append)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[:12] == 6 * ["mode=ecb decrypting=0", "mode=ecb decrypting=1"]
    assert turns[0] == "measuring 2 jobs, turn 1 of 6"
    assert all(item.series["sm4-generic", 16].ns_per_byte.value == pytest.approx(100.0 / 16) for item in found)
    # Refused at first, both were measured anew, in the quiet after it.
    assert len(calls) == (24 if refused else 12)
    assert [len(item.series["sm4-generic", 16].ns) for item in found] == [30, 30]


# ---- instructions under qemu

needs_qemu = pytest.mark.skipif(
    HOST != "x86_64" or shutil.which("qemu-aarch64") is None or shutil.which("aarch64-linux-gnu-gcc") is None,
    reason="needs the packages qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
)


@pytest.fixture(scope="module")
def emulated(registry: Registry) -> tuple[Path, Job]:
    lane = lane_named(registry.lanes, QEMU)
    items = [item for item in registry.implementations if item.isa in ("any", "aarch64")]
    return build_bench(registry, lane, items), job_of(registry, "ctr(sm4)/*", lane=QEMU)


@needs_qemu
def test_instructions_are_counted_exactly(registry: Registry, emulated: tuple[Path, Job]) -> None:
    program, job = emulated
    counter = counter_for(registry.root, job.lane)
    sizes = replace(QUICK, sizes=(16, 1024, 2048, 3072))
    first = count(program, counter, job, sizes)
    if first.unavailable:
        pytest.skip(first.unavailable)
    assert first == count(program, counter, job, sizes)
    # Each KiB more costs the same, the mark's own cost and the start of the process are in none of them.
    numbers = [first.instructions["sm4-generic", size] for size in (1024, 2048, 3072)]
    assert abs((numbers[2] - numbers[1]) - (numbers[1] - numbers[0])) <= 0.02 * numbers[0]
    assert first.instructions["sm4-generic", 16] < 2000
    if "sm4-ce" not in first.absent:
        assert first.per_byte("sm4-ce", 2048) * 5 < first.per_byte("sm4-generic", 2048)
        assert "x" in counts_table(first)


@needs_qemu
def test_a_plugin_that_does_not_load_is_one_sentence(tmp_path: Path, emulated: tuple[Path, Job]) -> None:
    program, job = emulated
    bad = tmp_path / "plugin.so"
    bad.write_text("no library\n")
    found = count(program, Counter(runner_command(job.lane), bad), job, QUICK)
    assert found.instructions == {}
    assert re.fullmatch(
        r"qemu-aarch64 does not load the plugin that counts instructions \(.*\); install a dynamically linked "
        r"qemu-user of version 7\.2, as in Debian 12",
        found.unavailable,
    )
    assert "instructions/byte: not available: qemu-aarch64 does not" in counts_table(found)


def test_the_plugin_looks_for_the_call_that_the_program_makes() -> None:
    folder = data_root() / "impls" / "bench"
    calls = [
        re.findall(r"#define MARK_CALL .*(0x[0-9a-f]+)", (folder / name).read_text())
        for name in ("bench_main.c", "insn_plugin.c", "stepper.c")
    ]
    assert calls[0] == calls[1] == calls[2]
    assert len(calls[0]) == 1
    assert "GPL-2.0-or-later OR Apache-2.0" in (folder / "insn_plugin.c").read_text().splitlines()[0]


# ---- tables


def two(registry: Registry, direction: str = "encrypt") -> Job:
    job = job_of(registry, "cbc(sm4)/sm4-generic", direction=direction)
    return replace(job, subjects=(Subject("slow", "slow", "sm4"), Subject("fast", "fast", "sm4")))


def test_speed_is_printed_per_size_and_subject(registry: Registry) -> None:
    found = made(two(registry), {"slow": {16: 10.0}, "fast": {16: 5.0}})
    assert speed_table(found, 0.03).splitlines() == [
        f"cbc(sm4) encrypt, 128-bit key, {HOST}_native",
        "size  subject  ns/byte  MiB/s  cycles/byte  noise  ratio   95 % interval",
        "  16  slow      10.000   95.4       20.000  0.0 %",
        "  16  fast       5.000  190.7       10.000  0.0 %  2.00x  2.000 to 2.000",
    ]


def test_vs_has_a_row_a_size_and_a_column_a_mode_and_direction(registry: Registry) -> None:
    results = [
        made(two(registry), {"slow": {16: 10.0, 64: 8.0}, "fast": {16: 5.0, 64: 2.0}}),
        made(two(registry, "decrypt"), {"slow": {16: 10.0}, "fast": {16: 10.0, 64: 2.0}}),
    ]
    assert vs_tables(results, 0.03).splitlines() == [
        f"fast against slow, 128-bit key, {HOST}_native",
        "size  cbc-enc  cbc-dec",
        "16B     2.00x    1.00x",
        "64B     4.00x        -",
    ]


def test_a_slope_table_is_laid_out_as_bench_slope(registry: Registry) -> None:
    job = replace(two(registry), subjects=(Subject("slow", "slow", "sm4"),))
    found = made(job, {"slow": {1000: 4.0, 2000: 3.0, 4000: 2.5}})
    slope, line = slope_of(found, "slow")
    assert slope.value == pytest.approx(2.0)
    assert slope.noise == pytest.approx(0.0)
    assert noisy_slopes([found], 0.03) == []
    assert line.intercept == pytest.approx(2000.0)
    assert slope_table([found], 0.03).splitlines()[1:] == [
        "         nanosecs/byte  mebibytes/sec  cycles/byte  ns/message",
        "CBC ENC          2.000          476.8        4.000        2000",
    ]


def test_a_slope_through_points_that_are_no_line_is_refused(registry: Registry) -> None:
    job = replace(two(registry), subjects=(Subject("slow", "slow", "sm4"),))
    found = made(job, {"slow": {1000: 4.0, 2000: 2.0, 4000: 3.0}})
    (noisy,) = noisy_slopes([found], 0.03)
    assert noisy.label.endswith("slow, slope, ns/byte")
    assert noisy.found.noise == math.inf
    assert "?" in slope_table([found], 0.03)


def test_what_is_too_noisy_is_marked_and_listed(registry: Registry) -> None:
    found = made(two(registry), {"slow": {16: 10.0}, "fast": {16: 5.0}}, spread=0.2)
    assert "20.0 %?" in speed_table(found, 0.03) or "?" in speed_table(found, 0.03)
    assert [item.label.rpartition(", ")[2] for item in noisy_figures([found], 0.03, ratios_only=False)] == [
        "ns/byte"
    ] * 2
    assert noisy_figures([found], 0.03, ratios_only=True) == []  # both subjects drift alike, so that pairs agree


def test_peers_are_compared_with_plain_c_alone(registry: Registry) -> None:
    job = job_of(registry, "ctr(cast5)/cast5-generic")
    libraries = tuple(Subject(library.name, library.name, "") for library in LIBRARIES)
    figures = {"cast5-generic": {8192: 12.0}, "libgcrypt": {8192: 4.0}, "nettle": {8192: 10.0}}
    found = made(replace(job, subjects=(*job.subjects, *libraries)), figures)
    facts = load_assembly()
    if HOST == "x86_64":
        assert is_plain_c(facts, job, "nettle")
        assert not is_plain_c(facts, job, "libgcrypt")
    table = peers_table([found], ["libgcrypt", "nettle"], 0.03, lambda _job, name: name == "nettle")
    assert "8.00*" in table
    assert re.search(r"3\.00 +3\.00 to 3\.00", table)
    assert "against plain C, ours takes at most 1.20 of its time (ctr(cast5) encrypt" in table


def test_columns_are_aligned() -> None:
    assert grid([["a", "bb"], ["ccc", "d"]]) == "a    bb\nccc   d"
    assert mib_per_s(1e9 / (1 << 20)) == 1.0


def test_a_plot_is_a_drawing_with_a_curve_for_each_subject(registry: Registry) -> None:
    found = made(two(registry), {"slow": {16: 10.0, 8192: 8.0}, "fast": {16: 5.0, 8192: 0.1}})
    unit, curves = curves_of([found])
    assert (unit, len(curves)) == ("cycles/byte", 2)
    root = ET.fromstring(draw("a <CPU> & more", unit, curves))  # noqa: S314 - we have just written it
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 4
    for line in lines:
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= 1000
            assert 0 <= y <= float(root.attrib["height"])


def test_the_document_has_all_samples(registry: Registry) -> None:
    found = made(two(registry), {"slow": {16: 10.0}, "fast": {16: 5.0}})
    counts = Counts(found.job, {("slow", 16): 320}, {}, "")
    document = json.loads(to_json([found], [counts], [], QUICK))
    assert document["schema"] == "crosslane bench 1"
    assert [len(figure["samples_ns"]) for figure in document["measured"][0]["figures"]] == [30, 30]
    assert document["measured"][0]["figures"][1]["ratio"]["value"] == 2.0
    assert document["counted"][0]["figures"][0]["instructions_per_byte"] == 20.0


# ---- published layouts and figures


def test_tcrypt_prints_megabytes_by_block_size(registry: Registry) -> None:
    job = replace(job_of(registry, "cbc(sm4)/sm4-generic"), subjects=(Subject("sm4-generic", "", "sm4"),))
    layout = Layout(218, "sm4", ("ecb", "cbc"), (16,), (16, 64), 0)
    found = made(job, {"sm4-generic": {16: 1e9 / 117.17 / (1 << 20), 64: 1e9 / 430.56 / (1 << 20)}})
    assert tcrypt_tables(layout, [found]).splitlines()[2:] == [
        "sm4-generic     |       16       64",
        "----------------+------------------",
        "        CBC enc |   117.17   430.56",
    ]


def test_tcrypt_gives_macs_by_update_size_of_one_message(registry: Registry) -> None:
    layout = load_layouts()[300]
    job = job_of(registry, "ctr(sm4)/sm4-generic")
    mac = replace(job, mode=replace(job.mode, name="cmac", iv="none", iv_lens=(), tag_lens=(16,)))
    jobs = jobs_for(layout, [job, mac])
    assert [item.update_len for item in jobs] == [16, 64, 256, 1024, 2048, 4096, 8192]
    assert {item.mode.name for item in jobs} == {"cmac"}
    results = [made(item, {"sm4-generic": {8192: 1e9 / (100 + n) / (1 << 20)}}) for n, item in enumerate(jobs)]
    lines = tcrypt_tables(layout, results).splitlines()
    assert "update size, one message of 8192 bytes" in lines[0]
    assert lines[-1].split() == ["cmac(sm4)", "|", *(f"{100 + n}.00" for n in range(7))]


def test_a_layout_that_shows_nothing_chosen_is_refused(registry: Registry) -> None:
    with pytest.raises(BadInput, match=r"tcrypt 218 shows ecb, .* of sm4, and none of the chosen cells is that"):
        jobs_for(load_layouts()[218], [job_of(registry, "ctr(aes)/aes-generic")])


def test_layouts_name_ciphers_and_key_lengths_that_exist(registry: Registry) -> None:
    ciphers = {cipher.name: cipher for cipher in registry.ciphers}
    for layout in load_layouts().values():
        if layout.cipher != "*":
            assert set(layout.key_lens) <= set(ciphers[layout.cipher].key_lens)


def test_marks_are_of_known_ciphers(registry: Registry) -> None:
    marks = load_marks()
    assert {mark.cipher for mark in marks} <= {cipher.name for cipher in registry.ciphers}
    assert len(set(marks)) == len(marks)


MARK = """[[mark]]
cipher = "sm4"
columns = ["ctr-enc"]
subject = "libgcrypt"
unit = "cycles/byte"
low = 3.65
high = 3.65
kind = "peer"
machine = "m"
source = "s"
"""


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("kind", "sort", "unknown key 'sort'"),
        ('unit = "cycles/byte"', 'unit = "furlongs"', "allowed are cycles/byte, instructions/byte, model"),
        ("low = 3.65", "low = 4.0", "0 < low <= high"),
        ("low = 3.65", "low = 3", "must be a number with a point"),
        ("high = 3.65", 'high = 3.65\nover = "sm4-generic"', "name a driver for a ratio"),
        ('"ctr-enc"', '"ctr-up"', "of the form"),
        ('source = "s"\n', "", "the key 'source' is missing"),
        ("[[mark]]", "[mark]", r"must hold \[\[mark\]\] tables"),
        ("[[mark]]", "x = 1\n[[mark]]", "and nothing else"),
    ],
)
def test_marks_are_read_strictly(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    path = tmp_path / "marks.toml"
    path.write_text(MARK)
    assert len(load_marks(path)) == 1
    path.write_text(MARK.replace(old, new, 1))
    with pytest.raises(BadInput, match=sentence):
        load_marks(path)


def test_marks_stand_beside_the_best_of_ours(registry: Registry, tmp_path: Path) -> None:
    path = tmp_path / "marks.toml"
    path.write_text(MARK)
    job = replace(two(registry), mode=job_of(registry, "ctr(sm4)/sm4-generic").mode)
    asked = tuple(Subject(item.driver, item.symbol, "sm4") for item in registry.implementations if item.cipher == "sm4")
    job = replace(job, subjects=(*job.subjects, *asked))
    found = made(job, {"slow": {16: 10.0}, "fast": {16: 5.0}})
    row = marks_table(registry, load_marks(path), [found], []).splitlines()[2]
    assert "3.65 cycles/byte" in row
    assert "10.00 (fast)" in row
    assert marks_table(registry, load_marks(path), [], []) == "marks: none is on file for what was measured"


# ---- the command


def test_bench_measures_and_writes_its_files(tmp_path: Path) -> None:
    document, drawing = tmp_path / "b.json", tmp_path / "b.svg"
    files = ("--json", str(document), "--plot", str(drawing))
    quick = ("--sample-us", "10", "--max-noise", "100", "--size", "16", "--size", "256")
    done = invoke("--cell", "cbc(sm4)", *quick, *files)
    assert done.exit_code == 0, done.output
    assert "cbc(sm4) decrypt, 128-bit key" in done.output
    assert "machine: " in done.output
    assert "cycles: " in done.output
    assert json.loads(document.read_text())["measured"][0]["algorithm"] == "cbc(sm4)"
    ET.fromstring(drawing.read_text())  # noqa: S314 - we have just written it


@pytest.mark.parametrize(
    ("arguments", "head"),
    [
        (("--slope", "--cell", "ecb(sm4)"), "nanosecs/byte"),
        (("--vs", "aes-generic", "--cell", "ecb(sm4)/sm4-generic"), "sm4-generic against aes-generic, 128-bit key"),
        (("--tcrypt", "218", "--cell", "ecb"), "tcrypt 218: MB/s"),
    ],
)
def test_bench_prints_each_layout(arguments: tuple[str, ...], head: str) -> None:
    done = invoke(*arguments, "--sample-us", "10", "--max-noise", "100", "--marks")
    assert done.exit_code == 0, done.output
    assert head in done.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--cell", "ctr(sm5)"), "nearest are"),
        (("--tcrypt", "17"), "--tcrypt 17 is not on file; allowed are 200"),
        (("--tcrypt", "218", "--size", "16"), "brings its own sizes"),
        (("--tcrypt", "218", "--cell", "aes"), "none of the chosen cells"),
        (("--slope", "--vs", "sm4-generic"), "give one of them"),
        (("--slope", "--size", "16", "--size", "64"), "needs three sizes"),
        (("--slope", "--cell", f"ecb(sm4)/sm4-generic@{QEMU}"), f"--slope prints times, but in {QEMU} instructions"),
        (("--vs", "aes-generic", "--cell", f"ecb(sm4)/sm4-generic@{QEMU}"), "--vs prints times"),
        (("--cell", "ecb(sm4)/sm4-generic@x86_64_asan"), "x86_64_asan is a lane with a sanitizer"),
        (("--cell", "x86_64_ubsan"), "x86_64_ubsan is a lane with a sanitizer"),
        (("--vs", "sm4-genric"), "nearest are sm4-generic"),
        (("--cpu", "65535"), "--cpu 65535 is not allowed"),
        (("--cell", "sm4", "--key-len", "17"), "takes a key of 17 bytes"),
    ],
)
def test_wrong_use_is_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    done = invoke(*arguments)
    assert isinstance(done.exception, BadInput)
    assert sentence in str(done.exception)
    assert "\n" not in str(done.exception)


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    place = str(tmp_path / "none" / "b.json")
    quick = ("--size", "16", "--sample-us", "10", "--max-noise", "100")
    done = invoke("--cell", "ecb(sm4)/sm4-generic", *quick, "--json", place)
    assert isinstance(done.exception, BadInput)
    assert "b.json: cannot be written" in str(done.exception)


def test_a_noisy_machine_concludes_nothing(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    def noisy(tasks: list[tuple[Path, Job]], *_: object) -> list[Measurement]:
        return [made(job, {job.subjects[0].name: {16: 10.0}}, spread=0.3) for _, job in tasks]

    monkeypatch.setattr(running, "measure_all", noisy)
    done = invoke("--cell", "ecb(sm4)/sm4-generic", "--size", "16")
    assert done.exit_code == 3
    assert "too noisy to conclude: ecb(sm4) encrypt" in done.output
    assert "95 % interval 7.000 to 13.000: noise 36.3 %, the limit is 3.0 %" in done.output


def test_instructions_that_cannot_be_counted_are_not_available(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(_program: Path, _counter: object, job: Job, _settings: Settings) -> Counts:
        return Counts(job, {}, {}, "qemu-x does not load it")

    monkeypatch.setattr(running, "count", unavailable)
    monkeypatch.setattr(running, "build_bench", lambda *_arguments: Path())
    monkeypatch.setattr(running, "counter_for", lambda _root, _lane: None)
    done = invoke("--cell", f"ecb(sm4)/sm4-generic@{QEMU}", "--size", "16")
    assert done.exit_code == 1
    assert "instructions/byte: not available: qemu-x does not load it" in done.output


def test_a_missing_library_names_its_package() -> None:
    absent = replace(LIBRARIES[0], header="no_such_header.h")
    with pytest.raises(MissingTool, match=r"libgcrypt is not installed .* install the package libgcrypt20-dev"):
        require_libraries(HOST, [absent])


def test_peers_are_measured_beside_ours() -> None:
    try:
        require_libraries(HOST)
    except MissingTool as error:
        pytest.skip(str(error))
    done = invoke("peers", "--cell", "ecb(cast5)", "--sample-us", "10", "--max-noise", "100", "--size", "256")
    assert done.exit_code == 0, done.output
    assert "nettle" in done.output
    assert "against plain C, ours takes at most" in done.output
    assert "libgcrypt 1." in done.output
