"""Bulk signatures of short streams equal those of each stream signed singly."""

from __future__ import annotations

import random
from array import array
from itertools import accumulate
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.chunking import ChunkParams
from rdc.kernel import _kernel
from rdc.kernel import blake3_many as naming
from rdc.signature import codec
from rdc.signature.codec import ShortSignatures, decode_short, encode_short, sign_short
from rdc.signature.tree import sign
from tests.reference import kernel as pure
from tests.support.share import examples

SMALLEST = ChunkParams(64, 256)
NOISE = random.Random(5).randbytes(60_000)
TEXT = b" ".join(b"%x" % (n * n) for n in range(6_000))
PARTS = st.tuples(st.sampled_from([NOISE, TEXT, bytes(60_000)]), st.integers(0, 999), st.integers(0, 9_000))
STREAMS = st.lists(st.lists(PARTS, max_size=3), max_size=6)


def made(streams: list[list[tuple[bytes, int, int]]]) -> list[bytes]:
    return [b"".join(data[start : start + size] for data, start, size in parts) for parts in streams]


def signed(streams: list[bytes], params: ChunkParams) -> ShortSignatures:
    return sign_short(b"".join(streams), array("Q", map(len, streams)), params)


@settings(deadline=None, max_examples=examples(60))
@given(STREAMS, st.sampled_from([SMALLEST, ChunkParams.for_mean(4096)]))
def test_each_row_is_the_signature_of_its_stream(
    streams: list[list[tuple[bytes, int, int]]], params: ChunkParams
) -> None:
    contents = made(streams)
    found = signed(contents, params)
    firsts = list(accumulate(found.counts, initial=0))
    assert firsts[-1] == len(found.lengths) == len(found.digests) // 32
    encoded = encode_short(found)
    for row, content in enumerate(contents):
        alone = sign(content, params)
        assert found.root_of(row) == alone.root
        assert found.traits_of(row) == alone.traits
        assert found.counts[row] == sum(alone.levels[0].counts)
        assert encoded[row] == codec.encode_signature(alone)
        assert codec.encode_signature(found.tree(row, firsts[row])) == encoded[row]
    assert decode_short(encoded, params) == (list(range(len(contents))), found)
    odd = range(1, len(contents), 2)
    assert found.chosen(odd) == signed([contents[row] for row in odd], params)


def test_roots_of_trees_of_several_heights() -> None:
    """The levels of all streams are made together; each stream has as many as it needs."""
    drawn = random.Random(3)
    contents = [drawn.randbytes(size) for size in (1_600_000, 0, 100, 20_000, 300_000, 3_000, 60_000)]
    contents += [contents[0][:200_000] + bytes(200_000) + contents[0][200_000:], bytes(300_000)]
    trees = [sign(content, SMALLEST) for content in contents]
    assert {tree.height for tree in trees} == {0, 1, 2, 3}
    found = signed(contents, SMALLEST)
    assert [found.root_of(row) for row in range(len(contents))] == [tree.root for tree in trees]


@given(st.lists(PARTS, min_size=1, max_size=5), st.integers(0, 1 << 30), st.integers(0, 255))
@settings(deadline=None, max_examples=examples(60))
def test_damage_costs_the_row_that_has_it(parts: list[tuple[bytes, int, int]], at: int, byte: int) -> None:
    contents = made([[one] for one in parts])
    encoded = encode_short(signed(contents, SMALLEST))
    row = at % len(encoded)
    damaged = bytearray(encoded[row])
    damaged[at % len(damaged)] = byte
    for value in (bytes(damaged), encoded[row][: at % len(damaged)], b""):
        rows, found = decode_short([*encoded[:row], value, *encoded[row + 1 :]], SMALLEST)
        others = [other for other in range(len(encoded)) if other != row]
        assert set(rows) >= set(others)
        for number, other in enumerate(rows):
            # Traits are not protected by the root: they are hints, used only for searching.
            assert found.root_of(number) == sign(contents[other], SMALLEST).root


def test_other_parameters_are_others() -> None:
    assert decode_short(encode_short(signed([NOISE], SMALLEST)), ChunkParams(64, 257))[0] == []


@settings(deadline=None, max_examples=15)
@given(st.lists(st.tuples(st.sampled_from([NOISE, bytes(9_000)]), st.integers(0, 99), st.integers(0, 700))))
def test_the_kernel_cuts_as_its_definition(parts: list[tuple[bytes, int, int]]) -> None:
    contents = made([[one] for one in parts])
    sizes = array("Q", map(len, contents)).tobytes()
    for plain in (False, True):
        expected = pure.cut_many(b"".join(contents), sizes, 64, 256, plain)
        assert _kernel.cut_many(b"".join(contents), sizes, 64, 256, plain) == expected
        assert not (plain and any(expected[2]))
    assert expected[:2] == pure.cut_many(b"".join(contents), sizes, 64, 256)[:2]


@pytest.mark.parametrize("module", [_kernel, pure], ids=["C", "pure"])
def test_columns_that_do_not_fit(module: Any) -> None:
    for sizes in ([3], [5], [2, 3], [1 << 63, 1 << 63, 4], []):
        with pytest.raises(ValueError, match="add up"):
            module.cut_many(b"four", array("Q", sizes), 64, 256)
    with pytest.raises(ValueError, match="8 bytes each"):
        module.cut_many(b"four", b"x" * 9, 64, 256)
    with pytest.raises(ValueError, match="chunk sizes"):
        module.cut_many(b"four", array("Q", [4]), 63, 256)
    assert module.cut_many(b"", b"", 64, 256) == (b"", b"", b"")


@settings(deadline=None)
@given(st.lists(st.integers(0, 5_000), max_size=40), st.none() | st.binary(min_size=32, max_size=32))
def test_names_of_parts(lengths: list[int], key: bytes | None) -> None:
    sizes, data = array("Q", lengths), (NOISE * 4)[: sum(lengths)]
    starts = list(accumulate(lengths, initial=0))
    parts = [data[start : start + size] for start, size in zip(starts, lengths, strict=False)]
    named = [blake3(part) if key is None else blake3(part, key=key) for part in parts]
    expected = b"".join([one.digest() for one in named])
    for variant in (*_kernel.naming_variants(), None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(naming, "_variant", variant)
            assert naming.name_parts(data, sizes, key) == expected
            with pytest.raises(ValueError, match="add up"):
                naming.name_parts(data + b"x", sizes, key)
    for variant in _kernel.naming_variants():
        with pytest.raises(ValueError, match="key of 32"):
            _kernel.name_parts(data, sizes, b"short", variant)
