# SPDX-License-Identifier: Apache-2.0
"""The messages of ``docs/reference/protocol.md``: what engine and shim say to each other. Pure: no process, no file."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any

import numpy as np

from crosslane.errors import HarnessFault
from crosslane.wire import CASE_RESULT, NUM_CLASSES, Watch

__all__ = [
    "HEADER_LEN",
    "PROTOCOL_VERSION",
    "BulkRequest",
    "Compared",
    "Difference",
    "Digests",
    "Done",
    "Ended",
    "Hello",
    "Kind",
    "LargeRequest",
    "Opened",
    "Reason",
    "RunFlag",
    "Threaded",
    "decode_compared",
    "decode_digests",
    "decode_done",
    "decode_ended",
    "decode_header",
    "decode_hello",
    "decode_opened",
    "decode_threaded",
    "decode_timed",
    "encode_bare",
    "encode_bulk",
    "encode_large",
    "encode_message",
    "encode_open",
    "encode_run",
    "encode_threads",
]

PROTOCOL_VERSION = 1
MAGIC = b"XLNE"
HEADER_LEN = 16
_MAX_PAYLOAD = 1 << 32


class Kind(IntEnum):
    """Message kinds."""

    OPEN = 0x01
    RUN = 0x02
    BARE = 0x03
    THREADS = 0x04
    LARGE = 0x05
    BULK = 0x06
    HELLO = 0x81
    OPENED = 0x82
    DONE = 0x83
    TIMED = 0x84
    ENDED = 0x85
    THREADED = 0x86
    DIGESTS = 0x87
    COMPARED = 0x88
    ERROR = 0xFF


class Difference(IntEnum):
    """What differed between many blocks at once and one at a time."""

    NONE = 0
    STATUS = 1
    OUTPUT = 2
    IV = 3
    TAG = 4


class RunFlag(IntFlag):
    """Flags of RUN."""

    STRICT = 1
    INLINE = 2
    ANEW = 4


class Reason(IntEnum):
    """Why a run stopped."""

    DONE = 0
    DEPARTURE = 1


_HEADER = struct.Struct("<4sHHQ")
_OPEN = struct.Struct("<32s64s32sQQQQii")
_RUN = struct.Struct("<QQQ")
_BARE = struct.Struct("<QQQQ")
_DONE = struct.Struct("<QIIQQ")
_THREADS = struct.Struct("<QQQQ")
_THREADED = struct.Struct("<QQQ")
_LARGE = struct.Struct("<QQ6I")
_DIGESTS = struct.Struct("<QII16s64sQ")
_BULK = struct.Struct("<Q6I")
_COMPARED = struct.Struct("<QQQ4I")
_NO_CASE = (1 << 64) - 1
_OPENED = struct.Struct("<IIIIQ")
_PATH_NAME_LEN = 32


@dataclass(frozen=True)
class Hello:
    """What a shim says of itself. ``max_message_len`` in bytes; ``libraries`` are providers' names and versions.

    ``loaded`` are the files of the shared libraries in the process, as its loader names them.
    """

    protocol: int
    arch: str
    byte_order: str
    word_bits: int
    page_len: int
    transports: tuple[str, ...]
    max_message_len: int
    num_slots: int
    features: frozenset[str]
    watchers: frozenset[str]
    implementations: tuple[str, ...]
    libraries: tuple[str, ...]
    loaded: tuple[str, ...]
    modes: tuple[str, ...]


_NOTHING = Watch(0)


@dataclass(frozen=True)
class Opened:
    """Answer to OPEN; ``declined`` where the CPU cannot run the implementation or the library lacks the algorithm.

    ``blind`` are watchers that the shim has but that cannot look into this subject.
    """

    declined: bool
    block_len: int
    ways: int
    paths: tuple[str, ...]
    blind: Watch = _NOTHING


@dataclass(frozen=True)
class Done:
    """End of a run: ``next_case`` is the first that did not run; ``taken[c]`` a bit set of paths for length class c.

    ``printed``: the subject has written to its standard output since the last one.
    """

    next_case: int
    reason: Reason
    cpu_ns: int
    num_calls: int
    taken: tuple[int, ...]
    results: bytes
    printed: bool = False


@dataclass(frozen=True)
class Ended:
    """The subject crashed or hung instead of an answer; ``record`` is one of dtype CASE_RESULT, of case ``case``."""

    case: int
    record: Any


@dataclass(frozen=True)
class Threaded:
    """Answer to THREADS: operations run in two threads at once, those that ran beside one of the other thread, and the
    first departure, or None; its record's ``registers`` is 1 where one thread was enough.
    """

    num_calls: int
    num_beside: int
    departed: Ended | None


@dataclass(frozen=True)
class LargeRequest:
    """LARGE: one message whose inputs the shim makes of ``seed``; lengths in bytes."""

    data_len: int
    seed: int
    key_len: int
    iv_len: int
    aad_len: int
    tag_len: int
    decrypting: bool


@dataclass(frozen=True)
class Digests:
    """Answer to LARGE: the status of the first operation refused, else OK, iv and tag, a digest a MiB of output."""

    status: int
    iv: bytes
    tag: bytes
    digests: tuple[int, ...]


@dataclass(frozen=True)
class BulkRequest:
    """BULK: many blocks at once against one at a time; ``counts`` where the iv is a big-endian counter.

    ``few``: ways and 2 * ways + 1 blocks alone.
    """

    seed: int
    key_len: int
    iv_len: int
    aad_len: int
    tag_len: int
    decrypting: bool
    counts: bool
    few: bool


@dataclass(frozen=True)
class Compared:
    """Answer to BULK: messages compared, and of the last of them what differed, from which byte on.

    ``wrap_bits`` is how many of its counter's bits wrapped in it, 0 where none were made to.
    """

    num_compared: int
    offset: int
    what: Difference
    num_blocks: int
    wrap_bits: int


def encode_message(kind: Kind, payload: bytes = b"") -> bytes:
    """A message: header and payload."""
    return _HEADER.pack(MAGIC, PROTOCOL_VERSION, kind, len(payload)) + payload


def decode_header(data: bytes) -> tuple[Kind, int]:
    """Kind and payload length of a message's header; raises HarnessFault for anything that is not protocol."""
    if len(data) != HEADER_LEN:
        raise HarnessFault(f"the shim answered garbage: a message's header has {len(data)} bytes, not {HEADER_LEN}")
    magic, version, kind, length = _HEADER.unpack(data)
    if magic != MAGIC:
        raise HarnessFault(f"the shim answered garbage: a message began with {data[:16]!r}, not with {MAGIC!r}")
    if version != PROTOCOL_VERSION:
        raise HarnessFault(
            f"the shim speaks protocol version {version}, this engine {PROTOCOL_VERSION}: run `crosslane build` again"
        )
    if kind not in Kind._value2member_map_ or length > _MAX_PAYLOAD:
        raise HarnessFault(f"the shim answered garbage: message kind {kind:#x} of {length} bytes")
    return Kind(kind), length


