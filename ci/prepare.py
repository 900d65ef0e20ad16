# SPDX-License-Identifier: Apache-2.0
"""Makes a machine ready for the suite: system packages, then a virtual environment in ``.venv`` of the checkout.

Runs on a bare ``python3`` with nothing but the standard library. Idempotent: what is there is left alone.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

__all__ = [
    "KNOWN_SYSTEMS",
    "ROOT",
    "Machine",
    "Need",
    "SetupFailed",
    "describe_machine",
    "environment_key",
    "install_commands",
    "missing_packages",
    "needs",
    "prepare",
    "say",
    "tool",
]

ROOT = Path(__file__).resolve().parents[1]
OLDEST_PYTHON = (3, 11)
CROSS_PACKAGES = {
    "x86_64": ("aarch64", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"),
    "aarch64": ("x86_64", "gcc-x86-64-linux-gnu", "libc6-dev-amd64-cross"),
}
PORTABLE_PACKAGES = (
    ("s390x", "s390x-linux-gnu-gcc", "gcc-s390x-linux-gnu", "libc6-dev-s390x-cross"),
    ("ppc64", "powerpc64-linux-gnu-gcc", "gcc-powerpc64-linux-gnu", "libc6-dev-ppc64-cross"),
    ("i386", "i686-linux-gnu-gcc", "gcc-i686-linux-gnu", "libc6-dev-i386-cross"),
    ("armhf", "arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf", "libc6-dev-armhf-cross"),
    ("riscv64", "riscv64-linux-gnu-gcc", "gcc-riscv64-linux-gnu", "libc6-dev-riscv64-cross"),
)
"""Of each portable lane: architecture, compiler, the package of the compiler, the package of the C library."""
DISK_TOOLS = (
    ("qemu-img", "qemu-utils", "makes encrypted disk images"),
    ("cryptsetup", "cryptsetup-bin", "reads and makes encrypted disk images"),
    ("mkfs.ext4", "e2fsprogs", "makes the file systems in disk images"),
)
"""Of each tool of the disk workload: command, package, purpose."""
LIBRARIES = (
    ("libgcrypt", "gcrypt.h", "libgcrypt20-dev"),
    ("OpenSSL", "openssl/evp.h", "libssl-dev"),
    ("libtomcrypt", "tomcrypt.h", "libtomcrypt-dev"),
    ("nettle", "nettle/nettle-meta.h", "nettle-dev"),
    ("Mbed TLS", "mbedtls/version.h", "libmbedtls-dev"),
    ("wolfSSL", "wolfssl/options.h", "libwolfssl-dev"),
    ("Botan", "botan-2/botan/version.h", "libbotan-2-dev"),
    ("Crypto++", "cryptopp/cryptlib.h", "libcrypto++-dev"),
)
"""Of each library that judges beside generic: its name, a header, the package that brings it."""
NEWER_LIBRARIES = {"debian 13": {"Botan": ("botan-3/botan/version.h", "libbotan-3-dev")}}
"""Of each system that has another release of a library than the others: its header and its package there."""
LLVM = range(19, 41)
"""Versions of LLVM whose llvm-mca is taken, as `crosslane bench --model` does; the first is installed."""
EMULATORS = tuple(f"qemu-{name}" for name in ("x86_64", "aarch64", "s390x", "ppc64", "i386", "arm", "riscv64"))
DEBUGGERS = ("gdb", "gdb-multiarch")
"""The first is of a package that the second's asks for."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Commands of Chromium, of which the tests of the HTML report take the first that there is."""
KNOWN_SYSTEMS = ("debian 12", "debian 13", "ubuntu 24.04")


