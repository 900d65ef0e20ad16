# SPDX-License-Identifier: Apache-2.0
"""What an adapter is compiled and linked with, and in one sentence why that cannot be done."""

from __future__ import annotations

import contextlib
import hashlib
import re
from dataclasses import replace
from pathlib import Path

from crosslane.cxx import with_cxx
from crosslane.errors import BadInput, MissingTool
from crosslane.model import Instance, Provider
from crosslane.toolchain import Toolchain, find_library, library_file, library_folder, library_toolchain

__all__ = ["link_problem", "linked_toolchain", "place_of"]

_MACHINES = {
    3: "i386", 21: "ppc64", 22: "s390x", 40: "armhf", 62: "x86_64", 183: "aarch64", 243: "riscv64",
}  # fmt: skip
"""What e_machine of an ELF header says, by the names of our architectures."""
_DEBIAN_ARCHES = {"aarch64": "arm64", "x86_64": "amd64"}
_UNDEFINED = re.compile(r"undefined reference to `([^'@]+)")
_ERROR = re.compile(r"error: (.*)")


def place_of(instance: Instance) -> str:
    """Where the library of an instance comes from, as messages say it."""
    if instance.build is not None:
        return f"{instance.provider.name} in {instance.build.folder}"
    return f"{instance.provider.name} of {instance.sysroot.suite if instance.sysroot else 'the system'}"


def linked_toolchain(instance: Instance) -> tuple[Provider, Toolchain]:
    """The first release of an instance's library that is there, and what builds its adapter.

    Raises MissingTool where a header or a library is missing, of the release that is looked for last; BadInput where a
    library is for another architecture.
    """
    toolchain = library_toolchain(instance)
    if instance.provider.has_cxx:
        toolchain = with_cxx(toolchain, instance.provider.name)
    *newer, last = instance.provider.releases
    for release in newer:
        with contextlib.suppress(MissingTool):
            return release, _linked(replace(instance, provider=release), toolchain)
    return last, _linked(replace(instance, provider=last), toolchain)


def _linked(instance: Instance, toolchain: Toolchain) -> Toolchain:
    """The toolchain for a release."""
    provider, folder = instance.provider, library_folder(instance)
    digests = []
    for name in provider.libraries:
        path = library_file(toolchain, name)
        if folder is not None and (path is None or not path.is_relative_to(folder)):
            raise MissingTool(
                f"{folder} holds no lib{name}.so, which the provider {provider.name} needs; {_cure(instance)}"
            )
        if path is not None:
            _check_machine(instance, path)
            digests += [hashlib.sha256(path.read_bytes()).hexdigest()] if instance.build else []
    return find_library(
        replace(toolchain, identity="; ".join([toolchain.identity, *digests])),
        provider.name,
        headers=provider.headers,
        libraries=provider.libraries,
        packages=provider.packages,
        includes=provider.includes,
        cure=_cure(instance) if folder is not None else "",
    )


def _cure(instance: Instance) -> str:
    name = instance.provider.name
    if instance.sysroot is not None:
        suite, arch = instance.sysroot.suite, _DEBIAN_ARCHES[instance.sysroot.arch]
        return f"run `crosslane providers fetch --force --suite {suite} --arch {arch} {name}`"
    return (
        f"build it, or correct what --provider says: {instance.name}={name}:FOLDER, and behind it :INCLUDE for headers"
    )


def _check_machine(instance: Instance, path: Path) -> None:
    """Raise BadInput for a library that the lane cannot run; a linker's script has no architecture."""
    try:
        with path.open("rb") as file:
            header = file.read(20)
    except OSError as error:
        raise BadInput(f"{path}: the library cannot be read ({error.strerror}); make it readable") from None
    if not header.startswith(b"\x7fELF"):
        return
    machine = _MACHINES.get(int.from_bytes(header[18:20], "little" if header[5] == 1 else "big"), "another machine")
    if machine != instance.lane.arch:
        raise BadInput(
            f"{path} is a library for {machine}, but the lane {instance.lane.name} runs {instance.lane.arch}; build it "
            "for that, or take it out of --provider"
        )


def link_problem(instance: Instance, error: BadInput) -> BadInput:
    """Why an adapter does not compile or link, in one sentence of the compiler's words."""
    words = str(error)
    missing = sorted(set(_UNDEFINED.findall(words)))
    if missing:
        more = f" and {len(missing) - 1} more functions" if len(missing) > 1 else ""
        return BadInput(
            f"{place_of(instance)} lacks {missing[0]}{more}, which its adapter calls; take a release that has it, or "
            f"leave it out with --without {instance.provider.name}"
        )
    said = _ERROR.search(words)
    if said is None:
        return error
    return BadInput(
        f"the adapter of {instance.provider.name} does not compile against the headers of {place_of(instance)} "
        f"({said[1].strip()}); take a release that has what it names, or leave it out with --without "
        f"{instance.provider.name}"
    )
