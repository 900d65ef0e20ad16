# SPDX-License-Identifier: Apache-2.0
"""Deviations: findings that somebody accepted, with reason, link and review date (``conformance/deviations.toml``).

A deviation changes the exit status and nothing else: its finding is recorded and counted as before. One whose review
date has passed, and one that a complete run had no use for, are errors. A deviation of a library may be about some of
its versions alone: where another one is judged it is neither in force nor missed.

Most name one finding by its id. One fault of a library that shows in many algorithms and with many keys has a finding
for each: a deviation by pattern accepts all of them, in the versions that it names. Each algorithm that it fits must
show it.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from crosslane.data import is_checkout, shown
from crosslane.errors import BadInput, HarnessFault
from crosslane.findings.record import Key
from crosslane.tomlread import Field, read_fields, read_toml

__all__ = [
    "Deviation",
    "Ran",
    "add_deviation",
    "check_dates",
    "default_file",
    "load_deviations",
    "parse_date",
    "unused",
]

_REASONS = {
    "reason": Field(kind="str", pattern=r".{10,}"),
    "link": Field(kind="str", pattern=r"https?://\S+"),
    "review": Field(kind="str", pattern="[0-9]{4}-[0-9]{2}-[0-9]{2}"),
}
_VERSION = r"[A-Za-z0-9.*?+~-]+"
_FIELDS = {
    "finding": Field(kind="str", pattern="[0-9a-f]{12}"),
    "implementation": Field(kind="str"),
    "algorithm": Field(kind="str"),
    "symptom": Field(kind="str"),
    "class": Field(kind="str"),
    **_REASONS,
    "versions": Field(kind="str", many=True, min_num=1, pattern=_VERSION, optional=True),
}
_PATTERN_FIELDS = {
    "provider": Field(kind="str", pattern=r"[a-z0-9_-]+(:[a-z0-9_*?]+)?"),
    "algorithm": Field(kind="str", pattern=r"[a-z0-9_*?]+\([a-z0-9_*?]+\)"),
    "symptom": Field(kind="str", pattern="[a-z_]+"),
    "class": Field(kind="str", pattern=r"[a-z0-9_:+=,*?]+"),
    "versions": Field(kind="str", many=True, min_num=1, pattern=_VERSION),
    "lanes": Field(kind="str", many=True, min_num=1, pattern="[a-z0-9_*?]+", optional=True),
    **_REASONS,
}
"""Of a deviation by pattern: ``algorithm``, ``class``, ``versions``, ``lanes`` and a backend are shell patterns."""
_HEAD = """# SPDX-License-Identifier: Apache-2.0
# Findings that were accepted: `crosslane findings accept` writes them; those of a provider by patterns are written by
# hand. One that is unused, and one whose review date has passed, is an error.
"""


@dataclass(frozen=True)
class Ran:
    """A cell that ran: its implementation with the backend, algorithm, lane, and the version of its library if any."""

    implementation: str
    algorithm: str
    lane: str
    version: str = ""


@dataclass(frozen=True)
class Deviation:
    """An accepted finding; ``review`` is the day from which it is an error.

    ``versions`` are shell patterns of what a library says of its version; none: it is in force for all. ``by_pattern``:
    ``key`` holds shell patterns, but for the symptom, and ``lanes`` are those of the only lanes that it is about.
    """

    key: Key
    reason: str
    link: str
    review: dt.date
    versions: tuple[str, ...] = ()
    by_pattern: bool = False
    lanes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The finding's id, or the pattern of algorithms where it is about many."""
        return f"of {self.key.algorithm}" if self.by_pattern else self.key.id

    def is_in_force(self, version: str) -> bool:
        """Whether it is about a subject of that version, which is empty where it is no library."""
        return not self.versions or any(fnmatchcase(version, pattern) for pattern in self.versions)

    def is_about(self, cell: Ran) -> bool:
        """Whether the cell may show it."""
        mine = (self.key.implementation, self.key.algorithm)
        theirs = (cell.implementation, cell.algorithm)
        fits = all(map(fnmatchcase, theirs, mine)) if self.by_pattern else theirs == mine
        here = not self.lanes or any(fnmatchcase(cell.lane, pattern) for pattern in self.lanes)
        return fits and here and self.is_in_force(cell.version)

    def accepts(self, key: Key, cell: Ran) -> bool:
        """Whether a finding that the cell shows is an accepted one."""
        if not self.by_pattern:
            return key == self.key and self.is_in_force(cell.version)
        return (
            self.is_about(cell)
            and key.symptom == self.key.symptom
            and fnmatchcase(key.fault_class, self.key.fault_class)
        )


