# SPDX-License-Identifier: Apache-2.0
"""What is being learned of one cell while its algorithm runs, and how a departure is looked at again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from crosslane import wire
from crosslane.client import SubjectEnded
from crosslane.compare import Departure
from crosslane.confirm import confirm
from crosslane.coverage import Coverage
from crosslane.describe import departure_text, signal_name
from crosslane.errors import HarnessFault, NotStarted
from crosslane.execute import Executor, Station, execute_alone, sanitizer_report
from crosslane.generate import select_cases
from crosslane.manifest import MESSAGES_PER_BATCH
from crosslane.messages import Hello, Opened
from crosslane.plan import CellPlan
from crosslane.provenance import Foreign, identify, in_a_sentence
from crosslane.quorum import Member, vote
from crosslane.records import CellResult, Finding, Library, State
from crosslane.wire import Batch, Results, Symptom, Verdict, Watch, class_name

__all__ = ["GETTER", "Desk", "Notify", "confirm_departure", "getter_text", "open_desk", "result_of", "start_desk"]

Notify = Callable[[int], None]
"""Told how many comparisons were just made."""

GETTER = "getter"
"""Stands for the id of a case where an implementation's getter crashed: there is no case then."""
MAX_ASKED = 16
"""Departures of one kind about which the libraries are asked, until one can say something."""


@dataclass
class Desk:
    """What is being learned of one cell while its algorithm runs."""

    plan: CellPlan
    executor: Executor
    quorum: tuple[Member, ...] = ()
    state: State = "not_run"
    reason: str = ""
    hello: Hello | None = None
    opened: Opened | None = None
    comparisons: int = 0
    num_vectors: int = 0
    num_departed: int = 0
    num_sampled: int = 0
    num_threaded: int = 0
    num_large: int = 0
    num_bulk: int = 0
    num_regressions: int = 0
    hangs: bool = False
    judged_by: dict[str, int] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)
    not_run: int = 0
    findings: dict[tuple[object, ...], Finding] = field(default_factory=dict)
    confirmed: dict[tuple[object, ...], int] = field(default_factory=dict)
    taken: tuple[int, ...] = (0,) * wire.NUM_CLASSES
    library: Library | None = None

    @property
    def alive(self) -> bool:
        """Whether the subject was opened, nothing has broken since, and it is not known to hang."""
        return self.state == "ran" and not self.hangs and (GETTER,) not in self.findings

    def for_seed(self, plan: CellPlan, quorum: tuple[Member, ...]) -> Desk:
        """A copy that learns on by itself; the subject's process is shared."""
        return replace(
            self,
            plan=plan,
            quorum=quorum,
            judged_by=dict(self.judged_by),
            findings=dict(self.findings),
            confirmed=dict(self.confirmed),
        )

    def for_trials(self) -> Desk:
        """A desk of the same process on which trials alone are noted, for ``take_trials``."""
        return replace(self, num_departed=0, findings={}, confirmed={})

    def take_trials(self, asked: Desk) -> None:
        """Note what the trials showed that were noted on a desk ``for_trials``."""
        self.num_large, self.num_bulk, self.num_threaded = asked.num_large, asked.num_bulk, asked.num_threaded
        self.num_departed += asked.num_departed
        self.findings |= asked.findings
        if asked.state == "void":
            self.state, self.reason = asked.state, asked.reason

    def note_paths(self) -> None:
        """Keep the code paths that were taken: the processes may go on for another seed."""
        self.taken = tuple(self.executor.taken)

    def fail(self, fault: HarnessFault) -> None:
        """The suite's own machinery failed for this cell: void, whatever was found before stays."""
        self.state, self.reason = "void", str(fault)
        self.executor.close()


