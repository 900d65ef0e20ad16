# SPDX-License-Identifier: Apache-2.0
"""Accepted findings: one by its id, many by a pattern; read strictly, used or an error, due on a day."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from crosslane.checks import load_checks
from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.findings.deviations import (
    Deviation,
    Ran,
    add_deviation,
    check_dates,
    default_file,
    load_deviations,
    unused,
)
from crosslane.findings.keep import KeptRun
from crosslane.findings.record import Key, Record, State
from crosslane.findings.run import excused, unused_text
from crosslane.records import CellResult, Finding
from crosslane.registry import load_registry

KEY = Key("toy-avx", "ctr(toy)", "output", "counter:64")
RECORD = Record(
    key=KEY, state="accepted", verdict="crash", text="", cells=(), judge="generic", shrunk=True, rate=1.0, from_case="",
    impls=(), first_revision="", last_revision="", fixed_revision="", case_sha256="", repro_sha256="",
)  # fmt: skip


def deviation(**changes: Any) -> Deviation:
    facts: dict[str, Any] = {
        "key": KEY, "reason": "upstream knows and will not change it", "link": "https://example.org/1",
        "review": dt.date(2030, 1, 31),
    }  # fmt: skip
    return Deviation(**{**facts, **changes})


def test_deviations_are_kept_checked_and_must_be_used(tmp_path: Path) -> None:
    path = tmp_path / "deviations.toml"
    assert load_deviations(path) == ()
    add_deviation(path, deviation())
    add_deviation(path, deviation(reason="another good reason"))
    (only,) = load_deviations(path)
    assert only == deviation(reason="another good reason")
    check_dates([only], path, dt.date(2030, 1, 31))
    with pytest.raises(BadInput, match="was to be reviewed by 2030-01-31"):
        check_dates([only], path, dt.date(2030, 2, 1))
    cell, other = Ran("toy-avx", "ctr(toy)", "x86_64_native"), Ran("other", "ctr(toy)", "x86_64_native")
    assert unused([only], [cell], [(KEY, cell)]) == []
    assert unused([only], [cell], []) == [(only, "ctr(toy)")]
    assert unused([only], [other], []) == []


def test_a_deviation_may_be_about_some_versions_of_a_library(tmp_path: Path) -> None:
    path = tmp_path / "deviations.toml"
    add_deviation(path, deviation(versions=("2.28.*", "3.6.6")))
    (only,) = load_deviations(path)
    assert only.versions == ("2.28.*", "3.6.6")
    assert [only.is_in_force(version) for version in ("2.28.3", "3.6.6", "3.6.7", "")] == [True, True, False, False]
    assert unused([only], [Ran("toy-avx", "ctr(toy)", "x86_64_native", "2.28.8")], []) == [(only, "ctr(toy)")]
    assert unused([only], [Ran("toy-avx", "ctr(toy)", "x86_64_native", "3.6.7")], []) == []
    assert [deviation().is_in_force(version) for version in ("", "1.0")] == [True, True]
    path.write_text(path.read_text().replace("2.28.*", "2.28/*"))
    with pytest.raises(BadInput, match=r"versions has '2\.28/\*'"):
        load_deviations(path)


PATTERN = Deviation(
    Key("lib", "gcm(*)", "output", "*iv_len:*"), "carries into the bytes before", "https://example.org/2",
    dt.date(2030, 1, 31), versions=("8.7.*",), by_pattern=True, lanes=("x86_64_*",),
)  # fmt: skip
SHOWN = Key("lib", "gcm(aes)", "output", "tag+iv+iv_len:16")
AES = Ran("lib", "gcm(aes)", "x86_64_native", "8.7.0")


@pytest.mark.parametrize(
    ("key", "cell", "accepted"),
    [
        (SHOWN, AES, True),
        (replace(SHOWN, algorithm="gcm(sm4)"), replace(AES, algorithm="gcm(sm4)"), True),
        (replace(SHOWN, fault_class="tag+iv"), AES, False),
        (replace(SHOWN, symptom="iv"), AES, False),
        (SHOWN, replace(AES, version="8.8.0"), False),
        (SHOWN, replace(AES, version=""), False),
        (SHOWN, replace(AES, lane="aarch64_trixie"), False),
        (SHOWN, replace(AES, algorithm="ccm(aes)"), False),
        (SHOWN, replace(AES, implementation="lib:plain"), False),
    ],
)
def test_a_deviation_by_pattern_accepts_what_fits_all_of_it(key: Key, cell: Ran, accepted: bool) -> None:
    assert PATTERN.accepts(key, cell) is accepted


def test_a_deviation_by_pattern_is_kept_and_each_algorithm_must_show_it(tmp_path: Path) -> None:
    path = tmp_path / "deviations.toml"
    for item in (PATTERN, deviation(), PATTERN):
        add_deviation(path, item)
    assert load_deviations(path) == (deviation(), PATTERN)
    sm4, elsewhere = replace(AES, algorithm="gcm(sm4)"), replace(AES, lane="aarch64_trixie")
    assert unused([PATTERN], [AES], [(SHOWN, AES)]) == []
    assert unused([PATTERN], [AES, sm4], [(SHOWN, AES)]) == [(PATTERN, "gcm(sm4)")]
    assert unused([PATTERN], [elsewhere], []) == []
    with pytest.raises(
        BadInput, match=r"the deviation of gcm\(\*\) \(lib, gcm\(\*\)\) was to be reviewed by 2030-01-31"
    ):
        check_dates([PATTERN], path, dt.date(2030, 2, 1))
    assert unused_text(path, PATTERN, "gcm(sm4)") == (
        "deviations.toml: the deviation of gcm(*) (lib, gcm(sm4), output, *iv_len:*) is unused: this run did not see "
        "its finding; remove it, or let it fit gcm(sm4) no more"
    )


def test_a_deviation_of_a_backend_must_be_used() -> None:
    backend = replace(PATTERN, key=replace(PATTERN.key, implementation="lib:*"))
    plain, key = replace(AES, implementation="lib:plain"), replace(SHOWN, implementation="lib:plain")
    assert unused([backend], [AES], []) == []
    assert unused([backend], [plain], []) == [(backend, "gcm(aes)")]
    assert unused([backend], [plain], [(key, plain)]) == []
    by_id = Deviation(key, "as upstream knows", "https://example.org/3", dt.date(2030, 1, 31))
    assert unused([by_id], [plain, AES], []) == [(by_id, "gcm(aes)")]
    assert unused([by_id], [AES], []) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('versions = ["8.7.*"]\n', "", "deviation 1: the key 'versions' is missing"),
        ('class = "*iv_len:*"\n', "", "deviation 1: the key 'class' is missing"),
        ('symptom = "output"', 'symptom = "*"', r"symptom has '\*'; it must be of the form"),
        ('provider = "lib"', 'provider = "*"', r"provider has '\*'; it must be of the form"),
        ('"gcm(*)"', '"gcm"', "algorithm has 'gcm'; it must be of the form"),
        ('provider = "lib"', 'provider = "lib"\nfinding = "0123456789ab"', "unknown key 'finding'"),
        ("2030-01-31", "2030-13-31", "'2030-13-31' is no date"),
    ],
)
def test_a_deviation_by_pattern_is_read_strictly(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "deviations.toml"
    add_deviation(path, PATTERN)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(BadInput, match=message):
        load_deviations(path)


def test_a_pattern_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deviations.toml"
    add_deviation(path, PATTERN)
    text = path.read_text()
    path.write_text(text + text[text.index("[[deviation]]") :])
    with pytest.raises(BadInput, match="deviation 2 is there twice; remove one"):
        load_deviations(path)


def test_the_suite_s_own_patterns_are_about_something() -> None:
    registry = load_registry(data_root())
    promised = [(item.name, f"{one.mode}({one.cipher})") for item in registry.providers for one in item.domains]
    for item in load_deviations(default_file(data_root())):
        if item.by_pattern:
            provider = item.key.implementation.partition(":")[0]
            assert any(name == provider and fnmatchcase(algorithm, item.key.algorithm) for name, algorithm in promised)


def test_a_deviation_of_another_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deviations.toml"
    add_deviation(path, deviation())
    path.write_text(path.read_text().replace("counter:64", "counter:32"))
    with pytest.raises(BadInput, match="its four key fields make"):
        load_deviations(path)


@pytest.mark.parametrize(
    ("state", "skipped", "passed"),
    [("accepted", 0, False), ("accepted", 900, True), ("open", 900, False)],
)
def test_what_an_accepted_end_of_processes_left_undone_is_not_missed(
    make_cell: Callable[..., CellResult], state: State, skipped: int, passed: bool
) -> None:
    """Of a cell without such an end fewer comparisons than promised are red whatever is accepted."""
    departed = Finding("0123456789abcdef-0-1", "crash", "guard_write", "alone", 1, "writes where it may not")
    cell = make_cell(comparisons=100, wanted=1000, skipped=skipped, num_departed=1, findings=(departed,))
    record = replace(RECORD, state=state, cells=(cell.cell,))
    seen = excused(cell, KeptRun(((cell.cell, record),), ()), load_checks(data_root()))
    assert [item.passed for item in seen.judgements if item.check == "agreement"] == [passed]
