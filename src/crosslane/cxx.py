# SPDX-License-Identifier: Apache-2.0
"""C++ for adapters alone: the compiler beside the C compiler, and its flags, for libraries without a C interface."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from crosslane.errors import MissingTool
from crosslane.toolchain import Toolchain

__all__ = ["CXX_STANDARD", "CXX_SUFFIX", "cxx_flags", "with_cxx"]

CXX_SUFFIX = ".cc"
CXX_STANDARD = "-std=c++20"  # designated initialisers, and what Botan 3 asks for
_FOR_C_ALONE = ("-std=c11", "-Wmissing-prototypes", "-Wstrict-prototypes")
# A session's table names the members that an adapter has, as in C; what it leaves out is 0.
_WARNINGS = ("-Wno-missing-field-initializers",)
_PROBE_LIMIT_S = 20.0


def cxx_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """The flags of a C source as they are for one in C++."""
    return (CXX_STANDARD, *(flag for flag in flags if flag not in _FOR_C_ALONE), *_WARNINGS)


def with_cxx(toolchain: Toolchain, name: str) -> Toolchain:
    """Return the toolchain with the C++ compiler that belongs to its C compiler, for the adapter of a provider.

    Raises ``MissingTool`` with the package where it is not installed.
    """
    cc = Path(toolchain.cc).name
    cxx = f"{cc}++" if cc.startswith("clang") else f"{cc.removesuffix('gcc')}g++"
    path = shutil.which(cxx)
    version = _printed([path, "--version"]).partition("\n")[0] if path else ""
    if path is None or not version:
        package = _package(cc)
        raise MissingTool(
            f"the program {cxx} is not installed, which the provider {name} needs: its adapter is in C++; install the "
            f"packages {package} (as root: apt-get install {package}), or leave it out with --without {name}"
        )
    # Where the toolchain brings all folders of headers itself, as those of a sysroot, those of C++ stand before them.
    # The C++ library that it runs with may be a newer one than the compiler's, of which the library needs more.
    sysroot = "-nostdinc" in toolchain.flags
    folders = _header_folders(path) if sysroot else ()
    flags = [word for folder in folders for word in ("-isystem", folder)]
    flags += ["-Wl,--allow-shlib-undefined"] if sysroot else []
    return replace(toolchain, cxx=path, cxx_flags=tuple(flags), identity=f"{toolchain.identity}; {version}")


def _package(cc: str) -> str:
    """Debian's package of the C++ compiler that belongs to a C compiler: gcc, aarch64-linux-gnu-gcc or clang."""
    if cc.startswith("clang"):
        return "clang g++"
    return "g++" if cc == "gcc" else f"g++-{cc.removesuffix('-gcc').replace('_', '-')}"


def _header_folders(cxx: str) -> tuple[str, ...]:
    """The compiler's own folders of C++ headers, in its order."""
    words = _printed([cxx, "-E", "-v", "-x", "c++", "/dev/null"], complaints=True)
    folders = [line.strip() for line in words.splitlines() if line.startswith(" /") and "/c++/" in line]
    return tuple(str(Path(folder).resolve()) for folder in folders if Path(folder).is_dir())


def _printed(command: list[str], *, complaints: bool = False) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_LIMIT_S, check=False
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stderr if complaints else done.stdout).decode(errors="replace") if done.returncode == 0 else ""
