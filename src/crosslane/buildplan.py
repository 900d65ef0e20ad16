# SPDX-License-Identifier: Apache-2.0
"""What a program is made of, before anything is compiled: units, flags, generated tables, and the keys of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosslane.buildcache import digest
from crosslane.data import read_files, shown
from crosslane.errors import HarnessFault
from crosslane.isa import ALL_ARCHES, feature_flags
from crosslane.metadata import CODE_SUFFIXES
from crosslane.model import Implementation, Lane, Mode, Provider, Registry
from crosslane.toolchain import Toolchain

__all__ = ["Program", "Unit", "plan_bench", "plan_plugin", "plan_provider", "plan_shim", "plan_tool", "tables_text"]

_SCHEMA = "crosslane build 1"
# Sources in impls/shim that are programs of their own, and what only sanitized programs have.
_NOT_SHIM = frozenset({"launcher.c"})
_SANITIZED_ONLY = frozenset({"sanitizer.c"})
# Distributions give gcc different defaults (hardening, position independence): all that matters is spelt out.
_BASE_FLAGS = (
    "-std=c11",
    "-g1",
    "-fno-lto",
    "-fno-pie",
    "-fno-common",
    "-fno-stack-protector",
    "-fno-stack-clash-protection",
    "-U_FORTIFY_SOURCE",
    "-Wa,--noexecstack",
)
_ARCH_FLAGS = {
    "x86_64": ("-fcf-protection=none",),
    "aarch64": ("-mbranch-protection=none", "-mno-outline-atomics"),
    "i386": ("-fcf-protection=none",),
}
# What watches the code under test; the shim beside it is never watched. A report ends the program.
_SANITIZER_FLAGS = {
    "none": (),
    "address": ("-fsanitize=address", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"),
    "undefined": ("-fsanitize=undefined", "-fno-sanitize-recover=all"),
}
# The convention of the assembly in an implementation (impls/shim/subject_asm.h).
_ABI_FLAGS = {"system": (), "win64": ("-DSUBJECT_WIN64",)}
_OWN_WARNINGS = (
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wshadow",
    "-Wvla",
    "-Wmissing-prototypes",
    "-Wstrict-prototypes",
    "-Werror",
)
_THIRD_PARTY_WARNINGS = ("-Wall",)
_LINK_FLAGS = ("-no-pie", "-Wl,-z,noexecstack", "-Wl,--build-id=none")
_STATIC = ("-static", *_LINK_FLAGS)
# The sanitizers' libraries come as shared ones.
_SHIM_LINK = {
    "none": _STATIC,
    "address": ("-fsanitize=address", *_LINK_FLAGS),
    "undefined": ("-fsanitize=undefined", *_LINK_FLAGS),
}
_PLUGIN = ("-shared", "-Wl,-z,noexecstack", "-Wl,--build-id=none")
# Sources in impls/bench: of the program that measures ours alone, and of the one that has libraries beside them.
_BENCH_ALONE = ("no_peers.c",)
_BENCH_PEERS = ("peers.c", "peer_gcrypt.c", "peer_nettle.c")
_BENCH_PEER_LIBRARIES = ("-lgcrypt", "-lnettle")


@dataclass(frozen=True)
class Unit:
    """One object: some sources compiled alike, linked together, all symbols but ``keep`` made local.

    ``files`` are all that a compilation may read and ``contents`` their bytes when the plan was made; ``text`` is a
    generated C source. ``flags`` go into the key; ``place_flags`` say where things lie and do not.
    """

    name: str
    key: str
    subject: Path
    sources: tuple[Path, ...]
    files: tuple[Path, ...]
    contents: tuple[bytes, ...]
    include: tuple[Path, ...]
    flags: tuple[str, ...]
    place_flags: tuple[str, ...]
    keep: str
    text: str

    @property
    def file_name(self) -> str:
        """The object's name in the cache."""
        return f"{self.name}.o"


@dataclass(frozen=True)
class Program:
    """A program made of units; ``contains`` says for people what is in it.

    ``link_flags`` stand before the objects and ``libraries`` behind them.
    """

    name: str
    key: str
    subject: Path
    units: tuple[Unit, ...]
    toolchain: Toolchain
    contains: tuple[str, ...]
    link_flags: tuple[str, ...] = _STATIC
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Workshop:
    """What the units of one program share; ``base`` is the folder that paths are told from."""

    base: Path
    toolchain: Toolchain
    opt: str

    def unit(
        self,
        name: str,
        *,
        sources: Sequence[Path],
        include: Sequence[Path],
        flags: Sequence[str],
        keep: str = "",
        text: str = "",
    ) -> Unit:
        """Plan an object; ``include`` are the folders of headers."""
        headers = sorted({path for folder in include for path in folder.glob("*.h")} - set(sources))
        files = (*sources, *headers)
        contents = read_files(files)
        all_flags = (*_BASE_FLAGS, *_ARCH_FLAGS.get(self.toolchain.arch, ()), self.opt, *flags)
        named = [part for path, data in zip(files, contents, strict=True) for part in (_name(path, self.base), data)]
        places = [_name(folder, self.base) for folder in include]
        return Unit(
            name=name,
            key=digest([_SCHEMA, self.toolchain.identity, repr((all_flags, places, keep, name)), text, *named]),
            subject=sources[0].parent if sources else include[0],
            sources=tuple(source for source in sources if source.suffix in CODE_SUFFIXES),
            files=files,
            contents=contents,
            include=tuple(include),
            flags=all_flags,
            place_flags=(*(f"-I{folder}" for folder in include), f"-ffile-prefix-map={self.base}=."),
            keep=keep,
            text=text,
        )

    def program(
        self,
        name: str,
        *,
        units: Sequence[Unit],
        subject: Path,
        contains: Sequence[str],
        link: tuple[tuple[str, ...], tuple[str, ...]] = (_STATIC, ()),
    ) -> Program:
        """Plan a program of units, linked in their order; ``link`` are flags and libraries."""
        key = digest([_SCHEMA, self.toolchain.identity, repr(link), name, *(unit.key for unit in units)])
        return Program(
            name=name,
            key=key,
            subject=subject,
            units=tuple(units),
            toolchain=self.toolchain,
            contains=tuple(contains),
            link_flags=link[0],
            libraries=link[1],
        )


