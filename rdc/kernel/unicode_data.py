"""Unicode's characters, pinned: the contents of unicode.bin, which scripts/unicode_tables.py writes.

Its first line has Unicode's version; the SHA-256 of UnicodeData.txt, CaseFolding.txt, Scripts.txt,
LineBreak.txt and DerivedCoreProperties.txt, one after another; and the count of numbers, which follow as
LEB128, packed by zlib. In this order: how many ranges and how many foldings there are; the length of each
range; the properties of each range, which are its kind (see tests/reference/characters.py) and from bit 2 on
its canonical combining class; for each character that folds to others, the step from the one before; how many
each folds to; the first of these, as a zigzag difference from the one before; the others of all. Hangul
syllables are left to a rule.
"""

from __future__ import annotations

from pkgutil import get_data
from zlib import decompress

from rdc.kernel import unpack_varints

_head, _, _packed = (get_data("rdc.kernel", "unicode.bin") or b"").partition(b"\n")
VERSION, SOURCE, _count = _head.decode().split()


def numbers() -> bytes:
    """Return all numbers, 64 bits each in the machine's byte order."""
    return unpack_varints(decompress(_packed), 0, int(_count))[0]
