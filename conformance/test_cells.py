# SPDX-License-Identifier: Apache-2.0
"""Every check of every cell. The work is done once per algorithm; items look at its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from crosslane.plugin import Judged


def test_cell(crosslane_judged: Judged) -> None:
    """One check of one cell; the check's sentence says what must hold. What is accepted is expected to fail."""
    if crosslane_judged.accepted:
        pytest.xfail(crosslane_judged.accepted)
    if crosslane_judged.passed is False:
        pytest.fail(crosslane_judged.sentence, pytrace=False)
