# SPDX-License-Identifier: Apache-2.0
"""What the suite itself costs: its CPU time against a bare C loop making the same calls, and its throughput."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crosslane import wire
from crosslane.client import SharedMemory
from crosslane.compare import compare
from crosslane.errors import BadInput, HarnessFault
from crosslane.execute import CAPACITY, Executor
from crosslane.generate import generate_batch
from crosslane.isa import host_arch
from crosslane.manifest import Manifest
from crosslane.memory import keep_freed_memory
from crosslane.model import Registry
from crosslane.plan import AlgorithmPlan, CellPlan, Counts, Selection, make_plans
from crosslane.tomlread import Field, read_fields, read_toml
from crosslane.wire import Watch

__all__ = ["Overhead", "measure_overhead", "measure_throughput", "on_one_core", "report_harness"]

_TARGETS_FILE = Path(__file__).parent / "bench" / "harness.toml"
SESSIONS = 1024
"""Sessions of a batch: enough that what a batch costs beside its cases does not show."""
_CELL = Field(kind="str", pattern=r"\S+")
_LENGTH = Field(kind="int", least=1)
_OVERHEAD_FIELDS = {
    "cell": _CELL,
    "message_len": _LENGTH,
    "output_only": Field(kind="float"),
    "all_watchers": Field(kind="float"),
}
_THROUGHPUT_FIELDS = {"cell": _CELL, "message_len": _LENGTH, "least": _LENGTH}


@dataclass(frozen=True)
class Overhead:
    """CPU time per comparison in ns: of the bare loop (both implementations), and of the suite's whole process tree."""

    bare_ns: float
    output_only_ns: float
    all_watchers_ns: float

    @property
    def output_only(self) -> float:
        """Ratio of output comparison alone to the bare loop."""
        return self.output_only_ns / self.bare_ns

    @property
    def all_watchers(self) -> float:
        """Ratio of everything to the bare loop."""
        return self.all_watchers_ns / self.bare_ns


def _plan(registry: Registry, pattern: str) -> tuple[AlgorithmPlan, CellPlan]:
    lane = pattern.rpartition("@")[2]
    run = make_plans(registry, Selection((pattern,), (lane,)), counts=Counts())
    return run.algorithms[0], run.algorithms[0].cells[0]


class _Bench:
    """An oracle and one subject with fixed messages, run batch by batch."""

    def __init__(self, plan: AlgorithmPlan, cell: CellPlan, *, message_len: int, watch: Watch) -> None:
        self.manifest: Manifest = replace(plan.manifest, fixed_len=message_len, sessions_per_batch=SESSIONS)
        self.memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
        self.oracle = Executor(plan.oracle, self.memory, watch=Watch(0))
        self.subject = Executor(cell.station, self.memory, watch=watch)
        self.number = 0

    def run(self, num_batches: int) -> int:
        """Run some batches; returns the comparisons made. Raises HarnessFault where one departs."""
        made = 0
        for _ in range(num_batches):
            batch = generate_batch(self.manifest, self.number)
            wire.encode_batch_into(batch, self.memory.view)
            self.oracle.start(batch, len(batch))
            self.subject.start(batch, len(batch))
            found = compare(batch, self.oracle.finish(), self.subject.finish())
            if found.num_departed or found.not_run:
                raise HarnessFault("the cell to be measured departs from the generic one: run `crosslane check` first")
            made += found.comparisons
            self.number += 1
        return made

    def cpu_ns(self) -> float:
        """CPU time of this process and both shims so far."""
        return time.process_time_ns() + self.oracle.cpu_ns + self.subject.cpu_ns

    def bare_ns(self, num_messages: int) -> float:
        """CPU time in ns a message of the bare loop over both implementations."""
        per_key = self.manifest.messages_per_session
        both = [item.bare(num_messages, self.manifest.fixed_len, per_key) for item in (self.oracle, self.subject)]
        return sum(both) / num_messages

    def release(self) -> None:
        self.oracle.release()
        self.subject.release()
        self.memory.close()


