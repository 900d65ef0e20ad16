# SPDX-License-Identifier: Apache-2.0
"""Makes pages of the documentation, ``build/docs/site`` or the folder that is named; any warning is an error.

    python ci/build_docs.py [FOLDER]

The Markdown files link to each other and to sources as they lie in the checkout. So all of them and what they link to
are laid out in a folder as they lie here, and Sphinx reads that: a link that works on the page works in the checkout.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["lay_out", "main", "pages", "targets"]

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("tutorial", "how-to", "reference", "explanation")
_LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?\)")
_CODE = re.compile(r"^(`{3,}).*?^\1\s*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_TREE = """
```{{toctree}}
:hidden:
:glob:
:caption: {caption}
{entries}
```
"""


def pages(root: Path = ROOT) -> list[Path]:
    """Every Markdown file of the documentation."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def targets(page: Path) -> Iterator[Path]:
    """The files of the checkout that a page links to, whether they exist or not."""
    for link in _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8"))):
        path = link.partition("#")[0]
        if path and "://" not in path and not path.startswith("mailto:"):
            yield (page.parent / path).resolve()


def lay_out(folder: Path, root: Path = ROOT) -> None:
    """Copy all pages and what they link to; the first page gets the tree of all others."""
    for page in pages(root):
        for path in (page, *targets(page)):
            if path.is_file():
                copy = folder / path.relative_to(root)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)
    trees = [_TREE.format(caption=part.capitalize(), entries=f"docs/{part}/*") for part in PARTS]
    others = "\n".join(path.stem for path in sorted(folder.glob("*.md")) if path.name != "README.md")
    with (folder / "README.md").open("a", encoding="utf-8") as file:
        file.write("".join([*trees, _TREE.format(caption="Project", entries=others)]))


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Build the pages; returns the exit status, 1 where something is wrong with them."""
    if len(arguments) > 1 or any(word.startswith("-") for word in arguments):
        print("build_docs: takes the folder of the pages, or nothing", file=sys.stderr)
        return 2
    site = Path(arguments[0]) if arguments else root / "build" / "docs" / "site"
    with tempfile.TemporaryDirectory() as work:
        source = Path(work) / "source"
        lay_out(source, root)
        sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", str(ROOT / "docs")]
        done = subprocess.run(
            [*sphinx, "-d", str(Path(work) / "doctrees"), str(source), str(site)], text=True, capture_output=True,
            check=False,
        )  # fmt: skip
    sys.stderr.write(done.stderr.replace(f"{source}/", ""))
    if done.returncode:
        print("build_docs: correct what is said above and run this again", file=sys.stderr)
        return 1
    print(f"{site}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
