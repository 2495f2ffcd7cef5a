"""The byte stream of one direction: messages in frames, frames in blocks, and their compression.

A frame is a length, a type and a round number before the payload of a message. Blocks are pieces of the frame
stream, each sent raw or as one flush of the direction's zstd stream, at a level that may change. Besides,
literals are compressed with the known bytes around them as context: zstd with a prefix. Each piece is a zstd
frame of its own without magic number, content size and checksum. The receiver knows the requested length, and
checks each resulting chunk against its digest.
"""

from __future__ import annotations

from collections import deque

from rdc.errors import ProtocolError
from rdc.lean.records import Record
from rdc.limits import (
    BLOCK_BYTES,
    BLOCK_CONTENT_BYTES,
    FRAME_BYTES,
    PACKED_BYTES,
    PACKED_CONTEXT_BYTES,
    RAW_BLOCK_BYTES,
    ROUND_LIMIT,
    WINDOW_LOG,
)
from rdc.protocol.wire.fields import decode_varint, encode_varint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    import zstandard

JOIN_PIECES_BELOW = 4096
"""Shorter pieces are joined on arrival, so a sender of single bytes cannot make this side hold an object for
each."""


class ByteQueue:
    """A queue of bytes. `take` may return a view of bytes that were fed, which must not change while the view
    lives."""

    __slots__ = ("_parts", "_size")

    def __init__(self) -> None:
        self._parts: deque[memoryview] = deque()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def feed(self, data: bytes | memoryview) -> None:
        size = len(data)
        if not size:
            return
        self._size += size
        parts = self._parts
        if size < JOIN_PIECES_BELOW and parts and len(parts[-1]) < JOIN_PIECES_BELOW:
            data = b"".join((parts.pop(), data))
        parts.append(memoryview(data))

    def head(self, length: int) -> memoryview | bytes:
        """Return the first `length` bytes or more; fewer only if the queue holds fewer. They stay in the
        queue."""
        parts = self._parts
        if not parts:
            return b""
        if len(parts[0]) >= length or len(parts) == 1:
            return parts[0]
        # A few bytes across a boundary; the parts may be as short.
        found = b""
        for part in parts:
            found += part[: length - len(found)]
            if len(found) == length:
                break
        return found

    def skip(self, length: int) -> None:
        """Drop the first `length` bytes. The queue must hold that many."""
        self._size -= length
        parts = self._parts
        while length:
            part = parts.popleft()
            if len(part) > length:
                parts.appendleft(part[length:])
                return
            length -= len(part)

    def take(self, length: int) -> memoryview | bytes:
        """Remove and return the first `length` bytes in one piece. The queue must hold that many."""
        parts = self._parts
        if not length:
            return b""
        first = parts[0]
        if len(first) > length:
            parts[0] = first[length:]
            self._size -= length
            return first[:length]
        if len(first) == length:
            self._size -= length
            return parts.popleft()
        taken, left = [], length
        while left:
            part = parts.popleft()
            if len(part) > left:
                parts.appendleft(part[left:])
                part = part[:left]
            taken.append(part)
            left -= len(part)
        self._size -= length
        return b"".join(taken)


# Frames


class Frame(Record):
    kind: int
    """Type byte; rdc.protocol.wire.codec decides whether it is known."""
    round: int
    payload: bytes | memoryview
    size: int
    """Bytes of the whole frame, with its head."""


def frame_head(kind: int, round_number: int, length: int) -> bytes:
    """Return the head of a payload of `length` bytes: varint length, u8 type, varint round."""
    if length < 0x80 and round_number < 0x80:
        return bytes((length, kind, round_number))
    return b"%b%c%b" % (encode_varint(length), kind, encode_varint(round_number))


SHORT_HEAD_BYTES = 3

HEAD_BYTES = 9
"""Bytes of the longest head within the limits: 3 of length, 1 of type, 5 of round."""


