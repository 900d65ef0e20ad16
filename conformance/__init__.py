# SPDX-License-Identifier: Apache-2.0
"""The main job as a pytest suite; a package, so that ``--pyargs crosslane._suite.conformance`` finds it."""
