"""Blocks: the frame stream cut into pieces, each sent raw or as one flush of the direction's zstd stream."""

from __future__ import annotations

from rdc.errors import ProtocolError
from rdc.limits import BLOCK_BYTES, PIECE_BYTES, RAW_BLOCK_BYTES, WINDOW_LOG
from rdc.protocol.byte_queue import ByteQueue
from rdc.protocol.varint import decode_varint, encode_varint

TYPE_CHECKING = False
if TYPE_CHECKING:
    import zstandard

    from rdc.protocol.costs import Lane
    from rdc.protocol.pressing import Pressing

__all__ = ["BlockReader", "BlockWriter"]

# A zstd block costs 3 bytes and short pieces seldom repeat anything: below this a piece goes raw.
RAW_BELOW = 64

RAW_CONTENT_BELOW = 16 << 10
"""Content shorter than this is written as any other frame stream: a block of its own would cost more than it
spares."""

WORTH = 32
"""Content is compressed while a piece loses one part in so many."""

RAW_RUN_BYTES = 8 << 20
"""Content that goes raw between two trials: one piece in 64 costs nothing beside the rest, and what would
have compressed again goes raw no longer than this."""

JOIN_BELOW = 4096
"""Shorter bodies are joined with their heads: two writes would cost more than the copy."""

# Compressed bytes between two looks at how much came out: at 4 bytes for 128 KiB a bomb costs 512 MB of
# memset before it is refused, a tenth of a second.
SLICE_BYTES = 16 << 10


class BlockWriter:
    """Turns frame stream into blocks. Pieces sent raw never enter the compressor, so they are in neither
    end's window and both windows stay equal."""

    def __init__(self, pressing: Pressing, lane: Lane | None = None) -> None:
        """`lane`: where the size of each block is counted."""
        self._lane = lane
        self._pending = bytearray()
        self._ready: list[bytes | memoryview] = []
        self._ready_bytes = 0
        self._compressor: zstandard.ZstdCompressor | None = None
        self._stream: zstandard.ZstdCompressionObj | None = None
        self._stream_pressing = pressing
        self._frame = 0
        """Bytes of content in the stream's frame."""
        self._raw_left = 0
        """Bytes of content to send raw before compression is tried again."""
        self._raw_run = 0
        """How many that were the last time."""
        self.pressing = pressing
        """May change at any time: another than the stream's ends its zstd frame and begins another, which
        starts with an empty window."""

    def __len__(self) -> int:
        """Bytes that take() and flush() have yet to hand out; what is not compressed yet counts in full."""
        return self._ready_bytes + len(self._pending)

    def write(self, *parts: bytes | memoryview) -> None:
        pending = self._pending
        for part in parts:
            at = 0
            if pending:
                at = PIECE_BYTES - len(pending)
                pending += part[:at]
                if len(pending) < PIECE_BYTES:
                    continue
                piece = bytes(pending)
                pending.clear()
                self._emit(piece)
            while len(part) - at >= PIECE_BYTES:
                self._emit(part[at : at + PIECE_BYTES])
                at += PIECE_BYTES
            pending += part[at:]

    def write_content(self, head: bytes, content: bytes | memoryview) -> None:
        """As write(), for a frame that ends in the content of files: much of what files hold is compressed
        already. Where a piece of it hardly shrinks, what follows goes raw and uncopied, as much of it as went
        so before, up to RAW_RUN_BYTES, and then the next piece is tried. `content` must stay as it is."""
        if len(content) < RAW_CONTENT_BELOW:
            self.write(head, content)
            return
        view = memoryview(content)
        if self.pressing.level and self._raw_left <= 0:
            self.write(head)
            head = b""
            while self._raw_left <= 0:
                missing = PIECE_BYTES - len(self._pending)
                before = self._ready_bytes
                self.write(view[:missing])
                view = view[missing:]
                if not view:
                    return
                if self._ready_bytes - before > PIECE_BYTES - PIECE_BYTES // WORTH:
                    self._raw_left = self._raw_run = min(2 * self._raw_run + PIECE_BYTES, RAW_RUN_BYTES)
                else:
                    self._raw_run = 0
        self._raw_left -= len(view)
        self.flush()
        size = len(head) + len(view)
        self._append(encode_varint(size << 1 | 1) + head, view, size)

    def flush(self) -> None:
        """Turn what is left into a block, however short."""
        if self._pending:
            piece = bytes(self._pending)
            self._pending.clear()
            self._emit(piece)

    def take(self) -> bytes:
        """All finished blocks."""
        return b"".join(self.take_parts())

    def take_parts(self) -> list[bytes | memoryview]:
        """All finished blocks in pieces, content that goes raw as it was written."""
        ready, self._ready = self._ready, []
        self._ready_bytes = 0
        return ready

    def put_raw(self, piece: bytes) -> None:
        """A block that goes raw whatever the level; an empty one is a mere sign of life."""
        self._append(encode_varint(len(piece) << 1 | 1), piece, len(piece))

    def _emit(self, piece: bytes | memoryview) -> None:
        if self.pressing.level == 0 or len(piece) < RAW_BELOW:
            self.put_raw(bytes(piece))
        else:
            compressed = self._compress(piece)
            self._append(encode_varint(len(compressed) << 1), compressed, len(piece))

    def _append(self, head: bytes, body: bytes | memoryview, content: int) -> None:
        """`content`: bytes of the frame stream in it."""
        self._ready_bytes += len(head) + len(body)
        if self._lane is not None:
            self._lane.block(content, len(head) + len(body))
        if len(body) < JOIN_BELOW:
            self._ready.append(head + bytes(body))
        else:
            self._ready += (head, body)

    def _compress(self, piece: bytes | memoryview) -> bytes:
        from rdc.protocol.zstd import zstandard

        before = b""
        if self._stream is not None and (
            self._stream_pressing != self.pressing or self.pressing.ends(self._frame, len(piece))
        ):
            before = self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH)
            self._stream = None
        if self._stream is None:
            if self._compressor is None or self._stream_pressing != self.pressing:
                self._compressor, self._stream_pressing = self.pressing.compressor(), self.pressing
            self._stream, self._frame = self._compressor.compressobj(), 0
        self._frame += len(piece)
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


