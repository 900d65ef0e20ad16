# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosslane.errors import BadInput
from crosslane.model import Algorithm, Cell
from crosslane.names import match_cell, nearest, parse_algorithm, parse_cell, select_cells

WORDS = st.text("abcxyz0189_", min_size=1, max_size=12)
DRIVERS = st.text("abcxyz0189_-", min_size=1, max_size=12)
SM4_CE = Cell(algorithm=Algorithm(mode="xts", cipher="sm4"), driver="sm4-ce", lane="aarch64_qemu_max")
SM4_GENERIC = Cell(algorithm=Algorithm(mode="ctr", cipher="sm4"), driver="sm4-generic", lane="x86_64_native")
LIBRARY = Cell(
    algorithm=Algorithm(mode="ctr", cipher="sm4"), driver="libgcrypt", lane="x86_64_native", backend="gfni_avx2"
)
CELLS = [SM4_CE, SM4_GENERIC, LIBRARY]


@given(mode=WORDS, cipher=WORDS, driver=DRIVERS, backend=st.just("") | WORDS, lane=WORDS)
def test_every_id_parses_back_to_its_cell(mode: str, cipher: str, driver: str, backend: str, lane: str) -> None:
    cell = Cell(algorithm=Algorithm(mode=mode, cipher=cipher), driver=driver, lane=lane, backend=backend)
    assert parse_cell(str(cell)) == cell
    assert parse_algorithm(str(cell.algorithm)) == cell.algorithm


def test_ids_read_as_the_design_says() -> None:
    assert str(SM4_CE) == "xts(sm4)/sm4-ce@aarch64_qemu_max"
    assert str(LIBRARY) == "ctr(sm4)/libgcrypt:gfni_avx2@x86_64_native"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ctr(sm4)",
        "ctr(sm4)/sm4-ce",
        "ctr(sm4)/sm4-ce@",
        "ctr(sm4)/sm4-ce:@lane",
        "ctr(sm4)/@lane",
        "Ctr(sm4)/sm4-ce@lane",
        "ctr(sm-4)/sm4-ce@lane",
        "ctr(sm4)/sm4-ce@la-ne",
        "ctr(sm4)/sm4-ce@lane\n",
        " ctr(sm4)/sm4-ce@lane",
        "ctr(sm4)/sm4-ce@lane@lane",
        "ctr(sm4)/sm4:a:b@lane",
        "ctr(sm٤)/sm4-ce@lane",
    ],
)
def test_a_malformed_id_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(BadInput, match=r"is no cell id; write mode\(cipher\)/driver"):
        parse_cell(text)


def test_a_malformed_algorithm_is_refused() -> None:
    with pytest.raises(BadInput, match=r"'sm4-ctr' is no algorithm; write mode\(cipher\)"):
        parse_algorithm("sm4-ctr")


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("*", [0, 1, 2]),
        ("sm4-ce", [0]),
        ("sm4", [0, 1, 2]),
        ("ctr", [1, 2]),
        ("ctr(*)", [1, 2]),
        ("*@aarch64*", [0]),
        ("*@x86_64*", [1, 2]),
        ("sm4-*@x86_64_native", [1]),
        ("ctr(sm4)/libgcrypt:*", [2]),
        ("libgcrypt", [2]),
        ("aarch64_qemu_max", [0]),
        ("xts(sm4)/sm4-ce@aarch64_qemu_max", [0]),
        ("[cx]t[rs](sm4)", [0, 1, 2]),
    ],
)
def test_patterns_fit_the_whole_id_or_a_part(pattern: str, fits: list[int]) -> None:
    assert [index for index, cell in enumerate(CELLS) if match_cell(cell, pattern)] == fits


def test_selection_keeps_the_order_and_joins_patterns() -> None:
    assert select_cells(CELLS, []) == CELLS
    assert select_cells(CELLS, ["libgcrypt", "xts"]) == [SM4_CE, LIBRARY]


@pytest.mark.parametrize(
    ("pattern", "near"), [("sm4-cee", "sm4-ce"), ("ctr(sm3)", r"ctr\(sm4\)"), ("SM4-CE", "sm4-ce")]
)
def test_a_pattern_without_cells_names_the_nearest(pattern: str, near: str) -> None:
    with pytest.raises(BadInput, match=f"matches nothing; nearest are .*{near}"):
        select_cells(CELLS, ["ctr", pattern])


def test_a_pattern_over_no_cells_says_so() -> None:
    with pytest.raises(BadInput, match="'ctr' matches nothing"):
        select_cells([], ["ctr"])


def test_nearest_is_empty_for_what_resembles_nothing() -> None:
    assert nearest("zzzz", ["sm4-ce", "ctr"]) == []
