# SPDX-License-Identifier: Apache-2.0
"""Runs the plans of all algorithms side by side in worker processes and gathers what they learn."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from crosslane.buildcache import cache_folder, store_text
from crosslane.checks import Check, judge_all
from crosslane.conduct import conduct
from crosslane.errors import HarnessFault
from crosslane.memory import die_with_parent, keep_freed_memory, return_freed_memory
from crosslane.plan import AlgorithmPlan
from crosslane.records import AlgorithmResult, CellResult

__all__ = [
    "WORKER_DIED",
    "Interrupted",
    "Progress",
    "begin_worker",
    "default_workers",
    "end_workers",
    "keep_manifests",
    "run_plans",
    "side_by_side",
    "with_judgements",
]


@dataclass
class Progress:
    """Comparisons made so far, by algorithm; safe to read from another thread."""

    done: dict[str, int] = field(default_factory=dict)
    finished: list[AlgorithmResult] = field(default_factory=list)

    @property
    def comparisons(self) -> int:
        """Comparisons made so far."""
        return sum(self.done.values())


class Interrupted(Exception):
    """The run was stopped from outside; carries what was done until then."""

    def __init__(self, progress: Progress) -> None:
        super().__init__("interrupted")
        self.progress = progress


Item = TypeVar("Item")
Done = TypeVar("Done")

WORKER_DIED = "look for the out-of-memory killer in the system's log, or use --jobs 1"
_QUEUE: Any = None


def begin_worker(channel: Any) -> None:
    """In a worker: progress goes to ``channel``; an interrupt from the keyboard is the parent's to handle."""
    global _QUEUE  # noqa: PLW0603 - an initializer of a process pool has no other way to hand something on
    _QUEUE = channel
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()


def _work(plan: AlgorithmPlan) -> AlgorithmResult:
    name = plan.name

    def notify(count: int) -> None:
        _QUEUE.put((name, count))

    result = conduct(plan, notify)
    return_freed_memory()
    return result


def _drain(channel: Any, progress: Progress, stop: threading.Event, tell: Callable[[Progress], None]) -> None:
    while not stop.is_set():
        try:
            name, count = channel.get(timeout=0.2)
        except queue.Empty:
            continue
        except (EOFError, OSError):
            return
        progress.done[name] = progress.done.get(name, 0) + count
        tell(progress)


def run_plans(
    plans: Sequence[AlgorithmPlan], *, num_workers: int, tell: Callable[[Progress], None] = lambda _: None
) -> list[AlgorithmResult]:
    """Run all plans, the longest first, on ``num_workers`` processes; results in the order of the plans.

    Case ids and verdicts do not depend on the number of workers. Raises Interrupted on Ctrl-C, HarnessFault where a
    worker dies.
    """
    context = multiprocessing.get_context("spawn")
    channel = context.Queue()
    progress, stop = Progress(), threading.Event()
    reader = threading.Thread(target=_drain, args=(channel, progress, stop, tell), daemon=True)
    reader.start()
    pool = ProcessPoolExecutor(num_workers, mp_context=context, initializer=begin_worker, initargs=(channel,))
    try:
        pending: dict[Future[AlgorithmResult], AlgorithmPlan] = {
            pool.submit(_work, plan): plan for plan in sorted(plans, key=lambda plan: -plan.total)
        }
        left = set(pending)
        while left:
            finished, left = wait(left, timeout=0.5, return_when=FIRST_COMPLETED)
            progress.finished += [future.result() for future in finished]
            tell(progress)
    except KeyboardInterrupt:
        end_workers(pool)
        time.sleep(0.3)  # what the workers had told before
        raise Interrupted(progress) from None
    except BrokenProcessPool as error:
        raise HarnessFault(f"a worker process died ({error}): {WORKER_DIED}") from error
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
    order = {plan.name: number for number, plan in enumerate(plans)}
    return sorted(progress.finished, key=lambda result: order[result.name])


def side_by_side(function: Callable[[Item], Done], items: Sequence[Item], *, num_workers: int) -> Iterator[Done]:
    """What a function of a module makes of each item, in the order of the items, worked on by some processes.

    Raises what the function raises, and HarnessFault where a worker dies.
    """
    if min(num_workers, len(items)) < 2:
        yield from map(function, items)
        return
    pool = ProcessPoolExecutor(
        min(num_workers, len(items)), mp_context=multiprocessing.get_context("spawn"), initializer=begin_worker,
        initargs=(None,),
    )  # fmt: skip
    try:
        for future in [pool.submit(function, item) for item in items]:
            yield future.result()
    except KeyboardInterrupt:
        end_workers(pool)
        raise
    except BrokenProcessPool as error:
        raise HarnessFault(f"a worker process died ({error}): {WORKER_DIED}") from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def end_workers(pool: ProcessPoolExecutor) -> None:
    """End the workers at once; their shims see the end of their input, or the parent-death signal, and go too."""
    for process in list((pool._processes or {}).values()):
        process.terminate()
    for process in list((pool._processes or {}).values()):
        process.join(2)
        if process.is_alive():
            process.kill()


def with_judgements(results: Sequence[AlgorithmResult], checks: Sequence[Check]) -> list[AlgorithmResult]:
    """The same results with every check's judgement of every cell."""

    def judged(cell: CellResult) -> CellResult:
        return replace(cell, judgements=judge_all(checks, cell))

    return [replace(result, cells=tuple(judged(cell) for cell in result.cells)) for result in results]


def keep_manifests(plans: Sequence[AlgorithmPlan]) -> None:
    """Keep the manifests where ``crosslane repro`` finds them by digest."""
    folder = cache_folder().parent / "manifests"
    for plan in plans:
        store_text(folder / f"{plan.manifest.digest}.json", plan.manifest.to_json())


def default_workers() -> int:
    """One worker a core that this process may use."""
    return max(1, len(os.sched_getaffinity(0)))