def _name(path: Path, base: Path) -> str:
    """A path as keys see it: the same in every checkout."""
    return str(path.relative_to(base)) if path.is_relative_to(base) else path.name


def _for_arch(path: Path, arch: str) -> bool:
    """Whether a source of the shim is for an architecture: ``thunk_x86_64.S`` is for that one alone."""
    return not any(path.stem.endswith(f"_{other}") for other in ALL_ARCHES if other != arch)


def plan_shim(
    registry: Registry, lane: Lane, implementations: Sequence[Implementation], toolchain: Toolchain
) -> Program:
    """Plan the shim of a lane with these implementations, which must be for its architecture or for any."""
    shim = registry.root / "impls" / "shim"
    shop = _Workshop(base=registry.root, toolchain=toolchain, opt=lane.opt)
    common = (*feature_flags(lane.arch, ()), *_OWN_WARNINGS)
    units = _shim_units(shop, registry, shim, lane, common)
    watched = _SANITIZER_FLAGS[lane.sanitizer]
    watched = (*watched, *_ABI_FLAGS[lane.abi])
    units += [_implementation_unit(shop, item, shim, lane.arch, watched) for item in implementations]
    text = tables_text(implementations, registry.modes, win64=lane.abi == "win64")
    units.append(shop.unit("tables", sources=[], include=[shim], flags=common, text=text))
    drivers = [item.driver for item in implementations]
    subject = implementations[0].folder if len(implementations) == 1 else shim
    link = (_SHIM_LINK[lane.sanitizer], ())
    return shop.program("shim", units=units, subject=subject, contains=drivers, link=link)


def _shim_units(shop: _Workshop, registry: Registry, shim: Path, lane: Lane, flags: Sequence[str]) -> list[Unit]:
    """The shim's own objects and those of all modes."""
    left_out = _NOT_SHIM | (frozenset() if lane.sanitized else _SANITIZED_ONLY)
    sources = sorted(
        path
        for suffix in CODE_SUFFIXES
        for path in shim.glob(f"*{suffix}")
        if path.name not in left_out and _for_arch(path, lane.arch)
    )
    if not sources:
        raise HarnessFault(f"{shown(shim)}: holds no source of the shim; restore the folder from the repository")
    units = [shop.unit(path.stem, sources=[path], include=[shim], flags=flags) for path in sources]
    watched = (*flags, *_SANITIZER_FLAGS[lane.sanitizer])
    return [*units, *(_mode_unit(shop, mode, shim, watched) for mode in registry.modes)]


def plan_provider(registry: Registry, lane: Lane, provider: Provider, toolchain: Toolchain) -> Program:
    """Plan the shim of a provider in a lane: the adapter, linked to the library as the system installs it."""
    shim = registry.root / "impls" / "shim"
    shop = _Workshop(base=registry.root, toolchain=toolchain, opt=lane.opt)
    common = (*feature_flags(lane.arch, ()), *_OWN_WARNINGS)
    symbol = f"provider_{provider.name.replace('-', '_')}"
    flags = (*common, "-fvisibility=hidden", f'-DPROVIDER_NAME="{provider.name}"', f"-DPROVIDER_SESSION={symbol}")
    units = _shim_units(shop, registry, shim, lane, common)
    units.append(shop.unit(symbol, sources=provider.sources, include=[shim, provider.folder], flags=flags, keep=symbol))
    text = tables_text((), registry.modes, [symbol])
    units.append(shop.unit("tables", sources=[], include=[shim], flags=common, text=text))
    link = (_LINK_FLAGS, tuple(f"-l{library}" for library in provider.libraries))
    return shop.program("shim", units=units, subject=provider.folder, contains=[provider.name], link=link)


