# SPDX-License-Identifier: Apache-2.0
"""Runs kept findings again: shows them, measures how often they depart, starts a debugger on them."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosslane.describe import session_lines
from crosslane.errors import BadInput, CrosslaneError, HarnessFault, MissingTool
from crosslane.execute import execute_unless_declined
from crosslane.findings.answers import published, seen_again
from crosslane.findings.case import whole_batch
from crosslane.findings.gather import first_departure
from crosslane.findings.keep import ingredients
from crosslane.findings.record import Record, State
from crosslane.findings.reproducer import build_repro, gdb_script, refuse_cxx
from crosslane.findings.store import Kept, Store
from crosslane.instances import instances
from crosslane.isa import host_arch
from crosslane.lanes import lanes_for_host
from crosslane.model import Lane, Registry
from crosslane.names import parse_cell
from crosslane.plan import AlgorithmPlan, Counts, Selection, make_plans
from crosslane.toolchain import runner_command
from crosslane.vectors import all_vectors
from crosslane.wire import Watch

__all__ = ["Answer", "Retest", "debug", "plan_of", "replay_finding", "retest", "retest_all"]

_RUNS = 10


@dataclass(frozen=True)
class Answer:
    """A finding's case on one cell: whether it agreed, and the sentence where it did not."""

    cell: str
    agreed: bool
    text: str


@dataclass(frozen=True)
class Retest:
    """What running a finding again came to: ``departed`` of ``runs``, and the record as it is kept now."""

    record: Record
    departed: int
    runs: int


def _lanes(registry: Registry, kept: Kept, lanes: Sequence[str]) -> tuple[str, ...]:
    """The lanes asked for, else those of this host that the finding was seen in, the first where none."""
    if lanes:
        return tuple(lanes)
    seen = [parse_cell(cell).lane for cell in kept.record.cells]
    here = {lane.name for lane in lanes_for_host(registry)}
    usable = tuple(dict.fromkeys(lane for lane in seen if lane in here))
    if not usable:
        raise BadInput(
            f"finding {kept.record.id} was seen in {', '.join(seen)}, none of which this host has: name one with --lane"
        )
    return usable


def plan_of(registry: Registry, kept: Kept, lanes: Sequence[str]) -> AlgorithmPlan:
    """The finding's cells; raises BadInput where its subject is not there or no longer builds."""
    key = kept.record.key
    chosen = _lanes(registry, kept, lanes)
    driver = key.implementation.partition(":")[0]
    if driver not in {item.driver for item in registry.implementations} | {item.name for item in instances(registry)}:
        folders = " ".join(f"--impls '{folder}'" for folder in kept.record.impls) or "--impls DIR"
        raise BadInput(
            f"finding {key.id} is of {driver}, which is not there any more: restore its folder, or give {folders}"
        )
    selection = Selection((f"{key.algorithm}/{key.implementation}",), chosen)
    try:
        run = make_plans(registry, selection, counts=Counts())
    except BadInput as error:
        raise BadInput(f"finding {key.id}: its subject no longer builds or is no cell: {error}") from None
    plan = next(plan for plan in run.algorithms if str(plan.algorithm) == key.algorithm)
    if kept.record.judge != "vector":
        return plan
    own = replace(plan, vectors=all_vectors(registry, imported=False)[0])
    known = published(own, kept.record.from_case) is not None
    return own if known else replace(plan, vectors=all_vectors(registry)[0])  # reading these takes seconds


def replay_finding(registry: Registry, kept: Kept, lanes: Sequence[str]) -> tuple[list[str], Iterator[Answer]]:
    """The session's lines, those of its neighbours first, and its answers to come, one for each lane."""
    plan = plan_of(registry, kept, lanes)
    batch = whole_batch(kept.case)
    lines = [line for number in range(len(batch)) for line in session_lines(batch, number)]
    return [kept.record.key.algorithm, *lines], _answers(plan, kept)


def _answers(plan: AlgorithmPlan, kept: Kept) -> Iterator[Answer]:
    batch = whole_batch(kept.case)
    for cell in plan.cells:
        if execute_unless_declined(cell.station, batch, watch=Watch(0)) is None:
            yield Answer(str(cell.cell), agreed=True, text="declined: the CPU of this lane lacks what it needs")
            continue
        text = seen_again(plan, cell, kept.case, kept.record.judge, kept.record.from_case)
        yield Answer(str(cell.cell), agreed=not text, text=text)


