"""The page of a scan, drawn by a real browser: hostile names are shown and not executed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.errors import ExitCode, UsageError
from rdc.model.scan import DirectorySummary, Overlap, ScanProblem, ScanReport, SimilarFiles
from rdc.survey.report.page import directories_chart, levels_chart, overlaps_chart, scan_html
from scripts.make_scan_sample import report as sample
from tests.support.running.syncing import command
from tests.support.trees.trees import tree, write_tree

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
    """A report with hostile names in every place of the page that shows a name."""
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
        similar=(SimilarFiles(HOSTILE, 99, 0.5),),
        types=tuple(replace(before.types[0], name=name.decode("latin-1")) for name in HOSTILE),
        errors=tuple(ScanProblem(name, repr(name), ExitCode.PARTIAL) for name in HOSTILE),
    )


def shown(page: str, place: Path, *options: str) -> str:
    """The document in the browser after all scripts have run."""
    assert shutil.which("chromium"), "the tests need chromium; install it (Debian: apt-get install chromium)"
    file = place / "page.html"
    file.write_text(page, "utf-8")
    words = [*BROWSER, f"--user-data-dir={place / 'browser'}", *options, file.as_uri()]
    return subprocess.run(words, capture_output=True, check=True, timeout=100).stdout.decode()


@pytest.mark.needs("chromium")
def test_a_browser_draws_every_picture(tmp_path: Path) -> None:
    document = shown(scan_html(sample()), tmp_path, "--dump-dom")
    assert 'data-drawn="yes"' in document
    for name in ("levels", "directories", "sizes", "overlaps"):
        chart = document[document.index(f'<div id="{name}"') :]
        assert chart.index("<svg") < chart.index("</section>"), name
    picture = tmp_path / "page.png"
    shown(scan_html(sample()), tmp_path, f"--screenshot={picture}")
    assert picture.stat().st_size > 50_000  # a blank page has some 10 KB


@pytest.mark.needs("chromium")
def test_names_are_shown_and_never_run(tmp_path: Path) -> None:
    document = shown(scan_html(hostile()), tmp_path, "--dump-dom")
    assert "<title>rdc scan</title>" in document
    assert 'data-drawn="yes"' in document
    assert "onerror" in document  # as text
    assert not re.search(r"<(img|a)\b[^>]*(onerror|javascript:)", document)


def test_the_pictures_have_the_report_s_figures() -> None:
    report = sample()
    levels = json.loads(levels_chart(report))["data"]
    assert [trace["name"] for trace in levels] == ["left after zstd", "saved by zstd", "there more than once"]
    # The stacked parts of a level add up to the level.
    for number, level in enumerate(report.levels[::-1]):
        packed, squeezed, doubled = (trace["x"][number] for trace in levels)
        assert packed == level.compressed_bytes
        assert packed + squeezed == level.unique_bytes
        assert packed + squeezed + doubled == level.bytes
    bare = replace(report, levels=tuple(replace(one, compressed_bytes=None) for one in report.levels))
    left, doubled = json.loads(levels_chart(bare))["data"]
    assert (left["name"], left["x"]) == ("left", [one.unique_bytes for one in bare.levels[::-1]])
    if not all(one.exact for one in report.levels):
        bounds = left["error_x"]
        assert bounds["array"] == [one.high - one.unique_bytes for one in bare.levels[::-1]]
        assert bounds["arrayminus"] == [one.unique_bytes - one.low for one in bare.levels[::-1]]


def test_the_map_of_directories_is_one_tree_that_adds_up() -> None:
    def directory(path: bytes, duplicate: int) -> DirectorySummary:
        return DirectorySummary(path, 3, 200, duplicate, 0, 0)

    paths = {b"/x": 100, b"/x/a": 60, b"/x/a/b/c": 50, b"/x/d": 40, b"y": 30, b"z": 0}
    report = replace(sample(), directories=tuple(directory(*each) for each in paths.items()))
    (trace,) = json.loads(directories_chart(report) or "")["data"]
    rows = list(zip(trace["ids"], trace["labels"], trace["parents"], trace["values"], strict=True))
    assert rows == [
        ("//x", "/x", "/", 100),
        ("//x/a", "a", "//x", 60),
        ("//x/a/b/c", "b/c", "//x/a", 50),
        ("//x/d", "d", "//x", 40),
        ("/y", "y", "/", 30),
        ("/", "everything", "", 130),
    ]
    assert trace["marker"]["colors"] == [0.5, 0.3, 0.25, 0.2, 0.15, 130 / 400]
    assert directories_chart(replace(report, directories=(directory(b"z", 0),))) is None


def test_pairs_are_drawn_as_parts_of_both() -> None:
    pairs = (Overlap(b"/a/b/c", b"d<i>", 50, 100, 200), Overlap(b"e", b"f", 5, 0, 10))
    chart = json.loads(overlaps_chart(replace(sample(), overlaps=pairs)) or "")
    first, second = chart["data"]
    assert first["x"] == [0, 0.5]  # the lowest bar is the last pair
    assert second["x"] == [0.5, 0.25]
    assert chart["layout"]["yaxis"]["ticktext"] == ["e<br>∩ f", "b/c<br>∩ d&lt;i&gt;"]
    assert first["text"] == ["5 B", "50 B"]
    assert first["hovertext"][1] == "50 B in both<br>/a/b/c: 100 B<br>d&lt;i&gt;: 200 B"
    assert overlaps_chart(replace(sample(), overlaps=())) is None


def test_the_page_asks_for_nothing(tmp_path: Path) -> None:
    page = scan_html(sample())
    assert "Content-Security-Policy\" content=\"default-src 'none'" in page
    without = page.replace(page[page.index("<script>") : page.index("</script>")], "")
    assert not re.search(r"(src|href)=|url\(|@import", without)


@pytest.mark.needs("chromium")
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


@pytest.mark.needs("chromium")
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
