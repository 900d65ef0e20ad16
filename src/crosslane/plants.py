# SPDX-License-Identifier: Apache-2.0
"""Planted faults and controls as data: edits of current sources, beside the checks and the implementations they test.

``conformance/checks/<check>.faults.toml`` and ``impls/ciphers/<cipher>/<folder>/faults.toml`` hold tables ``[[fault]]``
and ``[[control]]``. An edit must fit its file exactly once: where a source changed under it, that is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crosslane.bug_classes import BUG_CLASSES, UNCLASSIFIED
from crosslane.data import read_files, shown
from crosslane.errors import BadInput
from crosslane.model import Algorithm, Implementation, Lane, Registry
from crosslane.names import DRIVER_PATTERN, WORD_PATTERN, parse_algorithm, unknown_name
from crosslane.registry import implementation_named, mode_named
from crosslane.tomlread import Field, read_fields, read_toml

__all__ = [
    "CASES",
    "CHECKS",
    "FAULTS_FILE",
    "SYMPTOMS",
    "WHOLE",
    "Plant",
    "Scan",
    "case_file",
    "case_problems",
    "check_cases",
    "load_plants",
    "plant_lanes",
    "scan_plants",
]

CHECKS = Path("conformance") / "checks"
FAULTS_FILE = "faults.toml"
CASES = Path("corpora") / "regressions" / "planted"
WHOLE = "cell"
"""The symptom of a fault that no case shows, but the judgement of a whole cell, and of a control beside such faults."""
SYMPTOMS = (
    "output", "iv", "canary", "guard_read", "guard_write", "abi", "input", "context", "wipe", "nondeterminism", "crash",
    "hang", "reject", WHOLE,
)  # fmt: skip
_SUFFIX = ".faults.toml"
_INCLUDE = re.compile(r'^#include "([\w.]+)"$', re.MULTILINE)
_TEXT = Field(kind="str", pattern=r"\S[^\n]*[^.\s]")
_EDIT = Field(kind="str", pattern=r"(?s).+")
_CONTROL_FIELDS = {
    "name": Field(kind="str", pattern=r"[a-z][a-z0-9_]{2,30}"),
    "what": _TEXT,
    "models": Field(kind="str", pattern=r"\S[^\n]*", optional=True),
    "check": Field(kind="str", pattern=WORD_PATTERN, optional=True),
    "driver": Field(kind="str", pattern=DRIVER_PATTERN, optional=True),
    "algorithm": Field(kind="str"),
    "file": Field(kind="str", pattern=r"[A-Za-z0-9_]+(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+"),
    "replace": _EDIT,
    "with": Field(kind="str", pattern=r"(?s).*"),
    "lanes": Field(kind="str", many=True, min_num=1, pattern=WORD_PATTERN, optional=True),
    "also": Field(kind="str", many=True, min_num=1, pattern=f"{DRIVER_PATTERN}(@{WORD_PATTERN})?", optional=True),
    "why": Field(kind="str", pattern=r"\S[^\n]*", optional=True),
    "symptom": Field(kind="str", allowed=(WHOLE,), optional=True),
    "large": Field(kind="bool", optional=True),
}
_FAULT_FIELDS = _CONTROL_FIELDS | {
    "symptom": Field(kind="str", allowed=SYMPTOMS),
    "triage": Field(kind="str", allowed=tuple(name for name in BUG_CLASSES if name != UNCLASSIFIED), optional=True),
}
_FIELDS = {"fault": _FAULT_FIELDS, "control": _CONTROL_FIELDS}


@dataclass(frozen=True)
class Plant:
    """One planted fault, or a control, which is a change that must stay green.

    ``file`` lies below ``impls``; ``original`` is its content and ``changed`` what is compiled. ``symptom`` is what a
    fault must show; ``cell`` where no case shows it but the judgement of the whole cell does. ``lanes`` narrows where
    it can show at all (empty: everywhere), ``why`` says the reason. ``in_mode`` is whether the mode's portable code is
    changed, and not the implementation. ``triage`` is the class of bug that the edit makes, by what it says.
    """

    name: str
    what: str
    models: str
    check: str
    driver: str
    algorithm: Algorithm
    symptom: str
    control: bool
    file: Path
    original: bytes
    changed: bytes
    lanes: tuple[str, ...]
    where: Path
    in_mode: bool
    large: bool = False
    triage: str = ""

    @property
    def symbol(self) -> str:
        """The name by which the changed code is known in the shim."""
        return f"planted_{self.name}"


@dataclass(frozen=True)
class Scan:
    """All that reading the tables came to: the plants that are right, and of the others the names and what is wrong.

    The name of a table that has none, and of a file that cannot be read, is empty.
    """

    plants: tuple[Plant, ...]
    broken: tuple[tuple[str, BadInput], ...]


def load_plants(registry: Registry) -> tuple[Plant, ...]:
    """Read every plant, in the order of files and tables; raises BadInput for the first that is wrong."""
    scan = scan_plants(registry)
    if scan.broken:
        raise scan.broken[0][1]
    return scan.plants


def scan_plants(registry: Registry) -> Scan:
    """Read every plant, in the order of files and tables, and go on behind one that is wrong."""
    known = [check.stem for check in (registry.root / CHECKS).glob("[a-z]*.py")]
    plants: list[Plant] = []
    broken: list[tuple[str, BadInput]] = []
    for path in sorted((registry.root / CHECKS).glob(f"*{_SUFFIX}")):
        check = path.name.removesuffix(_SUFFIX)
        if check in known:
            plants += _read(registry, path, broken, check=check, known=known)
        else:
            text = f"{shown(path)}: there is no check {check!r} beside it: rename the file or add the check"
            broken.append(("", BadInput(text)))
    for item in registry.implementations:
        path = item.folder / FAULTS_FILE
        if item.origin == "own" and path.exists():
            plants += _read(registry, path, broken, driver=item.driver, known=known)
    broken += _taken_names(plants, {mode.name for mode in registry.modes})
    if not broken:  # else a fault that could not be read may be one that a case shows
        broken += _check_wholes(plants)
    return Scan(tuple(plants), tuple(broken))


def _taken_names(plants: Iterable[Plant], modes: Iterable[str]) -> Iterator[tuple[str, BadInput]]:
    seen: dict[str, Plant] = {}
    for plant in plants:
        other = seen.setdefault(plant.name, plant)
        if other is not plant or plant.name in modes:
            taken = f"the plant in {shown(other.where)}" if other is not plant else "a mode"
            text = f"{shown(plant.where)}: the name {plant.name!r} is that of {taken}: rename it"
            yield plant.name, BadInput(text)


def _check_wholes(plants: Iterable[Plant]) -> Iterator[tuple[str, BadInput]]:
    """A control of a check whose faults no case shows would not meet that check where no whole cell is judged."""
    shown_by_cases: dict[str, bool] = {}
    for plant in plants:
        if not plant.control:
            shown_by_cases[plant.check] = shown_by_cases.get(plant.check, False) or plant.symptom != WHOLE
    for plant in plants:
        if plant.control and plant.symptom != WHOLE and not shown_by_cases.get(plant.check, True):
            text = (
                f"{shown(plant.where)}: {plant.name}: is a control of {plant.check}, all faults of which are judged by "
                f'whole cells: add symptom = "{WHOLE}"'
            )
            yield plant.name, BadInput(text)


def _read(
    registry: Registry, path: Path, broken: list[tuple[str, BadInput]], *, known: Iterable[str], check: str = "",
    driver: str = "",
) -> list[Plant]:  # fmt: skip
    """The plants of a file; what is wrong with the others is added to ``broken``."""
    made: list[Plant] = []
    try:
        tables = _tables(path)
    except BadInput as error:
        broken.append(("", error))
        return made
    for kind, number, table in tables:
        try:
            values = _values(path, kind, number, table)
            plant = _plant(registry, path, values, (check, driver), known=known, control=kind == "control")
            made += [plant, *_also(registry, plant, values.get("also", ()))]
        except BadInput as error:
            name = table.get("name") if isinstance(table, dict) else None
            broken.append((name if isinstance(name, str) else "", error))
    return made


def _tables(path: Path) -> list[tuple[str, int, object]]:
    """Kind, number and content of each table of a file, faults first."""
    content = read_toml(path)
    for key, value in content.items():
        if key not in _FIELDS or not isinstance(value, list):
            raise BadInput(f"{shown(path)}: has {key!r}; allowed are tables [[fault]] and [[control]]: correct it")
    return [(kind, number, table) for kind in _FIELDS for number, table in enumerate(content.get(kind, ()))]


def _values(path: Path, kind: str, number: int, table: object) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise BadInput(f"{shown(path)}: has {kind} = [{table!r}, ...]; allowed are tables [[{kind}]]: correct it")
    return read_fields(path, table, _FIELDS[kind], where=f"{kind} {table.get('name', number)}")


def _also(registry: Registry, plant: Plant, others: Iterable[str]) -> list[Plant]:
    """The same edit in further drivers that include its file, each a plant of its own; ``driver@lane``: there alone."""
    made: list[Plant] = []
    place = f"{shown(plant.where)}: {plant.name}: also"
    for other in others:
        driver, _, lane = other.partition("@")
        try:
            item = implementation_named(registry, driver)
        except BadInput as error:
            raise BadInput(f"{place}: {error}") from None
        if driver == plant.driver or plant.file not in _included(item):
            what = "is the driver itself" if driver == plant.driver else f"does not include {plant.file.name}"
            raise BadInput(f"{place}: {driver} {what}: remove it")
        lanes = (lane,) if lane else plant.lanes
        _check_lanes(place, lanes, item, registry)
        name = f"{plant.name}_{driver.removeprefix(f'{item.cipher}-').replace('-', '_')}"
        made.append(replace(plant, name=name, driver=driver, lanes=lanes, in_mode=False))
    return made


def _plant(
    registry: Registry, path: Path, values: dict[str, Any], given: tuple[str, str], *, known: Iterable[str],
    control: bool,
) -> Plant:  # fmt: skip
    place = f"{shown(path)}: {values['name']}"
    check, driver = (
        _once(place, name, values.get(name, ""), fixed, control)
        for name, fixed in zip(("check", "driver"), given, strict=True)
    )
    if check not in (*known, ""):
        raise BadInput(f"{place}: check is {check!r}; allowed are {', '.join(sorted(known))}: correct it")
    if ("lanes" in values or "@" in "".join(values.get("also", ()))) != ("why" in values):
        raise BadInput(f"{place}: lanes and why go together: say why it can show in those lanes alone")
    try:
        item, algorithm = implementation_named(registry, driver), parse_algorithm(values["algorithm"])
        mode_named(registry, algorithm.mode)
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from None
    if item.cipher != algorithm.cipher:
        raise BadInput(f"{place}: algorithm is {algorithm}, but {driver} computes {item.cipher}: correct one of them")
    if values.get("large", False) and values.get("symptom") != WHOLE:
        raise BadInput(f'{place}: large is true, and no case is of more than 4 GiB: add symptom = "{WHOLE}"')
    _check_lanes(place, values.get("lanes", ()), item, registry)
    file = registry.root / "impls" / values["file"]
    _check_file(place, file, item, registry, algorithm)
    original = read_files([file])[0]
    found = original.decode(errors="replace").count(values["replace"])
    if found != 1:
        raise BadInput(
            f"{place}: what it replaces is found {found} times in {shown(file)}, and must be found exactly once: "
            "adapt the fault to the source as it is now"
        )
    return Plant(
        name=values["name"],
        what=values["what"],
        models=values.get("models", ""),
        check=check,
        driver=driver,
        algorithm=algorithm,
        symptom=values.get("symptom", ""),
        control=control,
        file=file,
        original=original,
        changed=original.decode().replace(values["replace"], values["with"]).encode(),
        lanes=values.get("lanes", ()),
        where=path,
        triage=values.get("triage", ""),
        in_mode=file.parent not in (item.folder, item.folder.parent) and file not in _included(item),
        large=values.get("large", False),
    )


def _included(item: Implementation) -> set[Path]:
    """The headers of its folder, its cipher and ``impls/modes`` that an implementation or one of them includes."""
    folders = (item.folder, item.folder.parent, item.folder.parents[2] / "modes")
    seen: set[Path] = set()
    left = list(item.sources)
    while left:
        text = read_files([left.pop()])[0].decode(errors="replace")
        named = {folder / name for name in _INCLUDE.findall(text) for folder in folders}
        new = {path for path in named if path.is_file()} - seen
        seen |= new
        left += new
    return seen


def _once(place: str, name: str, value: str, fixed: str, control: bool) -> str:
    """What the file's place says already may be said again, but not otherwise."""
    if value and fixed and value != fixed:
        raise BadInput(f"{place}: {name} is {value!r}, but the file lies where it is {fixed!r}: remove the key")
    if not value and not fixed and not (control and name == "check"):
        raise BadInput(f"{place}: the key {name!r} is missing: add it")
    return value or fixed


