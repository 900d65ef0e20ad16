# SPDX-License-Identifier: Apache-2.0
"""The checks: one property a file under ``conformance/checks``, its docstring the sentence that reports print.

A check file defines ``judge(cell) -> Outcome``. What it watches was recorded while the cases ran; it may say that it
does not apply, with the reason, but never that nothing needs to be said.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslane.errors import BadInput
from crosslane.records import CellResult, Judgement

__all__ = ["Check", "Outcome", "judge_all", "load_checks"]


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


def load_checks(root: Path) -> tuple[Check, ...]:
    """Load ``conformance/checks/*.py`` under the content root; raises BadInput where one is no check."""
    checks = []
    for path in sorted((root / "conformance" / "checks").glob("[a-z]*.py")):
        spec = importlib.util.spec_from_file_location(f"crosslane_check_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise BadInput(f"{path}: is no Python file that can be loaded")
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise BadInput(f"{path}: cannot be loaded ({type(error).__name__}: {error}); correct the file") from error
        judge, sentence = getattr(module, "judge", None), (module.__doc__ or "").strip()
        if not callable(judge) or not sentence:
            raise BadInput(f"{path}: a check has a docstring of one sentence and a function judge(cell) -> Outcome")
        checks.append(Check(path.stem, sentence.splitlines()[0], judge))
    if not checks:
        raise BadInput(f"{root / 'conformance' / 'checks'}: there is no check; restore the folder from the repository")
    return tuple(checks)


def judge_all(checks: Sequence[Check], cell: CellResult) -> tuple[Judgement, ...]:
    """What every check says of one cell."""
    outcomes = [(check, check.judge(cell)) for check in checks]
    return tuple(Judgement(check.name, check.sentence, outcome.passed, outcome.reason) for check, outcome in outcomes)
