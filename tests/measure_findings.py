# SPDX-License-Identifier: Apache-2.0
"""Measures findings on the planted faults: ``.venv/bin/python tests/measure_findings.py [--seeds 10] [--lane LANE]``.

Says for each fault what was found with every seed, and in the end the share of least cases of at most two blocks
beyond what the fault needs and one layout feature, the slowest finding of each lane, and findings per fault. Status 1
where a fault was split, merged or missed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click
from shrinking import AEAD_FAULTS, FAULTS, TWO, is_small, sow

from crosslane.findings.measure import Measured, measure_folder, report
from crosslane.isa import host_arch


@click.command()
@click.option("--seeds", default=10, show_default=True, type=click.IntRange(1), help="Number of seeds.")
@click.option("--lane", "lanes", multiple=True, help="Lane (default: the native one).")
@click.option("--aead", is_flag=True, help="The faults in authenticated modes too.")
def main(seeds: int, lanes: tuple[str, ...], aead: bool) -> None:
    """Measure shrinking on the planted faults."""
    plants = [*FAULTS, TWO, *(AEAD_FAULTS if aead else ())]
    named = {plant.driver: plant for plant in plants}
    found: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        sow(Path(folder), plants)
        chosen = lanes or (f"{host_arch()}_native",)
        for item in measure_folder(Path(folder), chosen, [f"seed {number}" for number in range(seeds)]):
            found.append(item)
            classes = "; ".join(f"{key.symptom}, {key.fault_class}" for key in item.keys)
            click.echo(f"{item.driver}@{item.lane}, {item.seed}: {item.took_s:.2f} s a finding: {classes}", err=True)
    stable = report(found, click.echo)
    single = [item for item in found if item.driver != TWO.driver]
    small = sum(len(item.cases) == 1 and is_small(named[item.driver], item.cases[0]) for item in single)
    click.echo(f"minimised: {small} of {len(single)} ({small / len(single):.1%})")
    wanted = {plant.driver: 1 + (plant is TWO) for plant in plants}
    right = all(len(item.keys) == wanted[item.driver] for item in found)
    counts = sorted({(len(item.keys), wanted[item.driver]) for item in found})
    click.echo("findings for faults: " + ", ".join(f"{keys} for {faults}" for keys, faults in counts))
    sys.exit(0 if stable and right else 1)


if __name__ == "__main__":
    main()
