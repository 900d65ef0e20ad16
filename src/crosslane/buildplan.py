# SPDX-License-Identifier: Apache-2.0
"""What a program is made of, before anything is compiled: units, flags, generated tables, and the keys of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from crosslane.buildcache import digest
from crosslane.buildtables import tables_text
from crosslane.cxx import CXX_SUFFIX, cxx_flags
from crosslane.data import read_files, shown
from crosslane.errors import HarnessFault
from crosslane.isa import ALL_ARCHES, feature_flags
from crosslane.metadata import ADAPTER_SUFFIXES, CODE_SUFFIXES
from crosslane.model import Implementation, Lane, Provider, Registry
from crosslane.plants import Plant
from crosslane.registry import mode_named
from crosslane.toolchain import Toolchain

__all__ = [
    "Program",
    "Unit",
    "plan_bench",
    "plan_planted",
    "plan_plugin",
    "plan_provider",
    "plan_shim",
    "plan_tool",
    "provider_defines",
    "provider_symbol",
]

_SCHEMA = "crosslane build 1"
# Sources in impls/shim that are programs of their own, what only sanitized programs have, and only those of libraries.
_NOT_SHIM = frozenset({"launcher.c"})
_HEAPS = {True: "heap.c", False: "no_heap.c"}
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
# At -O0 gcc warns of branches that are never taken, which it drops before these warnings at every other level.
_NO_FLOW_WARNINGS = ("-Wno-stringop-overflow", "-Wno-stringop-overread", "-Wno-array-bounds")
_PROTECTOR = "-fstack-protector-strong"
_LTO = "-flto"
# One object of machine code from files of which the compiler saw all: what linked it in could not keep its names apart.
_LTO_JOIN = {"gcc": (_LTO, "-flinker-output=nolto-rel", "-fno-pie"), "clang": (_LTO, "-Wl,--build-id=none")}
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
    "-Wno-overlength-strings",  # clang counts inline assembly as a string, of which C99 promises 4095 characters
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
    generated C source. ``flags`` and, of sources in C++, ``cxx_flags`` go into the key; ``place_flags`` say where
    things lie and do not. ``join_flags`` are those with which one object is made of all, where more than linking is
    done then. With ``patches``, files that are compiled with another content, it is compiled from a copy of all files
    below ``base``.
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
    patches: tuple[tuple[Path, bytes], ...] = ()
    base: Path = Path()
    join_flags: tuple[str, ...] = ()
    cxx_flags: tuple[str, ...] = ()

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


_Files = tuple[tuple[Path, ...], tuple[bytes, ...]]


@dataclass(frozen=True)
class _Workshop:
    """What the units of one program share; ``base`` is the folder that paths are told from.

    ``read`` are files that were read before: hundreds of planted faults are compiled of the same ones.
    """

    base: Path
    toolchain: Toolchain
    opt: str
    compiler: str = "gcc"
    read: dict[tuple[Path, ...], _Files] = field(default_factory=dict)

    def _files(self, sources: Sequence[Path], include: Sequence[Path]) -> _Files:
        """The sources and all headers beside them, and their contents."""
        key = (*sources, *include)
        if key not in self.read:
            headers = sorted({path for folder in include for path in folder.glob("*.h")} - set(sources))
            self.read[key] = (*sources, *headers), read_files((*sources, *headers))
        return self.read[key]

    def unit(
        self,
        name: str,
        *,
        sources: Sequence[Path],
        include: Sequence[Path],
        flags: Sequence[str],
        keep: str = "",
        text: str = "",
        patches: tuple[tuple[Path, bytes], ...] = (),
    ) -> Unit:
        """Plan an object; ``include`` are the folders of headers, ``patches`` files with what is compiled instead."""
        files, contents = self._files(sources, include)
        keyed = text + "".join(f"{_name(path, self.base)}={changed!r}" for path, changed in patches)
        all_flags = (*_BASE_FLAGS, *_ARCH_FLAGS.get(self.toolchain.arch, ()), self.opt, *flags)
        for_cxx = cxx_flags(all_flags) if any(source.suffix == CXX_SUFFIX for source in sources) else ()
        join = (*_LTO_JOIN[self.compiler], self.opt) if _LTO in flags else ()
        named = [part for path, data in zip(files, contents, strict=True) for part in (_name(path, self.base), data)]
        places = [_name(folder, self.base) for folder in include]
        return Unit(
            name=name,
            key=digest(
                [_SCHEMA, self.toolchain.identity, repr((all_flags, *for_cxx, join, places, keep, name)), keyed, *named]
            ),
            subject=sources[0].parent if sources else include[0],
            sources=tuple(source for source in sources if source.suffix in ADAPTER_SUFFIXES),
            files=files,
            contents=contents,
            include=tuple(include),
            flags=all_flags,
            place_flags=(*(f"-I{folder}" for folder in include), f"-ffile-prefix-map={self.base}=."),
            keep=keep,
            text=text,
            patches=patches,
            base=self.base,
            join_flags=join,
            cxx_flags=for_cxx,
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
    shop = _workshop(registry, lane, toolchain)
    common = (*feature_flags(lane.arch, ()), *_OWN_WARNINGS)
    units = [*_shim_units(shop, shim, lane, common), *_mode_units(shop, registry, lane)]
    units += [_implementation_unit(shop, item, shim, lane) for item in implementations]
    text = tables_text(implementations, registry.modes, win64=lane.abi == "win64")
    units.append(shop.unit("tables", sources=[], include=[shim], flags=common, text=text))
    drivers = [item.driver for item in implementations]
    subject = implementations[0].folder if len(implementations) == 1 else shim
    link = (_SHIM_LINK[lane.sanitizer], ())
    return shop.program("shim", units=units, subject=subject, contains=drivers, link=link)


def _workshop(registry: Registry, lane: Lane, toolchain: Toolchain) -> _Workshop:
    return _Workshop(base=registry.root, toolchain=toolchain, opt=lane.opt, compiler=lane.compiler)


def _shim_units(shop: _Workshop, shim: Path, lane: Lane, flags: Sequence[str], *, library: bool = False) -> list[Unit]:
    """The shim's own objects; with ``library`` they watch the C library's allocator."""
    left_out = _NOT_SHIM | {_HEAPS[not library]} | (frozenset() if lane.sanitized else _SANITIZED_ONLY)
    sources = sorted(
        path
        for suffix in CODE_SUFFIXES
        for path in shim.glob(f"*{suffix}")
        if path.name not in left_out and _for_arch(path, lane.arch)
    )
    if not sources:
        raise HarnessFault(f"{shown(shim)}: holds no source of the shim; restore the folder from the repository")
    return [shop.unit(path.stem, sources=[path], include=[shim], flags=flags) for path in sources]


def provider_defines(provider: Provider) -> tuple[str, ...]:
    """What an adapter is told of its ``provider.toml``."""
    return (
        f'-DPROVIDER_NAME="{provider.name}"',
        f"-DPROVIDER_SESSION={provider_symbol(provider)}",
        f"-DPROVIDER_CONTEXTS=SUBJECT_CONTEXTS_{provider.contexts.upper()}",
        f"-DPROVIDER_WIPES={int(provider.wipes)}",
    )


def provider_symbol(provider: Provider) -> str:
    """The C name of an adapter's session."""
    return f"provider_{provider.name.replace('-', '_')}"


