# SPDX-License-Identifier: Apache-2.0
"""The vote of the libraries on a departing case: which of them are asked, what they are asked for, and what is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from crosslane import quorum
from crosslane.errors import HarnessFault
from crosslane.execute import Station
from crosslane.manifest import Manifest
from crosslane.quorum import Member, answer, case_within, vote
from crosslane.wire import CASE, CASE_RESULT, OP, Batch, Flag, OpKind, Results, Status, Verdict

MakeManifest = Callable[..., Manifest]
Op = tuple[OpKind, bytes, int]

BLOCK_LEN = 16
KEY: Op = (OpKind.SETKEY, bytes(range(16)), 0)
IV: Op = (OpKind.SETIV, b"I" * 16, 0)
REINIT: Op = (OpKind.REINIT, b"", 0)
CLONE: Op = (OpKind.CLONE, b"", 0)
FINAL: Op = (OpKind.FINAL, b"", 0)


def update(length: int, flags: int = 0) -> Op:
    return OpKind.UPDATE, bytes(7 * i % 256 for i in range(length)), flags


def aad(length: int) -> Op:
    return OpKind.AAD, b"a" * length, 0


def case(*ops: Op, **about: int) -> Batch:
    """A batch of one case; ``about`` sets fields of it."""
    table, blob, outs = np.zeros(len(ops), OP), bytearray(), 0
    cases = np.zeros(1, CASE)
    cases["num_ops"] = len(ops)
    for name, value in about.items():
        cases[name] = value
    for row, (kind, data, flags) in zip(table, ops, strict=True):
        row["kind"], row["flags"], row["in_off"], row["in_len"], row["out_off"] = (
            kind,
            flags,
            len(blob),
            len(data),
            outs,
        )
        blob += data
        if kind is OpKind.UPDATE:
            outs += len(data) + (BLOCK_LEN if flags & Flag.OBSERVE_IV else 0)
        if kind is OpKind.TAG and not about.get("decrypting"):
            outs += about["tag_len"]
    return Batch(cases, table, np.frombuffer(bytes(blob), np.uint8), outs, np.ones(1, np.int64))


def message(*pieces: int, flags: int = 0) -> list[Op]:
    return [IV, *(update(piece, flags) for piece in pieces), FINAL]


PLAIN = case(KEY, *message(5, 16), *message(0))
TAGGED: list[Op] = [KEY, IV, aad(3), update(8), FINAL, (OpKind.TAG, b"", 0)]
TWO_KEYS: dict[str, Any] = {"num_keys": 2, "key_lens": (8,)}
BLOCKS: dict[str, Any] = {"partial": "refused", "split": "block"}
EQUAL_HALVES: Op = (OpKind.SETKEY, b"12345678" * 2, 0)

# A case, what the manifest says, and whether the case lies within it.
RULES: list[tuple[str, Batch, dict[str, Any], bool]] = [
    ("all", PLAIN, {}, True),
    ("encrypting", PLAIN, {"directions": ("encrypt",)}, True),
    ("encrypting where none is", PLAIN, {"directions": ("decrypt",)}, False),
    ("decrypting", case(KEY, *message(5), decrypting=1), {"directions": ("decrypt",)}, True),
    ("decrypting where none is", case(KEY, *message(5), decrypting=1), {"directions": ("encrypt",)}, False),
    ("a legal key", PLAIN, {"key_lens": (16, 32)}, True),
    ("another key", PLAIN, {"key_lens": (24, 32)}, False),
    ("a second key that is illegal", case(KEY, *message(5), (OpKind.SETKEY, b"k" * 5, 0), *message(5)), {}, False),
    ("a key with something more", PLAIN, {"key_lens": (8,), "key_extra_len": 8}, True),
    ("two keys", PLAIN, TWO_KEYS, True),
    ("two unlike keys", PLAIN, {**TWO_KEYS, "equal_keys": False}, True),
    ("two like keys", case(EQUAL_HALVES, *message(5)), TWO_KEYS, True),
    ("two like keys where they are refused", case(EQUAL_HALVES, *message(5)), {**TWO_KEYS, "equal_keys": False}, False),
    ("one key with like halves", case(EQUAL_HALVES, *message(5)), {"equal_keys": False}, True),
    ("an iv", PLAIN, {"iv_lens": (12, 16)}, True),
    ("an iv of another length", PLAIN, {"iv_lens": (12,)}, False),
    ("an iv where there is none", PLAIN, {"iv_lens": ()}, False),
    ("no iv where there is none", case(KEY, (OpKind.SETIV, b"", 0), update(4), FINAL), {"iv_lens": ()}, True),
    ("a second iv of another length", case(KEY, *message(5), (OpKind.SETIV, b"i", 0), update(4), FINAL), {}, False),
    ("a tag", case(*TAGGED, tag_len=12), {"aad": True, "tag_lens": (4, 12)}, True),
    ("a tag of another length", case(*TAGGED, tag_len=8), {"aad": True, "tag_lens": (4, 12)}, False),
    ("associated data in two pieces", case(KEY, IV, aad(1), aad(2), update(8), FINAL), {"aad": True}, True),
    (
        "associated data in two pieces where nothing is split",
        case(KEY, IV, aad(1), aad(2), update(8), FINAL), {"aad": True, "split": "none"}, False,
    ),
    ("associated data in one piece", case(KEY, IV, aad(1), update(8), FINAL), {"aad": True, "split": "none"}, True),
    ("a copy", case(KEY, IV, update(16), CLONE, update(4), FINAL), {}, True),
    ("a copy where none is made", case(KEY, IV, update(16), CLONE, update(4), FINAL), {"clone": False}, False),
    ("no copy where none is made", PLAIN, {"clone": False}, True),
    ("a new start", case(KEY, REINIT, *message(5)), {}, True),
    ("a new start where there is none", case(KEY, REINIT, *message(5)), {"reinit": False}, False),
    ("in place", case(KEY, *message(5, flags=Flag.IN_PLACE)), {}, True),
    ("in place where nothing is", case(KEY, *message(5, flags=Flag.IN_PLACE)), {"in_place": False}, False),
    ("not in place", PLAIN, {"in_place": False}, True),
    ("no data", PLAIN, {"empty": True}, True),
    ("no data where there must be some", PLAIN, {"empty": False}, False),
    ("no update where there must be data", case(KEY, IV, FINAL), {"empty": False}, False),
    ("just long enough", case(KEY, *message(5, 3)), {"min_len": 8}, True),
    ("too short", case(KEY, *message(5, 3)), {"min_len": 9}, False),
    ("too few blocks", case(KEY, *message(5, 3)), {"min_len_blocks": 1}, False),
    ("just short enough", case(KEY, *message(5, 3)), {"max_len": 8}, True),
    ("too long", case(KEY, *message(5, 3)), {"max_len": 7}, False),
    ("the second message too long", case(KEY, *message(5), *message(8)), {"max_len": 7}, False),
    ("whole blocks", case(KEY, *message(16, 32)), BLOCKS, True),
    ("a partial block where it is refused", case(KEY, *message(16, 8)), BLOCKS, False),
    ("pieces", case(KEY, *message(16, 3, 4)), {"split": "byte"}, True),
    ("pieces of whole blocks", case(KEY, *message(16, 32, 3)), {"split": "block"}, True),
    ("pieces of bytes where they are blocks", case(KEY, *message(16, 3, 4)), {"split": "block"}, False),
    ("pieces where there are none", case(KEY, *message(16, 3)), {"split": "none"}, False),
    ("one piece", case(KEY, *message(19), *message(0)), {"split": "none"}, True),
    ("a policy", case(KEY, *message(5), policy=2), {"policies": ("weak_subkey",)}, True),
    ("a policy that cannot be asked for", case(KEY, *message(5), policy=1), {"policies": ("weak_subkey",)}, False),
    ("a policy in force", case(KEY, *message(5), policy=2), {"always_policies": ("weak_subkey",)}, True),
    ("without the policy in force", PLAIN, {"always_policies": ("weak_subkey",)}, False),
]  # fmt: skip


@pytest.mark.parametrize(("batch", "changes", "within"), [pytest.param(*rule, id=name) for name, *rule in RULES])
def test_a_library_is_asked_for_cases_within_its_domain_alone(
    make_manifest: MakeManifest, batch: Batch, changes: dict[str, Any], within: bool
) -> None:
    assert case_within(make_manifest(**changes), batch) is within


# --- what is compared ---


def results(batch: Batch, out: bytes, *, status: int = Status.OK, verdict: int = Verdict.RAN) -> Results:
    cases = np.zeros(1, CASE_RESULT)
    cases["verdict"] = verdict
    statuses = np.zeros(len(batch.ops), np.uint8)
    statuses[-1] = status
    assert len(out) == batch.out_len
    return Results(np.zeros(8, np.uint64), cases, statuses, np.frombuffer(out, np.uint8))


def test_an_answer_is_statuses_data_and_tag() -> None:
    batch = case(*TAGGED, tag_len=4)
    assert answer(batch, results(batch, b"12345678tag!")) == bytes(len(TAGGED)) + b"12345678tag!"
    refused = answer(batch, results(batch, b"12345678tag!", status=Status.BAD_TAG_LEN))
    assert refused == bytes(len(TAGGED) - 1) + b"\4" + b"12345678tag!"


def test_an_answer_leaves_the_running_iv_out() -> None:
    batch = case(KEY, *message(3, 5, flags=Flag.OBSERVE_IV))
    first, second = (b"abc" + iv + b"defgh" + iv for iv in (b"1" * 16, b"2" * 16))
    assert answer(batch, results(batch, first)) == answer(batch, results(batch, second))
    assert answer(batch, results(batch, first)).endswith(b"abcdefgh")
    for at, counts in ((1, True), (4, False), (20, True), (30, False)):
        wrong = first[:at] + bytes([first[at] ^ 1]) + first[at + 1 :]
        assert (answer(batch, results(batch, wrong)) != answer(batch, results(batch, first))) is counts


# --- the vote ---

BATCH = case(KEY, *message(4))
RIGHT, WRONG, OTHER = b"good", b"evil", b"misc"

Voice = bytes | None | HarnessFault | Results


@pytest.fixture
def hold(make_manifest: MakeManifest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The vote of libraries that say something, decline (None) or fail."""

    def holding(voices: dict[str, Voice], *, outside: Sequence[str] = ()) -> str:
        asked = []

        def execute(station: Station, batch: Batch) -> Results | None:
            asked.append(station.symbol)
            said = voices[station.symbol]
            if isinstance(said, HarnessFault):
                raise said
            return results(batch, said) if isinstance(said, bytes) else said

        monkeypatch.setattr(quorum, "execute_unless_declined", execute)
        members = [
            Member(name, Station((), name, "ctr", "toy"), make_manifest(key_lens=(24,) if name in outside else (16,)))
            for name in voices
        ]
        said = vote(BATCH, results(BATCH, RIGHT), results(BATCH, WRONG), members)
        assert asked == [name for name in voices if name not in outside]
        return said

    return holding


