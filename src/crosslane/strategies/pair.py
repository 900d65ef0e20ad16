# SPDX-License-Identifier: Apache-2.0
"""Two implementations that Hypothesis drives: a subject and the generic one, whose processes live across examples.

Each example is a batch of one case. What departs fails the example; the least one of each kind that was seen goes to
the store of findings when the pair is closed, where it is told apart, shrunk and kept as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from crosslane.client import SubjectEnded
from crosslane.compare import Departure
from crosslane.corpora_tools.stored import digest_of
from crosslane.data import data_root
from crosslane.describe import departure_text, session_lines
from crosslane.desk import getter_text
from crosslane.errors import BadInput
from crosslane.findings.case import Case, in_turn, whole_batch
from crosslane.findings.gather import Raw
from crosslane.findings.judge import Judge
from crosslane.findings.keep import Keeper, KeptRun
from crosslane.findings.store import Store
from crosslane.manifest import Manifest
from crosslane.model import Registry
from crosslane.plan import AlgorithmPlan, CellPlan, Counts, RunPlan, Selection, make_plans
from crosslane.provenance import identify
from crosslane.records import AlgorithmResult, CellResult, Finding
from crosslane.registry import load_registry
from crosslane.toolchain import revision_of

__all__ = ["Departed", "Pair", "open_pair", "pairs_of"]

PREFIX = "hypothesis:"
"""What the names of cases begin with that Hypothesis found; the first digits of the case's digest follow."""


class Departed(AssertionError):
    """The subject answered otherwise than the generic implementation, or touched what it may not."""


