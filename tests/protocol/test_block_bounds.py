"""Blocks past a limit are refused before they cost memory, and garbage is a block or refused."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ProtocolError
from rdc.limits import BLOCK_BYTES, BLOCK_CONTENT_BYTES, RAW_BLOCK_BYTES, WINDOW_LOG
from rdc.protocol.wire.fields import encode_varint
from rdc.protocol.wire.stream import PLAIN, BlockReader
from tests.protocol.stream_blocks import NOISE, TEXT, blocks_of, read_all


def block(body: bytes, raw: bool) -> bytes:
    return encode_varint(len(body) << 1 | raw) + body


def bomb(size: int) -> bytes:
    """Zeros in RLE blocks: four bytes for 128 KiB."""
    head = bytes.fromhex("28b52ffd0068")
    return head + b"".join(
        ((BLOCK_CONTENT_BYTES << 3) | 2).to_bytes(3, "little") + b"\0"
        for _ in range(size // BLOCK_CONTENT_BYTES)
    )


def wide_frame() -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=WINDOW_LOG + 1)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return stream.compress(NOISE[:1000]) + stream.flush()


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        (b"\0", "empty block"),
        (encode_varint((RAW_BLOCK_BYTES + 1) << 1 | 1), "block header"),
        (encode_varint((BLOCK_BYTES + 1) << 1), "compressed block of"),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "block header"),
        (block(b"no zstd here", False), "cannot decode"),
        (block(bomb(2 * BLOCK_CONTENT_BYTES), False), "decompresses to more than"),
        (block(bomb(BLOCK_CONTENT_BYTES) + b"\x08\0\0x", False), "decompresses to more than"),
        (block(wide_frame(), False), "cannot decode"),
    ],
)
def test_a_block_past_a_limit_is_refused(wire: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        read_all(wire)


def test_a_piece_of_exactly_the_limit_passes() -> None:
    assert read_all(block(bomb(BLOCK_CONTENT_BYTES), False)) == bytes(BLOCK_CONTENT_BYTES)


def test_a_bomb_costs_no_memory() -> None:
    """4 GiB of zeros in one block of 128 KiB, twenty times, in a process whose peak can be read."""
    body = bomb(4 << 30)[:BLOCK_BYTES]
    code = """
import resource, sys
from rdc.errors import ProtocolError
from rdc.protocol.wire.stream import BlockReader
wire = sys.stdin.buffer.read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
refused = 0
for _ in range(20):
    reader = BlockReader()
    reader.feed(wire)
    try:
        reader.next()
    except ProtocolError:
        refused += 1
if refused == 20:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], input=block(body, False), capture_output=True, check=True
    )
    unit = 1024 if sys.platform == "linux" else 1
    # Output buffers of 128 KiB, the decoder's window of 16 MiB and its tables, once and not twenty times.
    assert int(ran.stdout) * unit < 24 << 20


def test_what_a_bomb_leaves_in_python_is_bounded() -> None:
    wire = block(bomb(4 << 30)[:BLOCK_BYTES], False)
    reader = BlockReader()
    reader.feed(wire)
    tracemalloc.start()
    with pytest.raises(ProtocolError):
        reader.next()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 << 20


def test_what_a_bomb_expands_to_before_it_is_refused_is_bounded() -> None:
    """What is decoded and dropped, in bytes: a function of one slice of input, not of the block."""
    reader = BlockReader()
    reader.feed(block(bomb(4 << 30)[:BLOCK_BYTES], False))
    with pytest.raises(ProtocolError):
        reader.next()
    assert BLOCK_CONTENT_BYTES < reader._block_content.size <= 64 << 20


@given(st.binary(min_size=1, max_size=300))
def test_garbage_is_a_piece_or_refused(wire: bytes) -> None:
    reader = BlockReader()
    reader.feed(wire)
    try:
        while (piece := reader.next()) is not None:
            assert len(piece) <= BLOCK_CONTENT_BYTES
    except ProtocolError:
        pass


@given(st.integers(0, 3000), st.integers(0, 255))
def test_a_changed_byte_in_a_block_is_a_piece_or_refused(position: int, value: int) -> None:
    wire = bytearray(blocks_of(TEXT[:60_000], PLAIN))
    wire[position % len(wire)] = value
    reader = BlockReader()
    reader.feed(bytes(wire))
    try:
        while (piece := reader.next()) is not None:
            assert len(piece) <= BLOCK_CONTENT_BYTES
    except ProtocolError:
        pass
