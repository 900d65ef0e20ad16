# SPDX-License-Identifier: Apache-2.0
"""One-shot messages: each in one call, in every layout."""

import sys

from crosslane.targets.run import main

if __name__ == "__main__":
    sys.exit(main("oneshot", sys.argv))
