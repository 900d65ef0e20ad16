# SPDX-License-Identifier: Apache-2.0
"""Corpora of fuzzing engines: which files of a libFuzzer or an AFL++ folder are inputs, and what they decode to.

libFuzzer keeps inputs flat in one folder, under any name, and artifacts as ``crash-...``, ``leak-...`` and the like
(https://llvm.org/docs/LibFuzzer.html). AFL++ keeps ``id:000000,...`` in ``queue``, ``crashes`` and ``hangs``, in the
output folder or in one of its instances' (https://aflplus.plus/docs/afl-fuzz_approach, "Interpreting output").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from crosslane.corpora_tools.sound import check_sound
from crosslane.corpora_tools.stored import MOST_LOOSE_BYTES, Corpus, Entry, entry_of, files_of, read_bounded
from crosslane.data import shown
from crosslane.errors import BadInput
from crosslane.findings.case import Case
from crosslane.findings.formats import case_from_bytes
from crosslane.manifest import Manifest

__all__ = ["FORMATS", "Decoder", "decode", "foreign_files", "format_of", "read_foreign"]

FORMATS = ("cases", "libfuzzer", "afl")
Decoder = Callable[[bytes, str], Case]
"""Makes a stored case of an input's bytes; raises BadInput, in one sentence that names its second argument."""

_AFL_FOLDERS = ("queue", "crashes", "hangs")
_AFL_INPUT = re.compile(r"id:[0-9]{6,}(,.*)?")
_CASE_NAME = re.compile(r"[0-9a-f]{64}\.json|.+\.jsonl")


def decode(data: bytes, where: str) -> Case:
    """The case of an input that is the binary form of a stored case; raises BadInput for any other."""
    try:
        return case_from_bytes(data, where)
    except BadInput as error:
        raise BadInput(f"{error}; of an input of a fuzz target name the target with --target") from None


def format_of(path: Path) -> str:
    """What a file or folder holds, by the names in it: ``cases``, ``libfuzzer`` or ``afl``."""
    if not path.is_dir():
        return "cases" if _CASE_NAME.fullmatch(path.name) else "libfuzzer"
    if _afl_folders(path):
        return "afl"
    names = [file.name for file in files_of(path)]
    is_cases = not names or any(_CASE_NAME.fullmatch(name) for name in names)
    return "cases" if is_cases else "libfuzzer"


def _afl_folders(path: Path) -> list[Path]:
    """The folders of an AFL++ run whose files are inputs."""
    if any(_AFL_INPUT.fullmatch(file.name) for file in files_of(path)):
        return [path]
    candidates = [path, *sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.is_symlink())]
    return [
        parent / name
        for parent in candidates
        if (parent / "queue").is_dir()
        for name in _AFL_FOLDERS
        if (parent / name).is_dir() and not (parent / name).is_symlink()
    ]


def foreign_files(path: Path, form: str) -> Iterator[Path]:
    """The inputs of a fuzzing engine's folder, or a single one; what else an engine writes there is none."""
    if not path.is_dir():
        yield path
    elif form == "afl":
        for folder in _afl_folders(path):
            yield from (file for file in files_of(folder) if _AFL_INPUT.fullmatch(file.name))
    else:
        yield from files_of(path)
        crashes = path / "crashes"
        if crashes.is_dir() and not crashes.is_symlink():
            yield from files_of(crashes)


def read_foreign(path: Path, form: str, known: dict[str, Manifest], decoder: Decoder = decode) -> Corpus:
    """Read a fuzzing engine's folder. Inputs that decode to one case are one; what decodes to none is a problem."""
    corpus = Corpus()
    for file in foreign_files(path, form):
        try:
            entry = _read(file, known, decoder)
        except BadInput as error:
            corpus.problems.append(error)
            continue
        corpus.entries.setdefault(entry.digest, entry)
    if not corpus.entries and not corpus.problems:
        corpus.problems.append(BadInput(f"{shown(path)}: holds no input of {form}; name the folder that does"))
    return corpus


def _read(file: Path, known: dict[str, Manifest], decoder: Decoder) -> Entry:
    where = shown(file)
    case = decoder(read_bounded(file, MOST_LOOSE_BYTES), where)
    check_sound(case, known, where)
    return entry_of(case, where)
