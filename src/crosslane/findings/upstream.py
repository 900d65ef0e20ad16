# SPDX-License-Identifier: Apache-2.0
"""``upstream.c``: a finding of a library as a program for its maintainers, who have nothing of this suite.

It is one file: the adapter with the headers that it includes, and the case as calls of it, one below the other.
It needs the library and nothing else. It holds the library's answers against the expected ones and returns 1 where they
differ; of memory faults a memory checker says more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosslane.buildplan import provider_defines, provider_symbol
from crosslane.findings.case import Case, whole_batch
from crosslane.findings.record import Key
from crosslane.findings.upstream_commands import Commands, commands_of
from crosslane.generate import output_lens
from crosslane.model import Instance
from crosslane.records import Library
from crosslane.wire import Batch, Flag, OpKind, Results, Status

__all__ = ["Upstream", "library_line", "program_text"]

_INCLUDE = re.compile(r'^#include "([^"]+)"\n', re.MULTILINE)


@dataclass(frozen=True)
class Upstream:
    """A finding as its library's maintainers get it; ``expected`` is the judge's answer to the whole case.

    ``root`` is the suite's, ``library`` what was loaded, ``text`` what departs in a sentence.
    """

    root: Path
    key: Key
    instance: Instance
    library: Library | None
    case: Case
    expected: Results
    text: str

    @property
    def file_name(self) -> str:
        """Of the program: in the adapter's language."""
        suffixes = {source.suffix for source in self.instance.provider.sources} - {".h", ".c"}
        return f"upstream{min(suffixes, default='.c')}"

    @property
    def commands(self) -> Commands:
        """How it is compiled and run, in the finding's folder."""
        return commands_of(self.instance, self.file_name)


def library_line(library: Library | None) -> str:
    """A library's version, package and file in a line."""
    if library is None:
        return "The library was not loaded."
    package = f", package {library.package} {library.package_version}" if library.package else ""
    return f"{library.provider} {library.version}{package}; {library.file.rpartition('/')[2]}, sha256 {library.sha256}"


# ---- the program --------------------------------------------------------------------------------------------------


def program_text(finding: Upstream) -> str:
    """The source of the program."""
    commands = finding.commands
    head = [
        f" * {finding.key.implementation}, {finding.key.algorithm}: {finding.text}.",
        " *",
        f" * {library_line(finding.library)}",
        f" *   {commands.build}",
        f" *   {commands.run}",
        *(f" * {note}" for note in commands.notes),
        " *",
        " * It prints each answer that is not the expected one, and returns 1 where there is such a one, else 0.",
    ]
    defines = "".join(
        f"#define {name.removeprefix('-D')} {value}\n"
        for name, _, value in (text.partition("=") for text in provider_defines(finding.instance.provider))
    )
    symbol = provider_symbol(finding.instance.provider)
    calls = "\n".join(f"    {line}" for line in _calls(finding))
    mode, _, cipher = finding.key.algorithm.rstrip(")").partition("(")
    main = _MAIN
    for mark, text in (("@SESSION@", symbol), ("@MODE@", mode), ("@CIPHER@", cipher), ("@CALLS@", calls)):
        main = main.replace(mark, text)
    return "\n".join(["/*", *head, " */", defines, _amalgamated(finding), main])


def _amalgamated(finding: Upstream) -> str:
    """The adapter's sources, each header that they include with quotes once and in its place."""
    provider, done = finding.instance.provider, set[str]()
    folders = (provider.folder, provider.folder.parent, finding.root / "impls" / "shim")

    def inlined(text: str) -> str:
        return _INCLUDE.sub(lambda match: included(match[1]), text)

    def included(name: str) -> str:
        if name in done:
            return ""
        done.add(name)
        path = next(folder / name for folder in folders if (folder / name).is_file())
        return inlined(path.read_text(encoding="utf-8"))

    sources = [path for path in provider.sources if path.suffix != ".h"]
    return "\n".join(inlined(path.read_text(encoding="utf-8")) for path in sources)


def _bytes(data: bytes) -> str:
    """A compound of bytes with C's escapes; one byte more than there are, which C wants."""
    return '(const uint8_t *)"' + "".join(f"\\{byte:03o}" for byte in data) + '"'


