# SPDX-License-Identifier: Apache-2.0
"""Writes the header with circuits for the S-boxes of DES, as find_circuits.c finds them.

    python find_circuits.py --output des3_ede_circuits.h          the circuits of the seeds in BEST, in some minutes
    python find_circuits.py --output circuits.h --seeds 1 2 3     of each S-box the smallest that these seeds give

It builds find_circuits.c with `cc`. Equal seeds and numpy give an equal file.

Each circuit is written down without a NOT. A function and its complement are one to the search; here each is taken
in the form that is 0 for some input p. Then an AND of two of them, complemented in any way, is an AND, an OR or an
AND-NOT. With a p for which the S-box gives 0 the outputs are right as they come, and the inputs are complemented
where p has a 1. That costs nothing: there the round key is complemented.

The order of the operations is chosen so that few values are needed at a time.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["BEST", "Circuit", "emit", "main", "ordered", "parse", "search"]

HERE = Path(__file__).resolve().parent
BEST = (11, 7, 3, 3, 7, 7, 5, 4)
INPUTS = 6
ONES = (1 << 64) - 1
TABLES = tuple(sum(1 << v for v in range(64) if v >> i & 1) for i in range(INPUTS))
_GATE = re.compile(r"(~?)(\d+)([&^])(~?)(\d+)")
_OUTPUT = re.compile(r"(\d+)=(~?)(\d+)")
_TRIES = 500


@dataclass(frozen=True)
class Circuit:
    """One S-box: operations (name, left, right) on nodes, of which the first six are the inputs, last bit first."""

    box: int
    seed: int
    steps: tuple[tuple[str, int, int], ...]
    outputs: dict[int, tuple[int, ...]]  # node: places in the half of the block
    complemented: tuple[bool, ...]  # by input


def search(box: int, seeds: Sequence[int], program: Path) -> list[str]:
    """What the program finds, a line for each seed."""
    command = [str(program), str(box), *map(str, seeds)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def parse(line: str) -> Circuit:
    """Read a line of the search; raise ValueError where its nodes are not what they say."""
    box, seed, size, *words = line.split()
    values = list(TABLES)
    gates: list[tuple[str, int, int, int, int]] = []
    outputs: list[tuple[int, int, int]] = []
    for word in words:
        if gate := _GATE.fullmatch(word):
            flip_left, left, kind, flip_right, right = gate.groups()
            gates.append((kind, int(left), int(right), ONES * bool(flip_left), ONES * bool(flip_right)))
            a, b = values[int(left)] ^ gates[-1][3], values[int(right)] ^ gates[-1][4]
            values.append(a & b if kind == "&" else a ^ b)
        elif output := _OUTPUT.fullmatch(word):
            outputs.append((int(output[1]), ONES * bool(output[2]), int(output[3])))
        else:
            raise ValueError(f"{word!r} in the circuit of S-box {box} is neither a gate nor an output")
    if len(gates) != int(size):
        raise ValueError(f"the circuit of S-box {box} has {len(gates)} gates and says {size}")
    tables = [values[node] ^ flip for _, flip, node in outputs]
    zeros = (v for v in range(64) if not any(table >> v & 1 for table in tables))
    point = min(zeros, key=lambda v: (v.bit_count(), v))
    flipped = [bool(value >> point & 1) for value in values]
    steps = tuple(
        _step(kind, left, right, bool(a) ^ flipped[left], bool(b) ^ flipped[right]) for kind, left, right, a, b in gates
    )
    places: dict[int, tuple[int, ...]] = {}
    for place, _, node in outputs:
        places[node] = (*places.get(node, ()), place)
    return Circuit(int(box), int(seed), steps, places, tuple(flipped[:INPUTS]))


def _step(kind: str, left: int, right: int, flip_left: bool, flip_right: bool) -> tuple[str, int, int]:
    """The operation for a gate whose operands and result are in the form that is 0 at p."""
    if kind == "^":
        return "xor", left, right
    if flip_left and flip_right:
        return "or", left, right
    if flip_left:
        return "and_not", right, left
    return "and_not" if flip_right else "and", left, right


def ordered(circuit: Circuit) -> tuple[list[int], int]:
    """The nodes in an order in which few are alive at a time, and how many those are; inputs come when first needed."""
    rng = np.random.default_rng(circuit.seed)
    best: tuple[int, int, list[int]] | None = None
    for _ in range(_TRIES):
        order, peak, total = _one_order(circuit, rng)
        if best is None or (peak, total) < best[:2]:
            best = peak, total, order
    assert best is not None
    return best[2], best[0]


def _one_order(circuit: Circuit, rng: np.random.Generator) -> tuple[list[int], int, int]:
    """One order, greedily: an order's next operation is one that leaves the fewest values alive."""
    uses = [0] * (INPUTS + len(circuit.steps))
    for _, left, right in circuit.steps:
        uses[left] += 1
        uses[right] += 1
    waiting = set(range(INPUTS, len(uses)))
    order: list[int] = []
    alive: set[int] = set()
    peak = total = 0
    while waiting:
        choices: list[tuple[float, int]] = []
        for node in waiting:
            operands = circuit.steps[node - INPUTS][1:]
            if all(operand < INPUTS or operand in alive for operand in operands):
                loads = sum(operand not in alive for operand in operands)
                ends = sum(uses[operand] == 1 for operand in operands)
                choices.append((loads - ends + (uses[node] > 0) + rng.random() * 0.9, node))
        node = min(choices)[1]
        operands = circuit.steps[node - INPUTS][1:]
        for operand in operands:
            if operand not in alive:
                order.append(operand)
                alive.add(operand)
        peak = max(peak, len(alive))
        for operand in operands:
            uses[operand] -= 1
            if uses[operand] == 0:
                alive.discard(operand)
        order.append(node)
        waiting.discard(node)
        peak = max(peak, len(alive) + 1)
        if uses[node] > 0:
            alive.add(node)
        total += len(alive)
    return order, peak, total


