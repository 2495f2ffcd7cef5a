"""Shingles: every variant beside the definition, and the definition beside Unicode and plain words."""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import _kernel, unicode_data
from scripts.kernel_tables import keys_text
from tests.reference import shingles as reference
from tests.reference.characters import ALONE, EXTEND, SEPARATOR, WORD, characters
from tests.support.project_paths import KERNEL
from tests.support.share import examples

VARIANTS = _kernel.usable()

characters_drawn = st.sampled_from(
    "abzAZ09_ .\n\x00éÉß\u017fK½ﬁ…\xad\u200b\u0301\u0323가각ᄀ世界カーだไทยИ😀\ue000\U000e0001"
)
texts = st.lists(st.text(characters_drawn, max_size=60) | st.text(max_size=20), max_size=6)


def column(rows: list[bytes]) -> tuple[bytes, array[int]]:
    return b"".join(rows), array("q", accumulate(map(len, rows), initial=0))


def sets_of(result: tuple[bytes, bytes]) -> list[list[int]]:
    features, offsets = array("Q", result[0]), array("q", result[1])
    return [list(features[offsets[i] : offsets[i + 1]]) for i in range(len(offsets) - 1)]


def shingled(text: str, k: int = 1, by_characters: bool = False, wrap: bool = False) -> list[int]:
    return sets_of(reference.shingle_features(*column([text.encode()]), k, by_characters, wrap))[0]


def words(text: str) -> list[str]:
    codes = reference.folded(text.encode())
    return ["".join(map(chr, unit)) for unit in reference.units(codes, by_characters=False)]


def test_words_are_runs_of_letters_digits_marks_and_underscores() -> None:
    assert words("Don't STOP_me at 3.14, naïve Straße!") == [
        *("don", "t", "stop_me", "at", "3", "14", "nai\u0308ve", "strasse"),
    ]
    assert words("ex\xadam\u200dple a\u200bb \ufeffx ½ № ﬁn") == [
        "example",
        "a",
        "b",
        "x",
        "1",
        "2",
        "no",
        "fin",
    ]
    assert words("世界 is カード、ไทย") == ["世", "界", "is", "カ", "ー", "ト\u3099", *"ไทย"]
    assert words("\u0301a \u0301") == ["\u0301a", "\u0301"]
    assert words("世a界") == ["世", "a", "界"]


def test_characters_are_letters_with_their_marks_and_syllables() -> None:
    codes = reference.folded("Né 각가 1".encode())
    found = ["".join(map(chr, unit)) for unit in reference.units(codes, by_characters=True)]
    assert found == ["n", "e\u0301", "\u1100\u1161\u11a8", "\u1100\u1161", "1"]