def plan_provider(
    registry: Registry, lane: Lane, provider: Provider, toolchain: Toolchain, *, probe: bool = False
) -> Program:
    """Plan the shim of a provider in a lane: the adapter, linked to the library as the system installs it.

    With ``probe`` there is no shim around the adapter but the program that shows what runs in the library.
    """
    shim = registry.root / "impls" / "shim"
    shop = _workshop(registry, lane, toolchain)
    common = (*feature_flags(lane.arch, ()), *_OWN_WARNINGS)
    symbol = provider_symbol(provider)
    flags = (*common, "-fvisibility=hidden", *provider_defines(provider))
    include = [shim, provider.folder.parent, provider.folder]
    # C++ shares inline functions with the library, and what is static in them, by name: those must not become local.
    keep = "" if provider.has_cxx else symbol
    adapter = shop.unit(symbol, sources=provider.sources, include=include, flags=flags, keep=keep)
    link = ((*_LINK_FLAGS, "-Wl,-z,now"), tuple(f"-l{library}" for library in provider.libraries))
    if probe:
        source = provider.folder.parent / "probe.c"
        main = shop.unit("probe", sources=[source], include=[shim, source.parent], flags=flags)
        return shop.program("probe", units=[adapter, main], subject=source, contains=[provider.name], link=link)
    units = [*_shim_units(shop, shim, lane, common, library=True), *_mode_units(shop, registry, lane), adapter]
    text = tables_text((), registry.modes, [symbol])
    units.append(shop.unit("tables", sources=[], include=[shim], flags=common, text=text))
    return shop.program("shim", units=units, subject=provider.folder, contains=[provider.name], link=link)


