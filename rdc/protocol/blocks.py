"""Blocks: the frame stream cut into pieces, each sent raw or as one flush of the direction's zstd stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdc.errors import ProtocolError
from rdc.limits import BLOCK_BYTES, PIECE_BYTES, WINDOW_LOG
from rdc.protocol.varint import decode_varint, encode_varint

if TYPE_CHECKING:
    import zstandard

__all__ = ["DEFAULT_LEVEL", "MAX_LEVEL", "BlockReader", "BlockWriter"]

DEFAULT_LEVEL = 3
"""zstd's own default: 300-500 MB/s on text, and 3-4 GB/s on data that does not compress (measured)."""

MAX_LEVEL = 19
"""Above it zstd needs several hundred MB a stream."""

# A zstd block costs 3 bytes and short pieces seldom repeat anything: below this a piece goes raw.
RAW_BELOW = 64

# Compressed bytes between two looks at how much came out: at 4 bytes for 128 KiB a bomb costs 512 MB of
# memset before it is refused, a tenth of a second.
SLICE_BYTES = 16 << 10


class BlockWriter:
    """Turns frame stream into blocks. Pieces sent raw never enter the compressor, so they are in neither
    end's window and both windows stay equal."""

    def __init__(self, level: int) -> None:
        self._pending = bytearray()
        self._ready: list[bytes] = []
        self._ready_bytes = 0
        self._stream: zstandard.ZstdCompressionObj | None = None
        self._stream_level = 0
        self.level = level
        """0: all raw; 1 to MAX_LEVEL: compress. May change at any time: a level other than the stream's ends
        its zstd frame and begins another, which starts with an empty window."""

    def __len__(self) -> int:
        """Bytes that take() and flush() have yet to hand out; what is not compressed yet counts in full."""
        return self._ready_bytes + len(self._pending)

    def write(self, *parts: bytes) -> None:
        pending = self._pending
        for part in parts:
            pending += part
        while len(pending) >= PIECE_BYTES:
            with memoryview(pending) as view:
                piece = bytes(view[:PIECE_BYTES])
            del pending[:PIECE_BYTES]
            self._emit(piece)

    def flush(self) -> None:
        """Turn what is left into a block, however short."""
        if self._pending:
            piece = bytes(self._pending)
            self._pending.clear()
            self._emit(piece)

    def take(self) -> bytes:
        """All finished blocks."""
        ready = self._ready[0] if len(self._ready) == 1 else b"".join(self._ready)
        self._ready = []
        self._ready_bytes = 0
        return ready

    def put_raw(self, piece: bytes) -> None:
        """A block that goes raw whatever the level; an empty one is a mere sign of life."""
        self._append(encode_varint(len(piece) << 1 | 1), piece)

    def _emit(self, piece: bytes) -> None:
        if self.level == 0 or len(piece) < RAW_BELOW:
            self.put_raw(piece)
        else:
            compressed = self._compress(piece)
            self._append(encode_varint(len(compressed) << 1), compressed)

    def _append(self, head: bytes, body: bytes) -> None:
        self._ready += (head, body)
        self._ready_bytes += len(head) + len(body)

    def _compress(self, piece: bytes) -> bytes:
        import zstandard

        before = b""
        if self._stream is not None and self._stream_level != self.level:
            before = self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH)
            self._stream = None
        if self._stream is None:
            parameters = zstandard.ZstdCompressionParameters.from_level(self.level, window_log=WINDOW_LOG)
            self._stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
            self._stream_level = self.level
        body = self._stream.compress(piece)
        return before + body + self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


class _Piece:
    """Takes a decoder's output and drops what comes after PIECE_BYTES.

    It does not raise: python-zstandard 0.25 then loses its output buffer, 128 KiB for every bomb received.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0
        """Bytes seen, dropped ones included."""

    def write(self, data: bytes) -> int:
        self.size += len(data)
        if self.size <= PIECE_BYTES:
            self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts = []
        self.size = 0
        return data


class BlockReader:
    """Decodes blocks out of a byte stream that arrives in any pieces, one block a call.

    What was fed is kept as it came until next() wants it: how much is fed ahead is the caller's bound.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._piece = _Piece()
        self._stream: zstandard.ZstdDecompressionWriter | None = None

    def __len__(self) -> int:
        """Bytes fed and not yet decoded."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next(self) -> bytes | None:
        """The frame stream of the next whole block (of a sign of life: nothing), or None when more bytes are
        needed.

        Raises ProtocolError for a block past BLOCK_BYTES (seen in its header), one that expands past
        PIECE_BYTES, and one that zstd cannot decode.
        """
        buffer = self._buffer
        head = decode_varint(buffer, 0, BLOCK_BYTES << 1 | 1, "a block header")
        if head is None:
            return None
        header, start = head
        length, raw = header >> 1, header & 1
        if length == 0 and not raw:
            raise ProtocolError("the far side sent an empty block")
        if raw and length > PIECE_BYTES:
            raise ProtocolError(
                f"the far side sent a raw block of {length} bytes; the limit is {PIECE_BYTES}"
            )
        end = start + length
        if len(buffer) < end:
            return None
        with memoryview(buffer) as view:
            body = bytes(view[start:end])
        del buffer[:end]
        return body if raw else self._decompress(body)

    def _decompress(self, body: bytes) -> bytes:
        import zstandard

        if self._stream is None:
            # One byte more than a piece may have: zstd keeps what its output buffer has no room for until
            # the next block, and would hide there that this one was too large.
            decompressor = zstandard.ZstdDecompressor(max_window_size=1 << WINDOW_LOG)
            self._stream = decompressor.stream_writer(self._piece, write_size=PIECE_BYTES + 1)  # type: ignore[arg-type]
        view = memoryview(body)
        for start in range(0, len(body), SLICE_BYTES):
            try:
                self._stream.write(view[start : start + SLICE_BYTES])
            except zstandard.ZstdError as error:
                raise ProtocolError(f"the far side sent a block that zstd cannot decode ({error})") from error
            if self._piece.size > PIECE_BYTES:
                raise ProtocolError(
                    f"the far side sent a block that decompresses to more than {PIECE_BYTES} bytes"
                )
        return self._piece.take()
