# SPDX-License-Identifier: Apache-2.0
"""Python libraries as judges of generic: one file each under ``conformance/oracles``, asked for sampled messages.

Such a file defines ``run(mode, cipher, message) -> Answer | None``, where None says that the message lies outside the
library's domain. Its name is the oracle's, and that of the package on PyPI.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslane.errors import BadInput, MissingTool
from crosslane.reference import Answer, Message

__all__ = ["Oracle", "load_oracles", "oracle_names"]


@dataclass(frozen=True)
class Oracle:
    """One library: its name and what it makes of a message."""

    name: str
    run: Callable[[str, str, Message], Answer | None]


def _files(root: Path) -> list[Path]:
    return sorted((root / "conformance" / "oracles").glob("[a-z]*.py"))


def oracle_names(root: Path) -> tuple[str, ...]:
    """The names of all oracles under the content root, whether their libraries are installed or not."""
    return tuple(path.stem for path in _files(root))


def load_oracles(root: Path, without: Sequence[str] = ()) -> tuple[Oracle, ...]:
    """Load the oracles; raises MissingTool where a library is not installed, BadInput where a file is no oracle."""
    oracles = []
    for path in _files(root):
        if path.stem in without:
            continue
        spec = importlib.util.spec_from_file_location(f"crosslane_oracle_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise BadInput(f"{path}: is no Python file that can be loaded")
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except ImportError as error:
            raise MissingTool(
                f"the Python library of the oracle {path.stem} is not installed ({error}): install {path.stem} "
                f"(crosslane asks for it), or leave it out with --without {path.stem}"
            ) from error
        except Exception as error:
            raise BadInput(f"{path}: cannot be loaded ({type(error).__name__}: {error}); correct the file") from error
        run = getattr(module, "run", None)
        if not callable(run):
            raise BadInput(f"{path}: an oracle defines run(mode, cipher, message) -> Answer | None; add it")
        oracles.append(Oracle(path.stem, run))
    return tuple(oracles)
