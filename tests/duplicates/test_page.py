"""The page of `rdc dupes --html`: complete, escaped, bounded, and never over another file."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rdc.cli import main
from rdc.duplicates import page_report
from rdc.errors import ExitCode
from tests.support.running.fake_environment import FakeProcess

HOSTILE = "<script>alert(1)</script>&amp;\n\x1b[2J"


class Page(HTMLParser):
    """The tags of a page, and the text of each list item."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.items: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onload", "onerror"}
        if tag == "li":
            self.items.append("")

    def handle_data(self, data: str) -> None:
        if self.items:
            self.items[-1] += data


def run(place: Path, *words: str) -> tuple[int, str, str]:
    process = FakeProcess(environ={"HOME": str(place), "RDC_CATALOG": "off"})
    code = main.run(("dupes", *words), process.environment)
    return code, process.out, process.err


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for name in ("d/one", f"d/{HOSTILE.replace('/', '|')}", "e/two"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("the same")
    return tmp_path / "photos"


def test_the_page_has_each_name_as_text(photos: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    code, out, err = run(tmp_path, f"--html={page}", str(photos))
    assert (code, out) == (0, "")
    assert "1 group, 3 files" in err
    text = page.read_text()
    parsed = Page(text)
    assert "script" not in parsed.tags
    assert parsed.items[0] == f"{photos}/d/<script>alert(1)<|script>&amp;\\x0a\\x1b[2J"
    assert "default-src 'none'" in text
    assert "16 B in identical files could be saved" in text
    bar, number = "<span [^>]*><i [^>]*></i></span>", '<td class="number">'
    assert re.search(f"photos/e{bar}</th>{number}8 B</td>{number}1</td></tr>", text)
    assert re.search(rf"rdc [\d.]+: <code>rdc dupes .*--html={page} {photos}</code></p>", text)
    assert run(tmp_path, f"--html={page}", str(photos))[0] == 0  # a page is replaced


def test_another_file_is_not_replaced(photos: Path, tmp_path: Path) -> None:
    other = tmp_path / "notes.html"
    other.write_text("mine")
    code, _, err = run(tmp_path, f"--html={other}", str(photos))
    assert code == ExitCode.USAGE
    assert "expected a page of rdc dupes, or nothing, found another file" in err and err.count("\n") == 1
    assert other.read_text() == "mine"
    assert run(tmp_path, f"--html={other}", "--overwrite", str(photos))[0] == 0


def test_a_page_shows_a_bounded_part_and_counts_the_rest(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        for name in ("a", "b"):
            (photos / f"{name}{number}").write_text(f"content {number}")
    monkeypatch.setattr(page_report, "PAGE_BYTES", 1000)
    page = tmp_path / "page.html"
    assert run(tmp_path, f"--html={page}", str(photos))[0] == 0
    text = page.read_text()
    shown = text.count("<details")
    assert 0 < shown < 21
    assert f"{21 - shown} further groups are not shown; rdc dupes --csv lists all files." in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--html=", "."), "--html needs a file"),
        (("--html=x", "--csv", "."), "--csv and --html exclude each other"),
        (("--html=x", "--delete", "."), "--html and --delete exclude each other"),
    ],
)
def test_wrong_words_get_advice(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    code, _, err = run(tmp_path, *words)
    assert code == ExitCode.USAGE
    assert message in err


def test_identical_directories_are_one_group(photos: Path, tmp_path: Path) -> None:
    for name in ("x/1", "x/2", "y/1", "y/2", "z"):
        (photos / name).parent.mkdir(exist_ok=True)
        (photos / name).write_text(name[-1])
    page = tmp_path / "page.html"
    assert run(tmp_path, f"--html={page}", str(photos))[0] == 0
    text = page.read_text()
    assert "2 B could be saved: 2 directories of 2 files, 2 B" in text
    assert f"<ol><li>{photos}/x</li><li>{photos}/y</li></ol>" in text
    assert f"{photos}/y/1" not in text
