"""Buffers of the wrong items and numbers out of range: an error says what is expected."""

from __future__ import annotations

import ctypes
import importlib
import math
import mmap
import sys
from array import array
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rdc
from rdc import similarity
from rdc.similarity import lsh
from tests.support.share import examples

try:
    numpy: Any = importlib.import_module("numpy")
except ImportError:
    numpy = None  # the tests do without it

FEATURES = [3, 5, 8, 3, 5, 9, 1 << 63]
OFFSETS = [0, 3, 7]
WEIGHTS = [1.0, 2.0, 0.5, 1.0, 2.0, 3.0, 1.0]
TEXT = b"one text another text"
TEXT_OFFSETS = [0, 8, 21]

OTHER_ORDER = "__ctype_be__" if sys.byteorder == "little" else "__ctype_le__"
OTHER = ">" if sys.byteorder == "little" else "<"
OWN = "<" if sys.byteorder == "little" else ">"


def c_array(kind: Any, values: list[Any]) -> Any:
    """A buffer of ctypes, which marks its byte order."""
    return (kind * len(values))(*values)


def unsigned(values: list[int]) -> list[Any]:
    """Buffers of these numbers as 64-bit unsigned ones."""
    plain = array("Q", values)
    mapped = mmap.mmap(-1, 8 * len(values))
    mapped[:] = plain.tobytes()
    return [
        plain,
        c_array(ctypes.c_uint64, values),
        memoryview(plain),
        memoryview(plain).cast("B"),
        memoryview(plain).cast("B").cast("Q", (1, len(values))),
        plain.tobytes(),
        bytearray(plain.tobytes()),
        mapped,
        pyarrow.py_buffer(plain.tobytes()),
        pyarrow.array(values, pyarrow.uint64()).buffers()[1],
        *([] if numpy is None else [numpy.array(values, "u8"), numpy.array(values, f"{OWN}u8")]),
    ]


def signed(values: list[int]) -> list[Any]:
    plain = array("q", values)
    more = [] if numpy is None else [numpy.array(values, "i8")]
    return [plain, c_array(ctypes.c_int64, values), plain.tobytes(), *more]


def doubles(values: list[float]) -> list[Any]:
    plain = array("d", values)
    more = [] if numpy is None else [numpy.array(values, "f8")]
    return [plain, c_array(ctypes.c_double, values), plain.tobytes(), *more]


def wrong(values: list[int] | list[float], own: str) -> list[Any]:
    """Buffers of other items than those of the code `own`, and what is no buffer at all."""
    small = [int(value) for value in values if 0 <= value < 100] or [1]
    found: list[Any] = [array(code, small) for code in "bBhHiIfqQd" if code != own]
    kinds = (ctypes.c_uint64, ctypes.c_int64, ctypes.c_double, ctypes.c_uint32)
    found += [c_array(getattr(kind, OTHER_ORDER), small) for kind in kinds]
    found += [c_array(ctypes.c_bool, small), memoryview(array("B", small))]
    found += [memoryview(array(own, [*small, *small]))[::2], "text", None, 5, small, object()]
    if numpy is not None:
        codes = {"Q": "u8", "q": "i8", "d": "f8"}
        others = {"u8", "i8", "f8", "u4", "i4", "f4", "u2", "u1", "i1", "f2", "c8", "?"} - {codes[own]}
        found += [numpy.array(small, kind) for kind in others]
        found += [numpy.array(small, f"{OTHER}{kind}") for kind in ("u8", "i8", "f8", "u4")]
        found += [numpy.array([small, small], codes[own]).T, numpy.array(small * 2, codes[own])[::2]]
    return found


COLUMNS: dict[str, tuple[Callable[..., object], list[list[Any]], list[tuple[list[Any], str]]]] = {
    name: (
        function,
        [unsigned(FEATURES), signed(OFFSETS), *([doubles(WEIGHTS)] if weighted else [])],
        [(FEATURES, "Q"), (OFFSETS, "q"), *([(WEIGHTS, "d")] if weighted else [])],
    )
    for name, function, weighted in (
        ("minhash", similarity.minhash, False),
        ("one_permutation", similarity.one_permutation, False),
        ("bottom_k", similarity.bottom_k, False),
        ("weighted_minhash", similarity.weighted_minhash, True),
    )
}


