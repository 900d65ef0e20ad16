# SPDX-License-Identifier: Apache-2.0
"""Runs many candidate cases at once: the oracle and the subject each take one batch, and each case is judged.

Decrypting cases of an AEAD mode are handled unsealed, as plaintext with the bits that are wrong in the tag: the oracle
encrypts them before they run, so that a shortened case is still authentic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Protocol, Self

import numpy as np

from crosslane import wire
from crosslane.client import SharedMemory
from crosslane.compare import Departure, compare
from crosslane.execute import CAPACITY, Executor, Station
from crosslane.findings.case import Case, Operation, batch_of, segments
from crosslane.findings.domain import may_be_tried
from crosslane.manifest import Manifest
from crosslane.seal import finished_batch
from crosslane.wire import Batch, Flag, OpKind, Results, Status, Verdict, Watch, displacement

__all__ = ["Judge", "Tries", "normalised"]

_MOST_CASES = 512
_MOST_BYTES = 4 << 20
_LAST, _OBSERVE = Flag.LAST.value, Flag.OBSERVE_IV.value


def normalised(case: Case, manifest: Manifest) -> Case:
    """The case with all that follows from its operations: lengths announced, last pieces, output lengths.

    The running iv stays observed only where the mode defines it. A tag operation holds the bits that are wrong in the
    tag when decrypting, and nothing when encrypting.
    """
    made = list(case.operations)
    for group in segments(case):
        _finish_message(made, group, manifest)
    for at, item in enumerate(made):
        if item.kind is OpKind.TAG:
            wrong = (item.data + bytes(case.tag_len))[: case.tag_len] if case.decrypting else b""
            out_len = 0 if case.decrypting else case.tag_len
            if (item.data, item.out_len) != (wrong, out_len):
                made[at] = replace(item, data=wrong, out_len=out_len)
    return case.with_operations(made)


def _out_len(item: Operation, manifest: Manifest) -> int:
    return 0 if manifest.is_mac else item.in_len


def _finish_message(made: list[Operation], group: Sequence[int], manifest: Manifest) -> None:
    """Set what a message announces and what its pieces say of themselves."""
    for i in group:
        made[i] = _overlap_fitted(made[i])
    updates = [i for i in group if made[i].kind is OpKind.UPDATE]
    taken = [i for i in updates if not made[i].overlapping]
    aad_len = sum(made[i].in_len for i in group if made[i].kind is OpKind.AAD)
    announcing = [i for i in group if made[i].kind is OpKind.SETIV]
    aux = (aad_len, sum(made[i].in_len for i in taken))
    for i in announcing:
        if made[i].aux != aux:
            made[i] = replace(made[i], aux=aux)
    done = 0
    for i in updates:
        item = made[i]
        done += 0 if item.overlapping else item.in_len
        defined = manifest.iv_out == "next" or (manifest.iv_out == "next_whole" and done % manifest.block_len == 0)
        bits = item.flags.value  # plain numbers: millions are made
        if announcing:
            bits = bits & ~_LAST | (_LAST if [i] == taken[-1:] else 0)
        bits = bits if defined and announcing else bits & ~_OBSERVE
        out_len = _out_len(item, manifest) + (manifest.block_len if bits & _OBSERVE else 0)
        if (bits, out_len) != (item.flags.value, item.out_len):
            made[i] = replace(item, flags=Flag(bits), out_len=out_len)


def _overlap_fitted(item: Operation) -> Operation:
    """Buffers that no longer overlap at their displacement come nearer; those too short to overlap lie apart."""
    if not item.overlapping:
        return item
    shift = displacement(item.aux[1])
    if item.in_len < 2:
        return replace(item, flags=item.flags & ~Flag.OVERLAP, aux=(item.aux[0], 0))
    if abs(shift) < item.in_len:
        return item
    nearer = item.in_len - 1 if shift > 0 else 1 - item.in_len
    return replace(item, aux=(item.aux[0], nearer % (1 << 64)))


@dataclass(frozen=True)
class _Answer:
    """Departures of the first ``num_judged`` cases; None for one that agrees."""

    departures: tuple[Departure | None, ...]
    num_judged: int


class Tries(Protocol):
    """Something that cases can be tried with."""

    @property
    def manifest(self) -> Manifest:
        """What the cases are of."""

    @property
    def num_tried(self) -> int:
        """Candidates run so far."""

    def may_be_tried(self, case: Case) -> bool:
        """Whether the subject promises anything about a case."""

    def all(self, cases: Sequence[Case]) -> list[Departure | None]:
        """The departure of each case."""

    def first(
        self,
        cases: Iterable[Case],
        accept: Callable[[Departure], bool],
        *,
        careful: bool = False,
        rejected: set[Case] | None = None,
    ) -> tuple[Case, Departure] | None:
        """The first case, in order, whose departure is accepted."""


class Judge:
    """An oracle and a subject that live as long as cases are tried. Use as a context manager."""

    def __init__(
        self,
        manifest: Manifest,
        oracle: Station,
        subject: Station,
        *,
        bounded: bool = False,
        watch: Watch = Watch.ALL,
    ) -> None:
        """Nothing is started before the first case. ``bounded``: the manifest keeps to a provider's domain."""
        self.manifest = manifest
        self._bounded = bounded
        self._memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
        self._oracle = Executor(oracle, self._memory, watch=Watch(0))
        self._blocks = Executor(oracle.blocks, self._memory, watch=Watch(0))
        self._subject = Executor(subject, self._memory, watch=watch)
        self.num_tried = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._oracle.release()
        self._blocks.release()
        self._subject.release()
        self._memory.close()

    @property
    def subject(self) -> Executor:
        """The subject's processes."""
        return self._subject

    def encrypt(self, batch: Batch) -> Results:
        """The oracle's answer to a batch; a view until the next call."""
        return self._asked(self._oracle, batch)

    def generated(self, number: int) -> Batch:
        """Batch ``number`` of the manifest, ready to run."""
        return finished_batch(self.manifest, number, self.encrypt, partial(self._asked, self._blocks))

    def _asked(self, executor: Executor, batch: Batch) -> Results:
        wire.encode_batch_into(batch, self._memory.view)
        executor.start(batch, len(batch))
        return executor.finish()

    def compare(self, batch: Batch, count: int) -> tuple[Departure, ...]:
        """All departures among the first ``count`` cases of a whole batch, in order."""
        wire.encode_batch_into(batch, self._memory.view)
        self._oracle.start(batch, len(batch))
        self._subject.start(batch, len(batch))
        found = compare(batch, self._oracle.finish(), self._subject.finish(), limit=len(batch) + 1)
        return tuple(item for item in found.departures if item.case < count)

    def sealed(self, cases: Sequence[Case]) -> list[Case]:
        """The cases as they run: authentic ciphertext where an AEAD decrypts; what is refused stays as it is."""
        wanted = [i for i, case in enumerate(cases) if self.manifest.is_aead and case.decrypting]
        done = list(cases)
        if not wanted:
            return done
        plain = [_encrypting(cases[i]) for i in wanted]
        answered = self.encrypt(batch_of(plain))
        out, statuses = answered.out.tobytes(), iter(answered.statuses.tolist())
        at = 0
        for i, item in zip(wanted, plain, strict=True):
            pieces = []
            for operation, original in zip(item.operations, cases[i].operations, strict=True):
                answer = out[at : at + operation.out_len]
                pieces.append(_with_answer(original, answer) if next(statuses) == Status.OK else original)
                at += operation.out_len
            done[i] = cases[i].with_operations(pieces)
        return done

    def unsealed(self, case: Case) -> Case | None:
        """The case as it is handled here; None where that would not give the same case again."""
        if not (self.manifest.is_aead and case.decrypting):
            return normalised(case, self.manifest)
        # Every AEAD mode of the suite adds a keystream: encrypting the ciphertext gives the plaintext.
        blank = case.with_operations(
            replace(item, data=bytes(case.tag_len)) if item.kind is OpKind.TAG else item for item in case.operations
        )
        plain = self.sealed([blank])[0]
        clear = blank.with_operations(
            replace(item, data=other.data) if item.kind is OpKind.UPDATE and not item.overlapping else item
            for item, other in zip(blank.operations, plain.operations, strict=True)
        )
        true = self.sealed([clear])[0]
        wrong = [
            replace(item, data=_xor(was.data, item_true.data)) if item.kind is OpKind.TAG else item
            for item, was, item_true in zip(clear.operations, case.operations, true.operations, strict=True)
        ]
        made = normalised(case.with_operations(wrong), self.manifest)
        return made if self.sealed([made])[0] == normalised_sealed(case, made) else None

    def judge(self, cases: Sequence[Case]) -> _Answer:
        """Run candidates, of which those behind the sixteenth that ends its process are not judged."""
        batch = batch_of(self.sealed(cases))
        wire.encode_batch_into(batch, self._memory.view)
        self._oracle.start(batch, len(batch))
        self._subject.start(batch, len(batch))
        oracle, subject = self._oracle.finish(), self._subject.finish()
        self.num_tried += len(cases)
        found = compare(batch, oracle, subject, limit=len(batch) + 1)
        by_case: dict[int, Departure] = {}
        for item in found.departures:
            by_case.setdefault(item.case, item)
        skipped = np.flatnonzero(subject.cases["verdict"] == Verdict.NOT_RUN)
        judged = int(skipped[0]) if len(skipped) else len(cases)
        return _Answer(tuple(by_case.get(i) for i in range(len(cases))), judged)

    def one(self, case: Case) -> Departure | None:
        """The departure of one case, if it departs."""
        return self.judge([case]).departures[0]

    def may_be_tried(self, case: Case) -> bool:
        """Whether a case in its normal form is one that the subject promises anything about."""
        return may_be_tried(case, self.manifest, bounded=self._bounded)

    def all(self, cases: Sequence[Case]) -> list[Departure | None]:
        """The departure of each case, however many end their process; None where a case may not be tried."""
        asked = [i for i, case in enumerate(cases) if self.may_be_tried(case)]
        found: list[Departure | None] = []
        while len(found) < len(asked):
            answer = self.judge([cases[i] for i in asked[len(found) : len(found) + _MOST_CASES]])
            if not answer.num_judged:
                break
            found += answer.departures[: answer.num_judged]
        by_case = dict(zip(asked, found, strict=False))
        return [by_case.get(i) for i in range(len(cases))]

    def first(
        self,
        cases: Iterable[Case],
        accept: Callable[[Departure], bool],
        *,
        careful: bool = False,
        rejected: set[Case] | None = None,
    ) -> tuple[Case, Departure] | None:
        """The first case, in order, whose departure is accepted; those before it go into ``rejected``.

        ``careful``: begin with small batches, for cases that cost a process each.
        """
        refused: set[Case] = set() if rejected is None else rejected
        for group in _groups(iter(cases), careful=careful):
            left = group
            while left:
                answer = self.judge(left)
                for case, departure in zip(left, answer.departures[: answer.num_judged], strict=False):
                    if departure is not None and accept(departure):
                        return case, departure
                    refused.add(case)
                if not answer.num_judged:
                    break
                left = left[answer.num_judged :]
        return None


