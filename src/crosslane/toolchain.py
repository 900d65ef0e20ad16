# SPDX-License-Identifier: Apache-2.0
"""Which compiler builds for a lane and which emulator runs it; a missing one names the Debian packages."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from crosslane.errors import BadInput, MissingTool
from crosslane.isa import host_arch
from crosslane.model import Instance, Lane, Sysroot
from crosslane.names import nearest

__all__ = [
    "Toolchain",
    "emulator_name",
    "find_library",
    "find_qemu",
    "find_toolchain",
    "lane_toolchain",
    "library_file",
    "library_folder",
    "library_toolchain",
    "multiarch",
    "own_headers",
    "packages_for",
    "revision_of",
    "runner_command",
    "versions",
]

_TRIPLETS = {
    "x86_64": "x86_64-linux-gnu",
    "aarch64": "aarch64-linux-gnu",
    "s390x": "s390x-linux-gnu",
    "ppc64": "powerpc64-linux-gnu",
    "i386": "i686-linux-gnu",
    "armhf": "arm-linux-gnueabihf",
    "riscv64": "riscv64-linux-gnu",
}
_CROSS_PACKAGES = {
    "x86_64": ("gcc-x86-64-linux-gnu", "libc6-dev-amd64-cross"),
    "aarch64": ("gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"),
    "s390x": ("gcc-s390x-linux-gnu", "libc6-dev-s390x-cross"),
    "ppc64": ("gcc-powerpc64-linux-gnu", "libc6-dev-ppc64-cross"),
    "i386": ("gcc-i686-linux-gnu", "libc6-dev-i386-cross"),
    "armhf": ("gcc-arm-linux-gnueabihf", "libc6-dev-armhf-cross"),
    "riscv64": ("gcc-riscv64-linux-gnu", "libc6-dev-riscv64-cross"),
}
_MULTIARCH = {"i386": "i386-linux-gnu", "ppc64": "ppc64-linux-gnu", "armhf": "arm-linux-gnueabihf"}
_NATIVE_PACKAGES = ("gcc", "libc6-dev")
_QEMU_PACKAGE = "qemu-user"
_QEMU_NAMES = {"armhf": "arm"}
_SANITIZER_LIBRARIES = {"address": "libasan.so", "undefined": "libubsan.so"}
_PROBE_LIMIT_S = 20.0
# What an emulator's list of models says beside them.
_HELP_WORDS = ("Available", "CPUs:", "PowerPC", "x86", "s390", "(alias", "PVR")
_MAX_NAMES = 40


@dataclass(frozen=True)
class Toolchain:
    """A compiler with its binutils and static C library. ``version`` is the compiler's first line of --version.

    ``flags`` say which architecture is meant, and that a flag without use there is no fault, where clang compiles.
    ``cxx`` is the C++ compiler where one was asked for, and ``cxx_flags`` stand before ``flags`` for it alone.
    ``identity`` is all that decides what it makes of the same sources, without the place where it is installed.
    """

    arch: str
    cc: str
    objcopy: str
    version: str
    identity: str
    flags: tuple[str, ...] = ()
    cxx: str = ""
    cxx_flags: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """The compiler with the flags that it needs to be one for ``arch``."""
        return (self.cc, *self.flags)

    @property
    def cxx_command(self) -> tuple[str, ...]:
        """The C++ compiler likewise."""
        return (self.cxx, *self.cxx_flags, *self.flags)


def _output(command: list[str]) -> str:
    """Run a probe and return what it prints, or an empty string where it fails."""
    status, words, _ = _probe(command)
    return words if status == 0 else ""


def _probe(command: list[str]) -> tuple[int, str, str]:
    """Run a probe and return its status (-1: it does not run), what it prints and what it complains of."""
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
        return -1, "", ""
    words, complaints = (text.decode(errors="replace").strip() for text in (done.stdout, done.stderr))
    return done.returncode, words, complaints


def _first_line(command: list[str]) -> str:
    return _output(command).partition("\n")[0]


def packages_for(arch: str, *, compiler: str = "gcc", host: str | None = None) -> tuple[str, ...]:
    """Return the Debian packages with which this host (or ``host``) compiles for an architecture.

    clang takes headers, C library and binutils from gcc's packages, and brings the rest in its own.
    """
    packages = _NATIVE_PACKAGES if arch == (host or host_arch()) else _CROSS_PACKAGES[arch]
    return packages if compiler == "gcc" else (compiler, *packages)


def find_toolchain(arch: str, *, compiler: str = "gcc", sanitizer: str = "none", host: str | None = None) -> Toolchain:
    """Return the compiler that builds static programs for ``arch`` on this host (or ``host``), or sanitized ones.

    Raises ``MissingTool``, with the packages, where compiler, binutils, the static C library or the sanitizer's
    library are not installed.
    """
    prefix = "" if arch == (host or host_arch()) else f"{_TRIPLETS[arch]}-"
    missing = partial(_missing, arch=arch, host=host, compiler=compiler)
    found: dict[str, str] = {}
    for tool in (f"{prefix}gcc" if compiler == "gcc" else compiler, f"{prefix}objcopy"):
        path = shutil.which(tool)
        if path is None:
            raise missing(f"the program {tool}")
        found[tool] = path
    cc, objcopy = found.values()
    flags = (f"--target={_TRIPLETS[arch]}", "-Qunused-arguments") if compiler == "clang" else ()
    version = _first_line([cc, "--version"])
    if not version:
        raise missing(f"a working {cc} (`--version` failed)")
    libc = Path(_first_line([cc, *flags, "-print-file-name=libc.a"]))
    if not libc.is_absolute():
        raise missing("the static C library libc.a")
    library = _SANITIZER_LIBRARIES.get(sanitizer)
    if library and not Path(_first_line([cc, f"-print-file-name={library}"])).is_absolute():
        raise missing(f"gcc's library {library}")
    identity = f"{arch} {version}; libc.a of {libc.stat().st_size} bytes"
    return Toolchain(arch=arch, cc=cc, objcopy=objcopy, version=version, identity=identity, flags=flags)


def lane_toolchain(lane: Lane) -> Toolchain:
    """Return what builds for a lane on this host; raises as ``find_toolchain`` does."""
    return find_toolchain(lane.arch, compiler=lane.compiler, sanitizer=lane.sanitizer)


def library_toolchain(instance: Instance) -> Toolchain:
    """Return what builds the adapter of an instance: against the system's headers, a sysroot's, or those of a build.

    Nothing of the host's C library is read for a sysroot. Raises as ``find_toolchain`` does.
    """
    toolchain = lane_toolchain(instance.lane)
    if instance.sysroot is not None:
        return _within_sysroot(toolchain, instance.sysroot)
    if instance.build is None:
        return toolchain
    build = instance.build
    include = ("-isystem", str(build.include)) if build.include else ()
    return replace(toolchain, flags=(*toolchain.flags, f"-B{build.folder}", *include))


def _within_sysroot(toolchain: Toolchain, sysroot: Sysroot) -> Toolchain:
    """The toolchain with headers, start files and libraries of a sysroot, and those of the compiler itself."""
    root, triplet = sysroot.root, multiarch(sysroot.arch)
    flags = [f"--sysroot={root}", "-nostdinc"]
    for folder in (own_headers(toolchain), root / "usr" / "include" / triplet, root / "usr" / "include"):
        flags += ["-isystem", str(folder)]
    libraries = root / "usr" / "lib" / triplet
    flags += [f"-B{libraries}", f"-Wl,-rpath-link={libraries}"]
    identity = f"{toolchain.identity}; {sysroot.suite} {sysroot.digest}"
    return replace(toolchain, flags=(*toolchain.flags, *flags), identity=identity)


def own_headers(toolchain: Toolchain) -> str:
    """Return the folder of the headers that come with the compiler itself."""
    return _first_line([*toolchain.command, "-print-file-name=include"])


def library_file(toolchain: Toolchain, name: str) -> Path | None:
    """Return the file that the linker takes for a library (a name for the linker); None where it finds none."""
    path = Path(_first_line([*toolchain.command, f"-print-file-name=lib{name}.so"]))
    return path if path.is_absolute() else None


def library_folder(instance: Instance) -> Path | None:
    """Return where the library of an instance must come from; None for the system's, whose place the loader knows."""
    if instance.build is not None:
        return instance.build.folder
    if instance.sysroot is not None:
        return instance.sysroot.root / "usr" / "lib" / multiarch(instance.sysroot.arch)
    return None