def plan_planted(registry: Registry, lane: Lane, plants: Sequence[Plant], toolchain: Toolchain) -> Program:
    """Plan the extra shim of a lane: planted faults and controls, and the subjects of those that lie in modes.

    An implementation with a plant in it has the plant's symbol for its own.
    """
    shim = registry.root / "impls" / "shim"
    shop = _workshop(registry, lane, toolchain)
    common = (*feature_flags(lane.arch, ()), *_OWN_WARNINGS)
    drivers = {item.driver: item for item in registry.implementations}
    inside = [plant for plant in plants if not plant.in_mode]
    honest = {plant.driver: drivers[plant.driver] for plant in plants if plant.in_mode}
    units = [*_shim_units(shop, shim, lane, common), *_mode_units(shop, registry, lane)]
    units += [_implementation_unit(shop, item, shim, lane) for item in honest.values()]
    units += [_implementation_unit(shop, drivers[plant.driver], shim, lane, plant) for plant in inside]
    units += [_planted_mode_unit(shop, registry, lane, plant) for plant in plants if plant.in_mode]
    changed = [replace(drivers[plant.driver], symbol=plant.symbol) for plant in inside]
    text = tables_text([*honest.values(), *changed], registry.modes, plants=plants, win64=lane.abi == "win64")
    units.append(shop.unit("tables", sources=[], include=[shim], flags=common, text=text))
    link = (_SHIM_LINK[lane.sanitizer], ())
    return shop.program("shim", units=units, subject=shim, contains=["planted faults"], link=link)


def _patches(plant: Plant) -> tuple[tuple[Path, bytes], ...]:
    return ((plant.file, plant.changed),)


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
    shop = _workshop(registry, lane, toolchain)
    common = (*feature_flags(lane.arch, ()), *_OWN_WARNINGS)
    sources = sorted([*bench.glob("bench_*.c"), *(bench / name for name in (_BENCH_PEERS if peers else _BENCH_ALONE))])
    units = [shop.unit(path.stem, sources=[path], include=[shim, bench], flags=common) for path in sources]
    units.append(shop.unit("features", sources=[shim / "features.c"], include=[shim], flags=common))
    units += _mode_units(shop, registry, lane)
    units += [_implementation_unit(shop, item, shim, lane) for item in implementations]
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


def _tested_flags(lane: Lane) -> tuple[str, ...]:
    """What is built into the code under test and not into the shim beside it."""
    protector, lto = (_PROTECTOR,) if lane.protector else (), (_LTO,) if lane.lto else ()
    warnings = _NO_FLOW_WARNINGS if (lane.compiler, lane.opt) == ("gcc", "-O0") else ()
    return (*_SANITIZER_FLAGS[lane.sanitizer], *protector, *lto, *warnings, *_ABI_FLAGS[lane.abi])


def _mode_units(shop: _Workshop, registry: Registry, lane: Lane) -> list[Unit]:
    """An object for each mode, or one of all where files are optimised together."""
    shim = registry.root / "impls" / "shim"
    flags = (*feature_flags(lane.arch, (), lane.floor), *_OWN_WARNINGS, *_tested_flags(lane))
    groups = [registry.modes] if lane.lto else [(mode,) for mode in registry.modes]
    units = []
    for group in groups:
        name = "modes" if lane.lto else f"mode_{group[0].name}"
        include = [shim, group[0].folder.parent, *(mode.folder for mode in group)]
        sources = [path for mode in group for path in sorted(mode.folder.glob("*.c"))]
        units.append(shop.unit(name, sources=sources, include=include, flags=flags))
    return units


def _planted_mode_unit(shop: _Workshop, registry: Registry, lane: Lane, plant: Plant) -> Unit:
    """The mode with a plant in it, under the plant's symbol."""
    shim, mode = registry.root / "impls" / "shim", mode_named(registry, plant.algorithm.mode)
    rename = f"-Dsubject_mode_{mode.name}={plant.symbol}"
    flags = (*feature_flags(lane.arch, (), lane.floor), *_OWN_WARNINGS, *_tested_flags(lane), rename)
    include = [shim, mode.folder.parent, mode.folder]
    sources = sorted(mode.folder.glob("*.c"))
    return shop.unit(plant.symbol, sources=sources, include=include, flags=flags, patches=_patches(plant))


def _implementation_unit(
    shop: _Workshop, item: Implementation, shim: Path, lane: Lane, plant: Plant | None = None
) -> Unit:
    """An implementation; with a plant in it, under the plant's symbol."""
    own, symbol = item.origin == "own", plant.symbol if plant else item.symbol
    include = [shim, *([shim.parent / "modes", item.folder.parent] if own else []), item.folder]
    flags = (
        *feature_flags(lane.arch, item.features, lane.floor),
        *(_OWN_WARNINGS if own else _THIRD_PARTY_WARNINGS),
        *_tested_flags(lane),
        "-fvisibility=hidden",
        f'-DSUBJECT_NAME="{symbol}"',
        *([f"-D{item.symbol}={symbol}"] if plant else []),
    )
    patches = _patches(plant) if plant else ()
    shop = shop if own else replace(shop, base=Path(item.origin))
    return shop.unit(symbol, sources=item.sources, include=include, flags=flags, keep=symbol, patches=patches)