def _name(text: str, length: int) -> bytes:
    raw = text.encode("ascii")
    if len(raw) > length:
        raise HarnessFault(f"the name {text!r} is longer than the {length} bytes that the protocol gives it")
    return raw


def encode_open(
    mode: str,
    symbol: str,
    *,
    cipher: str,
    hide: int,
    watch: Watch,
    batch_capacity: int,
    result_capacity: int,
    fds: tuple[int, int],
) -> bytes:
    """OPEN. ``symbol`` names a leaf, or a provider's session, which ``cipher`` is for.

    ``fds`` are the batch's and the results' descriptors in the shim, or (-1, -1) for inline.
    """
    payload = _OPEN.pack(
        _name(mode, 32), _name(symbol, 64), _name(cipher, 32), hide, int(watch), batch_capacity, result_capacity, *fds
    )
    return encode_message(Kind.OPEN, payload)


def encode_run(first_case: int, num_cases: int, flags: RunFlag, batch: bytes | memoryview = b"") -> bytes:
    """RUN, with the batch behind it when ``flags`` has INLINE."""
    return encode_message(Kind.RUN, _RUN.pack(first_case, num_cases, int(flags)) + bytes(batch))


def encode_bare(num_messages: int, message_len: int, messages_per_key: int) -> bytes:
    """BARE."""
    return encode_message(Kind.BARE, _BARE.pack(num_messages, message_len, messages_per_key, 0))


def encode_threads(first_case: int, num_cases: int, num_rounds: int, batch: bytes | memoryview | None) -> bytes:
    """THREADS, with the batch behind it unless it is shared memory (None)."""
    flags = RunFlag(0) if batch is None else RunFlag.INLINE
    payload = _THREADS.pack(first_case, num_cases, num_rounds, int(flags))
    return encode_message(Kind.THREADS, payload + bytes(batch or b""))


def encode_large(request: LargeRequest) -> bytes:
    """LARGE."""
    return encode_message(Kind.LARGE, _LARGE.pack(*vars(request).values(), 0))


def encode_bulk(request: BulkRequest) -> bytes:
    """BULK."""
    *lengths, counts, few = vars(request).values()
    return encode_message(Kind.BULK, _BULK.pack(*lengths, counts | few << 1))


_HELLO_TYPES: Mapping[str, type] = {
    "protocol": int, "arch": str, "byte_order": str, "word_bits": int, "page_len": int, "transports": list,
    "max_message_len": int, "num_slots": int, "features": list, "watchers": list, "implementations": list,
    "libraries": list, "loaded": list, "modes": list,
}  # fmt: skip


