# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the suite. A subject's misbehaviour is a verdict, never an exception."""

from __future__ import annotations

__all__ = ["BadInput", "CrosslaneError", "HarnessFault", "MissingTool", "NotStarted"]


class CrosslaneError(Exception):
    """Base of all errors that the command line prints as one sentence.

    ``exit_status`` is what the process ends with: 2 for wrong use, 3 where the suite itself failed.
    """

    exit_status = 3


class BadInput(CrosslaneError):
    """Wrong use: a bad file, name, pattern or value. Says the file, the value, what is allowed and what to do."""

    exit_status = 2


class MissingTool(CrosslaneError):
    """A tool that a lane needs is not installed. Names the package that brings it."""

    exit_status = 2


class HarnessFault(CrosslaneError):
    """The suite's own machinery failed (a shim that answers garbage, a full disk): results are void."""

    exit_status = 3


class NotStarted(HarnessFault):
    """A shim ended before it said anything: where it is linked to a library, that may be the library's doing."""
