# SPDX-License-Identifier: Apache-2.0
"""SARIF 2.1.0, as code scanning reads it: a result for each check that an implementation fails for an algorithm.

It stands at the line of the implementation's entry point. An accepted finding is a suppressed result; what is no fault
of a subject is a notification. Source of the format: OASIS, SARIF 2.1.0; limits: GitHub's documentation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from crosslane import __version__
from crosslane.errors import BadInput
from crosslane.formats.outcomes import Gated, Red, accepted_text, one_line, outcome_of
from crosslane.formats.places import Place
from crosslane.names import parse_cell
from crosslane.records import CellResult, Judgement
from crosslane.results import RunResult

__all__ = ["sarif_text"]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_MOST_RESULTS = 5000
"""Results beyond which services drop some; the last one says how many more there are."""
_MOST_CELLS = 8
"""Cells that a message names."""


def sarif_text(result: RunResult, places: Mapping[str, Place], gated: Gated | None = None) -> str:
    """The whole file; ``places`` are the entry points of the subjects by name."""
    results = [*_findings(result, places), *(_gate(gated, places) if gated else ())]
    left = len(results) - _MOST_RESULTS
    notes = list(_notifications(result))
    is_whole = not notes
    if left > 0:
        notes.append(
            _notification(f"{left} more results are left out, since services take no more than {_MOST_RESULTS}")
        )
    run = {
        "tool": {
            "driver": {
                "name": "Crosslane",
                "semanticVersion": __version__,
                "rules": [*_rules(result), *(_gate_rules(gated) if gated else ())],
            }
        },
        "invocations": [
            {
                "executionSuccessful": is_whole,
                "toolExecutionNotifications": notes,
                "properties": {"seed": one_line(result.seed), "revision": one_line(result.revision)},
            }
        ],
        "originalUriBaseIds": {
            "SRCROOT": {"description": {"text": "The folder in which the command ran."}},
            "SUITE": {"description": {"text": "The folder of Crosslane's own implementations."}},
        },
        "columnKind": "unicodeCodePoints",
        "results": results[:_MOST_RESULTS],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rules(result: RunResult) -> list[dict[str, Any]]:
    """All checks, those that passed too: an alert whose rule is there and does not report any more is closed."""
    sentences = {judgement.check: judgement.sentence for cell in result.cells() for judgement in cell.judgements}
    return [
        {
            "id": check,
            "name": check,
            "shortDescription": {"text": _message(sentences[check])},
            "defaultConfiguration": {"level": "error"},
        }
        for check in sorted(sentences)
    ]


def _gate_rules(gated: Gated) -> Iterator[dict[str, Any]]:
    for rule in gated.rules:
        yield {
            "id": f"gate/{rule}",
            "name": rule,
            "shortDescription": {"text": f"The policy's rule {rule}."},
            "defaultConfiguration": {"level": "error"},
        }


def _findings(result: RunResult, places: Mapping[str, Place]) -> Iterator[dict[str, Any]]:
    groups: dict[tuple[str, str, str, bool], list[tuple[CellResult, Judgement]]] = {}
    for cell in result.cells():
        name = parse_cell(cell.cell)
        subject = f"{name.driver}:{name.backend}" if name.backend else name.driver
        for judgement in cell.judgements:
            if outcome_of(cell, judgement).kind in ("failed", "accepted"):
                key = (judgement.check, str(name.algorithm), subject, cell.accepted)
                groups.setdefault(key, []).append((cell, judgement))
    for (check, algorithm, subject, accepted), found in sorted(groups.items()):
        cell, judgement = found[0]
        names = ", ".join(item.cell for item, _ in found[:_MOST_CELLS])
        more = f" and {len(found) - _MOST_CELLS} more" if len(found) > _MOST_CELLS else ""
        made = _result(
            check,
            f"{algorithm} of {subject}: {judgement.reason} (in {names}{more})",
            places.get(subject.partition(":")[0]),
        )
        made["partialFingerprints"] = {"crosslane/v1": _fingerprint(check, algorithm, subject)}
        if accepted:
            made["suppressions"] = [
                {"kind": "external", "status": "accepted", "justification": one_line(accepted_text(cell))}
            ]
        yield made


def _gate(gated: Gated, places: Mapping[str, Place]) -> Iterator[dict[str, Any]]:
    absolute = gated.policy.startswith("/")
    policy = Place(("file://" if absolute else "") + quote(gated.policy), "" if absolute else "SRCROOT", 1)
    for red in gated.reds:
        made = _result(f"gate/{red.rule}", f"{red.about}: {red.text}: {red.cure}", _place_of(red, places) or policy)
        made["partialFingerprints"] = {"crosslane/v1": _fingerprint(*red.key)}
        yield made


def _place_of(red: Red, places: Mapping[str, Place]) -> Place | None:
    try:
        return places.get(parse_cell(red.about).driver)
    except BadInput:
        return None


def _result(rule: str, text: str, place: Place | None) -> dict[str, Any]:
    made: dict[str, Any] = {"ruleId": rule, "level": "error", "message": {"text": _message(text)}, "locations": []}
    if place is not None:
        artifact = {"uri": place.uri, **({"uriBaseId": place.base} if place.base else {})}
        made["locations"] = [{"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": place.line}}}]
    return made


def _notifications(result: RunResult) -> Iterator[dict[str, Any]]:
    for cell in result.cells():
        if cell.state in ("void", "not_run", "unusable"):
            yield _notification(f"{cell.cell}: {cell.state.replace('_', ' ')}: {cell.reason or 'it never began'}")
    for name in result.unfinished:
        yield _notification(f"{name}: the run was interrupted before it was complete")
    for proof in result.proofs:
        if not proof.holds:
            yield _notification(f"the planted fault {proof.name} in {proof.cell}: {proof.text}")


def _notification(text: str) -> dict[str, Any]:
    return {"level": "error", "message": {"text": _message(text)}}


def _message(text: str) -> str:
    """Plain text in which nothing is a link: a message may hold some in brackets."""
    return one_line(text).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _fingerprint(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
