# SPDX-License-Identifier: Apache-2.0
"""Runs qemu-img, cryptsetup, mkfs.ext4 and dumpe2fs, and turns what they say into one sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosslane.errors import BadInput, HarnessFault, MissingTool

__all__ = ["PACKAGES", "Said", "needed", "run_tool", "told", "version_of_tool"]

PACKAGES = {
    "qemu-img": "qemu-utils",
    "cryptsetup": "cryptsetup-bin",
    "mkfs.ext4": "e2fsprogs",
    "dumpe2fs": "e2fsprogs",
}
_TIMEOUT_S = 120
_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
"""Where mkfs and cryptsetup lie, which the PATH of users often lacks."""
_VERSION = {"qemu-img": "--version", "cryptsetup": "--version", "mkfs.ext4": "-V"}


@dataclass(frozen=True)
class Said:
    """How a tool ended, and what it said to whom."""

    status: int
    out: str
    error: str

    @property
    def last(self) -> str:
        """The last line of its complaint, as it can stand in a sentence."""
        lines = [line.strip() for line in self.error.splitlines() if line.strip()]
        return "".join(c for c in lines[-1] if c.isprintable())[:200].rstrip(".") if lines else f"status {self.status}"


def needed(name: str) -> str:
    """The path of a tool; raises MissingTool with its package."""
    path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), _PATH]))
    if path is None:
        package = PACKAGES[name]
        raise MissingTool(
            f"{name} is not installed: install the package {package} (as root: apt-get install "
            f"--no-install-recommends {package})"
        )
    return path


def run_tool(name: str, arguments: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Said:
    """Run a tool without a shell; raises MissingTool, and HarnessFault where it does not come back."""
    clean = {"LC_ALL": "C", "PATH": _PATH, **(environment or {})}
    command = [needed(name), *arguments]
    try:
        done = subprocess.run(
            command, env=clean, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise HarnessFault(
            f"{name} does not come back in {_TIMEOUT_S} s: run again on a machine with less load"
        ) from None
    return Said(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def told(name: str, said: Said, doing: str) -> BadInput:
    """The sentence for a tool that refused."""
    if "No space left" in said.error:
        return BadInput(f"{name} has no space left for {doing}: free some, or set XDG_CACHE_HOME to another folder")
    return BadInput(f"{name} refuses {doing} ({said.last}): correct what it names")


def version_of_tool(name: str) -> str:
    """The first line of what a tool says of its version."""
    said = run_tool(name, [_VERSION[name]])
    return (said.out + said.error).splitlines()[0] if said.out or said.error else ""
