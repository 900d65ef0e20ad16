# SPDX-License-Identifier: Apache-2.0
"""LLVM's disassembler and its simulator of cores (llvm-mca), for straight-line code."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from crosslane.errors import BadInput, HarnessFault, MissingTool

__all__ = ["DEFAULT_CORES", "OLDEST_LLVM", "Llvm", "disassemble", "find_llvm", "require_core", "simulate"]

OLDEST_LLVM: Final = 19
"""The first version that knows the Neoverse N2 itself; older ones take the name and simulate another core."""
DEFAULT_CORES: Final = MappingProxyType({"x86_64": "znver3", "aarch64": "neoverse-n2"})
"""The core that is simulated for an architecture, by LLVM's name."""

_NEWEST_TRIED = 40
_ATTRIBUTES: Final = MappingProxyType(
    {"x86_64": "+aes,+pclmul,+avx2,+bmi2,+vaes,+vpclmulqdq,+gfni", "aarch64": "+aes,+sha2,+sha3,+sm4"}
)
_LINE = re.compile(r"\s*([0-9a-f]+):\s+(\S.*)")
_CYCLES = re.compile(r"^Total Cycles:\s+(\d+)$", re.MULTILINE)
_PLACE = re.compile(r"0x[0-9a-f]+ <[^>]*>")
_COMMENT = re.compile(r"\s+(#|//) .*")
# A call would be simulated as if it took a hundred cycles, and a return would end the code.
_JUMPS = (
    (re.compile(r"^callq?\s+"), "jmp\t"),
    (re.compile(r"^bl\s+"), "b\t"),
    (re.compile(r"^blr\s+"), "br\t"),
    (re.compile(r"^ret\s*$"), "br\tx30"),
)
# What the bench program's marks are, which no core model has.
_LEFT_OUT = re.compile(r"^(svc|syscall|retq|endbr64)\b")


@dataclass(frozen=True)
class Llvm:
    """The two programs, of one version."""

    objdump: str
    mca: str
    version: str


def _version(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"LLVM version (\d+[\d.]*)", done.stdout)
    return match[1] if match else "0"


@cache
def find_llvm() -> Llvm:
    """Return the newest of the system's; raises ``MissingTool``, with the package, where none is new enough."""
    for suffix in (*(f"-{number}" for number in range(_NEWEST_TRIED, OLDEST_LLVM - 1, -1)), ""):
        objdump, mca = shutil.which(f"llvm-objdump{suffix}"), shutil.which(f"llvm-mca{suffix}")
        if objdump is not None and mca is not None:
            version = _version(mca)
            if int(version.partition(".")[0]) >= OLDEST_LLVM:
                return Llvm(objdump, mca, version)
    package = f"llvm-{OLDEST_LLVM}"
    raise MissingTool(
        f"llvm-mca of LLVM {OLDEST_LLVM} or newer is not installed, which simulates a core; install the package "
        f"{package} (as root: apt-get install {package})"
    )


def disassemble(llvm: Llvm, program: Path, arch: str) -> dict[int, str]:
    """Return the instruction at each address of a program that is not relocated, as text that ``simulate`` takes.

    Empty text stands for an instruction that is left out; all places in the program are one label.
    """
    # x86's disassembler knows all instructions without being told.
    attributes = ["--mattr=+all"] if arch == "aarch64" else []
    command = [llvm.objdump, "-d", "--no-show-raw-insn", "--no-leading-headers", *attributes]
    done = subprocess.run([*command, str(program)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HarnessFault(f"{Path(llvm.objdump).name} failed: {done.stderr.strip()}; reinstall the package")
    found = {}
    for line in done.stdout.splitlines():
        match = _LINE.fullmatch(line)
        if match is not None:
            found[int(match[1], 16)] = _straight(match[2])
    return found


def _straight(text: str) -> str:
    text = _PLACE.sub(".Lplace", _COMMENT.sub("", text.strip()))
    for pattern, jump in _JUMPS:
        text = pattern.sub(jump, text)
    return "" if _LEFT_OUT.match(text) else text


def _mca(llvm: Llvm, arch: str, core: str) -> list[str]:
    options = ["-iterations=1", "-instruction-info=0", "-resource-pressure=0"]
    return [llvm.mca, f"-mtriple={arch}-linux-gnu", f"-mcpu={core}", f"-mattr={_ATTRIBUTES[arch]}", *options]


@cache
def _known_cores(llvm: Llvm, arch: str) -> frozenset[str]:
    command = [llvm.mca, f"-mtriple={arch}-linux-gnu", "-mcpu=help", "-"]
    done = subprocess.run(command, input="nop\n", capture_output=True, text=True, check=False)
    text = (done.stdout + done.stderr).partition("Available features")[0]
    return frozenset(re.findall(r"^\s+(\S+)\s+- Select", text, re.MULTILINE))


def require_core(llvm: Llvm, arch: str, core: str) -> None:
    """Raise ``BadInput`` for a core that LLVM does not know."""
    if core not in _known_cores(llvm, arch):
        raise BadInput(
            f"--core {core} is no {arch} core of LLVM {llvm.version}; `llvm-mca -mtriple={arch} -mcpu=help` lists all"
        )


def simulate(llvm: Llvm, arch: str, core: str, code: Iterable[str]) -> tuple[int, str]:
    """Return the cycles in which a core runs instructions once, caches warm and branches foreseen; or why it cannot.

    This is the simulated figure, with the latencies of what depends on each other, not the block throughput.
    """
    text = "\n".join(["\t.text", ".Lplace:", *code, ""])
    done = subprocess.run([*_mca(llvm, arch, core), "-"], input=text, capture_output=True, text=True, check=False)
    cycles = _CYCLES.search(done.stdout)
    if done.returncode == 0 and cycles is not None:
        return int(cycles[1]), ""
    match = re.search(r"error: (.*)\n\s*(.*)", done.stderr)
    why = f"{match[1]} ({' '.join(match[2].split())})" if match else "it gave no number of cycles"
    return 0, f"llvm-mca does not simulate {core}: {why}"
