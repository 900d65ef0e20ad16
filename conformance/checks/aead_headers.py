# SPDX-License-Identifier: Apache-2.0
"""Takes associated data, nonces and tags of every legal length."""

from __future__ import annotations

__all__ = ["CLASSES", "COVERS"]

COVERS = ("aead_headers",)
CLASSES = ("aad", "iv_len", "tag")