@pytest.mark.parametrize(
    ("voices", "sentence"),
    [
        ({"one": RIGHT}, "agree with generic: one; the subject stands alone"),
        ({"one": RIGHT, "two": RIGHT}, "agree with generic: one, two; the subject stands alone"),
        (
            {"one": WRONG, "two": WRONG},
            "agree with generic: none; agree with the subject: one, two; generic stands alone: it is the suspect",
        ),
        ({"one": RIGHT, "two": WRONG}, "agree with generic: one; agree with the subject: two"),
        ({"one": OTHER}, "agree with generic: none; agree with neither: one"),
        (
            {"one": RIGHT, "two": OTHER},
            "agree with generic: one; agree with neither: two; the subject stands alone",
        ),
        (
            {"one": WRONG, "two": OTHER},
            (
                "agree with generic: none; agree with the subject: one; agree with neither: two; "
                "generic stands alone: it is the suspect"
            ),
        ),
        (
            {"one": results(BATCH, RIGHT, status=Status.UNSUPPORTED), "two": RIGHT},
            "agree with generic: two; agree with neither: one; the subject stands alone",
        ),
        (
            {"one": RIGHT, "two": None, "three": HarnessFault("died")},
            "agree with generic: one; the subject stands alone",
        ),
        (
            {"one": results(BATCH, WRONG, verdict=Verdict.CRASH), "two": RIGHT},
            "agree with generic: two; the subject stands alone",
        ),
    ],
)
def test_the_vote_says_who_agrees_with_whom(hold: Callable[..., str], voices: dict[str, Voice], sentence: str) -> None:
    assert hold(voices) == sentence


