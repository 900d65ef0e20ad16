# SPDX-License-Identifier: Apache-2.0
"""``crosslane gate``: a run held against a policy and a baseline; ``crosslane report``: results in other formats."""

from crosslane.gate.cli import gate_command
from crosslane.gate.reports import report_command

__all__ = ["gate_command", "report_command"]