def _calls(finding: Upstream) -> Iterator[str]:
    """The case, and the sessions before it that it needs, as statements."""
    batch = whole_batch(finding.case)
    mode, _, cipher = finding.key.algorithm.rstrip(")").partition("(")
    for number in range(len(batch)):
        case = batch.cases[number]
        first, num = int(case["first_op"]), int(case["num_ops"])
        decrypting = int(case["decrypting"])
        slots = sorted({int(slot) for slot in batch.ops["slot"][first : first + num]})
        for slot in slots:
            yield f's[{slot}] = tested->open("{mode}", "{cipher}", {decrypting});'
        for index in range(first, first + num):
            yield from _call(finding, batch, number, index)
        for slot in slots:
            yield f"tested->close(s[{slot}]);"


def _call(finding: Upstream, batch: Batch, number: int, index: int) -> Iterator[str]:
    """One operation of the case."""
    op, case = batch.ops[index], batch.cases[number]
    kind, slot, status = OpKind(int(op["kind"])), int(op["slot"]), int(finding.expected.statuses[index])
    data = _input(finding, batch, index)
    session, what = f"s[{slot}]", f'"{kind.name.lower()} (operation {index})"'
    if kind is OpKind.SETKEY:
        call = f"tested->setkey({session}, {_bytes(data)}, {len(data)}, {int(case['policy'])})"
        yield f"case_is({what}, {call}, {status});"
    elif kind is OpKind.SETIV:
        lens = f"{{{int(op['aux0'])}, {int(op['aux1'])}, {int(case['tag_len'])}}}"
        yield f"lengths = (struct subject_lengths){lens};"
        yield f"case_is({what}, tested->setiv({session}, {_bytes(data)}, {len(data)}, &lengths), {status});"
        tag = _tag_to_come(batch, number, index)
        if tag is not None:
            yield f"if (tested->expect != NULL) {{ (void)tested->expect({session}, {_bytes(tag)}, {len(tag)}); }}"
    elif kind is OpKind.AAD:
        yield f"case_is({what}, tested->aad({session}, {_bytes(data)}, {len(data)}), {status});"
    elif kind is OpKind.UPDATE:
        yield _update(finding, batch, number, index)
    elif kind is OpKind.FINAL:
        yield f"case_is({what}, tested->final({session}), {status});"
    elif kind is OpKind.TAG:
        out = b"" if case["decrypting"] or status else _output(finding, index, int(case["tag_len"]))
        given = data if case["decrypting"] else bytes(int(case["tag_len"]))
        yield f"case_tag({what}, {session}, {_bytes(given)}, {len(given)}, {_bytes(out)}, {len(out)}, {status});"
    elif kind is OpKind.REINIT:
        yield f"case_is({what}, tested->reinit({session}), {status});"
    else:
        yield f"case_copy(&{session}, s[{int(op['from_slot'])}]);"


def _input(finding: Upstream, batch: Batch, index: int) -> bytes:
    """The bytes of an operation; what is fed from an earlier output is what that ought to be."""
    op = batch.ops[index]
    length = int(op["in_len"])
    if not int(op["flags"]) & Flag.FEED:
        start = int(op["in_off"])
        return batch.blob[start : start + length].tobytes()
    updates = [i for i in range(index) if batch.ops["kind"][i] == OpKind.UPDATE]
    return _output(finding, updates[-1 if batch.ops["kind"][index] == OpKind.SETKEY else -2], length)


def _output(finding: Upstream, index: int, length: int) -> bytes:
    start = int(whole_batch(finding.case).ops["out_off"][index])
    return finding.expected.out[start : start + length].tobytes()


def _later(batch: Batch, number: int, index: int) -> Iterator[int]:
    """The operations of the same context behind one, to the end of the message."""
    case, slot = batch.cases[number], int(batch.ops["slot"][index])
    for i in range(index + 1, int(case["first_op"]) + int(case["num_ops"])):
        if batch.ops["kind"][i] == OpKind.CLONE and int(batch.ops["from_slot"][i]) == slot:
            slot = int(batch.ops["slot"][i])
        elif int(batch.ops["slot"][i]) == slot:
            if batch.ops["kind"][i] == OpKind.SETIV:
                return
            yield i


def _tag_to_come(batch: Batch, number: int, index: int) -> bytes | None:
    tags = [i for i in _later(batch, number, index) if batch.ops["kind"][i] == OpKind.TAG]
    if not tags or not batch.cases["decrypting"][number]:
        return None
    start, length = int(batch.ops["in_off"][tags[0]]), int(batch.ops["in_len"][tags[0]])
    return batch.blob[start : start + length].tobytes()


