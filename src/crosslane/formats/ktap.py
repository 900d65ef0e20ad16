# SPDX-License-Identifier: Apache-2.0
"""KTAP version 1, as the kernel's tools read it: algorithms hold implementations in lanes, and these hold checks.

Source of the format: the kernel's documentation, dev-tools/ktap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from crosslane.formats.outcomes import Gated, Outcome, one_line, outcome_of
from crosslane.records import AlgorithmResult, CellResult
from crosslane.results import RunResult

__all__ = ["ktap_text"]


@dataclass(frozen=True)
class _Test:
    """One test: a leaf with an outcome, or a parent of others."""

    name: str
    outcome: Outcome
    inside: tuple[_Test, ...] = ()

    @property
    def ok(self) -> bool:
        """A parent fails where something in it does."""
        if self.inside:
            return all(test.ok for test in self.inside)
        return self.outcome.kind not in ("failed", "error")


def ktap_text(result: RunResult, gated: Gated | None = None) -> str:
    """The whole file."""
    tests = [_algorithm(algorithm) for algorithm in result.algorithms]
    if result.proofs:
        proofs = [
            _Test(f"{proof.name} {proof.cell}", Outcome("passed") if proof.holds else Outcome("error", proof.text))
            for proof in result.proofs
        ]
        tests.append(_parent("planted faults", proofs))
    tests += [_Test(name, Outcome("error", "interrupted")) for name in result.unfinished]
    if gated is not None:
        tests.append(_gate(gated))
    lines = [f"# revision {one_line(result.revision)}, seed {one_line(result.seed)}"]
    return "\n".join([*_level(tests, "", lines)]) + "\n"


def _parent(name: str, tests: Iterable[_Test]) -> _Test:
    inside = tuple(tests)
    return _Test(name, Outcome("passed" if inside else "error", "" if inside else "nothing was judged"), inside)


def _algorithm(algorithm: AlgorithmResult) -> _Test:
    return _parent(algorithm.name, [_cell(cell) for cell in algorithm.cells])


def _cell(cell: CellResult) -> _Test:
    tests = [_Test(judgement.check, outcome_of(cell, judgement)) for judgement in cell.judgements]
    return _parent(cell.cell.partition("/")[2], tests)


def _gate(gated: Gated) -> _Test:
    def of_rule(rule: str) -> _Test:
        reds = [red for red in gated.reds if red.rule == rule]
        if not reds:
            return _Test(rule, Outcome("passed"))
        return _parent(
            rule, [_Test(f"{red.about} {red.detail}", Outcome("failed", f"{red.text}: {red.cure}")) for red in reds]
        )

    return _parent("gate", [of_rule(rule) for rule in gated.rules])


def _level(tests: Iterable[_Test], indent: str, first: Iterable[str] = ()) -> Iterator[str]:
    ordered = list(tests)
    yield f"{indent}KTAP version 1"
    yield f"{indent}1..{len(ordered)}"
    yield from (indent + line for line in first)
    for number, test in enumerate(ordered, 1):
        if test.inside:
            yield from _level(test.inside, indent + "  ")
        elif test.outcome.kind in ("failed", "error"):
            yield from (f"{indent}# {one_line(line)}" for line in test.outcome.text.splitlines())
        yield indent + _line(number, test)


def _line(number: int, test: _Test) -> str:
    name = one_line(test.name).replace("#", "\\x23")
    text, kind = one_line(test.outcome.text), test.outcome.kind
    directive = {"skipped": "SKIP", "accepted": "XFAIL", "error": "ERROR"}.get(kind, "") if not test.inside else ""
    if not test.inside and kind == "error":
        text = one_line(test.outcome.text.partition("\n")[0])
    word = "ok" if test.ok else "not ok"
    return f"{word} {number} {name}" + (f" # {directive} {text}".rstrip() if directive else "")
