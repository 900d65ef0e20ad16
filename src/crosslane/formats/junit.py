# SPDX-License-Identifier: Apache-2.0
"""JUnit XML, as Jenkins, GitLab and most services read it: a test case for each check of each cell.

An accepted finding is a skipped case with the deviation's reason. What is no fault of the subject is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from crosslane.formats.outcomes import Gated, Outcome, one_line, outcome_of, plain
from crosslane.records import AlgorithmResult
from crosslane.results import RunResult

__all__ = ["junit_text"]

_ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped", "accepted": "skipped"}

Case = tuple[str, str, Outcome]
"""Class name, name and outcome of a test case."""


def junit_text(result: RunResult, gated: Gated | None = None) -> str:
    """The whole file."""
    root = ET.Element("testsuites", name="crosslane")
    for algorithm in result.algorithms:
        _add(root, algorithm.name, _cases(algorithm), algorithm.took_s)
    if result.proofs:
        _add(root, "planted faults", _proofs(result), 0.0)
    if result.unfinished:
        unfinished = Outcome("error", "the run was interrupted before it was complete")
        _add(root, "interrupted", [("crosslane", name, unfinished) for name in result.unfinished], 0.0)
    if gated is not None:
        _add(root, "gate", _gate(gated), 0.0)
    for name in ("tests", "failures", "errors"):  # the usual schema knows no others here
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", f"{result.took_s:.3f}")
    for suite in root:
        properties = ET.Element("properties")
        for name, value in (("revision", result.revision), ("seed", result.seed), ("host", result.host)):
            ET.SubElement(properties, "property", name=name, value=one_line(value))
        suite.insert(0, properties)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _cases(algorithm: AlgorithmResult) -> Iterable[Case]:
    for cell in algorithm.cells:
        if not cell.judgements:
            yield cell.cell, "judgement", Outcome("error", "no check has judged this cell")
        for judgement in cell.judgements:
            yield cell.cell, judgement.check, outcome_of(cell, judgement)


def _proofs(result: RunResult) -> Iterable[Case]:
    for proof in result.proofs:
        yield proof.cell, proof.name, Outcome("passed") if proof.holds else Outcome("error", proof.text)


def _gate(gated: Gated) -> Iterable[Case]:
    """A case for each rule that holds, and for each thing that is red."""
    broken = {red.rule for red in gated.reds}
    for rule in gated.rules:
        if rule not in broken:
            yield "gate", rule, Outcome("passed")
    for red in gated.reds:
        name = " ".join(part for part in (red.rule, red.about, red.detail) if part)
        yield f"gate.{red.rule}", name, Outcome("failed", f"{red.text}: {red.cure}")
    for red in gated.known:
        name = " ".join(part for part in (red.rule, red.about, red.detail) if part)
        yield f"gate.{red.rule}", name, Outcome("skipped", f"not new, the baseline has it too: {red.text}")


def _add(root: ET.Element, name: str, cases: Iterable[Case], took_s: float) -> None:
    suite = ET.SubElement(root, "testsuite", name=one_line(name))
    counts: dict[str, int] = {}
    for class_name, case_name, outcome in cases:
        case = ET.SubElement(suite, "testcase", classname=one_line(class_name), name=one_line(case_name))
        element = _ELEMENTS.get(outcome.kind, "")
        counts[element] = counts.get(element, 0) + 1
        if element:
            lines: Sequence[str] = outcome.text.splitlines() or [""]
            inside = ET.SubElement(case, element, message=one_line(lines[0]))
            if element != "skipped":
                inside.set("type", outcome.kind)
                inside.text = plain(outcome.text)
    totals = {"tests": sum(counts.values()), "failures": counts.get("failure", 0), "errors": counts.get("error", 0),
              "skipped": counts.get("skipped", 0)}  # fmt: skip
    for key, value in totals.items():
        suite.set(key, str(value))
    suite.set("time", f"{took_s:.3f}")