@pytest.mark.parametrize(
    "voices",
    [{}, {"one": None}, {"one": HarnessFault("died")}, {"one": results(BATCH, RIGHT, verdict=Verdict.HANG)}],
)
def test_two_sources_alone_are_no_quorum(hold: Callable[..., str], voices: dict[str, Voice]) -> None:
    assert not hold(voices)


def test_a_library_beyond_whose_domain_the_case_lies_is_not_asked(hold: Callable[..., str]) -> None:
    assert not hold({"one": RIGHT}, outside=("one",))
    assert hold({"one": WRONG, "two": RIGHT}, outside=("one",)) == "agree with generic: two; the subject stands alone"


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (b"1", "agree with generic: shows; the subject stands alone"),
        (b"2", "agree with generic: none; agree with the subject: shows; generic stands alone: it is the suspect"),
    ],
)
def test_where_just_the_iv_differs_those_vote_that_show_it(
    make_manifest: MakeManifest, monkeypatch: pytest.MonkeyPatch, said: bytes, sentence: str
) -> None:
    batch = case(KEY, *message(4, flags=Flag.OBSERVE_IV))
    asked = []

    def execute(station: Station, batch: Batch) -> Results:
        asked.append(station.symbol)
        return results(batch, RIGHT + said * 16)

    monkeypatch.setattr(quorum, "execute_unless_declined", execute)
    members = [
        Member(name, Station((), name, "ctr", "toy"), make_manifest(iv_out=shown))
        for name, shown in (("hides", "none"), ("shows", "next"))
    ]
    generic, subject = (results(batch, RIGHT + iv * 16) for iv in (b"1", b"2"))
    assert vote(batch, generic, subject, members) == sentence
    assert asked == ["shows"]
    assert not vote(batch, generic, generic, members)