def _update(finding: Upstream, batch: Batch, number: int, index: int) -> str:
    """An update; its output is nobody's affair where it is refused, or the message's tag is."""
    op, status = batch.ops[index], int(finding.expected.statuses[index])
    data = _input(finding, batch, index)
    tags = [i for i in _later(batch, number, index) if batch.ops["kind"][i] == OpKind.TAG]
    withheld = any(int(finding.expected.statuses[i]) == Status.BAD_TAG for i in tags)
    is_update = batch.ops["kind"] == OpKind.UPDATE
    lens = output_lens(batch, np.arange(len(batch.ops)))
    has_output = bool((is_update & (batch.ops["in_len"] > 0) & (lens >= batch.ops["in_len"])).any())
    out = _output(finding, index, len(data)) if has_output and not status and not withheld else b""
    flags = Flag(int(op["flags"]))
    how = f"{int(has_output)}, {int(bool(flags & Flag.IN_PLACE))}, {max(1, int(op['aux0']))}"
    last = int(bool(flags & Flag.LAST))
    return (
        f'case_update("update (operation {index})", s[{int(op["slot"])}], {_bytes(data)}, {len(data)}, {how}, {last}, '
        f"{_bytes(out)}, {len(out)}, {status});"
    )


_MAIN = """
#include <stdio.h>
#include <stdlib.h>

static const struct subject_session *const tested = &@SESSION@;
static int case_departs;

static void case_is(const char *what, int got, int expected)
{
    if (got != expected) {
        case_departs = 1;
        printf("%s: status %d instead of %d (enum subject_status)\\n", what, got, expected);
    }
}

static void case_say(const char *word, const uint8_t *data, size_t len)
{
    printf("  %s", word);
    for (size_t i = 0; i < len; i++) {
        printf("%02x", data[i]);
    }
    printf("\\n");
}

static void case_same(const char *what, const uint8_t *got, const uint8_t *expected, size_t len)
{
    if (memcmp(got, expected, len) != 0) {
        case_departs = 1;
        printf("%s\\n", what);
        case_say("expected: ", expected, len);
        case_say("got:      ", got, len);
    }
}

/* Buffers of just their length, so that a memory checker sees what goes beyond. */
static uint8_t *case_buffer(const uint8_t *data, size_t len)
{
    uint8_t *p = (uint8_t *)malloc(len);
    if (p == NULL && len > 0) {
        exit(3);
    }
    if (len > 0) {
        memcpy(p, data, len);
    }
    return p;
}

static void case_update(const char *what, void *session, const uint8_t *data, size_t len, int has_output, int in_place,
                   unsigned times, int last, const uint8_t *expected, size_t expected_len, int expected_status)
{
    uint8_t *in = case_buffer(data, len), *out = in_place ? in : case_buffer(data, len);
    int got = tested->update(session, has_output ? out : NULL, in, len, last);
    for (unsigned i = 1; i < times; i++) {
        got = tested->update(session, has_output ? out : NULL, out, len, last);
    }
    case_is(what, got, expected_status);
    case_same(what, out, expected, expected_len);
    free(in);
    if (!in_place) {
        free(out);
    }
}

static void case_tag(const char *what, void *session, const uint8_t *given, size_t len, const uint8_t *expected,
                size_t expected_len, int expected_status)
{
    uint8_t *bytes = case_buffer(given, len);
    case_is(what, tested->tag(session, bytes, len), expected_status);
    case_same(what, bytes, expected, expected_len);
    free(bytes);
}

static void case_copy(void **to, void *from)
{
    void *copy = tested->clone != NULL ? tested->clone(from) : NULL;
    if (copy == NULL) {
        printf("the library copies no context\\n");
        exit(3);
    }
    tested->close(*to);
    *to = copy;
}

int main(void)
{
    void *s[4];
    struct subject_lengths lengths;
    printf("%s %s\\n", tested->driver, tested->version());
    if (tested->block_len("@MODE@", "@CIPHER@") == 0) {
        printf("this build of the library lacks the algorithm\\n");
        return 3;
    }
    (void)lengths, (void)case_update, (void)case_tag, (void)case_copy, (void)case_same;
@CALLS@
    printf("%s\\n", case_departs ? "departs" : "agrees");
    return case_departs;
}
"""
