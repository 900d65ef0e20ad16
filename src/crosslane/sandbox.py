# SPDX-License-Identifier: Apache-2.0
"""Containment of code under test: the arguments of ``impls/shim/launcher.c`` and what the host grants of it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslane.errors import BadInput, HarnessFault

__all__ = ["OPEN_FILES", "SandboxState", "launcher_argv", "probe", "sanitizer_read_paths", "system_read_paths"]

OPEN_FILES = 64
"""File descriptors a contained process may hold: the protocol's, the batches' memory, and what qemu-user opens."""

_PROBE_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class SandboxState:
    """What the host grants: ``landlock`` is the interface number, 0 where there is none."""

    seccomp: bool
    landlock: int
    no_new_privs: bool

    @property
    def missing(self) -> tuple[str, ...]:
        """The layers that the host refuses, as the launcher names them."""
        layers = {"seccomp": self.seccomp, "landlock": self.landlock > 0, "no_new_privs": self.no_new_privs}
        return tuple(name for name, held in layers.items() if not held)


def system_read_paths() -> tuple[Path, ...]:
    """Where this host keeps the shared libraries that a dynamically linked qemu-user or shim needs."""
    candidates = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
    return tuple(path for path in map(Path, candidates) if path.exists())


def sanitizer_read_paths() -> tuple[Path, ...]:
    """What a sanitizer's library reads of its own process: its mappings at the start, its memory use later."""
    return (Path("/proc/self/maps"), Path("/proc/self/statm"))


def launcher_argv(
    launcher: Path,
    program: Sequence[str],
    *,
    memory_limit: int | None,
    cpu_limit_s: int,
    read_paths: Sequence[Path],
    require: bool,
) -> list[str]:
    """Return the command that runs ``program`` contained.

    ``memory_limit`` is address space in bytes (qemu-user needs 512 MiB), or None where a sanitizer that reserves more
    than any limit counts its memory itself; ``cpu_limit_s`` is CPU seconds over the whole life of the process.
    ``read_paths`` are the files and folders that the program may read and execute, its own file aside; nothing can be
    written. With ``require`` a layer that the host refuses ends the launcher with status 125.

    Raises `BadInput` for an empty program, a limit below 1, or a path that does not exist.
    """
    if not program:
        raise BadInput("the launcher needs a program to start: give a path and its arguments")
    for name, value in (("memory_limit", memory_limit), ("cpu_limit_s", cpu_limit_s)):
        if value is not None and value < 1:
            raise BadInput(f"{name} is {value}, but a contained process needs at least 1: give a positive number")
    argv = [str(launcher), "--limit-cpu", str(cpu_limit_s), "--limit-nofile", str(OPEN_FILES)]
    if memory_limit is not None:
        argv += ["--limit-as", str(memory_limit)]
    for path in dict.fromkeys((Path(program[0]), *read_paths)):
        if not path.exists():
            raise BadInput(
                f"{path} does not exist, but a contained process is to read it: build it or correct the path"
            )
        argv += ["--landlock-read", str(path)]
    if require:
        argv.append("--require")
    return [*argv, "--", *program]


def probe(launcher: Path) -> SandboxState:
    """Ask the launcher which layers this host grants, by letting it apply all of them to itself.

    Raises `HarnessFault` if the launcher cannot be started or answers anything but its three lines.
    """
    command = [str(launcher), "--probe"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessFault(f"{launcher} --probe could not run ({error}): run `crosslane build` again") from error
    facts = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    if done.returncode != 0 or set(facts) != {"seccomp", "landlock", "no_new_privs"}:
        raise HarnessFault(
            f"{launcher} --probe ended with status {done.returncode} and said {done.stdout + done.stderr!r}, "
            "but the layers seccomp, landlock and no_new_privs were asked for: run `crosslane build` again"
        )
    interface = facts["landlock"]
    return SandboxState(
        seccomp=facts["seccomp"] == "yes",
        landlock=int(interface) if interface.isdecimal() else 0,
        no_new_privs=facts["no_new_privs"] == "yes",
    )
