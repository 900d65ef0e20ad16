# SPDX-License-Identifier: Apache-2.0
"""All vectors that a run judges by: those of ``corpora`` and those of the installed test packages."""

from __future__ import annotations

from crosslane.corpora import VectorFile, load_vectors
from crosslane.data import shown
from crosslane.errors import BadInput
from crosslane.importers.installed import imported_files
from crosslane.model import Registry
from crosslane.names import parse_algorithm

__all__ = ["all_vectors"]

_NOT_INSTALLED = "not installed"


def all_vectors(registry: Registry, *, imported: bool = True) -> tuple[tuple[VectorFile, ...], tuple[str, ...]]:
    """The vectors, and a note on each package that would bring more; raises BadInput for a damaged file.

    Without ``imported`` only ``corpora/vectors`` is read, which is quicker.
    """
    own = load_vectors(registry.root / "corpora" / "vectors")
    for file in own:
        _check_file(registry, file)
    if not imported:
        return own, ("only the vectors of corpora were judged by: leave --vectors away for all",)
    more = imported_files()
    missing = [item for item in more.not_applied if item.reason.startswith(_NOT_INSTALLED)]
    return own + tuple(more.files), tuple(f"vectors of {item.path.name}: {item.reason}" for item in missing)


def _check_file(registry: Registry, file: VectorFile) -> None:
    """A vector that no session can hold would never be run, or would blame an implementation for refusing it."""
    algorithm = parse_algorithm(file.algorithm)
    modes = {mode.name: mode for mode in registry.modes}
    ciphers = {cipher.name: cipher for cipher in registry.ciphers}
    if algorithm.mode not in modes or algorithm.cipher not in ciphers:
        raise BadInput(
            f"{shown(file.path)}: there is no algorithm {file.algorithm}; modes are {', '.join(modes)}, ciphers "
            f"{', '.join(ciphers)}; correct the name"
        )
    mode, cipher = modes[algorithm.mode], ciphers[algorithm.cipher]
    key_lens = sorted(length * mode.num_keys + mode.key_extra_len for length in cipher.key_lens)
    tag_lens = sorted({length or cipher.block_len for length in mode.tag_lens})
    for vector in file.vectors:
        if len(vector.key) not in key_lens:
            raise BadInput(
                f"{shown(file.path)}:{vector.line}: the key of {vector.id} has {len(vector.key)} bytes; "
                f"{file.algorithm} takes {', '.join(map(str, key_lens))}; correct it"
            )
        if vector.tag and len(vector.tag) not in tag_lens:
            raise BadInput(
                f"{shown(file.path)}:{vector.line}: the tag of {vector.id} has {len(vector.tag)} bytes; "
                f"{file.algorithm} gives {', '.join(map(str, tag_lens)) or 'none'}; correct it"
            )
