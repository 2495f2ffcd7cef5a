"""The text of HTML pages: the kernel beside the definition, and the definition beside pages."""

from __future__ import annotations

import hashlib
import html
from array import array
from html.entities import html5
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.kernel.pages import _pages, reference
from rdc.kernel.pages.generate_names import names_text
from tests.support.project_paths import KERNEL


def text_of(page: str | bytes) -> str:
    content = page if isinstance(page, bytes) else page.encode()
    text, offsets = result = reference.html_texts(content, array("q", [0, len(content)]))
    assert _pages.html_texts(content, array("q", [0, len(content)])) == result
    assert array("q", offsets) == array("q", [0, len(text)])
    return text.decode()


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ("a < b <3 <", "a < b <3 <"),
        ("<p>one</p><p>two</p>", " one  two "),
        ("<b>O</b>nce <SPAN class='x'>up</span>on", "Once upon"),
        ("ex<!-- > -- -->am<!-->pl<!--->e", "example"),
        ("a<!doctype html>b<?xml ?>c</ d>e</>f", "a b c e f"),
        ("a<!-- no end > b", "a"),
        ("a<p title='no end> b", "a"),
        ("a<p title", "a"),
        ("a<!", "a "),
        ("<a href=x.html>y</a>", " x.html y"),
        ("<A\nHREF = 'a>b' >y", " a>b y"),
        ('<a title=1 href="?a=1&copy=2&amp;x=&lt;">', " ?a=1&copy=2&x=< "),
        ("<area href=x><link href=y><a src=z>", "  x  "),
        ("<img src=i.png alt='A cat' height=3/>", "  i.png  A cat "),
        ("</a href=x>y", "y"),
        ("<script>if (a<b) '</scrip>' </script >x", "  x"),
        ("<STYLE>p{}</style\n>x<style/>y</STYLE>", "  x  "),
        ("<script>a</scriptx></script", " "),
        ("<scripty>a", " a"),
        ("&lt;p&gt; &copy &notit; &notin; &#65;&#x42;&#67 &nosuch; &", "<p> © ¬it; ∉ ABC &nosuch; &"),
        ("&#0; &#x110000; &#xd800; &#x80; &#99999999999999999999999;", "\ufffd \ufffd \ufffd € \ufffd"),
        ("&#000000000000065; &#; &#x; &#xg", "A &#; &#x; &#xg"),
        ("&NotEqualTilde;&amp;amp;", "≂\u0338&amp;"),
        (b"a\xff<p\xff>b\xe4\xb8", "a\ufffd b\ufffd"),
    ],
)
def test_pages_have_this_text(page: str | bytes, text: str) -> None:
    assert text_of(page) == text


@given(
    st.text(st.sampled_from("&#x;aAmpltnoi10<"), max_size=20)
    | st.sampled_from([f"&{name}" for name in html5])
)
def test_references_are_decoded_as_python_decodes_them(text: str) -> None:
    """Python leaves out what names no character, which the standard keeps."""
    if "<" not in text and "#" not in text:
        assert text_of(text) == html.unescape(text)


def test_the_names_of_characters_do_not_change() -> None:
    names = "".join([f"{name} {character}\n" for name, character in sorted(html5.items())])
    assert hashlib.sha256(names.encode()).hexdigest()[:16] == "907aebb4621ecc06"


def test_columns_have_a_text_for_each_page() -> None:
    pages = [b"<p>a", b"", b"<script>", b"b"]
    text, offsets = _pages.html_texts(b"".join(pages), array("q", accumulate(map(len, pages), initial=0)))
    assert (text, list(array("q", offsets))) == (b" a b", [0, 2, 2, 3, 4])


markup = st.sampled_from(
    [
        *(
            "<",
            "</",
            ">",
            "/",
            "<!--",
            "-->",
            "-",
            "<!",
            "<?",
            "a",
            "p",
            "B",
            "script",
            "<style>",
            "</STYLE",
            "img ",
        ),
        *(
            "<a href=",
            "<img alt=",
            "area ",
            "src",
            "=",
            "'",
            '"',
            " ",
            "\n",
            "&",
            "amp",
            "amp;",
            "not",
            "notin;",
        ),
        *("#", "x", "65", ";", "\xe9", "&#x80;", "&#xd800", "&copy=", "&NotEqualTilde;", "0", "\x00"),
    ]
)


@given(
    st.lists(st.lists(markup, max_size=30).map("".join), max_size=4), st.sampled_from(["utf-8", "latin-1"])
)
def test_the_kernel_equals_the_definition(drawn: list[str], encoding: str) -> None:
    pages = [page.encode(encoding) for page in drawn]
    column = b"".join(pages), array("q", accumulate(map(len, pages), initial=0))
    assert _pages.html_texts(*column) == reference.html_texts(*column)


def test_every_name_is_found() -> None:
    text = " ".join([f"&{name}" for name in html5])
    assert text_of(text) == html.unescape(text)
    assert (KERNEL / "pages" / "html_names.h").read_text() == names_text(), "run scripts/kernel_tables"


@pytest.mark.parametrize("module", [reference, _pages], ids=["pure", "C"])
@pytest.mark.parametrize("offsets", [[0, 4], [-1, 3], [], [0, 3, 2]])
def test_bad_columns_are_refused(module: Any, offsets: list[int]) -> None:
    with pytest.raises(ValueError):
        module.html_texts(b"<p>", array("q", offsets))
