# SPDX-License-Identifier: Apache-2.0
"""The case format and the store: loss-free both ways, strict, whole or not at all, for several writers at once."""

from __future__ import annotations

import dataclasses
import errno
import json
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosslane.data import data_root
from crosslane.errors import BadInput, HarnessFault
from crosslane.findings.case import Case, Operation, Place, batch_of, case_of
from crosslane.findings.classes import CLASSES, classes_of
from crosslane.findings.formats import case_from_bytes, case_from_json, case_to_bytes, case_to_json
from crosslane.findings.keep import left_trials
from crosslane.findings.record import Key, Record
from crosslane.findings.store import Kept, Store
from crosslane.findings.without import REMOVABLE
from crosslane.generate import generate_batch
from crosslane.manifest import Manifest
from crosslane.records import AlgorithmResult, CellResult, Finding
from crosslane.wire import Buffer, Edge, Flag, OpKind

SCHEMA = json.loads((data_root() / "corpora" / "schemas" / "case.schema.json").read_text())
KEY = Key("toy-avx", "ctr(toy)", "output", "counter:64")
TRIALS = ("large-0123456789abcdef-encrypt-1048609", "threads-0123456789abcdef-0-1")

places = st.builds(Place, st.sampled_from(list(Edge)), st.integers(0, 63))


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    kind = draw(st.sampled_from(list(OpKind)))
    flags = Flag(draw(st.integers(0, 15)))
    fed = bool(flags & Flag.FEED)
    return Operation(
        kind=kind,
        data=b"" if fed else draw(st.binary(max_size=40)),
        slot=draw(st.integers(0, 3)),
        from_slot=draw(st.integers(0, 3)),
        place=draw(places),
        out_place=draw(places),
        flags=flags,
        aux=draw(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))),
        out_len=draw(st.integers(0, 60)) if kind in (OpKind.UPDATE, OpKind.TAG) else 0,
        fed_len=draw(st.integers(0, 64)) if fed else 0,
    )


sessions = st.builds(
    Case,
    algorithm=st.just("ctr(toy)"),
    operations=st.lists(operations(), max_size=6).map(tuple),
    decrypting=st.booleans(),
    policy=st.integers(0, 3),
    tag_len=st.integers(0, 64),
    ctx_edge=st.sampled_from([Edge.END, Edge.MIDDLE]),
)
cases = st.builds(dataclasses.replace, sessions, neighbours=st.lists(sessions, max_size=2).map(tuple))


@given(cases)
def test_a_case_survives_both_forms(case: Case) -> None:
    text = case_to_json(case)
    jsonschema.validate(json.loads(text), SCHEMA)
    assert case_from_json(text, "case.json") == case
    assert case_from_bytes(case_to_bytes(case), "case") == case


def test_a_generated_batch_is_its_cases(make_manifest: Callable[..., Manifest]) -> None:
    batch = generate_batch(make_manifest(), 0)
    made = batch_of([case_of(batch, index, "ctr(toy)") for index in range(len(batch))])
    assert [case_of(made, index, "ctr(toy)") for index in range(len(batch))] == [
        case_of(batch, index, "ctr(toy)") for index in range(len(batch))
    ]
    assert made.out_len == batch.out_len


CASE = Case("ctr(toy)", (Operation(OpKind.SETKEY, bytes(16)), Operation(OpKind.UPDATE, b"\1", out_len=1)))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"version": 1', '"version": 2', "version is 2, allowed are 1 to 1"),
        ('"tag_len": 0', '"tag_len": 0, "speed": 1', "unknown key 'speed'"),
        ('"op": "update"', '"op": "upset"', "op of operation 1 is 'upset', allowed are"),
        ('"data": "01"', '"data": "0"', "data of operation 1 is no pairs"),
        ('"ctx": "middle"', '"ctx": "start"', "ctx is 'start', allowed are end, middle"),
        ('"data": "01"', '"in": "middle+64"', "in of operation 1 is 'middle+64'"),
        ('"out_len": 1', '"out_len": -1', "out_len of operation 1 is -1"),
        ('"operations"', '"neighbours": 1, "operations"', "neighbours is no list"),
        ('"operations"', '"neighbours": [{}], "operations"', "a neighbour lacks the key 'direction'"),
        ("{\n", "", "is no JSON"),
    ],
)
def test_a_malformed_case_is_one_sentence(old: str, new: str, words: str) -> None:
    text = case_to_json(CASE)
    assert old in text
    with pytest.raises(BadInput, match=r"case.json: ") as caught:
        case_from_json(text.replace(old, new, 1), "case.json")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cut", [0, 5, 12, 40, -1])
