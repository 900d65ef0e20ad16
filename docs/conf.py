# SPDX-License-Identifier: Apache-2.0
"""How Sphinx makes pages of the Markdown files: see ``ci/build_docs.py``."""

project = "Crosslane"
copyright = "the authors of Crosslane, Apache-2.0"  # noqa: A001 - Sphinx's name for it
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "README"
myst_heading_anchors = 4
nitpicky = True
highlight_language = "none"  # blocks that are indented are commands and what they print
html_theme = "alabaster"
html_theme_options = {"page_width": "70rem", "fixed_sidebar": True, "description": "One input, every implementation"}
html_show_sourcelink = False
