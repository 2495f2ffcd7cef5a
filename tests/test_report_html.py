"""The page of a scan: drawn by a real browser, showing hostile names and running none of them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.errors import ExitCode, UsageError
from rdc.model.scan import Overlap, ScanProblem, ScanReport, SimilarGroup
from rdc.report.scan_html import scan_html
from scripts.make_scan_sample import report as sample
from tests.syncing import command
from tests.trees import tree, write_tree

BROWSER = (
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1120,2600", "--virtual-time-budget=5000",
)  # fmt: skip

HOSTILE = (
    b"</script><script>document.title='taken'</script>",
    b"<img src=x onerror=\"document.title='taken'\">",
    b'"; document.title="taken"; "',
    b"<a href=\"javascript:document.title='taken'\">x</a>",
    b"\xff\x1b[2J\n&lt;b&gt;",
    b"${plotly} $headline",
)


def hostile() -> ScanReport:
    """Every place of the page that shows a name shows these."""
    before = sample()
    directories = tuple(
        replace(one, path=one.path + b"/" + name)
        for one, name in zip(before.directories, HOSTILE * 9, strict=False)
    )
    overlaps = tuple(Overlap(name, HOSTILE[0], 9, 10, 11) for name in HOSTILE)
    return replace(
        before,
        paths=HOSTILE,
        directories=directories,
        overlaps=overlaps,
        similar=(SimilarGroup(HOSTILE, 99, 0.5),),
        types=tuple(replace(before.types[0], name=name.decode("latin-1")) for name in HOSTILE),
        errors=tuple(ScanProblem(name, repr(name), ExitCode.PARTIAL) for name in HOSTILE),
    )


def shown(page: str, place: Path, *options: str) -> str:
    """The document as the browser has it once everything has run."""
    assert shutil.which("chromium"), "the tests need chromium; install it (Debian: apt-get install chromium)"
    file = place / "page.html"
    file.write_text(page, "utf-8")
    words = [*BROWSER, f"--user-data-dir={place / 'browser'}", *options, file.as_uri()]
    return subprocess.run(words, capture_output=True, check=True, timeout=100).stdout.decode()


def test_a_browser_draws_every_picture(tmp_path: Path) -> None:
    document = shown(scan_html(sample()), tmp_path, "--dump-dom")
    assert 'data-drawn="yes"' in document
    for name in ("levels", "directories", "sizes", "overlaps"):
        chart = document[document.index(f'<div id="{name}"') :]
        assert chart.index("<svg") < chart.index("</section>"), name
    picture = tmp_path / "page.png"
    shown(scan_html(sample()), tmp_path, f"--screenshot={picture}")
    assert picture.stat().st_size > 50_000  # a blank page has some 10 KB


def test_names_are_shown_and_never_run(tmp_path: Path) -> None:
    document = shown(scan_html(hostile()), tmp_path, "--dump-dom")
    assert "<title>rdc scan</title>" in document
    assert 'data-drawn="yes"' in document
    assert "onerror" in document  # as text
    assert not re.search(r"<(img|a)\b[^>]*(onerror|javascript:)", document)


def test_the_page_asks_for_nothing(tmp_path: Path) -> None:
    page = scan_html(sample())
    assert "Content-Security-Policy\" content=\"default-src 'none'" in page
    without = page.replace(page[page.index("<script>") : page.index("</script>")], "")
    assert not re.search(r"(src|href)=|url\(|@import", without)


def test_an_empty_scan_has_a_page(tmp_path: Path) -> None:
    before = sample()
    empty = replace(
        before,
        files=0,
        bytes=0,
        levels=tuple(
            replace(one, bytes=0, unique_bytes=0, chunks=0, low=0, high=0, sizes=(), copies=())
            for one in before.levels
        ),
        directories=(),
        types=(),
        overlaps=(),
        similar=(),
        errors=(),
    )
    document = shown(scan_html(empty), tmp_path, "--dump-dom")
    assert "Nothing to save" in document
    assert 'data-drawn="yes"' in document


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    data = write_tree(tmp_path / "data", tree({"a/one": b"x" * 90_000, "b/one": b"x" * 90_000}))
    ended = command("scan", "--no-catalog", f"--html={tmp_path / 'page.html'}", data)
    assert ended.code == 0, ended
    assert "chunks save" in ended.out
    assert 'data-drawn="yes"' in shown((tmp_path / "page.html").read_text("utf-8"), tmp_path, "--dump-dom")
    nowhere = command("scan", "--no-catalog", f"--html={tmp_path / 'none' / 'page.html'}", data)
    assert nowhere.code == ExitCode.FILE_IO
    assert "page.html: cannot write it: the directory it should be in is not there" in nowhere.err


def test_without_plotly_nothing_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    ended = command("scan", "--no-catalog", f"--html={tmp_path / 'page.html'}", tmp_path / "missing")
    assert ended.code == ExitCode.USAGE
    assert "pip install plotly" in ended.err


def test_without_plotly_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(UsageError, match="pip install plotly"):
        scan_html(sample())