def test_a_cut_binary_case_is_refused(cut: int) -> None:
    with pytest.raises(BadInput, match="restore the file"):
        case_from_bytes(case_to_bytes(CASE)[:cut], "case")
    with pytest.raises(BadInput, match="restore the file"):
        case_from_bytes(case_to_bytes(CASE) + b"\0", "case")


def kept(key: Key = KEY, **changes: Any) -> Kept:
    facts: dict[str, Any] = {
        "key": key, "state": "open", "verdict": "disagree", "text": "byte 0 differs \x7f \"quoted\"",
        "cells": ("ctr(toy)/toy-avx@x86_64_native",), "judge": "generic", "shrunk": True, "rate": 1.0,
        "from_case": "0123456789abcdef-0-1", "impls": (), "first_revision": "ab", "last_revision": "ab",
        "fixed_revision": "", "case_sha256": "", "repro_sha256": "",
    }  # fmt: skip
    return Kept(Record(**{**facts, **changes}), CASE, "/* repro */\n", (("shim.h", "/* shim */\n"),))


def test_a_finding_is_kept_and_read_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "findings")
    assert store.ids() == []
    put = store.put(kept())
    assert store.read(KEY.id) == put == kept().fitting()
    assert sorted(path.name for path in (tmp_path / "findings" / KEY.id).iterdir()) == [
        "case.json", "finding.toml", "harness", "repro.c",
    ]  # fmt: skip


def test_ids_depend_on_the_key_alone() -> None:
    others = [dataclasses.replace(KEY, **{name: "ctr(other)"}) for name in ("implementation", "algorithm", "symptom")]
    assert len({KEY.id, *(key.id for key in others)}) == 4
    assert kept(cells=("x",), first_revision="00").record.id == KEY.id


def test_a_second_sighting_adds_its_cell_and_a_fixed_one_is_open_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(kept())
    again = store.put(kept(cells=("ctr(toy)/toy-avx@x86_64_qemu_max",), last_revision="cd", first_revision="cd")).record
    assert len(again.cells) == 2
    assert (again.first_revision, again.last_revision) == ("ab", "cd")
    store.update(KEY.id, state="fixed", fixed_revision="ef")
    assert store.put(kept()).record.state == "open"
    store.update(KEY.id, state="accepted")
    assert store.put(kept()).record.state == "accepted"


def _write(folder: Path, lane: int) -> None:
    store = Store(folder)
    for number in range(4):
        store.put(kept(cells=(f"ctr(toy)/toy-avx@lane_{lane}_{number}",)))


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(tmp_path, lane)) for lane in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
        assert writer.exitcode == 0
    assert len(Store(tmp_path).read(KEY.id).record.cells) == 12
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith((".new", ".old"))] == []


def test_what_a_killed_writer_left_is_tidied(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(kept())
    (tmp_path / KEY.id).rename(tmp_path / f".old-{KEY.id}")
    (tmp_path / ".new-x").mkdir()
    assert store.put(kept()).record.id == KEY.id
    assert store.ids() == [KEY.id]
    assert not (tmp_path / ".new-x").exists()


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        (
            "finding.toml",
            'state = "open"',
            'state = "gone"',
            "state has 'gone', so it was edited or cut off; restore it",
        ),
        ("finding.toml", 'symptom = "output"', 'symptom = "iv"', "has the key of finding"),
        (
            "finding.toml",
            "rate = 1.0\n",
            "",
            "the key 'rate' is missing, so it was edited or cut off; restore it, or remove",
        ),
        ("finding.toml", "version = 1\n", "version = 1\nspeed = 2\n", "unknown key 'speed', so it was edited"),
        ("finding.toml", "version", "ver sion", "so it was edited or cut off; restore it"),
        ("case.json", '"01"', '"02"', "is not the case that finding.toml gives the digest of"),
        ("case.json", "operations", "", "is not the case"),
        ("repro.c", "repro", "", "repro.c: is with harness not the program that finding.toml gives the digest of"),
        ("harness/shim.h", "shim", "", "repro.c: is with harness not the program"),
    ],
)
def test_an_edited_folder_is_one_sentence(tmp_path: Path, file: str, old: str, new: str, words: str) -> None:
    store = Store(tmp_path)
    store.put(kept())
    path = tmp_path / KEY.id / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(BadInput) as caught:
        store.read(KEY.id)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    found, wrong = store.read_all()
    assert (found, len(wrong)) == ([], 1)


