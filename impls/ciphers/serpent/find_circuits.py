# SPDX-License-Identifier: Apache-2.0
"""Finds Boolean circuits for Serpent's S-boxes and their inverses, and writes them as two C headers.

A function of the four input bits is its truth table: bit v is the value at input v. Functions are held up to
complement, in the form that is 0 at input 0 (so tables are even numbers); XOR, AND, OR and AND-NOT keep that form.
A circuit is a growing list of such functions, each made of two earlier ones, until it holds the four outputs. A beam
search grows all kept circuits by one gate at a time and keeps those whose missing outputs look nearest.

For general registers a second step chooses, for every function, whether it or its complement is computed, so that
few NOTs are needed. Vector units have AND-NOT, so that one instruction makes any gate up to complement; there no NOT is
needed at all, and some outputs come out complemented: the caller undoes that in the round keys.

    python find_circuits.py --output serpent_circuits.h --vector-output serpent_vector_circuits.h

It takes some minutes; equal options and numpy give equal files.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["SBOXES", "Circuit", "Program", "complete", "emit", "emit_vector", "find", "main", "run", "search"]

# Serpent submission, appendix A.5: S_0 to S_7, the output for each input 0 to 15.
SBOXES: tuple[tuple[int, ...], ...] = (
    (3, 8, 15, 1, 10, 6, 5, 11, 14, 13, 4, 2, 7, 0, 9, 12),
    (15, 12, 2, 7, 9, 0, 5, 10, 1, 11, 14, 8, 6, 13, 3, 4),
    (8, 6, 7, 9, 3, 12, 10, 15, 13, 1, 14, 4, 0, 11, 5, 2),
    (0, 15, 11, 8, 12, 9, 6, 3, 13, 1, 2, 4, 10, 7, 5, 14),
    (1, 15, 8, 3, 12, 0, 11, 6, 2, 5, 4, 10, 9, 14, 7, 13),
    (15, 5, 2, 11, 4, 10, 9, 12, 0, 3, 14, 8, 13, 6, 7, 1),
    (7, 2, 12, 5, 8, 4, 6, 11, 14, 9, 1, 15, 13, 3, 10, 0),
    (1, 13, 15, 0, 14, 8, 2, 11, 7, 4, 12, 10, 9, 3, 5, 6),
)

INPUTS = (0xAAAA, 0xCCCC, 0xF0F0, 0xFF00)
MASK = 0xFFFF
XOR, AND, OR, AND_NOT, NOT_AND = range(5)
# What an AND-like gate complements: left operand, right operand, result, seen as one AND.
COMPLEMENTS = {AND: (0, 0, 0), OR: (1, 1, 1), AND_NOT: (0, 1, 0), NOT_AND: (1, 0, 0)}

Table = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Circuit:
    """Functions in the order in which they are computed, the inputs first; one gate for each later one."""

    functions: tuple[int, ...] = INPUTS
    gates: tuple[tuple[int, int, int], ...] = ()  # operation, index of left operand, index of right operand
    depths: tuple[int, ...] = (0, 0, 0, 0)

    def grown(self, gate: tuple[int, int, int], function: int) -> Circuit:
        """This circuit with one more gate, which computes the given function."""
        depth = 1 + max(self.depths[gate[1]], self.depths[gate[2]])
        return Circuit((*self.functions, function), (*self.gates, gate), (*self.depths, depth))


@dataclass(frozen=True)
class Program:
    """Straight-line code: steps (operator, operands...) over values; the first four values are the inputs."""

    steps: tuple[tuple[str, int, int], ...]
    outputs: tuple[int, ...]
    complemented: tuple[int, ...] = (0, 0, 0, 0)  # 1 for an output that comes out complemented

    @property
    def depth(self) -> int:
        """Length of the longest chain of operations from an input to an output."""
        depths = [0] * 4
        for _, left, right in self.steps:
            depths.append(1 + max(depths[left], depths[right]))
        return max(depths[i] for i in self.outputs)


def output_tables(sbox: Sequence[int]) -> tuple[int, ...]:
    """The truth tables of the four output bits, least significant bit first."""
    return tuple(sum(((y >> bit) & 1) << x for x, y in enumerate(sbox)) for bit in range(4))


def combine(left: Table, right: Table) -> Table:
    """All five gates on each pair: shape (5, *pairs)."""
    return np.stack([left ^ right, left & right, left | right, left & ~right, ~left & right])


def needed(functions: Table, target: int) -> npt.NDArray[np.bool_]:
    """Flags, by half the truth table, of the functions from which one gate with a given one makes the target."""
    flags = np.zeros(MASK // 2 + 1, dtype=np.bool_)
    every = np.arange(0, MASK + 1, 2, dtype=np.int32)
    for f in functions.tolist():
        flags[(f ^ target) >> 1] = True
        if target & ~f == 0:
            flags |= (every & f == target) | (~every & f == target)
        if f & ~target == 0:
            flags |= every | f == target
        if target & f == 0:
            flags |= every & ~f & MASK == target
    return flags


def candidates(circuit: Circuit) -> tuple[Table, list[tuple[int, int, int]]]:
    """Every new function that is one gate away, and a gate that makes it, the shallowest one."""
    functions = np.array(circuit.functions, dtype=np.int32)
    left, right = np.triu_indices(len(functions), 1)
    depths = np.array(circuit.depths)
    order = np.argsort(np.maximum(depths[left], depths[right]), kind="stable")
    left, right = left[order], right[order]
    values = combine(functions[left], functions[right]).T.reshape(-1)
    unique, first = np.unique(values, return_index=True)
    fresh = ~np.isin(unique, functions) & (unique != 0)
    gates = [(int(i % 5), int(left[i // 5]), int(right[i // 5])) for i in first[fresh]]
    return unique[fresh].astype(np.int32), gates


def estimates(circuit: Circuit, fresh: Table, missing: Sequence[int], weight: float) -> npt.NDArray[np.float64]:
    """For each candidate: about how many gates the missing outputs need once it is added; lower is better."""
    functions = np.array(circuit.functions, dtype=np.int32)
    after = combine(fresh[:, None], functions[None, :]).transpose(1, 0, 2).reshape(len(fresh), -1)
    across = combine(fresh[:, None], fresh[None, :])
    total = np.zeros(len(fresh))
    for target in missing:
        flags = needed(functions, target)
        ways = flags[after >> 1].sum(axis=1) + (across == target).sum(axis=(0, 2)) + flags[fresh >> 1].sum()
        total += np.where(flags[fresh >> 1], 1.0, np.where(ways > 0, 2.0, 3.0)) - weight * np.log2(1.0 + ways)
    return total


def complete(circuit: Circuit, targets: frozenset[int]) -> Circuit:
    """Adds every output that is one gate away: it costs its one gate whenever it is added."""
    while True:
        fresh, gates = candidates(circuit)
        hits = [i for i, f in enumerate(fresh.tolist()) if f in targets]
        if not hits:
            return circuit
        circuit = circuit.grown(gates[hits[0]], int(fresh[hits[0]]))


def grow(
    beam: Sequence[Circuit], targets: frozenset[int], width: int, rng: np.random.Generator
) -> tuple[list[Circuit], list[Circuit]]:
    """One more gate for every circuit: the finished circuits, and the most promising unfinished ones."""
    scored: list[tuple[float, Circuit]] = []
    for circuit in beam:
        fresh, gates = candidates(circuit)
        missing = sorted(targets.difference(circuit.functions))
        scores = estimates(circuit, fresh, missing, 0.05) + 0.2 * rng.random(len(fresh))
        depths = np.array(circuit.depths)
        scores += 0.05 * np.array([max(depths[i], depths[j]) for _, i, j in gates])
        scored += [(float(scores[i]), circuit.grown(gates[i], int(fresh[i]))) for i in np.argsort(scores)[:width]]
    scored.sort(key=lambda pair: pair[0])
    seen: set[frozenset[int]] = set()
    done: list[Circuit] = []
    kept: list[Circuit] = []
    for _, grown in scored:
        if len(seen) >= width:
            break
        circuit = complete(grown, targets)
        key = frozenset(circuit.functions)
        if key not in seen:
            seen.add(key)
            (done if targets <= key else kept).append(circuit)
    return done, kept


def polarised(circuit: Circuit, tables: Sequence[int], choice: Iterator[int]) -> Program:
    """Code for the circuit in which each AND-like gate is an AND or, by De Morgan, an OR, as `choice` says."""
    steps: list[tuple[str, int, int]] = []
    place: dict[tuple[int, int], int] = {(i, 0): i for i in range(4)}
    native: dict[int, int] = dict.fromkeys(range(4), 0)

    def value(node: int, complement: int) -> int:
        if (node, complement) not in place:
            source = place[node, 1 - complement]
            steps.append(("~", source, source))
            place[node, complement] = 3 + len(steps)
        return place[node, complement]

    for node, (operation, left, right) in enumerate(circuit.gates, start=4):
        if operation == XOR:
            native[node] = native[left] ^ native[right]
            step = ("^", value(left, native[left]), value(right, native[right]))
        else:
            flip = next(choice)
            a, b, c = (bit ^ flip for bit in COMPLEMENTS[operation])
            native[node] = c
            step = ("|" if flip else "&", value(left, a), value(right, b))
        steps.append(step)
        place[node, native[node]] = 3 + len(steps)
    nodes = {f: i for i, f in enumerate(circuit.functions)}
    outputs = tuple(value(nodes[t ^ MASK if t & 1 else t], t & 1) for t in tables)
    return without_unused(Program(tuple(steps), outputs))


def without_nots(circuit: Circuit, tables: Sequence[int]) -> Program:
    """Code for the circuit with one operation for each gate, which leaves some values complemented."""
    steps: list[tuple[str, int, int]] = []
    flipped = [0] * 4
    for operation, left, right in circuit.gates:
        if operation == XOR:
            steps.append(("^", left, right))
            flipped.append(flipped[left] ^ flipped[right])
            continue
        a, b, c = COMPLEMENTS[operation]
        flip_left, flip_right = a ^ flipped[left], b ^ flipped[right]
        if flip_left and flip_right:
            steps.append(("|", left, right))
        elif flip_left or flip_right:
            steps.append(("&~", *((right, left) if flip_left else (left, right))))
        else:
            steps.append(("&", left, right))
        flipped.append(c ^ (flip_left & flip_right))
    nodes = {f: i for i, f in enumerate(circuit.functions)}
    outputs = tuple(nodes[t ^ MASK if t & 1 else t] for t in tables)
    complemented = tuple(flipped[i] ^ (t & 1) for i, t in zip(outputs, tables, strict=True))
    return without_unused(Program(tuple(steps), outputs, complemented))


def without_unused(program: Program) -> Program:
    """The program without steps on which no output depends."""
    used = set(program.outputs)
    for i in range(len(program.steps) - 1, -1, -1):
        if i + 4 in used:
            used.update(program.steps[i][1:])
    kept = [i for i in range(len(program.steps)) if i + 4 in used]
    place = {**{i: i for i in range(4)}, **{i + 4: n for n, i in enumerate(kept, start=4)}}
    steps = tuple((op, place[left], place[right]) for op, left, right in (program.steps[i] for i in kept))
    return Program(steps, tuple(place[i] for i in program.outputs), program.complemented)


def best_program(circuit: Circuit, tables: Sequence[int]) -> Program:
    """The cheapest code for the circuit: a chain link counts as much as an operation."""
    num_choices = sum(operation != XOR for operation, _, _ in circuit.gates)
    choices = itertools.product((0, 1), repeat=num_choices)
    return min((polarised(circuit, tables, iter(c)) for c in choices), key=cost)


def cost(program: Program) -> tuple[int, int]:
    """What is minimised: operations plus depth, then operations."""
    return len(program.steps) + program.depth, len(program.steps)


def vector_cost(program: Program) -> tuple[float, int]:
    """What is minimised where two groups of blocks go side by side: operations count more than the chain."""
    return len(program.steps) + 0.25 * program.depth, program.depth


def run(program: Program) -> tuple[int, ...]:
    """The truth tables that the program computes, once its complemented outputs are put right."""
    values = list(INPUTS)
    for operator, left, right in program.steps:
        a, b = values[left], values[right]
        values.append({"^": a ^ b, "&": a & b, "|": a | b, "~": a ^ MASK, "&~": a & ~b}[operator])
    return tuple(values[i] ^ MASK * flip for i, flip in zip(program.outputs, program.complemented, strict=True))


def search(tables: Sequence[int], width: int, seed: int) -> list[Circuit]:
    """Circuits for four truth tables, those with fewest gates first; the beam ends two gates after the first one."""
    targets = frozenset(t ^ MASK if t & 1 else t for t in tables)
    rng = np.random.default_rng(seed)
    beam = [complete(Circuit(), targets)]
    finished: list[Circuit] = []
    rounds_left = 2
    while beam and rounds_left > 0:
        done, beam = grow(beam, targets, width, rng)
        finished += done
        rounds_left -= bool(finished)
    return sorted(finished, key=lambda c: len(c.gates))


def find(sbox: Sequence[int], width: int, seed: int) -> tuple[Program, Program]:
    """The best programs found for the S-box: for general registers, and for vector registers."""
    tables = output_tables(sbox)
    circuits = search(tables, width, seed)
    programs = [best_program(circuit, tables) for circuit in circuits[:60]]
    vector_programs = [without_nots(circuit, tables) for circuit in circuits]
    best = min(programs, key=cost), min(vector_programs, key=vector_cost)
    for program in best:
        if run(program) != tables:
            raise AssertionError(f"the circuit found computes {run(program)}, the S-box is {tables}")
    return best


def emit(name: str, program: Program) -> str:
    """The program as a C function over four words."""
    names = [f"x[{i}]" for i in range(4)] + [f"t{i}" for i in range(len(program.steps))]
    lines = [f"static inline void {name}(uint32_t x[4])", "{"]
    for i, (operator, left, right) in enumerate(program.steps):
        text = f"~{names[left]}" if operator == "~" else f"{names[left]} {operator} {names[right]}"
        lines.append(f"    const uint32_t t{i} = {text};")
    lines += [f"    x[{i}] = {names[value]};" for i, value in enumerate(program.outputs)]
    return "\n".join([f"/* {len(program.steps)} operations, depth {program.depth} */", *lines, "}", ""])


VECTOR_WORDS = {"^": "vec_xor", "&": "vec_and", "|": "vec_or", "&~": "vec_and_not"}


def emit_vector(name: str, program: Program) -> str:
    """The program as a C function over four vectors, and which of its outputs are complements."""
    names = [f"x[{i}]" for i in range(4)] + [f"t{i}" for i in range(len(program.steps))]
    mask = sum(flip << i for i, flip in enumerate(program.complemented))
    lines = [f"#define {name.upper()}_COMPLEMENTS {mask}u", f"static inline void {name}(vec x[4])", "{"]
    for i, (operator, left, right) in enumerate(program.steps):
        lines.append(f"    const vec t{i} = {VECTOR_WORDS[operator]}({names[left]}, {names[right]});")
    lines += [f"    x[{i}] = {names[value]};" for i, value in enumerate(program.outputs)]
    return "\n".join([f"/* {len(program.steps)} operations, depth {program.depth} */", *lines, "}", ""])


def header(guard: str, about: Sequence[str], include: str, parts: Sequence[str]) -> str:
    """A C header of these parts."""
    lines = ["/* SPDX-License-Identifier: Apache-2.0", " *", *(f" * {line}" for line in about), " */"]
    lines += [f"#ifndef {guard}", f"#define {guard}", "", f"#include {include}", "", *parts, "#endif", ""]
    return "\n".join(lines)


def headers(width: int, seed: int) -> tuple[str, str]:
    """The C headers for general registers and for vector registers."""
    scalar: list[str] = []
    vector: list[str] = []
    for i, sbox in enumerate(SBOXES):
        inverse = tuple(sbox.index(y) for y in range(16))
        for name, box in ((f"sbox{i}", sbox), (f"sbox{i}_inverse", inverse)):
            programs = find(box, width, seed)
            for program in programs:
                print(f"{name}: {len(program.steps)} operations, depth {program.depth}", file=sys.stderr, flush=True)
            scalar.append(emit(name, programs[0]))
            vector.append(emit_vector(f"vector_{name}", programs[1]))
    about = [
        "Serpent's S-boxes (submission, appendix A.5) and their inverses as circuits over four words: bit i of each",
        "word belongs to one S-box, and x[0] holds the least significant bits. Made by find_circuits.py.",
    ]
    vector_about = [
        "Serpent's S-boxes (submission, appendix A.5) and their inverses as circuits over four vectors without a NOT:",
        "bit j of the COMPLEMENTS says that x[j] comes out complemented. serpent_bitslice.h says what vec is. Made by",
        "find_circuits.py.",
    ]
    return (
        header("SERPENT_CIRCUITS_H", about, "<stdint.h>", scalar),
        header("SERPENT_VECTOR_CIRCUITS_H", vector_about, '"subject.h"', vector),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: writes the headers to --output and --vector-output."""
    parser = argparse.ArgumentParser(description="find circuits for Serpent's S-boxes")
    parser.add_argument("--output", type=Path, required=True, help="the C header to write")
    parser.add_argument("--vector-output", type=Path, required=True, help="the C header for vectors to write")
    parser.add_argument("--width", type=int, default=300, help="circuits kept at each step (default 300)")
    parser.add_argument("--seed", type=int, default=1, help="of the search's random tie-breaks (default 1)")
    options = parser.parse_args(arguments)
    scalar, vector = headers(options.width, options.seed)
    options.output.write_text(scalar, encoding="utf-8")
    options.vector_output.write_text(vector, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
