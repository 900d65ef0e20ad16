# SPDX-License-Identifier: Apache-2.0
"""Tables in the layouts in which figures of implementations were published, from ``published.toml``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslane.bench.jobs import Job, plan_jobs, with_base
from crosslane.errors import BadInput
from crosslane.model import Cell, Lane, Registry
from crosslane.names import DRIVER_PATTERN, WORD_PATTERN
from crosslane.registry import cells
from crosslane.tomlread import Field, read_fields, read_toml

__all__ = ["Table", "choose_tables", "jobs_of", "load_tables"]

_FIELDS = {
    "name": Field(kind="str", pattern=DRIVER_PATTERN),
    "drivers": Field(kind="str", many=True, min_num=1, pattern=DRIVER_PATTERN),
    "base": Field(kind="str", pattern=DRIVER_PATTERN, optional=True),
    "columns": Field(kind="str", many=True, min_num=1, pattern=f"{WORD_PATTERN}-(enc|dec)"),
    "key_lens": Field(kind="int", many=True, min_num=1, least=1),
    "sizes": Field(kind="int", many=True, min_num=1, least=1),
}


@dataclass(frozen=True, kw_only=True)
class Table:
    """One published table: ratios over ``base``, or without one times as slopes. Lengths are in bytes."""

    name: str
    drivers: tuple[str, ...]
    columns: tuple[str, ...]
    key_lens: tuple[int, ...]
    sizes: tuple[int, ...]
    base: str = ""


def load_tables(path: Path | None = None) -> dict[str, Table]:
    """Read the tables by name; raises ``BadInput`` for anything that is not exactly a table."""
    path = path or Path(__file__).with_name("published.toml")
    tables = read_toml(path).pop("table", None)
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise BadInput(f"{path.name}: holds no [[table]] tables; restore the file")
    found = [Table(**read_fields(path, table, _FIELDS, where=f"table {i + 1}")) for i, table in enumerate(tables)]
    return {table.name: table for table in found}


def choose_tables(registry: Registry, lane: Lane, names: Sequence[str]) -> list[Table]:
    """Return the tables of these names, by default all whose drivers the lane's architecture has.

    Raises ``BadInput`` for an unknown name, and for one whose drivers are another architecture's.
    """
    known = load_tables()
    here = {item.driver for item in registry.implementations if item.isa in ("any", lane.arch)}
    fitting = {name: table for name, table in known.items() if here.issuperset(table.drivers)}
    for name in names:
        if name not in fitting:
            why = f"is of drivers that {lane.arch} lacks" if name in known else "is not on file"
            raise BadInput(f"--table {name} {why}; allowed are {', '.join(fitting) or 'none here'}")
    return [fitting[name] for name in names or fitting]


def jobs_of(table: Table, registry: Registry, lane: Lane) -> list[Job]:
    """Return a table's jobs in the order of its columns, a key length after the other."""
    chosen: list[Cell] = [cell for cell in cells(registry) if cell.lane == lane.name and cell.driver in table.drivers]
    jobs = [job for job in plan_jobs(registry, chosen, key_lens=table.key_lens) if job.column in table.columns]
    jobs.sort(key=lambda job: (job.key_len, table.columns.index(job.column)))
    return with_base(registry, jobs, table.base) if table.base else jobs
