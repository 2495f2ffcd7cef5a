"""Frames: what is encoded comes out again, and nothing else does."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.lean.zstd import zstandard
from rdc.store.frames import (
    FRAME_BYTES,
    PREFIX_BYTES,
    FrameError,
    FrameKind,
    StoredFrame,
    decode,
    encode,
)

NOISE = random.Random(1).randbytes(FRAME_BYTES)


def decoded(frame: StoredFrame, size: int, prefix: bytes) -> bytes:
    return decode(frame, size, prefix if frame.kind is FrameKind.DELTA else b"")


@given(st.binary(min_size=1, max_size=5000), st.binary(max_size=5000))
def test_a_frame_comes_out_as_it_went_in(content: bytes, prefix: bytes) -> None:
    frame = encode(content, prefix)
    assert decoded(frame, len(content), prefix) == content
    assert len(frame.data) <= len(content)


def test_a_near_copy_becomes_a_delta() -> None:
    content = NOISE[:500_000] + b"changed" + NOISE[500_000:900_000]
    frame = encode(content, NOISE)
    assert frame.kind is FrameKind.DELTA
    assert len(frame.data) < 2000
    assert decode(frame, len(content), NOISE) == content


def test_the_tables_hold_the_longest_prefix() -> None:
    """With the usual tables of level 3, a match 4 MiB back is mostly not found."""
    prefix = random.Random(2).randbytes(PREFIX_BYTES)
    content = b"".join(prefix[at : at + 4000] + b"new" for at in range(0, PREFIX_BYTES, 16_400))[:FRAME_BYTES]
    frame = encode(content, prefix)
    assert frame.kind is FrameKind.DELTA
    assert len(frame.data) < len(content) // 20


def test_a_delta_that_hardly_pays_is_not_taken() -> None:
    content = NOISE[:90_000] + bytes(10_000)
    assert encode(content, NOISE[80_000:90_000]).kind is not FrameKind.DELTA


def test_noise_is_stored_and_text_is_packed() -> None:
    assert encode(NOISE).kind is FrameKind.STORED
    assert encode(b"text " * 10_000).kind is FrameKind.PACKED


def test_noise_with_a_compressible_part_is_packed() -> None:
    """One of the samples shows it."""
    assert encode(NOISE[: FRAME_BYTES // 2] + bytes(FRAME_BYTES // 2)).kind is FrameKind.PACKED


@given(st.binary(min_size=1, max_size=2000), st.integers(0, 1 << 20))
def test_a_flipped_bit_never_gives_more_bytes(content: bytes, bit: int) -> None:
    frame = encode(content)
    data = bytearray(frame.data)
    data[bit // 8 % len(data)] ^= 1 << bit % 8
    try:
        found = decode(StoredFrame(frame.kind, bytes(data)), len(content))
    except FrameError:
        return
    assert len(found) == len(content)


@pytest.mark.parametrize(
    ("frame", "size", "prefix"),
    [
        (StoredFrame(FrameKind.STORED, b"four"), 5, b""),
        (StoredFrame(FrameKind.PACKED, b"no zstd"), 5, b""),
        (StoredFrame(FrameKind.PACKED, b""), 5, b""),
        (StoredFrame(FrameKind.DELTA, zstandard.ZstdCompressor().compress(b"bytes")), 5, b""),
        (StoredFrame(FrameKind.STORED, b""), 0, b""),
        (StoredFrame(FrameKind.STORED, NOISE), FRAME_BYTES + 1, b""),
        (StoredFrame(FrameKind.DELTA, b"x"), 5, bytes(PREFIX_BYTES + 1)),
    ],
    ids=["short", "foreign", "empty", "no bases", "nothing", "too large", "large prefix"],
)
def test_other_bytes_are_refused(frame: StoredFrame, size: int, prefix: bytes) -> None:
    with pytest.raises(FrameError):
        decode(frame, size, prefix)


@pytest.mark.parametrize("said", [True, False], ids=["size in the frame", "none"])
def test_a_bomb_is_refused_before_it_is_decoded(said: bool) -> None:
    """A gigabyte in 30 KB: the frame says so, or says nothing of its size, and either is refused."""
    packer = zstandard.ZstdCompressor(write_content_size=said).compressobj(size=1 << 30 if said else -1)
    data = b"".join(packer.compress(bytes(1 << 20)) for _ in range(1 << 10)) + packer.flush()
    assert len(data) < 200_000
    with pytest.raises(FrameError, match="expected 1048576 bytes"):
        decode(StoredFrame(FrameKind.PACKED, data), 1 << 20)