class SetupFailed(Exception):
    """One sentence for the user, and the status to end with: 2 where the user can act, 3 where a tool failed."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True)
class Machine:
    """What decides how packages are installed: architecture, ``id version`` of the system, and who may install."""

    architecture: str
    system: str
    installer: tuple[str, ...] | None
    """The words before ``apt-get``: none for root, ``sudo -n`` where that works, `None` where nobody may install."""


@dataclass(frozen=True)
class Need:
    """A package by its Debian name, what it is for, and whether the machine already has what it brings."""

    package: str
    purpose: str
    present: Callable[[], bool]


def say(line: str) -> None:
    """Print one line of progress at once, in order with what child processes print."""
    print(f"setup: {line}", flush=True)


def describe_machine(os_release: Path = Path("/etc/os-release")) -> Machine:
    """Read what kind of machine this is. A system without ``os-release`` is an unknown one."""
    facts: dict[str, str] = {}
    if os_release.exists():
        for line in os_release.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            facts[name] = value.strip("\"'")
    system = f"{facts.get('ID', 'unknown')} {facts.get('VERSION_ID', '')}".strip()
    installer: tuple[str, ...] | None = None
    if os.geteuid() == 0:
        installer = ()
    elif shutil.which("sudo") and _succeeds(["sudo", "-n", "true"]):
        installer = ("sudo", "-n")
    return Machine(platform.machine(), system, installer)


def needs(architecture: str, system: str = "") -> tuple[Need, ...]:
    """List what the suite needs of a system (``debian 13``) on a host of this architecture.

    Raises `SetupFailed` for an architecture that the suite has no native lane for.
    """
    if architecture not in CROSS_PACKAGES:
        raise SetupFailed(
            f"this machine is {architecture}, but the suite runs on {' and '.join(CROSS_PACKAGES)} hosts only", 2
        )
    other, cross_gcc, cross_libc = CROSS_PACKAGES[architecture]
    compiler = f"{other}-linux-gnu-gcc"
    return (
        Need("gcc", "the host's compiler", lambda: _has_command("gcc")),
        Need("libc6-dev", "the host's C library", lambda: _finds_libc("gcc")),
        Need(cross_gcc, f"the compiler for {other}", lambda: _has_command(compiler)),
        Need(cross_libc, f"the C library for {other}", lambda: _finds_libc(compiler)),
        Need("g++", "the C++ compiler, for adapters of libraries in C++", lambda: _has_command("g++")),
        Need(
            cross_gcc.replace("gcc", "g++"),
            f"the C++ compiler for {other}, for the same",
            lambda: _has_command(f"{other}-linux-gnu-g++"),
        ),
        Need("clang", "the second compiler", lambda: _has_command("clang")),
        Need("libclang-rt-dev", "fuzz targets of OSS-Fuzz, built by the tests", _has_fuzzing_engine),
        *(need for packages in PORTABLE_PACKAGES for need in _portable_needs(*packages)),
        Need("qemu-user", "runs the emulated lanes", lambda: all(map(_has_emulator, EMULATORS))),
        *(
            Need(package, f"the library {name}, an independent judge", partial(_has_header, header))
            for name, (header, package) in _libraries(system).items()
        ),
        Need("gnupg", "signs what the tests fetch", lambda: _has_command("gpg")),
        *_browser_needs(system),
        Need("gdb-multiarch", "stops at a subject's call", lambda: all(map(_has_command, DEBUGGERS))),
        Need(f"llvm-{LLVM[0]}", "simulates the cores of bench --model", _has_llvm),
        *(Need(package, purpose, partial(_has_system_command, name)) for name, package, purpose in DISK_TOOLS),
        Need("linux-source", "the kernel's test vectors", _has_kernel_source),
        Need("python3-venv", "makes virtual environments", _has_ensurepip),
    )


def _libraries(system: str) -> dict[str, tuple[str, str]]:
    """Header and package of each library on a system."""
    usual = {name: (header, package) for name, header, package in LIBRARIES}
    return usual | NEWER_LIBRARIES.get(system, {})


def _browser_needs(system: str) -> tuple[Need, ...]:
    """Chromium; Ubuntu has it as a snap alone, which cannot be installed everywhere: there the tests ask for it."""
    if system.startswith("ubuntu"):
        return ()
    return (Need("chromium", "looks at the HTML report in tests", lambda: any(map(_has_command, BROWSERS))),)


def _portable_needs(arch: str, compiler: str, gcc: str, libc: str) -> tuple[Need, Need]:
    return (
        Need(gcc, f"the compiler for {arch}", lambda: _has_command(compiler)),
        Need(libc, f"the C library for {arch}", lambda: _finds_libc(compiler)),
    )


def _has_header(header: str) -> bool:
    """Whether the host's compiler finds a header, be it one of C++."""
    source = f"#if !__has_include(<{header}>)\n#error\n#endif\n".encode()
    try:
        done = subprocess.run(["gcc", "-E", "-xc", "-"], input=source, capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def _has_fuzzing_engine() -> bool:
    """Whether clang finds the archive that -fsanitize=fuzzer links."""
    name = f"libclang_rt.fuzzer-{platform.machine()}.a"
    try:
        found = subprocess.run(["clang", f"-print-file-name={name}"], capture_output=True, text=True, check=False)
        folder = subprocess.run(["clang", "-print-runtime-dir"], capture_output=True, text=True, check=False)
    except OSError:
        return False
    folders = (Path(folder.stdout.strip()), Path(folder.stdout.strip()).parent / "linux")
    return Path(found.stdout.strip()).is_absolute() or any((place / name).is_file() for place in folders)


def _has_llvm() -> bool:
    return any(_has_command(f"llvm-mca-{version}") for version in LLVM)


def _has_kernel_source() -> bool:
    return any(Path("/usr/src").glob("linux-source-*.tar.*"))


def missing_packages(wanted: tuple[Need, ...]) -> list[Need]:
    """Return the needs that this machine does not meet yet."""
    return [need for need in wanted if not need.present()]


def install_commands(machine: Machine, missing: list[Need]) -> list[list[str]]:
    """Return the commands that install what is missing.

    Raises `SetupFailed` where the system is unknown or nobody may install: the sentence names the packages to ask for.
    """
    packages = [need.package for need in missing]
    wanted = ", ".join(f"{need.package} ({need.purpose})" for need in missing)
    if machine.system not in KNOWN_SYSTEMS:
        raise SetupFailed(
            f"this system is {machine.system}, but packages are installed on {', '.join(KNOWN_SYSTEMS)} only: install "
            f"what corresponds to these Debian packages and run this again: {wanted}",
            2,
        )
    if machine.installer is None:
        raise SetupFailed(
            f"these packages are missing and neither root nor sudo is at hand: {wanted}; ask your administrator for: "
            f"apt-get install --no-install-recommends {' '.join(packages)}",
            2,
        )
    apt_get = [*machine.installer, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y"]
    return [[*apt_get, "update"], [*apt_get, "install", "--no-install-recommends", *packages]]


def environment_key(root: Path) -> str:
    """Digest of all that decides the content of ``.venv``: metadata, this file, and the interpreter."""
    digest = hashlib.sha256()
    for path in (root / "pyproject.toml", root / "ci" / "prepare.py"):
        digest.update(path.read_bytes() + b"\0")
    digest.update(f"{sys.version}\0{sys.base_prefix}\0{root}".encode())
    return digest.hexdigest()


def tool(root: Path, name: str) -> str:
    """Path of a command of the checkout's virtual environment."""
    return str(root / ".venv" / "bin" / name)


def prepare(root: Path = ROOT) -> float:
    """Make the machine ready and return the seconds it took. Raises `SetupFailed` with a sentence and a status."""
    started = time.monotonic()
    if sys.version_info[:2] < OLDEST_PYTHON:
        raise SetupFailed(
            f"python3 is {platform.python_version()}, but the suite needs 3.11 or newer: install one and put it first "
            "in PATH",
            2,
        )
    _install_packages(describe_machine())
    packages_done = time.monotonic()
    _make_environment(root)
    done = time.monotonic()
    say(f"ready: system packages {packages_done - started:.1f} s, Python environment {done - packages_done:.1f} s")
    return done - started


def _install_packages(machine: Machine) -> None:
    missing = missing_packages(needs(machine.architecture, machine.system))
    if not missing:
        return
    commands = install_commands(machine, missing)
    for need in missing:
        say(f"installing {need.package}: {need.purpose}")
    update, install = commands
    if _run(update) != 0:
        say("apt-get update failed; trying to install from the lists that are there")
    status = _run(install)
    if status != 0:
        raise SetupFailed(
            f"`{' '.join(install)}` ended with status {status}: its words above say why; correct that and run this "
            "again",
            3,
        )
    still = [need.package for need in missing_packages(needs(machine.architecture, machine.system))]
    if still:
        raise SetupFailed(f"{', '.join(still)} was installed but its tools are not found: look at PATH ({_path()})", 2)


def _make_environment(root: Path) -> None:
    stamp = root / ".venv" / "crosslane-setup.key"
    key = environment_key(root)
    python = tool(root, "python")
    if stamp.exists() and stamp.read_text(encoding="ascii") == key and Path(python).exists():
        return
    say(f"making .venv with Python {platform.python_version()} and installing crosslane with its test tools there")
    stamp.unlink(missing_ok=True)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--editable", f"{root}[test]"]
    for command in ([sys.executable, "-m", "venv", "--clear", str(root / ".venv")], pip):
        status = _run(command)
        if status != 0:
            raise SetupFailed(
                f"`{' '.join(command)}` ended with status {status}: its words above say why (often no network or a "
                "full disk); correct that and run this again",
                3,
            )
    stamp.write_text(key, encoding="ascii")


def _run(command: list[str]) -> int:
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def _path() -> str:
    return os.environ.get("PATH", "")


def _has_command(name: str) -> bool:
    return shutil.which(name) is not None


def _has_system_command(name: str) -> bool:
    """In PATH, or where commands of administrators lie, which the PATH of users often lacks."""
    return shutil.which(name, path=os.pathsep.join([_path(), "/usr/sbin", "/sbin"])) is not None


def _has_emulator(name: str) -> bool:
    """Dynamic or static, as ``crosslane`` takes them."""
    return _has_command(name) or _has_command(f"{name}-static")


def _has_ensurepip() -> bool:
    """Debian ships it apart from python3; it may have come while this process runs."""
    importlib.invalidate_caches()
    return importlib.util.find_spec("ensurepip") is not None


def _finds_libc(compiler: str) -> bool:
    """Whether the compiler finds a static C library: it answers with a full path only for files that exist."""
    if not _has_command(compiler):
        return False
    command = [compiler, "-print-file-name=libc.a"]
    answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return Path(answer.stdout.strip()).is_absolute()
