"""The manual builds without a warning, has no dead link, and needs no network to be read."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.support.project_paths import TOP

BUILD_SECONDS = 60
"""Of CPU: 8 s are enough."""


class Links(HTMLParser):
    """The targets and anchors of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        """What a browser fetches without a click."""
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif "src" in found:
            self.loaded.append(found["src"])
        elif tag == "link" and found.get("rel") in (
            "stylesheet",
            "icon",
            "preload",
            "preconnect",
            "manifest",
        ):
            self.loaded.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manual, built as scripts/docs builds it."""
    place = tmp_path_factory.mktemp("manual") / "site"
    config = TOP / "scripts" / "manual" / "mkdocs.yml"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", config, "--site-dir", place],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "1", "LC_ALL": "C.UTF-8"},
    )
    assert done.returncode == 0, done.stderr
    assert not re.search("^(?:WARNING|ERROR)", done.stderr, re.MULTILINE), done.stderr
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < BUILD_SECONDS
    return place


@cache
def page(path: Path) -> Links:
    return Links(path.read_text())


def test_no_link_is_dead(site: Path) -> None:
    dead = []
    for path in site.rglob("*.html"):
        for link in page(path).links + page(path).loaded:
            target, _, anchor = link.partition("#")
            if path.name == "404.html" or re.match(r"[a-z]+:", link):
                continue
            file = (path.parent / unquote(target)).resolve() if target else path
            file = file / "index.html" if file.is_dir() else file
            if not file.exists() or (anchor and file.suffix == ".html" and anchor not in page(file).anchors):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert not dead


def test_nothing_is_fetched_from_a_network(site: Path) -> None:
    for path in site.rglob("*.html"):
        assert not [link for link in page(path).loaded if re.match(r"(?:https?:)?//", link)], path
    for path in site.rglob("*.css"):
        assert not re.search(r"@import|url\((?:\"|')?https?:", path.read_text()), path


def test_every_table_is_put_in(site: Path) -> None:
    for path in site.rglob("*.html"):
        assert "<!-- generated" not in path.read_text(), path


def test_every_document_of_the_repository_has_a_page(site: Path) -> None:
    names = {path.stem for path in site.rglob("*.html")}
    for document in (TOP / "rdc").rglob("*.md"):
        assert {document.stem, document.stem.lower()} & names, document


@pytest.mark.needs("chromium")
def test_the_search_works_without_a_server(site: Path, tmp_path: Path) -> None:
    """A page of file:// may start no worker, so docs/iframe-worker.js runs the search in a frame."""
    browser = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000")
    page = (site / "howto" / "jobs.html").as_uri() + "?q=rdcignore"
    words = [*browser, f"--user-data-dir={tmp_path}", "--dump-dom", page]
    found = subprocess.run(words, capture_output=True, check=True, timeout=100).stdout.decode()
    assert re.search(r'md-search-result__meta">\s*\d+ matching documents', found)
    assert 'class="md-search-result__item"' in found
