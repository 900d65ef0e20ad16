# SPDX-License-Identifier: Apache-2.0
"""What an importer gives: vectors in the model of ``corpora``, and what does not apply, by name and reason."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crosslane._vector_fields import bad_line
from crosslane.corpora import MonteCarlo, Vector, VectorFile, VectorGroup
from crosslane.data import shown
from crosslane.errors import BadInput

__all__ = [
    "CUT_MAC",
    "WRONG_MAC",
    "Collector",
    "Imported",
    "NotApplied",
    "Place",
    "Use",
    "hex_bytes",
    "merged",
    "message",
    "monte_carlo",
    "read_text",
    "source_name",
    "unfit",
    "whole_file",
]

Use = Literal["both", "encrypt", "decrypt", "bad_tag"]

WRONG_MAC = "a wrong MAC: the suite's MAC modes compute, they do not verify"
CUT_MAC = "a MAC cut to less than a block, which the suite's MAC modes do not give"

_NOT_HEX = re.compile("[^0-9a-fA-F]")
_NOT_A_NAME = re.compile("[^a-z0-9_.-]+")
_XTS_KEYS = 2
_LRW_TWEAK_KEY_LEN = 16

# Block length and key lengths in bytes, by the suite's name of the cipher.
_CIPHERS: dict[str, tuple[int, frozenset[int]]] = {
    "aes": (16, frozenset((16, 24, 32))),
    "cast5": (8, frozenset(range(5, 17))),
    "des3_ede": (8, frozenset((24,))),
    "serpent": (16, frozenset(range(33))),
    "sm4": (16, frozenset((16,))),
    "twofish": (16, frozenset((16, 24, 32))),
}
_WHOLE_BLOCKS = frozenset(("ecb", "cbc", "lrw"))
_AT_LEAST_A_BLOCK = frozenset(("xts", "cts_cbc"))
_NO_IV = frozenset(("ecb", "cmac", "cbcmac", "xcbc"))
_MACS = frozenset(("cmac", "cbcmac", "xcbc"))
_GCM_TAG_LENS = frozenset((4, 8, 12, 13, 14, 15, 16))
_CCM_TAG_LENS = frozenset((4, 6, 8, 10, 12, 14, 16))
_CCM_IV_LENS = frozenset(range(7, 14))


@dataclass(frozen=True)
class NotApplied:
    """A file, or ``num_vectors`` vectors of it (0: the file as a whole), that the suite does not run, and why."""

    path: Path
    reason: str
    num_vectors: int = 0


@dataclass(frozen=True)
class Imported:
    """The vectors of some files, one ``VectorFile`` for each algorithm of each file, and what does not apply.

    ``id`` and ``line`` of a vector are those of its place in the imported file; ``source`` names the file.
    """

    files: tuple[VectorFile, ...]
    not_applied: tuple[NotApplied, ...]

    @property
    def num_vectors(self) -> int:
        """Vectors in all files; a Monte Carlo test counts as one."""
        return sum(len(group.vectors) for file in self.files for group in file.groups)


@dataclass(frozen=True)
class Place:
    """Where a vector stands: its id, unique in the file, and its first line (from 1)."""

    id: str
    line: int


class Collector:
    """Gathers the vectors of one file by algorithm and group, in the order in which they come."""

    def __init__(self, path: Path, source: str) -> None:
        self._path = path
        self._source = source
        self._files: dict[str, dict[str, list[Vector]]] = {}
        self._refused: dict[str, int] = {}

    def add(self, algorithm: str, locator: str, vector: Vector) -> None:
        """Keep a vector of ``algorithm``; vectors of one ``locator`` are a group."""
        self._files.setdefault(algorithm, {}).setdefault(locator, []).append(vector)

    def refuse(self, reason: str, num_vectors: int = 1) -> None:
        """Count vectors that do not apply, by their reason."""
        self._refused[reason] = self._refused.get(reason, 0) + num_vectors

    def result(self) -> Imported:
        """All that was gathered; a file without a single vector is ``BadInput``."""
        if not self._files and not self._refused:
            sentence = "there is no vector in the file; at least one is expected, restore it"
            raise BadInput(f"{shown(self._path)}: {sentence}")
        files = tuple(
            VectorFile(
                path=self._path,
                source=self._source,
                algorithm=algorithm,
                notes=(),
                groups=tuple(
                    VectorGroup(locator, (), vectors[0].line, tuple(vectors)) for locator, vectors in groups.items()
                ),
            )
            for algorithm, groups in self._files.items()
        )
        refused = tuple(NotApplied(self._path, reason, count) for reason, count in self._refused.items())
        return Imported(files, refused)


def whole_file(path: Path, reason: str) -> Imported:
    """A file of which nothing applies."""
    return Imported((), (NotApplied(path, reason),))


def merged(parts: Iterable[Imported]) -> Imported:
    """Several results as one, in their order."""
    kept = tuple(parts)
    return Imported(
        tuple(file for part in kept for file in part.files), tuple(row for part in kept for row in part.not_applied)
    )


def source_name(path: Path) -> str:
    """A name for a file as ``VectorFile.source`` allows it: lower case, folders joined by dots."""
    joined = ".".join(path.parts).lower()
    return _NOT_A_NAME.sub("_", joined).strip("_.-") or "file"


def read_text(path: Path) -> str:
    """The file as ASCII; ``BadInput`` names the line of any other byte."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{shown(path)}: cannot be read ({error.strerror}); make it readable") from error
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise bad_line(path, line, f"byte 0x{data[error.start]:02x} is not ASCII; only ASCII is allowed") from error


