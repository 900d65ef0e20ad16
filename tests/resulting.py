# SPDX-License-Identifier: Apache-2.0
"""Results as tests of formats and gates need them: cells that agreed, departed, declined, were accepted or are void."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crosslane.plan import Counts
from crosslane.records import AlgorithmResult, CellResult, FaultSeen, Finding, Judgement, Library, Proof
from crosslane.results import RESULT_VERSION, RunResult

NATIVE, ASAN = "x86_64_native", "x86_64_asan"
HOSTILE = "a|b <script>alert(1)</script> `x` @team [l](http://x) \x1b[31m\x00\ud800 #1 ]]> & \u202e\nnext *line*"
"""Everything that some format takes for its own."""

PASSED = Judgement("agreement", "It answers as generic does.", True, "")
OTHER = Judgement("paths", "It takes each of its paths.", None, "paths cannot be observed in this lane")
FAILED = Judgement("agreement", "It answers as generic does.", False, "byte 5 differs")
FOUND = Finding("0123456789abcdef-3-17", "disagree", "output", "alone", 2, "byte 5 differs")
FAULT = FaultSeen("0123456789ab", "output", "tail", "byte 5 differs")
LIBRARY = Library("openssl", "3.0", "system", "libssl3", "3.0-1", "/lib/libcrypto.so", "ab" * 32)


def cell(name: str = f"ctr(toy)/toy-avx2-x86_64@{NATIVE}", **changes: Any) -> CellResult:
    """A cell that agreed, with changes."""
    facts: dict[str, Any] = {
        "cell": name, "state": "ran", "reason": "", "comparisons": 648, "wanted": 640, "skipped": 0, "num_vectors": 8,
        "num_departed": 0, "num_sampled": 0, "findings": (), "needed_features": ("avx2",),
        "cpu_features": ("avx", "avx2"), "declared_paths": ("1way", "wrap"),
        "paths": {"1way": ("1", "2-3+"), "wrap": ("8-15",)}, "unwatched": (), "cpu_s": 0.5,
        "judgements": (PASSED, OTHER),
    }  # fmt: skip
    return CellResult(**{**facts, **changes})


def red(name: str = f"ctr(toy)/toy-avx2-x86_64@{NATIVE}", **changes: Any) -> CellResult:
    """A cell that departed."""
    facts = {"findings": (FOUND,), "faults": (FAULT,), "num_departed": 2, "judgements": (FAILED, OTHER)}
    return cell(name, **{**facts, **changes})


def accepted(name: str = f"ctr(toy)/openssl@{NATIVE}", **changes: Any) -> CellResult:
    """A cell whose departure is accepted."""
    fault = replace(FAULT, accepted="known upstream since 2021")
    return red(name, **{"faults": (fault,), "accepted": True, "library": LIBRARY, "provider": True, **changes})


def declined(name: str = f"ctr(toy)/toy-ce@{NATIVE}", **changes: Any) -> CellResult:
    """A cell whose CPU lacks something."""
    facts = {"state": "declined", "comparisons": 0, "wanted": 0, "paths": {}, "needed_features": ("sm4",)}
    judgements = (replace(PASSED, passed=None, reason="the CPU of this lane lacks what it needs"),)
    return cell(name, **{**facts, "judgements": judgements, **changes})


def void(name: str = f"ctr(toy)/toy-generic@{ASAN}", **changes: Any) -> CellResult:
    """A cell of which nothing is known."""
    judgements = (replace(FAILED, reason="did not run: no answer"),)
    return cell(name, **{"state": "void", "reason": "no answer", "judgements": judgements, **changes})


def algorithm(*cells: CellResult, name: str = "ctr(toy)", **changes: Any) -> AlgorithmResult:
    """A plan's result."""
    facts: dict[str, Any] = {"name": name, "algorithm": name.partition(" ")[0], "manifest": "{}"}
    return AlgorithmResult(**{**facts, "digest": "0123456789abcdef", "cells": cells, "took_s": 1.5, **changes})


def run(*algorithms: AlgorithmResult | CellResult, **changes: Any) -> RunResult:
    """A whole result; cells are those of one algorithm."""
    plans = [item for item in algorithms if isinstance(item, AlgorithmResult)]
    cells = [item for item in algorithms if isinstance(item, CellResult)]
    facts: dict[str, Any] = {
        "version": RESULT_VERSION, "revision": "abcdef0123456789", "seed": "a seed", "host": "x86_64",
        "tools": {NATIVE: {"compiler": "gcc 12"}}, "sandbox_missing": (), "notes": (),
        "algorithms": (*plans, *([algorithm(*cells)] if cells else [])), "took_s": 3.0, "cpu_s": 2.5,
        "counts": vars(Counts()),
    }  # fmt: skip
    return RunResult(**{**facts, **changes})


def every() -> RunResult:
    """One cell of each kind, and a planted fault that was not caught."""
    return run(
        algorithm(cell(), red(f"ctr(toy)/toy-bad@{NATIVE}"), declined(), void()),
        algorithm(accepted(), name="ctr(toy) within openssl"),
        proofs=(Proof("toy-carry", f"ctr(toy)/toy@{NATIVE}", control=False, whole=False, holds=False, text="missed"),),
        unfinished=("cbc(toy)",),
    )


def hostile() -> RunResult:
    """A subject whose every word is written to break out of a format."""
    finding = replace(FOUND, text=HOSTILE)
    bad = red(
        findings=(finding,), faults=(replace(FAULT, text=HOSTILE),), judgements=(replace(FAILED, reason=HOSTILE),)
    )
    skipped = cell(f"ctr(toy)/toy-b@{NATIVE}", judgements=(replace(OTHER, reason=HOSTILE),))
    kept = accepted(faults=(replace(FAULT, accepted=HOSTILE),))
    lost = void(reason=HOSTILE)
    proof = Proof("toy-carry", f"ctr(toy)/toy@{NATIVE}", control=False, whole=False, holds=False, text=HOSTILE)
    return run(bad, skipped, kept, lost, seed=HOSTILE, proofs=(proof,), unfinished=(HOSTILE,))
