# SPDX-License-Identifier: Apache-2.0
"""What is said to a target: flags of ours, with two dashes, and the engine's, with one.

The engine starts the target again for -merge, -jobs and -fork, with its own flags and without ours: those travel in the
environment.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from crosslane.errors import BadInput
from crosslane.names import nearest

__all__ = ["VARIABLE", "Options", "parse_options"]

VARIABLE = "CROSSLANE_TARGET"
_MANY = {"--cell": "cells", "--impls": "impls"}
_ONE = {"--findings": "findings"}
_NAMES = (*_MANY, *_ONE, "--blind", "--help")


@dataclass(frozen=True)
class Options:
    """Ours. ``blind``: the engine sees nothing of the code under test, which is for comparison."""

    cells: tuple[str, ...] = ()
    impls: tuple[str, ...] = ()
    findings: str = "findings"
    blind: bool = False
    help: bool = False

    def export(self) -> None:
        """Leave them for the processes that the engine starts."""
        os.environ[VARIABLE] = json.dumps(asdict(self))


def _inherited() -> Options:
    text = os.environ.get(VARIABLE)
    if text is None:
        return Options()
    try:
        values = json.loads(text)
        return Options(
            cells=tuple(values["cells"]),
            impls=tuple(values["impls"]),
            findings=values["findings"],
            blind=values["blind"],
        )
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"the variable {VARIABLE} is not one that a target left: unset it") from None


def parse_options(arguments: Sequence[str]) -> tuple[Options, list[str]]:
    """Ours, and all the others in their order; raises BadInput for a flag of ours that there is not."""
    found: dict[str, list[str]] = {}
    rest: list[str] = []
    left = list(arguments)
    while left:
        word = left.pop(0)
        if not word.startswith("--"):
            rest.append(word)
            continue
        name, equals, value = word.partition("=")
        if name not in _NAMES:
            near = ", ".join(nearest(name, _NAMES) or _NAMES)
            raise BadInput(f"a target has no flag {name}: nearest are {near}; the engine's own flags have one dash")
        if name not in ("--blind", "--help") and not equals:
            if not left:
                raise BadInput(f"{name} stands without a value: write {name} VALUE")
            value = left.pop(0)
        found.setdefault(name, []).append(value)
    if not found:
        return _inherited(), rest
    options = Options(
        cells=tuple(found.get("--cell", ())),
        impls=tuple(found.get("--impls", ())),
        findings=found.get("--findings", ["findings"])[-1],
        blind="--blind" in found,
        help="--help" in found,
    )
    return options, rest