class Pair:
    """A cell's subject and its oracle. Use as a context manager, or call ``close``."""

    def __init__(
        self, registry: Registry, run: RunPlan, plan: AlgorithmPlan, cell: CellPlan, *, findings: Path | None = None
    ) -> None:
        """Nothing is started before the first case. ``findings`` is the folder where departures are kept."""
        self._registry, self._run, self._plan, self._cell = registry, run, plan, cell
        self._findings = findings
        self._opened: Judge | None = None
        self._departed: dict[tuple[object, ...], Raw] = {}
        self._kept: KeptRun | None = None
        self.num_compared = 0
        """Messages that were compared, over all examples."""

    def __repr__(self) -> str:
        return f"Pair({self.cell!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _judge(self) -> Judge:
        if self._opened is None:
            plan = self._plan
            self._opened = Judge(plan.manifest, plan.oracle, self._cell.station, bounded=plan.bounded)
        return self._opened

    @property
    def cell(self) -> str:
        """The cell's id."""
        return str(self._cell.cell)

    @property
    def manifest(self) -> Manifest:
        """What cases of this cell are made of, and the domain that they keep to: what ``sessions`` takes."""
        return self._plan.manifest

    @property
    def declined(self) -> str:
        """Why the subject does not run here, in a sentence; empty where it does.

        Raises Departed where its getter declines without a reason, crashes or hangs.
        """
        if self._cell.problem or not self._cell.switched:
            return self._cell.problem or self._cell.switch
        try:
            shim = self._judge.subject.open()
        except SubjectEnded as ended:
            raise Departed(f"{self.cell}: {getter_text(ended)[1]}") from None
        if not shim.opened.declined:
            return ""
        missing = sorted(set(self._cell.needed_features) - (set(shim.hello.features) - set(self._cell.hides)))
        if not missing and not self._cell.provider:
            raise Departed(f"{self.cell}: its getter declines, though the CPU has all that impl.toml asks for")
        return f"the CPU of this lane has no {', '.join(missing)}" if missing else "the library is built without it"

    def departure(self, case: Case) -> str:
        """Run a case on both: the sentence of how the subject departs, empty where it agrees or nothing is promised.

        ``case`` is one that ``sessions`` draws. Raises HarnessFault where a shim cannot be started.
        """
        if not self._judge.may_be_tried(in_turn(case)):
            return ""
        found = self._judge.one(case)
        self.num_compared += case.num_messages
        if found is None:
            return ""
        self._note(case, found)
        return departure_text(whole_batch(case), found, self._cell.arch)

    def check(self, case: Case) -> None:
        """Run a case on both; raises Departed, with the operations, where the subject departs."""
        text = self.departure(case)
        if text:
            lines = "\n".join(session_lines(whole_batch(case), 0))
            raise Departed(f"{self.cell}: {text}\n{lines}")

    def _note(self, case: Case, found: Departure) -> None:
        """Hypothesis shows the least example last, so that the last one of each kind is what is kept."""
        sealed = self._judge.sealed([case])[0]
        self._departed[found.key] = Raw(sealed, found, f"{PREFIX}{digest_of(sealed)[:12]}")

    def keep(self) -> KeptRun:
        """Put what departed so far into the store of findings; returns what was kept, nothing without a store."""
        raws, self._departed = list(self._departed.values()), {}
        if not raws or self._findings is None:
            return KeptRun((), ())
        shim = self._judge.subject.open()
        instance = self._cell.instance
        result = CellResult(
            cell=self.cell,
            state="ran",
            reason="",
            comparisons=self.num_compared,
            wanted=0,
            skipped=0,
            num_vectors=0,
            num_departed=len(raws),
            num_sampled=0,
            findings=tuple(_finding(raw) for raw in raws),
            needed_features=self._cell.needed_features,
            cpu_features=tuple(sorted(shim.hello.features)),
            declared_paths=(),
            paths={},
            unwatched=(),
            cpu_s=0.0,
            provider=self._cell.provider,
            library=identify(instance, shim.hello) if instance is not None else None,
        )
        plan = replace(self._plan, cells=(self._cell,), vectors=())
        manifest = plan.manifest
        done = AlgorithmResult(plan.name, str(plan.algorithm), manifest.to_json(), manifest.digest, (result,), 0.0)
        parties = sorted({item.origin for item in self._registry.implementations if item.origin != "own"})
        keeper = Keeper(
            self._registry,
            Store(self._findings),
            revision=revision_of(self._registry.root),
            impls=parties,
        )
        return keeper.keep(replace(self._run, algorithms=(plan,)), [done], raws={self.cell: raws})

    def again(self) -> Pair:
        """A pair of the same cell with processes of its own."""
        return Pair(self._registry, self._run, self._plan, self._cell, findings=self._findings)

    def close(self) -> None:
        """Keep what departed, end the processes and give the memory back; a second call does nothing."""
        if self._kept is not None:
            return
        try:
            self._kept = self.keep()
        finally:
            if self._opened is not None:
                self._opened.__exit__(None, None, None)

    @property
    def kept(self) -> KeptRun:
        """What ``close`` kept."""
        return self._kept or KeptRun((), ())


def _finding(raw: Raw) -> Finding:
    found = raw.departure
    return Finding(raw.name, found.verdict.name.lower(), found.symptom.name.lower(), "alone", 1, "")


def pairs_of(registry: Registry, selection: Selection, *, findings: Path | None = None) -> dict[str, Pair]:
    """A pair for each selected cell, by id; everything is built first. None of them runs before its first case."""
    run = make_plans(registry, selection, counts=Counts.each(0))
    return {
        str(cell.cell): Pair(registry, run, plan, cell, findings=findings)
        for plan in run.algorithms
        for cell in plan.cells
    }


def open_pair(cell: str, *, impls: Sequence[str | Path] = (), findings: str | Path | None = "findings") -> Pair:
    """The pair of one cell, such as ``ctr(sm4)/sm4-mine@x86_64_native``, built if need be.

    ``impls`` are folders of further implementations; ``findings`` is the folder that departures are kept in, None for
    none. Raises BadInput where there is no such cell, MissingTool and HarnessFault where it cannot be built.
    """
    registry = load_registry(data_root(), [Path(folder) for folder in impls])
    lane = cell.rpartition("@")[2]
    pairs = pairs_of(registry, Selection((cell,), (lane,)), findings=Path(findings) if findings is not None else None)
    if list(pairs) != [cell]:
        raise BadInput(f"{cell!r} is no single cell: give one whole id, as `crosslane list cells` prints it")
    return pairs[cell]