def normalised_sealed(case: Case, like: Case) -> Case:
    """The sealed case with all but its data as in ``like``."""
    return like.with_operations(
        replace(item, data=was.data) for item, was in zip(like.operations, case.operations, strict=True)
    )


def _groups(cases: Iterator[Case], *, careful: bool) -> Iterator[list[Case]]:
    """Candidates in batches of bounded size, in order; careful ones double from one on."""
    limit = 1 if careful else _MOST_CASES
    group: list[Case] = []
    size = 0
    for case in cases:
        size += sum(item.in_len + item.out_len for item in case.operations)
        group.append(case)
        if len(group) >= limit or size > _MOST_BYTES:
            yield group
            group, size = [], 0
            limit = min(2 * limit, _MOST_CASES)
    if group:
        yield group


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=False))


def _encrypting(case: Case) -> Case:
    """The same session, encrypting: what its tag operations give is the true tag."""
    made = [
        replace(item, data=b"", out_len=case.tag_len) if item.kind is OpKind.TAG else item for item in case.operations
    ]
    return replace(case, decrypting=False, operations=tuple(made))


def _with_answer(item: Operation, answer: bytes) -> Operation:
    """An operation of a decrypting session, given what the encrypting one answered."""
    if item.kind is OpKind.UPDATE and not item.overlapping:
        return replace(item, data=answer[: len(item.data)])
    if item.kind is OpKind.TAG:
        return replace(item, data=_xor(answer, item.data))
    return item
