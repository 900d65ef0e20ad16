# SPDX-License-Identifier: Apache-2.0
"""The schemas of all metadata but the lanes', and the agreement of each file with the folder around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crosslane.data import shown
from crosslane.errors import BadInput
from crosslane.isa import ALL_ARCHES, FEATURES
from crosslane.model import Backend, Cipher, Domain, Implementation, Mode, Provider
from crosslane.names import DRIVER_PATTERN, WORD_PATTERN
from crosslane.tomlread import Field, read_fields, read_toml

__all__ = [
    "ADAPTER_SUFFIXES",
    "CODE_SUFFIXES",
    "SOURCE_SUFFIXES",
    "check_third_party",
    "read_cipher",
    "read_implementation",
    "read_mode",
    "read_provider",
    "require_file",
    "subfolders",
]

CODE_SUFFIXES = (".c", ".S")
SOURCE_SUFFIXES = (".c", ".S", ".h")
ADAPTER_SUFFIXES = (*CODE_SUFFIXES, ".cc")
_BLOCK_LENS = (8, 16)
_DIRECTIONS = ("encrypt", "decrypt")
_POLICIES = ("degenerate", "weak_subkey")
_SOURCE_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.(c|S|h)"
_ADAPTER_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.(c|cc|S|h)"
_VARIABLE_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*=[!-~]*"
_NOT_CONTENT = ("__pycache__",)
_TEXT = Field(kind="str", pattern=r"\S[^\n]*")

_CIPHER_FIELDS = {
    "name": Field(kind="str", pattern=WORD_PATTERN),
    "title": _TEXT,
    "standard": _TEXT,
    "block_len": Field(kind="int", allowed=_BLOCK_LENS),
    "key_lens": Field(kind="int", many=True, min_num=1, least=0),
    "policies": Field(kind="str", many=True, allowed=_POLICIES),
    "weak_keys": Field(kind="str", many=True, min_num=1, pattern=r"([0-9a-f]{2})+", optional=True),
    "ignored_bits": Field(kind="int", least=1, optional=True),
}

_MODE_FIELDS = {
    "name": Field(kind="str", pattern=WORD_PATTERN),
    "title": _TEXT,
    "standard": _TEXT,
    "split": Field(kind="str", allowed=("byte", "block", "none")),
    "serial": Field(kind="bool"),
    "partial": Field(kind="str", allowed=("refused", "anywhere", "stealing")),
    "min_len_blocks": Field(kind="int", least=0),
    "iv": Field(kind="str", allowed=("none", "random", "counter", "index", "tweak", "nonce", "hashed")),
    "iv_lens": Field(kind="int", many=True, least=0),
    "iv_out": Field(kind="str", allowed=("none", "next", "next_whole")),
    "directions": Field(kind="str", many=True, min_num=1, allowed=_DIRECTIONS),
    "aad": Field(kind="bool"),
    "tag_lens": Field(kind="int", many=True, least=0),
    "num_keys": Field(kind="int", least=1),
    "key_extra_len": Field(kind="int", least=0),
    "block_lens": Field(kind="int", many=True, min_num=1, allowed=_BLOCK_LENS),
}

_IMPL_FIELDS = {
    "driver": Field(kind="str", pattern=DRIVER_PATTERN),
    "isa": Field(kind="str", allowed=tuple(FEATURES)),
    "features": Field(kind="str", many=True),
    "priority": Field(kind="int", least=0),
    "ways": Field(kind="int", least=1),
    "sources": Field(kind="str", many=True, min_num=1, pattern=_SOURCE_PATTERN),
    "fused": Field(kind="str", many=True),
    "paths": Field(kind="str", many=True, min_num=1, pattern=f"({WORD_PATTERN}:)?{WORD_PATTERN}"),
    "constant_time": Field(kind="bool"),
    "description": _TEXT,
    "wipes": Field(kind="bool", optional=True),
}

# What other releases of a library have under other names.
_RELEASE_FIELDS = {
    "packages": Field(kind="str", many=True, min_num=1, pattern=r"[a-z0-9][a-z0-9.+-]+"),
    "libraries": Field(kind="str", many=True, min_num=1, pattern=r"[A-Za-z0-9_+-]+"),
    "includes": Field(kind="str", many=True, min_num=1, pattern=r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", optional=True),
}
_PROVIDER_FIELDS = {
    "name": Field(kind="str", pattern=DRIVER_PATTERN),
    "title": _TEXT,
    **_RELEASE_FIELDS,
    "headers": Field(kind="str", many=True, min_num=1, pattern=r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*\.h"),
    "sources": Field(kind="str", many=True, min_num=1, pattern=_ADAPTER_PATTERN),
    "contexts": Field(kind="str", allowed=("heap", "own"), optional=True),
    "wipes": Field(kind="bool", optional=True),
    "environment": Field(kind="str", many=True, min_num=1, pattern=_VARIABLE_PATTERN, optional=True),
    "modules_variable": Field(kind="str", pattern="[A-Z][A-Z0-9_]*", optional=True),
    "modules_folders": Field(kind="str", many=True, min_num=1, pattern="[A-Za-z0-9_-]+", optional=True),
    "ship": Field(kind="bool", optional=True),
}

# A table [backend.NAME]: a switch of the library's.
_BACKEND_FIELDS = {
    "arches": Field(kind="str", many=True, min_num=1, allowed=ALL_ARCHES),
    "what": _TEXT,
    "environment": Field(kind="str", many=True, min_num=1, pattern=_VARIABLE_PATTERN, optional=True),
    "cpu": Field(kind="str", pattern=r"[A-Za-z0-9_.,=+-]+", optional=True),
    "gate": Field(kind="bool", optional=True),
}

# A table [cipher.NAME]: how much of a cipher the library takes.
_PROVIDER_CIPHER_FIELDS = {
    "key_lens": Field(kind="int", many=True, min_num=1, least=0, optional=True),
    "refuses_keys": Field(kind="bool", optional=True),
    "policies": Field(kind="str", many=True, allowed=_POLICIES, optional=True),
    "optional": Field(kind="bool", optional=True),
}

# A table [[algorithm]]; what is optional is as the mode has it.
_DOMAIN_FIELDS = {
    "mode": Field(kind="str", pattern=WORD_PATTERN),
    "ciphers": Field(kind="str", many=True, min_num=1, pattern=WORD_PATTERN),
    "refusals": Field(kind="str", many=True, allowed=("key", "iv", "tag", "data")),
    "observes_iv": Field(kind="bool"),
    "clone": Field(kind="bool"),
    "releases_plaintext": Field(kind="bool", optional=True),
    "key_lens": Field(kind="int", many=True, min_num=1, least=0, optional=True),
    "directions": Field(kind="str", many=True, min_num=1, allowed=_DIRECTIONS, optional=True),
    "iv_lens": Field(kind="int", many=True, min_num=1, least=1, optional=True),
    "tag_lens": Field(kind="int", many=True, min_num=1, least=1, optional=True),
    "split": Field(kind="str", allowed=("byte", "block", "none"), optional=True),
    "min_len": Field(kind="int", least=0, optional=True),
    "max_len": Field(kind="int", least=1, optional=True),
    "max_aad_len": Field(kind="int", least=1, optional=True),
    "empty": Field(kind="bool", optional=True),
    "equal_keys": Field(kind="bool", optional=True),
    "always_policies": Field(kind="str", many=True, allowed=_POLICIES, optional=True),
    "reinit": Field(kind="bool", optional=True),
    "in_place": Field(kind="bool", optional=True),
    "optional": Field(kind="bool", optional=True),
}


def subfolders(parent: Path) -> list[Path]:
    """Return the folders in ``parent`` by name, hidden ones and caches apart; raises ``BadInput`` where it is none."""
    try:
        entries = sorted(parent.iterdir())
    except OSError as error:
        raise BadInput(f"{shown(parent)}: no such folder ({error.strerror}); create it or name another") from None
    return [entry for entry in entries if entry.is_dir() and entry.name not in _NOT_CONTENT and entry.name[:1] != "."]


def require_file(path: Path, why: str) -> Path:
    """Return ``path``; raises ``BadInput`` where it is no plain file, with the reason and what to do."""
    if not path.is_file():
        raise BadInput(f"{shown(path)}: the file is missing; {why}")
    return path


def _read_named(folder: Path, file_name: str, fields: dict[str, Field]) -> tuple[Path, dict[str, Any]]:
    """Read metadata whose ``name`` must be the folder's."""
    path = require_file(folder / file_name, f"add it or remove the folder {folder.name}")
    values = read_fields(path, read_toml(path), fields)
    if values["name"] != folder.name:
        raise BadInput(
            f"{shown(path)}: name is {values['name']!r}; allowed is its folder's name, {folder.name!r}; rename one"
        )
    return path, values


