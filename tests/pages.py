# SPDX-License-Identifier: Apache-2.0
"""What tests of the HTML report share: what a page is made of and would load, and a run as large as the gate's."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, is_dataclass, replace
from html.parser import HTMLParser
from typing import Any

from resulting import algorithm, cell, run

from crosslane.checks import load_checks
from crosslane.data import data_root
from crosslane.lanes import lanes_for_host
from crosslane.records import Judgement, Library, LibraryRow, Proof
from crosslane.registry import cells, load_registry
from crosslane.results import RunResult
from crosslane.wire import class_name

_LOADING = {
    "src", "srcset", "srcdoc", "poster", "data", "background", "action", "formaction", "ping", "manifest", "xlink:href",
    "imagesrcset", "codebase", "archive", "classid", "profile", "longdesc", "usemap", "cite",
}  # fmt: skip
_TAGS = {"link", "base", "iframe", "frame", "object", "embed", "applet", "form", "audio", "video", "source", "portal"}
_POLICY = "Content-Security-Policy"
_PLACES = re.compile(r"url\s*\(|@import|image-set|expression\s*\(|fetch|XMLHttpRequest|WebSocket|import\s*\(|\beval\b")


@dataclass
class Seen(HTMLParser):
    """A page taken apart: its tags with the names of their attributes, its ids and links, and what is wrong with it."""

    tags: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)
        self._in = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in = tag
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        values = {name: value or "" for name, value in attrs}
        if tag in _TAGS:
            self.wrong.append(f"<{tag}>")
        for name, value in values.items():
            if name.startswith("on") or name == "style" or (name == "http-equiv" and value != _POLICY):
                self.wrong.append(f"{name}={value[:60]}")
            if name in _LOADING and not (tag == "img" and value.startswith("data:image/svg+xml;base64,")):
                self.wrong.append(f"{name}={value[:60]}")
            if name == "href" and not (tag == "a" and re.match(r"#|https?://", value)):
                self.wrong.append(f"{name}={value[:60]}")
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []

    def handle_endtag(self, tag: str) -> None:
        self._in = "" if tag == self._in else self._in

    def handle_data(self, data: str) -> None:
        if self._in in ("style", "script"):
            self.wrong += _PLACES.findall(data)
        else:
            self.text.append(data)


def seen(page: str) -> Seen:
    """Take a page apart."""
    found = Seen()
    found.feed(page)
    found.close()
    return found


_NAMES = {"cell", "algorithm", "state", "repeats", "version", "shard", "counts"}
"""Fields that hold names or words which the reader of results checks."""


def with_text(value: Any, text: str, name: str = "") -> Any:
    """The same with every text in it replaced, keys of tables too, but for names that the reader of results checks."""
    if name in _NAMES:
        return value
    if isinstance(value, str):
        return text
    if isinstance(value, tuple):
        return tuple(with_text(item, text) for item in value)
    if isinstance(value, dict):
        return {with_text(key, text): with_text(item, text) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changed = {item.name: with_text(getattr(value, item.name), text, item.name) for item in fields(value)}
        return replace(value, **changed)
    return value


def whole_run() -> RunResult:
    """A green run of every cell of the gate, with 895 planted faults and 355 controls, as text-laden as a real one."""
    registry = load_registry(data_root())
    gate = {lane.name for lane in lanes_for_host(registry) if lane.gate}
    checks = [(check.name, check.sentence) for check in load_checks(registry.root)]
    paths = {item.driver: item.paths for item in registry.implementations}
    providers = {item.name for item in registry.providers}
    classes = [class_name(number) for number in range(16)]
    plans: dict[str, list[Any]] = {}
    names = [item for item in cells(registry) if item.lane in gate]
    for number, item in enumerate(names):
        provider = item.driver in providers
        takes = {path: tuple(classes[at % 5 :]) for at, path in enumerate(paths.get(item.driver, ()))}
        judged = tuple(
            Judgement(name, sentence, (None if (number // 7 + at) % 9 == 0 else True), _REASONS[at % len(_REASONS)])
            for at, (name, sentence) in enumerate(checks)
        )
        made = cell(
            str(item), comparisons=640 + 97 * number, judgements=judged, provider=provider, num_threaded=64,
            num_bulk=144, paths=takes, declared_paths=tuple(takes), cpu_s=0.01 + number / 500, num_large=2,
            library=_LIBRARY if provider else None, unwatched=("paths", "registers") if provider else (),
        )  # fmt: skip
        plans.setdefault(str(item.algorithm), []).append(made)
    proofs = tuple(
        Proof(f"planted_fault_number_{number}", str(names[number * 2]), number % 7 == 2, number % 9 == 0, True)
        for number in range(1250)
    )
    rows = tuple(LibraryRow(name, "x86_64_native", "", f"{name} of the system", _LIBRARY, plan, "agreed")
                 for name in sorted(providers) for plan in plans)  # fmt: skip
    notes = ("of 8,584 cases made of vectors, 1,224 spread evenly over them run in " + ", ".join(sorted(gate)),)
    algorithms = [algorithm(*made, name=name, notes=notes) for name, made in plans.items()]
    return run(*algorithms, proofs=proofs, libraries=rows, took_s=1056.3, cpu_s=913.8, peak_pss=720873472)


_LIBRARY = Library("openssl", "3.0.19", "system", "libssl3", "3.0.19-1~deb12u1", "/usr/lib/libcrypto.so.3", "ab" * 32)
_REASONS = (
    "the algorithm, or what the library shows of it, has no such thing", "registers cannot be observed in this lane",
    "its metadata does not claim it", "neither corpora nor an installed package has a vector of this algorithm",
)  # fmt: skip
