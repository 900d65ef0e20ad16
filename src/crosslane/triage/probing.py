# SPDX-License-Identifier: Apache-2.0
"""Probes a finding: runs its case and the sessions beside it, each batch in fresh processes, and notes what shows.

Which sessions are tried depends on what the case showed: lengths alone where a watcher objected, else plain sessions,
those without each feature of the case, carries, other keys and headers, and the block function by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from crosslane.compare import Departure
from crosslane.describe import register_names, signal_name
from crosslane.errors import BadInput
from crosslane.execute import Station
from crosslane.findings.case import Case, whole_batch
from crosslane.findings.classify import class_unasked
from crosslane.findings.gather import Suspect, first_departure
from crosslane.findings.judge import Judge
from crosslane.findings.probes import depends_on_watcher, holds_refusal
from crosslane.findings.shrink import kind_of_answer
from crosslane.findings.without import REMOVABLE, legal_keys, longest, without
from crosslane.manifest import Manifest
from crosslane.names import parse_algorithm
from crosslane.triage.answers import ask, ask_few
from crosslane.triage.observations import Answer, Facts, Observations, Watched
from crosslane.triage.variants import Plain, carries, headers, lengths, plain, usual, watched_lens
from crosslane.wire import Buffer, OpKind, Symptom, Verdict, Watch

__all__ = ["Target", "observe"]

_VALUES = 3
_ANSWERS = (Symptom.OUTPUT, Symptom.IV)
_DECRYPTING_BLOCKS = ("ecb", "cbc", "cts_cbc", "xts", "xts_gb", "lrw")
"""Modes whose decryption takes the inverse of the block function."""
_WIDEST = 34
_LONG = 4096
"""Bytes of a message that is tried as a plain session although it is longer than the lengths that all are tried at."""


@dataclass(frozen=True)
class Target:
    """What is probed: one cell, its case as it runs, and the subject's width in blocks.

    ``blocks`` is the manifest of the block function, None where the subject does not show it. ``builds`` are the same
    sources built in other ways, ``emulated`` the same program under other runners or CPU models, by lane; ``arches``
    the same sources, by architecture.
    """

    suspect: Suspect
    sealed: Case
    ways: int = 1
    native: bool = True
    blocks: Manifest | None = None
    builds: Mapping[str, Station] = field(default_factory=dict)
    emulated: Mapping[str, Station] = field(default_factory=dict)
    arches: Mapping[str, Station] = field(default_factory=dict)

    def departure(self, watch: Watch = Watch.ALL) -> Departure | None:
        """What the case comes to in fresh processes."""
        suspect = self.suspect
        return first_departure(whole_batch(self.sealed), suspect.subject, suspect.oracle, watch=watch)


def observe(target: Target) -> Observations:
    """All observations; raises BadInput where the case departs no more, or not every time."""
    seen = [target.departure() for _ in range(3)]
    if any(item is None for item in seen):
        often = sum(item is not None for item in seen)
        raise BadInput(
            f"its case departs {often} of 3 times: `crosslane findings retest` says how often, and triage needs one "
            "that departs every time"
        )
    departure = seen[0]
    assert departure is not None
    suspect = target.suspect
    facts = _facts(target)
    watched = watched_of(departure, suspect.arch, target.sealed)
    found = Observations(facts, watched, neighbours=bool(target.sealed.neighbours))
    with suspect.judge() as judge:
        case = judge.unsealed(target.sealed)
        if case is None:
            return found
        prober = _Prober(target, judge, case, departure)
        return prober.observations(found, seen)


def watched_of(departure: Departure, arch: str, case: Case) -> Watched:
    """A departure of a case as the classifier takes it."""
    refusing = departure.symptom is Symptom.OUTPUT and departure.buffer is Buffer.NONE
    kind = kind_of_answer(departure) if refusing else ""
    return Watched(
        symptom=departure.symptom.name.lower(),
        verdict=departure.verdict.name.lower(),
        signal=signal_name(departure.signal) if departure.signal else "",
        buffer=departure.buffer.name.lower(),
        offset=departure.offset,
        buffer_len=_buffer_len(departure, case),
        registers=register_names(departure.registers, arch) if departure.symptom is Symptom.ABI else "",
        refuses=kind == "refuses",
        accepts=kind == "accepts",
        report=departure.report,
    )


def _buffer_len(departure: Departure, case: Case) -> int:
    """Bytes of the buffer that a watcher spoke of; 0 where they are not known."""
    item = case.operations[departure.op] if departure.op < len(case.operations) else None
    if item is None:
        return 0
    if departure.buffer in (Buffer.IN, Buffer.AAD, Buffer.KEY, Buffer.IV_IN):
        return item.in_len
    if departure.buffer is Buffer.OUT:
        return min(item.in_len, item.out_len)
    return item.out_len if departure.buffer is Buffer.TAG else 0


def _facts(target: Target) -> Facts:
    manifest = target.suspect.manifest
    return Facts(
        mode=parse_algorithm(manifest.algorithm).mode,
        block_len=manifest.block_len,
        ways=max(1, target.ways),
        iv=manifest.iv,
        partial=manifest.partial,
        is_mac=manifest.is_mac,
        is_aead=manifest.is_aead,
        decrypting=target.sealed.decrypting,
        native=target.native,
    )


class _Prober:
    """Tries sessions beside one case. The judge seals them; every batch runs in processes of its own."""

    def __init__(self, target: Target, judge: Judge, case: Case, departure: Departure) -> None:
        self._target, self._judge, self._case, self._departure = target, judge, case, departure
        self._manifest = target.suspect.manifest
        self._usual = usual(case, self._manifest)

    def _asked(self, cases: Sequence[Case], *, few: bool = False) -> list[Answer | None]:
        """The answers to unsealed sessions; None for one that may not be tried or was not come to."""
        allowed = [i for i, case in enumerate(cases) if self._judge.may_be_tried(case)]
        sealed = self._judge.sealed([cases[i] for i in allowed])
        suspect = self._target.suspect
        answers = (ask_few if few else ask)(suspect.oracle, suspect.subject, sealed, self._manifest.block_len)
        by_case = dict(zip(allowed, answers, strict=True))
        return [by_case.get(i) for i in range(len(cases))]

    def observations(self, found: Observations, seen: Sequence[Departure | None]) -> Observations:
        """All of them, the costly ones where the case showed a wrong answer."""
        target, departure = self._target, self._departure
        words = class_unasked(self._case, departure, self._manifest, target.suspect.arch).features
        found = replace(found, words=frozenset(words), length=longest(self._case), pieces=_pieces(self._case))
        found = replace(
            found,
            refused=holds_refusal(self._judge, target.sealed, departure),
            noise=self._depends(Watch.REGISTERS, seen),
            other_context=self._depends(Watch.CONTEXT, seen),
            builds=self._elsewhere(target.builds),
            emulated=self._elsewhere(target.emulated),
            arches=self._elsewhere(target.arches),
        )
        if found.neighbours:
            return found
        ended = departure.symptom not in _ANSWERS
        found = replace(found, without=self._without(words, few=ended))
        if ended:
            return replace(found, watched_lens=self._watched_lens())
        if found.watched.refuses or found.watched.accepts or found.refused or found.has("overlap"):
            return found
        return self._plain(found)

    def _depends(self, watcher: Watch, seen: Sequence[Departure | None]) -> bool:
        """Whether the case departs otherwise without what a watcher does to registers, stack or other contexts."""
        if self._target.suspect.bounded:
            return False
        if watcher is Watch.CONTEXT and not any(item.slot for item in self._case.operations):
            return False
        return depends_on_watcher(seen, self._target.departure(Watch.ALL & ~watcher))

    def _elsewhere(self, stations: Mapping[str, Station]) -> dict[str, bool]:
        batch, oracle = whole_batch(self._target.sealed), self._target.suspect.oracle
        return {name: first_departure(batch, item, oracle) is not None for name, item in stations.items()}

    def _without(self, words: Iterable[str], *, few: bool) -> dict[str, bool]:
        """Of each feature that can be taken out, whether the case still departs."""
        named = [word for word in words if word.partition(":")[0] in REMOVABLE]
        made = [without(self._case, word, self._manifest) for word in named]
        answers = self._asked(made, few=few)
        return {word: answer.departs for word, answer in zip(named, answers, strict=True) if answer is not None}

    def _watched_lens(self) -> dict[int, bool]:
        """The lengths at which what the watcher saw shows, and at which it does not."""
        if self._departure.verdict is Verdict.HANG:
            return {}
        made = dict(watched_lens(self._case, self._manifest))
        answers = self._asked(list(made.values()), few=True)
        return {length: bool(answer.ended) for length, answer in zip(made, answers, strict=True) if answer is not None}

    def _plain(self, found: Observations) -> Observations:
        """Plain sessions of all lengths, and what further ones they call for."""
        manifest, wanted, ways = self._manifest, self._usual, found.facts.ways
        lens = lengths(manifest, ways)
        if lens[-1] < found.length < _LONG:
            lens += [found.length, found.length + manifest.block_len]
        asked = [replace(wanted, length=length, value=value) for length in lens for value in range(_VALUES)]
        answers = self._made(asked)
        rows: dict[int, list[Answer]] = {}
        for item, answer in zip(asked, answers, strict=True):
            if answer is not None:
                rows.setdefault(item.length, []).append(answer)
        found = replace(found, plain={length: tuple(items) for length, items in rows.items()})
        return replace(
            found,
            blocks=self._blocks(ways),
            keys=self._keys(lens),
            headers=self._headers(),
            carries=self._carries(ways),
            zero_key=self._any(replace(wanted, length=n, key=bytes(wanted.key_len)) for n in lens),
            zero_iv=self._zero_iv(lens),
        )

    def _made(self, asked: Sequence[Plain]) -> list[Answer | None]:
        return self._asked([plain(item, self._manifest) for item in asked])

    def _any(self, asked: Iterable[Plain]) -> bool | None:
        """Whether any of these departs; None where none could be tried."""
        answers = [answer for answer in self._made(list(asked)) if answer is not None]
        return any(answer.departs for answer in answers) if answers else None

    def _zero_iv(self, lens: Sequence[int]) -> bool | None:
        if self._manifest.iv not in ("counter", "index"):
            return None
        return self._any(replace(self._usual, length=n, iv=bytes(self._usual.iv_len)) for n in lens)

    def _keys(self, lens: Sequence[int]) -> dict[int, bool]:
        others = [n for n in legal_keys(self._manifest) if n != self._usual.key_len]
        found = {n: self._any(replace(self._usual, length=length, key_len=n) for length in lens) for n in others}
        return {n: departs for n, departs in found.items() if departs is not None}

    def _headers(self) -> dict[str, bool]:
        bs = self._manifest.block_len
        found: dict[str, bool] = {}
        if not self._manifest.is_aead:
            return found
        for name, item in headers(self._usual, self._manifest):
            departs = self._any(replace(item, length=n, value=n) for n in (0, bs - 3, 2 * bs, 3 * bs + 5))
            if departs is not None:
                found[name] = departs
        return found

    def _carries(self, ways: int) -> dict[tuple[int, int], Answer]:
        manifest = self._manifest
        if manifest.iv not in ("counter", "index"):
            return {}
        bs = manifest.block_len
        longest_one = 2 * min(ways, _WIDEST) + 2
        places = [
            (bits, j, n, above)
            for bits, j in carries(manifest, ways)
            for n in {j, longest_one}
            for above in (0x5A, 0x00, 0xFF)
        ]
        asked = [replace(self._usual, length=n * bs, iv=_before(bits, j, bs, above)) for bits, j, n, above in places]
        found: dict[tuple[int, int], Answer] = {}
        for (low, j, _, above), answer in zip(places, self._made(asked), strict=True):
            bits = 8 * bs if above == 0xFF else low  # with ones above them all bits carry
            if answer is not None and not (found.get((bits, j), Answer()).answers_wrong):
                found[bits, j] = answer if answer.departs else found.get((bits, j), answer)
        return found

    def _blocks(self, ways: int) -> bool | None:
        """Whether the block function departs by itself, in the direction that the mode takes it in."""
        manifest, suspect = self._target.blocks, self._target.suspect
        if manifest is None:
            return None
        mode = parse_algorithm(self._manifest.algorithm).mode
        key_len = (self._usual.key_len - self._manifest.key_extra_len) // self._manifest.num_keys
        wanted = Plain(0, key_len, decrypting=self._case.decrypting and mode in _DECRYPTING_BLOCKS)
        made = [
            plain(replace(wanted, length=length, value=value), manifest)
            for length in lengths(manifest, ways)
            for value in range(_VALUES)
        ]
        answers = ask(suspect.oracle.blocks, suspect.subject.blocks, made, manifest.block_len)
        return any(answer.departs for answer in answers if answer is not None)


def _pieces(case: Case) -> tuple[int, ...]:
    return tuple(item.in_len for item in case.operations if item.kind is OpKind.UPDATE)


def _before(bits: int, blocks: int, block_len: int, above: int) -> bytes:
    """A counter so many blocks before it carries out of so many bits, with bytes of ``above`` above them."""
    high = int.from_bytes(bytes([above]) * block_len, "big") >> bits << bits
    return (high | ((1 << bits) - blocks)).to_bytes(block_len, "big")
