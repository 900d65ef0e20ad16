# SPDX-License-Identifier: Apache-2.0
"""``repro.c``: a finding as a C program against the subject's own sources, and the debugger's script for it.

The program has the case and its right answer in it. It runs the case as a shim does, with guard pages, canaries and
the check of registers, on the sources of the subject, of the mode and of ``impls/shim``; no Python, no emulated
protocol. What a cell is asked beside its cases (threads, long messages, the self-test, the getter) is no case and has
no such program.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from crosslane import wire
from crosslane.buildplan import provider_defines, provider_symbol
from crosslane.compare import Departure
from crosslane.describe import session_lines
from crosslane.errors import BadInput, HarnessFault
from crosslane.findings.case import Case, whole_batch
from crosslane.findings.record import Key
from crosslane.isa import ALL_ARCHES, feature_flags
from crosslane.model import Implementation, Lane, Mode, Provider
from crosslane.toolchain import Toolchain, runner_command
from crosslane.wire import OpKind, Results

__all__ = ["Ingredients", "build_command", "build_repro", "gdb_script", "harness_of", "refuse_cxx", "repro_text"]

_NOT_LINKED = ("main.c", "hello.c", "stream.c", "launcher.c", "sanitizer.c")
_LIMIT_S = 300
_SUBJECT = "$SUBJECT"
_NOT_IN_C = "the subject's adapter is in C++, which this C program is not compiled with"
_INSTEAD = "upstream.cc beside it, as its first lines say"
_SLOTS = {
    **{name: f"{name}.{{way}}" for name in ("ecb", "cbc", "cfb", "ofb", "ctr", "cts_cbc")},
    **{name: f"{name}_{{way}}" for name in ("xts", "xts_gb", "lrw")},
    **dict.fromkeys(("cmac", "cbcmac", "xcbc"), "mac_update"),
    "gcm": "ghash",
    "ccm": "ctr.{way}",
}
"""The leaf's function for a mode, where it is fused."""


@dataclass(frozen=True)
class Ingredients:
    """What a reproducer is made of: the suite's root, the mode, the subject, and the lane it is for."""

    root: Path
    mode: Mode
    subject: Implementation | Provider
    lane: Lane
    toolchain: Toolchain

    @property
    def what(self) -> str:
        """What the subject's folder holds."""
        return "the adapter" if isinstance(self.subject, Provider) else "the implementation, where its impl.toml is"

    @property
    def in_cxx(self) -> bool:
        """Whether the subject is an adapter in C++, which a reproducer is not compiled with."""
        return isinstance(self.subject, Provider) and self.subject.has_cxx

    @property
    def name(self) -> str:
        """The C name that the subject is reached by."""
        if isinstance(self.subject, Provider):
            return provider_symbol(self.subject)
        return self.subject.symbol


def _harness_files(made_of: Ingredients) -> list[Path]:
    """What is compiled beside the subject: the shim without its process, and the mode; headers too."""
    shim, mode = made_of.root / "impls" / "shim", made_of.mode.folder
    found = [path for folder in (shim, mode) for suffix in ("c", "S", "h") for path in folder.glob(f"*.{suffix}")]
    heap = "no_heap.c" if isinstance(made_of.subject, Provider) else "heap.c"
    wanted = [path for path in (*found, *mode.parent.glob("*.h")) if path.name not in (*_NOT_LINKED, heap)]
    return sorted(wanted, key=lambda path: path.name)


def harness_of(made_of: Ingredients) -> tuple[tuple[str, str], ...]:
    """Name and text of each file that a reproducer is compiled with, the subject's own aside, by name."""
    return tuple((path.name, path.read_text(encoding="utf-8")) for path in _harness_files(made_of))


def build_command(made_of: Ingredients, source: Path, program: Path) -> list[str]:
    """The compiler's command line for a reproducer."""
    shim, mode, subject = made_of.root / "impls" / "shim", made_of.mode.folder, made_of.subject
    folders = [shim, mode.parent, mode]
    return _command(made_of, [str(source), *map(str, _compiled(made_of))], folders, str(subject.folder), str(program))


