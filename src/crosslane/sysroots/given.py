# SPDX-License-Identifier: Apache-2.0
"""What a fetch is given, held against what apt's files and paths may carry; and text without credentials.

A release and an architecture become a folder's name, and with the mirror a line of ``sources.list``: a blank, a bracket
or a line's end in one of them would say something else there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from crosslane.errors import BadInput
from crosslane.fetched import ARCH_NAMES
from crosslane.model import Provider

__all__ = ["check_arch", "check_mirror", "check_packages", "read_suite", "without_credentials"]

_SUITE = "[a-z][a-z0-9-]{0,63}"
_PACKAGE = "[a-z0-9][a-z0-9+.-]+"
_MIRROR = r"(?:(?:mirror|tor)\+)?(?:https?://[^\s\[\]\"'#\\/]+(?:/[^\s\[\]\"'#\\]*)?|file:/[^\s\[\]\"'#\\]*)"
_CREDENTIALS = re.compile(r"(?<=://)\S*@")


def read_suite(text: str) -> str:
    """The name of a release; raises BadInput for what can be none."""
    if not re.fullmatch(_SUITE, text):
        raise BadInput(
            f"--suite has {text[:80]!r}; write the name of a release, such as bookworm, in at most 64 of a-z 0-9 -"
        )
    return text


def check_arch(text: str) -> None:
    """Raise BadInput for what is no architecture that is fetched, as Debian names it."""
    if text not in ARCH_NAMES:
        raise BadInput(f"--arch has {text[:80]!r}; write one of {', '.join(sorted(ARCH_NAMES))}")


def check_packages(providers: Iterable[Provider]) -> None:
    """Raise BadInput for a package whose name Debian does not allow."""
    for provider in providers:
        for name in (name for release in provider.releases for name in release.packages):
            if not re.fullmatch(_PACKAGE, name):
                raise BadInput(
                    f"the provider {provider.name} has the package {name!r}, whose name Debian does not allow: correct "
                    "packages in its provider.toml"
                )


def check_mirror(text: str) -> None:
    """Raise BadInput for what is no URI of a mirror. The message has no credentials."""
    if not text.isprintable() or not text.isascii() or not re.fullmatch(_MIRROR, text):
        shown = re.sub(r"(?s).*@", "***@", text)[:80]
        raise BadInput(
            f"the mirror {shown!r} cannot be asked; give with --mirror a URI that begins with http://, https:// or "
            "file:/ and has no blanks, quotes and brackets"
        )


def without_credentials(text: str) -> str:
    """The text with ``***`` for the user and password of every URI."""
    return _CREDENTIALS.sub("***@", text)
