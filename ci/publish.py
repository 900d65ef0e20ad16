# SPDX-License-Identifier: Apache-2.0
"""Prints the score of searches for planted faults as Markdown, for the page that a workflow's run has.

    python3 ci/publish.py FILE...

FILE is what ``crosslane selftest --json`` wrote; one that is not there is said, and is no error: the search before it
has failed by itself. Status 2 for a file that is something else.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["main", "page"]

_KEYS = ("seed", "holds", "num_faults", "num_caught", "num_cells", "num_cells_caught", "median_s", "slowest_s",
         "num_controls", "num_green", "lines", "tried")  # fmt: skip


def page(name: str, table: dict[str, Any]) -> Iterator[str]:
    """The lines of one search: its score, and each plant that was tried and does not hold."""
    median, slowest = ("-" if value is None else f"{value:.2f} s" for value in (table["median_s"], table["slowest_s"]))
    yield f"### Planted faults: {name}, {'all hold' if table['holds'] else 'NOT ALL HOLD'}"
    yield ""
    yield "| faults caught | cells | median | slowest | controls green | seed |"
    yield "|---|---|---|---|---|---|"
    yield (
        f"| {table['num_caught']} of {table['num_faults']} | {table['num_cells_caught']} of {table['num_cells']} "
        f"| {median} | {slowest} | {table['num_green']} of {table['num_controls']} | `{table['seed']}` |"
    )
    yield ""
    for item in table["tried"]:
        if not item["holds"]:
            what = "a control that departs" if item["control"] else "not caught"
            yield f"- `{item['name']}` in `{item['cell']}`: {item['text'] or what}"


def _read(path: Path) -> dict[str, Any]:
    table = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(table, dict) or not all(key in table for key in _KEYS):
        raise ValueError(f"it lacks some of {', '.join(_KEYS)}")
    return table


def main(arguments: Sequence[str]) -> int:
    """Print the pages of all files; returns the exit status."""
    if not arguments:
        print("publish: name the files that `crosslane selftest --json` wrote", file=sys.stderr)
        return 2
    for name in arguments:
        path = Path(name)
        if not path.exists():
            print(f"### Planted faults: {path.stem}: no score, the search did not come to its end\n")
            continue
        try:
            print("\n".join(page(path.stem, _read(path))), end="\n\n")
        except (OSError, ValueError) as error:
            print(f"publish: {path}: is no table of `crosslane selftest --json` ({error})", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
