# SPDX-License-Identifier: Apache-2.0
"""The table of a program's contents, as C source."""

from __future__ import annotations

from collections.abc import Sequence

from crosslane.model import Implementation, Mode
from crosslane.plants import Plant

__all__ = ["tables_text"]


def tables_text(
    implementations: Sequence[Implementation],
    modes: Sequence[Mode],
    sessions: Sequence[str] = (),
    plants: Sequence[Plant] = (),
    *,
    win64: bool = False,
) -> str:
    """Return the C source that defines what ``shim_tables.h`` declares.

    ``sessions`` are symbols of adapters. ``plants`` in modes are modes of their own; those in implementations come
    among ``implementations``. ``win64``: the implementations' assembly was built for the Windows x64 convention.
    """
    lines = ['#include "shim_tables.h"', ""]
    lines += [f"extern subject_getter_fn {item.symbol};" for item in implementations]
    lines += [f"extern const struct subject_mode subject_mode_{mode.name};" for mode in modes]
    lines += [f"extern const struct subject_mode {plant.symbol};" for plant in plants if plant.in_mode]
    lines += [f"extern const struct subject_session {symbol};" for symbol in sessions]
    lines += ["", "const struct shim_implementation shim_implementations[] = {"]
    for item in implementations:
        words = ", ".join(f'"{word}"' for word in (item.driver, item.cipher, item.symbol))
        lines.append(f'    {{{words}, {item.symbol}, "{",".join(item.paths)}", {int(win64)}, {int(item.wipes)}}},')
    lines += ["    {NULL, NULL, NULL, NULL, NULL, 0, 0},", "};", ""]
    lines += ["const struct shim_mode shim_modes[] = {"]
    lines += [f'    {{"{mode.name}", &subject_mode_{mode.name}}},' for mode in modes]
    lines += [f'    {{"{plant.name}", &{plant.symbol}}},' for plant in plants if plant.in_mode]
    lines += ["    {NULL, NULL},", "};", "", "const struct subject_session *const shim_sessions[] = {"]
    lines += [f"    &{symbol}," for symbol in sessions]
    lines += ["    NULL,", "};", ""]
    return "\n".join(lines)
