# SPDX-License-Identifier: Apache-2.0
"""``crosslane alarms``: many seeds with small counts, to see that no cell is red without a cause."""

from crosslane.alarms.cli import alarms_command

__all__ = ["alarms_command"]
