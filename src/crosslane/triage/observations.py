# SPDX-License-Identifier: Apache-2.0
"""What probing a finding observed, as plain data: what the classifier decides by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Answer", "Facts", "Observations", "Watched"]


@dataclass(frozen=True)
class Answer:
    """How a subject answered one session beside the oracle.

    ``wrong`` are the indexes of the blocks of data that differ, each once, ascending, counted from the beginning of
    their message. ``iv`` ``tag`` ``status``: whether these differ. ``unwritten``: all bytes that differ still hold what
    lay in the output before. ``ended``: the watcher that objected, or how the process ended; empty where it did not.
    """

    wrong: tuple[int, ...] = ()
    iv: bool = False
    tag: bool = False
    status: bool = False
    unwritten: bool = False
    ended: str = ""

    @property
    def departs(self) -> bool:
        """Whether anything differs."""
        return bool(self.wrong or self.iv or self.tag or self.status or self.ended)

    @property
    def answers_wrong(self) -> bool:
        """Whether data, tag or status differ."""
        return bool(self.wrong or self.tag or self.status or self.ended)


@dataclass(frozen=True)
class Facts:
    """What is known of the mode and the subject beforehand. Lengths in bytes, ``ways`` in blocks.

    ``iv`` and ``partial`` are as in ``model.Mode``; ``native`` is whether nothing emulates the subject.
    """

    mode: str
    block_len: int
    ways: int = 1
    iv: str = "none"
    partial: str = "refused"
    is_mac: bool = False
    is_aead: bool = False
    decrypting: bool = False
    native: bool = True


@dataclass(frozen=True)
class Watched:
    """What the watchers said of the least case: names in lower case, as results have them.

    ``refuses``: what is legal was refused; ``accepts``: what is illegal was not. ``offset`` is in bytes from the start
    of ``buffer``, which has ``buffer_len`` (0: not known). ``registers`` are names, ``report`` a sanitizer's words.
    """

    symptom: str
    verdict: str = "disagree"
    signal: str = ""
    buffer: str = "none"
    offset: int = 0
    buffer_len: int = 0
    registers: str = ""
    refuses: bool = False
    accepts: bool = False
    report: str = ""


@dataclass(frozen=True)
class Observations:
    """All that is known of one finding.

    ``words`` are the features that the least case has, with their numbers (``counter:64``); ``without`` says of each
    that was taken out whether the case still departs. ``length`` is of its longest piece, ``pieces`` are the
    lengths of all in turn. ``plain`` are sessions that
    have none of these features, by length: random keys, ivs and data, apart, aligned, in one call. ``carries`` are such
    sessions with a counter so many blocks before it carries out of so many bits. ``keys`` and ``headers`` say of plain
    sessions with another key length, and with another nonce length, tag length or associated data, whether any departs;
    ``zero_key`` and ``zero_iv`` of those under zeros. ``blocks`` is whether the block function departs when it is
    called by itself (None: not asked). ``watched_lens`` are lengths at which what a watcher saw shows, and at which
    not. ``builds`` says of other builds of the subject, by lane, whether the least case departs, ``emulated`` of the
    same program in lanes of other runners or CPU models, ``arches`` of the same sources by architecture, this one too.
    """

    facts: Facts
    watched: Watched
    words: frozenset[str] = frozenset()
    without: Mapping[str, bool] = field(default_factory=dict)
    length: int = 0
    pieces: tuple[int, ...] = ()
    refused: bool = False
    noise: bool = False
    other_context: bool = False
    neighbours: bool = False
    plain: Mapping[int, tuple[Answer, ...]] = field(default_factory=dict)
    carries: Mapping[tuple[int, int], Answer] = field(default_factory=dict)
    keys: Mapping[int, bool] = field(default_factory=dict)
    headers: Mapping[str, bool] = field(default_factory=dict)
    zero_key: bool | None = None
    zero_iv: bool | None = None
    blocks: bool | None = None
    watched_lens: Mapping[int, bool] = field(default_factory=dict)
    builds: Mapping[str, bool] = field(default_factory=dict)
    emulated: Mapping[str, bool] = field(default_factory=dict)
    arches: Mapping[str, bool] = field(default_factory=dict)

    def has(self, *names: str) -> bool:
        """Whether the least case has one of these features."""
        return any(word.partition(":")[0] in names for word in self.words)

    def needs(self, *names: str) -> bool:
        """Whether the least case agrees without one of these features that it has."""
        return any(self.without.get(word) is False for word in self.words if word.partition(":")[0] in names)
