"""Shingles of texts in plain Python: the definition for shingles.c.

A column of texts is two buffers, as in Arrow's layout: UTF-8, one text after another, and offsets (i64), one
more than there are texts. A text becomes features in four steps.

1. Characters. Each part that is no UTF-8 becomes U+FFFD, as in Python's decoder with errors="replace". Each
   character is folded, see characters.py. Runs of characters with a combining class are sorted by it, stable
   and at most MARK_RUN at a time, so that texts which Unicode calls equivalent are equal.
2. Units. A separator ends a unit. By words, a unit is a run of WORD and EXTEND; each ALONE begins a unit of
   its own, with the EXTEND behind it. By characters, each WORD begins a unit, too.
3. The hash of a unit. Its UTF-8 is filled up with zeros to blocks of 16 bytes, and each block has two
   numbers a and b, little-endian. The hash is 0 before the first block, then step(hash, a, b):

       p = (a ^ KEYS[0] ^ hash) * (b ^ KEYS[1])        step = (p >> 64 ^ p) modulo 2^64

   Both keys have bytes that UTF-8 has not, so the first block has no factor 0.
4. A shingle of the units h[0] to h[k - 1] is step(0, h[0] * BASE^(k - 1) + ... + h[k - 1] modulo 2^64, 0). A
   text has one for every k units in a row. A text of fewer units, but at least one, has one shingle of all of
   them.
"""

from __future__ import annotations

from array import array

from tests.reference.characters import ALONE, EXTEND, SEPARATOR, WORD, characters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _typeshed import ReadableBuffer

__all__ = [
    "BASE",
    "KEYS",
    "MARK_RUN",
    "SHINGLE_LIMIT",
    "shingle_features",
    "texts_of",
    "upper_halves",
]

SHINGLE_LIMIT = 256
"""Units a shingle, at most."""

MARK_RUN = 30
"""Unicode's stream-safe texts (UAX 15) have no longer runs of marks, and no language needs them."""

KEYS = 0xF9C3_7B5D_91E4_A6D3, 0xC15F_8E6B_D92A_74FB

BASE = 0xD134_2543_DE82_EF95
"""A multiplier that scatters well: Steele and Vigna, "Computationally easy, spectrally good multipliers"
(2021)."""

_WORD = (1 << 64) - 1


def shingle_features(
    text: ReadableBuffer, offsets: ReadableBuffer, k: int, by_characters: bool, wrap: bool, /
) -> tuple[bytes, bytes]:
    """Returns the shingles of each text, in order and as often as they occur: a column of sets, u64 and i64.

    With `wrap`, a text of at least `k` units is a ring: shingles run on from its end to its start, so there
    are as many as units. ValueError for a `k` outside 1 to SHINGLE_LIMIT, and for offsets that are no whole
    numbers, decrease or exceed the text.
    """
    if not 1 <= k <= SHINGLE_LIMIT:
        raise ValueError(f"{k} units a shingle: 1 to {SHINGLE_LIMIT} are expected")
    features, ends = array("Q"), array("q", [0])
    for one in texts_of(text, offsets):
        hashes = [unit_hash(unit) for unit in units(folded(one), by_characters)]
        if wrap and len(hashes) >= k:
            hashes += hashes[: k - 1]
        starts = range(max(1, len(hashes) - k + 1) if hashes else 0)
        features.extend(_shingle(hashes[start : start + k]) for start in starts)
        ends.append(len(features))
    return features.tobytes(), ends.tobytes()


def upper_halves(features: ReadableBuffer, /) -> bytes:
    """The upper 32 bits of each feature (u64) as a column of u32, both native. ValueError for an incomplete
    feature."""
    packed = bytes(memoryview(features).cast("B"))
    if len(packed) % 8:
        raise ValueError(f"features: {len(packed)} bytes are no whole 64-bit numbers")
    return array("I", [feature >> 32 for feature in array("Q", packed)]).tobytes()


def folded(text: bytes) -> list[int]:
    """The code points of a text: folded, and its marks in canonical order."""
    tables = characters()
    found: list[int] = []
    run: list[int] = []
    for character in text.decode(errors="replace"):
        for code in tables.fold(ord(character)):
            if not tables.order(code) or len(run) == MARK_RUN:
                found += sorted(run, key=tables.order)
                run = []
            (run if tables.order(code) else found).append(code)
    return found + sorted(run, key=tables.order)


def units(codes: Iterable[int], by_characters: bool) -> Iterator[list[int]]:
    """Yields the words, or the characters, of folded code points."""
    tables = characters()
    unit: list[int] = []
    single = False
    for code in codes:
        kind = tables.kind(code)
        if unit and (kind in (SEPARATOR, ALONE) or (kind == WORD and (single or by_characters))):
            yield unit
            unit = []
        if kind != SEPARATOR:
            single = kind == ALONE or (single and kind == EXTEND and bool(unit))
            unit.append(code)
    if unit:
        yield unit


def unit_hash(unit: list[int]) -> int:
    """The hash of one unit."""
    content = "".join(map(chr, unit)).encode()
    h = 0
    for at in range(0, len(content), 16):
        a = int.from_bytes(content[at : at + 8], "little")
        b = int.from_bytes(content[at + 8 : at + 16], "little")
        h = step(h, a, b)
    return h


def step(h: int, a: int, b: int) -> int:
    """The hash behind one more block."""
    product = (a ^ KEYS[0] ^ h) * (b ^ KEYS[1])
    return (product >> 64 ^ product) & _WORD


def _shingle(hashes: list[int]) -> int:
    total = 0
    for h in hashes:
        total = (total * BASE + h) & _WORD
    return step(0, total, 0)


def texts_of(text: ReadableBuffer, offsets: ReadableBuffer) -> Iterator[bytes]:
    """Yields the bytes of each text. ValueError for bad offsets."""
    content, bounds = memoryview(text).cast("B"), memoryview(offsets).cast("B")
    if len(bounds) % 8:
        raise ValueError(f"offsets: {len(bounds)} bytes are no whole 64-bit numbers")
    ends = array("q", bytes(bounds))
    if not ends or ends[0] < 0 or ends[-1] > len(content):
        raise ValueError(f"offsets: one more than texts, from 0 to at most {len(content)}, are expected")
    for i in range(1, len(ends)):
        if ends[i] < ends[i - 1]:
            raise ValueError(f"offsets: {ends[i]} follows {ends[i - 1]}; they must not decrease")
    for i in range(1, len(ends)):
        yield bytes(content[ends[i - 1] : ends[i]])