def _check_lanes(place: str, lanes: Iterable[str], item: Implementation, registry: Registry) -> None:
    """A lane that does not exist, or that has no cell of the subject, would leave the plant untried without a word."""
    fitting = [lane.name for lane in registry.lanes if lane.takes(item)]
    for name in lanes:
        if name not in fitting:
            raise BadInput(f"{place}: {unknown_name('lane', name, fitting, hint=f'of those that run {item.driver}')}")


def _check_file(place: str, file: Path, item: Implementation, registry: Registry, algorithm: Algorithm) -> None:
    """The edit must be in what is compiled for the subject: its folder, its cipher's headers, or the mode's code."""
    modes = registry.root / "impls" / "modes"
    allowed = (item.folder, item.folder.parent, modes / algorithm.mode, modes, registry.root / "impls" / "shim")
    if file.parent not in allowed or not file.is_file():
        folders = ", ".join(str(folder.relative_to(registry.root / "impls")) for folder in allowed)
        raise BadInput(f"{place}: file is {file.name!r}, which is none of the subject; allowed are files in {folders}")


def case_file(root: Path, name: str) -> Path:
    """Where the stored case of a planted fault is."""
    return root / CASES / f"{name}.json"


def check_cases(registry: Registry, plants: Iterable[Plant]) -> None:
    """Raise BadInput for the first fault whose stored case is missing, or a case whose fault is gone."""
    for problem in case_problems(registry, plants):
        raise problem


