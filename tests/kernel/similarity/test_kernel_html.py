"""The text of HTML pages: every variant beside the definition, and the definition beside pages."""

from __future__ import annotations

import hashlib
import html
from array import array
from html.entities import html5
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.kernel.shingles import html_reference


def text_of(page: str | bytes) -> str:
    content = page if isinstance(page, bytes) else page.encode()
    text, offsets = html_reference.html_texts(content, array("q", [0, len(content)]))
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
    text, offsets = html_reference.html_texts(
        b"".join(pages), array("q", accumulate(map(len, pages), initial=0))
    )
    assert (text, list(array("q", offsets))) == (b" a b", [0, 2, 2, 3, 4])
