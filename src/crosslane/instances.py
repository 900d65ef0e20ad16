# SPDX-License-Identifier: Apache-2.0
"""Instances of providers: which library, where from, in which lane; and how the command line names them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from crosslane.errors import BadInput
from crosslane.isa import ARCHES, host_arch
from crosslane.lanes import lanes_for_host
from crosslane.model import Backend, Cell, Instance, Lane, LibraryBuild, Registry, Sysroot
from crosslane.names import DRIVER_PATTERN, unknown_name

__all__ = ["instance_of", "instances", "read_providers", "suite_lane", "unreached_backends", "with_builds"]


def suite_lane(sysroot: Sysroot, host: str | None = None) -> Lane:
    """The lane of a sysroot's libraries: native where the host (default: this machine) has their architecture.

    Everywhere else an emulator runs them, with all features that it has.
    """
    native = sysroot.arch == (host or host_arch())
    return Lane(
        name=sysroot.lane,
        arch=sysroot.arch,
        runner="native" if native else "qemu",
        cpu="" if native else "max",
        compiler="gcc",
        opt="-O2",
        sanitizer="none",
        hosts=ARCHES,
        hides=(),
        gate=False,
        full=False,
        comment=f"libraries of {sysroot.suite}, fetched by crosslane providers fetch",
        suite=sysroot.suite,
    )


def instances(registry: Registry, host: str | None = None) -> Iterator[Instance]:
    """Every instance on a host (default: this machine): each library as it is, then by its backends."""
    lanes = lanes_for_host(registry, host)
    for instance in _libraries(registry, host):
        yield instance
        for backend in instance.provider.backends:
            lane = instance.lane if instance.lane.arch in backend.arches else None
            if lane is not None and backend.cpu:
                lane = _lane_with_cpu(instance, backend, lanes)
            if lane is not None:
                yield replace(instance, lane=lane, backend=backend)


def _lane_with_cpu(instance: Instance, backend: Backend, lanes: Sequence[Lane]) -> Lane | None:
    """Where an emulator with the backend's CPU model runs the library; None where none does.

    A library of a sysroot stays in the sysroot's lane, whose emulator is given that model.
    """
    if instance.sysroot is not None:
        return replace(instance.lane, cpu=backend.cpu) if instance.lane.runner == "qemu" else None
    fitting = [lane for lane in lanes if (lane.arch, lane.cpu) == (instance.lane.arch, backend.cpu)]
    return next((lane for lane in fitting if lane.runner == "qemu" and lane.usual and not lane.hides), None)


def unreached_backends(registry: Registry, instance: Instance) -> list[Backend]:
    """The backends of a library's architecture that no lane of this host reaches: no emulator has their CPU model."""
    reached = [
        item.backend
        for item in instances(registry)
        if (item.provider, item.name, item.sysroot, item.build)
        == (instance.provider, instance.name, instance.sysroot, instance.build)
    ]
    return [
        backend
        for backend in instance.provider.backends
        if instance.lane.arch in backend.arches and backend not in reached
    ]


def _libraries(registry: Registry, host: str | None) -> Iterator[Instance]:
    """Every library on a host, without backends.

    The system's libraries and the builds of the command line in the native lane of the full grids, those of sysroots
    in lanes of their own.
    """
    lanes = lanes_for_host(registry, host)
    native = [lane for lane in lanes if lane.runner == "native" and lane.full]
    for provider in registry.providers:
        for lane in native:
            yield Instance(provider, provider.name, lane)
            for build in registry.builds:
                if build.provider == provider.name:
                    yield Instance(provider, build.name, lane, build=build)
        for sysroot in registry.sysroots:
            for lane in lanes:
                if lane.name == sysroot.lane and provider.name in sysroot.providers:
                    yield Instance(provider, provider.name, lane, sysroot=sysroot)


def instance_of(registry: Registry, cell: Cell) -> Instance | None:
    """The instance that a cell is of; None where it is an implementation's."""
    for instance in instances(registry):
        if instance.cell(cell.algorithm.mode, cell.algorithm.cipher) == cell:
            return instance
    return None


def read_providers(values: Sequence[str]) -> tuple[tuple[str, ...], tuple[LibraryBuild, ...]]:
    """What ``--provider`` names: providers, and builds as ``NAME=PROVIDER:FOLDER[:INCLUDE]``; commas between.

    Returns the names that cells bear, and the builds. Raises BadInput for what is no such thing.
    """
    names, builds = [], []
    for text in [part for value in values for part in value.split(",")]:
        name, given, rest = text.partition("=")
        if not re.fullmatch(DRIVER_PATTERN, name) or (given and not rest):
            raise BadInput(
                f"--provider has {text!r}; write a provider's name, such as libgcrypt, or "
                "NAME=PROVIDER:FOLDER[:INCLUDE] for a build of your own, such as new=libgcrypt:./build/src/.libs; "
                "commas separate several"
            )
        names.append(name)
        if given:
            builds.append(_read_build(text, name, rest))
    twice = [build.name for number, build in enumerate(builds) if build.name in [item.name for item in builds[:number]]]
    if twice:
        raise BadInput(f"--provider names two builds {twice[0]!r}: rename one of them")
    return tuple(dict.fromkeys(names)), tuple(builds)


def _read_build(text: str, name: str, rest: str) -> LibraryBuild:
    provider, *folders = rest.split(":")
    if len(folders) not in (1, 2) or not all(folders):
        raise BadInput(
            f"--provider has {text!r}; write NAME=PROVIDER:FOLDER or NAME=PROVIDER:FOLDER:INCLUDE, with folders whose "
            "names have no colon"
        )
    for folder in folders:
        if not Path(folder).is_dir():
            raise BadInput(f"--provider {text}: {folder} is no folder: build the library, or correct the path")
    paths = [Path(folder).resolve() for folder in folders]
    return LibraryBuild(name, provider, paths[0], paths[1] if len(paths) > 1 else None)


def with_builds(registry: Registry, builds: Sequence[LibraryBuild]) -> Registry:
    """The registry with builds of the command line; raises BadInput for names that cannot be."""
    known = [provider.name for provider in registry.providers]
    taken = {*known, *(item.driver for item in registry.implementations)}
    for build in builds:
        if build.provider not in known:
            raise unknown_name("provider", build.provider, known, hint="run `crosslane list providers` for all")
        if build.name in taken:
            raise BadInput(f"--provider has the name {build.name!r}, which is taken: give the build another one")
    return replace(registry, builds=tuple(builds))
