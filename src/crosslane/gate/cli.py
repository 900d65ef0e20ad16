# SPDX-License-Identifier: Apache-2.0
"""``crosslane gate``: run what a policy says, or take a result, and say what is red and what to do."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click
from rich.console import Console

from crosslane.checks import load_checks
from crosslane.data import data_root, shown
from crosslane.errors import BadInput
from crosslane.fetched import held_sysroots
from crosslane.findings.cli import findings_option
from crosslane.findings.deviations import default_file, load_deviations
from crosslane.formats import Gated, Red, matrix_lines, places_of
from crosslane.formats.outcomes import one_line
from crosslane.gate.asked import asked_of, selection_of
from crosslane.gate.coverage import check_baseline
from crosslane.gate.given import with_given
from crosslane.gate.judge import Judging, gate_status, judge, with_deviations
from crosslane.gate.policy import Policy, read_policy
from crosslane.html.cli import page_options
from crosslane.instances import read_providers, with_builds
from crosslane.isa import host_arch
from crosslane.model import Registry
from crosslane.outputs import Outputs, output_options
from crosslane.plan import Selection
from crosslane.registry import load_registry
from crosslane.resultfile import read_json
from crosslane.results import RunResult
from crosslane.toolchain import revision_of

__all__ = ["gate_command", "gate_lines"]

_MOST_SHOWN = 20
"""Reds of one rule that are printed; the outputs have all."""
_WIDTH = 140


@dataclass(frozen=True)
class _Run:
    """How the policy's run is made."""

    registry: Registry
    selection: Selection
    policy: Policy
    seed: str
    jobs: int | None
    folder: Path
    impls: tuple[str, ...]
    require_sandbox: bool