def retest(registry: Registry, store: Store, kept: Kept, lanes: Sequence[str], *, revision: str) -> Retest:
    """Run a finding's case, behind its neighbours, ten times in each of its lanes, and keep what it came to.

    It is open (or accepted) where it always departs in some lane, fixed where it never does, flaky in between. Raises
    BadInput where its subject no longer builds.
    """
    plan = plan_of(registry, kept, lanes)
    judge, name = kept.record.judge, kept.record.from_case
    counts = [sum(bool(seen_again(plan, cell, kept.case, judge, name)) for _ in range(_RUNS)) for cell in plan.cells]
    most = max(counts)
    before = kept.record.state
    state: State = "fixed" if most == 0 else "flaky" if most < _RUNS else "accepted" if before == "accepted" else "open"
    record = store.update(
        kept.record.id,
        state=state,
        rate=most / _RUNS,
        fixed_revision=revision if state == "fixed" else "",
        last_revision=kept.record.last_revision if state == "fixed" else revision,
    )
    return Retest(record, most, _RUNS)


def debug(registry: Registry, kept: Kept, lanes: Sequence[str]) -> int:
    """Start a debugger that stops at the subject's departing call; returns its exit status.

    Natively gdb runs the reproducer. Under qemu the emulator waits with its stub for gdb-multiarch, or for gdb where
    the architecture is the host's. Raises MissingTool where the debugger is not installed.
    """
    chosen = _lanes(registry, kept, lanes)[0]
    lane = next((item for item in lanes_for_host(registry) if item.name == chosen), None)
    if lane is None:
        raise BadInput(f"{chosen!r} is no lane of this host: `crosslane list lanes` prints all")
    debugger = "gdb" if lane.arch == host_arch() else "gdb-multiarch"
    if shutil.which(debugger) is None:
        raise MissingTool(f"{debugger} is not installed: install the Debian package {debugger}")
    plan = plan_of(registry, kept, [lane.name])
    key = kept.record.key
    with tempfile.TemporaryDirectory(prefix=f"crosslane-{key.id}-") as name:
        source, program = Path(name) / "repro.c", Path(name) / "repro"
        source.write_text(kept.repro)
        made_of = ingredients(registry, key.implementation.partition(":")[0], key.algorithm.partition("(")[0], lane)
        refuse_cxx(made_of)
        try:
            build_repro(made_of, source, program)
        except BadInput as error:
            raise BadInput(f"finding {key.id}: its subject no longer builds: {error}") from None
        batch = whole_batch(kept.case)
        found = first_departure(batch, plan.cells[0].station, plan.oracle)
        op = int(batch.cases["first_op"][-1]) + (found.op if found is not None else len(kept.case.operations) - 1)
        return _start_debugger(debugger, lane, program, op)


def _start_debugger(debugger: str, lane: Lane, program: Path, op: int) -> int:
    script = program.with_name("gdb-script")
    runner = runner_command(lane)
    port = _free_port() if runner else None
    script.write_text(gdb_script(program, op, port=port))
    command = [debugger, "-q", "-x", str(script)]
    emulated = [runner[0], "-g", str(port), *runner[1:], str(program)] if runner else []
    print("".join(f"{' '.join(part)}{end}\n" for part, end in ((emulated, " &"), (command, "")) if part), flush=True)
    if not emulated:
        return subprocess.run(command, check=False).returncode
    try:
        with subprocess.Popen(emulated) as emulator:
            try:
                return subprocess.run(command, check=False).returncode
            finally:
                emulator.kill()
    except OSError as error:
        raise HarnessFault(f"{emulated[0]} does not start ({error.strerror}): install it again") from None


def _free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


def retest_all(
    registry: Registry, store: Store, ids: Sequence[str], lanes: Sequence[str], *, revision: str
) -> Iterator[Retest | CrosslaneError]:
    """Retest some findings one after the other; what prevents one is given in its place."""
    for name in ids:
        try:
            yield retest(registry, store, store.read(name), lanes, revision=revision)
        except CrosslaneError as error:
            yield error
