# SPDX-License-Identifier: Apache-2.0
"""Published vectors (``corpora/vectors``) and the register of sources (``corpora/SOURCES.toml``).

The loader is strict: whatever it does not know or cannot reconcile is a ``BadInput`` that names file and line. What
the fields mean is said once, in ``corpora/schemas/vectors.schema.json``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, cast

from crosslane._json_lines import Node, read_json
from crosslane._sources import Fact, Origin, SourceFile, Sources, check_sources, load_sources
from crosslane._vector_fields import Fields, bad_line
from crosslane.data import shown
from crosslane.errors import BadInput

__all__ = [
    "SCHEMA_VERSION",
    "Fact",
    "MonteCarlo",
    "MonteCarloRound",
    "Origin",
    "SourceFile",
    "Sources",
    "Vector",
    "VectorFile",
    "VectorGroup",
    "check_sources",
    "load_sources",
    "load_vector_file",
    "load_vectors",
]

SCHEMA_VERSION = 1

_ALGORITHM = re.compile(r"[a-z0-9_]+\([a-z0-9_]+\)")
_KINDS = ("message", "monte_carlo", "maintenance")
_DIRECTIONS = ("both", "encrypt", "decrypt")
_MAX_MESSAGE_LEN = 1 << 24


@dataclass(frozen=True)
class MonteCarloRound:
    """One published round, number ``index`` (from 0): its key, input and output, in bytes.

    Of a mode with an iv a round is one message of ``num_inner`` updates: the first takes ``input``, the second the iv,
    each further one the output of the update before the last. ``output`` is that of the last update, ``before`` that of
    the one before it (empty: not published).
    """

    index: int
    key: bytes
    input: bytes
    output: bytes
    iv: bytes = b""
    before: bytes = b""


@dataclass(frozen=True)
class MonteCarlo:
    """What a ``monte_carlo`` vector has beyond its first input and last output; the schema gives the procedure.

    ``num_outer`` is the number of rounds, ``num_inner`` that of block operations a round; ``rounds`` are the first, the
    last and some between, by index.
    """

    num_outer: int
    num_inner: int
    rounds: tuple[MonteCarloRound, ...]

    @property
    def with_iv(self) -> bool:
        """Whether the rounds are messages of dependent updates under an iv."""
        return bool(self.rounds[0].iv)


@dataclass(frozen=True)
class Vector:
    """A case with a published answer. Byte strings are empty where the vector has no such field.

    ``line`` (from 1) is where it starts in its file. ``kind`` says which procedure leads from ``plaintext`` to
    ``ciphertext``: ``message`` (``iterations`` encryptions on top of each other under one key), ``maintenance`` (RFC
    2144 B.2: starts with ``plaintext`` and ``key``, ends with ``ciphertext`` and ``final_key``) or ``monte_carlo``
    (``monte_carlo`` is set; run in ``direction``, ``plaintext`` or, when decrypting, ``ciphertext`` is the first
    round's input, and the other the last round's output). ``plaintext`` and ``aad`` are whole, repetitions included.
    ``expect`` is ``bad_tag`` where decryption must be refused.
    """

    id: str
    line: int
    kind: Literal["message", "monte_carlo", "maintenance"]
    key: bytes
    iv: bytes
    aad: bytes
    plaintext: bytes
    ciphertext: bytes
    tag: bytes
    direction: Literal["both", "encrypt", "decrypt"]
    expect: Literal["ok", "bad_tag"]
    iterations: int
    final_key: bytes
    monte_carlo: MonteCarlo | None


@dataclass(frozen=True)
class VectorGroup:
    """Vectors that stand together in the source, with the place (section, page, file) where they stand."""

    locator: str
    notes: tuple[str, ...]
    line: int
    vectors: tuple[Vector, ...]


@dataclass(frozen=True)
class VectorFile:
    """All vectors of one algorithm (``ecb(sm4)``) from one source."""

    path: Path
    source: str
    algorithm: str
    notes: tuple[str, ...]
    groups: tuple[VectorGroup, ...]

    @property
    def vectors(self) -> tuple[Vector, ...]:
        """The vectors of all groups, in the order of the file."""
        return tuple(vector for group in self.groups for vector in group.vectors)


def load_vectors(root: Path) -> tuple[VectorFile, ...]:
    """Loads ``<root>/<source>/*.json``, sorted by path; ``BadInput`` at the first departure from the schema.

    ``root`` is the folder of vectors, ``corpora/vectors`` in a checkout.
    """
    if not root.is_dir():
        raise BadInput(f"{shown(root)}: there is no such folder of vectors; name one that holds <source>/*.json")
    for path in sorted(root.rglob("*")):
        if path.is_file() and (path.suffix != ".json" or path.parent.parent != root):
            sentence = f"only files <source>/<name>.json are allowed under {shown(root)}; move or remove it"
            raise BadInput(f"{shown(path)}: {sentence}")
    return tuple(load_vector_file(path) for path in sorted(root.glob("*/*.json")))


