# SPDX-License-Identifier: Apache-2.0
"""Measures speed: in turns within one process natively, in instructions under qemu."""

from __future__ import annotations

from crosslane.bench.cli import bench_command

__all__ = ["bench_command"]
