# SPDX-License-Identifier: Apache-2.0
"""The schemas of ``cipher.toml``, ``mode.toml`` and ``impl.toml``, and their agreement with the folder around them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosslane.data import shown
from crosslane.errors import BadInput
from crosslane.isa import FEATURES
from crosslane.model import Cipher, Implementation, Mode
from crosslane.names import DRIVER_PATTERN, WORD_PATTERN
from crosslane.tomlread import Field, read_fields, read_toml

__all__ = [
    "CODE_SUFFIXES",
    "SOURCE_SUFFIXES",
    "check_third_party",
    "read_cipher",
    "read_implementation",
    "read_mode",
    "require_file",
    "subfolders",
]

CODE_SUFFIXES = (".c", ".S")
SOURCE_SUFFIXES = (".c", ".S", ".h")
_BLOCK_LENS = (8, 16)
_NOT_CONTENT = ("__pycache__",)
_TEXT = Field(kind="str", pattern=r"\S[^\n]*")

_CIPHER_FIELDS = {
    "name": Field(kind="str", pattern=WORD_PATTERN),
    "title": _TEXT,
    "standard": _TEXT,
    "block_len": Field(kind="int", allowed=_BLOCK_LENS),
    "key_lens": Field(kind="int", many=True, min_num=1, least=0),
    "policies": Field(kind="str", many=True, allowed=("degenerate", "weak_subkey")),
}

_MODE_FIELDS = {
    "name": Field(kind="str", pattern=WORD_PATTERN),
    "title": _TEXT,
    "standard": _TEXT,
    "split": Field(kind="str", allowed=("byte", "block", "none")),
    "serial": Field(kind="bool"),
    "partial": Field(kind="str", allowed=("refused", "anywhere", "stealing")),
    "min_len_blocks": Field(kind="int", least=0),
    "iv": Field(kind="str", allowed=("none", "random", "counter", "index", "tweak", "nonce")),
    "iv_lens": Field(kind="int", many=True, least=0),
    "iv_out": Field(kind="str", allowed=("none", "next", "next_whole")),
    "directions": Field(kind="str", many=True, min_num=1, allowed=("encrypt", "decrypt")),
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
    "sources": Field(kind="str", many=True, min_num=1, pattern=r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.(c|S|h)"),
    "fused": Field(kind="str", many=True),
    "paths": Field(kind="str", many=True, min_num=1, pattern=f"({WORD_PATTERN}:)?{WORD_PATTERN}"),
    "constant_time": Field(kind="bool"),
    "description": _TEXT,
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
    _, values = _read_named(folder, "cipher.toml", _CIPHER_FIELDS)
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