def plan_tool(root: Path, name: str, sources: Sequence[Path], toolchain: Toolchain, *, opt: str = "-O2") -> Program:
    """Plan a program of our own that is no shim, from sources that may use the shim's headers."""
    shop = _Workshop(base=root, toolchain=toolchain, opt=opt)
    flags = (*feature_flags(toolchain.arch, ()), *_OWN_WARNINGS)
    unit = shop.unit(name, sources=sources, include=[root / "impls" / "shim"], flags=flags)
    return shop.program(name, units=[unit], subject=sources[0], contains=[source.name for source in sources])


def plan_bench(
    registry: Registry,
    lane: Lane,
    implementations: Sequence[Implementation],
    toolchain: Toolchain,
    *,
    peers: bool = False,
) -> Program:
    """Plan the program that measures these implementations in a lane, with ``peers`` libraries beside them.

    The implementations and modes are the shim's own objects; the program with libraries is linked dynamically, to the
    libraries as the system installs them.
    """
    shim, bench = registry.root / "impls" / "shim", registry.root / "impls" / "bench"
    shop = _Workshop(base=registry.root, toolchain=toolchain, opt=lane.opt)
    common = (*feature_flags(lane.arch, ()), *_OWN_WARNINGS)
    sources = sorted([*bench.glob("bench_*.c"), *(bench / name for name in (_BENCH_PEERS if peers else _BENCH_ALONE))])
    units = [shop.unit(path.stem, sources=[path], include=[shim, bench], flags=common) for path in sources]
    units.append(shop.unit("features", sources=[shim / "features.c"], include=[shim], flags=common))
    units += [_mode_unit(shop, mode, shim, common) for mode in registry.modes]
    units += [_implementation_unit(shop, item, shim, lane.arch) for item in implementations]
    text = tables_text(implementations, registry.modes)
    units.append(shop.unit("tables", sources=[], include=[shim], flags=common, text=text))
    link = (_LINK_FLAGS, _BENCH_PEER_LIBRARIES) if peers else (_STATIC, ())
    drivers = [item.driver for item in implementations]
    return shop.program("bench", units=units, subject=bench, contains=drivers, link=link)


def plan_plugin(root: Path, toolchain: Toolchain) -> Program:
    """Plan the emulator's plugin that counts instructions; ``toolchain`` is the host's."""
    source = root / "impls" / "bench" / "insn_plugin.c"
    flags = (*feature_flags(toolchain.arch, ()), *_OWN_WARNINGS, "-fPIC", "-fvisibility=hidden")
    shop = _Workshop(base=root, toolchain=toolchain, opt="-O2")
    unit = shop.unit("insn_plugin", sources=[source], include=[], flags=flags)
    return shop.program("insn_plugin.so", units=[unit], subject=source, contains=[source.name], link=(_PLUGIN, ()))


def _mode_unit(shop: _Workshop, mode: Mode, shim: Path, flags: Sequence[str]) -> Unit:
    include = [shim, mode.folder.parent, mode.folder]
    sources = sorted(mode.folder.glob("*.c"))
    return shop.unit(f"mode_{mode.name}", sources=sources, include=include, flags=flags)


def _implementation_unit(
    shop: _Workshop, item: Implementation, shim: Path, arch: str, further: Sequence[str] = ()
) -> Unit:
    own = item.origin == "own"
    include = [shim, *([item.folder.parent] if own else []), item.folder]
    flags = (
        *feature_flags(arch, item.features),
        *(_OWN_WARNINGS if own else _THIRD_PARTY_WARNINGS),
        *further,
        "-fvisibility=hidden",
        f'-DSUBJECT_NAME="{item.symbol}"',
    )
    shop = shop if own else replace(shop, base=Path(item.origin))
    return shop.unit(item.symbol, sources=item.sources, include=include, flags=flags, keep=item.symbol)


def tables_text(
    implementations: Sequence[Implementation],
    modes: Sequence[Mode],
    sessions: Sequence[str] = (),
    *,
    win64: bool = False,
) -> str:
    """Return the C source that defines what ``shim_tables.h`` declares; ``sessions`` are symbols of adapters.

    ``win64``: the implementations' assembly was built for the Windows x64 convention.
    """
    lines = ['#include "shim_tables.h"', ""]
    lines += [f"extern subject_getter_fn {item.symbol};" for item in implementations]
    lines += [f"extern const struct subject_mode subject_mode_{mode.name};" for mode in modes]
    lines += [f"extern const struct subject_session {symbol};" for symbol in sessions]
    lines += ["", "const struct shim_implementation shim_implementations[] = {"]
    for item in implementations:
        words = ", ".join(f'"{word}"' for word in (item.driver, item.cipher, item.symbol))
        lines.append(f'    {{{words}, {item.symbol}, "{",".join(item.paths)}", {int(win64)}, {int(item.wipes)}}},')
    lines += ["    {NULL, NULL, NULL, NULL, NULL, 0, 0},", "};", ""]
    lines += ["const struct subject_mode *const shim_modes[] = {"]
    lines += [f"    &subject_mode_{mode.name}," for mode in modes]
    lines += ["    NULL,", "};", "", "const struct subject_session *const shim_sessions[] = {"]
    lines += [f"    &{symbol}," for symbol in sessions]
    lines += ["    NULL,", "};", ""]
    return "\n".join(lines)
