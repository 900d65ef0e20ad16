# SPDX-License-Identifier: Apache-2.0
"""What is printed of a campaign: the live status, the line a minute, and the status asked from another terminal."""

from __future__ import annotations

import logging
import logging.handlers
import time
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from crosslane.data import shown
from crosslane.errors import HarnessFault
from crosslane.fuzzing.engine import View
from crosslane.fuzzing.facts import Snapshot

__all__ = ["Reporter", "end_lines", "number_of", "status_lines"]

LINE_EVERY_S = 60.0
_LOG_BYTES = 1 << 20
_RATE_OVER_S = 60.0
_MOST_SHOWN = 12


def number_of(count: int, noun: str) -> str:
    """So many of something, such as "1 round" and "2 rounds"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class Reporter:
    """Shows a campaign while it works, and writes its log. Use as a context manager."""

    def __init__(self, console: Console, title: str, log: Path) -> None:
        """``log`` is written to, a line a minute and one for each finding; beyond 1 MiB the older half goes."""
        self._console = console
        self._title = title
        self._begun = time.monotonic()
        self._next_line = self._begun + LINE_EVERY_S
        self._seen: deque[tuple[float, int]] = deque([(self._begun, 0)])
        self._told: set[str] = set()
        self._last: View | None = None
        self._live = Live(console=console, refresh_per_second=2, transient=True) if console.is_terminal else None
        try:
            handler = _Log(log, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
        except OSError as error:
            raise HarnessFault(
                f"{shown(log)}: the log cannot be written ({error.strerror}): make it writable, or name another place "
                "with --state"
            ) from None
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%SZ"))
        handler.formatter.converter = time.gmtime  # type: ignore[union-attr]
        self._handler = handler
        self._logger = logging.Logger("crosslane.fuzz", logging.INFO)
        self._logger.addHandler(handler)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
        if self._last is not None:
            self._logger.info(self.line(self._last))
        self._handler.close()

    def say(self, text: str) -> None:
        """Print and log a sentence."""
        self._logger.info(text)
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def tell(self, view: View) -> None:
        """Take note of how far the campaign is."""
        now = time.monotonic()
        self._seen.append((now, view.here))
        while len(self._seen) > 2 and self._seen[1][0] < now - _RATE_OVER_S:
            self._seen.popleft()
        for note in view.notes:
            self.say(note)
        for record in view.findings.values():
            if record.id not in self._told:
                self._told.add(record.id)
                key = record.key
                self.say(
                    f"finding {record.id}: {key.implementation}, {key.algorithm}, {key.symptom}, {key.fault_class}: "
                    f"{record.state}, {record.text}"
                )
        for cell, why in view.left.items():
            if cell not in self._told:
                self._told.add(cell)
                self.say(f"{cell}: departs, and is not among the findings: {why}")
        self._last = view
        if now >= self._next_line:
            self._next_line = now + LINE_EVERY_S
            self._logger.info(self.line(view))
            if self._live is None:
                self._console.print(self.line(view), markup=False, highlight=False, soft_wrap=True)
        if self._live is not None:
            self._live.update(self._picture(view))

    def rate(self) -> float:
        """Comparisons a second over the last minute."""
        (then, before), (now, after) = self._seen[0], self._seen[-1]
        return (after - before) / max(now - then, 1e-9)

    def line(self, view: View) -> str:
        """The line a minute."""
        return (
            f"round {view.rounds:,}: {view.comparisons:,} comparisons, {self.rate():,.0f}/s, {view.num_run:,} of "
            f"{view.num_cells:,} cells, oldest {number_of(view.oldest, 'round')}, "
            f"{number_of(view.num_findings, 'finding')}, {view.void} void"
        )

    def _picture(self, view: View) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        took = int(time.monotonic() - self._begun)
        for name, value in (
            ("campaign", self._title),
            ("running", f"{took // 3600}:{took // 60 % 60:02}:{took % 60:02}"),
            ("rounds", f"{view.rounds:,}, {view.under_way} under way"),
            ("comparisons", f"{view.comparisons:,}, {self.rate():,.0f} a second"),
            ("cells", f"{view.num_run:,} of {view.num_cells:,}, the oldest ran {view.oldest:,} rounds ago"),
            ("void", f"{view.void:,}"),
            ("findings", f"{view.num_findings:,}"),
        ):
            table.add_row(Text(name, style="dim"), Text(value))
        texts = {
            **view.earlier,
            **{
                record.id: f"{record.key.implementation}, {record.key.algorithm}: {record.text}"
                for record in view.findings.values()
            },
        }
        lines = [Text(f"  {name}  {text}", no_wrap=True) for name, text in list(texts.items())[-_MOST_SHOWN:]]
        return Group(table, *lines)


class _Log(logging.handlers.RotatingFileHandler):
    """A log that cannot be written ends no campaign: the state says the same."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name and the parameter are logging's
        """Go on without the line."""


def _ago(seconds: float) -> str:
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h" if whole < 172800 else f"{whole // 86400} d"


def status_lines(snapshot: Snapshot, holder: int) -> Iterator[str]:
    """What ``--status`` prints."""
    totals, cells = snapshot.totals, snapshot.cells.values()
    at_work = f"at work (process {holder})" if holder else "not at work"
    yield f"campaign {snapshot.campaign}, seed {snapshot.seed!r}: {at_work}"
    if not totals.rounds:
        yield "no round has come to its end yet"
        return
    when = datetime.fromtimestamp(totals.clock_s, tz=UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    yield (
        f"{number_of(totals.rounds, 'round')}, {number_of(totals.comparisons, 'comparison')}, "
        f"{number_of(totals.departed, 'case')} departed, {number_of(totals.void, 'cell')} void; "
        f"{totals.cpu_s:,.0f} s of CPU, last round at {when}"
    )
    for hour in snapshot.hours[-3:]:
        begun = datetime.fromtimestamp(hour.begin_s, tz=UTC).strftime("%Y-%m-%d %H:00Z")
        per_cpu = hour.comparisons / hour.cpu_s if hour.cpu_s else 0.0
        yield f"hour of {begun}: {hour.comparisons:,} comparisons, {per_cpu:,.0f} a second of CPU"
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell.state] = counts.get(cell.state, 0) + 1
    states = ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items()))
    pairs = sum(map(len, snapshot.reached.values()))
    yield f"{number_of(len(cells), 'cell')} so far: {states or 'none'}; {pairs:,} paths in length classes reached"
    for cell in sorted((c for c in cells if c.state == "ran"), key=lambda c: c.last_round)[:3]:
        ago = _ago(totals.clock_s - cell.last_s)
        yield f"longest ago: {cell.cell}, {number_of(totals.rounds - cell.last_round, 'round')} and {ago}"
    yield from end_lines(snapshot)


def end_lines(snapshot: Snapshot) -> Iterator[str]:
    """The findings of a campaign, those cells whose departures are not among them, and cells that were void last."""
    for finding in snapshot.findings:
        accepted = "accepted, " if finding.accepted else ""
        rounds = number_of(finding.sightings, "round")
        yield (
            f"finding {finding.id}: {accepted}in {rounds} from {finding.first_round} to {finding.last_round}: "
            f"{finding.text}"
        )
    for cell, why in snapshot.left:
        yield f"{cell}: departs, and is not among the findings: {why}"
    for facts in snapshot.cells.values():
        if facts.state == "void":
            yield f"{facts.cell}: void when it ran last: {facts.reason}"
