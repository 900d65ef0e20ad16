# SPDX-License-Identifier: Apache-2.0
"""Compares the data with the disk: what metadata says about code must be what the code says, and nothing lies about.

The textual checks read sources, they do not compile them; the shim confirms at run time what only running can show.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslane.data import read_files, shown
from crosslane.metadata import ADAPTER_SUFFIXES, CODE_SUFFIXES, SOURCE_SUFFIXES
from crosslane.model import Cipher, Implementation, Mode, Provider, Registry
from crosslane.plants import FAULTS_FILE, case_problems, scan_plants
from crosslane.registry import scan_registry

__all__ = ["Problem", "lint"]

_SPDX = re.compile(r"SPDX-License-Identifier: ([A-Za-z0-9.-]+ OR )?Apache-2\.0")
_SPDX_LINES = 2
_SPDX_SUFFIXES = (*SOURCE_SUFFIXES, *ADAPTER_SUFFIXES, ".py", ".toml")
_SCRIPT = re.compile(r"(derive|find)[a-z0-9_]*\.py")
_SEARCH = re.compile(r"find[a-z0-9_]*\.c")
_PATH = re.compile(r'\bSUBJECT_PATH\s*\(?\s*"([^"]*)"')
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_SYSTEM_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<([^>]+)>", re.MULTILINE)
_GLOBAL = re.compile(r"(?:^|;)[ \t]*\.(?:globa?l|weak)[ \t]+([\w.$\\]+)", re.MULTILINE)
_FUNCTION = re.compile(r"^[ \t]*FUNCTION\((\w+)\)", re.MULTILINE)
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_GENERIC = "generic"
_GENERIC_PRIORITY = 100
# The members of struct subject_leaf that a mode is fused through, where they do not begin with the mode's name.
_SHARED_SLOTS = {
    "cmac": "mac_update",
    "xcbc": "mac_update",
    "cbcmac": "mac_update",
    "ccm": "mac_update",
    "gcm": "ghash",
}


@dataclass(frozen=True, order=True)
class Problem:
    """One thing to correct; the message is a sentence that names the file, the value and what is allowed."""

    path: Path
    message: str

    def __str__(self) -> str:
        return self.message


def lint(root: Path, impls_dirs: Sequence[Path] = ()) -> list[Problem]:
    """Return all problems of the content folders and of third-party folders, those of the schemas first.

    Third-party code is held to the contract, not to our house style (licence line, scripts, names of folders).
    """
    registry, errors = scan_registry(root, impls_dirs)
    problems = [Problem(path=root, message=str(error)) for error in errors]
    rest: list[Problem] = []
    for item in registry.implementations:
        rest += _check_implementation(item)
    rest += _check_priorities(registry.implementations)
    for cipher in registry.ciphers:
        rest += _check_cipher(cipher, registry)
    for mode in registry.modes:
        rest += _check_mode(mode)
    for provider in registry.providers:
        rest += _check_provider(provider)
    rest += _check_licences(root)
    if not errors:
        rest += _check_plants(registry)
    return problems + sorted(set(rest))


def _problem(path: Path, text: str) -> Problem:
    return Problem(path=path, message=f"{shown(path)}: {text}")


def _listed(values: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, values))) or "none"


def _read(path: Path) -> str:
    return read_files([path])[0].decode(errors="replace")


def _entries(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if entry.name != "__pycache__")


def _check_implementation(item: Implementation) -> Iterator[Problem]:
    own = item.origin == "own"
    yield from _check_files(item, own=own)
    texts = {source: _BLOCK_COMMENT.sub(" ", _read(source)) for source in item.sources}
    yield from _check_paths(item, texts)
    yield from _check_getter(item, texts)
    yield from _check_fused(item, texts)
    yield from _check_assembly(item, texts)
    if own:
        yield from _check_names(item)


def _check_files(item: Implementation, *, own: bool) -> Iterator[Problem]:
    """Sources listed and sources there are the same set; only scripts that derive constants may lie beside them."""
    metadata = item.folder / "impl.toml"
    for entry in _entries(item.folder):
        if entry == metadata or entry in item.sources:
            continue
        if own and (entry.name == FAULTS_FILE or _SCRIPT.fullmatch(entry.name)):
            continue
        if entry.suffix in SOURCE_SUFFIXES and entry.is_file():
            names = _listed(source.name for source in item.sources)
            yield _problem(metadata, f"sources has only {names}, but {entry.name} lies beside it; list or remove it")
        else:
            scripts = f", {FAULTS_FILE}, derive*.py and find*.py" if own else ""
            allowed = f"impl.toml, {', '.join('*' + suffix for suffix in SOURCE_SUFFIXES)}{scripts}"
            yield _problem(entry, f"does not belong to an implementation; allowed are {allowed}; remove it")


def _check_paths(item: Implementation, texts: dict[Path, str]) -> Iterator[Problem]:
    """Declared paths are those that the sources mark, in the shared headers that they include too."""
    shared = _shared_headers(item, texts)
    marked = {name for text in (*texts.values(), *shared) for name in _PATH.findall(text)}
    declared = {name.rpartition(":")[2] for name in item.paths}
    metadata = item.folder / "impl.toml"
    for name in sorted(marked - declared):
        yield _problem(metadata, f'paths misses {name!r}, which a source marks with SUBJECT_PATH("{name}"); add it')
    for name in sorted(declared - marked):
        yield _problem(
            metadata, f"paths has {name!r}, which no source marks; allowed are {_listed(marked)}; mark or remove it"
        )


def _shared_headers(item: Implementation, texts: dict[Path, str]) -> list[str]:
    """Headers of the cipher's folder and of the modes' that the sources include, or one of these headers does."""
    cipher = item.folder.parent
    folders = (cipher, cipher.parent.parent / "modes")
    found: dict[Path, str] = {}
    waiting = list(texts.values())
    while waiting:
        names = [name for name in _INCLUDE.findall(waiting.pop()) if "/" not in name]
        for header in (folder / name for name in names for folder in folders):
            if header not in found and header.is_file():
                found[header] = _BLOCK_COMMENT.sub(" ", _read(header))
                waiting.append(found[header])
    return [found[header] for header in sorted(found)]


def _check_getter(item: Implementation, texts: dict[Path, str]) -> Iterator[Problem]:
    code = [text for source, text in texts.items() if source.suffix in CODE_SUFFIXES]
    if not any(re.search(rf"\b{item.symbol}\b", text) for text in code):
        yield _problem(
            item.folder,
            f"no source defines the getter; allowed is const struct subject_leaf *{item.symbol}(uint64_t features), "
            "named after cipher and folder; add it",
        )


def _check_fused(item: Implementation, texts: dict[Path, str]) -> Iterator[Problem]:
    """A fused mode fills its member of the leaf's table, as a designated initialiser."""
    text = "\n".join(texts.values())
    for mode in item.fused:
        slot = _SHARED_SLOTS.get(mode)
        pattern = rf"\.{slot}\b" if slot else rf"\.{mode}(_encrypt|_decrypt)?\b"
        if not re.search(rf"{pattern}\s*=", text):
            member = slot or mode
            yield _problem(
                item.folder / "impl.toml",
                f"fused has {mode!r}, but no source fills .{member} of struct subject_leaf; fill it or remove the mode",
            )
    for mode in ("ecb", "cbc", "cfb", "ofb", "ctr", "cts_cbc", "xts", "xts_gb", "lrw"):
        if mode not in item.fused and re.search(rf"\.{mode}(_encrypt|_decrypt)?\s*=", text):
            yield _problem(
                item.folder / "impl.toml",
                f"fused has {_listed(item.fused)}, but a source fills .{mode} of struct subject_leaf; add {mode!r}",
            )


