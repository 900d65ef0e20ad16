# SPDX-License-Identifier: Apache-2.0
"""Every check of every cell. The work is done once per algorithm; items look at its result."""

from __future__ import annotations

import pytest


def test_cell(crosslane_judged: tuple[bool | None, str]) -> None:
    """One check of one cell; the check's sentence says what must hold."""
    passed, sentence = crosslane_judged
    if passed is False:
        pytest.fail(sentence, pytrace=False)
