# SPDX-License-Identifier: Apache-2.0
"""Findings with their picture: from the store what was shrunk and explained, else what the run said of them.

Everything here may come from a subject. Pictures are embedded as images, in which no script runs and which load
nothing; explanations are read as Markdown without HTML, links and images.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from markdown_it import MarkdownIt
from markupsafe import Markup

from crosslane.data import data_root, shown
from crosslane.describe import session_lines
from crosslane.errors import CrosslaneError
from crosslane.findings.case import whole_batch
from crosslane.findings.deviations import Deviation, default_file, load_deviations
from crosslane.findings.store import TRIAGE, Kept, Store
from crosslane.formats.outcomes import plain
from crosslane.html.looks import Look, look_of
from crosslane.names import parse_cell
from crosslane.records import CellResult, FaultSeen
from crosslane.report import complaints
from crosslane.results import RunResult

__all__ = ["Found", "RedCell", "findings_of", "image_uri", "red_cells"]

_TEXT, _PICTURE = TRIAGE
_MOST_SHOWN = 40
"""Findings with picture and case: those behind them have their sentence and their commands."""
_LARGEST = 600 << 10
"""Bytes of all pictures and explanations together that are taken into the report."""
_MOST_LINES = 60


@dataclass(frozen=True)
class Found:
    """A finding. ``picture`` is the address of an image within the page, ``explained`` is what triage wrote.

    ``lines`` are the operations of its smallest case; ``missing`` says why there is none of these.
    """

    anchor: str
    id: str
    subject: str
    algorithm: str
    symptom: str
    fault_class: str
    text: str
    cells: tuple[str, ...]
    accepted: str
    link: str
    review: str
    state: str
    picture: Markup
    explained: Markup
    lines: tuple[str, ...]
    missing: str
    commands: tuple[tuple[str, str], ...]

    @property
    def title(self) -> str:
        """What it is about, in a line."""
        return f"{self.subject}, {self.algorithm}: {self.symptom}, {self.fault_class}"


@dataclass(frozen=True)
class RedCell:
    """A cell that is red, with the sentences that the terminal has for it, and each check that failed."""

    cell: str
    accepted: bool
    look: Look
    lines: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]


def image_uri(svg: str) -> Markup:
    """An SVG document as an address that holds it, in characters that are no markup."""
    coded = base64.b64encode(svg.encode(errors="replace")).decode()
    return Markup(f"data:image/svg+xml;base64,{coded}")  # noqa: S704 - letters, digits, plus, slash and equals


def red_cells(result: RunResult) -> tuple[RedCell, ...]:
    """All cells that are not green and were not idle either, the accepted ones last."""
    found = [
        RedCell(
            cell.cell,
            cell.accepted,
            look_of(cell),
            tuple(complaints(cell)) or ((cell.reason,) if cell.state == "unusable" else ()),
            tuple((item.check, item.sentence) for item in cell.judgements if item.passed is False),
        )
        for cell in result.cells()
        if cell.red or cell.state in ("void", "not_run", "unusable")
    ]
    return tuple(sorted(found, key=lambda item: item.accepted))


def findings_of(result: RunResult, folder: Path | None) -> tuple[Found, ...]:
    """Each finding of the run once, those that are not accepted in front. ``folder`` is where findings are kept."""
    seen: dict[str, tuple[FaultSeen, list[CellResult]]] = {}
    for cell in result.cells():
        for fault in cell.faults:
            seen.setdefault(fault.id, (fault, []))[1].append(cell)
    store = Store(folder) if folder is not None else None
    known, unread = _known(store)
    deviations = {item.key.id: item for item in load_deviations(default_file(data_root()))} if seen else {}
    ordered = sorted(seen.values(), key=lambda item: (bool(item[0].accepted), item[0].id))
    room = _Room(_LARGEST)
    return tuple(
        replace(found, missing=unread) if unread and not found.lines else found
        for found in (
            _found(number, fault, cells, store if fault.id in known else None, deviations, room)
            for number, (fault, cells) in enumerate(ordered)
        )
    )


def _known(store: Store | None) -> tuple[set[str], str]:
    """The ids in the folder of findings, or why it cannot be read: a report is not lost for that."""
    try:
        return set(store.ids()) if store is not None else set(), ""
    except CrosslaneError as error:
        return set(), str(error)


@dataclass
class _Room:
    """How many bytes of pictures and explanations still fit."""

    left: int

    def take(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Those texts of a finding that fit, which then take their room."""
        taken = {}
        for name, text in texts.items():
            size = len(text.encode(errors="replace"))
            if size <= self.left:
                taken[name] = text
                self.left -= size
        return taken


