# SPDX-License-Identifier: Apache-2.0
"""The command ``crosslane fuzz``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.findings.cli import findings_option
from crosslane.fuzzing.spec import DEFAULT_CAMPAIGN

__all__ = ["bench_fuzz_command", "fuzz_command", "parse_duration"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d{1,9}[smhd])+")
_STATES = Path(".crosslane") / "campaigns"


def parse_duration(text: str) -> float:
    """Seconds of a duration such as 90s, 45m, 8h or 1d12h; raises BadInput."""
    if not _DURATION.fullmatch(text):
        raise BadInput(f"{text!r} is no duration: give one such as 90s, 45m, 8h or 1d12h with --for")
    seconds = sum(int(part[:-1]) * _UNITS[part[-1]] for part in re.findall(r"\d+[smhd]", text))
    if not seconds:
        raise BadInput(f"{text!r} is no time at all: give a duration such as 90s, 45m or 8h with --for")
    return float(seconds)


@click.command("fuzz")
@click.argument("campaign", default=DEFAULT_CAMPAIGN)
@click.option("--cell", "patterns", multiple=True, help="Only these cells of the campaign, such as 'ctr(*)' or sm4-ce.")
@click.option("--for", "duration", metavar="TIME", help="End after this time, such as 90s, 45m, 8h or 1d12h.")
@click.option(
    "--count", type=click.IntRange(1), help="End when so many comparisons were asked for, earlier runs included."
)
@click.option("--seed", help="Any sentence; it decides every case and every choice (default: one with today's date).")
@click.option(
    "--state",
    "state_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Database of the campaign (default: .crosslane/campaigns/CAMPAIGN.sqlite).",
)
@click.option("--jobs", type=click.IntRange(1), help="Worker processes (default: one a core).")
@click.option("--status", "only_status", is_flag=True, help="Say how far the campaign is, and end.")
@findings_option
@click.option(
    "--impls", "impls", multiple=True, type=click.Path(path_type=Path), help="Folder of further implementations."
)
@click.option("--require-sandbox", is_flag=True, help="Fail where the host refuses a layer of containment.")
def fuzz_command(  # noqa: PLR0913, PLR0917 - one parameter an option; click passes them by name
    campaign: str,
    patterns: tuple[str, ...],
    duration: str | None,
    count: int | None,
    seed: str | None,
    state_file: Path | None,
    jobs: int | None,
    only_status: bool,
    folder: Path,
    impls: tuple[Path, ...],
    require_sandbox: bool,
) -> None:
    """Run a campaign, by name or by its file: cases without end over all its cells, from where its state stands.

    It never stops at a finding, and may be ended in any way at any time: the same command goes on.
    """
    from crosslane.fuzzing.job import FuzzJob, run_campaign, show_status  # noqa: PLC0415 - numpy and the engine are for those that need them
    from crosslane.fuzzing.spec import load_campaign  # noqa: PLC0415

    if duration is not None and count is not None:
        raise BadInput("--for and --count both say when to end: give one of them")
    spec = load_campaign(data_root(), campaign)
    state = state_file or _STATES / f"{spec.name}.sqlite"
    if only_status:
        if patterns or duration or count is not None or seed or jobs:
            raise BadInput("--status runs nothing: give it a campaign or --state, and no other option")
        show_status(state, folder, click.echo)
        return
    job = FuzzJob(
        campaign=spec,
        patterns=patterns,
        seed=seed,
        state=state,
        seconds=None if duration is None else parse_duration(duration),
        comparisons=count,
        num_workers=jobs,
        findings=folder,
        impls=impls,
        require_sandbox=require_sandbox,
    )
    sys.exit(run_campaign(job))


@click.command("fuzz")
@click.option(
    "--impls", "impls", multiple=True, type=click.Path(path_type=Path), help="Folder of further implementations."
)
def bench_fuzz_command(impls: tuple[Path, ...]) -> None:
    """Measure a campaign: its rate against bare loops and a libFuzzer target, and two workers against one."""
    from crosslane.fuzzing.bench import report_fuzz  # noqa: PLC0415 - numpy and the engine are for those that need them
    from crosslane.registry import load_registry  # noqa: PLC0415

    sys.exit(0 if report_fuzz(load_registry(data_root(), impls), click.echo) else 1)
