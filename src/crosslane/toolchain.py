# SPDX-License-Identifier: Apache-2.0
"""Which compiler builds for a lane and which emulator runs it; a missing one names the Debian packages."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from crosslane.errors import MissingTool
from crosslane.isa import host_arch
from crosslane.model import Lane

__all__ = ["Toolchain", "find_qemu", "find_toolchain", "packages_for", "runner_command", "versions"]

_TRIPLETS = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}
_CROSS_PACKAGES = {
    "x86_64": ("gcc-x86-64-linux-gnu", "libc6-dev-amd64-cross"),
    "aarch64": ("gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"),
}
_NATIVE_PACKAGES = ("gcc", "libc6-dev")
_QEMU_PACKAGE = "qemu-user"
_PROBE_LIMIT_S = 20.0


@dataclass(frozen=True)
class Toolchain:
    """A compiler with its binutils and static C library. ``version`` is the compiler's first line of --version.

    ``identity`` is all that decides what it makes of the same sources, without the place where it is installed.
    """

    arch: str
    cc: str
    objcopy: str
    version: str
    identity: str


def _first_line(command: list[str]) -> str:
    """Run a probe and return the first line that it prints, or an empty string where it fails."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_LIMIT_S,
            check=False,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    text = done.stdout.decode(errors="replace").strip()
    return text.splitlines()[0] if done.returncode == 0 and text else ""


def packages_for(arch: str, *, host: str | None = None) -> tuple[str, ...]:
    """Return the Debian packages with which this host (or ``host``) compiles for an architecture."""
    return _NATIVE_PACKAGES if arch == (host or host_arch()) else _CROSS_PACKAGES[arch]


def find_toolchain(arch: str, *, host: str | None = None) -> Toolchain:
    """Return the gcc that builds static programs for ``arch`` on this host (or ``host``).

    Raises ``MissingTool``, with the packages, where compiler, binutils or static C library are not installed.
    """
    prefix = "" if arch == (host or host_arch()) else f"{_TRIPLETS[arch]}-"
    found: dict[str, str] = {}
    for tool in ("gcc", "objcopy"):
        path = shutil.which(f"{prefix}{tool}")
        if path is None:
            raise _missing(f"the program {prefix}{tool}", arch, host)
        found[tool] = path
    version = _first_line([found["gcc"], "--version"])
    if not version:
        raise _missing(f"a working {found['gcc']} (`--version` failed)", arch, host)
    libc = Path(_first_line([found["gcc"], "-print-file-name=libc.a"]))
    if not libc.is_absolute():
        raise _missing("the static C library libc.a", arch, host)
    return Toolchain(
        arch=arch,
        cc=found["gcc"],
        objcopy=found["objcopy"],
        version=version,
        identity=f"{arch} {version}; libc.a of {libc.stat().st_size} bytes",
    )


def _missing(what: str, arch: str, host: str | None) -> MissingTool:
    packages = " ".join(packages_for(arch, host=host))
    return MissingTool(
        f"{what} is not installed, which the {arch} lanes need; install the packages {packages} "
        f"(as root: apt-get install {packages})"
    )


def find_qemu(arch: str) -> str:
    """Return the absolute path of qemu-user for an architecture, dynamic or static.

    Raises ``MissingTool`` with the package where there is none.
    """
    for name in (f"qemu-{arch}", f"qemu-{arch}-static"):
        path = shutil.which(name)
        if path is not None:
            return path
    raise MissingTool(
        f"the program qemu-{arch} is not installed, which the {arch} qemu lanes need; install the package "
        f"{_QEMU_PACKAGE} (as root: apt-get install {_QEMU_PACKAGE})"
    )


def runner_command(lane: Lane) -> tuple[str, ...]:
    """Return what stands before a program on the command line to run it in a lane: nothing, or qemu and its model.

    Raises ``MissingTool``.
    """
    return (find_qemu(lane.arch), "-cpu", lane.cpu) if lane.runner == "qemu" else ()


def versions(lane: Lane) -> dict[str, str]:
    """Return the versions of a lane's tools for results: ``compiler``, and ``qemu`` where it runs there.

    Raises ``MissingTool``.
    """
    found = {"compiler": find_toolchain(lane.arch).version}
    if lane.runner == "qemu":
        found["qemu"] = _first_line([find_qemu(lane.arch), "--version"])
    return found
