# SPDX-License-Identifier: Apache-2.0
"""Coverage-guided fuzz targets: one implementation against generic, in process or under an emulator."""
