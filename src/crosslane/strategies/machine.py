# SPDX-License-Identifier: Apache-2.0
"""A state machine that takes two implementations through one session, an operation a step, and compares after each.

The shim takes whole sessions, so that each step runs all operations so far: what an operation left behind in a context
shows in the next one that uses it. What must hold before an operation (a key, a begun message) is the machine's model;
operations out of order are refused by both alike and would only make sessions longer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crosslane.findings.case import Case, Operation
from crosslane.findings.judge import normalised
from crosslane.manifest import LIBRARY_STEERING, Manifest
from crosslane.strategies.pair import Departed, Pair
from crosslane.strategies.sessions import policies, tag_lens, wrong_bits
from crosslane.strategies.values import contents, ivs, keys, lengths, places
from crosslane.wire import NUM_SLOTS, Edge, Flag, OpKind

__all__ = ["SessionMachine", "machine_for"]


class _Stage(Enum):
    """How far a context is."""

    EMPTY = 0
    KEYED = 1
    BEGUN = 2
    FED = 3
    LAST_FED = 4


@dataclass
class _Context:
    """The model of one context."""

    stage: _Stage = _Stage.EMPTY


_OPEN = (_Stage.BEGUN, _Stage.FED, _Stage.LAST_FED)
_TAKES = (_Stage.BEGUN, _Stage.FED)


@dataclass
class _Model:
    """What the machine knows: the contexts and the operations so far."""

    contexts: list[_Context] = field(default_factory=lambda: [_Context() for _ in range(NUM_SLOTS)])
    operations: list[Operation] = field(default_factory=list)

    def slots(self, *stages: _Stage) -> list[int]:
        """The contexts that are at one of these stages."""
        return [slot for slot, context in enumerate(self.contexts) if context.stage in stages]


def _at(*stages: _Stage) -> Callable[[SessionMachine], bool]:
    return lambda self: bool(self.model.slots(*stages))


class SessionMachine(RuleBasedStateMachine):
    """Drives ``pair``, which a subclass sets (``machine_for`` makes one)."""

    pair: ClassVar[Pair]

    def __init__(self) -> None:
        """Begin a session without operations."""
        super().__init__()
        self.model = _Model()
        self.case = Case(self.manifest.algorithm, ())
        self.has_departed = False

    @property
    def manifest(self) -> Manifest:
        """What the session is of."""
        return self.pair.manifest

    def _slot(self, choice: int, *stages: _Stage) -> int:
        slots = self.model.slots(*stages)
        return slots[choice % len(slots)]

    def _do(self, item: Operation, stage: _Stage | None = None) -> None:
        self.model.operations.append(item)
        if stage is not None:
            self.model.contexts[item.slot].stage = stage

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """Choose what holds for the whole session."""
        self.case = replace(
            self.case,
            decrypting=data.draw(st.sampled_from(sorted(name == "decrypt" for name in self.manifest.directions))),
            policy=data.draw(policies(self.manifest)),
            tag_len=data.draw(tag_lens(self.manifest)),
            ctx_edge=data.draw(st.sampled_from([Edge.MIDDLE, Edge.END])),
        )

    @property
    def _stages_to_leave(self) -> tuple[_Stage, ...]:
        """The stages from which a context may begin anew: not amid a message that is compared as a whole alone."""
        whole = self.manifest.steering == LIBRARY_STEERING or (self.manifest.is_aead and self.case.decrypting)
        return (_Stage.EMPTY, _Stage.KEYED) if whole else tuple(_Stage)

    @precondition(lambda self: bool(self.model.slots(*self._stages_to_leave)))
    @rule(data=st.data(), choice=st.integers(0, NUM_SLOTS - 1), place=places())
    def setkey(self, data: st.DataObject, choice: int, place: Any) -> None:
        """Give any context a key."""
        slot = self._slot(choice, *self._stages_to_leave)
        self._do(Operation(OpKind.SETKEY, data.draw(keys(self.manifest)), slot=slot, place=place), _Stage.KEYED)

    @precondition(lambda self: self.manifest.reinit and bool(self._keyed_to_leave()))
    @rule(choice=st.integers(0, NUM_SLOTS - 1))
    def reinit(self, choice: int) -> None:
        """Take a context back to the state after setkey."""
        slots = self._keyed_to_leave()
        self._do(Operation(OpKind.REINIT, slot=slots[choice % len(slots)]), _Stage.KEYED)

    def _keyed_to_leave(self) -> list[int]:
        return self.model.slots(*(stage for stage in self._stages_to_leave if stage is not _Stage.EMPTY))

    @precondition(_at(_Stage.KEYED))
    @rule(data=st.data(), choice=st.integers(0, NUM_SLOTS - 1), place=places(), iv_place=places())
    def setiv(self, data: st.DataObject, choice: int, place: Any, iv_place: Any) -> None:
        """Begin a message."""
        slot = self._slot(choice, _Stage.KEYED)
        iv = data.draw(ivs(self.manifest))
        self._do(Operation(OpKind.SETIV, iv, slot=slot, place=place, out_place=iv_place), _Stage.BEGUN)

    @precondition(lambda self: self.manifest.aad and self.manifest.split != "none" and _at(_Stage.BEGUN)(self))
    @rule(data=st.data(), choice=st.integers(0, NUM_SLOTS - 1), length=st.integers(1, 40), place=places())
    def aad(self, data: st.DataObject, choice: int, length: int, place: Any) -> None:
        """Give associated data, in as many pieces as come."""
        slot = self._slot(choice, _Stage.BEGUN)
        self._do(Operation(OpKind.AAD, data.draw(contents(length)), slot=slot, place=place))

    @precondition(_at(*_TAKES))
    @rule(
        data=st.data(), choice=st.integers(0, NUM_SLOTS - 1), place=places(), out_place=places(), in_place=st.booleans()
    )
    def update(self, data: st.DataObject, choice: int, place: Any, out_place: Any, *, in_place: bool) -> None:
        """Give data. Where only the last piece may have a part of a block, one that has is the last."""
        manifest = self.manifest
        slot = self._slot(choice, *_TAKES)
        length = data.draw(lengths(manifest))
        is_last = manifest.split == "none" or (manifest.split == "block" and length % manifest.block_len != 0)
        flags = Flag.OBSERVE_IV | (Flag.IN_PLACE if in_place and manifest.in_place else Flag(0))
        item = Operation(
            OpKind.UPDATE, data.draw(contents(length)), slot=slot, place=place, out_place=out_place, flags=flags
        )
        self._do(item, _Stage.LAST_FED if is_last else _Stage.FED)

    @precondition(lambda self: self.manifest.clone and bool(self._copies()))
    @rule(choice=st.integers(0, NUM_SLOTS * NUM_SLOTS - 1))
    def clone(self, choice: int) -> None:
        """Copy a context in the midst of a message; the message goes on in the copy."""
        copies = self._copies()
        source, target = copies[choice % len(copies)]
        stage = self.model.contexts[source].stage
        self._do(Operation(OpKind.CLONE, slot=target, from_slot=source), stage)
        self.model.contexts[source].stage = _Stage.KEYED

    def _copies(self) -> list[tuple[int, int]]:
        """Contexts in the midst of a message, each with one that it may be copied to."""
        targets = self.model.slots(*self._stages_to_leave)
        return [(source, target) for source in self.model.slots(*_OPEN) for target in targets if source != target]

    @precondition(lambda self: bool(self._finishable()))
    @rule(data=st.data(), choice=st.integers(0, NUM_SLOTS - 1), place=places(), out_place=places())
    def final(self, data: st.DataObject, choice: int, place: Any, out_place: Any) -> None:
        """End a message, with its tag where the mode has one."""
        slots = self._finishable()
        wrong = data.draw(wrong_bits(self.case.tag_len)) if self.manifest.tag_lens and self.case.decrypting else b""
        self._end(slots[choice % len(slots)], Operation(OpKind.TAG, wrong, place=place, out_place=out_place))

    def _end(self, slot: int, tag: Operation) -> None:
        self._do(Operation(OpKind.FINAL, slot=slot), _Stage.KEYED)
        if self.manifest.tag_lens:
            self._do(replace(tag, slot=slot))

    def teardown(self) -> None:
        """End the messages that are open, so that what is compared as a whole alone is compared."""
        if self.has_departed:
            return
        for slot in self._finishable():
            self._end(slot, Operation(OpKind.TAG, bytes(self.case.tag_len) if self.case.decrypting else b""))
        self.agrees()

    def _finishable(self) -> list[int]:
        """Contexts whose message may end: one that needs data has some."""
        manifest = self.manifest
        needs = manifest.split == "none" or manifest.min_len or manifest.min_len_blocks or not manifest.empty
        return self.model.slots(*([_Stage.FED, _Stage.LAST_FED] if needs else _OPEN))

    @invariant()
    def agrees(self) -> None:
        """Whatever was asked so far, both answer alike."""
        if not self.model.operations:
            return
        try:
            self.pair.check(normalised(self.case.with_operations(self.model.operations), self.manifest))
        except Departed:
            self.has_departed = True
            raise


def machine_for(pair: Pair) -> type[SessionMachine]:
    """The machine of a pair, for ``hypothesis.stateful.run_state_machine_as_test``, or by its ``TestCase``."""
    name = "".join(letter if letter.isalnum() else "_" for letter in pair.cell)
    return type(f"Machine_{name}", (SessionMachine,), {"pair": pair})