def _compiled(made_of: Ingredients) -> list[Path]:
    others = [arch for arch in ALL_ARCHES if arch != made_of.lane.arch]
    return [
        path
        for path in _harness_files(made_of)
        if path.suffix != ".h" and not any(path.stem.endswith(f"_{arch}") for arch in others)
    ]


def _command(
    made_of: Ingredients, sources: Iterable[str], folders: Iterable[Path], subject_folder: str, program: str
) -> list[str]:
    lane, subject = made_of.lane, made_of.subject
    features = () if isinstance(subject, Provider) else subject.features
    own = (f'-DSUBJECT_NAME="{subject.symbol}"',) if isinstance(subject, Implementation) else provider_defines(subject)
    defines = (*own, "-DSUBJECT_WIN64") if lane.abi == "win64" else own
    includes = [*map(str, folders), f"{subject_folder}/..", subject_folder]
    code = [
        f"{subject_folder}/{os.path.relpath(path, subject.folder)}"
        for path in subject.sources
        if path.suffix in (".c", ".S")
    ]
    libraries = [f"-l{name}" for name in subject.libraries] if isinstance(subject, Provider) else ["-static"]
    return [
        *made_of.toolchain.command, "-std=c11", "-g", lane.opt, *(["-flto"] if lane.lto else []), "-w", "-fno-pie",
        "-no-pie", "-fstack-protector-strong" if lane.protector else "-fno-stack-protector",
        *feature_flags(lane.arch, features, lane.floor), *defines, *(f"-I{name}" for name in dict.fromkeys(includes)),
        "-o", program, *sources, *code, *libraries,
    ]  # fmt: skip


def refuse_cxx(made_of: Ingredients) -> None:
    """Raise BadInput for a subject in C++, which no reproducer is compiled with."""
    if made_of.in_cxx:
        raise BadInput(f"{_NOT_IN_C}: build {_INSTEAD}, and start the debugger on that")