def emit(circuits: Sequence[Circuit]) -> Iterator[str]:
    """The header's lines."""
    yield from (
        "/* SPDX-License-Identifier: Apache-2.0",
        " *",
        " * The S-boxes of DES (FIPS 46-3) as circuits, with E, the sum with K, and P around them: to ^= f(from, K)",
        " * for halves of the block. Plane i, from 0, holds bit i + 1 of the half in each block. Made by",
        " * find_circuits.py.",
        " */",
        "#ifndef DES3_EDE_CIRCUITS_H",
        "#define DES3_EDE_CIRCUITS_H",
    )
    for circuit in circuits:
        yield from _function(circuit)
    yield from ("", "#endif")


def _function(circuit: Circuit) -> Iterator[str]:
    order, peak = ordered(circuit)
    names = {node: f"x{INPUTS - node}" for node in range(INPUTS)}
    yield from ("", f"/* {len(circuit.steps)} operations, {peak} values at a time. */")
    attribute = "static inline __attribute__((always_inline))"
    yield f"{attribute} void sbox{circuit.box}(vec *to, const vec *from, const key_word *k)"
    yield "{"
    for node in order:
        if node < INPUTS:
            bit = INPUTS - 1 - node  # from the left
            key = "vec_key_not" if circuit.complemented[node] else "vec_key"
            half, number = (4 * circuit.box + bit - 5) % 32, 6 * circuit.box + bit - 5
            value = f"vec_xor(from[{half}], {key}(k, KEY_PLACE({number})))"
            yield f"    const vec {names[node]} = {value};"
            continue
        operation, left, right = circuit.steps[node - INPUTS]
        names[node] = f"t{len(names) - INPUTS}"
        yield f"    const vec {names[node]} = vec_{operation}({names[left]}, {names[right]});"
        for place in circuit.outputs.get(node, ()):
            yield f"    to[{place}] = vec_xor(to[{place}], {names[node]});"
    yield "}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Search, check and write; say on stdout how large each circuit is."""
    parser = argparse.ArgumentParser(description="Finds circuits for the S-boxes of DES.")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+")
    options = parser.parse_args(arguments)
    circuits: list[Circuit] = []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "find_circuits")
        command = ["cc", "-O3", f"-I{HERE.parents[1] / 'shim'}", "-o", str(program), str(HERE / "find_circuits.c")]
        subprocess.run(command, check=True)
        for box, seed in enumerate(BEST, start=1):
            found = [parse(line) for line in search(box, options.seeds or [seed], program)]
            circuits.append(min(found, key=lambda circuit: len(circuit.steps)))
            print(f"S{box}: {len(circuits[-1].steps)} operations, seed {circuits[-1].seed}")
    options.output.write_text("\n".join(emit(circuits)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
