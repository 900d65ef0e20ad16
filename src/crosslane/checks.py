# SPDX-License-Identifier: Apache-2.0
"""The checks: one property a file under ``conformance/checks``, its docstring the sentence that reports print.

A check is data, functions, or both:

- ``COVERS``: what cases must have exercised, patterns of keys of ``coverage.coverage``; one that was not met is red.
- ``SYMPTOMS`` and ``CLASSES``: which findings are its own, by the watcher that objected or by a word of the class.
- ``WATCHER``: the watcher without which it cannot be observed.
- ``judge(cell) -> Outcome``: where all that does not say it.

It may say that it does not apply, with the reason, but never that nothing needs to be said.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType

from crosslane.errors import BadInput
from crosslane.records import CellResult, Judgement

__all__ = ["Check", "Outcome", "claimed_by", "judge_all", "load_checks"]

_NAMES_BUFFER = ("input", "context")
"""Symptoms whose class begins with the name of a buffer, which is no feature of the case."""
_SIDES = (":behind", ":before")


@dataclass(frozen=True)
class Outcome:
    """``passed`` is None where the check does not apply; ``reason`` says why it failed or does not apply."""

    passed: bool | None
    reason: str = ""


@dataclass(frozen=True)
class Check:
    """One property: its name (the file's), its sentence, and its judgement of a cell."""

    name: str
    sentence: str
    judge: Callable[[CellResult], Outcome]
    symptoms: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    def claims(self, symptom: str, fault_class: str) -> bool:
        """Whether a finding is this check's: by what objected, or by a feature that the departure needs."""
        words = fault_class.split("+")[symptom in _NAMES_BUFFER :]
        kinds = {word if word.endswith(_SIDES) else word.partition(":")[0] for word in words}
        return symptom in self.symptoms or bool(kinds & set(self.classes))


def load_checks(root: Path) -> tuple[Check, ...]:
    """Load ``conformance/checks/*.py`` under the content root; raises BadInput where one is no check."""
    folder = root / "conformance" / "checks"
    checks = tuple(_load(path) for path in sorted(folder.glob("[a-z]*.py")))
    if not checks:
        raise BadInput(f"{folder}: there is no check; restore the folder from the repository")
    return checks


def _load(path: Path) -> Check:
    spec = importlib.util.spec_from_file_location(f"crosslane_check_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{path}: is no Python file that can be loaded")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadInput(f"{path}: cannot be loaded ({type(error).__name__}: {error}); correct the file") from error
    sentence = (module.__doc__ or "").strip()
    symptoms, classes, covers = (_names(path, module, name) for name in ("SYMPTOMS", "CLASSES", "COVERS"))
    watcher = getattr(module, "WATCHER", "")
    judge = getattr(module, "judge", None)
    if not sentence or not (callable(judge) or symptoms or classes):
        raise BadInput(
            f"{path}: a check has a docstring of one sentence and a function judge(cell) -> Outcome, or names its "
            "findings with SYMPTOMS or CLASSES"
        )
    check = Check(path.stem, sentence.splitlines()[0], judge or _never, symptoms, classes)
    if callable(judge):
        return check
    return Check(check.name, check.sentence, lambda cell: _by_data(check, covers, watcher, cell), symptoms, classes)


def _names(path: Path, module: ModuleType, name: str) -> tuple[str, ...]:
    value = getattr(module, name, ())
    if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
        raise BadInput(f"{path}: {name} must be a tuple of strings; correct it")
    return value


def _never(cell: CellResult) -> Outcome:
    raise AssertionError(cell)


def _by_data(check: Check, covers: tuple[str, ...], watcher: str, cell: CellResult) -> Outcome:
    """The judgement of a check that is data: its findings, whether it could be observed, and what was covered."""
    if cell.state == "declined":
        return Outcome(None, "the CPU of this lane lacks what it needs")
    if cell.state != "ran":
        return Outcome(False, f"did not run: {cell.reason}")
    texts = [fault.text for fault in cell.faults if check.claims(fault.symptom, fault.fault_class)]
    texts += [finding.text for finding in cell.findings if check.claims(finding.symptom, "")]
    if texts:
        return Outcome(False, texts[0])
    if watcher and watcher in cell.unwatched:
        return Outcome(None, f"{watcher} cannot be observed in this lane")
    applies = not cell.wanted or not covers or bool(_applying(covers, cell))
    if applies and check.classes and (cell.num_departed or cell.skipped):
        return Outcome(None, "the cell departs otherwise: answers that are wrong anyhow say nothing of this")
    return _covered(covers, cell)


_NO_SUCH_THING = "the algorithm, or what the library shows of it, has no such thing"


def _applying(covers: tuple[str, ...], cell: CellResult) -> list[str]:
    return [name for name in cell.covered if any(fnmatchcase(name, pattern) for pattern in covers)]


def _covered(covers: tuple[str, ...], cell: CellResult) -> Outcome:
    """Whether cases of the cell exercised what the check is about."""
    if cell.wanted == 0:
        return Outcome(None, "only vectors were run")
    applying = _applying(covers, cell)
    if covers and not applying:
        return Outcome(None, _NO_SUCH_THING)
    missed = ", ".join(sorted(name for name in applying if not cell.covered[name]))
    if missed and cell.full:
        return Outcome(False, f"no case had {missed}")
    return Outcome(None, "so few cases do not exercise all that it is about") if missed else Outcome(True)


def judge_all(checks: Sequence[Check], cell: CellResult) -> tuple[Judgement, ...]:
    """What every check says of one cell."""
    unswitched = Outcome(None, f"its switch is not effective for this algorithm: {cell.reason}")
    outcomes = [(check, unswitched if cell.state == "not_effective" else check.judge(cell)) for check in checks]
    return tuple(Judgement(check.name, check.sentence, outcome.passed, outcome.reason) for check, outcome in outcomes)


def claimed_by(checks: Sequence[Check], symptom: str, fault_class: str) -> tuple[str, ...]:
    """The names of the checks that a finding is of; every finding is one of ``agreement``."""
    return tuple(check.name for check in checks if check.claims(symptom, fault_class) or check.name == "agreement")
