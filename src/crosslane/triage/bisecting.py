# SPDX-License-Identifier: Apache-2.0
"""Finds the commit since which a finding departs: drives ``git bisect run`` over the history of its subject.

The history is walked in a working tree of its own, so that the user's stays as it is. Each step is a process of its
own (``step.py``), which builds, runs and answers by its status. No name ever goes through a shell.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from crosslane.data import shown
from crosslane.errors import BadInput, HarnessFault, MissingTool
from crosslane.findings.store import Kept
from crosslane.triage.step import BAD, BROKEN, GOOD, Step

__all__ = ["Search", "bisect"]

_FIRST_BAD = "is the first bad commit"
_MOST_WORDS = 240


@dataclass(frozen=True)
class Search:
    """What to walk: ``repo`` is the checkout, ``build`` the command that builds a revision, run in a checkout of it.

    ``subject`` is the folder within the repository that ``--impls`` would name; None: the one of the finding, where
    that lies in the repository. ``library`` stands in its place for a library: ``PROVIDER:FOLDER[:INCLUDE]``, folders
    within the repository as a build leaves them. Each revision runs the case ``repeat`` times, and departs where one of
    them does.
    """

    repo: Path
    build: str
    good: str
    bad: str
    lanes: tuple[str, ...] = ()
    repeat: int = 5
    subject: Path | None = None
    library: str = ""


def bisect(kept: Kept, search: Search, findings: Path) -> Iterator[str]:
    """Lines that say what was found, the last one the commit or those among which it is.

    Raises BadInput in one sentence for a folder that is no repository, revisions that are none, are not in order or do
    not hold, and a build that does not exist; MissingTool without git.
    """
    top = _top(search.repo)
    good, bad = (_commit(top, text, f"--{side}") for text, side in ((search.good, "good"), (search.bad, "bad")))
    if good == bad:
        raise BadInput(
            f"--good and --bad are the same revision, {good[:12]}: give an older one that agrees with --good"
        )
    if _git(top, "merge-base", "--is-ancestor", good, bad).returncode:
        raise BadInput(
            f"{search.good} is no ancestor of {search.bad} in {shown(search.repo)}: give as --good a revision that "
            "lies before the one that departs"
        )
    library, words = _library(search), _words(search)
    subject = Path() if library else _subject(kept, search, top)
    with _tree(top, bad) as tree:
        _check_program(words, tree, search)
        step = Step(
            tree=str(tree),
            build=words,
            finding=kept.record.id,
            findings=str(findings.resolve()),
            subject=str(subject),
            lanes=search.lanes,
            repeat=search.repeat,
            library=library,
        )
        spec = tree.parent / "step.json"
        spec.write_text(json.dumps(asdict(step)), encoding="utf-8")
        for revision, given, wanted in ((bad, search.bad, BAD), (good, search.good, GOOD)):
            _check_end(tree, spec, (revision, given, wanted), kept.record.id)
            yield f"{given} ({revision[:12]}) {'departs' if wanted == BAD else 'agrees'}"
        yield from _run(tree, spec, good, bad)


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    git = shutil.which("git")
    if git is None:
        raise MissingTool("git is not installed: install the Debian package git")
    command = [git, "-C", str(folder), "-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false", *arguments]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )


def _top(repo: Path) -> Path:
    done = _git(repo, "rev-parse", "--show-toplevel") if repo.is_dir() else None
    if done is None or done.returncode:
        raise BadInput(f"{shown(repo)}: is no checkout of a git repository: give the subject's with --repo")
    return Path(done.stdout.rstrip("\n"))


def _commit(top: Path, text: str, option: str) -> str:
    done = _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}")
    if done.returncode:
        raise BadInput(f"{option}: {text!r} is no revision of the repository: give a commit, a tag or a branch of it")
    return done.stdout.strip()


def _subject(kept: Kept, search: Search, top: Path) -> Path:
    """The folder of implementations, relative to the top of the repository."""
    record = kept.record
    if search.subject is not None:
        if search.subject.is_absolute() or ".." in search.subject.parts:
            raise BadInput(f"--subject: {search.subject} leads out of the repository: give a folder within it")
        return search.subject
    for folder in record.impls:
        if Path(folder).resolve().is_relative_to(top.resolve()):
            return Path(folder).resolve().relative_to(top.resolve())
    if not record.impls:
        raise BadInput(
            f"finding {record.id} was found without --impls: name the folder of the implementation within the "
            "repository with --subject, or what a build of a library leaves with --library"
        )
    raise BadInput(
        f"finding {record.id} is of {', '.join(record.impls)}, which does not lie in {shown(search.repo)}: correct "
        "--repo, or name the folder within it with --subject"
    )


def _library(search: Search) -> tuple[str, ...]:
    """The provider and the folders that ``--library`` names."""
    words = tuple(search.library.split(":")) if search.library else ()
    inside = all(word and not Path(word).is_absolute() and ".." not in Path(word).parts for word in words[1:])
    if words and (len(words) not in (2, 3) or not words[0] or not inside):
        raise BadInput(
            f"--library: {search.library!r} is not PROVIDER:FOLDER or PROVIDER:FOLDER:INCLUDE with folders within the "
            "repository, such as libgcrypt:src/.libs:src; correct it"
        )
    return words


def _words(search: Search) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(search.build))
    except ValueError as error:
        raise BadInput(f"--build: {search.build!r} cannot be cut into words ({error}): correct its quotes") from None
    if not words:
        raise BadInput("--build is empty: give the command that builds a revision, `true` where nothing is to be built")
    return words


def _check_program(words: Sequence[str], tree: Path, search: Search) -> None:
    """The build's program must be there, on the path or in the checkout of the bad revision."""
    program = words[0]
    found = os.access(tree / program, os.X_OK) if "/" in program else shutil.which(program) is not None
    if not found:
        where = f"the checkout of {search.bad}" if "/" in program else "the path"
        raise BadInput(f"--build: there is no program {program!r} in {where}: correct the command")