class FrameReader:
    """Splits a byte stream, which arrives in any pieces, into frames.

    It holds at most one incomplete frame (FRAME_BYTES and a head) besides the last feed(). A length above the
    limit is refused as soon as its head is complete.
    """

    def __init__(self) -> None:
        self._queue = ByteQueue()

    def __len__(self) -> int:
        """Return the number of bytes held that belong to no returned frame."""
        return len(self._queue)

    def feed(self, data: bytes | memoryview) -> None:
        self._queue.feed(data)

    def next(self) -> Frame | None:
        """Return the next whole frame, or None if more bytes are needed. ProtocolError above a limit."""
        queue = self._queue
        if not len(queue):
            return None
        buffer = queue.head(HEAD_BYTES)
        if len(buffer) > SHORT_HEAD_BYTES:
            # The fast path: short frames of early rounds, which are the most frequent.
            length, kind, round_number = buffer[0], buffer[1], buffer[2]
            end = SHORT_HEAD_BYTES + length
            if length < 0x80 and round_number < 0x80 and end <= len(queue):
                return Frame(kind, round_number, memoryview(queue.take(end))[SHORT_HEAD_BYTES:], end)
        head = decode_varint(buffer, 0, FRAME_BYTES, "a frame length")
        if head is None:
            return None
        length, position = head
        if position == len(buffer):
            return None
        kind = buffer[position]
        head = decode_varint(buffer, position + 1, ROUND_LIMIT, "a round number")
        if head is None:
            return None
        round_number, position = head
        end = position + length
        if len(queue) < end:
            return None
        return Frame(kind, round_number, memoryview(queue.take(end))[position:], end)


# Levels of compression


class CompressionLevel(Record):
    """Parameters of the zstd frames in a stream."""

    level: int
    """zstd level, 1 to 19; 0 sends everything raw. Higher levels need several hundred MB per stream."""
    far: bool = False
    """True if zstd also looks for distant matches (long-distance matching)."""
    min_match: int = 0
    """Bytes of the shortest match; 0 for the level's default."""
    hash_log: int = 0
    """log2 of the hash table's entries; 0 for the level's default."""
    frame_log: int = 0
    """log2 of the content bytes per zstd frame, each with an empty window at its start; 0 for one frame
    without end.

    zstd is faster and finds a little more while its window is contiguous in memory, as in the first window of
    a frame.
    """

    def ends(self, frame: int, block_content: int) -> bool:
        """Return whether a frame with `frame` bytes of content ends before the next `block_content` bytes."""
        return self.frame_log > 0 and frame + block_content > 1 << self.frame_log

    def compressor(self) -> zstandard.ZstdCompressor:
        """Return a compressor that makes such frames, one at a time."""
        from rdc.lean.zstd import zstandard

        changed = {}
        if self.min_match:
            changed["min_match"] = self.min_match
        if self.hash_log:
            changed["hash_log"] = self.hash_log
        parameters = zstandard.ZstdCompressionParameters.from_level(
            self.level, window_log=self.frame_log or WINDOW_LOG, enable_ldm=self.far, **changed
        )
        return zstandard.ZstdCompressor(compression_params=parameters)


RAW = CompressionLevel(0)

PLAIN = CompressionLevel(3, frame_log=24)
"""zstd's own default: 300-500 MB/s on text, and 3-4 GB/s on incompressible data.

Compared with one endless frame, first copies take up to 8 % less time on both sides together. Bytes change by
+0.3 % for Django, -0.3 % for NumPy, and +1.7 % for the graphics drivers of Linux, whose headers resemble each
other. Frames of 8 MiB add 3 % for Django and 10 % for the drivers (measured).
"""

HARD = CompressionLevel(6, far=True)
"""For literals that a descent could not find.

Libraries of OpenCV, Arrow and LibreOffice, after the x86 filter, shrink by 7 % more than at level 3. That
takes 2.7 times as long, at 100 MB/s. Level 7 takes a fourth longer for another 2 %, level 9 twice as long for
4 %. Hand-set parameters lie on the same curve (measured).

Long-distance matching saves 14 % on literals of source maps, since a release has several similar ones. It
saves 2 % on JSON and changes code by 0.4 % either way. It takes a tenth more time with code and a third more
with JSON (measured).
"""