def multiarch(arch: str) -> str:
    """Return the name of the folder in which Debian keeps an architecture's libraries, such as aarch64-linux-gnu."""
    return _MULTIARCH.get(arch, _TRIPLETS[arch])


def find_library(
    toolchain: Toolchain,
    name: str,
    *,
    headers: Sequence[str],
    libraries: Sequence[str],
    packages: Sequence[str],
    includes: Sequence[str] = (),
    cure: str = "",
) -> Toolchain:
    """Return the toolchain for what is linked to a provider's library: its identity knows the headers' contents.

    ``headers`` are looked for as the compiler does, the C++ compiler where the toolchain has one, in ``includes`` below
    its folders too; ``libraries`` as the linker does. Raises ``MissingTool``, with ``packages`` or another ``cure``,
    where one of them is not installed.
    """
    names = " ".join(packages)
    cure = (
        cure
        or f"install the packages {names} (as root: apt-get install {names}), or leave it out with --without {name}"
    )
    for include in includes:
        folder = _include_folder(toolchain, include)
        if folder is None:
            raise _missing_library(f"the folder of headers {include}", name, cure)
        toolchain = replace(toolchain, flags=(*toolchain.flags, "-isystem", folder))
    compiler = (*toolchain.cxx_command, "-std=c++20") if toolchain.cxx else toolchain.command
    language = "c++" if toolchain.cxx else "c"
    parts = [toolchain.identity]
    for header in headers:
        rule = _output([*compiler, "-M", "-include", header, "-x", language, "/dev/null"])
        if not rule:
            raise _missing_library(f"the header {header}", name, cure)
        read = sorted({word for word in rule.split() if word.startswith("/") and word != "/dev/null"})
        contents = hashlib.sha256(b"".join(Path(word).read_bytes() for word in read))
        parts.append(f"{header} {contents.hexdigest()}")
    for library in libraries:
        path = library_file(toolchain, library)
        if path is None:
            raise _missing_library(f"the library lib{library}.so", name, cure)
        parts.append(path.resolve().name)
    return replace(toolchain, identity="; ".join(parts))


