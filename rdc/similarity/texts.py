"""Texts as sets: shingles of words or characters, bigrams of URLs, and the text of HTML pages.

Broder, Glassman, Manasse, Zweig, "Syntactic clustering of the Web" (1997): two texts are as alike as their
sets of shingles. A shingle is a run of words.

Texts are a column in Arrow's layout: `text`, UTF-8, one text after another, and `offsets`, i64, one more than
there are texts; text t has the bytes from offsets[t] to offsets[t + 1]. Any buffer serves, such as bytes, a
numpy array of uint8 or an Arrow buffer, and nothing is copied. Offsets of another type are a TypeError.
tests/reference/shingles.py says what is a word. Its tables of characters are pinned, so features are
equal on every machine and every Python.
"""

from __future__ import annotations

from array import array
from functools import cache
from itertools import accumulate, pairwise

from rdc.errors import UsageError
from rdc.kernel import shingle_features
from rdc.kernel.constants import mix
from rdc.lean.checks import check_argument, checked_count
from rdc.lean.records import Record
from rdc.similarity.samples import Items, check_column, check_text, check_whole, spans_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Literal

    from selectolax.lexbor import LexborNode
    from typing_extensions import Buffer


class TextColumn(Record):
    """Many texts."""

    text: bytes
    """UTF-8, one text after another."""
    offsets: bytes
    """i64, one more than texts."""

    def __post_init__(self) -> None:
        check_argument("TextColumn", "text", self.text, bytes)
        check_whole("TextColumn", self.offsets, 8, least=1)

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.offsets) // 8 - 1

    def of(self, row: int) -> bytes:
        """Return one text. Raises IndexError."""
        first, stop = _bounds(self.offsets, row)
        return self.text[first:stop]

    @staticmethod
    def join(texts: Iterable[str | bytes]) -> TextColumn:
        """Make a column of these texts. Lone surrogates of a `str` become U+FFFD.

        >>> from rdc.similarity import TextColumn
        >>> column = TextColumn.join(["one text", b"another one"])
        >>> len(column), column.of(1)
        (2, b'another one')
        """
        rows = []
        for number, one in enumerate(texts):
            check_argument("TextColumn.join", f"texts[{number}]", one, str, bytes)
            rows.append(_encoded(one) if isinstance(one, str) else one)
        return TextColumn(b"".join(rows), array("q", accumulate(map(len, rows), initial=0)).tobytes())


class FeatureColumn(Record):
    """The features of many texts: sets for `minhash()`, `one_permutation()` and `bottom_k()`.

    Features of one text are in order and repeat. They are spread evenly over 64 bits. They are no defence
    against texts made to collide.
    """

    features: bytes
    """u64, those of one text after another."""
    offsets: bytes
    """i64, one more than texts."""

    def __post_init__(self) -> None:
        check_whole("FeatureColumn", self.features, 8)
        check_whole("FeatureColumn", self.offsets, 8, least=1)

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.offsets) // 8 - 1

    def of(self, row: int) -> array[int]:
        """Return the features of one text. Raises IndexError."""
        first, stop = _bounds(self.offsets, row)
        return array("Q", self.features[8 * first : 8 * stop])

    def resemblance(self, one: int, other: int) -> float:
        """Return the Jaccard resemblance of two texts, exact: the share of common features. Two texts without
        any resemble each other fully."""
        a, b = set(self.of(one)), set(self.of(other))
        return len(a & b) / len(a | b) if a or b else 1.0


def shingles(
    text: Buffer,
    offsets: Buffer,
    k: int = 5,
    *,
    unit: Literal["words", "chars"] = "words",
    wrap: bool = False,
) -> FeatureColumn:
    """Return all runs of `k` words of each text, or of `k` characters, as features.

    Case, compatibility forms and accents' encodings do not matter: texts are folded as Unicode's
    compatibility caseless match does. Words are runs of letters, digits, marks and underscores. In scripts
    without spaces, such as Chinese, Japanese or Thai, each character is a word. With `unit="chars"` that
    holds for all scripts. What is between words never counts. Bytes that are no UTF-8 separate words. `k` is
    1 to 256. A text of fewer than `k` words has one feature of all of them, a text without words has none.
    With `wrap` a text is a ring, and has as many features as words (Broder 1997). Features of different `k`
    or `unit` never compare: whoever stores them stores both.

    Memory: the result, 8 bytes a word, and up to half as much again while it grows. Raises ValueError for a
    bad column, another `unit` and another `k`.

    >>> from rdc.similarity import TextColumn, shingles
    >>> column = TextColumn.join(["A rose is a rose is a rose.", "a ROSE, is a rose", "no"])
    >>> found = shingles(column.text, column.offsets, 4)
    >>> [len(found.of(row)) for row in range(len(found))], found.resemblance(0, 1)
    ([5, 2, 1], 0.6666666666666666)
    """
    if unit not in ("words", "chars"):
        raise ValueError(f"unit={unit!r}: 'words' or 'chars' is expected")
    _check("shingles", text, offsets)
    check_argument("shingles", "wrap", wrap, bool)
    k = checked_count("shingles", "k", k, 1, 256)
    return FeatureColumn(*shingle_features(text, offsets, k, unit == "chars", wrap))


