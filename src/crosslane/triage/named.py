# SPDX-License-Identifier: Apache-2.0
"""What the classifier comes to."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Named", "blocks_text", "bytes_text"]


@dataclass(frozen=True)
class Named:
    """A class of ``bug_classes.BUG_CLASSES``, and a sentence without its full stop."""

    name: str
    sentence: str


def blocks_text(number: int) -> str:
    """Such as ``1 block``, ``8 blocks``."""
    return f"{number} block{'' if number == 1 else 's'}"


def bytes_text(number: int) -> str:
    """Such as ``1 byte``, ``16 bytes``."""
    return f"{number} byte{'' if number == 1 else 's'}"