@pytest.mark.parametrize("name", COLUMNS)
def test_equal_numbers_in_any_right_buffer_give_equal_samples(name: str) -> None:
    function, rights, _ = COLUMNS[name]
    expected = function(*(right[0] for right in rights))
    for at, right in enumerate(rights):
        for buffer in right:
            given_ = [each[0] for each in rights]
            given_[at] = buffer
            assert function(*given_) == expected


@pytest.mark.parametrize("name", COLUMNS)
def test_other_items_are_refused(name: str) -> None:
    function, rights, kinds = COLUMNS[name]
    for at, (values, own) in enumerate(kinds):
        for buffer in wrong(values, own):
            given_ = [each[0] for each in rights]
            given_[at] = buffer
            with pytest.raises(TypeError, match=rf"{name}\.(features|offsets|weights): expected 64-bit"):
                function(*given_)


@pytest.mark.parametrize(
    "function",
    [similarity.shingles, similarity.url_bigrams, similarity.html_text],
    ids=lambda one: one.__name__,
)
def test_columns_of_texts(function: Callable[..., object]) -> None:
    texts = [
        TEXT,
        bytearray(TEXT),
        memoryview(TEXT),
        pyarrow.py_buffer(TEXT),
        c_array(ctypes.c_uint8, [*TEXT]),
    ]
    texts += [] if numpy is None else [numpy.frombuffer(TEXT, "u1")]
    expected = function(TEXT, array("q", TEXT_OFFSETS))
    for text in (*texts, array("B", TEXT)):
        for offsets in signed(TEXT_OFFSETS):
            assert function(text, offsets) == expected
    for text in ("text", None, array("I", [1]), memoryview(TEXT)[::2], array("u", "text")):
        with pytest.raises(TypeError, match=rf"{function.__name__}\.text: expected bytes"):
            function(text, array("q", TEXT_OFFSETS))
    for offsets in wrong(TEXT_OFFSETS, "q"):
        with pytest.raises(TypeError, match=rf"{function.__name__}\.offsets: expected 64-bit signed"):
            function(TEXT, offsets)


def test_hashes_of_32_bits_are_no_sets_of_64_bits() -> None:
    """Two sets with 499 of 501 hashes in common: their bytes as 64-bit numbers have none."""
    hashes = [at * 2_654_435_761 % (1 << 32) for at in range(501)]
    column = hashes[:500] + hashes[1:]
    found = similarity.one_permutation(array("Q", column), array("q", [0, 500, 1000]))
    assert found.estimate(0, 1).jaccard > 0.95
    with pytest.raises(TypeError, match=r"64-bit unsigned numbers.*'I' of 4 bytes"):
        similarity.one_permutation(array("I", column), array("q", [0, 250, 500]))


def test_columns_of_keys() -> None:
    keys = [1, 2, 3, 1, 2, 9]
    for buffer in (array("Q", keys), memoryview(array("Q", keys))):
        assert list(similarity.agreeing_pairs(buffer, 3, 2)) == [(0, 1)]  # type: ignore[arg-type] # this is the question
    for buffer in (*wrong(keys, "Q"), b"123456"):
        with pytest.raises((TypeError, ValueError), match=r"agreeing_pairs\.keys: expected"):
            list(similarity.agreeing_pairs(buffer, 3, 2))
    with pytest.raises(ValueError, match="65536 tables"):
        similarity.agreeing_pairs(array("Q", range(64)), 64, 32)


