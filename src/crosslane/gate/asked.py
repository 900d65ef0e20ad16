# SPDX-License-Identifier: Apache-2.0
"""What a policy asks of this machine: its patterns as cells, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosslane.errors import BadInput
from crosslane.gate.policy import Elsewhere, Policy, RequiredCells
from crosslane.lanes import lanes_for_host
from crosslane.model import Cell, Registry
from crosslane.names import match_cell, select_cells, unknown_name
from crosslane.plan import Selection, selected_cells
from crosslane.registry import cells

__all__ = ["Asked", "asked_of", "selection_of"]


@dataclass(frozen=True)
class Asked:
    """A policy with the cells that each of its requirements means, by name."""

    policy: Policy
    required: tuple[tuple[RequiredCells, tuple[str, ...]], ...]


def selection_of(policy: Policy, registry: Registry, without: Sequence[str], providers: Sequence[str]) -> Selection:
    """The cells that the policy's run has; lanes of machines of another architecture are left out.

    Raises BadInput where no lane is left.
    """
    elsewhere = {lane.name for lane in registry.lanes} - {lane.name for lane in lanes_for_host(registry)}
    lanes = tuple(name for name in policy.lanes if name not in elsewhere)
    if policy.lanes and not lanes:
        raise BadInput(
            f"{policy.file}: [run]: none of the lanes {', '.join(policy.lanes)} exists on this machine: add "
            "one that does"
        )
    return Selection(policy.patterns, lanes, (*policy.without, *without), tuple(providers))


def asked_of(policy: Policy, registry: Registry, selection: Selection) -> Asked:
    """Name the cells; raises BadInput, with the nearest names, for a pattern or lane that there is not."""
    try:
        run, lanes = selected_cells(registry, selection)
    except BadInput as error:
        raise BadInput(f"{policy.file}: [run]: {error}") from None
    known, names = [lane.name for lane in lanes_for_host(registry)], {lane.name for lane in lanes}
    for lane in policy.required_lanes:
        if lane.name not in known:
            raise BadInput(f"{policy.file}: [[lane]]: {unknown_name('lane', lane.name, known)}")
        if lane.name not in names:
            raise BadInput(
                f"{policy.file}: [[lane]]: {lane.name} is required and not run: add it to lanes in [run], which has "
                f"{', '.join(sorted(names))}"
            )
    for item in policy.elsewhere:
        _check_elsewhere(policy, registry, item)
    required = [(item, _named(policy, registry, run, item)) for item in policy.required]
    return Asked(policy, tuple(required))


def _check_elsewhere(policy: Policy, registry: Registry, item: Elsewhere) -> None:
    """Raise BadInput for a name that means nothing on the hosts that its table is about."""
    for host in item.hosts:
        try:
            if item.table == "require":
                select_cells(cells(registry, host), (item.name,))
                continue
            known = [lane.name for lane in lanes_for_host(registry, host)]
            if item.name not in known:
                raise unknown_name("lane", item.name, known)
        except BadInput as error:
            raise BadInput(f"{policy.file}: [[{item.table}]] of the host {host}: {error}") from None


def _named(policy: Policy, registry: Registry, run: Sequence[Cell], item: RequiredCells) -> tuple[str, ...]:
    fitting = [cell for cell in run if match_cell(cell, item.pattern)]
    if fitting:
        return tuple(map(str, fitting))
    try:
        elsewhere = select_cells(cells(registry), (item.pattern,))
    except BadInput as error:
        raise BadInput(f"{policy.file}: [[require]]: {error}") from None
    raise BadInput(
        f"{policy.file}: [[require]]: the pattern {item.pattern!r} means cells such as {elsewhere[0]}, which are "
        "required and not run: add them to cells or lanes in [run], or take them out of without"
    )
