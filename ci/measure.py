# SPDX-License-Identifier: Apache-2.0
"""Prints every figure that the implementations are held to, each with its command, in one go.

    python3 ci/measure.py [--list] [NAME]...

NAME picks parts; ``--list`` prints the commands instead of running them. Runs `crosslane` of ``.venv``, or of the
interpreter's environment where the checkout has none. Times mean something on a quiet machine alone. The status is the
highest of the parts.
"""

from __future__ import annotations

import platform
import shlex
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["main", "parts"]

_ROOT = Path(__file__).resolve().parents[1]
_ARM = "@aarch64_qemu_max"
_ONE = "--size 8192 --max-noise 5 --marks"


def parts(machine: str) -> dict[str, str]:
    """The parts that a machine of this architecture can measure, each with the arguments of `crosslane bench`."""
    found = _everywhere(f"@{machine}_native")
    return found | _x86_64_only(f"@{machine}_native") if machine == "x86_64" else found


def _everywhere(native: str) -> dict[str, str]:
    return {
        # Tables in the layouts in which they were published.
        "published": "published --max-noise 5",
        # Cycles a byte beside the best existing code; all implementations of a cipher in turns.
        "cast5": f"--cell '*(cast5)/*{native}' --key-len 16 {_ONE}",
        "serpent": f"--cell '*(serpent)/*{native}' --key-len 32 {_ONE}",
        "twofish": f"--cell '*(twofish)/*{native}' --key-len 16 --key-len 32 {_ONE}",
        "des3_ede": f"--cell '*(des3_ede)/*{native}' {_ONE}",
        "sm4": f"--cell '*(sm4)/*{native}' {_ONE}",
        "aes": f"--cell '*(aes)/*{native}' --key-len 16 {_ONE}",
        # The system's libraries in one process with ours.
        "peers": f"peers --hardware --max-noise 5 --cell '*(*)/*{native}'",
        # Instructions below 64 bytes against the fall-back.
        "small": "small",
        # AArch64: instructions a byte, fused against composed, and the simulated core.
        "counts": f"--cell '*(sm4)/sm4-*{_ARM}' --cell '*(serpent)/serpent-neon{_ARM}' --cell '*(twofish)/*{_ARM}' "
        f"--cell '*(cast5)/*{_ARM}' "
        "--key-len 16 --size 4096 --marks",
        "counts-des3": f"--cell '*(des3_ede)/*{_ARM}' --size 4096",
        "counts-aes": f"--cell '*(aes)/aes-*{_ARM}' --key-len 16 --size 16 --size 64 --size 4096 --marks",
        "gains": f"--cell 'cmac(sm4)/sm4-ce*{_ARM}' --cell 'xts(sm4)/sm4-ce*{_ARM}' --composed --size 16 --size 64 "
        "--size 256 --marks",
        "model": f"--model --cell '*(sm4)/sm4-ce{_ARM}' --marks",
        "model-aes": f"--model --size 1024 --cell '*(aes)/aes-ce{_ARM}' --cell 'ctr(aes)/aes-neon{_ARM}' --key-len 16",
    }


def _x86_64_only(native: str) -> dict[str, str]:
    return {
        # Ratios to implementations of this architecture.
        "des3_ede-vs": f"--cell '*(des3_ede)/*{native}' --size 256 --size 8192 --max-noise 5 --vs des3_ede-x86_64",
        "serpent-vs": f"--cell '*(serpent)/*{native}' --key-len 32 --size 8192 --max-noise 5 --vs serpent-sse2-x86_64",
        # The same simulation where times can be measured too, by the parts that are called by ciphers.
        "model-x86": f"--model --core znver4 --size 1024 --key-len 16 --cell 'ecb(aes)/aes-aesni{native}' "
        f"--cell 'cbc(aes)/aes-aesni{native}' --cell 'ctr(aes)/aes-vaes-avx2{native}' "
        f"--cell 'xts(aes)/aes-vaes-avx2{native}' --cell 'ctr(serpent)/*{native}' --cell 'ctr(sm4)/*{native}' "
        f"--cell 'ctr(cast5)/*{native}' --cell 'ctr(twofish)/*{native}'",
    }


def main(arguments: list[str]) -> int:
    """Run or list the parts that are named, by default all; returns the highest of their statuses."""
    known = parts(platform.machine())
    listed = "--list" in arguments
    names = [argument for argument in arguments if argument != "--list"] or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"measure: no part is called {unknown[0]}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    ours = _ROOT / ".venv" / "bin" / "crosslane"
    crosslane = [str(ours)] if ours.exists() else [sys.executable, "-m", "crosslane"]
    status, started = 0, time.monotonic()
    for name in names:
        print(f"$ crosslane bench {known[name]}", flush=True)
        if not listed:
            begun = time.monotonic()
            done = subprocess.run([*crosslane, "bench", *shlex.split(known[name])], check=False)
            status = max(status, done.returncode)
            print(f"{name}: status {done.returncode}, {time.monotonic() - begun:.0f} s\n", flush=True)
    if not listed:
        print(f"measure: {len(names)} parts in {time.monotonic() - started:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
