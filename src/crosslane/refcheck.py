# SPDX-License-Identifier: Apache-2.0
"""Sends a sample of cases through the readable Python references, since composed modes share their C with generic.

The references compute with blocks only; their block functions ask the generic implementation's ECB in a shim. All
sampled messages run in step, each as a greenlet that waits for its next block, so that one batch answers thousands.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from greenlet import getcurrent, greenlet
from numpy.typing import NDArray

from crosslane.errors import BadInput, HarnessFault
from crosslane.generate import output_lens
from crosslane.model import Algorithm
from crosslane.oracles import Oracle
from crosslane.reference import Answer, Keyed, Message, Refused
from crosslane.solve import Ask, ask_blocks
from crosslane.wire import Batch, Flag, OpKind, Results, Status, Verdict

__all__ = ["OracleVerdict", "Sample", "judge_by_oracle", "judge_samples", "load_reference", "take_samples"]

_LONGEST = 1024
"""Messages of more bytes are not sampled: their blocks would make all others wait."""
_EVERY = 100

Run = Callable[[Keyed, Message], Answer]


@dataclass(frozen=True)
class Sample:
    """One message as the session gave it to generic, and what generic made of it. ``iv`` is None where not observed.

    ``refused``: its tag is wrong. ``status`` is the first answer that refused the message for its form, ``overlaps``
    are the answers to calls on overlapping buffers, which are no part of it.
    """

    batch: int
    case: int
    message: Message
    out: bytes
    iv: bytes | None
    tag: bytes
    refused: bool
    status: Status = Status.OK
    overlaps: tuple[int, ...] = ()


def load_reference(folder: Path) -> Run:
    """The function ``run`` of a mode's ``reference.py``; raises BadInput where there is none."""
    path = folder / "reference.py"
    spec = importlib.util.spec_from_file_location(f"crosslane_reference_{folder.name}", path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{path}: is no Python file that can be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    run = getattr(module, "run", None)
    if not callable(run):
        raise BadInput(f"{path}: a reference defines run(keyed, message) -> Answer; add it")
    chosen: Run = run
    return chosen


@dataclass(frozen=True)
class OracleVerdict:
    """What one oracle says: the samples that it could judge, and those in which generic departs from it."""

    name: str
    judged: Sequence[Sample]
    wrong: tuple[tuple[Sample, str], ...]


@dataclass
class _Open:
    """A message while its operations are read."""

    iv_in: bytes
    aad: bytes = b""
    data: bytes = b""
    out: bytes = b""
    iv: bytes | None = None
    announced: tuple[int, int] = (0, 0)
    status: Status = Status.OK
    overlaps: tuple[int, ...] = ()
    tag_in: bytes = b""
    tag_out: bytes = b""
    refused: bool = False


def take_samples(number: int, batch: Batch, results: Results) -> Iterator[Sample]:
    """The messages of one case in a hundred, those that were refused for their form among them."""
    lens = output_lens(batch, np.arange(len(batch.ops)))
    for case in range(number % _EVERY, len(batch), _EVERY):
        if results.cases["verdict"][case] == Verdict.RAN:
            yield from _messages_of(number, case, batch, results, lens)


def _messages_of(number: int, case: int, batch: Batch, results: Results, lens: NDArray[np.int64]) -> Iterator[Sample]:
    record = batch.cases[case]
    first, count = int(record["first_op"]), int(record["num_ops"])
    decrypting, tag_len = bool(record["decrypting"]), int(record["tag_len"])
    end = OpKind.TAG if OpKind.TAG in batch.ops["kind"][first : first + count] else OpKind.FINAL
    keys: dict[int, bytes] = {}
    messages: dict[int, _Open] = {}
    for index in range(first, first + count):
        op, status = batch.ops[index], int(results.statuses[index])
        kind, slot = OpKind(int(op["kind"])), int(op["slot"])
        if kind is OpKind.SETKEY and status == Status.OK:
            keys[slot] = _given(batch, index)
        if kind is OpKind.CLONE and int(op["from_slot"]) in messages and int(op["from_slot"]) in keys:
            keys[slot], messages[slot] = keys[int(op["from_slot"])], messages[int(op["from_slot"])]
        if kind is OpKind.SETIV:
            messages[slot] = _Open(_given(batch, index), announced=(int(op["aux0"]), int(op["aux1"])))
        message = messages.get(slot)
        if message is None or kind in (OpKind.SETKEY, OpKind.REINIT):
            continue
        _read(message, batch, results, index, int(lens[index]))
        if kind is end and slot in keys and len(message.data) <= _LONGEST:
            came = (len(message.aad), len(message.data))
            announced = message.announced if message.announced != came else None
            asked = Message(decrypting, keys[slot], message.iv_in, message.aad, message.data, tag_len, announced)
            tag = message.tag_in if decrypting else message.tag_out
            yield Sample(
                number, case, asked, message.out, message.iv, tag, message.refused, message.status, message.overlaps
            )


def _given(batch: Batch, index: int) -> bytes:
    op = batch.ops[index]
    return batch.blob[int(op["in_off"]) :][: int(op["in_len"])].tobytes()


def _read(message: _Open, batch: Batch, results: Results, index: int, out_len: int) -> None:
    """Add an operation to its message."""
    op, status = batch.ops[index], int(results.statuses[index])
    kind, out = OpKind(int(op["kind"])), int(op["out_off"])
    if op["flags"] & Flag.OVERLAP and kind is OpKind.UPDATE:
        if message.status is Status.OK:
            message.overlaps += (status,)
        return
    if kind is OpKind.AAD:
        message.aad += _given(batch, index)
    elif kind is OpKind.UPDATE:
        _read_update(message, batch, results, index, out_len)
    elif kind is OpKind.TAG:
        message.tag_in = _given(batch, index)
        message.tag_out = results.out[out : out + out_len].tobytes()
        message.refused = status == Status.BAD_TAG
    if message.status is Status.OK and not (kind is OpKind.TAG and status == Status.BAD_TAG):
        message.status = Status(status) if status in Status._value2member_map_ else Status.UNSUPPORTED


def _read_update(message: _Open, batch: Batch, results: Results, index: int, out_len: int) -> None:
    op, given = batch.ops[index], _given(batch, index)
    out = int(op["out_off"])
    observed = bool(op["flags"] & Flag.OBSERVE_IV)
    iv_len = out_len - len(given) if observed else 0
    message.data += given
    message.out += results.out[out : out + out_len - iv_len].tobytes()
    message.iv = results.out[out + out_len - iv_len : out + out_len].tobytes() if observed else None


@dataclass(frozen=True)
class _Request:
    key: bytes
    decrypting: bool
    block: bytes


@dataclass(frozen=True)
class _Waiting:
    """A block cipher whose every block is asked of the hub and waited for."""

    key: bytes
    block_len: int

    def encrypt(self, block: bytes) -> bytes:
        return self._ask(block, decrypting=False)

    def decrypt(self, block: bytes) -> bytes:
        return self._ask(block, decrypting=True)

    def _ask(self, block: bytes, *, decrypting: bool) -> bytes:
        hub = getcurrent().parent
        assert hub is not None
        answer: bytes = hub.switch(_Request(self.key, decrypting, block))
        return answer


@dataclass
class _Hub:
    """Runs many references in step."""

    execute: Ask
    block_len: int
    known: dict[_Request, bytes] = field(default_factory=dict)

    def run_all(self, run: Run, messages: Sequence[Message]) -> list[Answer | Refused]:
        answers: list[Any] = [None] * len(messages)
        waiting: list[tuple[int, greenlet, _Request]] = []

        def keyed(key: bytes) -> _Waiting:
            return _Waiting(key, self.block_len)

        def step(number: int, let: greenlet, value: Any) -> None:
            if isinstance(value, _Request):
                waiting.append((number, let, value))
            else:
                answers[number] = value

        def answer(keyed: Keyed, message: Message) -> Answer | Refused:
            try:
                return run(keyed, message)
            except Refused as refused:
                return refused

        for number, message in enumerate(messages):
            let = greenlet(answer)
            step(number, let, let.switch(keyed, message))
        while waiting:
            now, waiting = waiting, []
            blocks = self._answer([request for _, _, request in now])
            for (number, let, _), block in zip(now, blocks, strict=True):
                step(number, let, let.switch(block))
        return answers

    def _answer(self, requests: Sequence[_Request]) -> list[bytes]:
        new = list(dict.fromkeys(request for request in requests if request not in self.known))
        for decrypting in (False, True):
            some = [request for request in new if request.decrypting is decrypting]
            if some:
                self.known.update(zip(some, self._blocks(some), strict=True))
        return [self.known[request] for request in requests]

    def _blocks(self, requests: Sequence[_Request]) -> list[bytes]:
        blocks = np.frombuffer(b"".join(request.block for request in requests), np.uint8).reshape(-1, self.block_len)
        keys = [request.key for request in requests]
        answers = ask_blocks(self.execute, keys, blocks, decrypting=requests[0].decrypting)
        return [answer.tobytes() for answer in answers]


def judge_samples(run: Run, samples: Sequence[Sample], block_len: int, execute: Ask) -> list[tuple[Sample, str]]:
    """The samples in which generic departs from the reference, each with a sentence. ``execute`` runs ECB batches."""
    hub = _Hub(execute, block_len)
    answers = hub.run_all(run, [sample.message for sample in samples])
    judged = ((sample, _difference(sample, answer)) for sample, answer in zip(samples, answers, strict=True))
    return [(sample, text) for sample, text in judged if text]


def _asked(oracle: Oracle, algorithm: Algorithm, message: Message) -> Answer | None:
    try:
        return oracle.run(algorithm.mode, algorithm.cipher, message)
    except Exception as error:
        raise HarnessFault(
            f"the library of the oracle {oracle.name} refuses {algorithm} with {len(message.key)} bytes of key and "
            f"{len(message.data)} of data ({type(error).__name__}: {error}): have its run() return None there"
        ) from error


def judge_by_oracle(oracle: Oracle, algorithm: Algorithm, samples: Sequence[Sample]) -> OracleVerdict:
    """Hold the samples that lie in an oracle's domain against it; raises HarnessFault where the library raises."""
    wrong, judged = [], []
    for sample in samples:
        answer = None if sample.status is not Status.OK else _asked(oracle, algorithm, sample.message)
        if answer is None:
            continue
        judged.append(sample)
        text = _difference(sample, answer, oracle.name)
        if text:
            wrong.append((sample, text))
    return OracleVerdict(oracle.name, judged, tuple(wrong))


def _refusal_differs(sample: Sample, answer: Answer | Refused, who: str) -> str:
    """What generic and a reference say of the form of a message, where that is not the same."""
    if any(status != Status.OVERLAP for status in sample.overlaps):
        return "generic takes an update whose output overlaps its input"
    wanted = answer.status if isinstance(answer, Refused) else Status.OK
    if wanted is sample.status:
        return ""
    ours, theirs = (status.name.lower() for status in (sample.status, wanted))
    return f"generic answers {ours}, {who} {theirs}"


def _difference(sample: Sample, answer: Answer | Refused, who: str = "the Python reference") -> str:
    text = _refusal_differs(sample, answer, who)
    if not text and not isinstance(answer, Refused):
        text = _answer_differs(sample, answer, who)
    return f"the message of {len(sample.message.data)} bytes: {text}" if text else ""


def _answer_differs(sample: Sample, answer: Answer, who: str) -> str:
    """What generic and another made of a message that both take, where that is not the same."""
    message = sample.message
    if message.decrypting and message.tag_len:
        if (answer.tag != sample.tag) != sample.refused:
            return f"generic {'refuses' if sample.refused else 'takes'} a tag, {who} does not"
        if sample.refused:
            return ""
    elif answer.tag != sample.tag:
        return f"the tag is {sample.tag.hex()}, {who} gives {answer.tag.hex()}"
    if answer.data != sample.out:
        pairs = enumerate(zip(answer.data, sample.out, strict=False))
        at = next((i for i, (a, b) in pairs if a != b), min(len(answer.data), len(sample.out)))
        return f"byte {at} of the output differs from {who}"
    if sample.iv is not None and answer.iv and answer.iv != sample.iv:
        return f"the next iv is {sample.iv.hex()}, {who} gives {answer.iv.hex()}"
    return ""
