# SPDX-License-Identifier: Apache-2.0
"""How subjects are started: the programs that hold them, and the command lines of launcher, runner and program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from crosslane import sandbox
from crosslane.build import ShimProgram, build_instance, build_lanes, build_launcher
from crosslane.errors import BadInput, HarnessFault, MissingTool
from crosslane.execute import Station
from crosslane.isa import FEATURES, NARROW_ARCHES
from crosslane.loading import library_environment, library_runner
from crosslane.model import Implementation, Instance, Lane, Registry
from crosslane.toolchain import runner_command

__all__ = ["Stations", "hide_bits", "memory_limit", "programs_for"]

MEMORY_LIMIT = 4 << 30
NARROW_MEMORY_LIMIT = 9 << 30
CPU_LIMIT_S = 900
_LARGE_BYTES_PER_S = 1 << 20
_ARM_FEATURES_FROM = 32
"""The bit of subject.h with which the AArch64 features begin; those of x86-64 begin with 0."""


def memory_limit(lane: Lane) -> int | None:
    """Address space in bytes that a shim of the lane gets; None for no limit.

    An emulator reserves all 4 GiB that a 32-bit program can see. AddressSanitizer reserves 16 TiB, of which it lets
    little become resident (``sanitizer.c``).
    """
    if lane.sanitizer == "address":
        return None
    return NARROW_MEMORY_LIMIT if lane.arch in NARROW_ARCHES else MEMORY_LIMIT


def programs_for(
    registry: Registry, lanes: Sequence[Lane], progress: Callable[[str], None] | None = None
) -> dict[tuple[str, str], Path]:
    """Build all that the lanes need; maps (lane, driver) to the shim program that holds the implementation."""
    built: dict[str, tuple[ShimProgram, ...]] = build_lanes(registry, lanes, progress=progress)
    return {
        (lane, implementation.driver): program.path
        for lane, programs in built.items()
        for program in programs
        for implementation in program.implementations
    }


def hide_bits(arch: str, hidden: Iterable[str]) -> int:
    """Hidden features as the bits of subject.h, which has them in the order of ``isa.FEATURES``."""
    names, base = FEATURES.get(arch, ()), _ARM_FEATURES_FROM if arch == "aarch64" else 0
    return sum(1 << (base + names.index(name)) for name in hidden)


class Stations:
    """Makes stations of implementations and providers in lanes, built on the way."""

    def __init__(
        self, registry: Registry, programs: Mapping[tuple[str, str], Path], *, require_sandbox: bool, large_len: int = 0
    ) -> None:
        """Build the launcher and ask what the host grants; with ``require_sandbox`` raises HarnessFault for less.

        ``large_len`` are the bytes of the longest message, for which the limits leave room.
        """
        self._large_len = large_len
        self._registry = registry
        self._programs = programs
        self.launcher = build_launcher(registry.root)
        self._libraries: dict[tuple[str, str], Path | BadInput | MissingTool] = {}
        self._require = require_sandbox
        self.missing = sandbox.probe(self.launcher).missing
        if require_sandbox and self.missing:
            raise HarnessFault(
                f"this host refuses the sandbox layers {', '.join(self.missing)} and --require-sandbox was given: "
                "run on a host that grants them, or without the option"
            )

    def of(self, implementation: Implementation, lane: Lane, mode: str) -> Station:
        """The station of an implementation in a lane for a mode."""
        program = self._programs[lane.name, implementation.driver]
        command = self._command(lane, program)
        return Station(command, implementation.symbol, mode, implementation.cipher, hide_bits(lane.arch, lane.hides))

    def of_program(self, program: Path, lane: Lane, subject: Station) -> Station:
        """``subject`` (its command aside) as it is found in a program of a lane."""
        return replace(subject, command=self._command(lane, program), hide=hide_bits(lane.arch, lane.hides))

    def of_instance(self, instance: Instance, mode: str, cipher: str) -> Station:
        """The station of a library; raises MissingTool where it is not installed, BadInput where it does not link."""
        key = instance.name, instance.lane.name
        if key not in self._libraries:
            try:
                self._libraries[key] = build_instance(self._registry, instance)
            except (BadInput, MissingTool) as problem:
                self._libraries[key] = problem
        program = self._libraries[key]
        if not isinstance(program, Path):
            raise program
        runner, reads = library_runner(instance)
        command = self._contained(instance.lane, [*runner, str(program)], [program, *reads])
        return Station(command, instance.provider.name, mode, cipher, environment=library_environment(instance))

    def _command(self, lane: Lane, program: Path) -> tuple[str, ...]:
        runner = runner_command(lane)
        reads = [program, *(sandbox.system_read_paths() if runner or lane.sanitized else ())]
        reads += sandbox.sanitizer_read_paths() if lane.sanitized else ()
        return self._contained(lane, [*runner, str(program)], reads)

    def _contained(self, lane: Lane, command: Sequence[str], reads: Sequence[Path]) -> tuple[str, ...]:
        limit = memory_limit(lane)
        return tuple(
            sandbox.launcher_argv(
                self.launcher,
                command,
                memory_limit=None if limit is None else limit + self._large_len,
                cpu_limit_s=CPU_LIMIT_S + self._large_len // _LARGE_BYTES_PER_S,
                read_paths=reads,
                require=self._require,
            )
        )