def _found(
    number: int,
    fault: FaultSeen,
    cells: list[CellResult],
    store: Store | None,
    deviations: Mapping[str, Deviation],
    room: _Room,
) -> Found:
    name = parse_cell(cells[0].cell)
    kept, found, missing = _stored(store, fault.id) if number < _MOST_SHOWN else (None, {}, _TOO_MANY)
    attached = room.take({name: found[name] for name in TRIAGE if name in found})
    if len(attached) < len(set(TRIAGE) & set(found)):
        missing = _TOO_LARGE
    deviation = deviations.get(fault.id) if fault.accepted else None
    picture = attached.get(_PICTURE, "")
    return Found(
        anchor=f"f{number}",
        id=fault.id,
        subject=f"{name.driver}:{name.backend}" if name.backend else name.driver,
        algorithm=str(name.algorithm),
        symptom=fault.symptom,
        fault_class=fault.fault_class,
        text=fault.text,
        cells=tuple(cell.cell for cell in cells),
        accepted=fault.accepted,
        link=deviation.link if deviation else "",
        review=deviation.review.isoformat() if deviation else "",
        state=kept.record.state if kept else "",
        picture=image_uri(picture) if picture else Markup(),
        explained=_explained(attached[_TEXT]) if _TEXT in attached else Markup(),
        lines=_case_lines(kept) if kept else (),
        missing=missing,
        commands=tuple(_commands(fault, cells[0], store)),
    )


_TOO_MANY = f"only the first {_MOST_SHOWN} findings are shown with their cases: the commands show this one"
_TOO_LARGE = "what triage wrote of it does not fit into the report: it is in the finding's folder"
_NOT_KEPT = "its case is not in the folder of findings that this report was made with: the commands find it again"


def _stored(store: Store | None, name: str) -> tuple[Kept | None, dict[str, str], str]:
    """A finding of the store with what triage attached to it, or why there is none."""
    if store is None:
        return None, {}, _NOT_KEPT
    try:
        kept, attached = store.read(name), store.attached(name)
    except CrosslaneError as error:
        return None, {}, str(error)
    return kept, attached, ""


def _case_lines(kept: Kept) -> tuple[str, ...]:
    batch = whole_batch(kept.case)
    lines = list(session_lines(batch, len(batch) - 1))
    more = len(lines) - _MOST_LINES
    return (*lines[:_MOST_LINES], *([f"and {more} more operations"] if more > 0 else []))


def _explained(text: str) -> Markup:
    """Markdown as HTML, in which the text's own HTML is text, and nothing is linked or loaded."""
    reader = (
        MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink", "reference"])
    )
    rendered = reader.render(plain(_without_picture(text)))
    return Markup(rendered)  # noqa: S704 - markdown-it escapes all that it is given while html is off


def _without_picture(text: str) -> str:
    """The explanation without what the page has elsewhere: the title, and the heading of the picture."""
    lines = [line for line in text.splitlines() if f"]({_PICTURE})" not in line and line != "## Where it departs"]
    return "\n".join(lines[1:] if lines and lines[0].startswith("# ") else lines).replace("\n## ", "\n#### ")


def _commands(fault: FaultSeen, cell: CellResult, store: Store | None) -> Iterator[tuple[str, str]]:
    """What to type, and what for."""
    name = shlex.quote(fault.id)
    folder = shown(store.folder) if store is not None else "findings"
    where = "" if folder == "findings" else f" --findings {shlex.quote(folder)}"
    cases = [item.case_id for item in cell.findings if ":" not in item.case_id]
    if store is not None or not cases:
        yield "see it again", f"crosslane repro {name}{where}"
    else:
        yield "see it again", f"crosslane repro {shlex.quote(cases[0])} --cell {shlex.quote(cell.cell)}"
    if not fault.accepted:
        yield "explain it", f"crosslane triage {name}{where}"
        accept = f"crosslane findings accept {name} --reason SENTENCE --link ADDRESS --review YYYY-MM-DD{where}"
        yield "accept it, if it may stay", accept
