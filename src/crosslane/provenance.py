# SPDX-License-Identifier: Apache-2.0
"""Which library a process has loaded: file, digest, package and version, and whether it is the one that was meant."""

from __future__ import annotations

import hashlib
import re
import subprocess
from functools import cache
from pathlib import Path

from crosslane.describe import signal_name
from crosslane.errors import HarnessFault, NotStarted
from crosslane.linking import place_of
from crosslane.messages import Hello
from crosslane.model import Instance, Provider
from crosslane.records import Library
from crosslane.toolchain import library_folder

__all__ = ["Foreign", "identify", "in_a_sentence"]

_QUERY_LIMIT_S = 60.0
_ENDED = re.compile(r"ended with status (-?\d+)(?: and said: (.*))?", re.DOTALL)


class Foreign(HarnessFault):
    """Another library was loaded than the one that is to be judged, or it could not be initialised."""


def identify(instance: Instance, hello: Hello) -> Library:
    """What the process has loaded of a provider's libraries, all of which must come from where they were meant to.

    Raises Foreign where one of them does not, or is not there at all, and where the library could not be initialised.
    """
    files = [_loaded(instance, hello, name) for name in _release(instance, hello).libraries]
    first = files[0]
    package, package_version = _package(instance, first)
    name = instance.provider.name
    versions = [text.removeprefix(f"{name} ") for text in hello.libraries if text.startswith(f"{name} ")]
    if versions == [""]:
        raise Foreign(
            f"{place_of(instance)} cannot be initialised: see what it needs with a program that only initialises it, "
            "or leave it out"
        )
    source = "build" if instance.build else instance.sysroot.suite if instance.sysroot else "system"
    return Library(
        provider=name,
        version=versions[0] if versions else "",
        source=source,
        package=package,
        package_version=package_version,
        file=str(first),
        sha256=_sha256(first),
    )


def _release(instance: Instance, hello: Hello) -> Provider:
    """The release of the library that the process has loaded; the first where it has none."""
    files = [_name(text) for text in hello.loaded]
    for release in instance.provider.releases:
        if any(_is_named(file, library) for file in files for library in release.libraries):
            return release
    return instance.provider


def _loaded(instance: Instance, hello: Hello, library: str) -> Path:
    """The one file of a library (a name for the linker) in the process, on the host."""
    named = [text for text in hello.loaded if _is_named(_name(text), library)]
    where = place_of(instance)
    if len(named) != 1:
        found = ", ".join(named) or "none"
        raise Foreign(
            f"{where} is to bring one lib{library}.so, but the process has loaded {found}: correct the folder"
        )
    folder, path = library_folder(instance), Path(named[0])
    if instance.sysroot is not None and not path.is_relative_to(instance.sysroot.root):
        path = instance.sysroot.root / named[0].lstrip("/")
    if folder is not None and not (path.exists() and path.resolve().is_relative_to(folder.resolve())):
        raise Foreign(
            f"{where} is to bring lib{library}.so, but the process loads {named[0]}: let the folder hold the library "
            "under the name that it is loaded by"
        )
    return path.resolve()


def _is_named(file: str, library: str) -> bool:
    return re.fullmatch(rf"lib{re.escape(library)}(-[0-9.]+)?\.so(\.[0-9.]+)*", file) is not None


def _name(text: str) -> str:
    return text.rpartition("/")[2]


@cache
def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise HarnessFault(f"{path}: the library cannot be read ({error.strerror}): make it readable") from None


def _package(instance: Instance, file: Path) -> tuple[str, str]:
    """Name and version of the package that brought a file; empty texts where none did."""
    if instance.build is not None:
        return "", ""
    if instance.sysroot is None:
        return _system_package(file)
    owners = [item for item in instance.sysroot.packages if file.name in item.libraries]
    return (owners[0].name, owners[0].version) if owners else ("", "")


@cache
def _system_package(file: Path) -> tuple[str, str]:
    """As the system's dpkg has it, which may know a file by its place before folders were merged."""
    for path in (str(file), str(file).removeprefix("/usr")):
        owner = _query(["dpkg-query", "-S", path]).partition(": ")[0]
        if owner and "," not in owner:
            return owner.partition(":")[0], _query(["dpkg-query", "-W", "-f=${Version}", owner])
    return "", ""


def _query(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_QUERY_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def in_a_sentence(instance: Instance, fault: HarnessFault) -> str:
    """Why a library cannot be run: it ended the process while it was loaded, or is not the one that was meant."""
    seen = _ENDED.search(str(fault))
    if not isinstance(fault, NotStarted) or seen is None:
        return str(fault)
    status, said = int(seen[1]), " ".join((seen[2] or "").split())
    how = f"by {signal_name(-status)}" if status < 0 else f"with status {status}"
    words = f", and says: {said[:300]}" if said else ", and says nothing"
    return (
        f"{place_of(instance)} ends the process {how} while it is loaded{words}; see why with a program that "
        "only links to it"
    )
