# SPDX-License-Identifier: Apache-2.0
"""The page: all parts of a run through the templates, escaped, under a policy that lets the page load nothing.

The policy names the one style and the one script by their digests, so that what a subject wrote would neither run nor
load anything even where an escape had failed.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from crosslane import __version__
from crosslane.formats.outcomes import Gated, plain
from crosslane.html.benches import BenchPart
from crosslane.html.found import findings_of, red_cells
from crosslane.html.head import head_of
from crosslane.html.looks import LOOKS
from crosslane.html.rest import idle_of, libraries_of, proofs_of, speeds_of
from crosslane.html.tables import CLASSES, tables_of
from crosslane.results import RunResult

__all__ = ["html_text"]

_FOLDER = Path(__file__).parent / "templates"
_LONGEST = 4000
"""Characters of one value: a subject may have said more than anybody reads."""


def html_text(
    result: RunResult, gated: Gated | None = None, *, findings: Path | None = None, bench: BenchPart | None = None
) -> str:
    """The whole file. ``findings`` is the folder that findings are kept in, ``bench`` what is plotted.

    Raises BadInput where the file of deviations is not as it should be.
    """
    style, script = _asset("style.css"), _asset("script.js")
    found = findings_of(result, findings)
    values: dict[str, Any] = {
        "policy": _policy(style, script),
        "style": style,
        "script": script,
        "program": f"Crosslane {__version__}",
        "result": result,
        "cells": list(result.cells()),
        "gated": gated,
        "head": head_of(result, found, gated),
        "looks": list(LOOKS.values()),
        "classes": CLASSES,
        "tables": tables_of(result),
        "found": found,
        "reds": red_cells(result),
        "speeds": speeds_of(result),
        "proofs": proofs_of(result.proofs),
        "idle": idle_of(result),
        "libraries": libraries_of(result),
        "bench": bench,
    }
    return _environment().get_template("report.html").render(values)


def _asset(name: str) -> Markup:
    """A file of ours that goes into the page as it is."""
    return Markup((_FOLDER / name).read_text(encoding="utf-8"))  # noqa: S704 - a file of this package


def _policy(style: str, script: str) -> str:
    """The content security policy. Source of the form: W3C, Content Security Policy Level 3."""
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    made.filters.update(rate=_rate, parts=_parts)
    return made


def _harmless(value: object) -> object:
    """Text without characters that turn or hide other text, and not without end; what is markup stays."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = plain(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … and {len(text) - _LONGEST} more characters"


def _parts(lane: str) -> list[str]:
    """The parts of a lane's name, between which it may be broken."""
    return re.findall("x86_64|[^_]+", lane)


def _rate(value: float) -> str:
    """A rate in few characters: ``29.5 k``, ``1.20 M``."""
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}" if value < 1000 * size else f"{value / size:,.0f}{unit}"
    return f"{value:.3g}"