@pytest.mark.parametrize("file", ["finding.toml", "case.json", "repro.c"])
def test_a_folder_that_lacks_a_file_is_one_sentence(tmp_path: Path, file: str) -> None:
    store = Store(tmp_path)
    store.put(kept())
    (tmp_path / KEY.id / file).unlink()
    with pytest.raises(BadInput, match=f"{file}: cannot be read .*; restore it or make it readable"):
        store.read(KEY.id)


def test_an_unknown_id_says_the_nearest(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(BadInput, match="there are none"):
        store.resolve("0123456789ab")
    store.put(kept())
    with pytest.raises(BadInput, match=f"nearest are {KEY.id}"):
        store.resolve(KEY.id[:-1] + "x")
    assert store.resolve(KEY.id[:4]) == KEY.id


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = Store(tmp_path)
    store.put(kept())
    before = store.read(KEY.id)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HarnessFault, match="free some space, or name another folder with --findings"):
        store.put(kept(cells=("other",)))
    assert store.read(KEY.id) == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith((".new", ".old"))] == []


@pytest.mark.parametrize(
    ("states", "left"),
    [
        ((), [*TRIALS, "bulk-0123456789abcdef-encrypt"]),
        (("open",), [*TRIALS]),
        (("open", "accepted"), [*TRIALS]),
        (("accepted",), []),
    ],
)
def test_trials_are_excused_where_all_else_of_their_cell_is_accepted(
    make_cell: Callable[..., CellResult], states: tuple[str, ...], left: list[str]
) -> None:
    names = (*TRIALS, "bulk-0123456789abcdef-encrypt", "0123456789abcdef-0-1")
    cell = make_cell(findings=tuple(Finding(name, "disagree", "output", "alone", 1, "differs") for name in names))
    result = AlgorithmResult("ctr(toy)", "", "", "", (cell,), 0.0)
    sightings = [(cell.cell, kept(state=state).record) for state in states]
    assert [why.partition(" ")[0] for _, why in left_trials([result], sightings)] == left
    elsewhere = [("ctr(toy)/other@x86_64_native", record) for _, record in sightings]
    assert len(list(left_trials([result], elsewhere))) == 3


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("any", ("any",)),
        ("in:behind+blocks:=8", ("in", "blocks")),
        ("register:rbx,r12+encrypt", ("register", "encrypt")),
        ("sigsegv+key_len:24", ("signal", "key_len")),
        ("signal_63", ("signal",)),
    ],
)
def test_a_class_has_words_of_a_closed_list(text: str, classes: tuple[str, ...]) -> None:
    assert classes_of(text) == classes


def test_a_word_of_no_class_is_refused() -> None:
    with pytest.raises(BadInput, match=r"'tail\+speed:3' has 'speed:3', which is in no class; words are any, in_place"):
        classes_of("tail+speed:3")


def test_every_word_that_is_given_has_a_class_and_is_documented() -> None:
    """Features that can be taken out, buffers, and the words of findings that are not shrunk."""
    page = (data_root() / "docs" / "reference" / "findings.md").read_text()
    words = {*REMOVABLE, *(buffer.name.lower() for buffer in Buffer)} - {"chaining"}
    assert words <= set(CLASSES)
    assert all(f"| `{word}` | {meaning} |" in page for word, meaning in CLASSES.items())
