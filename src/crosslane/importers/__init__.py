# SPDX-License-Identifier: Apache-2.0
"""Importers of published vectors in foreign formats: NIST CAVP, NIST ACVP, Wycheproof and the Linux kernel's testmgr.h.

They give vectors in the model of ``corpora``, in memory; nothing of the files is shipped.
"""

from __future__ import annotations

from crosslane.importers.imported import Imported, NotApplied
from crosslane.importers.installed import FORMATS, Format, import_paths, imported_files

__all__ = ["FORMATS", "Format", "Imported", "NotApplied", "import_paths", "imported_files"]