def case_problems(registry: Registry, plants: Iterable[Plant], broken: Iterable[str] = ()) -> Iterator[BadInput]:
    """Every fault whose stored case is missing, and every case whose fault is gone.

    ``broken`` are the names of plants that could not be read, of which nothing is said; empty: any may be meant.
    """
    names = {plant.name for plant in plants if not plant.control and plant.symptom != WHOLE}
    for name in sorted(names):
        path = case_file(registry.root, name)
        if not path.is_file():
            yield BadInput(
                f"{shown(path)}: the case of the planted fault is missing: write it with `crosslane selftest --fault "
                f"{name} --store`"
            )
    for path in sorted((registry.root / CASES).glob("*.json")):
        if path.stem not in names and not path.stem.startswith(tuple(broken)):
            yield BadInput(f"{shown(path)}: there is no planted fault of that name that a case shows: remove the file")


def plant_lanes(registry: Registry, plant: Plant, lanes: Iterable[Lane]) -> list[Lane]:
    """The lanes of ``lanes`` in which a plant is tried: those with the full grids, and those that it names; natively
    alone where it needs 4 GiB.
    """
    item = implementation_named(registry, plant.driver)
    fitting = [lane for lane in lanes if item.isa in ("any", lane.arch)]
    if plant.large:
        fitting = [lane for lane in fitting if lane.runner == "native" and lane.usual]
    if plant.lanes:
        return [lane for lane in fitting if lane.name in plant.lanes]
    return [lane for lane in fitting if plant.large or lane.full or lane.name == f"{lane.arch}_qemu_max"]
