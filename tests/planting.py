# SPDX-License-Identifier: Apache-2.0
"""Plants faults: lays tests/planted out as a folder for ``--impls``, builds it, and runs it through the engine."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crosslane import sandbox
from crosslane.build import build_launcher, build_shim
from crosslane.campaign import with_judgements
from crosslane.checks import load_checks
from crosslane.conduct import conduct
from crosslane.data import data_root
from crosslane.execute import Station
from crosslane.isa import host_arch
from crosslane.lanes import lane_named
from crosslane.manifest import Manifest
from crosslane.model import Cell, Implementation, Lane
from crosslane.names import parse_algorithm
from crosslane.plan import AlgorithmPlan, Selection, make_plans, manifest_of
from crosslane.records import CellResult
from crosslane.registry import load_registry
from crosslane.toolchain import runner_command

__all__ = ["CTR", "EMULATED", "LANES", "NATIVE", "SAME_EMULATED", "Plant", "Planted", "lay_out"]

PLANTED = Path(__file__).parent / "planted"
HOST = host_arch()
NATIVE = f"{HOST}_native"
EMULATED = f"{'aarch64' if HOST == 'x86_64' else 'x86_64'}_qemu_max"
SAME_EMULATED = f"{HOST}_qemu_max"
LANES = (NATIVE, EMULATED)
CTR = "ctr(sm4)"

_IMPL = """# SPDX-License-Identifier: Apache-2.0
driver = "planted-{driver}"
isa = "{isa}"
features = [{features}]
priority = 150
ways = 1
sources = [{sources}]
fused = [{fused}]
paths = [{paths}]
constant_time = false
wipes = {wipes}
description = "Planted by the tests."
"""
_X86_FEATURES = ("ssse3", "sse4_1", "aes", "pclmul", "avx")


@dataclass(frozen=True)
class Plant:
    """One planted subject: a function of faults.h, or instructions at the entry or the return of its ctr (leaf.c),
    or statements in its getter.
    """

    name: str
    fault: str = "honest"
    entry: str = ""
    leave: str = ""
    getter: str = ""
    counter_len: int = 16
    isa: str = "any"
    features: tuple[str, ...] = ()
    paths: tuple[str, ...] = ("ctr",)
    source: str = "leaf.c"
    fused: tuple[str, ...] = ("ctr",)
    wipes: bool = False
    assembly: str = ""  # a .S file beside it, with the instructions `leave` just before its function returns

    @property
    def header(self) -> str:
        """The text of fault.h."""
        needs = sum(1 << _X86_FEATURES.index(feature) for feature in self.features)
        return (
            "/* SPDX-License-Identifier: Apache-2.0 */\n"
            f"#define FAULT {self.fault}\n#define GETTER sm4_{self.name}\n#define NEEDS UINT64_C({needs})\n"
            f"#define COUNTER_LEN {self.counter_len}\n"
            f"#define AT_GETTER {self.getter}\n"
            f"#define AT_LEAVE {self.leave if self.assembly else ''}\n"
            f'#define AT_ENTRY "{self.entry}"\n#define AT_RETURN "{self.leave}"\n'
        )


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def lay_out(folder: Path, plants: Sequence[Plant]) -> Path:
    """Write every plant as ``<folder>/sm4/<name>`` and return ``folder``, which ``--impls`` takes."""
    for plant in plants:
        place = folder / "sm4" / plant.name
        place.mkdir(parents=True)
        sources = [plant.source, "faults.h", "sm4.h", *([plant.assembly] if plant.assembly else [])]
        for name in sources:
            shutil.copy(PLANTED / name, place / name)
        (place / "fault.h").write_text(plant.header)
        text = _IMPL.format(
            driver=plant.name,
            isa=plant.isa,
            features=_quoted(plant.features),
            sources=_quoted([*sources, "fault.h"]),
            fused=_quoted(plant.fused),
            paths=_quoted(plant.paths),
            wipes=str(plant.wipes).lower(),
        )
        (place / "impl.toml").write_text(text)
    return folder


class Planted:
    """Some plants, one program for each lane that is asked for (they are honest about each other)."""

    def __init__(self, folder: Path, plants: Sequence[Plant]) -> None:
        """Lay the plants out; nothing is built yet."""
        self.registry = load_registry(data_root(), [lay_out(folder, plants)])
        self.checks = load_checks(self.registry.root)
        self.launcher = build_launcher(self.registry.root)
        self._programs: dict[str, Path] = {}
        self._plan: AlgorithmPlan | None = None

    def lane(self, name: str) -> Lane:
        """The lane of that name."""
        return lane_named(self.registry.lanes, name)

    def implementation(self, name: str) -> Implementation:
        """The planted implementation of that name."""
        return next(item for item in self.registry.implementations if item.driver == f"planted-{name}")

    def _program(self, lane: Lane) -> Path:
        kind = f"{lane.arch} {lane.abi}"
        if kind not in self._programs:
            every = self.registry.implementations
            group = tuple(item for item in every if lane.takes(item) and item.origin != "own")
            self._programs[kind] = build_shim(self.registry, lane, group)
        return self._programs[kind]

    def station(self, name: str, lane_name: str, mode: str = "ctr") -> Station:
        """How to start a planted implementation in a lane."""
        lane, implementation = self.lane(lane_name), self.implementation(name)
        program = self._program(lane)
        runner = runner_command(lane)
        command = sandbox.launcher_argv(
            self.launcher,
            [*runner, str(program)],
            memory_limit=4 << 30,
            cpu_limit_s=60,
            read_paths=[program, *(sandbox.system_read_paths() if runner else ())],
            require=False,
        )
        return Station(tuple(command), implementation.symbol, mode, implementation.cipher)

    def manifest(self, algorithm: str = CTR, **changes: Any) -> Manifest:
        """The manifest of an algorithm in small batches, with some more fields changed."""
        manifest = manifest_of(self.registry, parse_algorithm(algorithm), "planted faults are found")
        return replace(manifest, **{"sessions_per_batch": 256, **changes})

    def _template(self) -> AlgorithmPlan:
        """The plan of ctr(sm4) as it is made for our own generic implementation."""
        if self._plan is None:
            own = load_registry(self.registry.root)
            self._plan = make_plans(own, Selection((f"{CTR}/sm4-generic@{NATIVE}",), (NATIVE,))).algorithms[0]
        return self._plan

    def run(
        self, name: str, lane_name: str, count: int, *, station: Station | None = None, large_len: int = 0
    ) -> CellResult:
        """Run ``count`` comparisons of one planted subject in ctr(sm4), as ``crosslane check`` does, and judge them."""
        template = self._template()
        implementation = self.implementation(name)
        lane = self.lane(lane_name)
        cell = replace(
            template.cells[0],
            cell=Cell(template.algorithm, implementation.driver, lane_name),
            needed_features=implementation.features,
            arch=lane.arch,
            native=lane.runner == "native",
            paths=implementation.paths,
            ways=implementation.ways,
            wipes=implementation.wipes,
            hides=lane.hides,
            declared=implementation.paths,
            station=station or self.station(name, lane_name),
            comparisons=count,
        )
        plan = replace(template, manifest=self.manifest(), cells=(cell,), vectors=(), large_len=large_len)
        return with_judgements([conduct(plan)], self.checks)[0].cells[0]