QUICK = CompressionLevel(2, min_match=5, frame_log=22)
"""For large amounts of code when time matters more: the search window fits the caches.

The literals of the same libraries take a fourth less time than at level 3, for 3.0, -0.1 and 2.2 % more
bytes. The level's own shortest match of 6 takes up to a tenth less again, for 2.2, 0.0 and 0.4 % (measured).
In one long frame, level 3 takes 40 % more time. Text needs its distant matches.
"""

QUICKEST = CompressionLevel(1, min_match=5, hash_log=14, frame_log=20)
"""For large amounts of code on links that are almost free.

It takes a fourth to a third less time than QUICK, for 8, 0.5 and 1.7 % more bytes of the same literals. The
window and the hash table then stay in the second-level cache, beside the source's other work between two
pieces. Frames of 4 MiB take 13 % longer, and 2^15 hash entries 7 to 14 % (measured within a sync; in
isolation the times hardly differ).
"""


# Blocks

# A zstd block costs 3 bytes, and short pieces seldom repeat anything: a shorter piece goes raw.
RAW_BELOW = 64

RAW_CONTENT_BELOW = 16 << 10
"""Shorter content is written like any other frame stream: a block of its own would cost more than it
saves."""

WORTH = 32
"""Content is compressed while a piece shrinks by at least one part in this many."""

RAW_RUN_BYTES = 8 << 20
"""Longest run of raw content between two trials. A trial of one piece in 64 costs almost nothing, and
compressible content goes raw no longer than this."""

JOIN_BELOW = 4096
"""Shorter bodies are joined with their heads: two writes would cost more than the copy."""

SLICE_BYTES = 2 << 10
"""Compressed bytes between two checks of the output size. At 4 bytes per 128 KiB a bomb produces 64 MiB
before it is refused, and 128 KiB of them are kept. Slices of 16 KiB are not faster."""


class BlockWriter:
    """Turns frame stream into blocks. Raw pieces never enter the compressor, so they are in neither end's
    window, and both windows stay equal."""

    def __init__(
        self, compression: CompressionLevel, count: Callable[[int, int], None] | None = None
    ) -> None:
        """count: takes the bytes of content and the size of each block."""
        self._count = count
        self._pending = bytearray()
        self._ready: list[bytes | memoryview] = []
        self._ready_bytes = 0
        self._compressor: zstandard.ZstdCompressor | None = None
        self._stream: zstandard.ZstdCompressionObj | None = None
        self._stream_compression = compression
        self._frame = 0
        """Bytes of content in the current zstd frame."""
        self._raw_left = 0
        """Bytes of content to send raw before the next trial of compression."""
        self._raw_run = 0
        """Length of the last raw run."""
        self.compression = compression
        """The compression level, which may change at any time. A change ends the zstd frame; the next begins
        with an empty window."""

    def __len__(self) -> int:
        """Return the number of bytes that take() and flush() have yet to return. Bytes not yet compressed
        count in full."""
        return self._ready_bytes + len(self._pending)

    def write(self, *parts: bytes | memoryview) -> None:
        pending = self._pending
        for part in parts:
            at = 0
            if pending:
                at = BLOCK_CONTENT_BYTES - len(pending)
                pending += part[:at]
                if len(pending) < BLOCK_CONTENT_BYTES:
                    continue
                block_content = bytes(pending)
                pending.clear()
                self._emit(block_content)
            while len(part) - at >= BLOCK_CONTENT_BYTES:
                self._emit(part[at : at + BLOCK_CONTENT_BYTES])
                at += BLOCK_CONTENT_BYTES
            pending += part[at:]

    def write_content(self, head: bytes, content: bytes | memoryview) -> None:
        """Do as write() does, for a frame that ends in file content, which is often compressed already.

        After a piece that hardly shrinks, the following content goes raw and uncopied. The raw run doubles
        each time, up to RAW_RUN_BYTES, and then the next piece is tried. `content` must not change until it
        is sent.
        """
        if len(content) < RAW_CONTENT_BELOW:
            self.write(head, content)
            return
        view = memoryview(content)
        if self.compression.level and self._raw_left <= 0:
            self.write(head)
            head = b""
            while self._raw_left <= 0:
                missing = BLOCK_CONTENT_BYTES - len(self._pending)
                before = self._ready_bytes
                self.write(view[:missing])
                view = view[missing:]
                if not view:
                    return
                if self._ready_bytes - before > BLOCK_CONTENT_BYTES - BLOCK_CONTENT_BYTES // WORTH:
                    self._raw_left = self._raw_run = min(
                        2 * self._raw_run + BLOCK_CONTENT_BYTES, RAW_RUN_BYTES
                    )
                else:
                    self._raw_run = 0
        self._raw_left -= len(view)
        self.flush()
        size = len(head) + len(view)
        self._append(encode_varint(size << 1 | 1) + head, view, size)

    def flush(self) -> None:
        """Turn the pending bytes into a block, however short."""
        if self._pending:
            block_content = bytes(self._pending)
            self._pending.clear()
            self._emit(block_content)

    def take(self) -> bytes:
        """Remove and return all finished blocks."""
        return b"".join(self.take_parts())

    def take_parts(self) -> list[bytes | memoryview]:
        """Remove and return all finished blocks in pieces; raw content is not copied."""
        ready, self._ready = self._ready, []
        self._ready_bytes = 0
        return ready

    def put_raw(self, block_content: bytes) -> None:
        """Append a raw block, whatever the level. An empty one is a keepalive."""
        self._append(encode_varint(len(block_content) << 1 | 1), block_content, len(block_content))

    def _emit(self, block_content: bytes | memoryview) -> None:
        if self.compression.level == 0 or len(block_content) < RAW_BELOW:
            self.put_raw(bytes(block_content))
        else:
            compressed = self._compress(block_content)
            self._append(encode_varint(len(compressed) << 1), compressed, len(block_content))

    def _append(self, head: bytes, body: bytes | memoryview, content: int) -> None:
        """content: bytes of frame stream in the block."""
        self._ready_bytes += len(head) + len(body)
        if self._count is not None:
            self._count(content, len(head) + len(body))
        if len(body) < JOIN_BELOW:
            self._ready.append(head + bytes(body))
        else:
            self._ready += (head, body)

    def _compress(self, block_content: bytes | memoryview) -> bytes:
        from rdc.lean.zstd import zstandard

        before = b""
        if self._stream is not None and (
            self._stream_compression != self.compression
            or self.compression.ends(self._frame, len(block_content))
        ):
            before = self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH)
            self._stream = None
        if self._stream is None:
            if self._compressor is None or self._stream_compression != self.compression:
                self._compressor, self._stream_compression = self.compression.compressor(), self.compression
            self._stream, self._frame = self._compressor.compressobj(), 0
        self._frame += len(block_content)
        body = self._stream.compress(block_content)
        return before + body + self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


