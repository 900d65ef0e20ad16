# SPDX-License-Identifier: Apache-2.0
"""``triage.md``: an explanation as text for a bug tracker. What a subject may have said is kept from being markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crosslane.bug_classes import BUG_CLASSES
from crosslane.describe import session_lines
from crosslane.findings.case import whole_batch
from crosslane.triage.attribution import AGREES, Ran
from crosslane.triage.explain import Explanation
from crosslane.triage.outputs import hex_lines

__all__ = ["PICTURE", "alone_text", "markdown", "plain_text"]

PICTURE = "triage.svg"
_MOST_TEXT = 300
_MARKS = str.maketrans({char: f"\\{char}" for char in "\\`*_{}[]<>()#|!~&"})


def plain_text(text: str) -> str:
    """Text that may come from a subject, on one line, bounded, and with no character that Markdown or HTML heeds."""
    line = "".join(c if c.isprintable() else " " for c in text)[:_MOST_TEXT]
    return line.translate(_MARKS)


def markdown(found: Explanation, *, picture: bool) -> str:
    """The report; ``picture`` is whether ``triage.svg`` lies beside it."""
    key = found.kept.record.key
    lines = [
        f"# {key.implementation}: {plain_text(found.named.sentence)} ({key.algorithm})",
        "",
        f"Class: **{found.named.name}**, {BUG_CLASSES[found.named.name]}.",
        "",
        f"What it does: {plain_text(found.text)}.",
        "",
        *_versions(found),
        *_smallest(found),
        *_differing(found),
        *(["## Where it departs", "", f"![failing against passing]({PICTURE})", ""] if picture else []),
        *_agreement(found),
        *_depends(found),
        *_reproduce(found),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _versions(found: Explanation) -> Iterator[str]:
    yield from ("## Versions", "")
    yield f"- cell: `{found.cell}`"
    for name, value in found.tools:
        yield f"- {name}: {plain_text(value)}"
    yield ""


def _smallest(found: Explanation) -> Iterator[str]:
    kept = found.kept
    batch = whole_batch(kept.case)
    yield from ("## Smallest case", "")
    if not kept.record.shrunk:
        yield from ("It is as it came: nothing smaller departs every time.", "")
    yield "```"
    for number in range(len(batch)):
        yield from session_lines(batch, number)
    yield from ("```", "")


def _differing(found: Explanation) -> Iterator[str]:
    if found.differing is None:
        return
    yield from ("## Expected and got", "")
    what = found.differing.what
    yield f"The {what} of operation {found.differing.op + 1}; lines that agree are left out."
    yield from ("", "```", *hex_lines(found.differing), "```", "")


def _agreement(found: Explanation) -> Iterator[str]:
    """The table of who agrees with whom, those that depart first; a dash stands for no answer."""
    yield from ("## Who agrees with whom", "")
    yield f"{AGREES} answers as the generic implementation does; equal letters are equal answers."
    yield from ("", "| subject | lanes | answer | |", "|---|---|---|---|")
    rows: dict[tuple[int, str, str, str], list[str]] = {}
    for item in found.ran:
        name = f"`{_subject(item.cell)}`" + (f", {plain_text(item.version)}" if item.version else "")
        key = (("", AGREES).index(item.group) if not item.departs else 2, item.group or "-", name, item.text)
        rows.setdefault(key, []).append(item.lane)
    for (_, group, name, text), lanes in sorted(rows.items(), key=lambda row: (-row[0][0], row[0][1:])):
        yield f"| {name} | {', '.join(f'`{lane}`' for lane in lanes)} | {group} | {plain_text(text)} |"
    yield from ("", alone_text(found.ran), "")


def alone_text(ran: Sequence[Ran]) -> str:
    """Who departs, in a sentence."""
    departing = sorted({_subject(item.cell) for item in ran if item.departs})
    agreeing = {_subject(item.cell) for item in ran if item.group == AGREES} - set(departing)
    if not departing:
        return "No cell of this run departs."
    if len(departing) == 1:
        return f"{departing[0]} stands alone against {len(agreeing)} others."
    groups = {item.group for item in ran if item.departs}
    alike = "all alike" if len(groups) == 1 else f"in {len(groups)} ways"
    return f"{', '.join(departing)} depart, {alike}, against {len(agreeing)} others."


def _subject(cell: str) -> str:
    return cell.rpartition("@")[0].partition("/")[2]


def _depends(found: Explanation) -> Iterator[str]:
    yield from ("## What it depends on", "")
    if found.features is not None:
        needed = ", ".join(found.features.needed) or "none: it appears whatever is hidden"
        yield f"- CPU features, the smallest set with which it appears: {needed}"
    yield from _builds(found)
    for way, departs in found.otherwise:
        yield f"- {plain_text(way)}: {'departs too' if departs else 'agrees, so that the emulator is suspected'}"
    yield ""


def _builds(found: Explanation) -> Iterator[str]:
    """Lanes of the subject that depart and those that agree; backends are subjects of one library."""
    departing = sorted(item.lane for item in found.builds if item.departs)
    agreeing = sorted(item.lane for item in found.builds if item.group == AGREES)
    declining = sorted(item.lane for item in found.builds if item.text.startswith("declined"))
    for what, lanes in (("departs", departing), ("agrees", agreeing), ("declines", declining)):
        if lanes:
            yield f"- {what} in: {', '.join(f'`{lane}`' for lane in dict.fromkeys(lanes))}"
    backends = sorted({_subject(item.cell) for item in found.builds if ":" in _subject(item.cell)})
    if backends:
        wrong = sorted({_subject(item.cell) for item in found.builds if item.departs})
        yield f"- backends: {', '.join(backends)}; it appears with {', '.join(wrong) or 'none'}"


def _reproduce(found: Explanation) -> Iterator[str]:
    record = found.kept.record
    yield from ("## How to reproduce", "", "```")
    more = "".join(f" --impls '{_folder_name(folder)}'" for folder in record.impls)
    yield f"crosslane repro {record.id}{more}"
    yield from (*_command(found.kept.repro), "```", "")
    yield "`repro.c` in this folder is the case as a program of its own; the folder `harness` belongs to it."


def _command(repro: str) -> Iterator[str]:
    """The lines of the commands in the comment at the head of a reproducer, which build and run it."""
    lines = iter(repro.partition("*/")[0].splitlines())
    for line in lines:
        if line.startswith(" * Build and run it"):
            break
    for line in lines:
        if line.startswith(" * It prints"):
            return
        yield line.removeprefix(" *").strip()


def _folder_name(folder: str) -> str:
    """A folder given with ``--impls`` without what lies above it on this machine."""
    return folder.rstrip("/").rpartition("/")[2]