def build_repro(made_of: Ingredients, source: Path, program: Path) -> None:
    """Compile a reproducer; raises BadInput with the compiler's words where the subject no longer builds."""
    try:
        done = subprocess.run(
            build_command(made_of, source, program),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessFault(f"{source}: the compiler does not run ({error}): install it again") from None
    if done.returncode != 0:
        words = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
        raise BadInput(f"{source}: does not build against the subject's sources: {words}; correct what is said there")


def _bytes(name: str, data: bytes) -> str:
    rows = [data[i : i + 16] for i in range(0, len(data), 16)] or [b"\0"]
    lines = ["    " + " ".join(f"0x{byte:02x}," for byte in row) for row in rows]
    return f"static const uint8_t {name}[] = {{\n" + "\n".join(lines) + "\n};\n"


def _shown_command(made_of: Ingredients) -> str:
    """The one command, for a shell in the finding's folder: a reproducer is read on other machines too."""
    sources = ["repro.c", *(f"harness/{path.name}" for path in _compiled(made_of))]
    words = _command(made_of, sources, [Path("harness")], _SUBJECT, "repro")
    words[0] = Path(words[0]).name
    shown = [f'"{word}"' if _SUBJECT in word else shlex.quote(word) for word in words]
    return " \\\n *       ".join(_wrapped(shown))


def _wrapped(words: Iterable[str]) -> Iterable[str]:
    line = ""
    for word in words:
        if line and len(line) + len(word) > 100:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
    yield line


def _targets(made_of: Ingredients, case: Case, op: int) -> list[str]:
    """The subject's functions that the departing operation can call, as C has them."""
    if isinstance(made_of.subject, Provider):
        return [f"{made_of.name}.{case.operations[op].kind.name.lower()}"]
    if case.operations[op].kind is OpKind.SETKEY:
        return ["subject.bare.setkey"]
    fused = _SLOTS.get(made_of.mode.name, "encrypt_blocks").format(way="decrypt" if case.decrypting else "encrypt")
    return [f"subject.bare.{name}" for name in dict.fromkeys([fused, "encrypt_blocks", "decrypt_blocks"])]


def repro_text(
    made_of: Ingredients, key: Key, case: Case, departure: Departure, *, expected: Results, text: str
) -> str:
    """The source of the reproducer of a sealed case; ``expected`` is the oracle's answer to it alone."""
    batch = whole_batch(case)
    encoded = bytearray(wire.batch_len(batch))
    wire.encode_batch_into(batch, memoryview(encoded))
    session = "\n".join(f" *   {line}" for number in range(len(batch)) for line in session_lines(batch, number))
    runner = [Path(word).name if number == 0 else word for number, word in enumerate(runner_command(made_of.lane))]
    head = (
        f"/* SPDX-License-Identifier: Apache-2.0\n *\n * Finding {key.id}: {key.implementation}, {key.algorithm}, "
        f"{key.symptom}, {key.fault_class}.\n * {text}\n *\n{session}\n *\n"
        f"{_how_to_run(made_of, runner)}"
        " * It prints what was expected and what it got. Status: 1 where the subject departs, else 0.\n"
        + "".join(f" * {sentence}\n" for sentence in _watched(made_of.lane, key))
        + " */\n"
    )
    arrays = _bytes("encoded", bytes(encoded)) + _bytes("expected_statuses", expected.statuses.tobytes())
    arrays += _bytes("expected_out", expected.out.tobytes())
    targets = "".join(
        f"    repro_targets[{i}] = (uintptr_t){name};\n" for i, name in enumerate(_targets(made_of, case, departure.op))
    )
    library = isinstance(made_of.subject, Provider)
    cipher = key.algorithm.partition("(")[2].rstrip(")")
    parts = {
        "@ARRAYS@": arrays.rstrip("\n"),
        "@DECLARE@": _DECLARE_LIBRARY if library else _DECLARE_LEAF,
        "@USE@": _USE_LIBRARY if library else _USE_LEAF,
        "@TARGETS@": targets,
        "@NAME@": made_of.name,
        "@CIPHER@": cipher,
        "@MODE@": made_of.mode.name,
        "@WATCH@": " | ".join(f"WATCH_{name.upper()}" for name in _watchers(key)),
        "@WIN64@": str(int(made_of.lane.abi == "win64")),
    }
    program = _PROGRAM
    for mark, replacement in parts.items():
        program = program.replace(mark, replacement)
    return head + program


def _how_to_run(made_of: Ingredients, runner: Iterable[str]) -> str:
    """The lines of the head with the commands; of an adapter in C++, that it has none and what has."""
    if made_of.in_cxx:
        return f" * {_NOT_IN_C[:1].upper()}{_NOT_IN_C[1:]}: build and run {_INSTEAD}.\n"
    return (
        f" * Build and run it in its folder; SUBJECT names the folder of {made_of.what}:\n"
        f" *   {_shown_command(made_of)}\n *   {' '.join([*runner, './repro'])}\n"
    )


def _watchers(key: Key) -> tuple[str, ...]:
    """Those of the shim that say something of one case; what a call leaves behind only where that is the finding."""
    return ("layout", "canary", "registers", "context", *(["wipe"] if key.symptom == "wipe" else []))


def _watched(lane: Lane, key: Key) -> Iterable[str]:
    """What the program looks at, and what of the lane it does not have; a sentence each."""
    yield f"It watches {', '.join(_watchers(key))} as a shim does; it watches no code paths and has no second thread."
    if lane.sanitizer != "none":
        yield f"It is built without the {lane.sanitizer} sanitizer of its lane."
    if lane.hides:
        yield f"Its lane hides {', '.join(lane.hides)} of the CPU; it does not."


_DECLARE_LEAF = "extern subject_getter_fn @NAME@;"
_DECLARE_LIBRARY = "extern const struct subject_session @NAME@;"
_USE_LEAF = """    const struct subject_leaf *leaf = @NAME@(features_detect());
    if (leaf == NULL) {
        shim_fail("this CPU lacks what the implementation needs");
    }
    driver_use_leaf(leaf);"""
_USE_LIBRARY = """    if (!driver_use_session(&@NAME@, "@CIPHER@")) {
        shim_fail("the library lacks the algorithm");
    }"""

_PROGRAM = """#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim.h"

/* The session as docs/reference/protocol.md has it, and what the generic implementation answers. */
@ARRAYS@

extern const struct subject_mode subject_mode_@MODE@;
@DECLARE@

uint64_t num_calls;
volatile uintptr_t repro_targets[4]; /* where a debugger stops: the subject's functions that this case calls */

_Noreturn void shim_fail(const char *sentence)
{
    printf("cannot run: %s\\n", sentence);
    exit(3);
}

/* A watcher saw something, or the process was about to end; called from signal handlers too. */
_Noreturn void shim_end_after_departure(const struct departure *d)
{
    static const char *const symptoms[] = {"ends or hangs", "output", "iv", "changes a canary", "reads beyond",
        "writes beyond", "does not keep registers", "changes an input", "changes a context",
        "leaves a secret behind", "differs from call to call"};
    static const char *const buffers[] = {"an address", "key", "iv given", "input", "output", "iv", "associated data",
        "tag", "context", "second context", "results", "batch"};
    printf("expected: the operation keeps to its buffers and registers and comes back\\n");
    printf("got: operation %u: %s; %s, offset %lld; signal %u; registers %#llx (bits as in protocol.md)\\n",
           (unsigned)load_le64(batch.results + 16), symptoms[d->symptom <= 10 ? d->symptom : 0],
           buffers[d->buffer <= 11 ? d->buffer : 0], (long long)d->offset, d->signal,
           (unsigned long long)d->registers);
    fflush(stdout);
    _exit(1);
}

static void say(const char *word, const uint8_t *data, size_t len)
{
    printf("%s", word);
    for (size_t i = 0; i < len; i++) {
        printf("%02x", data[i]);
    }
    printf("\\n");
}

static int differ(const char *what, const uint8_t *expected, const uint8_t *got, size_t len)
{
    if (memcmp(expected, got, len) == 0) {
        return 0;
    }
    printf("%s\\n", what);
    say("  expected: ", expected, len);
    say("  got:      ", got, len);
    return 1;
}

__attribute__((noinline)) void repro_begin(void)
{
    __asm__ volatile("" ::: "memory");
}

int main(void)
{
    static uint8_t *aligned, *results;
    if (posix_memalign((void **)&aligned, 64, sizeof encoded) != 0) {
        shim_fail("no memory");
    }
    memcpy(aligned, encoded, sizeof encoded);
    arenas_init();
    signals_init();
    watchdog_start();
    subject.mode = &subject_mode_@MODE@;
    subject.watch = @WATCH@;
    subject.win64 = @WIN64@;
@USE@
@TARGETS@    const char *wrong = batch_open(aligned, sizeof encoded);
    if (wrong != NULL) {
        shim_fail(wrong);
    }
    results = calloc(1, batch_results_len());
    batch_bind_results(results, batch_results_len());
    repro_begin();
    for (uint64_t i = 0; i < batch.num_cases; i++) {
        const struct departure *d = session_run_case(i);
        if (d != NULL) {
            shim_end_after_departure(d);
        }
    }
    int departs = differ("statuses of the operations:", expected_statuses, batch.statuses, batch.num_ops);
    departs |= differ("outputs:", expected_out, batch.out, batch.out_len);
    printf("%s\\n", departs ? "departs" : "agrees");
    return departs;
}
"""


def gdb_script(program: Path, op: int, *, port: int | None) -> str:
    """Commands for gdb: start the program, or reach it at an emulator's ``port``, and stop at the subject's call."""
    begin = (
        f"file {program}\nset sysroot /\ntarget remote localhost:{port}\nbreak repro_begin\ncontinue\n"
        if port
        else f"file {program}\nbreak repro_begin\nrun\n"
    )
    return (
        "set pagination off\nset confirm off\nhandle SIGALRM SIGVTALRM SIGPROF nostop noprint pass\n"
        + begin
        + "set $i = 0\nwhile $i < 4\n  if repro_targets[$i] != 0\n"
        + f"    break *repro_targets[$i] if *(unsigned long long *)(batch.results + 16) == {op}\n"
        + "  end\n  set $i = $i + 1\nend\ncontinue\nbacktrace\n"
    )
