"""Varints, frames and blocks: any split gives the same, every length is bounded, bombs stay small."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ProtocolError
from rdc.limits import BLOCK_CONTENT_BYTES, FRAME_BYTES, RAW_BLOCK_BYTES, ROUND_LIMIT
from rdc.protocol.wire.fields import decode_varint, encode_varint
from rdc.protocol.wire.stream import (
    HARD,
    PLAIN,
    QUICK,
    QUICKEST,
    RAW,
    BlockReader,
    BlockWriter,
    CompressionLevel,
    Frame,
    FrameReader,
    frame_head,
)
from tests.protocol.stream_blocks import NOISE, TEXT, Split, blocks_of, read_all, whole


def single_bytes(data: bytes) -> Iterator[bytes]:
    for position in range(len(data)):
        yield data[position : position + 1]


def uneven(data: bytes) -> Iterator[bytes]:
    rng = random.Random(5)
    position = 0
    while position < len(data):
        step = rng.choice([1, 2, 7, 100, 5000, 200_000])
        yield data[position : position + step]
        position += step


@given(st.integers(0, 1 << 64))
def test_varints_survive_and_end_where_they_say(value: int) -> None:
    data = encode_varint(value)
    assert decode_varint(b"x" + data + b"\x80", 1, 1 << 64, "it") == (value, 1 + len(data))
    for end in range(len(data)):
        assert decode_varint(data[:end], 0, 1 << 64, "it") is None


@pytest.mark.parametrize(
    "data", [b"\x80\x80\x80\x80\x80", b"\xff\xff\xff\x7f", b"\x81\x80\x00", b"\x80\x00", b"\x80\x80\x41"]
)
def test_varints_past_the_limit_or_with_needless_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_varint(data, 0, FRAME_BYTES, "a length")


def test_a_varint_without_end_is_not_waited_for() -> None:
    for count in range(1, 12):
        try:
            assert decode_varint(b"\x80" * count, 0, FRAME_BYTES, "a length") is None
        except ProtocolError:
            break
    assert count <= 6


FRAMES = [
    Frame(0, 0, b"", 3),
    Frame(255, ROUND_LIMIT, b"x" * 127, 1 + 1 + 5 + 127),
    Frame(7, 300, bytes(range(256)) * 4, 2 + 1 + 2 + 1024),
    Frame(8, 1, b"y" * FRAME_BYTES, 3 + 1 + 1 + FRAME_BYTES),
    Frame(9, 2, b"z", 4),
]
FRAME_STREAM = b"".join(frame_head(f.kind, f.round, len(f.payload)) + f.payload for f in FRAMES)


@pytest.mark.parametrize("split", [whole, uneven])
def test_frames_are_the_same_however_they_arrive(split: Split) -> None:
    reader = FrameReader()
    found = []
    for part in split(FRAME_STREAM):
        reader.feed(part)
        while (frame := reader.next()) is not None:
            found.append(frame)
    assert found == FRAMES
    assert len(reader) == 0


@given(st.lists(st.tuples(st.integers(0, 255), st.integers(0, 1 << 20), st.binary(max_size=40)), max_size=6))
def test_frames_arrive_byte_by_byte(items: list[tuple[int, int, bytes]]) -> None:
    reader = FrameReader()
    found = []
    for kind, round_number, payload in items:
        for byte in single_bytes(frame_head(kind, round_number, len(payload)) + payload):
            assert reader.next() is None
            reader.feed(byte)
        frame = reader.next()
        assert frame is not None
        found.append((frame.kind, frame.round, frame.payload))
    assert found == items


def test_a_frame_past_the_limit_is_refused_at_its_header() -> None:
    reader = FrameReader()
    reader.feed(encode_varint(FRAME_BYTES + 1))
    with pytest.raises(ProtocolError, match="frame length"):
        reader.next()


STREAMS = {
    "noise": NOISE,
    "text": TEXT,
    "zeros": bytes(1 << 20),
    "mixed": TEXT + NOISE + TEXT,
    "short": b"hi",
    "none": b"",
}


@pytest.mark.parametrize(
    "compression", [RAW, PLAIN, QUICK, QUICKEST, HARD, CompressionLevel(9), CompressionLevel(19)]
)
@pytest.mark.parametrize("name", STREAMS)
def test_blocks_carry_any_stream(name: str, compression: CompressionLevel) -> None:
    stream = STREAMS[name]
    wire = blocks_of(stream, compression)
    assert read_all(wire) == stream
    assert len(wire) <= len(stream) * 1.001 + 32
    if compression.level and name in {"text", "zeros"}:
        assert len(wire) < len(stream) / 10


@pytest.mark.parametrize("split", [single_bytes, uneven])
def test_blocks_are_the_same_however_they_arrive(split: Split) -> None:
    stream = TEXT[:150_000] + NOISE[:100_000]
    assert read_all(blocks_of(stream, PLAIN), split) == stream
    assert blocks_of(stream, PLAIN, uneven) == blocks_of(stream, PLAIN)


def test_the_window_goes_on_from_block_to_block() -> None:
    writer = BlockWriter(PLAIN)
    costs = []
    for _ in range(2):
        writer.write(NOISE[:100_000])
        writer.flush()
        costs.append(len(writer.take()))
    assert costs[0] >= 100_000
    assert costs[1] < 100


def test_frames_end_where_they_are_to() -> None:
    """Content that comes again is found within a frame, not in the next."""
    writer, frame, noise = BlockWriter(CompressionLevel(3, frame_log=19)), 1 << 19, NOISE[: 1 << 17]
    costs = []
    for _ in range(3 * frame // len(noise)):
        writer.write(noise)
        writer.flush()
        costs.append(len(writer.take()))
    whole = [cost > len(noise) for cost in costs]
    assert whole == [True, False, False, False] * 3


def test_raw_pieces_between_compressed_ones_leave_both_windows_equal() -> None:
    rng = random.Random(7)
    writer, reader = BlockWriter(PLAIN), BlockReader()
    for turn in range(400):
        if turn % 3 == 0:
            writer.compression = rng.choice(
                [RAW, PLAIN, PLAIN, PLAIN, CompressionLevel(1), CompressionLevel(3, frame_log=17)]
            )
        start = rng.randrange(len(TEXT))
        part = TEXT[start : start + rng.choice([1, 20, 63, 64, 500, 100_000])]
        writer.write(part)
        writer.flush()
        reader.feed(writer.take())
        found = b""
        while (piece := reader.next()) is not None:
            found += piece
        assert found == part


def test_pending_counts_what_has_not_left() -> None:
    writer = BlockWriter(RAW)
    writer.write(b"x" * 1000)
    assert len(writer) == 1000
    assert writer.take() == b""
    writer.flush()
    assert len(writer) == 1002
    writer.take()
    assert len(writer) == 0


# Content


def read_blocks(wire: bytes) -> tuple[bytes, list[int]]:
    """The frame stream, and the lengths of its blocks."""
    reader, parts = BlockReader(), []
    reader.feed(wire)
    while (piece := reader.next()) is not None:
        parts.append(bytes(piece))
    assert len(reader) == 0
    return b"".join(parts), [len(part) for part in parts]


CONTENT_BYTES = 512 << 10


def test_content_goes_out_as_it_is() -> None:
    """Raw, and the very object, between its head and what follows."""
    writer = BlockWriter(RAW)
    content = NOISE[: 200 << 10]
    writer.write(b"before")
    writer.write_content(b"head", content)
    writer.write(b"after")
    writer.flush()
    parts = writer.take_parts()
    assert any(isinstance(part, memoryview) and part.obj is content for part in parts)
    stream, lengths = read_blocks(b"".join(parts))
    assert stream == b"beforehead" + content + b"after"
    assert lengths == [6, 4 + len(content), 5]


def test_content_that_does_not_shrink_is_seldom_tried() -> None:
    rng = random.Random(3)
    writer = BlockWriter(PLAIN)
    sent, lengths = bytearray(), list[int]()
    for _ in range(64):
        content = rng.randbytes(CONTENT_BYTES)
        writer.write_content(b"head", content)
        sent += b"head" + content
    writer.flush()
    stream, lengths = read_blocks(writer.take())
    assert stream == sent
    tried = sum(length <= BLOCK_CONTENT_BYTES for length in lengths)
    assert 3 <= tried <= 12  # 32 MiB at 8 MiB between two trials, after shorter pauses at first


def test_content_that_shrinks_is_compressed_again_after_some_that_did_not() -> None:
    rng = random.Random(4)
    writer, reader = BlockWriter(PLAIN), BlockReader()
    costs = []
    for turn in range(120):
        noise = turn % 40 < 8
        content = rng.randbytes(CONTENT_BYTES) if noise else TEXT[:CONTENT_BYTES]
        writer.write(b"small")
        writer.write_content(b"head", content)
        writer.flush()
        wire = writer.take()
        costs.append(len(wire))
        reader.feed(wire)
        found = b""
        while (piece := reader.next()) is not None:
            found += piece
        assert found == b"smallhead" + content
    texts = [cost for turn, cost in enumerate(costs) if turn % 40 >= 8]
    # After 4 MiB of noise at most 8 MiB of text go raw.
    assert sum(cost > CONTENT_BYTES // 2 for cost in texts) <= 3 * 17
    assert sum(cost < CONTENT_BYTES // 4 for cost in texts) >= 40


@given(
    st.lists(
        st.tuples(
            st.sampled_from([RAW, CompressionLevel(1), PLAIN, CompressionLevel(3, frame_log=18)]),
            st.booleans(),
            st.integers(0, 700_000),
            st.booleans(),
        ),
        max_size=8,
    )
)
def test_any_content_at_any_level_arrives(steps: list[tuple[CompressionLevel, bool, int, bool]]) -> None:
    data = TEXT + NOISE
    writer = BlockWriter(RAW)
    sent = b""
    for compression, whole_frame, length, from_the_end in steps:
        writer.compression = compression
        content = data[-length:] if from_the_end and length else data[:length]
        if whole_frame:
            writer.write_content(b"head", content)
            sent += b"head"
        else:
            writer.write(content)
        sent += content
    writer.flush()
    assert read_blocks(writer.take())[0] == sent


def test_the_largest_frame_fits_a_raw_block() -> None:
    writer = BlockWriter(RAW)
    head = frame_head(255, ROUND_LIMIT, FRAME_BYTES)
    writer.write_content(head, bytes(FRAME_BYTES))
    stream, lengths = read_blocks(writer.take())
    assert len(lengths) == 1
    assert len(stream) <= RAW_BLOCK_BYTES