def open_desk(desk: Desk, block_len: int) -> None:
    """Start the subject and note what it says of itself; void where it is not what the cipher's metadata says."""
    if desk.plan.problem or not desk.plan.switched:
        desk.state = "unusable" if desk.plan.problem else "not_effective"
        desk.reason = desk.plan.problem or desk.plan.switch
        return
    try:
        shim = desk.executor.open()
        desk.library = identify(desk.plan.instance, shim.hello) if desk.plan.instance else None
    except (Foreign, NotStarted) as fault:
        if desk.plan.instance is None:
            desk.fail(fault)
            return
        desk.fail(fault)
        desk.state, desk.reason = "unusable", in_a_sentence(desk.plan.instance, fault)
        return
    except SubjectEnded as ended:
        verdict, text = getter_text(ended)
        desk.state, desk.num_departed = "ran", 1
        desk.findings[GETTER,] = Finding(GETTER, verdict, "none", "alone", 1, text)
        return
    except HarnessFault as fault:
        desk.fail(fault)
        return
    unlike = "" if shim.opened.declined else _unlike(desk.plan, shim.hello, shim.opened, block_len)
    if unlike:
        desk.fail(HarnessFault(f"{desk.plan.station.symbol} {unlike}"))
        return
    desk.hello, desk.opened = shim.hello, shim.opened
    desk.state = "declined" if shim.opened.declined else "ran"
    if shim.opened.declined:
        desk.executor.close()


def getter_text(seen: SubjectEnded) -> tuple[str, str]:
    """Verdict and sentence for a getter that did not return."""
    record = seen.ended.record
    if record["verdict"] == Verdict.HANG:
        return "hang", "the implementation's getter does not come back (3 s of CPU time)"
    how = signal_name(int(record["signal"]))
    report = sanitizer_report(seen.said)
    text = f"the implementation's getter crashes with {how} instead of returning its table or NULL"
    return "crash", text + (f": {report}" if report else "")


def _unlike(plan: CellPlan, hello: Hello, opened: Opened, block_len: int) -> str:
    """How the code contradicts its metadata; empty where it does not."""
    if opened.block_len != block_len:
        return f"says block_len {opened.block_len}, but cipher.toml says {block_len}: correct its struct subject_leaf"
    if plan.ways and opened.ways != plan.ways:
        return f"says ways {opened.ways}, but impl.toml says {plan.ways}: correct one of them"
    watched = Watch.PATHS in plan.watch and "paths" in hello.watchers
    if plan.ways and watched and set(opened.paths) != set(plan.declared):
        marked, declared = (", ".join(sorted(names)) or "none" for names in (opened.paths, plan.declared))
        return f"marks the paths {marked}, but impl.toml has {declared}: correct one of them"
    return ""


def start_desk(desk: Desk, batch: Batch) -> bool:
    """Begin a whole batch; False, and the cell void, where that fails."""
    try:
        desk.executor.start(batch, len(batch))
    except HarnessFault as fault:
        desk.fail(fault)
        return False
    return True


def confirm_departure(
    desk: Desk,
    batch: Batch,
    departure: Departure,
    oracle: Station | tuple[Batch, Results],
    name: Callable[[int], str],
) -> None:
    """Look at a departure again and keep it; ``name`` gives the id of a case of ``batch``."""
    key = departure.key
    desk.confirmed[key] = desk.confirmed.get(key, 0) + 1
    if desk.confirmed[key] > desk.plan.most_confirmed:
        _count(desk, key)
        return
    try:
        seen, repeats = confirm(batch, departure, desk.plan.station, oracle)
    except HarnessFault as fault:
        desk.fail(fault)
        return
    desk.hangs |= seen.verdict is Verdict.HANG and repeats == "alone"
    found_key = (*seen.key, repeats)
    if found_key in desk.findings:
        _count(desk, found_key)
        _ask_again(desk, found_key, batch, seen, oracle)
        return
    text = departure_text(batch, seen, desk.plan.arch)
    quorum = _ask(desk, batch, seen, oracle) if repeats == "alone" and isinstance(oracle, Station) else ""
    desk.findings[found_key] = Finding(
        name(seen.case), seen.verdict.name.lower(), seen.symptom.name.lower(), repeats, 1, text, quorum
    )


