# SPDX-License-Identifier: Apache-2.0
"""Where a result is written: the options that ``check``, ``gate`` and ``report`` share, and files that are whole.

All files are looked at before a run begins, and written beside their names before the first of them is renamed: either
all are there or none is new.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from crosslane.errors import BadInput, HarnessFault
from crosslane.formats import Gated, Place, junit_text, ktap_text, markdown_text, matrix_lines, sarif_text
from crosslane.results import RunResult, result_text
from crosslane.wholefiles import NotWritten, try_to_write, write_files

__all__ = ["Outputs", "output_options"]

F = TypeVar("F", bound=Callable[..., Any])
Places = Callable[[], Mapping[str, Place]]
Page = Callable[[RunResult, Gated | None], str]
SUMMARY = "GITHUB_STEP_SUMMARY"


def _no_page(*_: object) -> str:
    raise HarnessFault("this command has no HTML report: use `crosslane report`, and report this")


@dataclass(frozen=True)
class Outputs:
    """The files that are asked for, by format. ``summary``: Markdown goes to the page of a workflow's run too.

    ``matrix``: the table of algorithms and lanes is printed. ``places`` says where subjects begin, ``page``
    makes the HTML report. ``inputs`` are files that it is made of.
    """

    files: Mapping[str, Path] = field(default_factory=dict)
    summary: bool = False
    matrix: bool = False
    places: Places = dict
    page: Page = _no_page
    inputs: tuple[Path, ...] = ()

    def check(self, *inputs: Path | None) -> None:
        """Raise BadInput for a file that cannot be written, or is one of ``inputs``, before anything is done for it."""
        seen: dict[Path, str] = {}
        read = {path.resolve() for path in (*self.inputs, *inputs) if path is not None}
        for name, path in self.files.items():
            whole = path.resolve()
            if whole in read:
                raise BadInput(f"{path}: is read too, and would be written over: name another file with --{name}")
            if whole in seen:
                raise BadInput(f"{path}: --{seen[whole]} and --{name} both name it: name two files")
            seen[whole] = name
            self._check_one(name, path)
        if self.summary:
            self._summary_file()

    @staticmethod
    def _check_one(name: str, path: Path) -> None:
        if not path.resolve().parent.is_dir():
            raise BadInput(f"{path}: the folder does not exist: create it or name another file with --{name}")
        if path.is_dir():
            raise BadInput(f"{path}: is a directory: name a file with --{name}")
        try:
            try_to_write(path)
        except OSError as error:
            raise BadInput(
                f"{path}: cannot be written ({error.strerror}): make its folder writable or name another with --{name}"
            ) from None

    @staticmethod
    def _summary_file() -> Path:
        place = os.environ.get(SUMMARY, "")
        if not place:
            raise BadInput(f"--summary writes to the file that the variable {SUMMARY} names, and it is not set: set it")
        path = Path(place)
        try:
            with path.open("a"):
                return path
        except OSError as error:
            raise BadInput(f"{path}: cannot be written ({error.strerror}): correct the variable {SUMMARY}") from None

    def write(self, result: RunResult, gated: Gated | None = None, say: Callable[[str], None] = print) -> None:
        """Write all files, or none and raise HarnessFault."""
        if self.matrix:
            for line in matrix_lines(result):
                say(line)
        texts = {path: _FORMATS[name][1](result, gated, self) for name, path in self.files.items()}
        summary = "\n" + markdown_text(result, gated) if self.summary else ""
        try:
            write_files(texts)
        except NotWritten as error:
            option = next((name for name, path in self.files.items() if path == error.path), "json")
            raise HarnessFault(
                f"{error.path}: the results cannot be written ({error.strerror}): free some space or name another file "
                f"with --{option}; what was compared stands above"
            ) from error
        if summary:
            path = self._summary_file()
            try:
                with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(summary)
            except OSError as error:
                raise HarnessFault(f"{path}: cannot be written ({error.strerror}): free some space") from error


_FORMATS: dict[str, tuple[str, Callable[[RunResult, Gated | None, Outputs], str]]] = {
    "json": ("all results, which `crosslane report` reads", lambda result, _, __: result_text(result)),
    "html": ("the HTML report", lambda result, gated, outputs: outputs.page(result, gated)),
    "junit": ("JUnit XML", lambda result, gated, _: junit_text(result, gated)),
    "sarif": ("SARIF 2.1.0", lambda result, gated, outputs: sarif_text(result, outputs.places(), gated)),
    "ktap": ("KTAP version 1", lambda result, gated, _: ktap_text(result, gated)),
    "markdown": ("Markdown", lambda result, gated, _: markdown_text(result, gated)),
}
"""Each format by the name of its option, with its words for --help and its writer."""


def output_options(function: F) -> F:
    """Add the options to a command, which gets them as one argument ``outputs`` of files, flags and no places."""

    def wrapped(**values: Any) -> Any:
        files = {name: values.pop(f"{name}_file") for name in _FORMATS}
        files = {name: path for name, path in files.items() if path is not None}
        outputs = Outputs(files, summary=values.pop("summary"), matrix=values.pop("matrix"))
        return function(**values, outputs=outputs)

    wrapped.__name__, wrapped.__doc__ = function.__name__, function.__doc__
    wrapped.__dict__.update(function.__dict__)
    made: Any = wrapped
    made = click.option("--matrix", is_flag=True, help="Print a table of algorithms and lanes.")(made)
    made = click.option(
        "--summary", is_flag=True, help=f"Add Markdown to the file that {SUMMARY} names, a workflow's page."
    )(made)
    for name, (words, _) in reversed(_FORMATS.items()):
        made = click.option(f"--{name}", f"{name}_file", type=click.Path(path_type=Path), help=f"Write {words} there.")(
            made
        )
    result: F = made
    return result
