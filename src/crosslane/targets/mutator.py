# SPDX-License-Identifier: Apache-2.0
"""Mutation and crossover of inputs by their parts: a header, and records with the data that they bring.

A mutation is a function of input, size and seed, which the engine draws. One in two is the engine's own, which knows
what the code under test compares; the others know lengths, counters and layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crosslane.targets.rows import Row

__all__ = ["GIVEN", "HEADER_LEN", "RECORD_LEN", "Mutator", "given_code", "length_code", "records"]

HEADER_LEN = 6
RECORD_LEN = 7
_FEW = 248 << 8
_IN_64 = 192
GIVEN = tuple(code if code < _IN_64 else 64 * (code - _IN_64 + 1) for code in range(256))
"""Bytes of data that a record brings, by its last byte."""
_NUM_KINDS = 16
_KEPT_BITS = 0xFFFFFFFF


def given_code(length: int) -> int:
    """The least code of so many bytes of data, at most 4096."""
    return length if length < _IN_64 else min(255, _IN_64 - 1 + -(-length // 64))


def length_code(length: int) -> tuple[int, bool]:
    """A record's number for a length in bytes, and whether it counts eightfold; one beyond 2047 is rounded down."""
    if length < 256:
        return length, False
    return (_FEW + length, False) if length < 2048 else (_FEW + min(length // 8, 2047), True)


def records(data: bytes | bytearray) -> list[int]:
    """Where records begin."""
    starts = []
    at, last = HEADER_LEN, len(data) - RECORD_LEN
    while at <= last:
        starts.append(at)
        at += RECORD_LEN + GIVEN[data[at + 6]]
    return starts


def _lengths(rows: Sequence[Row]) -> tuple[int, ...]:
    """Numbers of records whose lengths lie where paths begin and end, in bytes or as choices of a list."""
    found = set(range(8))
    for row in rows:
        block_len, ways = row.manifest.block_len, row.implementation.ways
        for blocks in {1, 2, 3, 4, ways // 2, ways - 1, ways, ways + 1, 2 * ways, 2 * ways + 1}:
            found.update(blocks * block_len + tail for tail in (-1, 0, 1, block_len - 1))
    return tuple(sorted(length_code(n)[0] for n in found if 0 <= n < 2048))


def _fills() -> tuple[bytes, ...]:
    """Blocks for ivs, keys and data: counters before a carry at each border, single bits, all alike."""
    ones = b"\xff" * 16
    made = [bytes(16), ones, b"\x80" + bytes(15), bytes(15) + b"\x01"]
    for size in (1, 2, 4, 8, 12, 15):
        made.append(bytes(16 - size) + ones[:size])
        made += [ones[: 16 - size] + ones[: size - 1] + bytes([0xFF - j]) for j in (1, 2, 7, 15)]
        made.append(ones[:size] + bytes(16 - size))
    return tuple(made)


class Mutator:
    """Mutates inputs of some rows. ``engine`` is the engine's own mutation."""

    def __init__(self, rows: Sequence[Row], engine: Callable[[bytes, int], bytes]) -> None:
        """Lengths are those about the widths of the rows' implementations."""
        self._engine = engine
        self._lengths = _lengths(rows)
        self._fills = _fills()

    def mutate(self, data: bytes, max_size: int, seed: int) -> bytes:
        """An input made of another, at most ``max_size`` bytes; the same for the same seed."""
        if seed & 1 or len(data) <= HEADER_LEN + RECORD_LEN:
            return (
                self._engine(data, max_size)
                if seed & 6 or len(data) > HEADER_LEN
                else self._begun(data, max_size, seed)
            )
        # The engine's seeds count up: what follows is drawn of one that is spread over all bits.
        drawn = (seed * 0x9E3779B1 ^ seed >> 15) & _KEPT_BITS
        drawn = drawn * 0x85EBCA6B >> 5 & _KEPT_BITS
        starts = records(data)
        at = starts[(drawn >> 24) % len(starts)]
        made = bytearray(data)
        self._change(made, at, drawn & 15, drawn >> 4 & 0xFFFFF)
        return bytes(made) if len(made) <= max_size else bytes(made[:max_size])

    def _change(self, made: bytearray, at: int, kind: int, number: int) -> None:
        given = GIVEN[made[at + 6]]
        if kind < 4:
            length = self._lengths[number % len(self._lengths)]
            made[at + 4], made[at + 5] = length & 255, length >> 8
        elif kind < 7:
            fill = self._fills[number % len(self._fills)]
            begin = at + RECORD_LEN + (number >> 8) % (given // 16 + 1) * 16
            stop = min(begin + 16, at + RECORD_LEN + given, len(made))
            made[begin:stop] = fill[: max(0, stop - begin)]
        elif kind == 7:
            made[at + (number & 3)] = number >> 2 & 255
        elif kind == 8:
            made[number % HEADER_LEN] = number >> 3 & 255
        elif kind == 9:
            del made[at : at + RECORD_LEN + given]
        elif kind == 10:
            made[at:at] = made[at : at + RECORD_LEN + given]
        elif kind == 11:
            made[at + 2 + (number & 1)] = number >> 1 & 63 | (0, 64, 128, 0)[number >> 7 & 3]
        else:
            made[at:at] = self._record(number)

    def _record(self, number: int) -> bytes:
        length = self._lengths[(number >> 3) % len(self._lengths)]
        head = (number & 7, number >> 13 & 1, 0x80, 0x80, length & 255, length >> 8, 16)
        return bytes(head) + self._fills[(number >> 9) % len(self._fills)]

    def _begun(self, data: bytes, max_size: int, seed: int) -> bytes:
        """The first input of all."""
        header = (data + bytes(HEADER_LEN))[:HEADER_LEN]
        return (header + self._record(seed >> 3 & 0xFFFFF) + self._record(seed >> 7 & 0xFFFFF))[:max_size]

    def cross_over(self, one: bytes, other: bytes, max_size: int, seed: int) -> bytes:
        """The first records of one input, then the last ones of another."""
        firsts, lasts = records(one), records(other)
        if not firsts or not lasts:
            return (one + other)[:max_size] or b"\0"
        head, tail = firsts[seed % len(firsts)], lasts[(seed >> 8) % len(lasts)]
        made = one[:head] + other[tail:]
        return made[:max_size] or b"\0"
