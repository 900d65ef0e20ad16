# SPDX-License-Identifier: Apache-2.0
"""The main job as a pytest suite: test items are views of results that are computed once per algorithm.

All items of an algorithm go to one worker, which computes it once whatever ``-n`` says; case ids, counts and verdicts
are those of ``crosslane check``. What departs and is accepted (``conformance/deviations.toml``) is an expected failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from crosslane.checks import Check
    from crosslane.findings.keep import KeptRun
    from crosslane.findings.run import Findings
    from crosslane.model import Registry
    from crosslane.plan import AlgorithmPlan, RunPlan
    from crosslane.records import AlgorithmResult, CellResult, Judgement

__all__ = ["CellView", "Judged"]

_PROPERTY = "crosslane"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of ``crosslane check``, with a prefix."""
    group = parser.getgroup("crosslane", "conformance of cipher implementations")
    group.addoption(
        "--crosslane-cell",
        action="append",
        default=[],
        help="pattern of cells, such as 'ctr(*)' (default: with --crosslane-impls its implementations, else all)",
    )
    group.addoption("--crosslane-lane", action="append", default=[], help="lane to run in (default: the gate's)")
    group.addoption("--crosslane-count", type=int, default=None, help="comparisons in each cell")
    group.addoption("--crosslane-seed", default=None, help="any sentence; it decides every case")
    group.addoption("--crosslane-vectors", choices=["all", "own"], default="all", help="all, or corpora's own alone")
    group.addoption("--crosslane-without", action="append", default=[], help="library to leave out, on purpose")
    group.addoption("--crosslane-impls", action="append", default=[], help="folder of further implementations")


@dataclass(frozen=True)
class _Ran:
    """An algorithm that this process has run, what of it was seen to be accepted, and cells' unused deviations."""

    result: AlgorithmResult
    kept: KeptRun
    unused: Mapping[str, str]


@dataclass
class _Suite:
    """What one process knows: the plans, the checks, what is accepted, and the algorithms that it has run.

    ``complete``: each cell gets its default number of comparisons, so that a deviation must be used.
    """

    registry: Registry
    run: RunPlan
    checks: tuple[Check, ...]
    findings: Findings
    complete: bool
    done: dict[str, _Ran] = field(default_factory=dict)

    def plan_of(self, algorithm: str) -> AlgorithmPlan:
        return next(plan for plan in self.run.algorithms if plan.name == algorithm)

    def ran(self, algorithm: str) -> _Ran:
        from crosslane.campaign import with_judgements  # noqa: PLC0415 - pytest loads this module in every project
        from crosslane.conduct import conduct  # noqa: PLC0415
        from crosslane.findings.run import with_faults  # noqa: PLC0415

        if algorithm not in self.done:
            ran = [conduct(self.plan_of(algorithm))]
            kept = self.findings.look(self.registry, self.run, ran)
            [result] = with_judgements(with_faults(ran, kept), self.checks)
            self.done[algorithm] = _Ran(result, kept, self._unused(result, kept))
        return self.done[algorithm]

    def _unused(self, result: AlgorithmResult, kept: KeptRun) -> dict[str, str]:
        """The sentence for each cell of an implementation that has an unused deviation for this algorithm."""
        from crosslane.findings.keep import ran_of  # noqa: PLC0415 - pytest loads this module in every project
        from crosslane.findings.run import unused_text  # noqa: PLC0415

        idle = self.findings.unused([result], kept) if self.complete else []
        return {
            cell.cell: unused_text(self.findings.file, item, algorithm)
            for item, algorithm in idle
            for cell in result.cells
            if item.is_about(ran_of(cell))
        }


@dataclass(frozen=True)
class Judged:
    """What a check says of a cell: the sentence to print where it failed, and why that is accepted where it is."""

    passed: bool | None
    sentence: str
    accepted: str = ""


@dataclass(frozen=True)
class CellView:
    """One check of one cell, as a test item sees it."""

    suite: _Suite
    algorithm: str
    cell: str
    check: str

    def judge(self) -> tuple[CellResult, Judged]:
        """The cell's result, and what the check says of it."""
        from crosslane.findings.run import accepted_by, excused  # noqa: PLC0415

        ran = self.suite.ran(self.algorithm)
        result = next(item for item in ran.result.cells if item.cell == self.cell)
        judgement = self._of(result)
        if self.cell in ran.unused:
            return result, Judged(False, ran.unused[self.cell])
        records = accepted_by(result, ran.kept) if judgement.passed is False else ()
        if records and self._of(excused(result, ran.kept, self.suite.checks)).passed is not False:
            why = self.suite.findings.reason_for
            accepted = "; ".join(f"accepted finding {record.id}: {why(record, result)}" for record in records)
            return result, Judged(False, judgement.reason, accepted)
        return result, Judged(judgement.passed, f"{self.cell}: not {judgement.sentence!r}: {judgement.reason}")

    def _of(self, result: CellResult) -> Judgement:
        return next(item for item in result.judgements if item.check == self.check)


_SUITE: pytest.StashKey[_Suite] = pytest.StashKey()


def _drivers_of(registry: Registry, impls: Sequence[str]) -> tuple[str, ...]:
    """The drivers of the folders given with ``--crosslane-impls``: a project tests its own code, not the suite's."""
    return tuple(item.driver for item in registry.implementations if item.origin != "own") if impls else ()