def hex_bytes(path: Path, line: int, name: str, value: str) -> bytes:
    """Bytes from hex digits of either case; ``BadInput`` names file and line of a wrong or odd digit."""
    try:
        data = bytes.fromhex(value)
    except ValueError:
        data = b""
    if 2 * len(data) == len(value):
        return data
    wrong = _NOT_HEX.search(value)
    if wrong is not None:
        sentence = (
            f"{name!r} has {wrong.group()!r} as character {wrong.start() + 1}; allowed are hex digits; correct it"
        )
        raise bad_line(path, line, sentence)
    sentence = f"{name!r} has {len(value)} hex digits; allowed is an even number, two for each byte; correct it"
    raise bad_line(path, line, sentence)


def unfit(algorithm: str, vector: Vector) -> str | None:
    """Why the suite's ``algorithm`` cannot take the vector's lengths, or ``None`` where it can."""
    mode, cipher = algorithm.rstrip(")").split("(")
    block_len, key_lens = _CIPHERS[cipher]
    if mode == "xts":
        key_lens = frozenset(_XTS_KEYS * length for length in key_lens)
    elif mode == "lrw":
        key_lens = frozenset(length + _LRW_TWEAK_KEY_LEN for length in key_lens)
    if len(vector.key) not in key_lens:
        return f"a key of {len(vector.key)} bytes, which {algorithm} does not take"
    return _unfit_iv_or_tag(mode, block_len, vector) or _unfit_length(mode, block_len, vector)


def _unfit_iv_or_tag(mode: str, block_len: int, vector: Vector) -> str | None:
    iv_len, tag_len = len(vector.iv), len(vector.tag)
    iv_fits, tag_fits = iv_len == block_len, tag_len == 0
    if mode in _NO_IV:
        iv_fits = iv_len == 0
        tag_fits = tag_len == 0 or (mode in _MACS and tag_len == block_len)
    elif mode == "gcm":
        iv_fits, tag_fits = iv_len > 0, tag_len in _GCM_TAG_LENS
    elif mode == "ccm":
        iv_fits, tag_fits = iv_len in _CCM_IV_LENS, tag_len in _CCM_TAG_LENS
    if not iv_fits:
        return f"an iv of {iv_len} bytes, which {mode} does not take"
    return None if tag_fits else f"a tag of {tag_len} bytes, which {mode} does not take"


def _unfit_length(mode: str, block_len: int, vector: Vector) -> str | None:
    length = max(len(vector.plaintext), len(vector.ciphertext))
    if (mode in _WHOLE_BLOCKS and length % block_len) or (mode in _AT_LEAST_A_BLOCK and length < block_len):
        return f"a message of {length} bytes, which {mode} does not take"
    return None


def message(
    place: Place,
    *,
    key: bytes,
    plaintext: bytes,
    ciphertext: bytes = b"",
    iv: bytes = b"",
    aad: bytes = b"",
    tag: bytes = b"",
    use: Use = "both",
) -> Vector:
    """A vector of one message; with the use ``bad_tag`` decryption must be refused and there is no plaintext."""
    bad_tag = use == "bad_tag"
    return Vector(
        id=place.id,
        line=place.line,
        kind="message",
        key=key,
        iv=iv,
        aad=aad,
        plaintext=b"" if bad_tag else plaintext,
        ciphertext=ciphertext,
        tag=tag,
        direction="decrypt" if use == "bad_tag" else use,
        expect="bad_tag" if bad_tag else "ok",
        iterations=1,
        final_key=b"",
        monte_carlo=None,
    )


def monte_carlo(place: Place, direction: Literal["encrypt", "decrypt"], chain: MonteCarlo) -> Vector:
    """A Monte Carlo test, as ``corpora`` defines the procedure."""
    first, last = chain.rounds[0], chain.rounds[-1]
    return Vector(
        id=place.id,
        line=place.line,
        kind="monte_carlo",
        key=first.key,
        iv=first.iv,
        aad=b"",
        plaintext=first.input if direction == "encrypt" else last.output,
        ciphertext=last.output if direction == "encrypt" else first.input,
        tag=b"",
        direction=direction,
        expect="ok",
        iterations=1,
        final_key=b"",
        monte_carlo=chain,
    )