@contextmanager
def _bench(plan: AlgorithmPlan, cell: CellPlan, *, message_len: int, watch: Watch) -> Iterator[_Bench]:
    bench = _Bench(plan, cell, message_len=message_len, watch=watch)
    try:
        bench.run(1)
        yield bench
    finally:
        bench.release()


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep this process and all that it starts on one core, where they share its caches."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def measure_overhead(
    registry: Registry, pattern: str, *, message_len: int, num_rounds: int = 9, num_batches: int = 12
) -> Overhead:
    """Interleave the bare loop, output comparison alone and all watchers, on one core; medians over the rounds."""
    keep_freed_memory()
    plan, cell = _plan(registry, pattern)
    bare: list[float] = []
    output_only: list[float] = []
    everything: list[float] = []
    with (
        on_one_core(),
        _bench(plan, cell, message_len=message_len, watch=Watch(0)) as plain,
        _bench(plan, cell, message_len=message_len, watch=Watch.ALL) as watched,
    ):
        for _ in range(num_rounds):
            bare.append(plain.bare_ns(num_batches * plain.manifest.messages_per_batch))
            for bench, into in ((plain, output_only), (watched, everything)):
                before = bench.cpu_ns()
                made = bench.run(num_batches)
                into.append((bench.cpu_ns() - before) / made)
    return Overhead(*(statistics.median(values) for values in (bare, output_only, everything)))


def measure_throughput(registry: Registry, pattern: str, *, message_len: int, seconds: float = 4.0) -> float:
    """Comparisons a second on one core, all watchers on: a fresh iv for each message, a fresh key every 8."""
    keep_freed_memory()
    plan, cell = _plan(registry, pattern)
    with on_one_core(), _bench(plan, cell, message_len=message_len, watch=Watch.ALL) as bench:
        rates: list[float] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end or len(rates) < 5:
            begun = time.monotonic()
            made = bench.run(1)
            rates.append(made / (time.monotonic() - begun))
    return statistics.median(rates)


def _targets(host: str) -> dict[str, dict[str, Any]]:
    """What to measure on a host architecture, from the file beside the bench."""
    tables = read_toml(_TARGETS_FILE)
    if host not in tables:
        raise BadInput(f"{_TARGETS_FILE.name}: has nothing for {host}; hosts are {', '.join(tables)}; add a table")
    return {
        name: read_fields(
            _TARGETS_FILE,
            table,
            _OVERHEAD_FIELDS if name == "overhead" else _THROUGHPUT_FIELDS,
            where=f"[{host}.{name}]",
        )
        for name, table in tables[host].items()
    }


def _says(value: float, bound: float, *, most: bool) -> str:
    return "within" if (value <= bound) == most else "misses"


def report_harness(registry: Registry, say: Callable[[str], None]) -> bool:
    """Measure everything and say it line by line; returns whether every bound holds."""
    targets = _targets(host_arch())
    wanted = targets.pop("overhead")
    overhead = measure_overhead(registry, wanted["cell"], message_len=wanted["message_len"])
    say(f"{wanted['cell']}, {wanted['message_len']}-byte messages, CPU time of the whole process tree a comparison:")
    say(f"  bare loop of the same calls, both implementations: {overhead.bare_ns:,.0f} ns")
    held = []
    for name, ratio, bound in (
        ("output comparison alone", overhead.output_only, wanted["output_only"]),
        ("all watchers", overhead.all_watchers, wanted["all_watchers"]),
    ):
        held.append(ratio <= bound)
        verdict = _says(ratio, bound, most=True)
        say(f"  {name}: {ratio * overhead.bare_ns:,.0f} ns, {ratio:.2f} x, {verdict} {bound:.2f} x")
    for target in targets.values():
        rate = measure_throughput(registry, target["cell"], message_len=target["message_len"])
        held.append(rate >= target["least"])
        verdict = _says(rate, target["least"], most=False)
        say(
            f"{target['cell']}, {target['message_len']}-byte messages, one core, all watchers: {rate:,.0f} comparisons "
            f"a second, {verdict} at least {target['least']:,}"
        )
    return all(held)
