# SPDX-License-Identifier: Apache-2.0
"""The content folders as packages: ``pytest --pyargs crosslane._suite.conformance``.

In a wheel they lie beside this file. In a checkout, and so in an editable installation, they lie at its top.
"""

from __future__ import annotations

from pathlib import Path

__all__: list[str] = []


def _content(here: Path) -> str | None:
    """The checkout above ``src/crosslane/_suite``, where the content is not beside this file."""
    above = here.parents[2]
    return str(above) if not (here / "conformance").is_dir() and (above / "pyproject.toml").is_file() else None


_found = _content(Path(__file__).resolve().parent)
if _found is not None:
    __path__.append(_found)
