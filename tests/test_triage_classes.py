# SPDX-License-Identifier: Apache-2.0
"""The classifier on made observations, the patterns of wrong blocks, the smallest set of features, the picture."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest

from crosslane.bug_classes import BUG_CLASSES
from crosslane.data import data_root
from crosslane.plants import load_plants
from crosslane.registry import load_registry
from crosslane.triage.blocks import Kind, pattern, ranges
from crosslane.triage.classifier import name
from crosslane.triage.emulators import single_step_option
from crosslane.triage.features import smallest
from crosslane.triage.observations import Answer, Facts, Observations, Watched
from crosslane.triage.outputs import Differing, hex_lines
from crosslane.triage.picture import Grid, grid_of, svg
from crosslane.triage.report import plain_text

BS = 16
ECB = Facts("ecb", BS, ways=8)
OUTPUT = Watched("output", buffer="out")


def plain(
    wrong: Callable[[int], set[int]], *, tails: bool = False, unwritten: bool = False
) -> dict[int, tuple[Answer, ...]]:
    """Answers to messages of 0 to 18 blocks, and with a tail of one byte."""
    rows: dict[int, tuple[Answer, ...]] = {
        n * BS: (Answer(tuple(sorted(wrong(n))), unwritten=unwritten and bool(wrong(n))),) for n in range(19)
    }
    if tails:
        rows |= {n * BS + 1: (Answer((n,)),) for n in range(18)}
    return rows


def whole(_: int) -> set[int]:
    return set()


FOUND: list[tuple[str, str, Observations]] = [
    ("abi", "r12", Observations(ECB, Watched("abi", registers="r12"))),
    ("over_read", "15 bytes beyond the input when the length is no multiple of 16",
     Observations(ECB, Watched("guard_read", buffer="in", offset=15, buffer_len=1),
                  watched_lens={n: bool(n % BS) for n in range(40)})),
    ("over_read", "3 bytes beyond the input when the length is 1 mod 16",
     Observations(ECB, Watched("guard_read", buffer="in", offset=19, buffer_len=17),
                  watched_lens={n: n % BS == 1 for n in range(40)})),
    ("over_write", "from 17 bytes on",
     Observations(ECB, Watched("canary", buffer="out", offset=17, buffer_len=17),
                  watched_lens={n: n > BS for n in range(40)})),
    ("empty", "no data",
     Observations(ECB, Watched("canary", buffer="out"), watched_lens={n: n == 0 for n in range(40)})),
    ("input_changed", "the key", Observations(ECB, Watched("input", buffer="key"))),
    ("context_changed", "context", Observations(ECB, Watched("context", buffer="ctx"))),
    ("refusal", "refused", Observations(ECB, Watched("context", buffer="ctx"), refused=True)),
    ("refusal", "legal is refused", Observations(ECB, Watched("output", refuses=True))),
    ("key_policy", "policy", Observations(ECB, Watched("output", accepts=True), words=frozenset({"policy"}))),
    ("tag_check", "tag", Observations(ECB, Watched("output", accepts=True), words=frozenset({"wrong_tag"}))),
    ("overlap", "overlaps", Observations(ECB, Watched("output", accepts=True), words=frozenset({"overlap"}))),
    ("secrets_left", "secret", Observations(ECB, Watched("wipe"))),
    ("context", "thread", Observations(ECB, Watched("nondeterminism"))),
    ("context", "another session", Observations(ECB, OUTPUT, neighbours=True)),
    ("context", "another key", Observations(ECB, OUTPUT, words=frozenset({"rekey"}), without={"rekey": False},
                                            plain=plain(whole))),
    ("dirty_state", "registers", Observations(ECB, OUTPUT, noise=True)),
    ("dispatch", "instruction", Observations(ECB, Watched("none", "crash", "SIGILL"))),
    ("hang", "come back", Observations(ECB, Watched("none", "hang"))),
    ("alignment", "SIGSEGV", Observations(ECB, Watched("none", "crash", "SIGSEGV"), words=frozenset({"align"}),
                                          without={"align": False})),
    ("compiler", "undefined", Observations(ECB, Watched("none", "crash", report="a.c:1:2: runtime error: shift"))),
    ("over_read", "READ", Observations(ECB, Watched("none", "crash", report="AddressSanitizer: READ of size 4"))),
    ("compiler", "x86_64_clang_o3", Observations(ECB, OUTPUT, builds={"x86_64_clang_o3": False})),
    ("byte_order", "big-endian", Observations(ECB, OUTPUT, arches={
        "s390x": True, "ppc64": True, "x86_64": False, "i386": False})),
    ("byte_order", "32-bit", Observations(ECB, OUTPUT, arches={
        "s390x": False, "armhf": True, "x86_64": False, "i386": True})),
    ("emulator", "suspected", Observations(Facts("ecb", BS, native=False), OUTPUT,
                                           emulated={"without the emulator": False})),
    ("computation", "every 8 blocks block 6",
     Observations(ECB, OUTPUT, plain=plain(lambda n: {i for i in range(n // 8 * 8) if i % 8 == 6}))),
    ("computation", "every block", Observations(ECB, OUTPUT, plain=plain(lambda n: set(range(n))))),
    ("step", "one step to the next",
     Observations(ECB, OUTPUT, plain=plain(lambda n: set(range(8, n))))),
    ("remainder", "not written",
     Observations(ECB, OUTPUT, plain=plain(lambda n: {n - 1} if n % 8 == 2 else set(), unwritten=True))),
    ("key_schedule", "keys of 16",
     Observations(ECB, OUTPUT, plain=plain(lambda n: set(range(n))), keys={16: False, 32: True})),
    ("in_place", "over the input", Observations(ECB, OUTPUT, words=frozenset({"in_place"}),
                                                without={"in_place": False}, plain=plain(whole))),
    ("iv_writeback", "iv", Observations(Facts("cbc", BS, iv="random"), Watched("iv"), plain={
        n * BS: (Answer(iv=n == 8),) for n in range(19)})),
    ("counter", "low 64 bits", Observations(Facts("ctr", BS, iv="counter", partial="anywhere"), OUTPUT,
                                            plain=plain(whole), blocks=False,
                                            carries={(32, 3): Answer(), (64, 3): Answer((3,)), (96, 3): Answer((3,))})),
    ("tweak", "tweaks", Observations(Facts("xts", BS, iv="tweak", partial="stealing"), OUTPUT, blocks=False,
                                     plain=plain(lambda n: set(range(1, n))))),
    ("stealing", "stolen tail", Observations(Facts("xts", BS, iv="tweak", partial="stealing"), OUTPUT, blocks=False,
                                             plain=plain(whole, tails=True))),
    ("cts", "end of the message", Observations(Facts("cts_cbc", BS, iv="random", partial="stealing"), OUTPUT,
                                               blocks=False, plain=plain(lambda n: {n - 1} if n > 1 else set()))),
    ("partial_block", "partial block", Observations(Facts("ofb", BS, iv="random", partial="anywhere"), OUTPUT,
                                                    blocks=False, plain=plain(whole, tails=True))),
    ("partial_block", "several", Observations(Facts("cfb", BS, iv="random", partial="anywhere"), OUTPUT, length=3,
                                              words=frozenset({"split"}), pieces=(1, 3), plain=plain(whole))),
    ("mac", "buffered", Observations(Facts("cmac", BS, is_mac=True, partial="anywhere"), OUTPUT, length=3,
                                     words=frozenset({"split"}), pieces=(1, 3), plain=plain(whole))),
    ("step", "from 5 blocks on", Observations(Facts("cbcmac", BS, is_mac=True), OUTPUT, blocks=False, plain={
        n * BS: (Answer(tag=n > 4),) for n in range(19)})),
    ("ghash", "tag", Observations(Facts("gcm", BS, iv="hashed", is_aead=True, partial="anywhere"), OUTPUT,
                                  blocks=False, plain={n * BS: (Answer(tag=n > 3),) for n in range(19)})),
    ("aead_header", "14 bytes of associated data",
     Observations(Facts("ccm", BS, iv="nonce", is_aead=True, partial="anywhere"), OUTPUT, blocks=False,
                  plain=plain(whole), headers={"14 bytes of associated data": True, "a tag of 4 bytes": False})),
    ("large", "65536 bytes", Observations(ECB, OUTPUT, length=65536, plain=plain(whole))),
    ("unclassified", "nothing", Observations(ECB, OUTPUT, length=BS, plain=plain(whole))),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "words", "seen"), FOUND, ids=[f"{i}-{row[0]}" for i, row in enumerate(FOUND)])
def test_the_class_and_the_sentence_follow_from_what_was_observed(wanted: str, words: str, seen: Observations) -> None:
    found = name(seen)
    assert (found.name, words in found.sentence) == (wanted, True), found


def test_each_class_that_needs_no_other_judge_is_named_somewhere() -> None:
    assert {row[0] for row in FOUND} == set(BUG_CLASSES) - {"oracle"}


@pytest.mark.parametrize(
    ("kind", "least", "wrong"),
    [
        ("all", 1, lambda n: set(range(n))),
        ("lane", 8, lambda n: {i for i in range(n // 8 * 8) if i % 8 in (4, 5)}),
        ("lane", 4, lambda n: {i for i in range(2, n) if n >= 4}),
        ("step", 9, lambda n: set(range(8, n))),
        ("step", 2, lambda n: set(range(1, n))),
        ("rest", 3, lambda n: {2} if n == 3 else set()),
        ("lane", 4, lambda n: {1} if 4 <= n < 8 else set()),
    ],
)
def test_a_pattern_of_wrong_blocks_says_where_they_come_from(
    kind: Kind, least: int, wrong: Callable[[int], set[int]]
) -> None:
    found = pattern({n: frozenset(wrong(n)) for n in range(19)}, 8)
    assert found is not None
    assert (found.kind, found.least) == (kind, least)


def test_no_wrong_block_is_no_pattern() -> None:
    assert pattern({n: frozenset() for n in range(9)}, 4) is None


def test_numbers_are_joined_to_ranges() -> None:
    assert ranges((0, 1, 2, 5, 7, 8)) == "0 to 2, 5, 7 to 8"


@pytest.mark.parametrize(
    ("appears", "wanted"),
    [
        (lambda there: {"b", "d"} <= there, ("b", "d")),
        (lambda _: True, ()),
        (lambda there: bool({"a", "c"} & there) and "d" in there, ("c", "d")),
    ],
)
def test_the_smallest_set_of_features_has_nothing_to_spare(
    appears: Callable[[frozenset[str]], bool], wanted: tuple[str, ...]
) -> None:
    assert smallest(("a", "b", "c", "d"), appears) == wanted


def test_what_a_subject_says_is_no_markup() -> None:
    said = plain_text("<script>|a|\n[x](y) `z` \x1b[31m& " + "x" * 999)
    assert not re.search(r"(?<!\\)[<>|`\[\]&]", said)
    assert "\n" not in said
    assert "\x1b" not in said
    assert len(said) < 400


def test_bytes_that_differ_are_marked_and_lines_that_agree_left_out() -> None:
    lines = list(hex_lines(Differing(0, "output", bytes(40), bytes(16) + b"\x00\xff" + bytes(22))))
    assert len(lines) == 3
    assert lines[0].split()[0] == "16"
    assert lines[2].index("^^") == lines[1].index("ff")


def test_the_picture_is_a_document_of_its_own() -> None:
    grid = grid_of(Observations(ECB, OUTPUT, plain=plain(lambda n: {i for i in range(n) if i % 8 == 6})))
    assert grid is not None
    assert {(column, row) for column, row, wrong in grid.cells if wrong} >= {(7, 6), (15, 6), (15, 14)}
    root = ET.fromstring(svg(grid))  # noqa: S314 - the suite's own text
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert not [item for item in root.iter() if item.tag.endswith(("script", "image", "style"))]
    assert "a &lt; b" in svg(Grid("a < b", "x", "y", ((0, 0, True),)))


def test_an_emulator_that_is_none_has_no_single_step() -> None:
    assert not single_step_option("/bin/false")


def test_each_planted_fault_says_which_class_of_bug_it_is() -> None:
    """A fault without the key would be missing from what triage is measured by."""
    plants = [plant for plant in load_plants(load_registry(data_root())) if not plant.control]
    assert [plant.name for plant in plants if not plant.triage] == []
    assert {plant.triage for plant in plants} >= {"counter", "step", "remainder", "computation", "in_place"}


def test_the_page_explains_each_class_in_these_words() -> None:
    page = (data_root() / "docs" / "reference" / "findings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_]+)` \| (.*?) \| .+ \|$", page.partition("## Classes of bugs")[2], re.MULTILINE)
    assert dict(rows) == BUG_CLASSES
