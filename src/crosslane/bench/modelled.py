# SPDX-License-Identifier: Apache-2.0
"""Cycles a byte without the hardware: instructions as they were executed, on a core that llvm-mca simulates.

A message of N bytes and one of 2 N are traced, and both traces simulated as straight-line code. What the longer one
takes more is what N bytes cost in the loops of the implementation, whatever their shape; what each message costs once
drops out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosslane.bench.counting import Counter, trace
from crosslane.bench.jobs import Job, real_len
from crosslane.bench.llvm import Llvm, disassemble, simulate
from crosslane.bench.measure import Settings
from crosslane.bench.tables import grid
from crosslane.errors import HarnessFault

__all__ = ["MODEL_SIZES", "Figure", "Model", "Modelled", "model_job", "model_table"]

MODEL_SIZES = (4096,)
"""Message lengths in bytes after which as many more are looked at."""
_MOST_INSTRUCTIONS = 1_000_000


@dataclass(frozen=True)
class Figure:
    """What bytes beyond the first ones cost in a loop, each."""

    instructions: float
    cycles: float


@dataclass(frozen=True)
class Modelled:
    """A job's figures by subject's name and size, and why subjects, or all, have none."""

    job: Job
    core: str
    version: str
    figures: Mapping[tuple[str, int], Figure]
    absent: Mapping[str, str]
    unavailable: str = ""


class Model:
    """A core that runs the code of a lane's bench program."""

    def __init__(self, llvm: Llvm, program: Path, arch: str, core: str) -> None:
        """Disassemble the program once for all its traces."""
        self.core, self.version = core, llvm.version
        self._llvm, self._arch = llvm, arch
        self._text = disassemble(llvm, program, arch)

    def cycles(self, addresses: Sequence[int]) -> tuple[int, str]:
        """Return the cycles of one run through these instructions, or why there are none."""
        if len(addresses) > _MOST_INSTRUCTIONS:
            return 0, f"{len(addresses)} instructions are too many to simulate; choose a smaller --size"
        return simulate(self._llvm, self._arch, self.core, self._lines(addresses))

    def _lines(self, addresses: Sequence[int]) -> Iterator[str]:
        for address in addresses:
            if address not in self._text:
                raise HarnessFault(f"address {address:#x} was executed but not disassembled; build the program anew")
            if self._text[address]:
                yield self._text[address]


def model_job(program: Path, counter: Counter, job: Job, settings: Settings, model: Model) -> Modelled:
    """Trace a job's messages and simulate them; raises as ``trace`` does."""
    sizes = sorted({length for size in settings.sizes for length in (size, 2 * size)})
    traces = trace(program, counter, job, replace(settings, sizes=tuple(sizes)))
    absent = dict(traces.absent)
    figures = {}
    for subject in job.subjects:
        for size in settings.sizes:
            pair = [traces.addresses.get((subject.name, length)) for length in (size, 2 * size)]
            short, long = pair
            if short is None or long is None:
                continue
            (first, why), (second, _) = model.cycles(short), model.cycles(long)
            if first == 0 or second == 0:
                absent[subject.name] = why or "the longer message cannot be simulated"
                continue
            num = real_len(job, 2 * size) - real_len(job, size)
            figures[subject.name, size] = Figure((len(long) - len(short)) / num, (second - first) / num)
    return Modelled(job, model.core, model.version, figures, absent, traces.unavailable)


def model_table(found: Sequence[Modelled]) -> str:
    """One row a driver, algorithm, direction and size."""
    rows = [["driver", "algorithm", "direction", "key", "size", "instr/byte", "model cycles/byte", "core"]]
    notes = []
    for item in found:
        job = item.job
        if item.unavailable:
            notes.append(f"{job.algorithm} {job.direction}: not available: {item.unavailable}")
        notes += [f"{job.algorithm} {job.direction}, {name}: {reason}" for name, reason in item.absent.items()]
        for (name, size), figure in item.figures.items():
            row = [name, str(job.algorithm), job.direction, str(8 * job.key_len), str(size)]
            rows.append([*row, f"{figure.instructions:.3f}", f"{figure.cycles:.3f}", item.core])
    head = (
        f"cycles by simulation (llvm-mca of LLVM {found[0].version}): what as many bytes cost as came before, in loops"
    )
    return "\n".join([head, grid(rows, left=(0, 1, 2)), *notes])
