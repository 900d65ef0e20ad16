# SPDX-License-Identifier: Apache-2.0
"""Stored cases that once showed a fault, before anything else: each cell of their algorithm answers them again."""

from __future__ import annotations

from collections.abc import Sequence

from crosslane import wire
from crosslane.client import SharedMemory
from crosslane.compare import compare
from crosslane.desk import Desk, Notify, confirm_departure, start_desk
from crosslane.errors import HarnessFault
from crosslane.execute import Executor
from crosslane.plan import AlgorithmPlan

__all__ = ["run_regressions"]


def run_regressions(
    plan: AlgorithmPlan, desks: Sequence[Desk], oracle: Executor, memory: SharedMemory, notify: Notify
) -> None:
    """Run a plan's stored cases on the oracle and every living subject. Raises HarnessFault where the oracle fails."""
    named = plan.regressions
    alive = [desk for desk in desks if desk.alive]
    if named is None or not alive:
        return
    batch = named.batch
    wire.encode_batch_into(batch, memory.view)
    oracle.start(batch, len(batch))
    started = [desk for desk in alive if start_desk(desk, batch)]
    reference = oracle.finish()
    for desk in started:
        try:
            found = compare(batch, reference, desk.executor.finish())
        except HarnessFault as fault:
            desk.fail(fault)
            continue
        desk.comparisons += found.comparisons
        desk.num_regressions += found.comparisons
        desk.num_departed += found.num_departed
        desk.not_run += found.not_run
        notify(found.comparisons)
        for departure in found.departures:
            confirm_departure(desk, batch, departure, plan.oracle, named.names.__getitem__)