def load_vector_file(path: Path) -> VectorFile:
    """Loads one file of vectors; ``BadInput`` names file, line and what is allowed."""
    fields = Fields(path, read_json(path), "the file", "version source algorithm notes num_vectors groups")
    if fields.count("version") != SCHEMA_VERSION:
        raise fields.bad("version", f"'version' is {fields.count('version')}; allowed is {SCHEMA_VERSION}; convert it")
    source = fields.name("source")
    if source != path.parent.name:
        raise fields.bad("source", f"'source' is {source!r}; allowed is the folder's name {path.parent.name!r}; rename")
    algorithm = fields.text("algorithm")
    if not _ALGORITHM.fullmatch(algorithm):
        raise fields.bad("algorithm", f"'algorithm' is {algorithm!r}; allowed is a mode of a cipher such as ecb(sm4)")
    groups = fields.items("groups", lambda node: _group(path, node))
    vectors = [vector for group in groups for vector in group.vectors]
    if fields.count("num_vectors") != len(vectors):
        found = f"'num_vectors' is {fields.count('num_vectors')} but the file has {len(vectors)} vectors"
        raise fields.bad("num_vectors", f"{found}; the two must agree, correct the count or restore the vectors")
    _check_ids(path, vectors)
    return VectorFile(path=path, source=source, algorithm=algorithm, notes=fields.texts("notes"), groups=groups)


def _check_ids(path: Path, vectors: list[Vector]) -> None:
    seen: dict[str, int] = {}
    for vector in vectors:
        if vector.id in seen:
            sentence = f"the id {vector.id!r} was given at line {seen[vector.id]} already; ids are unique in a file"
            raise bad_line(path, vector.line, f"{sentence}, rename one")
        seen[vector.id] = vector.line


def _group(path: Path, node: Node) -> VectorGroup:
    fields = Fields(path, node, "a group", "locator vectors", "notes")
    vectors = fields.items("vectors", lambda item: _vector(path, item))
    return VectorGroup(fields.text("locator"), fields.texts("notes"), node.line, vectors)


def _vector(path: Path, node: Node) -> Vector:
    kind = "message"
    if isinstance(node.value, dict) and "kind" in node.value:
        kind = Fields(path, node, "a vector", "kind", " ".join(node.value)).choice("kind", _KINDS)
    if kind == "monte_carlo":
        return _monte_carlo(path, node)
    if kind == "maintenance":
        return _maintenance(path, node)
    return _message(path, node)


def _message(path: Path, node: Node) -> Vector:
    optional = "kind iv aad ciphertext tag direction iterations data_repeat aad_repeat expect"
    fields = Fields(path, node, "a message vector", "id key plaintext", optional)
    if "ciphertext" not in fields and "tag" not in fields:
        raise bad_line(path, node.line, "a message vector needs 'ciphertext', 'tag' or both; add what is published")
    plaintext = _repeated(fields, "plaintext", "data_repeat")
    iterations = fields.count("iterations", 1)
    if iterations > 1 and any(name in fields for name in ("iv", "aad", "tag")):
        raise fields.bad("iterations", "'iterations' is allowed only without 'iv', 'aad' and 'tag'; remove one of them")
    vector = Vector(
        id=fields.name("id"),
        line=node.line,
        kind="message",
        key=fields.hex("key"),
        iv=fields.hex("iv"),
        aad=_repeated(fields, "aad", "aad_repeat"),
        plaintext=plaintext,
        ciphertext=fields.hex("ciphertext"),
        tag=fields.hex("tag"),
        direction=cast(Literal["both", "encrypt", "decrypt"], fields.choice("direction", _DIRECTIONS, "both")),
        expect=cast(Literal["ok", "bad_tag"], fields.choice("expect", ("ok", "bad_tag"), "ok")),
        iterations=iterations,
        final_key=b"",
        monte_carlo=None,
    )
    _check_message(fields, vector)
    return vector


def _repeated(fields: Fields, name: str, times: str) -> bytes:
    value = fields.hex(name)
    repeat = fields.count(times, 1)
    if len(value) * repeat > _MAX_MESSAGE_LEN:
        sentence = f"{name!r} repeated {repeat} times has {len(value) * repeat} bytes"
        raise fields.bad(times, f"{sentence}; at most {_MAX_MESSAGE_LEN} are allowed, lower it")
    return value * repeat


