"""The site of docs/: it is built without a warning, asks the network for nothing, and no link leads nowhere."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import edgemill
from chromium import chromium, page
from edgemill.pipeline.settings.declared_programs import shipped_names

pytest.importorskip("material", reason="without edgemill[docs]")

ROOT = Path(__file__).resolve().parents[2]
LOADED = {("link", "href"), ("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src"), ("object", "data")}
"""Elements and attributes that a browser fetches by itself, or may: a `link` can name another page, too."""


@dataclass
class Html:
    """What a page asks for, leads to, and can be led to."""

    loads: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.html = Html()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if (tag, name) in LOADED:
                self.html.loads.append(value or "")
            elif (tag, name) == ("a", "href"):
                self.html.links.append(value or "")
            elif name in ("id", "name"):
                self.html.anchors.add(value or "")
            elif name in ("srcset", "style") or name.startswith("on"):
                assert "//" not in (value or ""), f"{tag} {name}={value}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Html]:
    found = {}
    for path in sorted(site.rglob("*.html")):
        reader = Reader()
        reader.feed(path.read_text(encoding="utf-8"))
        found[path] = reader.html
    assert len(found) > 25
    return found


def test_nothing_is_fetched_from_elsewhere(site: Path, pages: dict[Path, Html]) -> None:
    """Neither by a page nor by its styles; what its scripts do is seen in a browser below."""
    assert not [(path.name, url) for path, html in pages.items() for url in html.loads if urlsplit(url).netloc]
    styles = list(site.rglob("*.css"))
    assert styles
    for path in styles:
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"@import[^;]*|url\(\s*['\"]?(?:https?:)?//[^)]*\)", text), path.name


def test_no_link_leads_nowhere(site: Path, pages: dict[Path, Html]) -> None:
    """Within the site: pages, files and anchors. Other sites are not asked, but are named by https alone."""
    wrong = []
    for path, html in pages.items():
        for url in [*html.links, *html.loads]:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                if parts.scheme != "https":
                    wrong.append((path.name, url))
                continue
            # The page of errors is shown at any address, so it names all from the root.
            start = site if parts.path.startswith("/") else path.parent
            target = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            there = target.is_file() and target.is_relative_to(site)
            if not there or (parts.fragment and unquote(parts.fragment) not in pages[target].anchors):
                wrong.append((path.name, url))
    assert not wrong


def test_links_of_the_repository_lead_somewhere() -> None:
    """In what is read there and is no page of the site, or is in another place."""
    wrong = []
    for path in ROOT.glob("*.md"):
        for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
            if not urlsplit(link).scheme and not (path.parent / urlsplit(link).path).exists():
                wrong.append(f"{path.name}: {link}")
    assert not wrong


def test_what_a_page_links_to_outside_comes_along(site: Path) -> None:
    assert (site / "files/configs/laptop.yaml").read_bytes() == (ROOT / "configs/laptop.yaml").read_bytes()
    assert (site / "security.html").is_file()
    assert not (site / "making").exists()


def test_the_whole_api_is_there(site: Path, pages: dict[Path, Html]) -> None:
    public = {f"edgemill.{name}" for name in dir(edgemill) if name not in ("__version__", *shipped_names())}
    assert public <= pages[site / "python.html"].anchors


def test_the_search_knows_settings_and_functions(site: Path) -> None:
    entries = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    found = {entry["location"].partition("#")[0] for entry in entries if "cluster.waiting_seconds" in entry["text"]}
    assert {"settings.html", "failures.html"} <= found
    assert any(entry["title"] == "find_vertex" for entry in entries)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site, served on loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
@pytest.mark.skipif(chromium() is None, reason="no Chromium")
def test_in_a_browser(address: str, site: Path, pages: dict[Path, Html], tmp_path: Path) -> None:
    """Every page, light and dark, on a desk and on a phone: no error, nothing from elsewhere, nothing too wide; and the
    search finds, from a server and from the disk.
    """
    with page(tmp_path) as tab:
        for width, dark in ((1280, False), (400, True)):
            tab.size(width, 900, dark)
            for path in pages:
                name = path.relative_to(site).as_posix()
                tab.open(f"{address}/{name}")
                assert tab.run("document.documentElement.scrollWidth <= innerWidth"), (name, width)
                scheme = tab.run("getComputedStyle(document.body).colorScheme")
                assert (scheme == "dark") == dark, name
        tab.size(1280, 900)
        for start in (address, site.as_uri()):
            tab.open(f"{start}/index.html")
            tab.run("document.querySelector('[data-md-component=search-query]').focus()")
            tab.type("copies")
            tab.until("document.querySelector('.md-search-result__item a[href*=\"partitions.html\"]')")
        assert not tab.errors
        own = (address, site.as_uri(), "about:", "data:", "blob:")
        assert {url for url in tab.requests if not url.startswith(own)} == set()