def _include_folder(toolchain: Toolchain, include: str) -> str | None:
    """A folder of that name below one in which the compiler looks for headers; None where there is none."""
    words = _probe([*toolchain.command, "-E", "-v", "-x", "c", "/dev/null"])[2]
    folders = [Path(line.strip()) / include for line in words.splitlines() if line.startswith(" /")]
    return next((str(folder) for folder in folders if folder.is_dir()), None)


def _missing_library(what: str, name: str, cure: str) -> MissingTool:
    return MissingTool(f"{what} is not installed, which the provider {name} needs; {cure}")


def _missing(what: str, *, arch: str, host: str | None, compiler: str) -> MissingTool:
    packages = " ".join(packages_for(arch, compiler=compiler, host=host))
    lanes = f"{arch} lanes" if compiler == "gcc" else f"{arch} lanes of {compiler}"
    return MissingTool(
        f"{what} is not installed, which the {lanes} need; install the packages {packages} "
        f"(as root: apt-get install {packages})"
    )


def emulator_name(arch: str) -> str:
    """Return the name of qemu-user's program for an architecture."""
    return f"qemu-{_QEMU_NAMES.get(arch, arch)}"


def find_qemu(arch: str) -> str:
    """Return the absolute path of qemu-user for an architecture, dynamic or static.

    Raises ``MissingTool`` with the package where there is none.
    """
    program = emulator_name(arch)
    for name in (program, f"{program}-static"):
        path = shutil.which(name)
        if path is not None:
            return path
    raise MissingTool(
        f"the program {program} is not installed, which the {arch} qemu lanes need; install the package "
        f"{_QEMU_PACKAGE} (as root: apt-get install {_QEMU_PACKAGE})"
    )


def runner_command(lane: Lane) -> tuple[str, ...]:
    """Return what stands before a program on the command line to run it in a lane: nothing, or qemu and its model.

    Raises ``MissingTool``, and ``BadInput`` for a model that the emulator does not have.
    """
    if lane.runner != "qemu":
        return ()
    qemu = find_qemu(lane.arch)
    problem = _model_problem(qemu, lane.cpu)
    if problem:
        raise BadInput(f"ci/lanes.toml: [{lane.name}]: cpu has {lane.cpu!r}, {problem}")
    return (qemu, "-cpu", lane.cpu)


@cache
def _model_problem(qemu: str, cpu: str) -> str:
    """What an emulator has against a CPU model, with the names that it takes instead; empty where it takes it."""
    words = _probe([qemu, "-cpu", cpu, os.devnull])[2]
    if "CPU model" not in words and "Property" not in words:
        return ""
    program = Path(qemu).name
    models, _, flags = _probe([qemu, "-cpu", "help"])[1].partition("Recognized CPUID flags:")
    models = models.partition("\n\n")[0]
    known = {word for line in models.splitlines() for word in line.split()[:2]} - set(_HELP_WORDS)
    problem, wanted = f"which {program} does not know", cpu.partition(",")[0]
    if "Property" in words:
        part = words.partition("Property ")[2].partition(" not found")[0].strip("'").rpartition(".")[2]
        problem, wanted, known = f"but {program} knows no property {part!r} of it", part, set(flags.split())
    close = nearest(wanted, known)
    allowed = f"nearest are {', '.join(close)}" if close else f"allowed are {', '.join(sorted(known)[:_MAX_NAMES])}"
    return f"{problem}; {allowed if known else 'take it away'}; `{program} -cpu help` lists all"


def versions(lane: Lane) -> dict[str, str]:
    """Return the versions of a lane's tools for results: ``compiler``, and ``qemu`` where it runs there.

    Raises ``MissingTool``.
    """
    found = {"compiler": lane_toolchain(lane).version}
    if lane.runner == "qemu":
        found["qemu"] = _first_line([find_qemu(lane.arch), "--version"])
    return found


def revision_of(root: Path) -> str:
    """The checkout's revision, or empty where there is none."""
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"],  # noqa: S607 - the user's git
            capture_output=True, text=True, timeout=10, check=False,
        )  # fmt: skip
    except OSError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""