@pytest.mark.parametrize("function", [rdc.cuts, rdc.sign], ids=lambda one: one.__name__)
def test_content_is_without_gaps(function: Callable[..., object]) -> None:
    params = rdc.ChunkParams.for_mean(4096)
    gaps = memoryview(bytes(100))[::2]
    with pytest.raises(TypeError, match="without gaps"):
        function(gaps, params)
    assert function(gaps.tobytes(), params) is not None


SAMPLES = similarity.one_permutation(array("Q", range(999)), array("q", [0, 500, 999]), 64)
PACKED = similarity.bbit_pack(SAMPLES, 1)
SETS = array("Q", FEATURES), array("q", OFFSETS)
TRAITS = rdc.Traits(bytes(9))
PLAN = lsh.Plan(2, 2)

WHOLE: dict[str, tuple[Callable[[Any], object], int, int]] = {
    "minhash k": (lambda k: similarity.minhash(*SETS, k), 1, 65_536),
    "one_permutation k": (lambda k: similarity.one_permutation(*SETS, k), 1, 65_536),
    "bottom_k k": (lambda k: similarity.bottom_k(*SETS, k), 1, 65_536),
    "weighted_minhash k": (lambda k: similarity.weighted_minhash(*SETS, array("d", WEIGHTS), k), 1, 65_536),
    "Samples k": (lambda k: similarity.Samples(bytes(4 * 65_536), k), 1, 65_536),
    "BottomRanks k": (lambda k: similarity.BottomRanks(b"", bytes(8), k), 1, 65_536),
    "bbit_pack bits": (lambda bits: similarity.bbit_pack(SAMPLES, bits), 1, 16),
    "PackedSamples bits": (lambda bits: similarity.PackedSamples(b"", 0, 64, bits), 1, 16),
    "PackedSamples k": (lambda k: similarity.PackedSamples(b"", 0, k, 1), 1, 65_536),
    "bbit_constants bits": (lambda bits: similarity.bbit_constants(0, 0, bits), 1, 64),
    "bbit_estimate matches": (lambda count: similarity.bbit_estimate(count, 10, 1), 0, 10),
    "bbit_variance k": (lambda k: similarity.bbit_variance(0.5, 0, 0, 1, k), 1, (1 << 63) - 1),
    "storage_factor bits": (lambda bits: similarity.storage_factor(0.5, 0, 0, bits), 1, 64),
    "storage_factor wide": (lambda wide: similarity.storage_factor(0.5, 0, 0, 1, wide), 1, 64),
    "xor_pairs_estimate matches": (lambda count: similarity.xor_pairs_estimate(count, 10), 0, 10),
    "xor_pairs_variance pairs": (lambda n: similarity.xor_pairs_variance(0.9, 0, 0, n), 1, (1 << 63) - 1),
    "acceptance needed": (lambda count: similarity.acceptance(0.5, 6, 14, count), 1, 6),
    "acceptance size": (lambda size: similarity.acceptance(0.5, 6, size, 2), 1, 65_536),
    "Banding bands": (lambda bands: similarity.Banding(bands, 2), 1, 65_536),
    "Banding rows": (lambda rows: similarity.Banding(2, rows), 1, 65_536),
    "supershingles groups": (lambda groups: similarity.supershingles(SAMPLES, groups, 1), 1, 64),
    "supershingles size": (lambda size: similarity.supershingles(SAMPLES, 2, size), 1, 32),
    "supershingles bits": (lambda bits: similarity.supershingles(SAMPLES, 2, 2, bits), 1, 64),
    "quantise_density bits": (lambda bits: similarity.quantise_density(0.5, bits), 1, 16),
    "density_of code": (lambda code: similarity.density_of(code, 8), 0, 255),
    "hamming_estimate differing": (lambda n: similarity.hamming_estimate(n, 10, 0.1, 0.1), 0, 10),
    "hamming_variance k": (lambda k: similarity.hamming_variance(0.5, 0.1, 0.1, k), 1, (1 << 63) - 1),
    "Plan functions": (lambda count: lsh.Plan(count, 2), 1, (1 << 63) - 1),
    "Plan tables": (lambda count: lsh.Plan(2, count), 1, (1 << 63) - 1),
    "hamming dimension": (lambda count: lsh.hamming(count, PLAN), 1, (1 << 32) - 1),
    "shingles k": (lambda k: similarity.shingles(TEXT, array("q", TEXT_OFFSETS), k), 1, 256),
    "agreeing_pairs needed": (lambda n: similarity.agreeing_pairs(array("Q", [1, 2, 3]), 3, n), 1, 3),
    "Accidents.estimate": (lambda count: similarity.Accidents(0.1, 0.1).estimate(count, 9), 0, 9),
    "query limit": (lambda limit: rdc.SimilarityIndex().query(TRAITS, limit), 1, 1024),
    "query min_matches": (lambda least: rdc.SimilarityIndex().query(TRAITS, 8, least), 1, 12),
    "pairs min_matches": (lambda least: rdc.SimilarityIndex().pairs(least), 2, 12),
}
"""A call with one whole number, and its range."""