class _BlockContent:
    """Collects a decoder's output and drops all bytes after BLOCK_CONTENT_BYTES.

    It does not raise, since python-zstandard 0.25 then leaks its output buffer of 128 KiB for each bomb.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0
        """Bytes seen, with those dropped."""

    def write(self, data: bytes) -> int:
        self.size += len(data)
        if self.size <= BLOCK_CONTENT_BYTES:
            self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts = []
        self.size = 0
        return data


HEADER_BYTES = 4
"""Bytes of the longest block header within the limits."""


class BlockReader:
    """Decodes blocks from a byte stream that arrives in any pieces, one block per call.

    Received bytes are kept undecoded until next(); the caller limits how many it feeds ahead.
    """

    def __init__(self, count: Callable[[int, int], None] | None = None) -> None:
        """count: takes the bytes of content and the size of each block."""
        self._count = count
        self._queue = ByteQueue()
        self._block_content = _BlockContent()
        self._stream: zstandard.ZstdDecompressionWriter | None = None

    def __len__(self) -> int:
        """Return the number of bytes fed and not yet decoded."""
        return len(self._queue)

    def feed(self, data: bytes | memoryview) -> None:
        self._queue.feed(data)

    def next(self) -> bytes | memoryview | None:
        """Return the frame stream of the next whole block, or None if more bytes are needed. A keepalive
        gives b"".

        ProtocolError for a block above its limit (seen in its header), one that expands beyond
        BLOCK_CONTENT_BYTES, and one that zstd cannot decode.
        """
        queue = self._queue
        head = decode_varint(queue.head(HEADER_BYTES), 0, RAW_BLOCK_BYTES << 1 | 1, "a block header")
        if head is None:
            return None
        header, start = head
        length, raw = header >> 1, header & 1
        if length == 0 and not raw:
            raise ProtocolError("the remote side sent an empty block")
        if not raw and length > BLOCK_BYTES:
            raise ProtocolError(
                f"the remote side sent a compressed block of {length} bytes; the limit is {BLOCK_BYTES}"
            )
        if len(queue) < start + length:
            return None
        queue.skip(start)
        body = queue.take(length)
        content = body if raw else self._decompress(body)
        if self._count is not None:
            self._count(len(content), start + length)
        return content

    def _decompress(self, body: bytes | memoryview) -> bytes:
        from rdc.lean.zstd import zstandard

        if self._stream is None:
            # One byte more than a piece may have. zstd keeps output that its buffer cannot hold until the
            # next block, and would hide that this block was too large.
            decompressor = zstandard.ZstdDecompressor(max_window_size=1 << WINDOW_LOG)
            self._stream = decompressor.stream_writer(
                self._block_content,  # type: ignore[arg-type] # it has write(), which is all that is asked of this file
                write_size=BLOCK_CONTENT_BYTES + 1,
            )
        view = memoryview(body)
        for start in range(0, len(body), SLICE_BYTES):
            try:
                self._stream.write(view[start : start + SLICE_BYTES])
            except zstandard.ZstdError as error:
                raise ProtocolError(
                    f"the remote side sent a block that zstd cannot decode ({error})"
                ) from error
            if self._block_content.size > BLOCK_CONTENT_BYTES:
                raise ProtocolError(
                    f"the remote side sent a block that decompresses to more than {BLOCK_CONTENT_BYTES} bytes"
                )
        return self._block_content.take()


# Literals with a context

SEARCH_LOG = 6
"""log2 of the positions searched for a match, in a table with an entry per byte.