@contextmanager
def _tree(top: Path, revision: str) -> Iterator[Path]:
    """A working tree of its own at a revision, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="crosslane-bisect-") as name:
        tree = Path(name).resolve() / "tree"
        done = _git(top, "worktree", "add", "--detach", "--force", str(tree), revision)
        if done.returncode:
            raise HarnessFault(f"git makes no working tree: {_last_line(done.stderr)}: remedy that and run again")
        try:
            yield tree
        finally:
            _git(tree, "bisect", "reset", "--quiet")
            _git(top, "worktree", "remove", "--force", str(tree))


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "".join(c for c in (lines[-1] if lines else "it says nothing") if c.isprintable())[:_MOST_WORDS]


def _step_command(spec: Path) -> list[str]:
    return [sys.executable, "-m", "crosslane.triage.step", str(spec)]


def _environment() -> dict[str, str]:
    """The step runs this package, whatever the working folder holds."""
    package = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([package, *([known] if known else [])]), "PYTHONSAFEPATH": "1"}


def _check_end(tree: Path, spec: Path, end: tuple[str, str, int], finding: str) -> None:
    """See that a revision answers as it was given; raises BadInput where it does not."""
    revision, given, wanted = end
    if _git(tree, "checkout", "--quiet", "--force", "--detach", revision).returncode:
        raise HarnessFault(f"git cannot check out {revision}: remedy that and run again")
    done = subprocess.run(
        _step_command(spec), cwd=tree, env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace", check=False,
    )  # fmt: skip
    if done.returncode == wanted:
        return
    side, said = ("bad", "agrees") if wanted == BAD else ("good", "departs")
    if done.returncode == BROKEN:
        raise BadInput(
            f"the {side} revision {given} cannot be built or run ({_last_line(done.stderr)}): correct --build, or give "
            "another revision"
        )
    if done.returncode not in (GOOD, BAD):
        raise HarnessFault(f"the revision {given} cannot be judged: {_last_line(done.stderr)}")
    raise BadInput(f"the {side} revision {given} {said} on the case of finding {finding}: give another with --{side}")


def _run(tree: Path, spec: Path, good: str, bad: str) -> Iterator[str]:
    """Let git walk, and say where it ended."""
    started = _git(tree, "bisect", "start", bad, good)
    if started.returncode:
        raise HarnessFault(f"git bisect does not start: {_last_line(started.stderr)}: remedy that and run again")
    git = shutil.which("git")
    assert git is not None
    done = subprocess.run(
        [git, "-C", str(tree), "bisect", "run", *_step_command(spec)], cwd=tree, env=_environment(),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    log = _git(tree, "bisect", "log").stdout.splitlines()
    judged = [line for line in log if line.startswith("# ") and ": [" in line and "first" not in line]
    yield from (line.removeprefix("# ") for line in judged[2:])
    if _FIRST_BAD in done.stdout:
        first = _git(tree, "rev-parse", "--verify", "refs/bisect/bad").stdout.strip()
        yield f"it departs since {_described(tree, first)}"
        return
    left = [line.partition("[")[2].partition("]")[0] for line in log if line.startswith("# possible first bad commit")]
    if not left:
        raise HarnessFault(f"git bisect ended without an answer: {_last_line(done.stderr + done.stdout)}")
    yield f"it departs since one of {len(left)} commits, between which nothing can be built or run:"
    yield from (f"  {_described(tree, commit)}" for commit in left)


def _described(tree: Path, commit: str) -> str:
    text = _git(tree, "show", "--no-patch", "--format=%h %as %s", commit).stdout.strip()
    return "".join(c for c in text if c.isprintable())[:_MOST_WORDS]
