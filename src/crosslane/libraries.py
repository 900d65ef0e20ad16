# SPDX-License-Identifier: Apache-2.0
"""What a run says of each library: one row for each version of it, algorithm and code path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from crosslane.instances import instance_of, unreached_backends
from crosslane.linking import place_of
from crosslane.model import Algorithm, Registry
from crosslane.plan import RunPlan
from crosslane.records import AlgorithmResult, CellResult, Library, LibraryRow
from crosslane.verdicts import cell_verdict

__all__ = ["library_lines", "library_rows", "printing_lines"]

_WORDS = {
    "agreed": "agreed",
    "FINDING": "finding",
    "not compared": "not promised",
    "declined": "outside domain",
    "UNUSABLE": "unusable",
    "VOID": "void",
    "DID NOT RUN": "did not run",
    "not effective": "switch not effective",
}
_IDLE_WORD = "switch not effective"
_IDLE = {_IDLE_WORD, "outside domain"}
"""What a run of all algorithms says of a code path that is none."""
_ORDER = tuple(dict.fromkeys(_WORDS.values()))


def library_rows(registry: Registry, plans: RunPlan, results: Sequence[AlgorithmResult]) -> tuple[LibraryRow, ...]:
    """A row for every algorithm of the suite, for each library of the run as it was loaded and each of its backends.

    What a library does not have is outside its domain; what it has and this run compared nothing of is not promised,
    nor is a backend whose CPU model nothing has where the library runs, as in a native sysroot.
    """
    cells = {cell.cell: cell for result in results for cell in result.cells if cell.provider}
    planned = [plan.cell for algorithm in plans.algorithms for plan in algorithm.cells if plan.provider]
    algorithms = _algorithms(registry)
    rows: list[LibraryRow] = []
    for name, lane, backend in sorted({(cell.driver, cell.lane, cell.backend) for cell in planned}):
        mine = [cell for cell in planned if (cell.driver, cell.lane, cell.backend) == (name, lane, backend)]
        instance = instance_of(registry, mine[0])
        if instance is None:
            continue
        known = [cells[str(cell)] for cell in mine if str(cell) in cells]
        library = next((cell.library for cell in known if cell.library), None)
        for algorithm in algorithms:
            cell = cells.get(str(instance.cell(algorithm.mode, algorithm.cipher)))
            has = instance.provider.domain(algorithm.mode, algorithm.cipher) is not None
            verdict = _word(cell) if cell else "not promised" if has else "outside domain"
            rows.append(LibraryRow(name, lane, backend, place_of(instance), library, str(algorithm), verdict))
        for lost in unreached_backends(registry, instance) if not backend else ():
            for algorithm in algorithms:
                has = instance.provider.domain(algorithm.mode, algorithm.cipher) is not None
                verdict = "not promised" if has else "outside domain"
                rows.append(LibraryRow(name, lane, lost.name, place_of(instance), library, str(algorithm), verdict))
    return tuple(sorted(rows, key=lambda row: (row.name, row.lane, row.backend)))


def _algorithms(registry: Registry) -> list[Algorithm]:
    block_lens = {cipher.name: cipher.block_len for cipher in registry.ciphers}
    return [
        Algorithm(mode.name, name) for mode in registry.modes for name, size in block_lens.items()
        if size in mode.block_lens
    ]  # fmt: skip


def _word(cell: CellResult) -> str:
    return _WORDS[cell_verdict(cell)]


def library_lines(rows: Sequence[LibraryRow]) -> Iterator[str]:
    """The rows for people: each library with its version, its code paths below it, and by verdict the algorithms."""
    for (name, lane), mine in groupby(rows, lambda row: (row.name, row.lane)):
        table = list(mine)
        yield f"library {name}@{lane}: {_described(table[0].place, table[0].library)}"
        for backend, part in groupby(table, lambda row: row.backend):
            found: dict[str, list[str]] = {}
            for row in part:
                found.setdefault(row.verdict, []).append(row.algorithm)
            for verdict in sorted(found, key=_ORDER.index):
                path = f"{backend}: " if backend else ""
                yield f"    {path}{verdict}, {len(found[verdict])}: {_by_mode(found[verdict])}"
            if set(found) <= _IDLE and _IDLE_WORD in found:
                yield (
                    f"    {backend}: its switch changes nothing in any algorithm: this processor lacks what it takes "
                    "away, or this release does not know it: correct [backend] in provider.toml, or choose another lane"
                )


def printing_lines(results: Sequence[AlgorithmResult]) -> list[str]:
    """A sentence for each library, or implementation, that writes to its standard output, in each of its lanes."""
    printing = {cell.cell.partition("/")[2] for result in results for cell in result.cells if cell.prints}
    return [
        f"{name} writes to standard output, which belongs to the program that calls it: what is written is kept from "
        "the suite's protocol, and every comparison counts; take the words out, or tell its authors"
        for name in sorted(printing)
    ]


def _described(place: str, library: Library | None) -> str:
    if library is None:
        return f"{place}, which was not loaded"
    package = f", package {library.package} {library.package_version}" if library.package else ""
    return (
        f"{place}, version {library.version}{package}, {library.file.rpartition('/')[2]} sha256 {library.sha256[:16]}"
    )


def _by_mode(algorithms: Sequence[str]) -> str:
    """Algorithms in little space: ``cbc(aes sm4) ctr(aes)``."""
    ciphers: dict[str, list[str]] = {mode: [] for mode in dict.fromkeys(text.partition("(")[0] for text in algorithms)}
    for text in algorithms:
        mode, _, rest = text.partition("(")
        ciphers[mode].append(rest.removesuffix(")"))
    return " ".join(f"{mode}({' '.join(names)})" for mode, names in ciphers.items())