class Index:
    """A whole number that is no int, as numpy has them."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_have_a_range(name: str) -> None:
    call, least, most = WHOLE[name]
    record = name.split(maxsplit=1)[0] in {"Samples", "BottomRanks", "PackedSamples", "Banding", "Plan"}
    for good in (least, most, *(() if record else (Index(least),))):
        call(good)
    for bad in (least - 1, most + 1, -1 << 70, 1 << 70):
        with pytest.raises(ValueError, match=rf"from {least} to {most}, found {bad}"):
            call(bad)
    for other in (least + 0.5, float(most), math.nan, "1", None, True, [1]):
        with pytest.raises(TypeError, match="expected a whole number"):
            call(other)


SHARES: dict[str, tuple[Callable[[Any], object], bool]] = {
    "bbit_constants r1": (lambda r: similarity.bbit_constants(r, 0, 1), True),
    "bbit_constants r2": (lambda r: similarity.bbit_constants(0, r, 1), True),
    "bbit_estimate r1": (lambda r: similarity.bbit_estimate(1, 2, 1, r, 0), True),
    "bbit_variance jaccard": (lambda j: similarity.bbit_variance(j, 0, 0, 1, 9), False),
    "storage_factor jaccard": (lambda j: similarity.storage_factor(j, 0, 0, 1), True),
    "xor_pairs_variance jaccard": (lambda j: similarity.xor_pairs_variance(j, 0, 0, 9), False),
    "acceptance p": (lambda p: similarity.acceptance(p, 6, 14, 2), False),
    "Banding.probability": (lambda j: similarity.Banding(2, 2).probability(j), False),
    "quantise_density": (similarity.quantise_density, True),
    "hamming_probability jaccard": (lambda j: similarity.hamming_probability(j, 0.1, 0.1), False),
    "hamming_probability r1": (lambda r: similarity.hamming_probability(0.5, r, 0.1), False),
    "hamming_variance jaccard": (lambda j: similarity.hamming_variance(j, 0.1, 0.1, 9), False),
    "Accidents": (lambda c: similarity.Accidents(c, 0.5), True),
    "Accidents.agreement": (lambda j: similarity.Accidents(0.5, 0.5).agreement(j), False),
}
"""A call with one share, and whether it is below 1."""


@pytest.mark.parametrize("name", SHARES)
def test_shares_have_a_range(name: str) -> None:
    call, below = SHARES[name]
    for good in (0, 0.0, 0.25, Fraction(1, 2), 0.999, *(() if below else (1, 1.0))):
        found = call(good)
        assert not isinstance(found, float) or found >= 0
    upper = "below 1" if below else "1"
    bads = (-0.1, -1, 1.1, 2, 1 << 2_000, math.nan, math.inf, -math.inf, *((1, 1.0) if below else ()))
    for bad in bads:
        with pytest.raises(ValueError, match=rf"from 0 to {upper}, found"):
            call(bad)
    for other in ("0.5", b"1", None, True, [0.5], 1j):
        with pytest.raises(TypeError, match="expected a number"):
            call(other)


@pytest.mark.parametrize("family", [lsh.hamming, lsh.cosine], ids=["hamming", "cosine"])
def test_families_are_bounded(family: Callable[..., lsh.Family]) -> None:
    with pytest.raises(ValueError, match="from 1 to 16777216"):
        family(2, lsh.Plan(1 << 13, 1 << 12))
    for seed in (0, -1, 1 << 70):
        assert family(2, PLAN, seed).keys([0, 1]) == family(2, PLAN, seed & (1 << 64) - 1).keys([0, 1])
    with pytest.raises(TypeError, match="seed: expected a whole number"):
        family(2, PLAN, 0.5)
    most = 2.0 if family is lsh.hamming else math.pi
    assert family(2, PLAN).agreement(0) == 1.0
    assert family(2, PLAN).agreement(most) == pytest.approx(0, abs=1e-9)
    for bad in (-0.1, most + 0.1, math.nan):
        with pytest.raises(ValueError, match="from 0 to"):
            family(2, PLAN).agreement(bad)


def test_families_of_numbers() -> None:
    with pytest.raises(ValueError, match="random numbers"):
        lsh.cosine(1 << 20, lsh.Plan(1 << 5, 1 << 4))
    makers: list[Callable[[float], lsh.Family]] = [
        lambda width: lsh.l1(2, width, PLAN),
        lambda width: lsh.l2(2, width, PLAN),
    ]
    for make in makers:
        for bad in (0, -1, math.inf, math.nan):
            with pytest.raises(ValueError, match=r"expected a number"):
                make(bad)
        assert make(1e-300).agreement(0) == 1.0
    with pytest.raises(ValueError, match=r"too near|0 < p2 < p1 < 1"):
        lsh.plan(1 << 62, 0.5, 0.499)
    for p1, p2 in ((0.5, 0.5), (0.5, 0.9), (1.0, 0.5), (0.5, 0.0)):
        with pytest.raises(ValueError, match="0 < p2 < p1 < 1"):
            lsh.plan(100, p1, p2)


def test_columns_are_whole() -> None:
    for make in (
        lambda: similarity.Samples(b"12345", 1),
        lambda: similarity.BottomRanks(b"1", bytes(8), 1),
        lambda: similarity.BottomRanks(b"", b"", 1),
        lambda: similarity.TextColumn(b"", b""),
        lambda: similarity.FeatureColumn(b"1", bytes(8)),
        lambda: similarity.FeatureColumn(b"", b"123"),
    ):
        with pytest.raises(ValueError, match="whole items of"):
            make()
    for other in (lambda: similarity.TextColumn("", bytes(8)), lambda: similarity.Samples(array("I"), 1)):  # type: ignore[arg-type] # this is the question
        with pytest.raises(TypeError, match="expected bytes"):
            other()
    with pytest.raises(TypeError, match=r"texts\[1\]: expected str \| bytes, found int"):
        similarity.TextColumn.join(["a", 5])  # type: ignore[list-item] # this is the question


ODD: list[object] = [
    -1,
    0,
    1,
    3,
    1 << 16,
    1 << 31,
    1 << 63,
    1 << 64,
    0.5,
    1.5,
    math.nan,
    math.inf,
    None,
    "x",
    True,
    b"",
    [],
]


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(sorted({*WHOLE, *SHARES})), st.sampled_from(ODD))
def test_no_other_error(name: str, value: object) -> None:
    call = WHOLE[name][0] if name in WHOLE else SHARES[name][0]
    try:
        call(value)
    except (TypeError, ValueError) as error:
        assert "expected" in str(error)


def test_clusters_of_numbers_only() -> None:
    pairs: list[Any] = [(-1, 1), (1, 1 << 64), (0.5, 1), ("a", "b")]
    for pair in pairs:
        with pytest.raises((TypeError, ValueError), match="expected"):
            similarity.clusters([pair])
    assert len(similarity.clusters([(1, (1 << 64) - 1)])) == 1
