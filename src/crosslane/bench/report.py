# SPDX-License-Identifier: Apache-2.0
"""Measurements as one JSON document, and the lines that say how they were taken."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosslane import __version__
from crosslane.bench.counting import Counts
from crosslane.bench.jobs import Job
from crosslane.bench.measure import Measurement, Settings
from crosslane.bench.modelled import Modelled
from crosslane.bench.stats import Estimate
from crosslane.data import shown
from crosslane.errors import BadInput

__all__ = ["SCHEMA", "conditions", "processor_name", "to_json", "write_text"]

SCHEMA = "crosslane bench 1"


def processor_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's name as the kernel tells it, else the architecture."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def conditions(results: Sequence[Measurement], settings: Settings) -> str:
    """Return how a run was measured, for people: machine, CPU, clock, rounds, what was taken again."""
    if not results:
        return ""
    retaken = sum(found.retaken for found in results)
    versions = dict(pair for found in results for pair in found.versions.items())
    libraries = "".join(f"; {name} {version}" for name, version in versions.items())
    return (
        f"machine: {processor_name()}, CPU {settings.cpu}, pinned{libraries}\n"
        f"cycles: {results[0].clock}\n"
        f"samples: {settings.rounds} a figure or more, {settings.sample_us} us each, in turns within one process; "
        f"medians; {retaken} interrupted ones were taken again"
    )


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _estimate(found: Estimate) -> dict[str, float | None]:
    return {"value": _number(found.value), "low": _number(found.low), "high": _number(found.high)}


def _job(job: Job) -> dict[str, Any]:
    return {
        "algorithm": str(job.algorithm),
        "direction": job.direction,
        "lane": job.lane.name,
        "key_len": job.key_len,
        "update_len": job.update_len,
        "subjects": [subject.name for subject in job.subjects],
    }


def _measured(found: Measurement) -> dict[str, Any]:
    base = found.job.subjects[0].name
    figures = []
    for (name, size), series in found.series.items():
        figure: dict[str, Any] = {
            "subject": name,
            "size": size,
            "real_len": series.real,
            "ns_per_byte": _estimate(series.ns_per_byte),
            "samples_ns": list(series.ns),
        }
        if found.clock.name != "none":
            figure["cycles_per_byte"] = _estimate(series.cycles_per_byte)
        if name != base and (base, size) in found.series:
            figure["ratio"] = {"over": base, **_estimate(found.ratio(name, size))}
        figures.append(figure)
    clock = {"name": found.clock.name, "cycles_per_us": found.clock.cycles_per_us, "why": found.clock.why}
    return {**_job(found.job), "clock": clock, "absent": dict(found.absent), "figures": figures}


def _counted(counts: Counts) -> dict[str, Any]:
    figures = [
        {"subject": name, "size": size, "instructions": number, "instructions_per_byte": counts.per_byte(name, size)}
        for (name, size), number in counts.instructions.items()
    ]
    return {**_job(counts.job), "absent": dict(counts.absent), "unavailable": counts.unavailable, "figures": figures}


def _modelled(found: Modelled) -> dict[str, Any]:
    figures = [
        {"subject": name, "size": size, "instructions_per_byte": figure.instructions, "cycles_per_byte": figure.cycles}
        for (name, size), figure in found.figures.items()
    ]
    how = {"core": found.core, "llvm": found.version, "unavailable": found.unavailable}
    return {**_job(found.job), **how, "absent": dict(found.absent), "figures": figures}


def to_json(
    results: Sequence[Measurement], counts: Sequence[Counts], models: Sequence[Modelled], settings: Settings
) -> str:
    """Return a run as JSON: lengths in bytes, times in ns of one message; intervals are 95 %, null where unbounded."""
    document = {
        "schema": SCHEMA,
        "version": __version__,
        "machine": {"processor": processor_name(), "cpu": settings.cpu, "system": platform.platform()},
        "settings": {"rounds": settings.rounds, "sample_us": settings.sample_us, "max_noise": settings.max_noise},
        "measured": [_measured(found) for found in results],
        "counted": [_counted(found) for found in counts],
        "modelled": [_modelled(found) for found in models],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def write_text(path: Path, text: str) -> None:
    """Write a file whole; raises ``BadInput`` where it cannot be written."""
    try:
        path.write_text(text)
    except OSError as error:
        raise BadInput(
            f"{shown(path)}: cannot be written ({error.strerror}); name a file in a folder that is writable"
        ) from None
