# SPDX-License-Identifier: Apache-2.0
"""Authenticated encryption: associated data, tags, and what was tampered with."""

import sys

from crosslane.targets.run import main

if __name__ == "__main__":
    sys.exit(main("aead", sys.argv))
