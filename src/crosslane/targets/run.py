# SPDX-License-Identifier: Apache-2.0
"""A target as a program: from its arguments to the engine's loop."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter
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
from crosslane.targets.native import GONE, Pair, Seen
from crosslane.targets.options import Options, parse_options
from crosslane.targets.programs import build_emulated, build_host_side, build_in_process
from crosslane.targets.rows import Choice, choose

__all__ = ["main", "open_pair", "run_target"]

_MOST_A_FACE = 3
_MOST_KEPT = 16
_KEEP_TIMEOUT_S = 900.0
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
    """Puts departures into the store, each kind once: a process of its own runs the case as `check` does."""

    def __init__(self, pair: Pair, options: Options, prefix: str) -> None:
        self._pair = pair
        self._options = options
        self._prefix = prefix
        self._sightings: Counter[tuple[object, ...]] = Counter()
        self._faces: Counter[tuple[object, ...]] = Counter()
        self._num_kept = 0

    def departed(self, data: bytes) -> None:
        seen = self._pair.seen()
        self._sightings[seen.key] += 1
        self._faces[seen.face] += self._sightings[seen.key] == 1
        if seen.what == GONE:
            self._pair.again()
        if self._sightings[seen.key] > 1 or self._faces[seen.face] > _MOST_A_FACE or self._num_kept == _MOST_KEPT:
            return
        self._num_kept += 1
        self._keep(data, seen)

    def _keep(self, data: bytes, seen: Seen) -> None:
        file = Path(f"{self._prefix}departure-{hashlib.sha1(data, usedforsecurity=False).hexdigest()}")
        try:
            file.write_bytes(data)
        except OSError as error:
            print(
                f"crosslane: {file} cannot be written ({error.strerror}): name another -artifact_prefix",
                file=sys.stderr,
            )
            return
        number = self._pair.num_executions
        print(f"crosslane: execution {number}: {seen.text}; the input is {file}", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "crosslane", "targets", "keep", self._pair.choice.family, str(file)]
        for cell in self._options.cells:
            command += ["--cell", cell]
        for folder in self._options.impls:
            command += ["--impls", folder]
        command += ["--findings", self._options.findings]
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=_KEEP_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"crosslane: {file} could not be put among the findings ({error})", file=sys.stderr, flush=True)


def _loop(engine: Engine, pair: Pair, options: Options, argv: Sequence[str]) -> None:
    prefixes = [word.partition("=")[2] for word in argv if word.startswith("-artifact_prefix=")]
    recorder = _Recorder(pair, options, prefixes[-1] if prefixes else "")
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
    """Run the target of a family; comes back only where there is nothing to run. Raises CrosslaneError."""
    options, rest = parse_options(argv[1:])
    if options.help:
        print(_HELP.format(name=Path(argv[0]).name), end="")
        return
    if host_arch() != "x86_64":
        load_engine()  # which says why there is none
    for word in rest:
        if not word.startswith("-") and not Path(word).exists():
            raise BadInput(f"{word}: there is no such corpus, file or folder; make it, or correct the name")
    engine = load_engine()
    registry = load_registry(data_root(), tuple(Path(folder) for folder in options.impls))
    choice = choose(registry, family, options.cells, native_lane(registry))
    pair = open_pair(registry, choice, blind=options.blind)
    print(f"crosslane: {family}: {', '.join(choice.cells)}", file=sys.stderr, flush=True)
    options.export()
    _loop(engine, pair, options, [argv[0], *rest])


def main(family: str, argv: Sequence[str]) -> int:
    """The same with errors as sentences; returns the exit status."""
    try:
        run_target(family, argv)
    except CrosslaneError as error:
        print(f"crosslane: {error}", file=sys.stderr)
        return error.exit_status
    return 0
