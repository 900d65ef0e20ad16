# SPDX-License-Identifier: Apache-2.0
"""Writes ``corpora/seeds/<family>/cases.jsonl`` anew; says how many cases and bytes each family has."""

from __future__ import annotations

import argparse
from pathlib import Path

from crosslane.corpora_tools.seeding import FAMILIES, seed_plans, seeds_of
from crosslane.corpora_tools.stored import Corpus
from crosslane.corpora_tools.writing import write_cases
from crosslane.data import data_root
from crosslane.registry import load_registry


def main() -> None:
    """Make the seeds of all families."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=data_root() / "corpora" / "seeds", help="folder of the families")
    parser.add_argument("--algorithm", action="append", default=[], help="only these (default: all)")
    given = parser.parse_args()
    plans = seed_plans(load_registry(data_root()))
    for family in FAMILIES:
        entries = [
            entry
            for plan in plans
            if not given.algorithm or str(plan.algorithm) in given.algorithm
            for entry in seeds_of(plan, family)
        ]
        file = given.into / family.name / "cases.jsonl"
        write_cases(file, entries, before=Corpus())
        print(f"{family.name}: {len(entries)} cases, {file.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