def url_bigrams(text: Buffer, offsets: Buffer) -> FeatureColumn:
    """Return the pairs of neighbouring words of each URL with their position, for finding mirrored sites.

    Bharat, Broder, Dean, Henzinger, "A comparison of techniques to find mirrored hosts on the WWW" (2000).
    Digits and punctuation separate words. Words such as index and html are left out. A URL of one word has
    one feature of it. The set of a site is the union over its URLs: of the offsets, keep those where a site
    begins, and the last one. Raises ValueError for a bad column.

    >>> from rdc.similarity import TextColumn, url_bigrams
    >>> column = TextColumn.join(["www6.infoseek.com/a.html", "http://www.infoseek.com/a/index.htm"])
    >>> found = url_bigrams(column.text, column.offsets)
    >>> len(found.of(0)), found.resemblance(0, 1)
    (3, 1.0)
    """
    _check("url_bigrams", text, offsets)
    letters = bytes(memoryview(text).cast("B")).translate(_URL_SPACES)
    words = FeatureColumn(*shingle_features(letters, offsets, 1, False, False))
    features, ends, left_out = array("Q"), array("q", [0]), _stop_words()
    for row in range(len(words)):
        own = [word for word in words.of(row) if word not in left_out]
        pairs = list(pairwise(own)) or [(word, 0) for word in own]
        features.extend(
            [mix((mix((one + place) & _WORD) + other) & _WORD) for place, (one, other) in enumerate(pairs)]
        )
        ends.append(len(features))
    return FeatureColumn(features.tobytes(), ends.tobytes())


_WORD = (1 << 64) - 1

_URL_SPACES = bytes([ord(" ") if byte in b"0123456789_" else byte for byte in range(256)])


@cache
def _stop_words() -> frozenset[int]:
    """Return the features of the words of URLs that say nothing about a site."""
    words = b"bin cgi ftp home htm html http https index main txt"
    features, _ = shingle_features(words, array("q", [0, len(words)]), 1, False, False)
    return frozenset(array("Q", features))


def html_text(text: Buffer, offsets: Buffer) -> TextColumn:
    """Return the text of HTML pages, without markup, scripts and styles.

    Lexbor reads a page as browsers do, and its text is that of the tree, in order: character references are
    decoded, and comments, `script`, `style` and `template` are left out. Each element leaves a space before
    and behind it, but for those that may stand within a word, such as `b` and `span`. Links and images leave
    their addresses behind, images their alternative text, too: pages that differ in them differ. So the
    `href` of `a` and `area`, and the `src` and `alt` of `img`, stand where the element begins, each between
    spaces. The result is UTF-8, whatever the pages are: bytes that are none become U+FFFD.

    Equal pages have equal texts with the same version of selectolax, which brings Lexbor: whoever stores
    features of pages stores it, too. Raises UsageError without selectolax, and ValueError for a bad column.

    >>> from rdc.similarity import TextColumn, html_text
    >>> page = TextColumn.join(["<p>Fish &amp; <b>chi</b>ps<p><a href=menu.html>Menu</a>"])
    >>> html_text(page.text, page.offsets).of(0).split()
    [b'Fish', b'&', b'chips', b'menu.html', b'Menu']
    """
    _check("html_text", text, offsets)
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError:
        raise UsageError("html_text needs selectolax: python3 -m pip install 'rdc-sync[html]'") from None
    content = memoryview(text).cast("B")
    pages = (
        LexborHTMLParser(bytes(content[first:stop]).decode(errors="replace"))
        for first, stop in spans_of(len(content), offsets)
    )
    return TextColumn.join("".join(_page_parts(page.root)) for page in pages)


_INLINE = frozenset(
    (
        *("a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "em", "font", "i", "ins", "kbd", "mark"),
        *("q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var", "wbr"),
    )
)
"""Elements that may stand within a word."""

_WITHOUT_SPACE = _INLINE | {"html", "head", "body", "-document", "-text", "-comment"}
"""The tags that leave no space. Every page has html, head and body, whether it names them or not."""

_LEFT_OUT = frozenset(("script", "style", "template"))

_ADDRESSES = {"a": ("href",), "area": ("href",), "img": ("src", "alt")}


def _page_parts(root: LexborNode | None) -> Iterator[str]:
    """Yield the text of a tree and what its elements leave behind, without recursion: a tree can be deep."""
    node = root
    while node is not None:
        tag = node.tag or ""
        if tag == "-text":
            yield node.text_content or ""
        elif tag not in _WITHOUT_SPACE:
            yield " "
        if tag in _ADDRESSES:
            values = node.attributes
            yield "".join([f" {values[name] or ''} " for name in _ADDRESSES[tag] if name in values])
        below = node.child if tag not in _LEFT_OUT else None
        while below is None and node is not None:
            if node.tag not in _WITHOUT_SPACE:
                yield " "
            below, node = node.next, node.parent
        node = below


def _check(function: str, text: Buffer, offsets: Buffer) -> None:
    check_text(function, "text", text)
    check_column(function, "offsets", offsets, Items.SIGNED)


def _bounds(offsets: bytes, row: int) -> tuple[int, int]:
    if not 0 <= row < len(offsets) // 8 - 1:
        raise IndexError(f"text {row} of {len(offsets) // 8 - 1}")
    first, stop = array("q", offsets[8 * row : 8 * row + 16])
    return first, stop


def _encoded(text: str) -> bytes:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
