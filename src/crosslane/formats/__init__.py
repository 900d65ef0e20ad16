# SPDX-License-Identifier: Apache-2.0
"""What a run's result looks like to people and to other tools: each writer is a function from the result to a text."""

from crosslane.formats.junit import junit_text
from crosslane.formats.ktap import ktap_text
from crosslane.formats.markdown import markdown_text
from crosslane.formats.matrix import matrix_lines
from crosslane.formats.outcomes import Gated, Red
from crosslane.formats.places import Place, places_of
from crosslane.formats.sarif import sarif_text

__all__ = [
    "Gated",
    "Place",
    "Red",
    "junit_text",
    "ktap_text",
    "markdown_text",
    "matrix_lines",
    "places_of",
    "sarif_text",
]
