# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for sessions, and what runs them on two implementations: for tests of one's own too.

``docs/how-to/test-with-hypothesis.md`` shows how. Needs the extra ``test``, which brings Hypothesis.
"""

from __future__ import annotations

try:
    import hypothesis as _hypothesis
except ImportError as error:
    raise ImportError(
        "crosslane.strategies needs Hypothesis: install it with `pip install '.[test]'` in a clone of crosslane"
    ) from error

from crosslane.strategies.machine import SessionMachine, machine_for
from crosslane.strategies.pair import Departed, Pair, open_pair, pairs_of
from crosslane.strategies.profiles import chosen_profile, load_profile
from crosslane.strategies.sessions import sessions
from crosslane.strategies.spread import spread
from crosslane.strategies.values import contents, ivs, keys, lengths, manifest_named, places

__all__ = [
    "Departed",
    "Pair",
    "SessionMachine",
    "chosen_profile",
    "contents",
    "ivs",
    "keys",
    "lengths",
    "load_profile",
    "machine_for",
    "manifest_named",
    "open_pair",
    "pairs_of",
    "places",
    "sessions",
    "spread",
]

del _hypothesis
