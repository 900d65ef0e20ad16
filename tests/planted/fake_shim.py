# SPDX-License-Identifier: Apache-2.0
"""Speaks the protocol of docs/reference/protocol.md wrongly, in the way that its argument names."""

from __future__ import annotations

import json
import os
import struct
import sys
import time

HELLO, OPENED, DONE = 0x81, 0x82, 0x83
NUM_CLASSES = 16


def send(kind: int, payload: bytes, *, version: int = 1, length: int | None = None) -> None:
    header = struct.pack("<4sHHQ", b"XLNE", version, kind, len(payload) if length is None else length)
    os.write(1, header + payload)


def receive() -> bytes:
    header = b""
    while len(header) < 16:
        part = os.read(0, 16 - len(header))
        if not part:
            sys.exit(0)
        header += part
    return os.read(0, struct.unpack("<Q", header[8:])[0])


def hello(**changes: object) -> bytes:
    fields = {
        "protocol": 1, "arch": "x86_64", "byte_order": "little", "word_bits": 64, "page_len": 4096,
        "transports": ["mapped"], "max_message_len": 4194304, "num_slots": 4, "features": ["avx"],
        "watchers": ["layout", "canary", "context", "registers", "paths"], "implementations": ["sm4_honest"],
        "libraries": [], "loaded": [], "modes": ["ctr"],
    }  # fmt: skip
    return json.dumps({**fields, **changes}).encode()


def opened(status: int = 0, block_len: int = 16, num_paths: int = 1, names: bytes = b"ctr".ljust(32, b"\0")) -> bytes:
    return struct.pack("<4IQ", status, block_len, 1, num_paths, 0) + names


def done(next_case: int, reason: int = 0) -> bytes:
    return struct.pack("<QIIQQ", next_case, reason, 0, 1000, 1) + bytes(8 * NUM_CLASSES)


def before_hello(way: str) -> None:
    if way == "hangs":
        time.sleep(60)
    if way == "dies":
        os.write(2, b"this shim cannot start\n")
        sys.exit(7)
    if way == "garbage":
        os.write(1, b"Welcome to the other shim, version 2.1\n")
    if way == "old_header":
        send(HELLO, hello(), version=2)
    if way == "old_hello":
        send(HELLO, hello(protocol=2))
    if way == "no_json":
        send(HELLO, b"{")
    if way == "wrong_kind":
        send(OPENED, opened())
    if way == "unknown_kind":
        send(0x55, b"")
    if way == "endless":
        send(HELLO, b"", length=1 << 40)
    if way == "cut_short":
        send(HELLO, hello(), length=5000)
        sys.exit(0)


def after_open(way: str) -> None:
    answers = {
        "declines": opened(status=1, num_paths=0, names=b""),
        "other_block": opened(block_len=8),
        "other_paths": opened(num_paths=3),
        "other_status": opened(status=9),
    }
    send(OPENED, answers.get(way, opened()))
    if way == "dies_when_opened":
        sys.exit(0)


def after_run(way: str, first: int, count: int) -> None:
    answers = {
        "beyond": done(first + count + 5),
        "early": done(first + count - 1),
        "no_progress": done(first, reason=1),
        "other_reason": done(first + count, reason=9),
        "does_nothing": done(first + count),
        "dies_between": done(first + count),
    }
    if way == "hangs_in_run":
        time.sleep(60)
    if way == "dies_in_run":
        sys.exit(5)
    send(DONE, answers[way])
    if way == "dies_between":
        sys.exit(0)


def main() -> None:
    way = sys.argv[1]
    before_hello(way)
    send(HELLO, hello())
    receive()
    after_open(way)
    while True:
        first, count, _ = struct.unpack("<QQQ", receive())
        after_run(way, first, count)


main()