def _ask_again(
    desk: Desk, key: tuple[object, ...], batch: Batch, seen: Departure, oracle: Station | tuple[Batch, Results]
) -> None:
    """Where no library could say anything of the first case, ask about a later one of its kind."""
    finding = desk.findings[key]
    if finding.quorum or finding.count > MAX_ASKED or not isinstance(oracle, Station):
        return
    desk.findings[key] = replace(finding, quorum=_ask(desk, batch, seen, oracle))


def _ask(desk: Desk, batch: Batch, seen: Departure, oracle: Station) -> str:
    """What the libraries say of a case whose answers differ; nothing where it is about more than answers."""
    members = [member for member in desk.quorum if member.station != desk.plan.station]
    if not members or seen.symptom not in (Symptom.OUTPUT, Symptom.IV):
        return ""
    one = select_cases(batch, np.array([seen.case]))
    try:
        generic = execute_alone(oracle, one, watch=Watch(0))
        return vote(one, generic, execute_alone(desk.plan.station, one), members)
    except HarnessFault:
        return ""  # the replay that confirmed the departure worked; this one is only about who else agrees


def _count(desk: Desk, key: tuple[object, ...]) -> None:
    for found_key, finding in desk.findings.items():
        if found_key[:3] == key[:3]:
            desk.findings[found_key] = Finding(**{**vars(finding), "count": finding.count + 1})
            return


def _is_optional(plan: CellPlan) -> bool:
    """Whether not every build of the cell's library has the algorithm."""
    algorithm = plan.cell.algorithm
    domain = plan.instance.provider.domain(algorithm.mode, algorithm.cipher) if plan.instance else None
    return domain is not None and domain.optional


def result_of(desk: Desk) -> CellResult:
    """All that was learned, as plain data."""
    hello, opened = desk.hello, desk.opened
    taken = desk.taken
    expected = desk.plan.paths
    names = opened.paths if opened else ()
    paths = {
        name: tuple(class_name(c) for c in range(wire.NUM_CLASSES) if taken[c] >> bit & 1)
        for bit, name in enumerate(names)
        if name in expected or any(taken[c] >> bit & 1 for c in range(wire.NUM_CLASSES))
    }
    watchers = {"layout", "canary", "registers", "context", "paths", "threads"} | (
        {"wipe"} if desk.plan.wipes else set()
    )
    blind = {str(watch.name).lower() for watch in opened.blind} if opened else set()
    return CellResult(
        cell=str(desk.plan.cell),
        state=desk.state,
        reason=desk.reason,
        comparisons=desk.comparisons,
        wanted=0 if desk.state in ("declined", "unusable", "not_effective") else desk.plan.comparisons,
        skipped=desk.not_run,
        num_vectors=desk.num_vectors,
        num_departed=desk.num_departed,
        num_sampled=desk.num_sampled,
        num_threaded=desk.num_threaded,
        num_large=desk.num_large,
        num_bulk=desk.num_bulk,
        num_regressions=desk.num_regressions,
        wipes=desk.plan.wipes,
        judged_by=desk.judged_by,
        findings=tuple(desk.findings.values()),
        needed_features=desk.plan.needed_features,
        cpu_features=tuple(sorted(set(hello.features) - set(desk.plan.hides))) if hello else (),
        declared_paths=expected,
        paths=paths,
        unwatched=tuple(sorted(watchers - hello.watchers | blind)) if hello else (),
        cpu_s=desk.executor.cpu_ns / 1e9,
        provider=desk.plan.provider,
        optional=_is_optional(desk.plan),
        covered=desk.coverage.numbers(),
        full=desk.plan.full and desk.plan.comparisons >= MESSAGES_PER_BATCH,
        build_lane=desk.plan.build_lane,
        library=desk.library,
        switch=desk.plan.switch,
        prints=desk.executor.printed,
    )
