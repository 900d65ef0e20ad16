# SPDX-License-Identifier: Apache-2.0
"""Planted faults as data: read strictly, fitted exactly, built beside what is shipped, proven and searched for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from crosslane.build import build_planted
from crosslane.checks import load_checks
from crosslane.cli import cli
from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.isa import host_arch
from crosslane.lanes import lane_named
from crosslane.lint import lint
from crosslane.model import Registry
from crosslane.plan import Counts
from crosslane.planted.battery import proven_checks, shortfalls
from crosslane.planted.cli import _say_untried
from crosslane.planted.prove import prove
from crosslane.planted.score import holds, report
from crosslane.planted.selftest import Tried, claimed, try_spot, try_spots
from crosslane.planted.spots import Spot, spots_of, unplaced
from crosslane.planted.wholes import red_checks, run_whole
from crosslane.plants import WHOLE, Plant, case_file, check_cases, load_plants, plant_lanes
from crosslane.registry import load_registry

HOST = host_arch()
NATIVE = f"{HOST}_native"
NEAR = f"{HOST}_qemu_max"
EMULATED, FAR = ("aarch64_qemu_max", "aarch64_native") if HOST == "x86_64" else ("x86_64_qemu_max", "x86_64_native")
GOOD = """# SPDX-License-Identifier: Apache-2.0
[[fault]]
name = "toy_off"
what = "one is added twice"
{check}{driver}algorithm = "ecb(toy)"
symptom = "output"
file = "ciphers/toy/generic/more.c"
replace = "{replace}"
with = "{with_}"
"""
CHECK, DRIVER = 'check = "lengths"\n', 'driver = "toy-generic"\n'


@pytest.fixture
def rooted(fake_root: Path) -> Path:
    """The fake root with a check, so that faults have one to belong to."""
    folder = fake_root / "conformance" / "checks"
    folder.mkdir(parents=True)
    (folder / "lengths.py").write_text('"""Is right at every length."""\nCLASSES = ("tail",)\n')
    return fake_root


def text(*, check: str = "", driver: str = DRIVER, replace_: str = "return", with_: str = "return 0 *") -> str:
    return GOOD.format(check=check, driver=driver, replace=replace_, with_=with_)


def beside_check(root: Path, content: str) -> Path:
    path = root / "conformance" / "checks" / "lengths.faults.toml"
    path.write_text(content)
    return root


def beside_implementation(root: Path, content: str) -> Path:
    (root / "impls" / "ciphers" / "toy" / "generic" / "faults.toml").write_text(content)
    return root


def test_a_fault_beside_a_check_and_one_beside_an_implementation(rooted: Path) -> None:
    beside_check(rooted, text())
    beside_implementation(rooted, text(check=CHECK, driver="").replace("toy_off", "toy_out"))
    plants = load_plants(load_registry(rooted))
    assert [(item.name, item.check, item.driver) for item in plants] == [
        ("toy_off", "lengths", "toy-generic"),
        ("toy_out", "lengths", "toy-generic"),
    ]
    first = plants[0]
    assert first.changed == first.original.replace(b"return", b"return 0 *")
    assert first.symbol == "planted_toy_off"
    assert not first.in_mode
    assert [problem for problem in lint(rooted) if "faults" in str(problem)] == []


def test_a_fault_in_a_shared_header_is_the_implementations_where_that_includes_it(rooted: Path) -> None:
    header = rooted / "impls" / "modes" / "shared.h"
    header.write_text("/* SPDX-License-Identifier: Apache-2.0 */\nstatic inline int shared(void) { return 1; }\n")
    beside_check(rooted, text().replace("ciphers/toy/generic/more.c", "modes/shared.h"))
    assert load_plants(load_registry(rooted))[0].in_mode
    source, between = rooted / "impls" / "ciphers" / "toy" / "generic" / "more.c", header.with_name("between.h")
    between.write_text('/* SPDX-License-Identifier: Apache-2.0 */\n#include "shared.h"\n')
    source.write_text('#include "between.h"\n' + source.read_text())
    assert not load_plants(load_registry(rooted))[0].in_mode


def with_shared_header(root: Path) -> Path:
    """A header of the cipher that toy-generic and toy-avx2-x86_64 include, and toy-ce does not."""
    toy = root / "impls" / "ciphers" / "toy"
    spdx = "/* SPDX-License-Identifier: Apache-2.0 */\n"
    (toy / "shared.h").write_text(f"{spdx}static inline int shared(void) {{ return 1; }}\n")
    for folder in ("generic", "x86_64_avx2"):
        source = toy / folder / "more.c"
        source.write_text('#include "shared.h"\n' + source.read_text())
    return root


def also(*drivers: str, more: str = "") -> str:
    listed = ", ".join(f'"{driver}"' for driver in drivers)
    return text().replace("generic/more.c", "shared.h") + f"also = [{listed}]\n{more}"


def test_an_edit_is_planted_in_each_driver_that_includes_its_file(rooted: Path) -> None:
    why = 'why = "no emulator has it"\n'
    beside_check(with_shared_header(rooted), also("toy-avx2-x86_64@x86_64_native", more=why))
    registry = load_registry(rooted)
    first, second = load_plants(registry)
    assert (first.name, first.driver, first.lanes) == ("toy_off", "toy-generic", ())
    assert second == replace(
        first, name="toy_off_avx2_x86_64", driver="toy-avx2-x86_64", lanes=("x86_64_native",), in_mode=False
    )
    with pytest.raises(BadInput, match="--fault toy_off --store"):
        check_cases(registry, [first, second])
    for plant in (first, second):
        case_file(rooted, plant.name).parent.mkdir(parents=True, exist_ok=True)
        case_file(rooted, plant.name).write_text("{}")
    check_cases(registry, [first, second])
    beside_check(rooted, also("toy-avx2-x86_64"))
    _, second = load_plants(registry)
    lanes = {lane.name for lane in plant_lanes(registry, second, registry.lanes)}
    assert {"x86_64_native", "x86_64_qemu_max"} <= lanes
    assert not any("aarch64" in name for name in lanes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (also("toy-avx2-x86_63"), "toy_off: also: there is no .*toy-avx2-x86_64"),
        (also("toy-ce"), "toy_off: also: toy-ce does not include shared.h: remove it"),
        (also("toy-generic"), "toy_off: also: toy-generic is the driver itself: remove it"),
        (also("toy-avx2-x86_64", "toy-avx2-x86_64"), "names something twice"),
        (also("toy-avx2-x86_64@x86_64_native"), "lanes and why go together"),
        (also("toy-avx2-x86_64", more='why = "a reason"\n'), "lanes and why go together"),
        (
            also("toy-avx2-x86_64@aarch64_qemu_max", more='why = "a reason"\n'),
            "also: there is no lane 'aarch64_qemu_max'.*of those that run toy-avx2-x86_64",
        ),
    ],
)
def test_further_drivers_that_are_wrong_are_refused(rooted: Path, content: str, message: str) -> None:
    beside_check(with_shared_header(rooted), content)
    with pytest.raises(BadInput, match=message):
        load_plants(load_registry(rooted))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (text(replace_="no such text"), "found 0 times in .*more.c, and must be found exactly once: adapt the fault"),
        (text(replace_="e"), "found [0-9]+ times in"),
        (text(check=CHECK.replace("lengths", "sizes")), "check is 'sizes', but the file lies where it is 'lengths'"),
        (text(driver=""), "the key 'driver' is missing: add it"),
        (text(driver='driver = "toy-genric"\n'), "toy-generic"),
        (text().replace("ecb(toy)", "ecb(sm4)"), "algorithm is ecb.sm4., but toy-generic computes toy"),
        (text().replace("ecb(toy)", "ebc(toy)"), "ecb"),
        (text().replace('"output"', '"wrong"'), "symptom has 'wrong'; allowed are output, iv"),
        (text().replace("more.c", "gone.c"), "file is 'gone.c', which is none of the subject"),
        (text().replace("ciphers/toy/generic/more.c", "../pyproject.toml"), "must be of the form"),
        (text().replace("toy_off", "ecb"), "the name 'ecb' is that of a mode"),
        (text() + "large = true\n", 'toy_off: large is true, and no case is of more than 4 GiB: add symptom = "cell"'),
        (text() + 'large = "yes"\n', "large .*true or false"),
        (text() + 'lanes = ["x86_64_native"]\n', "lanes and why go together"),
        (
            text() + 'lanes = ["x86_64_natife"]\nwhy = "a reason"\n',
            "there is no lane 'x86_64_natife'; nearest are x86_64_native",
        ),
        ("fault = [3]\n", "allowed are tables"),
        (text() + "colour = 3\n", "unknown key 'colour'"),
        (text().replace("one is added twice", "One is added twice."), "what has"),
        ("fault = 3\n", "has 'fault'; allowed are tables"),
        (text() + text().partition("\n")[2], "the name 'toy_off' is that of the plant in"),
    ],
)
def test_a_fault_that_is_wrong_is_refused(rooted: Path, content: str, message: str) -> None:
    beside_check(rooted, content)
    with pytest.raises(BadInput, match=message):
        load_plants(load_registry(rooted))
    assert any("faults.toml" in str(problem) for problem in lint(rooted))


def test_lint_names_every_plant_that_does_not_fit_and_every_case(rooted: Path) -> None:
    rest = text().partition("\n")[2]
    tables = [
        text(replace_="no such text"),
        rest.replace("toy_off", "toy_odd").replace('"return"', '"e"'),
        rest.replace("toy_off", "toy_right"),
        rest.replace("toy_off", "toy_out").replace("ecb(toy)", "ebc(toy)"),
    ]
    beside_check(rooted, "".join(tables))
    beside_implementation(rooted, "# SPDX-License-Identifier: Apache-2.0\nfault = 3\n")
    cases = case_file(rooted, "toy_off")
    cases.parent.mkdir(parents=True)
    for name in ("toy_off", "toy_odd_avx2_x86_64", "toy_gone"):
        cases.with_stem(name).write_text("{}")
    found = [str(problem) for problem in lint(rooted) if "faults.toml" in str(problem) or "planted" in str(problem)]
    wanted = [
        "lengths.faults.toml: toy_odd: what it replaces is found",
        "lengths.faults.toml: toy_off: what it replaces is found 0 times",
        "lengths.faults.toml: toy_out: ",
        "faults.toml: has 'fault'",
        "toy_right.json: the case of the planted fault is missing",
    ]
    assert [sum(part in line for line in found) for part in wanted] == [1] * len(wanted), found
    assert len(found) == len(wanted)  # a file that cannot be read may hold the fault of any case
    (rooted / "impls" / "ciphers" / "toy" / "generic" / "faults.toml").unlink()
    found = [str(problem) for problem in lint(rooted) if "remove the file" in str(problem)]
    assert len(found) == 1
    assert "toy_gone.json" in found[0]


def test_a_control_whose_check_judges_whole_cells_alone_must_be_judged_so(rooted: Path) -> None:
    whole = text().replace('"output"', f'"{WHOLE}"')
    control = whole.partition("\n")[2].replace("[[fault]]", "[[control]]").replace("toy_off", "toy_on")
    bare = control.replace(f'symptom = "{WHOLE}"\n', "")
    registry = load_registry(beside_check(rooted, whole + bare))
    with pytest.raises(BadInput, match=r'toy_on: is a control of lengths, .*: add symptom = "cell"'):
        load_plants(registry)
    beside_check(rooted, whole + control)
    assert [plant.control for plant in load_plants(registry)] == [False, True]
    beside_check(rooted, whole + bare + text().partition("\n")[2].replace("toy_off", "toy_out"))
    assert [plant.symptom for plant in load_plants(registry)] == [WHOLE, "output", ""]


def test_faults_of_a_check_that_is_gone_are_missed(rooted: Path) -> None:
    beside_check(rooted, text())
    (rooted / "conformance" / "checks" / "lengths.py").rename(rooted / "conformance" / "checks" / "sizes.py")
    with pytest.raises(BadInput, match="there is no check 'lengths' beside it"):
        load_plants(load_registry(rooted))


def test_only_a_plants_own_unit_is_compiled_anew(rooted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    beside_check(rooted, text())
    registry = load_registry(rooted)
    (plant,) = load_plants(registry)
    lane = lane_named(registry.lanes, NATIVE)
    first: list[str] = []
    build_planted(registry, [(lane, [plant])], progress=first.append)
    assert any("planted_toy_off" in line for line in first)
    second: list[str] = []
    other = replace(plant, changed=plant.changed + b"/* more */\n")
    build_planted(registry, [(lane, [other])], progress=second.append)
    assert [line.split()[1] for line in second] == ["planted_toy_off", "shim"]


def test_a_plant_that_does_not_compile_shows_the_compilers_words(rooted: Path) -> None:
    beside_check(rooted, text(with_="returm"))
    registry = load_registry(rooted)
    with pytest.raises(BadInput, match="does not compile; correct what the compiler says"):
        build_planted(registry, [(lane_named(registry.lanes, NATIVE), load_plants(registry))])


def test_lanes_of_a_plant(rooted: Path) -> None:
    beside_check(rooted, text() + f'lanes = ["{NATIVE}"]\nwhy = "an emulator does not trap it"\n')
    registry = load_registry(rooted)
    (plant,) = load_plants(registry)
    assert [lane.name for lane in plant_lanes(registry, plant, registry.lanes)] == [NATIVE]
    names = [lane.name for lane in plant_lanes(registry, replace(plant, lanes=()), registry.lanes)]
    assert {NATIVE, "x86_64_qemu_max", "aarch64_qemu_max"} <= set(names)
    assert not {name for name in names if "asan" in name or "s390x" in name}


def native_spots(*names: str) -> list[Spot]:
    """Plants of the repository, natively."""
    registry = load_registry(data_root())
    plants = [plant for plant in load_plants(registry) if plant.name in names]
    return spots_of(registry, plants, seed="a test", lanes=[lane_named(registry.lanes, NATIVE)])


@pytest.fixture(scope="module")
def spots() -> list[Spot]:
    """A fault in a mode and a control."""
    return native_spots("ctr_carry_lost", "ctr_prefetch")


def with_plant(spot: Spot, **changes: object) -> Spot:
    plant: Plant = replace(spot.plant, **changes)  # type: ignore[arg-type]
    return replace(spot, plant=plant)


def test_a_proof_holds_and_says_why_it_does_not(spots: list[Spot], tmp_path: Path) -> None:
    fault, control = spots
    root, checks = data_root(), load_checks(data_root())
    assert [proof.holds for proof in prove(spots, checks, root)] == [True, True]
    harmless = replace(fault, subject=control.subject)
    (proof,) = prove([harmless], checks, root)
    assert (proof.holds, proof.text) == (False, "its case agrees: the fault is not caught")
    (proof,) = prove([with_plant(fault, symptom="canary")], checks, root)
    assert proof.text == "its case shows iv, expected canary"
    (proof,) = prove([with_plant(fault, check="abi")], checks, root)
    assert not proof.holds
    assert proof.text.startswith("the check abi does not claim its case (iv, counter:64")
    assert proof.text.endswith(", but agreement, counter_wrap, iv_writeback")
    (proof,) = prove([replace(control, subject=fault.subject)], checks, root)
    assert proof.text.startswith("a harmless change departs: ")
    with pytest.raises(BadInput, match=r"write it with `crosslane selftest --fault ctr_carry_lost --store`"):
        prove([fault], checks, tmp_path)
    place = case_file(tmp_path, fault.plant.name)
    place.parent.mkdir(parents=True)
    place.write_text("{}\n")
    with pytest.raises(BadInput, match=r"ctr_carry_lost\.json"):
        prove([fault], checks, tmp_path)


def test_random_cases_find_a_fault_and_leave_a_control_green(spots: list[Spot]) -> None:
    checks = load_checks(data_root())
    told: list[str] = []
    counts = Counts(16384, 1, 1)
    fault, control = try_spots(spots, checks, counts, num_workers=2, tell=lambda item: told.append(item.name))
    assert told == ["ctr_carry_lost", "ctr_prefetch"]
    assert fault.holds
    assert fault.symptom in ("iv", "output")
    assert "counter_wrap" in fault.checks
    assert 0 < fault.comparisons < 16384
    assert (control.holds, control.caught, control.comparisons) == (True, False, 16384)
    few = [replace(spot, lane=lane_named(load_registry(data_root()).lanes, NEAR)) for spot in spots]
    quiet = try_spots(few, checks, Counts(16384, 16384, 8), num_workers=2, tell=lambda item: told.append(item.name))
    assert [(item.full, item.comparisons <= 8) for item in quiet] == [(False, True), (False, True)]


@pytest.mark.parametrize(
    ("name", "shows"),
    [("cts_whole_swapped", "(output, whole)"), ("key_pad_uncleared", "(output, dirty_state)")],
)
def test_a_class_that_must_be_asked_for_is_part_of_the_proof(name: str, shows: str) -> None:
    (fault,) = native_spots(name)
    root, checks = data_root(), load_checks(data_root())
    (proof,) = prove([fault], checks, root)
    assert proof.holds
    (proof,) = prove([with_plant(fault, check="tamper")], checks, root)
    assert f"the check tamper does not claim its case {shows}, but agreement, " in proof.text
    blind = [check for check in checks if check.name != fault.plant.check]
    (proof,) = prove([fault], blind, root)
    assert not proof.holds


def test_a_fault_caught_by_another_check_or_not_at_all_does_not_hold(spots: list[Spot]) -> None:
    checks = load_checks(data_root())
    assert claimed(try_spot(spots[0], 16384), checks).holds
    assert not claimed(try_spot(with_plant(spots[0], check="abi"), 16384), checks).holds
    assert not claimed(try_spot(replace(spots[0], subject=spots[1].subject), 4096), checks).holds
    assert not claimed(try_spot(replace(spots[1], subject=spots[0].subject), 16384), checks).holds


def test_a_fault_without_its_case_and_a_case_without_its_fault_are_missed(rooted: Path) -> None:
    beside_check(rooted, text())
    registry = load_registry(rooted)
    plants = load_plants(registry)
    with pytest.raises(BadInput, match=r"toy_off\.json: the case of the planted fault is missing: write it with"):
        check_cases(registry, plants)
    path = case_file(rooted, "toy_off")
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    check_cases(registry, plants)
    path.with_name("toy_on.json").write_text("{}")
    with pytest.raises(BadInput, match=r"toy_on\.json: there is no planted fault of that name"):
        check_cases(registry, plants)


def test_each_check_has_its_faults_and_a_control_on_both_architectures() -> None:
    registry = load_registry(data_root())
    proven = proven_checks(registry, load_plants(registry))
    assert [item.check for item in proven] == [check.name for check in load_checks(data_root())]
    assert shortfalls(proven) == []


MACS = ("cmac", "xcbc", "cbcmac", "ccm")
"""They share one fused function."""


def fused_shortfalls(registry: Registry, plants: Iterable[Plant]) -> list[str]:
    """What each implementation lacks of two faults and a control in its own code, for each mode that it fuses.

    One that fuses nothing has as many over all modes.
    """
    lacking: list[str] = []
    found = Counter((item.driver, item.algorithm.mode, item.control) for item in plants if not item.in_mode)
    for item in registry.implementations:
        groups: list[tuple[str, tuple[str, ...]]]
        groups = [(mode, MACS if mode in MACS else (mode,)) for mode in item.fused]
        groups = groups or [("any mode", tuple(mode.name for mode in registry.modes))]
        for name, group in groups if item.origin == "own" else ():
            faults, controls = (sum(found[item.driver, mode, kind] for mode in group) for kind in (False, True))
            if faults < 2 or controls < 1:
                lacking.append(f"{item.driver}, {name}: {faults} faults, {controls} controls")
    return lacking


def test_each_fused_mode_has_its_faults_and_a_control() -> None:
    registry = load_registry(data_root())
    plants = load_plants(registry)
    assert fused_shortfalls(registry, plants) == []
    missing = ("aesni_ofb_iv_keeps_key_vaes_avx2", "smcc_pointer_first")
    assert fused_shortfalls(registry, [item for item in plants if item.name not in missing]) == [
        "aes-vaes-avx2, ofb: 1 faults, 1 controls",
        "sm4-ce-cipher, any mode: 2 faults, 0 controls",
    ]


def test_a_check_with_too_little_to_prove_it_is_named(rooted: Path) -> None:
    beside_check(rooted, text())
    registry = load_registry(rooted)
    proven = proven_checks(registry, load_plants(registry))
    assert [(item.check, item.faults["x86_64"], item.controls["aarch64"]) for item in proven] == [
        ("lengths", ("toy_off",), ())
    ]
    assert shortfalls(proven) == [
        f"lengths has {number} {kind} in lanes of {arch} and needs {least}: add to "
        "conformance/checks/lengths.faults.toml"
        for arch in ("x86_64", "aarch64")
        for number, kind, least in ((1, "planted faults", 2), (0, "controls", 1))
    ]


def test_a_plant_that_no_lane_of_this_host_takes_is_named(rooted: Path) -> None:
    beside_check(rooted, text())
    registry = load_registry(rooted)
    (plant,) = load_plants(registry)
    other = replace(plant, name="toy_far", lanes=(FAR,))
    assert unplaced(registry, [plant, other]) == (f"toy_far ({FAR})",)


def test_what_shows_beyond_4_gib_is_tried_natively_and_on_request() -> None:
    registry = load_registry(data_root())
    large = [plant for plant in load_plants(registry) if plant.large]
    assert {plant.check for plant in large if not plant.control} == {"large"}
    lanes = {lane.name for plant in large for lane in plant_lanes(registry, plant, registry.lanes)}
    assert lanes == {"x86_64_native", "aarch64_native"}
    assert not {lane.name for lane in plant_lanes(registry, large[0], registry.lanes) if lane.runner == "qemu"}
    runner = CliRunner()
    done = runner.invoke(cli, ["selftest", "--fault", large[0].name])
    assert isinstance(done.exception, BadInput)
    assert str(done.exception) == f"{large[0].name} shows in a message of more than 4 GiB alone: add --large"
    done = runner.invoke(cli, ["selftest", "--large", "--fault", "ctr_carry_lost"])
    assert str(done.exception) == "ctr_carry_lost shows in shorter messages: leave --large out"


def test_what_is_left_to_a_search_of_large_messages_is_named(
    spots: list[Spot], capsys: pytest.CaptureFixture[str]
) -> None:
    registry = load_registry(data_root())
    large = [plant for plant in load_plants(registry) if plant.large]
    _say_untried(registry, [spots[0].plant], large)
    said = capsys.readouterr().out
    assert said == f"left to --large, {len(large)}: {', '.join(plant.name for plant in large)}\n"


@pytest.mark.parametrize("lane", [NATIVE, EMULATED, NEAR])
def test_faults_that_a_trial_alone_shows_are_proven_by_it(lane: str) -> None:
    names = ("ctr_keystream_static", "ctr_counts_calls", "ecb_blocks_16_bits", "ecb_blocks_in_halves")
    registry = load_registry(data_root())
    plants = [plant for plant in load_plants(registry) if plant.name in names]
    spots = spots_of(registry, plants, seed="a test", lanes=[lane_named(registry.lanes, lane)])
    found = {spot.plant.name: run_whole(spot, 64) for spot in spots}
    trials = {name: {item.case_id.partition("-")[0] for item in cell.findings} for name, cell in found.items()}
    assert trials == {
        "ctr_keystream_static": {"threads"}, "ctr_counts_calls": set(), "ecb_blocks_16_bits": {"large"},
        "ecb_blocks_in_halves": set(),
    }  # fmt: skip
    assert [proof.text for proof in prove(spots, load_checks(data_root()), data_root())] == ["", "", "", ""]


def test_the_score_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "score.json"
    arguments = [
        "selftest",
        "--seed",
        "a test",
        "--lane",
        NATIVE,
        "--fault",
        "ctr_carry_lost",
        "--fault",
        "ctr_prefetch",
    ]
    done = CliRunner().invoke(cli, [*arguments, "--count", "2048", "--json", str(path)])
    assert done.exit_code == 0, done.output
    table = json.loads(path.read_text())
    assert (table["seed"], table["holds"], table["num_faults"], table["num_caught"]) == ("a test", True, 1, 1)
    assert (table["num_cells"], table["num_cells_caught"], table["num_controls"], table["num_green"]) == (1, 1, 1, 1)
    assert table["median_s"] == table["slowest_s"] > 0
    assert [item["name"] for item in table["tried"]] == ["ctr_carry_lost", "ctr_prefetch"]
    assert table["lines"][-1] == done.output.splitlines()[-1]


def test_the_list_says_what_proves_each_check() -> None:
    done = CliRunner().invoke(cli, ["selftest", "--list"])
    assert done.exit_code == 0, done.output
    lines = {line.split()[0]: line.split()[1:] for line in done.output.splitlines()}
    assert lines["check"] == ["faults", "x86_64", "faults", "aarch64", "controls", "x86_64", "controls", "aarch64"]
    assert all(int(number) >= least for number, least in zip(lines["abi"], (9, 4, 3, 2), strict=True))


def test_what_compilers_alone_show_is_right_as_most_users_build() -> None:
    registry = load_registry(data_root())
    lanes = [lane_named(registry.lanes, name) for name in (NATIVE, EMULATED)]
    own = [plant for plant in load_plants(registry) if plant.check == "compilers" and not plant.control]
    arches = {plant.name: {lane_named(registry.lanes, name).arch for name in plant.lanes} for plant in own}
    plants = [
        replace(plant, lanes=tuple(lane.name for lane in lanes if lane.arch in arches[plant.name])) for plant in own
    ]
    spots = spots_of(registry, plants, seed="compilers", lanes=lanes)
    assert len(spots) == sum(map(len, arches.values()))
    assert {spot.cell: red_checks(load_checks(data_root()), run_whole(spot, 640)) for spot in spots} == {
        spot.cell: () for spot in spots
    }


def test_a_control_of_a_whole_cell_must_leave_its_check_and_every_answer_alone() -> None:
    registry, checks = load_registry(data_root()), load_checks(data_root())
    names = ("sm4_pairs_never_taken", "sm4_pair_marked_twice", "sm4_last_pair")
    plants = {plant.name: plant for plant in load_plants(registry) if plant.name in names}
    as_control = [replace(plants[name], control=True, symptom=WHOLE, check="paths") for name in names]
    spots = spots_of(registry, as_control, seed="a test", lanes=[lane_named(registry.lanes, NATIVE)])
    held = {proof.name: (proof.holds, proof.text) for proof in prove(spots, checks, data_root())}
    assert held["sm4_pair_marked_twice"] == (True, "")
    assert held["sm4_pairs_never_taken"] == (False, "a harmless change fails paths")
    assert not held["sm4_last_pair"][0]
    assert "agreement" in held["sm4_last_pair"][1]


def test_an_emulated_lane_is_shrunk_for_where_the_host_is_faster() -> None:
    registry = load_registry(data_root())
    plants = [plant for plant in load_plants(registry) if plant.name == "ctr_carry_lost"]
    lanes = [lane_named(registry.lanes, name) for name in (NATIVE, NEAR, EMULATED)]
    native, near, far = spots_of(registry, plants, seed="a test", lanes=lanes)
    assert (native.near, far.near) == (None, None)
    assert near.near == native.subject
    found = claimed(try_spot(near, 16384), load_checks(data_root()))
    assert found.holds
    assert found.case is not None
    elsewhere = replace(near, near=replace(native.subject, mode="ctr"))
    assert claimed(try_spot(elsewhere, 16384), load_checks(data_root())).holds


def tried(lane: str, *, caught: bool, full: bool, control: bool = False, took_s: float = 1.0) -> Tried:
    return Tried(
        name="toy_on" if control else "toy_off", cell=f"ecb(toy)/toy-generic@{lane}", full=full, control=control,
        wanted="lengths", caught=caught, symptom="output", fault_class="", checks=("lengths",) if caught else (),
        comparisons=640, took_s=took_s, shrink_s=0.0, case=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("caught", "good", "lines"),
    [
        ({"full": True, "few": True}, True, 1),
        ({"full": True, "few": False}, True, 2),
        ({"few": True, "fewer": False}, True, 2),
        ({"full": False, "few": True}, False, 2),
        ({"few": False, "fewer": False}, False, 2),
    ],
)
def test_a_fault_must_show_where_the_grids_are_full_and_somewhere(
    caught: dict[str, bool], good: bool, lines: int
) -> None:
    items = [tried(lane, caught=seen, full=lane == "full") for lane, seen in caught.items()]
    said = list(report(items, whole=True))
    assert (holds(items, whole=True), len(said)) == (good, lines)
    missed = ", ".join(f"ecb(toy)/toy-generic@{lane}" for lane, seen in caught.items() if not seen)
    assert not missed or said[0] == f"toy_off: caught in {sum(caught.values())} of 2 lanes, not in {missed}"
    assert said[-1].startswith(f"{int(good)} of 1 planted faults were caught by the check that is meant to, in ")


def test_a_control_must_be_green_in_every_lane() -> None:
    green, red = (tried("few", caught=caught, full=False, control=True) for caught in (False, True))
    assert holds([green, green], whole=True)
    assert not holds([green, red], whole=True)
    assert list(report([green, red], whole=True))[-1].endswith("; 0 of 1 controls stayed green")


def test_a_whole_run_whose_faults_are_caught_late_is_not_good() -> None:
    times = (0.1, 2.0, 9.0)
    items = [tried(f"full_{took}", caught=True, full=True, took_s=took) for took in times]
    assert holds(items, whole=False)
    assert not holds(items, whole=True)
    assert list(report(items, whole=True))[-1] == (
        "the median until a fault is caught is 2.00 s, and must be less than 2 s"
    )
    assert holds(items[:2], whole=True)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [([], 1), (["--lane", NATIVE], 1), (["--count", "9"], 0), (["--fault", "ctr_carry_lost"], 0)],
)
def test_a_search_in_one_lane_must_be_soon_enough_too(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], status: int
) -> None:
    """The gate searches natively alone."""
    slow = [tried(NATIVE, caught=True, full=True, took_s=2.5)]
    monkeypatch.setattr("crosslane.planted.spots.spots_of", lambda *_args, **_options: [None])
    monkeypatch.setattr("crosslane.planted.spots.unplaced", lambda *_args, **_options: {})
    monkeypatch.setattr("crosslane.planted.selftest.try_spots", lambda *_args, **_options: slow)
    done = CliRunner().invoke(cli, ["selftest", "--seed", "a test", *arguments])
    assert done.exit_code == status, done.output
    assert ("the median until a fault is caught is 2.50 s" in done.output) == bool(status)
