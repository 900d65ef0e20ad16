# SPDX-License-Identifier: Apache-2.0
"""Every driver answers as the generic implementation does, whatever sessions Hypothesis draws."""

from __future__ import annotations

from hypothesis import given

from crosslane.findings.case import Case
from crosslane.strategies import Pair, sessions


def test_sessions_agree(pair: Pair) -> None:
    @given(sessions(pair.manifest, refusals=True))
    def agree(case: Case) -> None:
        pair.check(case)

    agree()
    assert pair.num_compared > 0
