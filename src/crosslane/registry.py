# SPDX-License-Identifier: Apache-2.0
"""Discovery: every cipher, mode, implementation and lane, from the TOML that lies beside the code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from crosslane.data import shown
from crosslane.errors import BadInput
from crosslane.instances import instances, suite_lane
from crosslane.lanes import lanes_for_host, load_lanes
from crosslane.metadata import (
    check_third_party,
    read_cipher,
    read_implementation,
    read_mode,
    read_provider,
    subfolders,
)
from crosslane.model import Algorithm, Cell, Cipher, Implementation, Mode, Provider, Registry, Sysroot
from crosslane.names import unknown_name

__all__ = [
    "cells",
    "cipher_named",
    "implementation_named",
    "load_registry",
    "mode_named",
    "scan_registry",
]

_T = TypeVar("_T")


@dataclass
class _Problems:
    """Collects bad input, so that one mistake does not hide the next."""

    found: list[BadInput] = field(default_factory=list)

    def keep(self, read: Callable[[], _T]) -> list[_T]:
        """Return what ``read`` returns as a list of one, or an empty list where it raised."""
        try:
            return [read()]
        except BadInput as error:
            self.found.append(error)
            return []


def load_registry(
    root: Path, impls_dirs: Sequence[Path] = (), *, host: str | None = None, sysroots: Sequence[Sysroot] = ()
) -> Registry:
    """Discover all under ``root`` (see ``data.data_root``) and the third-party folders ``impls_dirs``.

    ``sysroots`` are what was fetched of other releases; each has a lane of its own.

    A third-party folder holds ``<cipher>/<folder>/impl.toml`` with sources, or ``impl.toml`` itself with a key
    ``cipher``. ``host`` (default: this machine) decides which lanes are full. Raises ``BadInput`` for the first
    problem found and says how many more there are.
    """
    registry, problems = scan_registry(root, impls_dirs, host=host)
    if not problems:
        lanes = sorted((*registry.lanes, *(suite_lane(item, host) for item in sysroots)), key=lambda lane: lane.name)
        return replace(registry, lanes=tuple(lanes), sysroots=tuple(sysroots))
    more = f" (and {len(problems) - 1} more: run `crosslane lint` for all)" if len(problems) > 1 else ""
    raise BadInput(f"{problems[0]}{more}")


def scan_registry(
    root: Path, impls_dirs: Sequence[Path] = (), *, host: str | None = None
) -> tuple[Registry, list[BadInput]]:
    """Discover as ``load_registry`` does, but return what is sound together with all problems."""
    problems = _Problems()
    ciphers = _scan_folders(problems, root / "impls" / "ciphers", read_cipher)
    modes = _scan_folders(problems, root / "impls" / "modes", read_mode)
    known = [mode.name for mode in modes]
    implementations = [
        implementation
        for cipher in ciphers
        for implementation in _scan_implementations(problems, cipher.name, cipher.folder, "own", known)
    ]
    for folder in impls_dirs:
        implementations += _scan_third_party(problems, folder, [cipher.name for cipher in ciphers], known)
    providers = _scan_providers(problems, root / "impls" / "providers", ciphers, modes)
    _check_unique(problems, implementations)
    _check_provider_names(problems, providers, implementations)
    lanes = problems.keep(lambda: load_lanes(root / "ci" / "lanes.toml", host=host))
    registry = Registry(
        ciphers=tuple(sorted(ciphers, key=lambda cipher: cipher.name)),
        modes=tuple(sorted(modes, key=lambda mode: mode.name)),
        implementations=tuple(sorted(implementations, key=lambda item: (item.cipher, item.driver))),
        lanes=tuple(sorted(lanes[0], key=lambda lane: lane.name)) if lanes else (),
        root=root,
        providers=tuple(sorted(providers, key=lambda provider: provider.name)),
    )
    return registry, problems.found


def _scan_folders(problems: _Problems, parent: Path, read: Callable[[Path], _T]) -> list[_T]:
    folders = problems.keep(lambda: subfolders(parent))
    return [item for folder in (folders[0] if folders else []) for item in problems.keep(partial(read, folder))]


def _scan_implementations(
    problems: _Problems, cipher: str, parent: Path, origin: str, modes: Sequence[str]
) -> list[Implementation]:
    return _scan_folders(
        problems, parent, lambda folder: read_implementation(folder, cipher=cipher, origin=origin, modes=modes)
    )


def _scan_providers(
    problems: _Problems, parent: Path, ciphers: Sequence[Cipher], modes: Sequence[Mode]
) -> list[Provider]:
    """Providers are optional: a tree without the folder has none."""
    if not parent.is_dir():
        return []
    return _scan_folders(problems, parent, partial(read_provider, ciphers=ciphers, modes=modes))


def _scan_third_party(
    problems: _Problems, folder: Path, ciphers: Sequence[str], modes: Sequence[str]
) -> list[Implementation]:
    """Read one folder given with ``--impls``, in either layout."""
    folder = folder.resolve()
    origin = str(folder)
    problems.keep(lambda: check_third_party(folder))
    if (folder / "impl.toml").exists():
        return problems.keep(
            lambda: read_implementation(folder, cipher=None, origin=origin, modes=modes, ciphers=ciphers)
        )
    found: list[Implementation] = []
    parents = problems.keep(lambda: subfolders(folder))
    for parent in parents[0] if parents else []:
        if parent.name == "regressions":
            continue  # stored cases, which `corpora_tools.regressions` reads
        if parent.name in ciphers:
            found += _scan_implementations(problems, parent.name, parent, origin, modes)
        else:
            problems.found.append(
                BadInput(
                    f"{shown(parent)}: {parent.name!r} is no cipher; allowed are {', '.join(ciphers)}; rename the "
                    "folder, or give the folder that holds impl.toml, with a key cipher, to --impls"
                )
            )
    if not found and not problems.found:
        problems.found.append(
            BadInput(
                f"{shown(folder)}: holds no implementation; lay it out as <cipher>/<folder>/impl.toml with sources, "
                "or put impl.toml with a key cipher into it"
            )
        )
    return found


def _check_unique(problems: _Problems, implementations: Iterable[Implementation]) -> None:
    """Drivers name implementations everywhere; symbols name them within the program that links our own."""
    drivers: dict[str, Implementation] = {}
    symbols: dict[str, Implementation] = {}
    for item in implementations:
        other = drivers.setdefault(item.driver, item)
        if other is not item:
            problems.found.append(
                BadInput(
                    f"{shown(item.folder / 'impl.toml')}: driver {item.driver!r} is taken by "
                    f"{shown(other.folder / 'impl.toml')}; rename one of them"
                )
            )
        other = symbols.setdefault(item.symbol, item) if item.origin == "own" else item
        if other is not item:
            problems.found.append(
                BadInput(
                    f"{shown(item.folder)}: its getter {item.symbol!r} is also that of {shown(other.folder)}; "
                    "rename one of the folders"
                )
            )


def _check_provider_names(
    problems: _Problems, providers: Iterable[Provider], implementations: Iterable[Implementation]
) -> None:
    """In a cell's id a provider stands where a driver does."""
    drivers = {item.driver: item for item in implementations}
    for provider in providers:
        if provider.name in drivers:
            problems.found.append(
                BadInput(
                    f"{shown(drivers[provider.name].folder / 'impl.toml')}: driver {provider.name!r} is the name of "
                    f"the provider in {shown(provider.folder)}; rename the driver"
                )
            )