def _suite(config: pytest.Config) -> _Suite:
    from crosslane.campaign import keep_manifests  # noqa: PLC0415
    from crosslane.checks import load_checks  # noqa: PLC0415
    from crosslane.corpora_tools.regressions import load_regressions, with_regressions  # noqa: PLC0415
    from crosslane.data import data_root  # noqa: PLC0415
    from crosslane.errors import CrosslaneError  # noqa: PLC0415
    from crosslane.findings.run import Findings  # noqa: PLC0415
    from crosslane.plan import DEFAULT_SEED, Counts, Selection, make_plans, selected_cells  # noqa: PLC0415
    from crosslane.registry import load_registry  # noqa: PLC0415
    from crosslane.vectors import all_vectors  # noqa: PLC0415

    if _SUITE not in config.stash:
        count, seed = config.getoption("--crosslane-count"), config.getoption("--crosslane-seed")
        selection = Selection(*(tuple(config.getoption(f"--crosslane-{name}")) for name in ("cell", "lane", "without")))
        impls = tuple(config.getoption("--crosslane-impls"))
        try:
            findings = Findings.at(Path("findings"), data_root(), impls)
            registry = load_registry(data_root(), tuple(Path(folder) for folder in impls))
            if not selection.patterns:
                selection = replace(selection, patterns=_drivers_of(registry, impls))
            selected_cells(registry, selection)  # a mistyped name is said before the vectors are read
            run = make_plans(
                registry,
                selection,
                seed=DEFAULT_SEED if seed is None else seed,
                counts=Counts() if count is None else Counts.each(count),
                vectors=all_vectors(registry, imported=config.getoption("--crosslane-vectors") == "all")[0],
            )
            run = with_regressions(run, load_regressions(registry))
            checks = load_checks(registry.root)
        except CrosslaneError as error:
            raise pytest.Collector.CollectError(str(error)) from error
        keep_manifests(run.algorithms)
        config.stash[_SUITE] = _Suite(registry, run, checks, findings, complete=count is None)
    return config.stash[_SUITE]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keeps an algorithm's items on one worker: ``-n`` alone would spread them, and each worker would run it anew.

    Groups of xdist would do the same, had they not stopped to work with pytest 9.2 (pytest-xdist, issue 1386).
    """
    if config.getoption("dist") not in ("load", "loadgroup") or not any("conformance" in arg for arg in config.args):
        return None
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # noqa: PLC0415 - may be missing

    class ByAlgorithm(LoadScopeScheduling):  # type: ignore[misc]
        """Takes the algorithm of a cell for the scope of its items."""

        def _split_scope(self, nodeid: str) -> str:
            return nodeid.partition("test_cells.py::test_cell[")[2].partition("/")[0] or nodeid

    return ByAlgorithm(config, log)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item for each check of each cell, for tests that ask for ``crosslane_view``."""
    if "crosslane_view" not in metafunc.fixturenames:
        return
    suite = _suite(metafunc.config)
    values = [
        pytest.param(
            CellView(suite, plan.name, str(cell.cell), check.name),
            id=f"{cell.cell}-{check.name}",
        )
        for plan in suite.run.algorithms
        for cell in plan.cells
        for check in suite.checks
    ]
    metafunc.parametrize("crosslane_view", values)


@pytest.fixture
def crosslane_judged(crosslane_view: CellView, request: pytest.FixtureRequest) -> Judged:
    """Runs the algorithm if this process has not, and hands over the judgement; the counts go into the report."""
    result, judged = crosslane_view.judge()
    told = {
        "cell": result.cell,
        "state": result.state,
        "red": result.red,
        "comparisons": result.comparisons,
        "check": crosslane_view.check,
        "passed": judged.passed,
        "sentence": judged.sentence,
    }
    # The fixture record_property would warn, and so fail, wherever a JUnit file is written in pytest's own dialect.
    request.node.user_properties.append((_PROPERTY, told))
    return judged


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The same totals as ``crosslane check``, and what was not judged."""
    cells: dict[str, dict[str, Any]] = {}
    open_points: list[str] = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == _PROPERTY and getattr(report, "when", "") == "call":
                    cells[value["cell"]] = value
                    if value["passed"] is None and value["state"] not in ("declined", "not_effective"):
                        open_points.append(value["check"])
    if not cells:
        return
    values = cells.values()
    states = {
        "agreed": sum(value["state"] == "ran" and not value["red"] and value["comparisons"] > 0 for value in values),
        "not compared": sum(value["state"] == "ran" and value["comparisons"] == 0 for value in values),
        "declined": sum(value["state"] == "declined" and not value["red"] for value in values),
        "not effective": sum(value["state"] == "not_effective" for value in values),
        "red": sum(value["red"] for value in values),
    }
    verdicts = ", ".join(f"{count} {name}" for name, count in states.items() if count)
    total = sum(value["comparisons"] for value in values)
    terminalreporter.write_line(f"crosslane: {len(cells)} cells: {verdicts}; {total:,} comparisons")
    for check in sorted(set(open_points)):
        terminalreporter.write_line(f"crosslane: not judged: {check} in {open_points.count(check)} cells")
