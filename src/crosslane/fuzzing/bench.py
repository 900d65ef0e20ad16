# SPDX-License-Identifier: Apache-2.0
"""``crosslane bench fuzz``: the rate of a campaign against bare loops, against libFuzzer, and of two workers to one.

Everything is measured in one run, in turns, as CPU time of the whole process tree, and medians are compared: starting
of processes, generation, comparison and all watchers are in a campaign's rate, and in a bare loop nothing but the
calls. Two workers and one are compared by the clock.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosslane.client import SharedMemory
from crosslane.compiling import Compilers
from crosslane.conduct import conduct
from crosslane.errors import BadInput, HarnessFault, MissingTool
from crosslane.execute import CAPACITY, Executor
from crosslane.findings.run import Findings
from crosslane.fuzzing.choose import WATCH_AGAIN, Board
from crosslane.fuzzing.engine import Engine, Limits, Work
from crosslane.fuzzing.rounds import candidates_of
from crosslane.fuzzing.spec import Campaign, load_campaign
from crosslane.fuzzing.state import State
from crosslane.generate import generate_batch
from crosslane.harness import on_one_core
from crosslane.isa import feature_flags, host_arch
from crosslane.memory import keep_freed_memory
from crosslane.model import Registry
from crosslane.plan import AlgorithmPlan, Counts, RunPlan, Selection, make_plans
from crosslane.registry import implementation_named, mode_named
from crosslane.tomlread import Field, read_fields, read_toml
from crosslane.wire import Batch, Flag, OpKind, Watch

__all__ = ["Rates", "message_lens", "report_fuzz"]

_TARGETS_FILE = Path(__file__).parent / "fuzz.toml"
_FIELDS = {
    "cell": Field(kind="str", pattern=r"\S+"),
    "least": Field(kind="float"),
    "message_len": Field(kind="int", least=1, optional=True),
}
_TURNS = 7
_BARE_GROUPS = 12
_BARE_MESSAGES = 40_000
_MOST_BARE_LEN = 65536
_FUZZER_RUNS = 300_000
_WORKER_S = 10.0
_WORKER_TURNS = 3
_WORKER_COUNT = 32_768
"""Comparisons of a round of those that workers are compared by: so few that many rounds end while they are."""


@dataclass(frozen=True)
class Rates:
    """Comparisons a second of CPU, of a campaign and of what it is held against; medians over the turns."""

    campaign: float
    other: float
    ratio: float


def message_lens(batch: Batch) -> NDArray[np.int64]:
    """Bytes of data of each message of a batch, refused calls aside."""
    begun = np.cumsum(batch.ops["kind"] == OpKind.SETIV) - 1
    taken = (batch.ops["kind"] == OpKind.UPDATE) & ((batch.ops["flags"] & Flag.OVERLAP) == 0)
    lens = np.bincount(begun[taken], batch.ops["in_len"][taken].astype(np.int64), int(begun[-1]) + 1)
    return lens.astype(np.int64)


def _plans(registry: Registry, pattern: str, counts: Counts) -> RunPlan:
    return make_plans(registry, Selection((pattern,), (pattern.rpartition("@")[2],)), counts=counts)


class _Bare:
    """The bare loop over both implementations of a pair."""

    def __init__(self, plan: AlgorithmPlan) -> None:
        self._memory = SharedMemory("crosslane-batch", CAPACITY, sealed=True)
        stations = (plan.oracle, plan.cells[0].station)
        self._both = [Executor(station, self._memory, watch=Watch(0)) for station in stations]
        self._per_key = plan.manifest.messages_per_session

    def ns_of(self, lens: NDArray[np.int64]) -> float:
        """CPU time in ns a message, for messages of these lengths: in groups of like ones, each at its mean.

        Each group is run so often that a coarse clock of CPU time does not show.
        """
        total = 0.0
        for group in np.array_split(np.sort(np.minimum(lens, _MOST_BARE_LEN)), _BARE_GROUPS):
            mean = round(float(group.mean()))
            took = sum(item.bare(_BARE_MESSAGES, mean, self._per_key) for item in self._both)
            total += took / _BARE_MESSAGES * len(group)
        return total / len(lens)

    def release(self) -> None:
        for item in self._both:
            item.release()
        self._memory.close()


def _round(plan: AlgorithmPlan, number: int) -> float:
    """CPU time in ns a comparison of one round of a campaign."""
    per_round = plan.cells[0].comparisons // plan.manifest.messages_per_batch
    task = replace(plan, vectors=(), large_len=0, first_batch=number * per_round, cases_only=True)
    result = conduct(task)
    (cell,) = result.cells
    if cell.num_departed or cell.state != "ran":
        raise HarnessFault(f"{cell.cell} departs from generic or does not run: run `crosslane check` first")
    return result.cpu_s * 1e9 / cell.comparisons


def _settled_round(plan: AlgorithmPlan, number: int) -> float:
    """The same for a cell under an emulator, whose paths are watched in some rounds alone: the mean over them."""
    share = 1 / WATCH_AGAIN
    quiet = tuple(replace(cell, watch=Watch.ALL & ~Watch.PATHS) for cell in plan.cells)
    return share * _round(plan, number) + (1 - share) * _round(replace(plan, cells=quiet), number)


def against_bare(registry: Registry, pattern: str, campaign: Campaign, turns: int = _TURNS) -> Rates:
    """A campaign's rounds on one pair, and a bare loop over messages as long as theirs."""
    keep_freed_memory()
    plan = campaign.with_layouts(_plans(registry, pattern, campaign.counts).algorithms[0])
    run = _settled_round if plan.cells[0].emulated else _round
    ours, theirs = [], []
    with on_one_core():
        bare = _Bare(plan)
        try:
            per_round = plan.cells[0].comparisons // plan.manifest.messages_per_batch
            alike = plan.manifest.batches_alike
            run(plan, 0)
            for turn in range(1, turns + 1):
                numbers = range(turn * per_round // alike, (turn + 1) * per_round // alike)
                batches = [generate_batch(replace(plan.manifest, layouts=0), number) for number in numbers]
                theirs.append(bare.ns_of(np.concatenate([message_lens(batch) for batch in batches])))
                ours.append(run(plan, turn))
        finally:
            bare.release()
    return _rates(ours, theirs)


def _rates(ours: Sequence[float], theirs: Sequence[float]) -> Rates:
    """Rates of two lists of ns that were measured in turns."""
    ratio = statistics.median(other / mine for mine, other in zip(ours, theirs, strict=True))
    return Rates(1e9 / statistics.median(ours), 1e9 / statistics.median(theirs), ratio)


def _build_target(registry: Registry, plan: AlgorithmPlan, message_len: int, program: Path) -> None:
    """Compile fuzz/pair/pair.c with both implementations of a pair; raises MissingTool without clang."""
    clang = shutil.which("clang")
    if clang is None:
        raise MissingTool(
            "bench fuzz: clang is not installed, which builds libFuzzer targets: install the package clang"
        )
    impls = registry.root / "impls"
    generic = next(item for item in registry.implementations if item.symbol == plan.oracle.symbol)
    subject = implementation_named(registry, plan.cells[0].cell.driver)
    both = list(dict.fromkeys((generic, subject)))
    mode = mode_named(registry, plan.algorithm.mode)
    folders = [impls / "shim", mode.folder, mode.folder.parent, *(item.folder for item in both)]
    folders += [item.folder.parent for item in both]
    target = registry.root / "fuzz" / "pair" / "pair.c"
    asked = (f"-DMESSAGE_LEN={message_len}u", f"-DONE={generic.symbol}", f"-DOTHER={subject.symbol}")
    units: list[tuple[Path, tuple[str, ...]]] = [(target, asked), (mode.folder / f"{mode.name}.c", ())]
    for item in both:
        own = (f'-DSUBJECT_NAME="{item.symbol}"', *feature_flags(plan.cells[0].arch, item.features))
        units += [(source, own) for source in item.sources if source.suffix in (".c", ".S")]
    objects: list[str] = []
    with Compilers(program.parent) as compilers:
        for number, (source, flags) in enumerate(units):
            objects.append(str(program.parent / f"{number}.o"))
            command = [clang, "-c", "-O2", "-fsanitize=fuzzer-no-link", *flags, *(f"-I{folder}" for folder in folders)]
            task = "does not compile for libFuzzer"
            compilers.run([*command, str(source), "-o", objects[-1]], subject=source, task=task)
        command = [clang, "-fsanitize=fuzzer", *objects, "-o", str(program)]
        compilers.run(command, subject=target, task="does not link to libFuzzer")


def _fuzzer_ns(program: Path, runs: int, seed: int) -> float:
    """CPU time in ns an execution of a libFuzzer target."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [str(program), f"-runs={runs}", f"-seed={seed}", "-max_len=4096", "-verbosity=0"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=program.parent, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise HarnessFault(f"the libFuzzer target ended with status {done.returncode}: {done.stderr[-300:]!r}")
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e9 / runs


def against_fuzzer(
    registry: Registry, pattern: str, message_len: int, campaign: Campaign, turns: int = _TURNS
) -> Rates:
    """A campaign's rounds on one pair with messages of one length, and an in-process libFuzzer target on the same."""
    keep_freed_memory()
    plan = campaign.with_layouts(_plans(registry, pattern, campaign.counts).algorithms[0])
    plan = replace(plan, manifest=replace(plan.manifest, fixed_len=message_len))
    ours, theirs = [], []
    with tempfile.TemporaryDirectory(prefix="crosslane-fuzz-") as folder, on_one_core():
        program = Path(folder) / "pair"
        _build_target(registry, plan, message_len, program)
        _round(plan, 0)
        for turn in range(1, turns + 1):
            theirs.append(_fuzzer_ns(program, _FUZZER_RUNS, turn))
            ours.append(_round(plan, turn))
    return _rates(ours, theirs)


def _engine_rate(work: Work, registry: Registry, num_workers: int, seconds: float, seed: str) -> float:
    """Comparisons a second of the clock of an engine with so many workers, between its first round and its last."""
    with tempfile.TemporaryDirectory(prefix="crosslane-fuzz-") as folder:
        place = Path(folder)
        seen: list[tuple[float, int]] = []
        with State(place / "state.sqlite", "bench", seed, seed) as state:
            keeper = Findings.at(place / "findings", registry.root, ()).keeper(registry, revision="")
            candidates = candidates_of(work.plans, work.workload)
            board = Board(seed, candidates, tuple(plan.name for plan in work.plans), 1)
            engine = Engine(work, board, state, keeper, num_workers=num_workers)

            def tell(view: Any) -> None:
                if view.here and not view.over and (not seen or seen[-1][1] != view.here):
                    seen.append((time.monotonic(), view.here))

            engine.run(Limits(seconds=seconds), tell)
    if len(seen) < 3:
        raise HarnessFault("the engine came to fewer than three rounds: this machine is too busy to measure on")
    (begun, first), (ended, last) = seen[0], seen[-1]
    return (last - first) / (ended - begun)


def two_workers(registry: Registry, pattern: str, campaign: Campaign, turns: int = _WORKER_TURNS) -> Rates:
    """Two workers and one, in turns, by the clock."""
    plans = _plans(registry, pattern, Counts.each(_WORKER_COUNT))
    work = Work(tuple(campaign.with_layouts(plan) for plan in plans.algorithms), plans.lanes, "cases")
    pairs = []
    for turn in range(turns):
        one, two = (_engine_rate(work, registry, workers, _WORKER_S, f"bench {turn}") for workers in (1, 2))
        pairs.append((two, one))
    ratio = statistics.median(two / one for two, one in pairs)
    return Rates(statistics.median(two for two, _ in pairs), statistics.median(one for _, one in pairs), ratio)


def _targets(host: str) -> dict[str, dict[str, Any]]:
    """What to measure on a host architecture, from the file beside the bench."""
    tables = read_toml(_TARGETS_FILE)
    if host not in tables:
        raise BadInput(f"{_TARGETS_FILE.name}: has nothing for {host}; hosts are {', '.join(tables)}; add a table")
    return {
        name: read_fields(_TARGETS_FILE, table, _FIELDS, where=f"[{host}.{name}]")
        for name, table in tables[host].items()
    }


def report_fuzz(registry: Registry, say: Callable[[str], None]) -> bool:
    """Measure everything and say it line by line; returns whether every bound holds."""
    targets = _targets(host_arch())
    campaigns = {name: load_campaign(registry.root, name) for name in ("native", "emulated")}
    native = campaigns["native"]
    held = []

    def judged(name: str, rates: Rates, text: str) -> None:
        least = targets[name]["least"]
        held.append(rates.ratio >= least)
        verdict = "within" if held[-1] else "misses"
        say(f"{targets[name]['cell']}: {text}: {rates.ratio:.2f} x, {verdict} at least {least:.2f} x")

    for name in ("native", "emulated"):
        rates = against_bare(registry, targets[name]["cell"], campaigns[name])
        judged(
            name, rates, f"{rates.campaign:,.0f} a second of CPU, a bare loop of messages as long {rates.other:,.0f}"
        )
    wanted = targets["libfuzzer"]
    rates = against_fuzzer(registry, wanted["cell"], wanted["message_len"], native)
    what = f"{wanted['message_len']}-byte messages, {rates.campaign:,.0f} a second of CPU"
    judged("libfuzzer", rates, f"{what}, an in-process libFuzzer target {rates.other:,.0f}")
    if len(os.sched_getaffinity(0)) < 2:
        raise BadInput("bench fuzz: two workers need two cores, and this process may use one: give it another")
    rates = two_workers(registry, targets["workers"]["cell"], native)
    judged("workers", rates, f"two workers {rates.campaign:,.0f} a second, one {rates.other:,.0f}")
    return all(held)
