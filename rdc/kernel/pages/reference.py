"""The text of HTML pages in plain Python: the definition for html_text.c and character_references.c.

It follows the tokenizer of the HTML standard as far as words depend on it:

- A comment `<!--` ends behind the next `-->`, `<!-->` included. Other things that begin with `<!`, `<?` or
  `</` without a letter end behind the next `>`.
- A tag is `<` or `</`, a letter and more, up to a `>` outside of quoted values. Any other `<` is text.
- A start of `script` or `style` leaves out everything up to its end tag.
- What does not end leaves out the rest of the page.

Tags of INLINE and comments leave nothing behind, other tags a space. Addresses stay, because pages that
differ in them differ: the values of `href` of `a` and `area`, `src` of `img`, and also `alt` of `img`, each
between spaces. Character references are decoded in the text and in these values.
"""

from __future__ import annotations

import re
from array import array
from html.entities import html5

from rdc.kernel.shingles.reference import texts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

__all__ = ["INLINE", "html_texts"]

INLINE = frozenset(
    (
        *(
            "a",
            "abbr",
            "b",
            "bdi",
            "bdo",
            "big",
            "cite",
            "code",
            "em",
            "font",
            "i",
            "ins",
            "kbd",
            "mark",
            "q",
        ),
        *("s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var", "wbr"),
    )
)
"""Elements that may stand within a word."""

ADDRESSES = {("a", "href"), ("area", "href"), ("img", "src"), ("img", "alt")}

RAW = ("script", "style")

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_SPACE = " \t\n\f\r"
_WINDOWS = (
    "\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f"
    "\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178"
)
"""What numbers from 128 to 159 mean in pages."""


def html_texts(text: ReadableBuffer, offsets: ReadableBuffer, /) -> tuple[bytes, bytes]:
    """Returns the texts of pages as a column: UTF-8 and offsets (i64).

    ValueError for offsets that are no whole numbers, decrease or exceed the text.
    """
    found, ends = bytearray(), array("q", [0])
    for page in texts_of(text, offsets):
        found += "".join(_parts(page.decode(errors="replace"))).encode()
        ends.append(len(found))
    return bytes(found), ends.tobytes()


def _parts(page: str) -> Iterator[str]:
    """Yields the text between tags, and what tags leave behind."""
    at = 0
    while at < len(page):
        start = page.find("<", at)
        if start < 0:
            start = len(page)
        yield _decoded(page[at:start], False)
        behind, at = _markup(page, start)
        yield behind


def _markup(page: str, start: int) -> tuple[str, int]:
    """What the markup at `start` leaves behind, and where it ends."""
    following = page[start + 1 : start + 2]
    if _is_letter(following) or (following == "/" and _is_letter(page[start + 2 : start + 3])):
        return _tag(page, start)
    if page.startswith("<!--", start):
        return "", _behind(page, "-->", start + 2)
    if following in ("!", "?", "/") and following:
        return " ", _behind(page, ">", start + 2)
    return page[start : start + 1], start + 1


def _tag(page: str, start: int) -> tuple[str, int]:
    closes = page[start + 1] == "/"
    at = first = start + 1 + closes
    while at < len(page) and page[at] not in _SPACE + "/>":
        at += 1
    element = _lower(page[first:at])
    behind = "" if element in INLINE else " "
    while True:
        while at < len(page) and page[at] in _SPACE + "/":
            at += 1
        if at == len(page):
            return "", at
        if page[at] == ">":
            break
        name, value, at = _attribute(page, at)
        if not closes and at < len(page) and (element, name) in ADDRESSES:
            behind += f" {_decoded(value, True)} "
    at += 1
    if element in RAW and not closes:
        at = _end_of_raw(page, element, at)
    return behind, at


def _attribute(page: str, first: int) -> tuple[str, str, int]:
    """Name and value of the attribute at `first`, and where it ends."""
    at = first + 1
    while at < len(page) and page[at] not in _SPACE + "/>=":
        at += 1
    name = _lower(page[first:at])
    at = _behind_spaces(page, at)
    if page[at : at + 1] != "=":
        return name, "", at
    at = first = _behind_spaces(page, at + 1)
    quote = page[at : at + 1]
    if quote and quote in "'\"":
        at = _behind(page, quote, at + 1)
        return name, page[first + 1 : at - 1], at
    while at < len(page) and page[at] not in _SPACE + ">":
        at += 1
    return name, page[first:at], at


def _behind_spaces(page: str, at: int) -> int:
    while at < len(page) and page[at] in _SPACE:
        at += 1
    return at


def _behind(page: str, ending: str, at: int) -> int:
    found = page.find(ending, at)
    return len(page) if found < 0 else found + len(ending)


def _end_of_raw(page: str, element: str, at: int) -> int:
    """Where the end tag of a raw element begins."""
    while (at := page.find("</", at)) >= 0:
        stop = at + 2 + len(element)
        if _lower(page[at + 2 : stop]) == element and page[stop : stop + 1] in (*_SPACE, "/", ">"):
            return at
        at += 2
    return len(page)


def _decoded(text: str, in_value: bool) -> str:
    """The text with its character references decoded.

    A name without its semicolon counts only if the standard has it so. In a value it stays if a letter, a
    digit or = follows: addresses have parameters such as &copy=1.
    """
    return _REFERENCE.sub(lambda match: _character(match, in_value), text)


_REFERENCE = re.compile(r"&(?:#([0-9]+);?|#[xX]([0-9a-fA-F]+);?|([a-zA-Z][a-zA-Z0-9]{,31};?))")


def _character(match: re.Match[str], in_value: bool) -> str:
    decimal, hexadecimal, name = match.groups()
    if name:
        return _named(name, match.string[match.end() : match.end() + 1], in_value) or match[0]
    digits = (decimal or hexadecimal).lstrip("0") or "0"
    number = int(digits, 10 if decimal else 16) if len(digits) <= len("1114111") else 0
    if 128 <= number < 160:
        return _WINDOWS[number - 128]
    bad = number == 0 or number > 0x10FFFF or 0xD800 <= number < 0xE000
    return "\ufffd" if bad else chr(number)


def _named(name: str, following: str, in_value: bool) -> str:
    """The characters of the longest name that begins this text, and the rest of it, or nothing."""
    for length in range(len(name), 0, -1):
        character = html5.get(name[:length])
        if character is None:
            continue
        rest = name[length:]
        behind = (rest + following)[:1]
        if (
            in_value
            and name[length - 1] != ";"
            and behind
            and (behind in "=0123456789" or _is_letter(behind))
        ):
            return ""
        return character + rest
    return ""


def _is_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()


def _lower(name: str) -> str:
    """ASCII letters in lower case: other letters are not the same in HTML."""
    return name.translate(_LOWER)