HEADER_BYTES = 4
"""Bytes of the longest block header that is within the limits."""


class BlockReader:
    """Decodes blocks out of a byte stream that arrives in any pieces, one block a call.

    What was fed is kept as it came until next() wants it: how much is fed ahead is the caller's bound.
    """

    def __init__(self, lane: Lane | None = None) -> None:
        """`lane`: where the size of each block is counted."""
        self._lane = lane
        self._queue = ByteQueue()
        self._piece = _Piece()
        self._stream: zstandard.ZstdDecompressionWriter | None = None

    def __len__(self) -> int:
        """Bytes fed and not yet decoded."""
        return len(self._queue)

    def feed(self, data: bytes | memoryview) -> None:
        self._queue.feed(data)

    def next(self) -> bytes | memoryview | None:
        """The frame stream of the next whole block (of a sign of life: nothing), or None when more bytes are
        needed.

        Raises ProtocolError for a block past its limit (seen in its header), one that expands past
        PIECE_BYTES, and one that zstd cannot decode.
        """
        queue = self._queue
        head = decode_varint(queue.head(HEADER_BYTES), 0, RAW_BLOCK_BYTES << 1 | 1, "a block header")
        if head is None:
            return None
        header, start = head
        length, raw = header >> 1, header & 1
        if length == 0 and not raw:
            raise ProtocolError("the far side sent an empty block")
        if not raw and length > BLOCK_BYTES:
            raise ProtocolError(
                f"the far side sent a compressed block of {length} bytes; the limit is {BLOCK_BYTES}"
            )
        if len(queue) < start + length:
            return None
        queue.skip(start)
        body = queue.take(length)
        content = body if raw else self._decompress(body)
        if self._lane is not None:
            self._lane.block(len(content), start + length)
        return content

    def _decompress(self, body: bytes | memoryview) -> bytes:
        from rdc.protocol.zstd import zstandard

        if self._stream is None:
            # One byte more than a piece may have: zstd keeps what its output buffer has no room for until
            # the next block, and would hide there that this one was too large.
            decompressor = zstandard.ZstdDecompressor(max_window_size=1 << WINDOW_LOG)
            self._stream = decompressor.stream_writer(
                self._piece,  # type: ignore[arg-type] # it has write(), which is all that is asked of this file
                write_size=PIECE_BYTES + 1,
            )
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