def cells(registry: Registry, host: str | None = None) -> tuple[Cell, ...]:
    """Return every cell of a host architecture (default: this machine), sorted by id's parts.

    Instances of providers have cells for what lies in their domain. All other implementations have one wherever the
    mode allows the cipher's block and they are portable or made for the lane's architecture. Raises ``BadInput`` where
    the host has no lane.
    """
    lanes = lanes_for_host(registry, host)
    block_lens = {cipher.name: cipher.block_len for cipher in registry.ciphers}
    return tuple(
        Cell(algorithm=Algorithm(mode=mode.name, cipher=item.cipher), driver=item.driver, lane=lane.name)
        for item in registry.implementations
        for mode in registry.modes
        if block_lens[item.cipher] in mode.block_lens
        for lane in lanes
        if lane.takes(item)
    ) + tuple(
        instance.cell(domain.mode, domain.cipher)
        for instance in instances(registry, host)
        for domain in instance.provider.domains
    )


def cipher_named(registry: Registry, name: str) -> Cipher:
    """Return the cipher of that name; raises ``BadInput`` with the nearest names."""
    return _named("cipher", name, {cipher.name: cipher for cipher in registry.ciphers})


def mode_named(registry: Registry, name: str) -> Mode:
    """Return the mode of that name; raises ``BadInput`` with the nearest names."""
    return _named("mode", name, {mode.name: mode for mode in registry.modes})


def implementation_named(registry: Registry, driver: str) -> Implementation:
    """Return the implementation of that driver name; raises ``BadInput`` with the nearest names."""
    return _named("driver", driver, {item.driver: item for item in registry.implementations})


def _named(kind: str, name: str, known: dict[str, _T]) -> _T:
    if name not in known:
        raise unknown_name(kind, name, known, hint="run `crosslane list` for all")
    return known[name]
