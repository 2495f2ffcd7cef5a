"""Pages in a real browser: phone, tablet and large screen, light and dark.

The rules measured here are those of WCAG that can be computed for pages without scripts: contrast, a name for
each table and region, headings in order, landmarks, language, title, and that nothing overlaps or scrolls
sideways but what can be focused. They need no files of others.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rdc.documents.page_report import documents_page
from rdc.duplicates.page_report import duplicates_page
from rdc.errors import ExitCode
from rdc.model.duplicates import (
    DirectoryGroup,
    DuplicateFile,
    DuplicateGroup,
    DuplicateReport,
    DuplicateSummary,
)
from rdc.model.scan import DirectorySummary, LevelSummary, Overlap, ScanProblem, ScanReport, SimilarFiles
from rdc.model.similar import (
    Document,
    DocumentGroup,
    DocumentReport,
    DocumentSummary,
    SimilarDocument,
    TextDifference,
)
from rdc.report.html_page import PageOrigin
from rdc.survey.report.page import offers, scan_html
from scripts.make_scan_sample import report as sample
from tests.support.running.syncing import command
from tests.support.trees.trees import tree, write_tree

ORIGIN = PageOrigin("host", 1_700_000_000, "rdc scan --price=25 data")
WIDTHS = (390, 1000, 1600)
BROWSER = (
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--allow-file-access-from-files", "--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom",
)  # fmt: skip

HOSTILE = (
    b"</script><script>document.title='taken'</script>",
    b"<img src=x onerror=\"document.title='taken'\">",
    b'"; document.title="taken"; "',
    b"<a href=\"javascript:document.title='taken'\">x</a>",
    b"\xff\x1b[2J\n&lt;b&gt;",
    b"unbroken" * 400,
)

MEASURE = """
function luminance(colour) {
  const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  return .2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2];
}
function ground(element, view) {
  for (; element; element = element.parentElement) {
    const colour = view.getComputedStyle(element).backgroundColor;
    if (!/, 0\\)$/.test(colour) && colour !== "transparent") return colour;
  }
  return "rgb(255, 255, 255)";
}
function measured(frame) {
  const page = frame.contentDocument, view = frame.contentWindow, faults = [];
  const top = page.documentElement;
  if (top.scrollWidth > top.clientWidth) faults.push("scrolls sideways: " + top.scrollWidth);
  if (!page.title || !top.lang || page.querySelectorAll("main").length !== 1)
    faults.push("no title, language or main");
  let level = 0;
  for (const heading of page.querySelectorAll("h1,h2,h3,h4")) {
    const now = Number(heading.tagName[1]);
    if (now > level + 1 || !heading.textContent.trim()) faults.push("heading " + heading.textContent);
    level = now;
  }
  if (page.querySelectorAll("h1").length !== 1) faults.push("not one h1");
  for (const table of page.querySelectorAll("table"))
    if (!table.caption?.textContent || [...table.querySelectorAll("th")].some(th => !th.scope))
      faults.push("a table without a caption or scopes");
  for (const region of page.querySelectorAll("[role=region]")) {
    if (!region.getAttribute("aria-label")) faults.push("a region without a name");
    if (region.scrollWidth > region.clientWidth && region.tabIndex !== 0)
      faults.push("scrolls, without keys");
  }
  for (const element of page.querySelectorAll("main *")) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    const box = element.getBoundingClientRect();
    if (!own || !box.width) continue;
    const style = view.getComputedStyle(element), back = ground(element, view);
    const [a, b] = [luminance(style.color), luminance(back)].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) faults.push("contrast of " + element.outerHTML.slice(0, 80));
    if (parseFloat(style.fontSize) < 12) faults.push("small text: " + element.outerHTML.slice(0, 80));
    if (element.scrollWidth > element.clientWidth + 1 && style.display !== "inline")
      faults.push("text out of its box: " + element.outerHTML.slice(0, 80));
  }
  const blocks = [...page.querySelectorAll("main > *, li, td, tbody th")]
    .filter(element => element.getBoundingClientRect().width);
  for (let at = 1; at < blocks.length; at++) {
    const [one, two] = [blocks[at - 1], blocks[at]];
    if (one.contains(two) || two.contains(one)) continue;
    const a = one.getBoundingClientRect(), b = two.getBoundingClientRect();
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
        Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
      faults.push("overlap: " + one.outerHTML.slice(0, 60) + " and " + two.outerHTML.slice(0, 60));
  }
  return {title: page.title, ground: ground(page.body, view), width: top.clientWidth,
    scripts: page.querySelectorAll("script,img,a").length, faults};
}
window.onload = () => {
  const found = [...document.querySelectorAll("iframe")].map(measured);
  document.body.textContent = "MEASURED" + JSON.stringify(found) + "END";
};
"""


def hostile() -> ScanReport:
    """A report with hostile names in every place of the page that shows a name."""
    before = sample()
    directories = tuple(
        replace(one, path_bytes=one.path_bytes + b"/" + name)
        for one, name in zip(before.directories, HOSTILE * 9, strict=False)
    )
    return replace(
        before,
        paths_bytes=HOSTILE,
        directories=directories,
        overlaps=tuple(Overlap(name, HOSTILE[0], 9, 10, 11) for name in HOSTILE),
        similar=(SimilarFiles(HOSTILE, 99, 0.5),),
        identical=tuple(replace(one, paths_bytes=HOSTILE) for one in before.identical),
        types=tuple(replace(before.types[0], name=name.decode("latin-1")) for name in HOSTILE),
        errors=tuple(ScanProblem(name, repr(name), ExitCode.PARTIAL) for name in HOSTILE),
    )


def empty() -> ScanReport:
    before = sample()
    levels = tuple(
        replace(one, bytes=0, unique_bytes=0, chunks=0, low=0, high=0, sizes=(), copies=())
        for one in before.levels
    )
    return replace(
        before, files=0, bytes=0, duplicate_bytes=0, levels=levels, directories=(), types=(), overlaps=(),
        similar=(), errors=(), identical=(), ages=(), growth=None,
    )  # fmt: skip


def duplicates(names: tuple[bytes, ...]) -> str:
    files = tuple(DuplicateFile(b"d/" + name, (b"e/" + name,)) for name in names)
    groups = (DuplicateGroup(900_000, files), DuplicateGroup(12, files[:2]))
    directories = (DirectoryGroup(names, 412, 10**9, 10**9),)
    summary = DuplicateSummary(1000, 2, 8, 10**9, 8, 10**9)
    report = DuplicateReport(groups, summary, ExitCode.OK, directories)
    return b"".join(duplicates_page(report, ORIGIN)).decode()


def documents(names: tuple[bytes, ...]) -> str:
    """A page of near-duplicates with these names, and their texts as what differs."""
    found = [Document(name, number, 1500) for number, name in enumerate(names * 2)]
    texts = [name.decode("latin-1")[:100] for name in names]
    members = tuple(
        SimilarDocument(
            one,
            (number + 1) / len(found),
            0.5,
            found[0],
            tuple(found[:2]),
            tuple(TextDifference(text, text, text, text) for text in texts[:2]),
        )
        for number, one in enumerate(found)
    )
    summary = DocumentSummary(1000, 10**9, 8, 0, 2, 8, 99, 9, 990, 0)
    report = DocumentReport((DocumentGroup(members * 9),) * 2, members, found, summary, ExitCode.OK)
    return b"".join(documents_page(report, ORIGIN)).decode()


def in_browser(pages: list[str], place: Path, *options: str) -> list[dict[str, Any]]:
    """What the browser measures of each page at each of WIDTHS. Fails if the browser reports anything."""
    assert shutil.which("chromium"), "the tests need chromium; install it (Debian: apt-get install chromium)"
    frames = []
    for number, page in enumerate(pages):
        (place / f"{number}.html").write_text(page, "utf-8")
        frames += [f'<iframe src="{number}.html" width="{width}" height="900"></iframe>' for width in WIDTHS]
    file = place / "frames.html"
    file.write_text(f"<!doctype html><script>{MEASURE}</script><body>{''.join(frames)}")
    words = [*BROWSER, f"--user-data-dir={place / 'browser'}", *options, file.as_uri()]
    done = subprocess.run(words, capture_output=True, check=True, timeout=100)
    assert b"CONSOLE" not in done.stderr, done.stderr.decode()
    text = done.stdout.decode().rpartition("MEASURED")[2].partition("END<")[0]
    found: list[dict[str, Any]] = json.loads(html.unescape(text))
    assert len(found) == len(pages) * len(WIDTHS)
    return found


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("dark", [False, True])
def test_pages_are_sound_at_every_width(dark: bool, tmp_path: Path) -> None:
    plain = tuple(b"photos/2023/%d" % number for number in range(4))
    pages = [
        scan_html(sample(), ORIGIN, 25),
        scan_html(hostile(), ORIGIN),
        scan_html(empty(), ORIGIN),
        duplicates(plain),
        duplicates(HOSTILE),
        documents(plain),
        documents(HOSTILE),
    ]
    titles = [*["rdc scan"] * 3, *["rdc dupes"] * 2, *["Near-duplicate documents"] * 2]
    options = ("--blink-settings=preferredColorScheme=0",) if dark else ()
    for number, found in enumerate(in_browser(pages, tmp_path, *options)):
        assert found["faults"] == [], (number, found)
        assert found["title"] == titles[number // len(WIDTHS)]  # no name was run
        assert found["scripts"] == 0
        assert found["ground"] == ("rgb(20, 24, 31)" if dark else "rgb(255, 255, 255)")


@pytest.mark.needs("chromium")
def test_faults_are_found(tmp_path: Path) -> None:
    """Each rule finds a page that breaks it."""
    page = scan_html(sample(), ORIGIN)
    bad = {
        "contrast": page.replace("--soft: #525c6a", "--soft: #aab"),
        "scrolls sideways": page.replace("overflow-wrap: anywhere", "white-space: nowrap"),
        "heading": page.replace("<h2>", "<h3>", 1).replace("</h2>", "</h3>", 1),
        "caption": re.sub("<caption>.*?</caption>", "", page, count=1),
        "overlap": page.replace(".cards b {", ".cards li { margin-left: -2rem; } .cards b {"),
        "region": page.replace('aria-label="', 'title="', 1),
        "main": page.replace("<main>", "<div>").replace("</main>", "</div>"),
        "small text": page.replace("font-size: .85rem", "font-size: .5rem"),
    }
    found = in_browser(list(bad.values()), tmp_path)
    for number, rule in enumerate(bad):
        faults = [fault for one in found[3 * number : 3 * number + 3] for fault in one["faults"]]
        assert any(rule in fault for fault in faults), (rule, faults)


def test_a_page_has_what_the_report_has() -> None:
    report = sample()
    page = scan_html(report, ORIGIN, 25)
    text = html.unescape(re.sub("<[^>]*>", " ", page))
    for wanted in (
        "on host, rdc", "rdc scan --price=25 data", "13,970 files, all that were found", "1970",
        "data/backups/site-copy.tar", "and 9 more", "+880.0 MB", ".qcow2", "16 KiB chunks",
        "data/photos/selected", "Permission denied",
    ):  # fmt: skip
        assert wanted in text, wanted
    best, *others = offers(report)
    assert [one.bytes for one in others] == sorted((one.bytes for one in others), reverse=True)
    assert f"{best.bytes / 1e12 * 25:,.2f} EUR" in text
    level, files = report.level("cdc-16384"), report.level("file")
    assert isinstance(level, LevelSummary) and level.compressed_bytes is not None
    assert isinstance(files, LevelSummary) and files.compressed_bytes is not None
    assert {one.name: one.bytes for one in offers(report)} == {
        "Share identical files": report.duplicate_bytes - report.already_shared_bytes,
        "Compress with zstd": report.bytes - report.bytes * files.compressed_bytes // files.unique_bytes,
        "Move to a store": level.bytes - level.compressed_bytes,
    }
    assert "EUR" not in scan_html(report, ORIGIN)
    assert "No way to need less room" in scan_html(empty(), ORIGIN)
    objects = replace(report, paths_bytes=(b"s3://bucket/x",))
    assert [one.name for one in offers(objects)] == ["Move to a store"]


def test_a_page_is_small_and_asks_for_nothing() -> None:
    long = tuple(b"%d" % number + b"<" * 4000 for number in range(8))
    many = replace(
        hostile(),
        identical=tuple(replace(sample().identical[0], paths_bytes=long) for _ in range(100)),
        similar=tuple(SimilarFiles(long, 9, 0.5) for _ in range(100)),
        directories=tuple(DirectorySummary(long[0], 1, 10, 1, 10, 1) for _ in range(500)),
        errors=tuple(ScanProblem(long[0], "x" * 9000, ExitCode.PARTIAL) for _ in range(500)),
        paths_bytes=long * 50,
    )
    for page in (scan_html(many, ORIGIN), duplicates(HOSTILE), documents(long), scan_html(sample(), ORIGIN)):
        assert len(page.encode()) < 1_500_000
        assert "Content-Security-Policy\" content=\"default-src 'none'" in page
        assert not re.search(r"<(script|img|link|a)\b|(src|href)=[\"']|url\(|@import", page)


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    data = write_tree(tmp_path / "data", tree({"a/one": b"x" * 90_000, "b/one": b"x" * 90_000}))
    page, part = tmp_path / "page.html", tmp_path / "before.rdcscan"
    ended = command("scan", "--no-catalog", f"--html={page}", "--price=25", "-o", part, data)
    assert ended.code == 0, ended
    assert "chunks save" in ended.out
    text = page.read_text("utf-8")
    assert f"{data}/a/one\n{data}/b/one" in text
    assert "--price=25" in text and "EUR" in text and "Growth" not in text
    (tmp_path / "data" / "c").write_bytes(bytes(9) + b"x" * 60_000)
    ended = command("scan", "--no-catalog", f"--html={page}", f"--since={part}", data)
    assert "since the earlier scan: +60.0 KB, +1 files" in ended.out
    assert "<h2>Growth</h2>" in page.read_text("utf-8")
    nowhere = command("scan", "--no-catalog", f"--html={tmp_path / 'none' / 'page.html'}", data)
    assert nowhere.code == ExitCode.FILE_IO
    assert "page.html: cannot write it: the directory it should be in is not there" in nowhere.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--price=25",), "--price is for the page of --html"),
        (("--price=cheap", "--html=x"), "--price=cheap: a price in EUR per TB is expected"),
        (("--since=",), "--since needs a part of an earlier scan"),
        (("--since=nowhere",), "nowhere: cannot read the part: No such file"),
    ],
)
def test_wrong_words_get_advice(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    ended = command("scan", "--no-catalog", *words, tmp_path)
    assert ended.code != 0
    assert message in ended.err and ended.err.count("\n") == 1
