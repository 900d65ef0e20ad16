# SPDX-License-Identifier: Apache-2.0
"""Architectures, the CPU features that an implementation may ask for, and the compiler flags that follow."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

__all__ = [
    "ALL_ARCHES",
    "ARCHES",
    "BIG_ENDIAN_ARCHES",
    "FEATURES",
    "FLOORS",
    "NARROW_ARCHES",
    "PORTABLE_ARCHES",
    "feature_flags",
    "host_arch",
]

_X86_FLAGS: Final = MappingProxyType(
    {
        "ssse3": "-mssse3",
        "sse4_1": "-msse4.1",
        "aes": "-maes",
        "pclmul": "-mpclmul",
        "avx": "-mavx",
        "avx2": "-mavx2",
        "vaes": "-mvaes",
        "vpclmul": "-mvpclmulqdq",
        "gfni": "-mgfni",
        "bmi2": "-mbmi2",
    }
)
# GCC's arm_neon.h asks for armv8.2-a before it offers sm4 and sha3, and for all of +crypto before it offers AES and the
# 64-bit PMULL; NEON is in the base.
_ARM_EXTENSIONS: Final = MappingProxyType(
    {"neon": "", "aes": "+crypto", "pmull": "+crypto", "sm4": "+sm4", "sha3": "+sha3"}
)
_ARM_V82: Final = frozenset({"sm4", "sha3"})

# What Debian gives each architecture at least, spelt out: other distributions give their compilers later models.
_PORTABLE_BASELINES: Final = MappingProxyType(
    {
        "s390x": ("-march=z196",),
        "ppc64": ("-mcpu=power4", "-mabi=elfv1"),
        "i386": ("-march=i686", "-mtune=generic"),
        "armhf": ("-march=armv7-a+fp", "-mfloat-abi=hard", "-mthumb"),
        "riscv64": ("-march=rv64gc", "-mabi=lp64d"),
    }
)

ARCHES: Final = ("x86_64", "aarch64")
"""Architectures with implementations of their own; the suite runs on hosts of these."""
PORTABLE_ARCHES: Final = tuple(_PORTABLE_BASELINES)
"""Architectures on which portable code alone runs, for their byte order and word size."""
ALL_ARCHES: Final = (*ARCHES, *PORTABLE_ARCHES)
BIG_ENDIAN_ARCHES: Final = ("s390x", "ppc64")
"""Architectures that store the most significant byte first."""
NARROW_ARCHES: Final = ("i386", "armhf")
"""Architectures with 32-bit addresses."""
FEATURES: Final = MappingProxyType({"any": (), "x86_64": tuple(_X86_FLAGS), "aarch64": tuple(_ARM_EXTENSIONS)})
FLOORS: Final = MappingProxyType({"x86_64": ("x86-64-v2", "x86-64-v3")})
"""Instruction sets above an architecture's first that a lane may let portable code use."""


def feature_flags(arch: str, features: Sequence[str], floor: str = "") -> tuple[str, ...]:
    """Return the compiler flags for code of ``arch`` that needs ``features``; the baseline is pinned, not inherited.

    ``floor`` is one of ``FLOORS``, or empty for the architecture's first instruction set.
    """
    if arch in _PORTABLE_BASELINES:
        return _PORTABLE_BASELINES[arch]
    if arch == "x86_64":
        base = floor or "x86-64"
        return (f"-march={base}", "-mtune=generic", *(flag for name, flag in _X86_FLAGS.items() if name in features))
    base = "armv8.2-a" if _ARM_V82.intersection(features) else "armv8-a"
    extensions = dict.fromkeys(text for name, text in _ARM_EXTENSIONS.items() if name in features)
    return (f"-march={base}{''.join(extensions)}",)


def host_arch() -> str:
    """Return this machine's architecture in the spelling of lanes (``x86_64``, ``aarch64``, else the kernel's)."""
    machine = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
