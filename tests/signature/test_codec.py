"""Signatures at rest: the decoder reads what was encoded, and raises SignatureError for anything else."""

from __future__ import annotations

import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.chunking import ChunkParams
from rdc.errors import ProtocolError
from rdc.signature.codec import (
    SignatureError,
    decode_records,
    decode_signature,
    encode_records,
    encode_signature,
    reference_width,
)
from rdc.signature.tree import TreeBuilder, sign
from tests.support.share import examples

PARAMS = ChunkParams(64, 256)


def sample(runs: list[tuple[int, int]]) -> bytes:
    builder = TreeBuilder(PARAMS)
    for name, count in runs:
        builder.repeat(blake3(bytes([name])).digest(), 65 + name % 100, count)
    return encode_signature(builder.finish(b"123456789"))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 255), st.integers(1, 1 << 30)), max_size=80))
def test_round_trip(runs: list[tuple[int, int]]) -> None:
    data = sample(runs)
    tree = decode_signature(data)
    assert encode_signature(tree) == data
    assert tree.traits == b"123456789"


def test_every_cut_and_every_flipped_bit_is_refused() -> None:
    data = sample([(1, 1), (2, 5), (3, 1), (2, 1)])
    for end in range(len(data)):
        with pytest.raises(SignatureError):
            decode_signature(data[:end])
    traits = range(22, 31)  # covered by nothing: hints only
    for bit in range(len(data) * 8):
        if bit // 8 in traits:
            continue
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SignatureError):
            decode_signature(bytes(damaged))


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=300))
def test_garbage_is_refused(data: bytes) -> None:
    for prefix in (b"", b"RDCS\x01"):
        with pytest.raises(SignatureError):
            decode_signature(prefix + data)


@settings(max_examples=examples(30), deadline=None)
@given(st.binary(min_size=1, max_size=4000), st.sampled_from([4, 5, 8, 32]))
def test_wire_records_round_trip(data: bytes, width: int) -> None:
    tree = sign(data, PARAMS)
    key = bytes(range(16))
    for level in tree.levels:
        rows = range(max(0, level.records - 26), level.records)
        records = decode_records(encode_records(level, rows, key, width), width)
        assert records.first == rows.start
        assert list(records.lengths) == level.lengths[rows.start : rows.stop].tolist()
        assert list(records.counts) == level.counts[rows.start : rows.stop].tolist()
        assert len(set(records.references)) == len({level.digest(i) for i in rows})


@settings(max_examples=examples(300), deadline=None)
@given(st.binary(max_size=120), st.sampled_from([4, 8, 32]))
def test_wire_garbage_is_a_protocol_error(data: bytes, width: int) -> None:
    try:
        records = decode_records(data, width)
    except ProtocolError:
        return
    assert len(records.references) == len(records.lengths) == len(records.counts) <= 26


@given(st.integers(0, 1 << 40))
def test_references_are_as_long_as_their_number_needs(size: int) -> None:
    """Two different chunks, among as many on each side, agree with probability 2^-20 at most."""
    mean = 16_384
    width = reference_width(size, mean)
    chunks = size // mean + 1
    assert 4 <= width <= 8
    assert width == 8 or chunks * chunks * 2**20 <= 1 << 8 * width
    assert width == 4 or chunks * chunks * 2**23 > 1 << 8 * (width - 1)
