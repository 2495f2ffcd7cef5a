"""Compression: the levels of a stream, with measurements, and literals compressed with a context.

Literals have the known bytes around them as their context: zstd with a prefix. Each piece is a zstd frame of
its own without magic number, content size and checksum. The receiver knows the requested length, and checks
each resulting chunk against its digest.
"""

from __future__ import annotations

from rdc.limits.wire import PACKED_BYTES, PACKED_CONTEXT_BYTES, WINDOW_LOG
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    import zstandard

MAX_LEVEL = 19
"""Higher levels of zstd need several hundred MB per stream."""


@dataclass(frozen=True, slots=True)
class CompressionLevel:
    """Parameters of the zstd frames in a stream."""

    level: int
    """zstd level, 1 to MAX_LEVEL; 0 sends everything raw."""
    far: bool = False
    """Whether zstd also looks for distant matches (long-distance matching)."""
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
        """Whether a frame with `frame` bytes of content ends before the next `block_content` bytes."""
        return self.frame_log > 0 and frame + block_content > 1 << self.frame_log

    def compressor(self) -> zstandard.ZstdCompressor:
        """A compressor that makes such frames, one at a time."""
        from rdc.protocol.wire.zstd import zstandard

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
    from rdc.protocol.wire.zstd import zstandard

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
    """The inverse of pack_literals: `size` bytes.

    ValueError if the length differs: the context differs, or the sender lied.
    """
    from rdc.protocol.wire.zstd import zstandard

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
