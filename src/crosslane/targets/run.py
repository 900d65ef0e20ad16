# SPDX-License-Identifier: Apache-2.0
"""A target as a program: from its arguments to the engine's loop."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from crosslane.data import data_root
from crosslane.errors import BadInput, CrosslaneError
from crosslane.isa import host_arch
from crosslane.model import Registry
from crosslane.plan import native_lane
from crosslane.registry import load_registry
from crosslane.targets.engine import Engine, load_engine
from crosslane.targets.guest import Guest
from crosslane.targets.mutator import Mutator
from crosslane.targets.native import GONE, Pair
from crosslane.targets.options import Options, parse_options
from crosslane.targets.programs import build_emulated, build_host_side, build_in_process
from crosslane.targets.reports import REPORTS, Keeping, leave_report, run_below
from crosslane.targets.rows import Choice, choose

__all__ = ["main", "open_pair", "run_target"]

_HELP = """\
usage: {name} [--cell PATTERN]... [--impls FOLDER]... [--findings FOLDER] [--blind] [ENGINE FLAG]... [CORPUS]...

Fuzzes implementations against generic. Flags with one dash are libFuzzer's: -help=1 prints them.
  --cell PATTERN     cells of one lane, natively or under an emulator, such as 'ctr(sm4)/sm4-ce@aarch64_qemu_max'
  --impls FOLDER     a folder of further implementations
  --findings FOLDER  where findings are kept (default: findings)
  --blind            without coverage, for comparison
"""


def open_pair(registry: Registry, choice: Choice, *, only_decodes: bool = False, blind: bool = False) -> Pair:
    """Build and load both sides of a choice; the subject's in a guest where its lane is an emulator's.

    With ``only_decodes`` there is no subject; a ``blind`` one is not instrumented. Raises CrosslaneError.
    """
    native = native_lane(registry)
    if only_decodes:
        return Pair(build_host_side(registry, choice, native), choice, only_decodes=True)
    if choice.lane.runner == "native":
        return Pair(build_in_process(registry, choice, native, blind=blind), choice)
    built = build_emulated(registry, choice, native, blind=blind)
    return Pair(built, choice, guest=Guest(registry.root, built.subject, choice))


class _Recorder:
    """Reports departures to the process above, each kind once."""

    def __init__(self, pair: Pair, folder: Path) -> None:
        self._pair = pair
        self._folder = folder
        self._keys: set[tuple[object, ...]] = set()

    def departed(self, data: bytes) -> None:
        seen = self._pair.seen()
        if seen.what == GONE:
            self._pair.again()
        if seen.key in self._keys:
            return
        self._keys.add(seen.key)
        text = f"execution {self._pair.num_executions}: {seen.text}"
        try:
            leave_report(self._folder, data, key=repr(seen.key), face=repr(seen.face), text=text)
        except OSError as error:
            sys.exit(f"crosslane: {text}; it cannot be reported ({error.strerror}): free some space")


def _loop(engine: Engine, pair: Pair, options: Options, argv: Sequence[str]) -> None:
    recorder = _Recorder(pair, Path(os.environ[REPORTS]))
    one = pair.one

    def test(data: bytes) -> None:
        if one(data, len(data)):
            recorder.departed(data)

    if not options.blind:
        engine.count(*pair.counters())
    rows = [pair.choice.rows[i] for i in pair.choice.chosen]
    mutator = Mutator(rows, engine.mutate)
    engine.run(argv, test, mutator.mutate, mutator.cross_over)


def run_target(family: str, argv: Sequence[str]) -> None:
    """Run the target of a family below another process; does not come back. Raises CrosslaneError."""
    options, rest = parse_options(argv[1:])
    engine = load_engine()
    registry = load_registry(data_root(), tuple(Path(folder) for folder in options.impls))
    choice = choose(registry, family, options.cells, native_lane(registry))
    pair = open_pair(registry, choice, blind=options.blind)
    print(f"crosslane: {family}: {', '.join(choice.cells)}", file=sys.stderr, flush=True)
    options.export()
    _loop(engine, pair, options, [argv[0], *rest])


def _run_above(family: str, argv: Sequence[str]) -> int:
    """Look at the arguments, and run the target below this process, which keeps what it reports."""
    options, rest = parse_options(argv[1:])
    if options.help:
        print(_HELP.format(name=Path(argv[0]).name), end="")
        return 0
    if host_arch() != "x86_64":
        load_engine()  # which says why there is none
    for word in rest:
        if not word.startswith("-") and not Path(word).exists():
            raise BadInput(f"{word}: there is no such corpus, file or folder; make it, or correct the name")
    prefixes = [word.partition("=")[2] for word in rest if word.startswith("-artifact_prefix=")]
    return run_below(argv, Keeping(family, options, prefixes[-1] if prefixes else ""))


def main(family: str, argv: Sequence[str]) -> int:
    """The same with errors as sentences; returns the exit status."""
    try:
        if REPORTS not in os.environ:
            return _run_above(family, argv)
        run_target(family, argv)
    except CrosslaneError as error:
        print(f"crosslane: {error}", file=sys.stderr)
        return error.exit_status
    return 0
