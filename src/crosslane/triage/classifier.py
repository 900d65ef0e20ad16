# SPDX-License-Identifier: Apache-2.0
"""From observations to a class and a sentence: a pure function, rule by rule, the most certain first.

What a watcher saw is its own class. A wrong answer of plain sessions is told by where it stands, and by what else is
right: the block function, other lengths, other keys. One that plain sessions do not show is told by the condition that
the least case has and they have not.
"""

from __future__ import annotations

from collections.abc import Callable

from crosslane.bug_classes import BUG_CLASSES, UNCLASSIFIED
from crosslane.isa import BIG_ENDIAN_ARCHES, NARROW_ARCHES
from crosslane.triage.conditions import conditional
from crosslane.triage.named import Named
from crosslane.triage.observations import Observations
from crosslane.triage.structure import structural
from crosslane.triage.watchers import watched

__all__ = ["Named", "name"]


def name(seen: Observations) -> Named:
    """The class of what was observed, with a sentence; ``unclassified`` where nothing decides."""
    for rule in _RULES:
        found = rule(seen)
        if found is not None:
            assert found.name in BUG_CLASSES
            return found
    return Named(UNCLASSIFIED, "nothing that was observed decides what class of bug this is")


def _elsewhere(seen: Observations) -> Named | None:
    """What other builds, runners and byte orders of the same sources say."""
    agreeing = sorted(lane for lane, departs in seen.emulated.items() if not departs)
    if agreeing and not seen.facts.native and seen.watched.signal != "SIGILL":
        return Named("emulator", f"the same program agrees in {', '.join(agreeing)}, so that the emulator is suspected")
    order = _byte_order(seen)
    if order is not None:
        return order
    others = sorted(lane for lane, departs in seen.builds.items() if not departs)
    if others and all(not departs for departs in seen.builds.values()):
        report = f": {seen.watched.report}" if seen.watched.report else ""
        return Named("compiler", f"the same sources agree as built for {', '.join(others)}{report}")
    return None


def _byte_order(seen: Observations) -> Named | None:
    """It departs on architectures of one byte order or word size, and agrees on all others."""
    departing = {arch for arch, departs in seen.arches.items() if departs}
    if not departing or departing == set(seen.arches):
        return None
    for what, kind in (("big-endian", BIG_ENDIAN_ARCHES), ("32-bit", NARROW_ARCHES)):
        if departing == set(kind) & set(seen.arches):
            return Named("byte_order", f"it departs on {what} architectures alone: {', '.join(sorted(departing))}")
    return None


def _noise(seen: Observations) -> Named | None:
    if not seen.noise:
        return None
    return Named("dirty_state", "it depends on what lay in registers or on the stack before the call")


def _refusals(seen: Observations) -> Named | None:
    """What is refused and should not be, or the other way about."""
    watched_ = seen.watched
    if watched_.symptom != "output" or not (watched_.refuses or watched_.accepts):
        return None
    if seen.has("overlap"):
        return Named("overlap", "an output that overlaps its input is taken" if watched_.accepts else
                     "an output is refused for an overlap that there is not")  # fmt: skip
    if seen.has("wrong_tag"):
        return Named("tag_check", "a wrong tag is taken")
    if seen.needs("clone", "interleaved", "messages", "rekey", "reinit"):
        return Named("context", "what is legal is refused behind another use of the context, or of another one")
    if seen.has("policy"):
        how = "a key is taken that the policy refuses" if watched_.accepts else "a key is refused that the policy takes"
        return Named("key_policy", how)
    return Named("refusal", "what is illegal is not refused" if watched_.accepts else "what is legal is refused")


def _circumstances(seen: Observations) -> Named | None:
    """What the answer depends on beside the bytes that are given."""
    if seen.refused and seen.has("overlap"):
        return Named("overlap", "a call that is refused for its overlap leaves a trace")
    if seen.refused:
        return Named("refusal", "a call that is rightly refused leaves a trace")
    if seen.neighbours:
        return Named("context", "it needs another session before it in the process: something is kept beside contexts")
    if seen.other_context:
        return Named("context", "it depends on what lies in another context than that of the call")
    return None


_RULES: tuple[Callable[[Observations], Named | None], ...] = (
    _noise, _elsewhere, _refusals, _circumstances, watched, structural, conditional,
)  # fmt: skip
