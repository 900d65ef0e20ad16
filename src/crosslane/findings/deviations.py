# SPDX-License-Identifier: Apache-2.0
"""Deviations: findings that somebody accepted, with reason, link and review date (``conformance/deviations.toml``).

A deviation changes the exit status and nothing else: its finding is recorded and counted as before. One whose review
date has passed, and one that a complete run had no use for, are errors. A deviation of a library may be about some of
its versions alone: where another one is judged it is neither in force nor missed.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from crosslane.data import shown
from crosslane.errors import BadInput, HarnessFault
from crosslane.findings.record import Key
from crosslane.tomlread import Field, read_fields, read_toml

__all__ = ["Deviation", "add_deviation", "check_dates", "default_file", "load_deviations", "parse_date", "unused"]

_FIELDS = {
    "finding": Field(kind="str", pattern="[0-9a-f]{12}"),
    "implementation": Field(kind="str"),
    "algorithm": Field(kind="str"),
    "symptom": Field(kind="str"),
    "class": Field(kind="str"),
    "reason": Field(kind="str", pattern=r".{10,}"),
    "link": Field(kind="str", pattern=r"https?://\S+"),
    "review": Field(kind="str", pattern="[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "versions": Field(kind="str", many=True, min_num=1, pattern=r"[A-Za-z0-9.*?+~-]+", optional=True),
}
_HEAD = """# SPDX-License-Identifier: Apache-2.0
# Findings that were accepted: `crosslane findings accept` writes them. One that is unused, and one whose review date
# has passed, is an error.
"""


@dataclass(frozen=True)
class Deviation:
    """An accepted finding; ``review`` is the day from which it is an error.

    ``versions`` are shell patterns of what a library says of its version; none: it is in force for all.
    """

    key: Key
    reason: str
    link: str
    review: dt.date
    versions: tuple[str, ...] = ()

    def is_in_force(self, version: str) -> bool:
        """Whether it is about a subject of that version, which is empty where it is no library."""
        return not self.versions or any(fnmatchcase(version, pattern) for pattern in self.versions)


def default_file(root: Path) -> Path:
    """Where deviations are kept: in a checkout beside the checks, else in the working folder."""
    inside = root / "conformance" / "deviations.toml"
    return inside if (root / "pyproject.toml").is_file() else Path("deviations.toml")


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
        if deviation.key in [item.key for item in found]:
            raise BadInput(f"{shown(path)}: deviation {number} is there twice; remove one")
        found.append(deviation)
    return tuple(found)


def _read_entry(path: Path, entry: object, where: str) -> Deviation:
    values = read_fields(path, entry if isinstance(entry, dict) else {}, _FIELDS, where=where)
    key = Key(values["implementation"], values["algorithm"], values["symptom"], values["class"])
    if key.id != values["finding"]:
        raise BadInput(
            f"{shown(path)}: {where}: finding is {values['finding']!r}, but its four key fields make {key.id}; correct "
            "one of them"
        )
    review = parse_date(values["review"], f"{shown(path)}: {where}")
    return Deviation(key, values["reason"], values["link"], review, values.get("versions", ()))


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
                f"{shown(path)}: the deviation {item.key.id} ({item.key.implementation}, {item.key.algorithm}) was to "
                f"be reviewed by {item.review}; look at it again and set a new date, or remove it"
            )


def unused(
    deviations: Sequence[Deviation], ran: Iterable[tuple[str, str, str]], seen: Iterable[str]
) -> list[Deviation]:
    """Deviations of cells that ran, given as (implementation, algorithm, version), whose finding was not seen."""
    cells, ids = set(ran), set(seen)

    def is_about(item: Deviation) -> bool:
        mine = (item.key.implementation, item.key.algorithm)
        return any(cell[:2] == mine and item.is_in_force(cell[2]) for cell in cells)

    return [item for item in deviations if is_about(item) and item.key.id not in ids]


def add_deviation(path: Path, new: Deviation) -> None:
    """Write one more deviation, or a known one anew; the file is whole or as it was."""
    kept = [item for item in load_deviations(path) if item.key != new.key]
    text = _HEAD
    for item in sorted([*kept, new], key=lambda item: item.key.id):
        values = {
            "finding": item.key.id,
            "implementation": item.key.implementation,
            "algorithm": item.key.algorithm,
            "symptom": item.key.symptom,
            "class": item.key.fault_class,
            "reason": item.reason,
            "link": item.link,
            "review": item.review.isoformat(),
            **({"versions": list(item.versions)} if item.versions else {}),
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
