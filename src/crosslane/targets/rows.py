# SPDX-License-Identifier: Apache-2.0
"""What a target runs: a family of cases, and a row for each algorithm of each implementation in its program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosslane.errors import BadInput
from crosslane.manifest import POLICY_BITS, Manifest
from crosslane.model import Algorithm, Cell, Implementation, Lane, Registry
from crosslane.names import match_cell, select_cells, unknown_name
from crosslane.plan import DEFAULT_SEED, manifest_of
from crosslane.registry import cells
from crosslane.wire import Watch

__all__ = ["FAMILIES", "WATCHED", "Choice", "Row", "choose", "rows_of", "rows_text"]

FAMILIES = ("oneshot", "streaming", "aead", "keyschedule")
"""In the order of ``fuzz/targets/native/target.h``."""
WATCHED = Watch.ALL & ~Watch.WIPE
"""Instrumented code hands what it compares to the engine, on the stack: what a call leaves there is not its doing."""
_DEFAULTS = {
    "oneshot": ("ctr(sm4)", "cbc(sm4)", "xts(sm4)", "cts_cbc(sm4)"),
    "streaming": ("ctr(sm4)", "cbc(sm4)", "cfb(sm4)"),
    "aead": ("gcm(sm4)", "ccm(sm4)"),
    "keyschedule": ("ecb(sm4)", "xts(sm4)", "lrw(sm4)"),
}
_DEFAULT_DRIVERS = {"x86_64": "sm4-aesni-avx-x86_64", "aarch64": "sm4-ce"}
_SPLITS = ("byte", "block", "none")
_PARTIALS = ("refused", "anywhere", "stealing")
_IV_OUTS = ("none", "next", "next_whole")
_RUNNERS = ("native", "qemu")


@dataclass(frozen=True)
class Row:
    """One algorithm of one implementation; ``generic`` is the symbol of its oracle."""

    algorithm: Algorithm
    implementation: Implementation
    generic: Implementation
    manifest: Manifest

    @property
    def name(self) -> str:
        """The cell without its lane."""
        return f"{self.algorithm}/{self.implementation.driver}"

    @property
    def key_lens(self) -> tuple[int, ...]:
        """Lengths in bytes of the whole key that the mode takes."""
        return tuple(n * self.manifest.num_keys + self.manifest.key_extra_len for n in self.manifest.key_lens)

    @property
    def families(self) -> tuple[str, ...]:
        """The families that have something to say of the algorithm."""
        if self.manifest.is_aead:
            return ("aead", "keyschedule")
        return ("oneshot", "keyschedule") if self.manifest.split == "none" else ("oneshot", "streaming", "keyschedule")


@dataclass(frozen=True)
class Choice:
    """What a target is to run: the rows of its program and those of them that inputs choose among, in one lane."""

    family: str
    lane: Lane
    rows: tuple[Row, ...]
    chosen: tuple[int, ...]

    @property
    def implementations(self) -> tuple[Implementation, ...]:
        """Those under test, each once."""
        return tuple(dict.fromkeys(row.implementation for row in self.rows))

    @property
    def generics(self) -> tuple[Implementation, ...]:
        """Those that answer for them."""
        return tuple(dict.fromkeys(row.generic for row in self.rows))

    @property
    def cells(self) -> tuple[str, ...]:
        """Ids of the chosen cells, in the order in which inputs name them."""
        return tuple(f"{self.rows[i].name}@{self.lane.name}" for i in self.chosen)


def rows_of(registry: Registry, implementations: Sequence[Implementation]) -> tuple[Row, ...]:
    """The rows of a program with these implementations: every algorithm that the registry has cells of."""
    made = []
    every = {(cell.algorithm, cell.driver) for cell in cells(registry)}
    generics = {item.cipher: item for item in registry.implementations if item.is_generic}
    for item in implementations:
        for algorithm in sorted(algorithm for algorithm, driver in every if driver == item.driver):
            manifest = manifest_of(registry, algorithm, DEFAULT_SEED)
            made.append(Row(algorithm, item, generics[algorithm.cipher], manifest))
    return tuple(made)


def _default_patterns(family: str, lane: Lane) -> tuple[str, ...]:
    return tuple(f"{name}/{_DEFAULT_DRIVERS[lane.arch]}@{lane.name}" for name in _DEFAULTS[family])


def choose(registry: Registry, family: str, patterns: Sequence[str], native: Lane) -> Choice:
    """The cells that patterns mean, of which a target takes those of one lane; without any, the family's own.

    Raises BadInput, with the nearest names, for a pattern that fits nothing, for cells of a library, of several lanes,
    of one that a target cannot run in, or of algorithms that the family has nothing to say of.
    """
    wanted = tuple(patterns) or _default_patterns(family, native)
    offered = list(cells(registry))
    chosen = select_cells(offered, wanted)
    drivers = {item.driver: item for item in registry.implementations}
    own = [cell for cell in chosen if cell.driver in drivers and not cell.backend]
    if not own:
        raise BadInput(
            f"{wanted[0]!r} means cells of libraries, such as {chosen[0]}, and a target is built of sources: name an "
            "implementation's, as `crosslane list implementations` prints them"
        )
    lane = _lane_of(registry, own, wanted[0], native)
    own = [cell for cell in own if cell.lane == lane.name]
    implementations = tuple(dict.fromkeys(drivers[cell.driver] for cell in own))
    rows = rows_of(registry, implementations)
    numbers = {row.name: i for i, row in enumerate(rows)}
    fitting = [
        numbers[f"{cell.algorithm}/{cell.driver}"]
        for cell in own
        if family in rows[numbers[f"{cell.algorithm}/{cell.driver}"]].families
    ]
    if not fitting:
        modes = sorted({row.algorithm.mode for row in rows if family in row.families})
        raise BadInput(
            f"no cell of {wanted[0]!r} is of the family {family}, whose modes are {', '.join(modes)}; run another "
            f"target, or name a cell such as {modes[0] if modes else 'ctr'}({own[0].algorithm.cipher})/{own[0].driver}"
        )
    return Choice(family, lane, rows, tuple(fitting))


def _is_usable(lane: Lane) -> bool:
    """Whether a target can run in a lane: built as usual, where code paths can be seen."""
    return lane.usual and not lane.hides and not lane.suite and lane.arch in _DEFAULT_DRIVERS


def _lane_of(registry: Registry, own: Sequence[Cell], pattern: str, native: Lane) -> Lane:
    """The one lane of some cells: the native one where a pattern leaves it open."""
    names = sorted({cell.lane for cell in own})
    lanes = {lane.name: lane for lane in registry.lanes}
    usable = [name for name in names if _is_usable(lanes[name])]
    open_pattern = "@" not in pattern and not any(match_cell(cell, pattern) and cell.lane == pattern for cell in own)
    if open_pattern and native.name in usable:
        return native
    if open_pattern and len(usable) > 1:
        usable = [name for name in usable if name.endswith("_max")] or usable
    if not usable:
        known = [lane.name for lane in registry.lanes if _is_usable(lane)]
        raise unknown_name("lane that a target can run in", names[0], known, hint="end the cell with @ and one of them")
    if len(usable) > 1:
        raise BadInput(
            f"{pattern!r} means cells of the lanes {', '.join(usable)}, and a target runs in one: "
            f"end it with @{usable[0]}"
        )
    return lanes[usable[0]]


def _list(values: Sequence[int]) -> str:
    return f"{len(values)}, {{{', '.join(map(str, values)) or '0'}}}"


def rows_text(rows: Sequence[Row]) -> str:
    """The C source of ``target_rows``, which ``target.h`` declares."""
    lines = ['#include "target.h"', "", "const struct target_row target_rows[] = {"]
    for row in rows:
        m = row.manifest
        words = (row.name, row.algorithm.mode, row.implementation.symbol, row.generic.symbol, row.algorithm.cipher)
        families = sum(1 << FAMILIES.index(name) for name in row.families)
        numbers = (
            families, m.block_len, m.min_len_blocks * m.block_len, _SPLITS.index(m.split), _PARTIALS.index(m.partial),
            _IV_OUTS.index(m.iv_out), int(m.is_mac), int(m.is_aead), int("decrypt" in m.directions),
            sum(POLICY_BITS[name] for name in m.policies),
        )  # fmt: skip
        names = ", ".join(f'"{word}"' for word in words)
        lists = ", ".join(_list(values) for values in (row.key_lens, m.iv_lens, m.tag_lens))
        lines.append(f"    {{{names}, {lists}, {', '.join(map(str, numbers))}}},")
    zeros = f"NULL, NULL, NULL, NULL, NULL, {', '.join([_list(())] * 3)}, {', '.join('0' * 10)}"
    return "\n".join([*lines, f"    {{{zeros}}},", "};", ""])