This takes 0.5 % fewer bytes than level 9, whose table is as large for any piece, in 67 to 80 % of its time:
0.08 ms per piece. Level 6 takes as long for 3 % more bytes (measured on releases of Linux and Django).
"""

TABLE_LOG = 17
"""log2 of the entries of the largest such table: half a megabyte."""

CONTEXT_WINDOW_LOG = (PACKED_BYTES + PACKED_CONTEXT_BYTES - 1).bit_length()


def pack_literals(literals: bytes, context: bytes) -> bytes:
    """Compress at most PACKED_BYTES of literals with at most PACKED_CONTEXT_BYTES of context."""
    from rdc.lean.zstd import zstandard

    table_log = max(zstandard.HASHLOG_MIN, min((len(literals) + len(context)).bit_length(), TABLE_LOG))
    parameters = zstandard.ZstdCompressionParameters(
        window_log=CONTEXT_WINDOW_LOG,
        hash_log=table_log,
        chain_log=table_log,
        search_log=SEARCH_LOG,
        min_match=4,
        strategy=zstandard.STRATEGY_LAZY2,
        format=zstandard.FORMAT_ZSTD1_MAGICLESS,
        write_content_size=0,
        write_dict_id=0,
    )
    prefix = zstandard.ZstdCompressionDict(context, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    return zstandard.ZstdCompressor(compression_params=parameters, dict_data=prefix).compress(literals)


def unpack_literals(packed: bytes, context: bytes, size: int) -> bytes:
    """Return the inverse of pack_literals: `size` bytes.

    ValueError if the length differs: the context differs, or the sender lied.
    """
    from rdc.lean.zstd import zstandard

    prefix = zstandard.ZstdCompressionDict(context, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    decompressor = zstandard.ZstdDecompressor(
        dict_data=prefix, max_window_size=1 << CONTEXT_WINDOW_LOG, format=zstandard.FORMAT_ZSTD1_MAGICLESS
    )
    try:
        # decompress() would trust the size that a frame states.
        with decompressor.stream_reader(packed) as reader:
            literals: bytes = reader.read(size + 1)
    except zstandard.ZstdError as error:
        raise ValueError(f"packed literals that zstd cannot decode ({error})") from error
    if len(literals) != size:
        raise ValueError(f"{len(literals)} packed literals, expected {size}")
    return literals
