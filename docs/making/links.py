"""A hook of mkdocs: what pages link to outside docs/ comes along with the site.

So one link serves readers of the repository and readers of the site: the project's other pages are pages of the site
too, and other files, such as settings, are copied below files/.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages of the repository's root that are pages of the site."""
LINK = re.compile(r"(?<=\]\()[\w./-]+(?=[)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the repository's root."""
    for name in PAGES:
        files.append(File.generated(config, name.lower(), abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files of the repository into links to their places in the site."""
    source = Path(str(page.file.abs_src_path)).parent

    def moved(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(source / match[0]))
        if not target.is_file() or not target.is_relative_to(ROOT):
            return match[0]  # mkdocs says what is wrong with it
        place = _place(target)
        if files.get_file_from_path(place) is None:
            files.append(File.generated(config, place, abs_src_path=str(target)))
        return posixpath.relpath(place, posixpath.dirname(page.file.src_uri) or ".")

    return LINK.sub(moved, markdown)


def _place(target: Path) -> str:
    if target.is_relative_to(DOCS):
        return target.relative_to(DOCS).as_posix()
    name = target.relative_to(ROOT).as_posix()
    if name == "README.md":
        return "index.md"
    return name.lower() if name in PAGES else f"files/{name}"