def decode_hello(payload: bytes) -> Hello:
    """Read HELLO, strictly."""
    try:
        fields = json.loads(payload.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise HarnessFault(f"the shim's hello is no JSON: {error}") from error
    if not isinstance(fields, dict) or set(fields) != set(_HELLO_TYPES):
        raise HarnessFault(f"the shim's hello has other fields than {', '.join(_HELLO_TYPES)}")
    for name, kind in _HELLO_TYPES.items():
        value = fields[name]
        if type(value) is not kind or (isinstance(value, list) and not all(isinstance(item, str) for item in value)):
            raise HarnessFault(f"the shim's hello says {name} = {value!r}, which is no {kind.__name__}")
    if fields["protocol"] != PROTOCOL_VERSION:
        raise HarnessFault(f"the shim speaks protocol version {fields['protocol']}, this engine {PROTOCOL_VERSION}")
    return Hello(
        **{name: fields[name] for name, kind in _HELLO_TYPES.items() if kind is not list},
        transports=tuple(fields["transports"]),
        features=frozenset(fields["features"]),
        watchers=frozenset(fields["watchers"]),
        implementations=tuple(fields["implementations"]),
        libraries=tuple(fields["libraries"]),
        loaded=tuple(fields["loaded"]),
        modes=tuple(fields["modes"]),
    )


def decode_opened(payload: bytes) -> Opened:
    """Read OPENED."""
    if len(payload) < _OPENED.size:
        raise HarnessFault(f"OPENED has {len(payload)} bytes, fewer than {_OPENED.size}")
    status, block_len, ways, num_paths, blind = _OPENED.unpack_from(payload)
    if status > 1 or blind & ~int(Watch.ALL) or len(payload) != _OPENED.size + num_paths * _PATH_NAME_LEN:
        raise HarnessFault(
            f"OPENED has status {status} and {len(payload)} bytes for {num_paths} paths, blind {blind:#x}"
        )
    names = [
        payload[_OPENED.size + i * _PATH_NAME_LEN :][:_PATH_NAME_LEN].rstrip(b"\0").decode("ascii", "replace")
        for i in range(num_paths)
    ]
    return Opened(status == 1, block_len, ways, tuple(names), Watch(blind))


def decode_done(payload: bytes) -> Done:
    """Read DONE; what follows the fixed part are inline results."""
    fixed = _DONE.size + 8 * NUM_CLASSES
    if len(payload) < fixed:
        raise HarnessFault(f"DONE has {len(payload)} bytes, fewer than {fixed}")
    next_case, reason, flags, cpu_ns, num_calls = _DONE.unpack_from(payload)
    if reason not in Reason._value2member_map_ or flags not in (0, 1):
        raise HarnessFault(f"DONE gives reason {reason} and flags {flags}: allowed are 0 or 1 of both")
    taken = struct.unpack_from(f"<{NUM_CLASSES}Q", payload, _DONE.size)
    return Done(next_case, Reason(reason), cpu_ns, num_calls, taken, payload[fixed:], printed=flags == 1)


def decode_timed(payload: bytes) -> tuple[int, int]:
    """Read TIMED: CPU time in ns and a digest of the output."""
    if len(payload) != 16:
        raise HarnessFault(f"TIMED has {len(payload)} bytes, not 16")
    cpu_ns, digest = struct.unpack("<QQ", payload)
    return cpu_ns, digest


def _record(payload: bytes) -> Any:
    return np.frombuffer(payload, CASE_RESULT, 1)[0]


def decode_ended(payload: bytes) -> Ended:
    """Read ENDED."""
    if len(payload) != 8 + CASE_RESULT.itemsize:
        raise HarnessFault(f"ENDED has {len(payload)} bytes, not {8 + CASE_RESULT.itemsize}")
    return Ended(int.from_bytes(payload[:8], "little"), _record(payload[8:]))


def decode_threaded(payload: bytes) -> Threaded:
    """Read THREADED."""
    if len(payload) != _THREADED.size + CASE_RESULT.itemsize:
        raise HarnessFault(f"THREADED has {len(payload)} bytes, not {_THREADED.size + CASE_RESULT.itemsize}")
    num_calls, num_beside, case = _THREADED.unpack_from(payload)
    departed = None if case == _NO_CASE else Ended(case, _record(payload[_THREADED.size :]))
    return Threaded(num_calls, num_beside, departed)


def decode_digests(payload: bytes) -> Digests:
    """Read DIGESTS."""
    num = (len(payload) - _DIGESTS.size) // 8
    if len(payload) < _DIGESTS.size or len(payload) != _DIGESTS.size + 8 * num:
        raise HarnessFault(f"DIGESTS has {len(payload)} bytes, not {_DIGESTS.size} and whole digests")
    _, status, iv_len, iv, tag, said = _DIGESTS.unpack_from(payload)
    if said != num or iv_len > len(iv):
        raise HarnessFault(f"DIGESTS says {said} digests and {iv_len} bytes of iv, but has {num} and at most {len(iv)}")
    return Digests(status, iv[:iv_len], tag, struct.unpack_from(f"<{num}Q", payload, _DIGESTS.size))


def decode_compared(payload: bytes) -> Compared:
    """Read COMPARED."""
    if len(payload) != _COMPARED.size:
        raise HarnessFault(f"COMPARED has {len(payload)} bytes, not {_COMPARED.size}")
    _, num_compared, offset, what, num_blocks, wrap_bits, zero = _COMPARED.unpack(payload)
    if what not in Difference._value2member_map_ or zero != 0:
        raise HarnessFault(f"COMPARED says {what} differed and {zero} as zero: allowed are 0 to 4 and 0")
    return Compared(num_compared, offset, Difference(what), num_blocks, wrap_bits)
