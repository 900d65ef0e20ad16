# SPDX-License-Identifier: Apache-2.0
"""The profiles of Hypothesis: ``ci``, the same examples every time and few, and ``nightly``, many and new ones."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from crosslane.errors import BadInput

__all__ = ["PROFILES", "VARIABLE", "chosen_profile", "load_profile"]

PROFILES = ("ci", "nightly")
VARIABLE = "CROSSLANE_HYPOTHESIS_PROFILE"
_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture)
"""An emulated example takes milliseconds, and a session of long messages much data: neither says anything of a test."""


def chosen_profile(name: str | None = None) -> str:
    """``name``, else what ``CROSSLANE_HYPOTHESIS_PROFILE`` says, else ``ci``; raises BadInput for one that is none."""
    chosen = name if name is not None else os.environ.get(VARIABLE) or PROFILES[0]
    if chosen not in PROFILES:
        raise BadInput(f"{VARIABLE} is {chosen!r}, allowed are {', '.join(PROFILES)}; correct it")
    return chosen


def load_profile(name: str | None = None) -> settings:
    """Choose a profile for all tests of this process: by name, else by ``CROSSLANE_HYPOTHESIS_PROFILE``, else ``ci``.

    Raises BadInput for a name that is none.
    """
    chosen = chosen_profile(name)
    settings.register_profile(
        "ci",
        derandomize=True,
        database=None,
        max_examples=25,
        stateful_step_count=12,
        deadline=None,
        suppress_health_check=_SLOW,
    )
    settings.register_profile(
        "nightly",
        derandomize=False,
        max_examples=500,
        stateful_step_count=50,
        deadline=None,
        print_blob=True,
        suppress_health_check=_SLOW,
    )
    settings.load_profile(chosen)
    return settings()
