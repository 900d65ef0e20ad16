# SPDX-License-Identifier: Apache-2.0
"""Takes associated data, nonces and tags of every legal length."""

from __future__ import annotations

__all__ = ["CLASSES", "COVERS"]

COVERS = ("aad_len_*", "tag_len_*", "iv_len_*")
CLASSES = ("aad", "iv_len", "tag")
