# SPDX-License-Identifier: Apache-2.0
"""Key schedules: keys of every length, weak ones, one after the other."""

import sys

from crosslane.targets.run import main

if __name__ == "__main__":
    sys.exit(main("keyschedule", sys.argv))