def _check_assembly(item: Implementation, texts: dict[Path, str]) -> Iterator[Problem]:
    """Assembly is entered by subject_asm.h: else it has one calling convention, and no thunk stands at its calls."""
    code = {source: text for source, text in texts.items() if source.suffix != ".S"}
    calls = "\n".join((*code.values(), *_shared_headers(item, code)))
    for source in sorted(texts.keys() - code.keys()):
        assembly = "\n".join((texts[source], *_shared_headers(item, {source: texts[source]})))
        for name in sorted(set(_GLOBAL.findall(assembly))):
            yield _problem(
                source, f"{name} is global by a directive; allowed is FUNCTION({name}) of subject_asm.h; use it"
            )
        names = sorted(set(_FUNCTION.findall(assembly)))
        if names and not re.search(r"\bSUBJECT_ASM_CALL\b", calls):
            yield _problem(source, f"no C source calls {_listed(names)} by SUBJECT_ASM_CALL of subject_asm.h; do so")
        for name in names:
            if any("SUBJECT_ASM_ABI" not in before for before in re.findall(rf"([^;{{}}]*)\b{name}\s*\(", calls)):
                yield _problem(
                    source,
                    f"a C source calls {name} without a thunk, or declares it for one calling convention; allowed are "
                    f"SUBJECT_ASM_CALL({name}) and SUBJECT_ASM_ABI in its declaration; correct it",
                )


