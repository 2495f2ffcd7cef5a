"""How characters fold and what they are in a text: the pinned tables of rdc/kernel/unicode_data.py, read.

Folding is Unicode's compatibility caseless match (D146) as far as one character decides: full case folding
and compatibility decomposition, until nothing changes. Characters that Unicode says to ignore fold to
nothing, such as the soft hyphen; U+200B stays, because it is there to separate words.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from functools import cache
from itertools import accumulate, islice

from rdc.kernel import unicode_data
from rdc.lean.records import Record

__all__ = ["ALONE", "EXTEND", "SEPARATOR", "WORD", "Characters", "characters"]

SEPARATOR = 0
"""Spaces, punctuation but for connectors such as the underscore, symbols, controls."""

WORD = 1
"""Letters, digits, connectors; also what the pinned version does not know, and private use."""

ALONE = 2
"""Letters of scripts without spaces between words: each is a word of its own."""

EXTEND = 3
"""Marks, and vowels and finals of a Hangul syllable: they belong to the character before."""

_HANGUL, _LEADS, _VOWELS, _FINALS = 0xAC00, 0x1100, 0x1161, 0x11A7


class Characters(Record):
    """The tables."""

    firsts: list[int]
    """First code point of each range."""
    kinds: list[int]
    """Kind of each range."""
    orders: list[int]
    """Canonical combining class of each range."""
    foldings: dict[int, tuple[int, ...]]
    """Of the characters that change, but for Hangul syllables."""

    def fold(self, code: int) -> tuple[int, ...]:
        """What a character folds to."""
        if _HANGUL <= code < _HANGUL + 19 * 21 * 28:
            lead, rest = divmod(code - _HANGUL, 21 * 28)
            vowel, final = divmod(rest, 28)
            syllable = _LEADS + lead, _VOWELS + vowel, _FINALS + final
            return syllable if final else syllable[:2]
        return self.foldings.get(code, (code,))

    def kind(self, code: int) -> int:
        """SEPARATOR, WORD, ALONE or EXTEND, of a folded character."""
        return self.kinds[bisect_right(self.firsts, code) - 1]

    def order(self, code: int) -> int:
        """The canonical combining class of a folded character: marks that differ in it may change places."""
        return self.orders[bisect_right(self.firsts, code) - 1]


@cache
def characters() -> Characters:
    """Reads the tables once."""
    numbers = array("Q", unicode_data.numbers())
    columns = iter(numbers[2:])
    lengths, properties = (list(islice(columns, numbers[0])) for _ in range(2))
    steps, counts, zigzags = (list(islice(columns, numbers[1])) for _ in range(3))
    folded = {}
    first = 0
    for code, count, zigzag in zip(accumulate(steps), counts, zigzags, strict=True):
        first += -(zigzag + 1) // 2 if zigzag % 2 else zigzag // 2
        folded[code] = (first, *islice(columns, count - 1)) if count else ()
    firsts = list(accumulate(lengths[:-1], initial=0))
    kinds, orders = [number & 3 for number in properties], [number >> 2 for number in properties]
    return Characters(firsts, kinds, orders, folded)
