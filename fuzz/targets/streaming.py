# SPDX-License-Identifier: Apache-2.0
"""Streams: messages in pieces, contexts that are cloned, interleaved and used again."""

import sys

from crosslane.targets.run import main

if __name__ == "__main__":
    sys.exit(main("streaming", sys.argv))