def _check_names(item: Implementation) -> Iterator[Problem]:
    """House rules for our own: the folder says the architecture, the driver the cipher; generic is portable."""
    metadata = item.folder / "impl.toml"
    prefix = f"{item.cipher}-"
    if not item.driver.startswith(prefix):
        yield _problem(metadata, f"driver is {item.driver!r}; it must begin with {prefix!r}; rename it")
    if item.is_generic:
        if item.isa != "any" or item.driver != f"{prefix}{_GENERIC}" or item.priority != _GENERIC_PRIORITY:
            yield _problem(
                metadata,
                f"generic is the judge of all others; allowed are isa 'any', driver '{prefix}{_GENERIC}' and priority "
                f"{_GENERIC_PRIORITY}; correct them",
            )
    elif item.isa != "any" and not f"{item.folder.name}_".startswith(f"{item.isa}_"):
        yield _problem(
            item.folder,
            f"the folder's name must be its isa, {item.isa!r}, or begin with {item.isa + '_'!r}; rename the folder or "
            "the isa",
        )


def _check_priorities(items: Sequence[Implementation]) -> Iterator[Problem]:
    """Of two implementations that can run the higher priority is the default, so ours may not tie."""
    groups: dict[tuple[str, str, int], list[Implementation]] = defaultdict(list)
    for item in items:
        if item.origin == "own":
            groups[item.cipher, item.isa, item.priority].append(item)
    for (cipher, isa, priority), tied in groups.items():
        for item in tied[1:]:
            taken = _listed(other.priority for other in items if (other.cipher, other.isa) == (cipher, isa))
            yield _problem(
                item.folder / "impl.toml",
                f"priority {priority} is also that of {tied[0].driver}; use one that no {isa} implementation of "
                f"{cipher} has (taken are {taken})",
            )


def _check_cipher(cipher: Cipher, registry: Registry) -> Iterator[Problem]:
    if not any(item.cipher == cipher.name and item.is_generic for item in registry.implementations):
        yield _problem(cipher.folder, "has no sound generic implementation to judge others by; add generic/impl.toml")
    if list(cipher.key_lens) != sorted(cipher.key_lens):
        yield _problem(cipher.folder / "cipher.toml", f"key_lens is {list(cipher.key_lens)}; list them in rising order")
    for entry in _entries(cipher.folder):
        if (
            entry.is_file()
            and entry.name != "cipher.toml"
            and entry.suffix != ".h"
            and not _SCRIPT.fullmatch(entry.name)
            and not _SEARCH.fullmatch(entry.name)
        ):
            allowed = "cipher.toml, *.h, derive*.py, find*.py and find*.c"
            yield _problem(entry, f"does not belong to a cipher; allowed are {allowed}; remove it")


def _check_mode(mode: Mode) -> Iterator[Problem]:
    code = mode.folder / f"{mode.name}.c"
    symbol = f"subject_mode_{mode.name}"
    if not re.search(rf"\bconst\s+struct\s+subject_mode\s+{symbol}\b", _read(code)):
        yield _problem(code, f"does not define the mode; allowed is const struct subject_mode {symbol}; add it")
    for entry in _entries(mode.folder):
        if entry.name not in ("mode.toml", "reference.py") and entry.suffix not in (".c", ".h"):
            yield _problem(
                entry, "does not belong to a mode; allowed are mode.toml, reference.py, *.c and *.h; remove it"
            )


def _check_provider(provider: Provider) -> Iterator[Problem]:
    """The adapter defines the session, includes the headers that are listed, and nothing else lies beside it."""
    metadata = provider.folder / "provider.toml"
    for entry in _entries(provider.folder):
        if entry != metadata and entry not in provider.sources:
            names = _listed(source.name for source in provider.sources)
            yield _problem(entry, f"does not belong to a provider; allowed are provider.toml and its sources {names}")
    text = "\n".join(_BLOCK_COMMENT.sub(" ", _read(source)) for source in provider.sources)
    if not re.search(r"\bconst\s+struct\s+subject_session\s+PROVIDER_SESSION\s*=", text):
        yield _problem(
            provider.folder, "no source defines the session; allowed is const struct subject_session PROVIDER_SESSION"
        )
    included = set(_SYSTEM_INCLUDE.findall(text))
    for header in provider.headers:
        if header not in included:
            yield _problem(
                metadata,
                f"headers has {header!r}, which no source includes; included are {_listed(included)}; correct it",
            )


def _check_plants(registry: Registry) -> Iterator[Problem]:
    """Planted faults fit the sources as they are, and each has its case."""
    scan = scan_plants(registry)
    broken = {name for name, _ in scan.broken}
    for error in (*(error for _, error in scan.broken), *case_problems(registry, scan.plants, broken)):
        yield Problem(path=registry.root, message=str(error))


def _check_licences(root: Path) -> Iterator[Problem]:
    """Each source of ours says its licence at its top; metadata too."""
    for path in sorted((root / "impls").rglob("*")):
        if path.suffix not in _SPDX_SUFFIXES or not path.is_file():
            continue
        if not any(_SPDX.search(line) for line in _read(path).splitlines()[:_SPDX_LINES]):
            yield _problem(
                path,
                f"its first {_SPDX_LINES} lines do not hold 'SPDX-License-Identifier: Apache-2.0'; "
                "add that comment at the top",
            )