def read_cipher(folder: Path) -> Cipher:
    """Read ``cipher.toml``; raises ``BadInput``."""
    path, values = _read_named(folder, "cipher.toml", _CIPHER_FIELDS)
    lens = {len(key) // 2 for key in values.get("weak_keys", ())}
    if len(lens) > 1 or any(key_len % part for part in lens for key_len in values["key_lens"]):
        raise BadInput(
            f"{shown(path)}: weak_keys have {', '.join(map(str, sorted(lens)))} bytes; all have the length of one part "
            f"of a key, of which key_lens {', '.join(map(str, values['key_lens']))} are multiples; correct them"
        )
    if values.get("ignored_bits", 1) > 0xFF:
        raise BadInput(f"{shown(path)}: ignored_bits is {values['ignored_bits']}; allowed are bits of a byte, 1 to 255")
    return Cipher(folder=folder, **values)


def read_mode(folder: Path) -> Mode:
    """Read ``mode.toml`` and see that the C code and the Python reference lie beside it; raises ``BadInput``."""
    path, values = _read_named(folder, "mode.toml", _MODE_FIELDS)
    name = folder.name
    require_file(folder / f"{name}.c", f"a mode needs its portable C code, which defines subject_mode_{name}")
    require_file(folder / "reference.py", "a mode needs a readable Python reference")
    if (values["iv"] == "none") != (not values["iv_lens"]):
        raise BadInput(
            f"{shown(path)}: iv is {values['iv']!r} but iv_lens is {list(values['iv_lens'])}; "
            'a mode without iv has iv = "none" and iv_lens = [], every other mode names its lengths'
        )
    return Mode(folder=folder, **values)


def read_implementation(
    folder: Path, *, cipher: str | None, origin: str, modes: Sequence[str], ciphers: Sequence[str] = ()
) -> Implementation:
    """Read ``impl.toml`` and see that its sources exist.

    ``cipher`` is known from the folder above, or ``None`` where the file names one of ``ciphers`` itself. ``origin``
    is ``own`` or the third-party folder. Raises ``BadInput``.
    """
    path = require_file(folder / "impl.toml", f"add it, with sources, or remove the folder {folder.name}")
    fields = dict(_IMPL_FIELDS)
    if cipher is None:
        fields = {"cipher": Field(kind="str", allowed=tuple(ciphers)), **fields}
    values = read_fields(path, read_toml(path), fields)
    cipher = values.pop("cipher", cipher)
    if not re.fullmatch(WORD_PATTERN, folder.name):
        raise BadInput(
            f"{shown(folder)}: the folder's name is part of the getter's; rename it to the form {WORD_PATTERN}"
        )
    _check_features(path, values["isa"], values["features"])
    for mode in values["fused"]:
        if mode not in modes:
            raise BadInput(f"{shown(path)}: fused has {mode!r}; allowed are the modes {', '.join(modes)}")
    names = values.pop("sources")
    sources = tuple(
        require_file(folder / name, f"{shown(path)} lists it; add the file or remove the entry") for name in names
    )
    if not any(source.suffix in CODE_SUFFIXES for source in sources):
        raise BadInput(f"{shown(path)}: sources has only headers; list a file that ends in .c or .S")
    return Implementation(
        cipher=str(cipher), symbol=f"{cipher}_{folder.name}", sources=sources, folder=folder, origin=origin, **values
    )


def read_provider(folder: Path, *, ciphers: Sequence[Cipher], modes: Sequence[Mode]) -> Provider:
    """Read ``provider.toml`` and see that its sources exist and that its domains lie within ours.

    Raises ``BadInput``.
    """
    path = require_file(folder / "provider.toml", f"add it, with an adapter, or remove the folder {folder.name}")
    content = read_toml(path)
    cipher_tables, algorithms = content.pop("cipher", {}), content.pop("algorithm", [])
    releases = _read_releases(path, content.pop("release", []))
    backends = _read_backends(path, content.pop("backend", {}))
    values = read_fields(path, content, _PROVIDER_FIELDS)
    if values["name"] != folder.name:
        raise BadInput(
            f"{shown(path)}: name is {values['name']!r}; allowed is its folder's name, {folder.name!r}; rename one"
        )
    if ("modules_variable" in values) is not ("modules_folders" in values):
        raise BadInput(f"{shown(path)}: modules_variable and modules_folders go together; add the other one")
    if not isinstance(cipher_tables, dict) or not isinstance(algorithms, list) or not algorithms:
        raise BadInput(
            f"{shown(path)}: the domain is missing; add a table [[algorithm]] for each mode that the library has, and "
            "[cipher.NAME] where it takes less of a cipher than others"
        )
    limits = _read_cipher_limits(path, cipher_tables, ciphers)
    domains = [
        domain for table in algorithms for domain in _read_domains(path, table, limits, ciphers=ciphers, modes=modes)
    ]
    named = [(domain.mode, domain.cipher) for domain in domains]
    for mode, cipher in named:
        if named.count((mode, cipher)) > 1:
            raise BadInput(f"{shown(path)}: {mode}({cipher}) stands in two tables [[algorithm]]; remove it from one")
    names = values.pop("sources")
    sources = tuple(
        require_file(folder / name, f"{shown(path)} lists it; add the file or remove the entry") for name in names
    )
    ordered = tuple(sorted(domains, key=lambda domain: (domain.mode, domain.cipher)))
    provider = Provider(folder=folder, sources=sources, domains=ordered, backends=backends, **values)
    return replace(provider, others=tuple(replace(provider, **{"includes": (), **release}) for release in releases))


def _read_releases(path: Path, tables: Any) -> list[dict[str, Any]]:
    """The tables [[release]]: how other releases name the same library."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise BadInput(f"{shown(path)}: release holds {tables!r}; write each as a table [[release]]")
    return [read_fields(path, table, _RELEASE_FIELDS, where="[[release]]") for table in tables]


def _read_backends(path: Path, tables: Any) -> tuple[Backend, ...]:
    """The tables [backend.NAME], by name."""
    if not isinstance(tables, dict):
        raise BadInput(f"{shown(path)}: backend holds {tables!r}; write each as a table [backend.NAME]")
    found = []
    for name, table in sorted(tables.items()):
        where = f"[backend.{name}]"
        if not re.fullmatch(WORD_PATTERN, name) or not isinstance(table, dict):
            raise BadInput(f"{shown(path)}: {where}: is no backend; allowed are tables whose names are of a-z 0-9 _")
        values = read_fields(path, table, _BACKEND_FIELDS, where=where)
        if not values.get("environment") and not values.get("cpu"):
            raise BadInput(f"{shown(path)}: {where}: has no switch; give it an environment, a cpu, or both")
        found.append(Backend(name=name, **values))
    return tuple(found)


def _read_cipher_limits(path: Path, tables: dict[str, Any], ciphers: Sequence[Cipher]) -> dict[str, dict[str, Any]]:
    """The tables [cipher.NAME]: by cipher, what the library takes of it."""
    limits: dict[str, dict[str, Any]] = {}
    known = {cipher.name: cipher for cipher in ciphers}
    for name, table in tables.items():
        where = f"[cipher.{name}]"
        if name not in known or not isinstance(table, dict):
            raise BadInput(f"{shown(path)}: {where}: no such cipher; allowed are {', '.join(known)}; rename the table")
        limits[name] = read_fields(path, table, _PROVIDER_CIPHER_FIELDS, where=where)
        place = f"{shown(path)}: {where}: "
        _require_within(f"{place}key_lens", limits[name].get("key_lens", ()), known[name].key_lens)
        _require_within(f"{place}policies", limits[name].get("policies", ()), known[name].policies)
    return limits


def _require_within(place: str, values: Sequence[object], allowed: Sequence[object]) -> None:
    for value in values:
        if value not in allowed:
            raise BadInput(f"{place} has {value!r}; allowed are {', '.join(map(str, allowed)) or 'none'}; correct it")


def _read_domains(
    path: Path, table: Any, limits: dict[str, dict[str, Any]], *, ciphers: Sequence[Cipher], modes: Sequence[Mode]
) -> list[Domain]:
    """One table [[algorithm]]: a domain for each of its ciphers."""
    if not isinstance(table, dict):
        raise BadInput(f"{shown(path)}: algorithm holds {table!r}; write each as a table [[algorithm]]")
    where = f"[[algorithm]] {table.get('mode', '')}"
    values = read_fields(path, table, _DOMAIN_FIELDS, where=where)
    place = f"{shown(path)}: {where}: "
    known_modes, known_ciphers = {mode.name: mode for mode in modes}, {cipher.name: cipher for cipher in ciphers}
    _require_within(f"{place}mode", [values["mode"]], list(known_modes))
    _require_within(f"{place}ciphers", values["ciphers"], list(known_ciphers))
    mode = known_modes[values.pop("mode")]
    domains = []
    for name in values.pop("ciphers"):
        cipher = known_ciphers[name]
        if cipher.block_len not in mode.block_lens:
            raise BadInput(
                f"{place}ciphers has {name!r}, whose blocks have {cipher.block_len} bytes; {mode.name} allows "
                f"{', '.join(map(str, mode.block_lens))}; remove it"
            )
        domains.append(_domain(place, mode, cipher, values, limits.get(name, {})))
    return domains


def _domain(place: str, mode: Mode, cipher: Cipher, values: dict[str, Any], limit: dict[str, Any]) -> Domain:
    """A domain from what a table says and, where it says nothing, from mode and cipher."""
    ours: dict[str, Any] = {
        "key_lens": limit.get("key_lens", cipher.key_lens),
        "directions": mode.directions,
        "iv_lens": tuple(length or cipher.block_len for length in mode.iv_lens),
        "tag_lens": tuple(length or cipher.block_len for length in mode.tag_lens),
        "split": mode.split,
        "min_len": mode.min_len_blocks * cipher.block_len,
        "max_len": 0,
        "max_aad_len": 0,
        "empty": mode.min_len_blocks == 0,
        "equal_keys": True,
        "always_policies": (),
        "reinit": True,
        "in_place": True,
        "optional": limit.get("optional", False),
        "releases_plaintext": False,
    }
    _check_domain(place, mode, values, ours)
    merged = {**ours, **values}
    # A length that is ours but not the library's would be refused by one of the two alone.
    alike = {
        kind: set(merged[f"{kind}_lens"]) == set(ours_whole)
        for kind, ours_whole in (("key", cipher.key_lens), ("iv", ours["iv_lens"]), ("tag", ours["tag_lens"]))
    }
    alike["key"] &= limit.get("refuses_keys", True)
    merged["refusals"] = tuple(kind for kind in merged["refusals"] if alike.get(kind, True))
    merged["always_policies"] = tuple(name for name in merged["always_policies"] if name in cipher.policies)
    return Domain(mode=mode.name, cipher=cipher.name, policies=limit.get("policies", ()), **merged)


def _check_domain(place: str, mode: Mode, values: dict[str, Any], ours: dict[str, Any]) -> None:
    for key in ("key_lens", "directions", "iv_lens", "tag_lens"):
        _require_within(f"{place}{key}", values.get(key, ()), ours[key])
    if mode.aad and "releases_plaintext" not in values:
        raise BadInput(
            f"{place}the key 'releases_plaintext' is missing; add it (true or false), since {mode.name} compares tags"
        )
    finer = ("none", "block", "byte")
    if finer.index(values.get("split", "none")) > finer.index(mode.split):
        raise BadInput(f"{place}split is {values['split']!r}, finer than the mode's own; allowed is {mode.split!r}")


def _check_features(path: Path, isa: str, features: Sequence[str]) -> None:
    allowed = FEATURES[isa]
    for feature in features:
        if feature not in allowed:
            kinds = f"for isa {isa!r} are {', '.join(allowed)}" if allowed else "are none, because isa is 'any'"
            raise BadInput(f"{shown(path)}: features has {feature!r}; allowed {kinds}; correct features or isa")


def check_third_party(folder: Path) -> None:
    """Raise ``BadInput`` for what a third party may not bring: Python, and links that lead out of the folder."""
    for entry in sorted(folder.rglob("*")):
        if entry.is_symlink():
            raise BadInput(f"{shown(entry)}: is a link; a folder given with --impls holds plain files, copy the target")
        if entry.suffix in (".py", ".pyc", ".pth"):
            raise BadInput(f"{shown(entry)}: a folder given with --impls brings no Python; remove the file")
