# SPDX-License-Identifier: Apache-2.0
"""Corpora: strict reading, merging that loses nothing, minimising that keeps all that is covered, foreign folders."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import jsonschema
import pytest
from planting import CTR, NATIVE
from referencing import Registry, Resource

from crosslane.cli import main
from crosslane.corpora_tools.foreign import format_of
from crosslane.corpora_tools.merging import gathered
from crosslane.corpora_tools.minimising import least, minimise
from crosslane.corpora_tools.seeding import FAMILIES, Family
from crosslane.corpora_tools.sound import check_sound, manifests
from crosslane.corpora_tools.stats import features_of
from crosslane.corpora_tools.stored import Entry, entry_of, line_of, read_corpora, read_corpus
from crosslane.corpora_tools.writing import existing, write_cases
from crosslane.data import data_root
from crosslane.errors import BadInput, HarnessFault
from crosslane.findings.case import Case, Operation, case_of
from crosslane.findings.formats import case_to_bytes, case_to_json
from crosslane.generate import generate_batch
from crosslane.plan import Selection
from crosslane.registry import load_registry
from crosslane.wire import Flag, OpKind

REGISTRY = load_registry(data_root())
KNOWN = manifests(REGISTRY)
SCHEMAS = data_root() / "corpora" / "schemas"


def message(length: int, *, key: int = 0) -> Case:
    """One message of ctr(sm4) in one call."""
    return Case(
        CTR,
        (
            Operation(OpKind.SETKEY, bytes([key]) * 16),
            Operation(OpKind.SETIV, bytes(16), aux=(0, length)),
            Operation(OpKind.UPDATE, bytes(length), flags=Flag.LAST, out_len=length),
        ),
    )


def written(folder: Path, *cases: Case) -> list[Entry]:
    """The cases as loose files."""
    entries = [entry_of(case) for case in cases]
    write_cases(folder, entries, before=existing(folder))
    return sorted(entries, key=lambda entry: entry.digest)


@dataclass(frozen=True)
class Ended:
    """How a command ended: status, what it printed, and what it complained about."""

    status: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def call(*words: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["crosslane", "corpora", *map(str, words)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return Ended(int(caught.value.code or 0), captured.out, captured.err)

    return call


def test_loose_and_packed_hold_the_same(tmp_path: Path, run: Run) -> None:
    entries = written(tmp_path / "loose", message(1), message(2), message(40))
    write_cases(tmp_path / "packed.jsonl", entries, before=existing(tmp_path / "packed.jsonl"))
    for place in ("loose", "packed.jsonl"):
        corpus = read_corpus(tmp_path / place)
        assert not corpus.problems
        assert [(entry.digest, entry.case) for entry in corpus.sorted()] == [(e.digest, e.case) for e in entries]
    schema = json.loads((SCHEMAS / "packed.schema.json").read_text())
    case = Resource.from_contents(json.loads((SCHEMAS / "case.schema.json").read_text()))
    validator = jsonschema.Draft202012Validator(schema, registry=Registry().with_resource("case.schema.json", case))
    for line in (tmp_path / "packed.jsonl").read_text().splitlines():
        validator.validate(json.loads(line))
    assert run("verify", tmp_path / "loose", tmp_path / "packed.jsonl").status == 2  # each case stands twice
    assert run("verify", tmp_path / "loose").out == "3 cases are sound\n"


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


def _flipped(path: Path) -> None:
    path.write_text(path.read_text().replace("00", "01", 1))


def _renamed(path: Path) -> None:
    path.rename(path.with_name("0" * 64 + ".json"))


def _linked(path: Path) -> None:
    path.rename(path.parent / ".away")
    path.symlink_to(path.parent / ".away")


def _piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _doubled(path: Path) -> None:
    (path.parent / "more.jsonl").write_text(line_of(read_corpus(path).sorted()[0]))


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "garbage": (lambda path: path.write_bytes(bytes(range(256))), "is not UTF-8, so it is no stored case"),
    "empty": (lambda path: path.write_bytes(b""), "which is not its name; restore the file, or remove it"),
    "1 GiB": (_sparse, "has 1,073,741,824 bytes, allowed are 4,194,304; remove it"),
    "cut off": (lambda path: path.write_text(path.read_text()[:-9]), "which is not its name"),
    "changed": (_flipped, "which is not its name; restore the file"),
    "another name": (_renamed, "which is not its name"),
    "no digest": (lambda path: path.rename(path.with_name("mine.json")), "is no stored case by its name, allowed are"),
    "a link": (_linked, "is a symbolic link, which a corpus does not follow"),
    "a pipe": (_piped, "is no regular file; remove it from the corpus"),
    "twice": (_doubled, "is the case that "),
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_is_damaged_is_said_and_nothing_else_is_lost(tmp_path: Path, run: Run, how: str) -> None:
    breaks, says = BROKEN[how]
    entries = written(tmp_path / "corpus", message(3), message(50), message(64))
    breaks(tmp_path / "corpus" / f"{entries[1].digest}.json")
    found = run("verify", tmp_path / "corpus")
    assert found.status == 2
    first, last = found.err.splitlines()
    assert says in first
    assert "crosslane: 1 thing is wrong as said above" in last
    merged = run("merge", tmp_path / "new", tmp_path / "corpus")
    assert merged.status == 2
    good = {entry.digest for entry in entries if how == "twice" or entry is not entries[1]}
    assert set(read_corpus(tmp_path / "new").entries) == good


LINES = {
    "no JSON": ("{", "is no JSON"),
    "deep": ("[" * 100_000 + "]" * 100_000, "is no JSON"),
    "other keys": ('{"sha256":"","case":{},"more":1}', "has other keys than sha256 and case"),
    "no case": ('{"sha256":"","case":7}', "the case is no object"),
    "wrong digest": (line_of(replace(entry_of(message(5)), digest="f" * 64)).rstrip(), "the digest of its case"),
    "loosely written": (line_of(entry_of(message(5))).rstrip().replace(":", ": "), "is not in the canonical form"),
}


@pytest.mark.parametrize("how", LINES)
def test_a_line_that_is_damaged_is_said_with_its_number(tmp_path: Path, how: str) -> None:
    line, says = LINES[how]
    file = tmp_path / "some.jsonl"
    file.write_text(line_of(entry_of(message(1))) + line + "\n" + line_of(entry_of(message(2))))
    corpus = read_corpus(file)
    assert len(corpus.entries) == 2
    [problem] = corpus.problems
    assert "some.jsonl:2: " in str(problem)
    assert says in str(problem)
    with pytest.raises(BadInput, match="nothing was written, since that would lose what cannot be read"):
        existing(file)


def test_a_packed_corpus_that_was_cut_off_is_said(tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    file.write_text(line_of(entry_of(message(1))) + line_of(entry_of(message(2)))[:-1])
    [problem] = read_corpus(file).problems
    assert "some.jsonl:2: does not end with a newline, so it was cut off" in str(problem)


def test_a_huge_packed_corpus_is_not_read(tmp_path: Path) -> None:
    _sparse(tmp_path / "some.jsonl")
    [problem] = read_corpus(tmp_path / "some.jsonl").problems
    assert "has 1,073,741,824 bytes, allowed are 67,108,864" in str(problem)


def test_merging_adds_what_is_new_and_changes_nothing(tmp_path: Path, run: Run) -> None:
    written(tmp_path / "one", message(1), message(2))
    written(tmp_path / "two", message(2), message(3))
    before = {path: path.stat().st_mtime_ns for path in sorted((tmp_path / "one").iterdir())}
    assert "1 cases added, 3 in all" in run("merge", tmp_path / "one", tmp_path / "two").out
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())
    assert len(read_corpus(tmp_path / "two").entries) == 2
    assert "0 cases added, 3 in all" in run("merge", tmp_path / "one", tmp_path / "two").out
    assert "3 cases added, 3 in all" in run("merge", tmp_path / "all.jsonl", tmp_path / "one").out
    assert "0 cases added, 3 in all" in run("merge", tmp_path / "all.jsonl", tmp_path / "two").out
    found = run("merge", tmp_path / "new", tmp_path / "nowhere")
    assert (found.status, found.err.count("\n")) == (2, 1)
    assert "nowhere: there is no such corpus; correct the name" in found.err


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.ENOSPC, "free some space"), (errno.EROFS, "make it writable"), (errno.EACCES, "writable")],
)
@pytest.mark.parametrize("name", ["folder", "file.jsonl"])
def test_what_cannot_be_written_is_said_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, says: str, name: str
) -> None:
    into = tmp_path / name
    write_cases(into, [entry_of(message(1))], before=existing(into))

    def full(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HarnessFault, match=f"cannot be written .*{says}.*; what was there is unchanged"):
        write_cases(into, [entry_of(message(2)), entry_of(message(3))], before=existing(into))
    corpus = read_corpus(into)
    assert list(corpus.entries) == [entry_of(message(1)).digest]
    assert not corpus.problems
    assert not list(tmp_path.rglob(".new-*"))


def test_what_a_killed_writer_left_is_no_case(tmp_path: Path) -> None:
    entries = written(tmp_path, message(1))
    (tmp_path / ".new-abcdef").write_text("half")
    corpus = read_corpus(tmp_path)
    assert list(corpus.entries) == [entries[0].digest]
    assert not corpus.problems


@pytest.mark.parametrize(
    ("case", "says"),
    [
        (replace(message(1), algorithm="ctr(rot13)"), "is a case of ctr"),
        (message(1).with_operations([Operation(OpKind.UPDATE, b"\0", out_len=9)]), "out_len of operation 0 is 9"),
        (
            message(1).with_operations([Operation(OpKind.UPDATE, bytes(3 << 20), out_len=3 << 20)] * 3),
            "bytes, allowed are 16,777,216; remove the case",
        ),
        (message(1).with_operations([Operation(OpKind.SETKEY, bytes(257))]), "takes 257 bytes, allowed are 256"),
        (
            replace(message(1), decrypting=True, tag_len=4).with_operations([Operation(OpKind.TAG, b"\0")]),
            "has a tag of 1 bytes, but tag_len is 4",
        ),
        (
            message(1).with_operations([Operation(OpKind.UPDATE, b"\0", flags=Flag.OVERLAP, aux=(0, 5), out_len=1)]),
            "overlaps as none can",
        ),
    ],
)
def test_a_case_that_cannot_be_run_is_said(case: Case, says: str) -> None:
    with pytest.raises(BadInput, match=r"^here: ") as caught:
        check_sound(case, KNOWN, "here")
    assert says in str(caught.value)


def test_every_case_of_the_suite_is_sound(run: Run) -> None:
    found = run("verify")
    assert found.status == 0, found.err


SEEDS = data_root() / "corpora" / "seeds"
MOST_SEED_BYTES = 300_000


def test_seeds_are_few_bytes_and_of_every_family() -> None:
    assert sorted(path.name for path in SEEDS.iterdir()) == sorted(family.name for family in FAMILIES)
    files = [path for path in SEEDS.rglob("*") if path.is_file()]
    assert sorted(files) == sorted(SEEDS / family.name / "cases.jsonl" for family in FAMILIES)
    assert sum(path.stat().st_size for path in files) < MOST_SEED_BYTES


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_seeds_are_what_their_script_writes(family: Family) -> None:
    file = SEEDS / family.name / "cases.jsonl"
    corpus = read_corpus(file)
    assert not corpus.problems
    entries = corpus.sorted()
    assert file.read_text() == "".join(map(line_of, entries))
    assert {entry.case.algorithm for entry in entries} == {name for name, has in KNOWN.items() if family.takes(has)}
    for entry in entries:
        check_sound(entry.case, KNOWN, entry.where)
        assert family.holds(entry.case)


def test_folders_of_libfuzzer_are_imported(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "corpus"
    (source / "crashes").mkdir(parents=True)
    (source / ("0f" * 20)).write_bytes(case_to_bytes(message(1)))
    (source / ("1f" * 20)).write_bytes(case_to_bytes(message(1)))
    (source / "crash-1").write_bytes(case_to_bytes(message(2)))
    (source / "crashes" / "leak-1").write_bytes(case_to_bytes(message(3)))
    (source / "timeout-1").write_bytes(b"\0\1\2")
    assert format_of(source) == "libfuzzer"
    found = run("merge", tmp_path / "new", source)
    assert "new: 3 cases added, 3 in all" in found.out
    assert found.status == 2
    assert "timeout-1: does not begin as a case does" in found.err


@pytest.mark.parametrize("instance", ["", "default", "two"])
def test_folders_of_afl_are_imported(tmp_path: Path, run: Run, instance: str) -> None:
    source = tmp_path / "out" / instance
    for folder, number in (("queue", 0), ("crashes", 1), ("hangs", 2)):
        (source / folder).mkdir(parents=True)
        name = f"id:{number:06},src:000000,time:12,execs:99,op:havoc,rep:2"
        (source / folder / name).write_bytes(case_to_bytes(message(number)))
    (source / "queue" / "id:000001,orig:seed").write_bytes(case_to_bytes(message(0)))
    (source / "queue" / ".state").mkdir()
    (source / "crashes" / "README.txt").write_text("how to reproduce")
    (source / "fuzzer_stats").write_text("cycles_done : 3")
    assert format_of(tmp_path / "out") == "afl"
    found = run("merge", tmp_path / "new", tmp_path / "out")
    assert (found.status, found.err) == (0, "")
    assert "3 cases added, 3 in all" in found.out
    assert "1 cases added" in run("merge", tmp_path / "queue", source / "queue").out


def test_inputs_of_a_target_are_decoded_by_it(tmp_path: Path) -> None:
    for name in ("short", "longer", "empty"):
        (tmp_path / name).write_text(name)

    def decode(data: bytes, where: str) -> Case:
        if data == b"empty":
            raise BadInput(f"{where}: means no operation")
        return message(len(data))

    corpus = gathered([tmp_path], "libfuzzer", KNOWN, decode)
    assert set(corpus.entries) == {entry_of(message(length)).digest for length in (5, 6)}
    assert ["empty: means no operation" in str(problem) for problem in corpus.problems] == [True]


def test_inputs_of_a_target_are_minimised_as_it_decodes_them(run: Run, tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    cell = f"{CTR}/sm4-generic@{NATIVE}"
    for number in range(3):
        (tmp_path / "corpus" / f"{number}").write_bytes(bytes((number, *range(60))))
    found = run("minimise", tmp_path / "new", tmp_path / "corpus", "--cell", cell)
    assert found.status == 2
    assert "of an input of a fuzz target name the target with --target" in found.err
    found = run("minimise", tmp_path / "new", tmp_path / "corpus", "--cell", cell, "--target", "oneshot")
    assert found.status == 0, found.err
    assert "1 of 1 cases cover the same " in found.out  # the three mean one case


def test_cells_without_a_target_are_refused(run: Run, tmp_path: Path) -> None:
    found = run("merge", tmp_path / "new", tmp_path, "--cell", "ctr")
    assert (found.status, found.err.count("\n")) == (2, 1)
    assert "name the target with --target, or leave it out" in found.err


def test_a_folder_that_is_asked_for_as_another_is_said(tmp_path: Path, run: Run) -> None:
    written(tmp_path / "cases", message(1))
    found = run("merge", tmp_path / "new", tmp_path / "cases", "--format", "afl")
    assert "holds no input of afl; name the folder that does" in found.err
    found = run("merge", tmp_path / "new", tmp_path / "cases", "--format", "libfuzzer")
    assert "does not begin as a case does" in found.err


def test_the_least_cover_all_and_small_ones_are_preferred() -> None:
    small, large, other = (entry_of(message(length)) for length in (1, 500, 2))
    assert least([(large, {"a", "b"}), (small, {"a"}), (other, {"b"})]) == sorted(
        [small, other], key=lambda entry: entry.digest
    )
    assert least([(large, {"a", "b", "c"}), (small, {"a"}), (other, {"b"})]) == [large]


def test_minimising_keeps_paths_by_length_class_and_features(tmp_path: Path) -> None:
    manifest = replace(KNOWN[CTR], sessions_per_batch=96)
    batch = generate_batch(manifest, 0)
    entries = [entry_of(case_of(batch, index, CTR)) for index in range(len(batch))]
    selection = Selection((f"{CTR}/sm4-generic@{NATIVE}",), (NATIVE,))
    found = minimise(REGISTRY, entries, selection)
    assert not found.blind
    assert len(found.entries) < len(entries) / 2
    again = minimise(REGISTRY, found.entries, selection)
    assert again.words == found.words
    assert any("sm4-generic@" in word and word.endswith(":2-3+") for word in found.words)
    assert {word for entry in found.entries for word in features_of(entry.case, manifest)} == {
        word for entry in entries for word in features_of(entry.case, manifest)
    }


def test_stats_count_cases_and_features(tmp_path: Path, run: Run) -> None:
    written(tmp_path, message(1), message(40), replace(message(33), algorithm="ctr(aes)"))
    found = run("stats", tmp_path)
    assert found.out.splitlines() == [
        "ctr(aes): 1 cases, 1 messages, 3 operations, 65 bytes, 4 features",
        "ctr(sm4): 2 cases, 2 messages, 6 operations, 105 bytes, 5 features",
        "3 cases of 2 algorithms",
    ]
    rows = json.loads(run("stats", tmp_path, "--json").out)
    assert rows[1]["features"]["len:2-3+"] == 1
    assert rows[1]["features"]["key:16"] == 2


def test_planted_cases_go_by_the_names_of_their_faults() -> None:
    corpus = read_corpora([data_root() / "corpora" / "regressions" / "planted"])
    assert not [text for text in map(str, corpus.problems) if "is the case that" not in text]
    assert len(corpus.entries) > 300


def test_the_canonical_text_is_what_digests_are_of() -> None:
    entry = entry_of(message(7))
    assert json.loads(line_of(entry)) == {"sha256": entry.digest, "case": json.loads(case_to_json(entry.case))}