@settings(max_examples=examples(40))
@given(st.text(max_size=20), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_equivalent_texts_have_equal_shingles(text: str, normal: Any) -> None:
    """Normal forms of a character are stable as soon as a version of Unicode knows it."""
    known = "".join([c for c in text if unicodedata.category(c) != "Cn"])
    assert shingled(unicodedata.normalize(normal, known)) == shingled(unicodedata.normalize("NFC", known))


@settings(max_examples=examples(40))
@given(st.text(max_size=20))
def test_case_does_not_matter(text: str) -> None:
    known = unicodedata.normalize("NFKD", "".join([c for c in text if unicodedata.category(c) != "Cn"]))
    assert shingled(known.casefold()) == shingled(known)


def test_the_tables_are_those_of_unicode_where_python_knows_a_character() -> None:
    """The category of an assigned character may change in later versions, its folding never."""
    assert unicode_data.VERSION == "15.0.0"
    tables = characters()
    for code in (
        *range(0x3000),
        *range(0xA000, 0xD800, 7),
        *range(0xE000, 0x11000, 3),
        *range(0x1D000, 0x1F200),
    ):
        character = chr(code)
        category = unicodedata.category(character)
        folded = tables.fold(code)
        if category in ("Cn", "Cs") or not folded:
            continue
        while (
            step := unicodedata.normalize("NFKD", unicodedata.normalize("NFD", character).casefold())
        ) != character:
            character = step
        assert folded == tuple(map(ord, character))
        if unicodedata.unidata_version == "15.0.0" or category in ("Lu", "Ll", "Nd", "Mn", "Zs", "Cc", "Sm"):
            kinds = {"L": (WORD, ALONE, EXTEND), "N": (WORD, ALONE), "M": (EXTEND,)}
            wanted = (WORD,) if category == "Pc" else kinds.get(category[0], (SEPARATOR, WORD))
            assert tables.kind(code) in wanted, hex(code)
        assert tables.order(code) == unicodedata.combining(chr(code))


def test_long_runs_of_marks_are_sorted_in_runs() -> None:
    marks = "\u0301\u0323" * 40
    assert reference.folded(marks.encode()) == [*[0x323] * 15, *[0x301] * 15] * 2 + [
        *[0x323] * 10,
        *[0x301] * 10,
    ]


@settings(max_examples=examples(40))
@given(texts, st.integers(1, 6), st.booleans(), st.booleans())
def test_shingles_are_as_many_as_runs_of_units(
    rows: list[str], k: int, by_characters: bool, wrap: bool
) -> None:
    sets = sets_of(
        reference.shingle_features(*column([row.encode() for row in rows]), k, by_characters, wrap)
    )
    for row, features in zip(rows, sets, strict=True):
        count = len(list(reference.units(reference.folded(row.encode()), by_characters)))
        if count < k:
            assert len(features) == min(count, 1)
        else:
            assert len(features) == (count if wrap else count - k + 1)


def spread(polynomial: int) -> int:
    product = (polynomial ^ 0xF9C3_7B5D_91E4_A6D3) * 0xC15F_8E6B_D92A_74FB
    return (product >> 64 ^ product) % 2**64


def test_a_shingle_is_the_polynomial_of_its_words() -> None:
    a, b, c = (reference.unit_hash([ord(letter)]) for letter in "abc")
    base = reference.BASE
    wanted = [spread((one * base + two) % 2**64) for one, two in ((a, b), (b, c), (c, a))]
    assert shingled("a b C", 2) == wanted[:2]
    assert shingled("a b c", 2, wrap=True) == wanted
    assert shingled("c", 2, wrap=True) == [spread(c)]
    assert shingled("c a b c a b", 3)[0] == shingled("c a b c a b", 3)[3]
    assert a == spread(ord("a"))


@given(st.binary(max_size=40))
def test_bad_utf8_separates_words(data: bytes) -> None:
    assert (
        shingled(data.decode(errors="replace"))
        == sets_of(reference.shingle_features(*column([data]), 1, False, False))[0]
    )


def test_words_that_differ_have_hashes_that_differ() -> None:
    some = {
        reference.unit_hash(list(map(ord, f"{prefix}{number}")))
        for prefix in ("", "word", "a" * 16)
        for number in range(2_000)
    }
    assert len(some) == 6_000
    ones = [sum(h >> bit & 1 for h in some) for bit in range(64)]
    assert all(2_800 < count < 3_200 for count in ones)


parts_drawn = st.sampled_from(
    [
        "a",
        "Word",
        " ",
        " ",
        "word2_",
        "É",
        "e\u0301",
        "\u0323\u0301",
        "각",
        "世",
        "ガ",
        "½",
        "\ufdfa",
        "\xad",
        "\u2019",
        "\u201c",
        "\xa0",
        "😀",
    ]
)
rows = st.lists(
    st.lists(parts_drawn, max_size=60).map(lambda found: "".join(found).encode()) | st.binary(max_size=30),
    max_size=5,
)


@settings(max_examples=examples(60))
@given(rows, st.integers(1, 7) | st.just(256), st.booleans(), st.booleans())
def test_variants_equal_the_definition(drawn: list[bytes], k: int, by_characters: bool, wrap: bool) -> None:
    given = column(drawn)
    wanted = reference.shingle_features(*given, k, by_characters, wrap)
    for name in VARIANTS:
        _kernel.choose(name)
        assert _kernel.shingle_features(*given, k, by_characters, wrap) == wanted
    _kernel.choose(VARIANTS[0])


ENDINGS = ("", "\u0301", "世\u0301a", "\xad-", "ab" * 20, "\u201c", "\xa0\u0301x", "\xff")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("by_characters", [False, True])
def test_texts_may_be_divided_anywhere(ending: str, by_characters: bool) -> None:
    """The kernel reads blocks of 64 bytes, chunks of 2048, and what is not ASCII on its own. Separators
    before the text move its parts to each place of a block, and to the end of a chunk."""
    text = f"{'many words ' * 3}{'x' * 70} E{ending} y z{'ab' * 9} 世{ending}b\u0323 tail{ending}".encode()
    wanted = reference.shingle_features(text, array("q", [0, len(text)]), 3, by_characters, False)[0]
    shifts = [*range(66), *range(2048 - len(text) - 2, 2050)]
    moved = column([b"-" * shift + text for shift in shifts])
    for name in VARIANTS:
        _kernel.choose(name)
        features, offsets = _kernel.shingle_features(*moved, 3, by_characters, False)
        assert features == wanted * len(shifts)
        assert array("q", offsets) == array("q", range(0, len(features) // 8 + 1, len(wanted) // 8))
    _kernel.choose(VARIANTS[0])


def test_every_character_is_what_the_definition_says() -> None:
    """Characters of all kinds, each with letters before and behind it, with marks, and doubled."""
    codes = [*range(0x600), *range(0x600, 0x3400, 7), *range(0xA000, 0xD800, 13), *range(0xF800, 0x12000, 11)]
    codes += [*range(0x1D000, 0x1F800, 17), 0x2F800, 0x2FA1D, 0xE0001, 0xE01EF, 0x10FFFF]
    parts = [f"a{c}b {c}{c}\u0323\u0301 " for c in map(chr, codes) if not "\ud800" <= c < "\ue000"]
    given = column(["".join(parts[at : at + 50]).encode() for at in range(0, len(parts), 50)])
    for by_characters in (False, True):
        wanted = reference.shingle_features(*given, 1, by_characters, False)
        for name in VARIANTS:
            _kernel.choose(name)
            assert _kernel.shingle_features(*given, 1, by_characters, False) == wanted
    _kernel.choose(VARIANTS[0])


def test_long_words_marks_and_texts() -> None:
    texts = [
        b"x" * 5000,
        b"a " * 2000,
        b"a" + "\u0301\u0323".encode() * 700,
        "世".encode() * 700,
        b"\xff" * 5000,
    ]
    given = column([*texts, b" " * 5000, b"", b"word " * 500 + b"y"])
    for k, by_characters, wrap in ((3, False, True), (30, True, False)):
        wanted = reference.shingle_features(*given, k, by_characters, wrap)
        for name in VARIANTS:
            _kernel.choose(name)
            assert _kernel.shingle_features(*given, k, by_characters, wrap) == wanted
    _kernel.choose(VARIANTS[0])


def test_keys_are_what_the_generator_writes() -> None:
    assert (KERNEL / "shingles" / "keys.h").read_text() == keys_text(), "run scripts/kernel_tables.py"


@pytest.mark.parametrize("module", [reference, _kernel], ids=["pure", "C"])
@pytest.mark.parametrize(
    "call",
    [
        lambda module: module.shingle_features(b"a", array("q", [0, 1]), 0, False, False),
        lambda module: module.shingle_features(b"a", array("q", [0, 1]), 257, False, False),
        lambda module: module.shingle_features(b"a", array("q", [0, 2]), 5, False, False),
        lambda module: module.shingle_features(b"a", array("q", [-1, 1]), 5, False, False),
        lambda module: module.shingle_features(b"a", array("q"), 5, False, False),
        lambda module: module.shingle_features(b"abc", array("q", [0, 3, 2]), 5, False, False),
        lambda module: module.shingle_features(b"abc", b"1234567", 5, False, False),
    ],
)
def test_bad_columns_are_refused(module: Any, call: Callable[[Any], object]) -> None:
    with pytest.raises(ValueError):
        call(module)


@pytest.mark.parametrize("module", [_kernel, reference])
def test_upper_halves(module: Any) -> None:
    features = array("Q", [0, 1, 1 << 32, (1 << 64) - 1, 0x0123456789ABCDEF] * 9)
    assert array("I", module.upper_halves(features)) == array("I", [0, 0, 1, (1 << 32) - 1, 0x01234567] * 9)
    assert module.upper_halves(b"") == b""
    with pytest.raises(ValueError, match="whole"):
        module.upper_halves(b"1234567")
