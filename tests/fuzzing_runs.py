# SPDX-License-Identifier: Apache-2.0
"""Small campaigns for tests: a planted subject that is wrong in some cases, and what a state and a store have of it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planting import CTR, NATIVE, Plant, lay_out

__all__ = ["CAMPAIGN", "Campaign", "planted_campaign"]

CAMPAIGN = """
title = "small rounds"
workload = "cases"
subjects = "all"
lanes = ["*_native"]
gate = true
[round]
cells = 2
layouts = 2
native = {count}
emulated = {count}
other = {count}
provider = {count}
provider_emulated = {count}
backend = {count}
"""
_COUNTED = {
    "campaign": "name, seed, rounds, planned, comparisons, departed, void",
    "plans": "*",
    "cells": "cell, rounds, comparisons, departed, last_round, digest, state, reason, declined",
    "paths": "*",
    "kinds": "*",
    "findings": "*",
    "left_over": "*",
}


@dataclass(frozen=True)
class Campaign:
    """A campaign in a folder: its state, its findings, the subjects that it runs."""

    folder: Path
    impls: Path
    pattern: str

    @property
    def state(self) -> Path:
        return self.folder / "state.sqlite"

    def command(self, *more: str | Path) -> list[str]:
        """The command line that begins it, or goes on with it."""
        arguments = [
            "fuzz", self.folder / "native.toml", "--cell", self.pattern, "--impls", self.impls, "--state", self.state,
            "--findings", self.folder / "findings", "--seed", "a planted campaign", "--jobs", "2", *more,
        ]  # fmt: skip
        return [sys.executable, "-m", "crosslane", *map(str, arguments)]

    def run(self, *more: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            self.command(*more), capture_output=True, text=True, timeout=200, check=False,
            env=dict(os.environ), **options,
        )  # fmt: skip

    def counts(self) -> dict[str, list[tuple[Any, ...]]]:
        """All that the state counts, without times."""
        connection = sqlite3.connect(f"{self.state.as_uri()}?mode=ro", uri=True)
        try:
            return {
                table: connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2").fetchall()  # noqa: S608 - all from above
                for table, columns in _COUNTED.items()
            }
        finally:
            connection.close()

    def findings(self) -> dict[str, str]:
        """The text of every file of every finding."""
        root = self.folder / "findings"
        return {str(file.relative_to(root)): file.read_text() for file in sorted(root.glob("*/**/*")) if file.is_file()}


def planted_campaign(folder: Path, impls: Path | None = None, count: int = 8_192) -> Campaign:
    """A campaign over a subject that is wrong in few cases, and one that is not; rounds have ``count`` comparisons a
    cell.
    """
    laid = impls or lay_out(folder / "impls", [Plant("rare", "wrong_at_one_len"), Plant("honest")])
    place = folder / "campaign" if impls is None else folder
    place.mkdir(parents=True, exist_ok=True)
    (place / "native.toml").write_text(CAMPAIGN.format(count=count))
    return Campaign(place, laid, f"{CTR}/planted-*@{NATIVE}")
