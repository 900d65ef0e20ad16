# SPDX-License-Identifier: Apache-2.0
"""Names of cells and algorithms: strict parsing, patterns, and the nearest names for a mistyped one.

A cell id is ``mode(cipher)/driver[:backend]@lane``; drivers are ``[a-z0-9_-]``, the rest ``[a-z0-9_]``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from crosslane.errors import BadInput
from crosslane.model import Algorithm, Cell

__all__ = [
    "DRIVER_PATTERN",
    "WORD_PATTERN",
    "match_cell",
    "nearest",
    "parse_algorithm",
    "parse_cell",
    "select_cells",
    "unknown_name",
]

WORD_PATTERN = "[a-z0-9_]+"
DRIVER_PATTERN = "[a-z0-9_-]+"
_ALGORITHM = f"(?P<mode>{WORD_PATTERN})\\((?P<cipher>{WORD_PATTERN})\\)"
_CELL = f"{_ALGORITHM}/(?P<driver>{DRIVER_PATTERN})(:(?P<backend>{WORD_PATTERN}))?@(?P<lane>{WORD_PATTERN})"


def parse_algorithm(text: str) -> Algorithm:
    """Parse ``ctr(sm4)``; raises ``BadInput`` for anything else."""
    match = re.fullmatch(_ALGORITHM, text)
    if match is None:
        raise BadInput(
            f"{text!r} is no algorithm; write mode(cipher) in the characters a-z 0-9 _, for example ctr(sm4)"
        )
    return Algorithm(mode=match["mode"], cipher=match["cipher"])


def parse_cell(text: str) -> Cell:
    """Parse a whole cell id, such as ``xts(sm4)/sm4-ce@aarch64_qemu_max``; raises ``BadInput`` for anything else."""
    match = re.fullmatch(_CELL, text)
    if match is None:
        raise BadInput(
            f"{text!r} is no cell id; write mode(cipher)/driver[:backend]@lane, where drivers are of a-z 0-9 _ - and "
            "the rest of a-z 0-9 _, for example ctr(sm4)/sm4-ce@aarch64_qemu_max"
        )
    algorithm = Algorithm(mode=match["mode"], cipher=match["cipher"])
    return Cell(algorithm=algorithm, driver=match["driver"], lane=match["lane"], backend=match["backend"] or "")


def _parts(cell: Cell) -> tuple[str, ...]:
    """All runs of neighbouring parts of the id that a pattern may name."""
    algorithm = str(cell.algorithm)
    subject = f"{cell.driver}:{cell.backend}" if cell.backend else cell.driver
    return (
        str(cell),
        cell.algorithm.mode,
        cell.algorithm.cipher,
        algorithm,
        cell.driver,
        subject,
        cell.lane,
        f"{algorithm}/{subject}",
        f"{subject}@{cell.lane}",
    )


def match_cell(cell: Cell, pattern: str) -> bool:
    """Whether a shell pattern (``*``, ``?``, ``[...]``, case counts) fits the whole id or one part of it."""
    return any(fnmatchcase(part, pattern) for part in _parts(cell))


def select_cells(cells: Sequence[Cell], patterns: Sequence[str]) -> list[Cell]:
    """Return the cells that any pattern fits, in their order; no pattern selects all.

    Raises ``BadInput``, with the nearest names, for a pattern that fits no cell.
    """
    if not patterns:
        return list(cells)
    chosen: set[Cell] = set()
    for pattern in patterns:
        fitting = [cell for cell in cells if match_cell(cell, pattern)]
        if not fitting:
            known = {part for cell in cells for part in _parts(cell)}
            raise unknown_name("pattern", pattern, known, hint="run `crosslane list` for all cells")
        chosen.update(fitting)
    return [cell for cell in cells if cell in chosen]


def nearest(name: str, known: Iterable[str], *, limit: int = 3) -> list[str]:
    """Return at most ``limit`` of the known names that look most like ``name``, best first."""
    plain = name.replace("*", "").replace("?", "").lower()
    return difflib.get_close_matches(plain, sorted(set(known)), n=limit, cutoff=0.55)


def unknown_name(kind: str, name: str, known: Iterable[str], *, hint: str = "") -> BadInput:
    """Return the error for a name that is not known: says the nearest ones, or all where they are few."""
    names = sorted(set(known))
    close = nearest(name, names)
    problem = f"the {kind} {name!r} matches nothing" if kind == "pattern" else f"there is no {kind} {name!r}"
    if close:
        cure = f"nearest are {', '.join(close)}"
    elif not names:
        cure = f"no {kind} could match, because there is none"
    else:
        cure = f"allowed are {', '.join(names)}" if len(names) <= 16 else "nothing is named alike"
    return BadInput("; ".join(part for part in (problem, cure, hint) if part))
