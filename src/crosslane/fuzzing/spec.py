# SPDX-License-Identifier: Apache-2.0
"""Campaigns as data: ``fuzz/campaigns/<name>.toml`` says which cells, which workload, and how much a round is."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from crosslane.data import shown
from crosslane.errors import BadInput
from crosslane.lanes import lanes_for_host
from crosslane.model import Lane, Registry
from crosslane.names import unknown_name
from crosslane.plan import AlgorithmPlan, Counts, Selection
from crosslane.tomlread import Field, read_fields, read_toml

__all__ = ["DEFAULT_CAMPAIGN", "Campaign", "campaign_names", "load_campaign", "read_campaign"]

DEFAULT_CAMPAIGN = "everything"
_NAME = re.compile(r"[a-z0-9_]+")
_FIELDS = {
    "title": Field(kind="str", pattern=r"\S(.*\S)?"),
    "workload": Field(kind="str", allowed=("cases", "disk")),
    "subjects": Field(kind="str", allowed=("all", "implementations", "libraries")),
    "lanes": Field(kind="str", many=True, min_num=1, pattern=r"\S+"),
    "gate": Field(kind="bool"),
    "cells": Field(kind="str", many=True, optional=True, pattern=r"\S+"),
}
_ROUND_FIELDS = {
    "cells": Field(kind="int", least=1),
    "layouts": Field(kind="int", least=1),
    **{name: Field(kind="int", least=1) for name in vars(Counts())},
}


@dataclass(frozen=True)
class Campaign:
    """What is run without end: its name and title, the workload, whose cells, in which lanes, and what a round is.

    ``lanes`` are shell patterns over the names of lanes, with ``gate`` over those of the gate alone; ``cells`` are
    patterns of cells, none for all. ``num_cells`` is how many cells of one algorithm a round has at most, ``counts``
    are the comparisons of each of them, and ``layouts`` the batches with the same data.
    """

    name: str
    title: str
    workload: str
    subjects: str
    lanes: tuple[str, ...]
    gate: bool
    cells: tuple[str, ...]
    num_cells: int
    layouts: int
    counts: Counts

    def with_layouts(self, plan: AlgorithmPlan) -> AlgorithmPlan:
        """A plan whose batches have the same data in so many layouts, as a campaign of cases runs them."""
        return replace(plan, manifest=replace(plan.manifest, layouts=self.layouts if self.layouts > 1 else 0))

    def selection(self, registry: Registry, patterns: tuple[str, ...]) -> Selection:
        """The selection of cells; ``patterns`` of the user narrow it. Raises BadInput where no lane fits."""
        lanes = tuple(lane.name for lane in lanes_for_host(registry) if self._has(lane))
        if not lanes:
            raise BadInput(
                f"the campaign {self.name} has the lanes {', '.join(self.lanes)}, and this host has none of them: "
                "give another campaign"
            )
        return Selection(patterns or self.cells, lanes)

    def _has(self, lane: Lane) -> bool:
        return (lane.gate or not self.gate) and any(fnmatchcase(lane.name, pattern) for pattern in self.lanes)


def campaign_names(root: Path) -> list[str]:
    """The names of the campaigns under the content root, sorted."""
    return sorted(path.stem for path in (root / "fuzz" / "campaigns").glob("*.toml"))


def load_campaign(root: Path, name: str) -> Campaign:
    """The campaign of a name, or of a file that ends in .toml; raises BadInput, with the nearest names, for neither."""
    if name.endswith(".toml"):
        return read_campaign(Path(name))
    if name not in campaign_names(root):
        raise unknown_name("campaign", name, campaign_names(root))
    return read_campaign(root / "fuzz" / "campaigns" / f"{name}.toml")


def read_campaign(path: Path) -> Campaign:
    """Read a campaign's file, strictly; raises BadInput."""
    if not _NAME.fullmatch(path.stem):
        raise BadInput(f"{shown(path)}: the name of a campaign consists of a-z, 0-9 and _; rename the file")
    table = read_toml(path)
    round_table = table.pop("round", None)
    if not isinstance(round_table, dict):
        raise BadInput(f"{shown(path)}: the table [round] is missing; add it ({', '.join(_ROUND_FIELDS)})")
    values = read_fields(path, table, _FIELDS)
    counts = read_fields(path, round_table, _ROUND_FIELDS, where="[round]")
    num_cells, layouts = counts.pop("cells"), counts.pop("layouts")
    values.setdefault("cells", ())
    return Campaign(name=path.stem, **values, num_cells=num_cells, layouts=layouts, counts=Counts(**counts))
