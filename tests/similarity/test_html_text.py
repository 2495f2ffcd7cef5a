"""The text of HTML pages: what stays of a page, what its elements leave behind, and what is refused."""

from __future__ import annotations

import html
import sys
from array import array
from html.entities import html5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import UsageError
from rdc.similarity import TextColumn, html_text


def text_of(page: str | bytes) -> str:
    column = TextColumn.join([page])
    found = html_text(column.text, column.offsets)
    assert len(found) == 1
    return found.of(0).decode()


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ("a < b <3 <", "a < b <3 <"),
        ("<p>one</p><p>two</p>", " one  two "),
        ("<p>one<p>two", " one  two "),
        ("<title>A &amp; b</title>c", " A & b c"),
        ("<b>O</b>nce <SPAN class='x'>up</span>on", "Once upon"),
        ("one<br>two<hr/>three", "one  two  three"),
        ("<table><tr><td>a<td>b</table>c", "    a  b    c"),
        ("ex<!-- > -- -->am<!-->pl<!--->e", "example"),
        ("a<!doctype html>b<?xml ?>c</ d>e</>f", "abcef"),
        ("a<!-- no end > b", "a"),
        ("a<p title='no end> b", "a"),
        ("a<p title", "a"),
        ("a<!", "a"),
        ("<a href=x.html>y</a>", " x.html y"),
        ("<A\nHREF = 'a>b' >y", " a>b y"),
        ('<a title=1 href="?a=1&copy=2&amp;x=&lt;">', " ?a=1&copy=2&x=< "),
        ("<map><area href=x><link href=y></map><a src=z>", "   x     "),
        ("<img src=i.png alt='A cat' height=3/>", "  i.png  A cat  "),
        ("<img alt src=i.png>", "  i.png    "),
        ("</a href=x>y", "y"),
        ("<script>if (a<b) '</scrip>' </script >x", "  x"),
        ("<STYLE>p{}</style\n>x<style/>y</STYLE>", "  x  "),
        ("<script>a</scriptx></script", "  "),
        ("<scripty>a", " a "),
        ("<template><p>a</p></template>b", "  b"),
        ("<textarea><p>a</textarea>b", " <p>a b"),
        ("&lt;p&gt; &copy &notit; &notin; &#65;&#x42;&#67 &nosuch; &", "<p> © ¬it; ∉ ABC &nosuch; &"),
        ("&#0; &#x110000; &#xd800; &#x80; &#99999999999999999999999;", "\ufffd \ufffd \ufffd € \ufffd"),
        ("&#000000000000065; &#; &#x; &#xg", "A &#; &#x; &#xg"),
        ("&NotEqualTilde;&amp;amp;", "≂\u0338&amp;"),
        (b"a\xff<p\xff>b\xe4\xb8", "a\ufffd b\ufffd "),
    ],
)
def test_pages_have_this_text(page: str | bytes, text: str) -> None:
    assert text_of(page) == text


@given(
    st.text(st.sampled_from("&#x;aAmpltnoi10"), min_size=1, max_size=20)
    | st.sampled_from([f"&{name}" for name in html5])
)
def test_references_are_decoded_as_python_decodes_them(text: str) -> None:
    """Python leaves out what names no character, which the standard keeps."""
    if "#" not in text:
        assert text_of(text) == html.unescape(text)


def test_every_name_is_found() -> None:
    text = "|".join([f"&{name}" for name in html5])
    assert text_of(text) == html.unescape(text)


def test_columns_have_a_text_for_each_page() -> None:
    pages = TextColumn.join([b"<p>a", b"", b"<script>", b"b"])
    found = html_text(pages.text, pages.offsets)
    assert [found.of(row) for row in range(4)] == [b" a ", b"", b"  ", b"b"]


def test_deep_pages_are_read() -> None:
    """Lexbor bounds the open elements itself, or holds a tree that no recursion could walk."""
    assert text_of("<div>" * 20_000 + "deep").split() == ["deep"]


@given(
    st.lists(
        st.sampled_from("<>/!-?&#;='\" \n\x00abp") | st.sampled_from(["script", "<a href=", "<img alt="]),
        max_size=40,
    )
)
def test_any_page_has_a_text(drawn: list[str]) -> None:
    text_of("".join(drawn))


@pytest.mark.parametrize("offsets", [[0, 4], [-1, 3], [], [0, 3, 2]])
def test_bad_columns_are_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError):
        html_text(b"<p>", array("q", offsets))


def test_without_selectolax_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "selectolax.lexbor", None)
    with pytest.raises(
        UsageError, match=r"^html_text needs selectolax: python3 -m pip install 'rdc-sync\[html\]'$"
    ):
        html_text(b"", array("q", [0]))
