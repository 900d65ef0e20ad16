# SPDX-License-Identifier: Apache-2.0
"""``crosslane fuzz``: campaigns, the batch engine without end."""

from crosslane.fuzzing.cli import bench_fuzz_command, fuzz_command

__all__ = ["bench_fuzz_command", "fuzz_command"]
