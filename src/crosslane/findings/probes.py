# SPDX-License-Identifier: Apache-2.0
"""What further runs of a shrunk case say of its departure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crosslane.compare import Departure
from crosslane.findings.case import Case, Operation, batch_of
from crosslane.findings.judge import Judge, Tries, normalised
from crosslane.wire import Buffer, OpKind, Status, Symptom

__all__ = ["depends_on_tweak", "depends_on_watcher", "holds_refusal"]

_OTHER_TWEAKS = 16
_WATCHED = (Symptom.ABI, Symptom.CONTEXT, Symptom.WIPE)


def _seen(departure: Departure | None) -> tuple[object, ...]:
    return (*departure.key, departure.op, departure.buffer, departure.got) if departure else ()


def depends_on_watcher(again: Sequence[Departure | None], calm: Departure | None) -> bool:
    """Whether a departure that is the same in every run of ``again`` is another one in ``calm``, a run of the same case
    without a watcher; not where the watcher itself objected.
    """
    first = again[0]
    if first is None or first.symptom in _WATCHED or any(_seen(item) != _seen(first) for item in again):
        return False
    return _seen(calm) != _seen(first)


def depends_on_tweak(judge: Tries, case: Case, departure: Departure) -> bool:
    """Whether other tweaks agree: a wrong carry between the tweaks of two blocks shows with one tweak in two."""
    if judge.manifest.iv != "tweak" or departure.symptom not in (Symptom.OUTPUT, Symptom.IV):
        return False
    others = [normalised(_with_tweak(case, number), judge.manifest) for number in range(1, _OTHER_TWEAKS)]
    return not all(judge.all(others))


def _with_tweak(case: Case, number: int) -> Case:
    def change(item: Operation) -> Operation:
        return replace(item, data=bytes([number]) * len(item.data)) if item.kind is OpKind.SETIV else item

    return case.with_operations(change(item) for item in case.operations)


def holds_refusal(judge: Judge, sealed: Case, departure: Departure) -> bool:
    """Whether the departure needs an operation that is rightly refused, and shows in something else than its answer."""
    if departure.symptom is Symptom.OUTPUT and departure.buffer is Buffer.NONE:
        return False
    statuses = judge.encrypt(batch_of([sealed])).statuses
    return bool(((statuses != Status.OK) & (statuses != Status.BAD_TAG)).any())
