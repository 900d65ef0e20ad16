# SPDX-License-Identifier: Apache-2.0
"""Lanes: the execution configurations of ``ci/lanes.toml``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosslane.data import shown
from crosslane.errors import BadInput
from crosslane.isa import ALL_ARCHES, ARCHES, FEATURES, FLOORS, host_arch
from crosslane.model import Lane, Registry
from crosslane.names import WORD_PATTERN, unknown_name
from crosslane.tomlread import Field, read_fields, read_toml

__all__ = ["lane_named", "lanes_for_host", "load_lanes"]

_FIELDS = {
    "comment": Field(kind="str", pattern="[^\n]+"),
    "arch": Field(kind="str", allowed=ALL_ARCHES),
    "runner": Field(kind="str", allowed=("native", "qemu")),
    "cpu": Field(kind="str", pattern="[A-Za-z0-9_.,=+-]*"),
    "compiler": Field(kind="str", allowed=("gcc", "clang"), optional=True),
    "sanitizer": Field(kind="str", allowed=("none", "address", "undefined")),
    "opt": Field(kind="str", allowed=("-O0", "-O1", "-O2", "-O3", "-Os")),
    "lto": Field(kind="bool", optional=True),
    "protector": Field(kind="bool", optional=True),
    "floor": Field(kind="str", optional=True),
    "hosts": Field(kind="str", many=True, min_num=1, allowed=ARCHES),
    "hides": Field(kind="str", many=True),
    "gate": Field(kind="bool"),
    "full": Field(kind="str", many=True, allowed=ARCHES),
    "abi": Field(kind="str", allowed=("system", "win64"), optional=True),
}
_DEFAULTS: dict[str, Any] = {"compiler": "gcc", "lto": False, "protector": False, "floor": ""}


def load_lanes(path: Path, *, host: str | None = None) -> tuple[Lane, ...]:
    """Read a lanes file, in its order; ``host`` (default: this machine) decides which lanes are ``full``.

    Raises ``BadInput`` for anything that is not exactly a lane.
    """
    tables = read_toml(path)
    if not tables:
        raise BadInput(f"{shown(path)}: there is no lane; add a table such as [x86_64_native]")
    return tuple(_read_lane(path, name, table, host or host_arch()) for name, table in tables.items())


def _read_lane(path: Path, name: str, table: Any, host: str) -> Lane:
    if not isinstance(table, dict):
        raise BadInput(f"{shown(path)}: {name!r} is no table; write each lane as [name] with its keys below")
    values = _DEFAULTS | read_fields(path, table, _FIELDS, where=f"[{name}]")
    place = f"{shown(path)}: [{name}]: "
    arch, runner, cpu = values["arch"], values["runner"], values["cpu"]
    if not re.fullmatch(f"{re.escape(arch)}_{WORD_PATTERN}", name):
        raise BadInput(f"{place}the name must be of the form {arch}_{WORD_PATTERN}, after its arch; rename the table")
    if runner == "native" and (cpu or values["hosts"] != (arch,)):
        raise BadInput(f'{place}a native lane has cpu = "" and hosts = ["{arch}"]; correct both or use runner = "qemu"')
    if runner == "qemu" and not cpu:
        raise BadInput(f'{place}cpu is empty; a qemu lane needs a CPU model, for example cpu = "max"')
    _check_build(place, values)
    if values.get("abi") == "win64" and arch != "x86_64":
        raise BadInput(f'{place}abi has "win64", which needs arch = "x86_64"; remove it or correct the arch')
    for feature in values["hides"]:
        if feature not in FEATURES.get(arch, ()):
            allowed = ", ".join(FEATURES.get(arch, ())) or "none"
            raise BadInput(f"{place}hides has {feature!r}; allowed for {arch} are {allowed}")
    for full_host in values["full"]:
        if full_host not in values["hosts"]:
            raise BadInput(f"{place}full has {full_host!r}; allowed are its hosts, {', '.join(values['hosts'])}")
    values["full"] = host in values["full"]
    return Lane(name=name, **values)


def _check_build(place: str, values: dict[str, Any]) -> None:
    """Refuse what cannot be built or was never made to work together."""
    sanitizer, arch = values["sanitizer"], values["arch"]
    if sanitizer != "none" and values["runner"] != "native":
        raise BadInput(f'{place}sanitizer has {sanitizer!r}, which needs runner = "native"; write "none"')
    if sanitizer != "none" and (values["compiler"] != "gcc" or values["lto"]):
        raise BadInput(f'{place}sanitizer has {sanitizer!r}, which needs gcc without lto; write "none"')
    if values["compiler"] == "clang" and arch not in ARCHES:
        raise BadInput(f"{place}compiler has 'clang'; allowed for {arch} is gcc")
    if values["floor"] and values["floor"] not in FLOORS.get(arch, ()):
        allowed = ", ".join(FLOORS.get(arch, ())) or "none, leave the key out"
        raise BadInput(f"{place}floor has {values['floor']!r}; allowed for {arch} are {allowed}")


def lanes_for_host(registry: Registry, host: str | None = None) -> tuple[Lane, ...]:
    """Return the lanes that exist on a host architecture (default: this machine).

    Raises ``BadInput`` where there is none.
    """
    arch = host or host_arch()
    lanes = tuple(lane for lane in registry.lanes if arch in lane.hosts)
    if not lanes:
        hosts = sorted({known for lane in registry.lanes for known in lane.hosts})
        raise BadInput(
            f"ci/lanes.toml: no lane exists on a host of architecture {arch!r}; allowed are {', '.join(hosts)}; "
            "add lanes for it or use such a machine"
        )
    return lanes


def lane_named(lanes: Sequence[Lane], name: str) -> Lane:
    """Return the lane of that name; raises ``BadInput`` with the nearest names."""
    for lane in lanes:
        if lane.name == name:
            return lane
    raise unknown_name("lane", name, (lane.name for lane in lanes), hint="run `crosslane list` for all lanes")
