# SPDX-License-Identifier: Apache-2.0
"""How a library comes into the process that judges it: the loader, the folders it may read, the environment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crosslane.isa import host_arch
from crosslane.model import Instance
from crosslane.sandbox import system_read_paths
from crosslane.toolchain import library_folder, runner_command

__all__ = ["library_environment", "library_runner"]

_LOADERS = {"x86_64": "lib64/ld-linux-x86-64.so.2", "aarch64": "lib/ld-linux-aarch64.so.1"}


def library_runner(instance: Instance) -> tuple[tuple[str, ...], Sequence[Path]]:
    """What stands before the adapter's program on its command line, and what the process may read beside the program.

    A library that is not the system's is found by the loader's own option, or by the emulator's prefix. A sysroot's
    comes with its own C library and loader, so that nothing of the host's is read where no emulator needs it.
    """
    runner, folder = runner_command(instance.lane), library_folder(instance)
    if folder is None:
        return runner, system_read_paths()
    if instance.sysroot is None:
        return (str(Path("/") / _LOADERS[host_arch()]), "--library-path", str(folder)), [folder, *system_read_paths()]
    root = instance.sysroot.root
    if runner:
        return (*runner, "-L", str(root)), [folder, *system_read_paths()]
    loader = (root / _LOADERS[instance.sysroot.arch]).resolve()
    return (str(loader), "--inhibit-cache", "--library-path", str(folder)), [folder]


def library_environment(instance: Instance) -> tuple[tuple[str, str], ...]:
    """All variables of a library's processes: the provider's, the backend's switch, and where its own modules are."""
    folder, provider = library_folder(instance), instance.provider
    given = [*provider.environment, *(instance.backend.environment if instance.backend else ())]
    variables = {name: value for name, _, value in (text.partition("=") for text in given)}
    if folder is not None and provider.modules_variable:
        for name in provider.modules_folders:
            if (folder / name).is_dir():
                variables.setdefault(provider.modules_variable, str(folder / name))
    return tuple(sorted(variables.items()))