def _check_message(fields: Fields, vector: Vector) -> None:
    """Refuses lengths and settings that contradict one another."""
    if "tag" in fields and not vector.tag:
        raise fields.bad("tag", "'tag' is empty; at least one byte is needed, give the tag or remove the field")
    if vector.expect == "bad_tag":
        if vector.plaintext or vector.direction != "decrypt" or not ("ciphertext" in fields and vector.tag):
            needs = "an empty 'plaintext', 'ciphertext', 'tag' and 'direction': 'decrypt'"
            raise fields.bad("expect", f"'expect': 'bad_tag' needs {needs}; give them so")
    elif "ciphertext" in fields:
        _same_length(fields, "ciphertext", vector.ciphertext, "the message", vector.plaintext)


def _same_length(fields: Fields, name: str, value: bytes, other_name: str, other: bytes) -> None:
    if len(value) != len(other):
        sentence = f"{name!r} has {len(value)} bytes but {other_name} has {len(other)}"
        raise fields.bad(name, f"{sentence}; both must be equally long, correct one of them")


def _maintenance(path: Path, node: Node) -> Vector:
    needed = "kind id key plaintext iterations ciphertext final_key"
    fields = Fields(path, node, "a maintenance vector", needed)
    values = {name: fields.hex(name) for name in ("key", "plaintext", "ciphertext", "final_key")}
    for name, value in values.items():
        if len(value) != 16:
            raise fields.bad(name, f"{name!r} has {len(value)} bytes; allowed are 16, correct it")
    return Vector(
        id=fields.name("id"),
        line=node.line,
        kind="maintenance",
        key=values["key"],
        iv=b"",
        aad=b"",
        plaintext=values["plaintext"],
        ciphertext=values["ciphertext"],
        tag=b"",
        direction="encrypt",
        expect="ok",
        iterations=fields.count("iterations"),
        final_key=values["final_key"],
        monte_carlo=None,
    )


def _monte_carlo(path: Path, node: Node) -> Vector:
    needed = "kind id direction num_outer num_inner rounds"
    fields = Fields(path, node, "a monte_carlo vector", needed)
    direction = fields.choice("direction", ("encrypt", "decrypt"))
    num_outer = fields.count("num_outer")
    rounds = fields.items("rounds", lambda item: _round(path, item))
    _check_rounds(fields, rounds, num_outer)
    first, last = rounds[0], rounds[-1]
    return Vector(
        id=fields.name("id"),
        line=node.line,
        kind="monte_carlo",
        key=first.key,
        iv=b"",
        aad=b"",
        plaintext=first.input if direction == "encrypt" else last.output,
        ciphertext=last.output if direction == "encrypt" else first.input,
        tag=b"",
        direction=cast(Literal["encrypt", "decrypt"], direction),
        expect="ok",
        iterations=1,
        final_key=b"",
        monte_carlo=MonteCarlo(
            num_outer=num_outer,
            num_inner=fields.count("num_inner", least=2),
            rounds=rounds,
        ),
    )


def _round(path: Path, node: Node) -> MonteCarloRound:
    fields = Fields(path, node, "a round", "index key input output")
    key, first, output = fields.hex("key"), fields.hex("input"), fields.hex("output")
    _same_length(fields, "output", output, "'input'", first)
    if not 0 < len(key) <= 2 * len(first):
        sentence = f"'key' has {len(key)} bytes; allowed are 1 to {2 * len(first)}, twice the length of 'input'"
        raise fields.bad("key", f"{sentence}; correct it")
    return MonteCarloRound(fields.count("index", least=0), key, first, output)


def _check_rounds(fields: Fields, rounds: tuple[MonteCarloRound, ...], num_outer: int) -> None:
    indices = [item.index for item in rounds]
    if indices != sorted(set(indices)) or indices[0] != 0 or indices[-1] != num_outer - 1:
        needs = f"rise from 0 to num_outer - 1 = {num_outer - 1}"
        raise fields.bad("rounds", f"'rounds' have the indices {indices}; they must {needs}; correct them")
    if len({(len(item.key), len(item.input)) for item in rounds}) > 1:
        raise fields.bad("rounds", "'rounds' have keys or inputs of several lengths; one is allowed, correct them")
    for before, item in pairwise(rounds):
        if item.index == before.index + 1 and item.input != before.output:
            sentence = f"the input of round {item.index} is not the output of round {before.index}"
            raise fields.bad("rounds", f"{sentence}; it must be, correct one of them")
