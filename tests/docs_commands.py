# SPDX-License-Identifier: Apache-2.0
"""Finds the commands of the documentation, and what ``docs/commands.toml`` says of each."""

from __future__ import annotations

import datetime as dt
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

__all__ = ["Command", "Row", "Said", "commands_of", "file_of", "read_table"]

_PROGRAMS = (
    "apt", "apt-get", "awk", "cat", "cc", "clang", "cp", "crosslane", "cryptsetup", "docker", "export", "gcc", "git",
    "grep", "make", "mkdir", "pip", "pipx", "podman", "pre-commit", "printf", "pytest", "python", "python3", "rm",
    "ruff", "sed", "sh", "sphinx-build", "sudo", "towncrier", "tox", "valgrind",
)  # fmt: skip
_FIRST = re.compile(rf"(\w+=\S+ +)*({'|'.join(map(re.escape, _PROGRAMS))}|\.?/?(ci|\.ci|\.venv)/\S+)( |$)")
_ASSIGNMENT = re.compile(r"[A-Z_]+=\S+$")
_SHELLS = ("sh", "shell", "bash", "console")
_SYNOPSIS = re.compile(r" \[(-|[A-Z])|\.\.\.|(?<=\w)\|(?=\w)")
_COMMENT = re.compile(r"\s{2,}#.*$")


@dataclass(frozen=True)
class Said:
    """A command as a page has it: the line it stands in, and whether it is a synopsis, with words to choose from."""

    page: str
    line: int
    text: str

    @property
    def is_synopsis(self) -> bool:
        return _SYNOPSIS.search(self.text) is not None


@dataclass(frozen=True)
class Command:
    """How a command of the pages is run: where, with what in place of its placeholders, and what must come of it.

    ``steps`` run before it. ``says`` is a pattern that its output must have. ``interrupt_s``: it goes on without end,
    and is interrupted then (0: never). ``nightly``: it takes minutes.
    """

    status: tuple[int, ...] = (0,)
    says: str = ""
    where: str = "desk"
    nightly: bool = False
    interrupt_s: float = 0
    steps: tuple[str, ...] = ()
    replace: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """What the table says of a command: how it is run, who runs it otherwise, or why it is not and until when.

    ``run_by`` is a file in which the words ``seen_as`` stand.
    """

    text: str
    run: Command | None
    run_by: str = ""
    seen_as: str = ""
    reason: str = ""
    review: dt.date | None = None


def commands_of(page: Path, name: str) -> Iterator[Said]:
    """The commands in the code blocks of a page; lines that continue are joined."""
    for token in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8")):
        if token.type not in {"fence", "code_block"} or (token.info and token.info not in _SHELLS):
            continue
        line = (token.map or [0])[0]
        for offset, text in _joined(token.content):
            bare = _COMMENT.sub("", text.strip())
            prompted = bare.startswith("$ ")
            words = " ".join(bare.removeprefix("$ ").split())
            in_shell = bool(words) and token.info in _SHELLS[:3] and not words.startswith("#")
            if prompted or in_shell or _FIRST.match(words) or _ASSIGNMENT.match(words):
                yield Said(name, line + offset + 1, words)


def _joined(content: str) -> Iterator[tuple[int, str]]:
    waiting, begun = "", 0
    for number, line in enumerate(content.splitlines()):
        begun = begun if waiting else number
        if line.endswith("\\"):
            waiting += line[:-1]
            continue
        yield begun, waiting + line
        waiting = ""


_RUN_KEYS = {"status", "says", "where", "nightly", "interrupt_s", "steps", "replace"}


def read_table(path: Path) -> dict[str, Row]:
    """Read the table strictly: each row says one of the three things."""
    rows: dict[str, Row] = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["command"]:
        row = _row(dict(entry))
        assert row.text not in rows, f"{path.name}: {row.text!r} has two rows"
        rows[row.text] = row
    return rows


def _row(entry: dict[str, Any]) -> Row:
    text = entry.pop("text")
    if "run_by" in entry:
        assert set(entry) <= {"run_by", "as"}, f"{text!r}: has keys beside run_by and as"
        return Row(text, None, run_by=entry["run_by"], seen_as=entry.get("as", text))
    if "reason" in entry:
        assert set(entry) == {"reason", "review"}, f"{text!r}: a reason needs a review date, and nothing else"
        return Row(text, None, reason=entry["reason"], review=entry["review"])
    assert set(entry) <= _RUN_KEYS, f"{text!r}: has keys that are not known: {sorted(set(entry) - _RUN_KEYS)}"
    status = entry.pop("status", 0)
    statuses = (status,) if isinstance(status, int) else tuple(status)
    return Row(text, Command(**{**entry, "status": statuses, "steps": tuple(entry.get("steps", ()))}))


def file_of(page: Path, name: str) -> str:
    """The block of a page that follows the words that say to write the file."""
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    said = [
        number for number, token in enumerate(tokens) if token.type == "inline" and f"Write `{name}`" in token.content
    ]
    return next(token.content for token in tokens[said[0] :] if token.type in {"fence", "code_block"})


if __name__ == "__main__":
    _page, _name = sys.argv[1:]
    Path(_name).write_text(file_of(Path(__file__).parents[1] / "docs" / "how-to" / _page, _name), encoding="utf-8")