@click.command("gate")
@click.option(
    "--policy", "policy_file", required=True, type=click.Path(path_type=Path), help="The policy, such as gate.toml."
)
@click.option(
    "--baseline", "baseline_file", type=click.Path(path_type=Path),
    help="Results of an earlier run, of which nothing may be lost.",
)  # fmt: skip
@click.option("--result", "result_file", type=click.Path(path_type=Path), help="Judge these results, and run nothing.")
@click.option("--any-revision", is_flag=True, help="--result may be of another revision than this tree.")
@click.option("--only-new", is_flag=True, help="What is red in the baseline too does not count.")
@click.option("--seed", help="Any sentence; it decides every case (default: the policy's).")
@click.option("--nightly", is_flag=True, help="Take a sentence with the day in it for the seed.")
@click.option("--day", metavar="YYYY-MM-DD", help="The day of --nightly (default: today, UTC).")
@click.option("--jobs", type=click.IntRange(1), help="Worker processes (default: one a core).")
@click.option("--provider", "providers", multiple=True, help="Further providers, or builds, beside the policy's.")
@click.option("--without", multiple=True, metavar="PROVIDER", help="Leave a library out too, on purpose.")
@click.option(
    "--impls", "impls", multiple=True, type=click.Path(path_type=Path), help="Folder of further implementations."
)
@click.option("--require-sandbox", is_flag=True, help="Fail where the host refuses a layer of containment.")
@findings_option
@output_options
@page_options
def gate_command(  # noqa: PLR0913 - one parameter an option; click passes them by name
    *,
    policy_file: Path,
    baseline_file: Path | None,
    result_file: Path | None,
    any_revision: bool,
    only_new: bool,
    seed: str | None,
    nightly: bool,
    day: str | None,
    jobs: int | None,
    providers: tuple[str, ...],
    without: tuple[str, ...],
    impls: tuple[Path, ...],
    require_sandbox: bool,
    folder: Path,
    outputs: Outputs,
) -> None:
    """Hold a run against a policy: what must pass, what is accepted, and what may not be lost."""
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    today = dt.datetime.now(tz=dt.UTC).date()
    checks = load_checks(data_root())
    policy = read_policy(policy_file, frozenset(check.name for check in checks))
    given = {"--seed": seed, "--nightly": nightly, "--jobs": jobs, "--require-sandbox": require_sandbox}
    sentence = _seed(policy, given, result_file, day, today)
    names, builds = read_providers((*policy.providers, *providers))
    held = click.get_current_context().with_resource(held_sysroots())
    registry = with_builds(load_registry(data_root(), impls, sysroots=held), builds)
    selection = selection_of(policy, registry, without, names)
    asked = asked_of(policy, registry, selection)
    deviations_file = policy.deviations or default_file(registry.root)
    judging = Judging(asked, checks, load_deviations(deviations_file), shown(deviations_file), today)
    if (only_new or policy.only_new) and baseline_file is None:
        raise BadInput(f"{policy.file}: only what is new against a baseline is red: name one with --baseline")
    if any_revision and result_file is None:
        raise BadInput("--any-revision is about the results of --result: give both, or leave it out")
    given_result = read_json(result_file) if result_file is not None else None
    baseline = read_json(baseline_file) if baseline_file is not None else None
    if baseline is not None:
        check_baseline(baseline, given_result.host if given_result is not None else host_arch())
    outputs = replace(outputs, places=lambda: places_of(registry, Path.cwd()))
    outputs.check(policy_file, result_file, baseline_file, deviations_file)
    if given_result is not None:
        result, interrupted = given_result, ""
        console.print(f"seed {result.seed!r}", markup=False, highlight=False, soft_wrap=True)
    else:
        console.print(f"seed {sentence!r}", markup=False, highlight=False, soft_wrap=True)
        shown_impls = tuple(map(str, impls))
        run = _Run(registry, selection, policy, sentence, jobs, folder, shown_impls, require_sandbox)
        result, interrupted = _compared(run, judging, console)
    result = with_deviations(result, judging)
    before = with_deviations(baseline, judging) if baseline is not None else None
    gated = judge(result, judging, before, only_new=only_new or policy.only_new)
    if given_result is not None:
        gated = with_given(gated, result, policy, revision_of(registry.root), any_revision=any_revision)
    for line in (*matrix_lines(result), "", *gate_lines(result, gated)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    replace(outputs, matrix=False).write(result, gated)
    if interrupted:
        console.print(interrupted, markup=False)
        sys.exit(130)
    sys.exit(gate_status(gated))


def _seed(
    policy: Policy, given: Mapping[str, object], result_file: Path | None, day: str | None, today: dt.date
) -> str:
    """The sentence of the run; raises BadInput for options that do not go together."""
    if result_file is not None:
        named = [name for name, value in given.items() if value]
        if named or day is not None:
            option = named[0] if named else "--day"
            raise BadInput(f"--result judges what was run before, and {option} is about a run: give one of them")
    if not given["--nightly"]:
        if day is not None:
            raise BadInput("--day is the day of --nightly: give both, or leave it out")
        seed = given["--seed"]
        if seed is not None and not str(seed).strip():
            raise BadInput("the seed is empty; give any sentence with --seed, or leave the option out")
        return policy.seed if seed is None else str(seed)
    if given["--seed"] is not None:
        raise BadInput("--seed and --nightly both give the seed: give one of them")
    try:
        return f"nightly {dt.date.fromisoformat(day) if day is not None else today}"
    except ValueError:
        raise BadInput(f"--day {day!r} is no date; write a day as 2027-03-31") from None


def _compared(run: _Run, judging: Judging, console: Console) -> tuple[RunResult, str]:
    """What the policy's run learns, and the sentence of its interruption."""
    from crosslane.findings.run import Findings  # noqa: PLC0415 - the engine is for those that run something
    from crosslane.findings.store import Store  # noqa: PLC0415
    from crosslane.job import Job, compare_all  # noqa: PLC0415

    job = Job(
        registry=run.registry,
        selection=run.selection,
        seed=run.seed,
        counts=run.policy.counts,
        imported=run.policy.imported,
        require_sandbox=run.require_sandbox,
        num_workers=run.jobs,
        findings=run.folder,
        prove=run.policy.prove,
    )
    findings = Findings(Store(run.folder), tuple(judging.deviations), Path(judging.deviations_file), run.impls)
    ended = compare_all(job, console, findings)
    return ended.result, ended.interrupted


def gate_lines(result: RunResult, gated: Gated) -> Iterator[str]:
    """What is red by rule, each with what to do, and the verdict."""
    for note in gated.notes:
        yield one_line(f"note: {note}")
    for rule in gated.rules:
        mine = [red for red in gated.reds if red.rule == rule]
        yield from map(_red_line, mine[:_MOST_SHOWN])
        if len(mine) > _MOST_SHOWN:
            yield f"{rule}: {len(mine) - _MOST_SHOWN} more, which --junit and --sarif name"
    if gated.known:
        rules = sorted({red.rule for red in gated.known})
        yield f"known: {len(gated.known)} are red in the baseline too and do not count ({', '.join(rules)})"
    cells = list(result.cells())
    accepted = sum(cell.accepted for cell in cells)
    verdict = f"RED: {len(gated.reds)} to see to" if gated.reds else "green"
    yield (
        f"gate {gated.policy}: {verdict}; {len(cells)} cells, {sum(cell.state == 'ran' for cell in cells)} ran, "
        f"{accepted} with accepted findings; {result.comparisons:,} comparisons in {result.took_s:.1f} s "
        f"({result.cpu_s:.0f} s of CPU); revision {result.revision[:12] or 'unknown'}, seed {result.seed!r}"
    )


def _red_line(red: Red) -> str:
    return one_line(f"{red.rule}: {red.about}: {red.text}: {red.cure}")
