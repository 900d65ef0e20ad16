# SPDX-License-Identifier: Apache-2.0
"""atheris on code that is not Python: which of its libraries are loaded in which order, and its engine's own flags.

Instrumented code needs the engine's symbols when it is loaded, and atheris loads its engine too late and for itself.
So one that comes with it is loaded first, for all to see; and before that the libraries by which it finds a
mutator: it looks for them once, and without them ignores a mutator without a word.
"""

from __future__ import annotations

import ctypes
import importlib
import platform
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from crosslane.errors import HarnessFault, MissingTool

__all__ = ["Engine", "load_engine"]

Mutate = Callable[[bytes, int, int], bytes]
CrossOver = Callable[[bytes, bytes, int, int], bytes]


def _atheris() -> ModuleType:
    try:
        return importlib.import_module("atheris")
    except ImportError:
        if platform.machine().lower() in ("aarch64", "arm64"):
            raise MissingTool(
                "atheris has no wheel for AArch64, so that no target runs on this host: run it on x86-64, where a cell "
                "such as 'ctr(sm4)/sm4-ce@aarch64_qemu_max' runs under the emulator"
            ) from None
        raise MissingTool(
            "atheris is not installed, which fuzz targets need: install the extra fuzz (pip install '.[fuzz]' in a "
            "clone of crosslane)"
        ) from None


def _global(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise HarnessFault(
            f"{path}: atheris's own library cannot be loaded ({error}): install the extra fuzz again"
        ) from None


class Engine:
    """atheris with its engine loaded for instrumented code. One for a process."""

    def __init__(self, atheris: ModuleType, library: ctypes.CDLL) -> None:
        """``library`` is the engine."""
        self._atheris = atheris
        self._library = library
        self._kept: list[object] = []

    def count(self, address: int, number: int) -> None:
        """Let the engine read ``number`` counters of one byte at an address; it clears them before each input.

        It wants a place in the code for each counter, of which it prints nothing unless it is asked: their addresses.
        """
        if not number:
            return
        places = (ctypes.c_uint64 * (2 * number))()
        places[::2] = list(range(address, address + number))
        self._kept.append(places)
        start = ctypes.addressof(places)
        self._call("__sanitizer_cov_8bit_counters_init", address, address + number)
        self._call("__sanitizer_cov_pcs_init", start, start + ctypes.sizeof(places))

    def _call(self, name: str, start: int, stop: int) -> None:
        self._library[name](ctypes.c_void_p(start), ctypes.c_void_p(stop))

    def mutate(self, data: bytes, max_size: int) -> bytes:
        """A mutation of the engine's own, which knows what the code under test compares."""
        made: bytes = self._atheris.Mutate(data, max_size)
        return made

    def run(self, argv: Sequence[str], one: Callable[[bytes], None], mutate: Mutate, cross_over: CrossOver) -> None:
        """Fuzz. Does not come back: the engine ends the process.

        ``argv`` begins with the script. The engine starts itself again for -merge, -jobs and -fork through a shell.
        """
        script = shlex.join([sys.executable, str(Path(argv[0]).resolve())])
        sys.argv[0] = script
        self._atheris.Setup([script, *argv[1:]], one, custom_mutator=mutate, custom_crossover=cross_over)
        self._atheris.Fuzz()


def load_engine() -> Engine:
    """Load atheris and its engine; raises MissingTool without it, HarnessFault where a part of it is not there."""
    atheris = _atheris()
    folder = Path(str(atheris.__file__)).parent
    for kind in ("custom_mutator", "custom_crossover"):
        found = sorted(folder.glob(f"{kind}*.so"))
        if not found:
            raise HarnessFault(
                f"{folder}: atheris holds no {kind}; install the extra fuzz again (atheris 3.0 or newer)"
            )
        _global(found[0])
    return Engine(atheris, _global(folder.parent / "ubsan_with_fuzzer.so"))