def default_file(root: Path) -> Path:
    """Where deviations are kept: in a checkout beside the checks, else in the working folder."""
    inside = root / "conformance" / "deviations.toml"
    return inside if is_checkout(root) else Path("deviations.toml")


def load_deviations(path: Path) -> tuple[Deviation, ...]:
    """Read deviations strictly; none where the file does not exist. Raises BadInput."""
    if not path.exists():
        return ()
    table = read_toml(path)
    entries = table.get("deviation", [])
    if set(table) - {"deviation"} or not isinstance(entries, list):
        raise BadInput(f"{shown(path)}: has other tables than [[deviation]]; remove or rename them")
    found: list[Deviation] = []
    for number, entry in enumerate(entries, 1):
        deviation = _read_entry(path, entry, f"deviation {number}")
        if _same(deviation) in [_same(item) for item in found]:
            raise BadInput(f"{shown(path)}: deviation {number} is there twice; remove one")
        found.append(deviation)
    return tuple(found)


def _same(item: Deviation) -> tuple[object, ...]:
    """What two deviations may not share: with one finding there is one, with one pattern one for the same versions."""
    return (item.key, item.by_pattern, *((item.versions, item.lanes) if item.by_pattern else ()))


def _read_entry(path: Path, entry: object, where: str) -> Deviation:
    table = entry if isinstance(entry, dict) else {}
    by_pattern = "provider" in table
    values = read_fields(path, table, _PATTERN_FIELDS if by_pattern else _FIELDS, where=where)
    who = values["provider" if by_pattern else "implementation"]
    key = Key(who, values["algorithm"], values["symptom"], values["class"])
    if not by_pattern and key.id != values["finding"]:
        raise BadInput(
            f"{shown(path)}: {where}: finding is {values['finding']!r}, but its four key fields make {key.id}; correct "
            "one of them"
        )
    review = parse_date(values["review"], f"{shown(path)}: {where}")
    more = (values.get("versions", ()), by_pattern, values.get("lanes", ()))
    return Deviation(key, values["reason"], values["link"], review, *more)


def parse_date(text: str, where: str) -> dt.date:
    """A day as YYYY-MM-DD; raises BadInput."""
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{where}: {text!r} is no date; write a day as 2027-03-31") from None


def check_dates(deviations: Iterable[Deviation], path: Path, today: dt.date) -> None:
    """Raise BadInput for a deviation whose review is due."""
    for item in deviations:
        if item.review < today:
            raise BadInput(
                f"{shown(path)}: the deviation {item.name} ({item.key.implementation}, {item.key.algorithm}) was to "
                f"be reviewed by {item.review}; look at it again and set a new date, or remove it"
            )


def unused(
    deviations: Sequence[Deviation], ran: Iterable[Ran], seen: Iterable[tuple[Key, Ran]]
) -> list[tuple[Deviation, str]]:
    """Deviations of cells that ran and did not show them, each with the algorithm; ``seen`` are findings and cells."""
    cells, shown_by = tuple(ran), tuple(seen)
    return [
        (item, algorithm)
        for item in deviations
        for algorithm in sorted({cell.algorithm for cell in cells if item.is_about(cell)})
        if not any(item.accepts(key, cell) for key, cell in shown_by if cell.algorithm == algorithm)
    ]


def add_deviation(path: Path, new: Deviation) -> None:
    """Write one more deviation, or a known one anew; the file is whole or as it was."""
    kept = [item for item in load_deviations(path) if _same(item) != _same(new)]
    text = _HEAD
    for item in sorted([*kept, new], key=lambda item: (item.by_pattern, item.key.id, item.versions, item.lanes)):
        values = {
            **({} if item.by_pattern else {"finding": item.key.id}),
            "provider" if item.by_pattern else "implementation": item.key.implementation,
            "algorithm": item.key.algorithm,
            "symptom": item.key.symptom,
            "class": item.key.fault_class,
            "reason": item.reason,
            "link": item.link,
            "review": item.review.isoformat(),
            **({"versions": list(item.versions)} if item.versions else {}),
            **({"lanes": list(item.lanes)} if item.lanes else {}),
        }
        text += "\n[[deviation]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())
    made = path.with_name(f".new-{path.name}")
    try:
        made.write_text(text, encoding="utf-8")
        made.replace(path)
    except OSError as error:
        made.unlink(missing_ok=True)
        raise HarnessFault(
            f"{shown(path)}: the deviation cannot be written ({error.strerror}): make it writable or name another file "
            "with --deviations"
        ) from None
