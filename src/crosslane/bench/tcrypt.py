# SPDX-License-Identifier: Apache-2.0
"""The layouts in which the kernel's tcrypt figures are published, from ``tcrypt.toml``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosslane.bench.jobs import Job
from crosslane.bench.measure import Measurement
from crosslane.bench.tables import mib_per_s
from crosslane.errors import BadInput
from crosslane.names import WORD_PATTERN
from crosslane.tomlread import Field, read_fields, read_toml

__all__ = ["Layout", "jobs_for", "load_layouts", "tcrypt_tables"]

_FIELDS = {
    "number": Field(kind="int", least=0),
    "cipher": Field(kind="str", pattern=f"{WORD_PATTERN}|\\*"),
    "modes": Field(kind="str", many=True, min_num=1, pattern=WORD_PATTERN),
    "key_lens": Field(kind="int", many=True, least=0),
    "sizes": Field(kind="int", many=True, min_num=1, least=1),
    "message_len": Field(kind="int", least=0),
}


@dataclass(frozen=True)
class Layout:
    """One tcrypt mode number. ``cipher`` ``*`` stands for all; no ``key_lens`` for the usual ones, in bytes.

    ``sizes`` are message lengths, or, where ``message_len`` is not 0, the lengths of the updates in which one message
    of that length is given.
    """

    number: int
    cipher: str
    modes: tuple[str, ...]
    key_lens: tuple[int, ...]
    sizes: tuple[int, ...]
    message_len: int


def load_layouts(path: Path | None = None) -> dict[int, Layout]:
    """Read the layouts by number; raises ``BadInput`` for anything that is not exactly a layout."""
    path = path or Path(__file__).with_name("tcrypt.toml")
    tables = read_toml(path).pop("layout", None)
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise BadInput(f"{path.name}: holds no [[layout]] tables; restore the file")
    found = [Layout(**read_fields(path, table, _FIELDS, where=f"layout {i + 1}")) for i, table in enumerate(tables)]
    return {layout.number: layout for layout in found}


def jobs_for(layout: Layout, jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs that a layout shows, one for each update length where it has a message length.

    Raises ``BadInput`` where it shows none of them.
    """
    fitting = [
        job
        for job in jobs
        if layout.cipher in ("*", job.cipher.name)
        and job.mode.name in layout.modes
        and (not layout.key_lens or job.key_len in layout.key_lens)
    ]
    if not fitting:
        cipher = "any cipher" if layout.cipher == "*" else layout.cipher
        raise BadInput(
            f"tcrypt {layout.number} shows {', '.join(layout.modes)} of {cipher}, and none of the chosen cells is "
            "that; choose other cells, or add the mode under impls/modes"
        )
    fitting.sort(key=lambda job: (job.cipher.name, job.key_len, layout.modes.index(job.mode.name)))
    if layout.message_len == 0:
        return fitting
    return [replace(job, update_len=size) for job in fitting for size in layout.sizes]


def tcrypt_tables(layout: Layout, results: Sequence[Measurement]) -> str:
    """One block a driver and key length, one row a mode and direction, MB/s (of 2^20 bytes) by block or update size."""
    blocks: dict[tuple[str, int], dict[str, dict[int, float]]] = {}
    for found in results:
        job = found.job
        row = f"{job.mode.name.upper().replace('_', '-')} {job.direction[:3]}" if not job.is_mac else str(job.algorithm)
        for (name, size), series in found.series.items():
            column = job.update_len if layout.message_len else size
            cells = blocks.setdefault((name, job.key_len), {}).setdefault(row, {})
            cells[column] = mib_per_s(series.ns_per_byte.value)
    texts = []
    for (name, key_len), rows in blocks.items():
        corner = f"{name} {8 * key_len}" if len(layout.key_lens) != 1 else name
        width = max(len(corner), *(len(row) for row in rows), 15)
        lines = [f"{corner:<{width}} |" + "".join(f"{size:9}" for size in layout.sizes)]
        lines.append("-" * (width + 1) + "+" + "-" * (9 * len(layout.sizes)))
        for row, cells in rows.items():
            figures = "".join(f"{cells[size]:9.2f}" if size in cells else f"{'-':>9}" for size in layout.sizes)
            lines.append(f"{row:>{width}} |{figures}")
        texts.append("\n".join(lines))
    what = f"update size, one message of {layout.message_len} bytes" if layout.message_len else "block size"
    return f"tcrypt {layout.number}: MB/s (1 MB = 2^20 bytes) by {what}\n\n" + "\n\n".join(texts)
