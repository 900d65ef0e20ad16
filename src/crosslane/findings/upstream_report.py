# SPDX-License-Identifier: Apache-2.0
"""``upstream.md``: what the maintainers of a library need to know of a finding beside the program ``upstream.c``."""

from __future__ import annotations

from collections.abc import Sequence

from crosslane.describe import session_lines
from crosslane.findings.case import whole_batch
from crosslane.findings.upstream import Upstream, library_line
from crosslane.quorum import Member, answer, case_within, voices_of
from crosslane.wire import Results

__all__ = ["agreement_rows", "report_text"]

_MEMORY = ("guard_read", "guard_write", "canary", "context", "wipe")


def agreement_rows(
    finding: Upstream, subject: Results, members: Sequence[Member], *, judge: str
) -> list[tuple[str, str]]:
    """Who was asked about the case, and whom each agrees with. Only the last session counts, alone."""
    batch = whole_batch(finding.case)
    name = finding.key.implementation
    theirs, expected = answer(batch, subject), answer(batch, finding.expected)
    rows = [(judge, "the expected answer"), (name, "what departs" if theirs != expected else "the same answer")]
    if len(batch) > 1:
        return [*rows, ("other libraries", "not asked: the finding needs sessions before it in the same process")]
    voices = voices_of(batch, [member for member in members if member.name != name])
    for member in members:
        if member.name == name:
            continue
        if member.name not in voices:
            within = case_within(member.manifest, batch)
            rows.append((member.name, "no answer" if within else "outside its domain"))
        else:
            said = {theirs: f"agrees with {name}", expected: "agrees with the expected answer"}
            rows.append((member.name, said.get(voices[member.name], "agrees with neither")))
    return rows


def report_text(finding: Upstream, rows: Sequence[tuple[str, str]]) -> str:
    """The text of ``upstream.md``."""
    backend, lane, commands = finding.instance.backend, finding.instance.lane, finding.commands
    batch = whole_batch(finding.case)
    session = [f"    {line}" for number in range(len(batch)) for line in session_lines(batch, number)]
    memory = [
        "",
        "It is about memory, which outputs do not show: run the program under a memory checker, such as `valgrind`. In",
        "the suite each allocation of the library ends at an inaccessible page or lies between canaries.",
    ]
    lines = [
        f"# {finding.instance.provider.name}: {finding.key.algorithm}: {finding.key.symptom}",
        "",
        f"{finding.text[:1].upper()}{finding.text[1:]}.",
        "",
        "| | |",
        "|---|---|",
        f"| library | {library_line(finding.library)} |",
        f"| from | {finding.library.source if finding.library else '-'} |",
        f"| code path | {backend.name + ': ' + backend.what if backend else 'its own choice on this CPU'} |",
        f"| variables | {' '.join(backend.environment) if backend and backend.environment else 'none'} |",
        f"| runs on | {lane.arch}, {lane.runner}{' -cpu ' + lane.cpu if lane.cpu else ''} |",
        "",
        "## See it",
        "",
        f"`{finding.file_name}` needs the library and its headers, and nothing of the suite:",
        "",
        f"    {commands.build}",
        f"    {commands.run}",
        *(["", *commands.notes] if commands.notes else []),
        *(memory if finding.key.symptom in _MEMORY else []),
        "",
        "## The case",
        "",
        *session,
        "",
        "## Who agrees",
        "",
        "| source | answer |",
        "|---|---|",
        *(f"| {source} | {said} |" for source, said in rows),
        "",
    ]
    return "\n".join(lines)
