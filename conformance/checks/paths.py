# SPDX-License-Identifier: Apache-2.0
"""Takes every code path that it declares."""

from __future__ import annotations

from crosslane.checks import Outcome
from crosslane.records import CellResult

__all__ = ["judge"]


def judge(cell: CellResult) -> Outcome:
    """Red for a declared path that no case reached. A path written ``ctr:wrap`` is asked for in ctr alone."""
    if cell.state == "declined":
        return Outcome(None, "the CPU of this lane lacks what it needs")
    if cell.state != "ran":
        return Outcome(False, f"did not run: {cell.reason}")
    if "paths" in cell.unwatched:
        return Outcome(None, "paths cannot be observed in this lane")
    mode = cell.cell.partition("(")[0]
    declared = [name.partition(":") for name in cell.declared_paths]
    wanted = [rest or name for name, colon, rest in declared if not colon or name == mode]
    missing = [name for name in wanted if not cell.paths.get(name)]
    return Outcome(False, f"no case took the declared path {', '.join(missing)}") if missing else Outcome(True)
