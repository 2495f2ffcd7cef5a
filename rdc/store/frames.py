"""Frames: up to 1 MiB of new chunks as stored bytes, compressed alone or against chunks that resemble them.

A frame is the unit that is read and decoded. Chunks of new files share one, which compresses a third better
than each chunk alone. Chunks that replace old ones get a frame of their own, with the old ones as the prefix
of its compression (a delta): it stores what a sync would send.
"""

from __future__ import annotations

from _thread import _local

from rdc.lean.enums import IntEnum
from rdc.lean.records import Record
from rdc.lean.zstd import zstandard

FRAME_BYTES = 1 << 20
"""Most bytes of a decoded frame. Larger frames compress hardly better, and one chunk costs a whole frame."""

PREFIX_BYTES = 4 << 20
"""Most bytes of the chunks that a delta is made against."""

LEVEL = 3
"""The compression level. Level 6 takes 2.7 times the CPU time and saves 5 to 11 % of first copies."""

DELTA_SHARE = 0.6
"""A delta is kept if it has at most this share of the bytes that its chunks take without a base. It makes
them depend on others and costs the reader a second frame."""

ROW_BYTES = 24
"""Bytes that a delta takes in the directory of its pack: the key of a base, and its columns when compressed.
Chunks without a base share a frame with others."""

STORED_SHARE = 0.97
"""A frame whose sample compresses to more than this share is stored as it is: compressing random bytes takes
as long as hashing and cutting them together."""

_SAMPLES, _SAMPLE_BYTES = 4, 16 << 10
_WINDOW_LEAST, _WINDOW_MOST = 10, 24
_DECODED_WINDOW = 1 << _WINDOW_MOST + 3
_HASH_WORTH = 19
"""Bits of prefix and content above which the tables are made as large as the prefix needs. At level 3 they
have 2^17 slots, and a prefix of 4 MiB would find a quarter of its matches."""


class FrameKind(IntEnum):
    """The storage form of a frame's bytes. The values are part of the format."""

    STORED = 0
    PACKED = 1
    DELTA = 2


class StoredFrame(Record):
    """The bytes of a frame as a pack has them."""

    kind: FrameKind
    data: bytes


class FrameError(ValueError):
    """The bytes of a frame are not those of a frame with its kind and size."""


def encode(content: bytes, prefix: bytes = b"", *, level: int = LEVEL) -> StoredFrame:
    """Return the smallest acceptable form of `content`, at most FRAME_BYTES.

    `prefix`: bytes that resemble it, at most PREFIX_BYTES. The result is a delta only if that pays. It has
    been decoded and compared. Raises FrameError if it decodes to something else.
    """
    found = _smallest(content, prefix, level)
    if decode(found, len(content), prefix if found.kind is FrameKind.DELTA else b"") != content:
        raise FrameError("what was compressed is not what comes out again")
    return found


def _smallest(content: bytes, prefix: bytes, level: int) -> StoredFrame:
    if not prefix:
        return _alone(content, level)
    delta = _compressed(content, prefix, level)
    cost = len(delta) + ROW_BYTES
    if cost * 8 > len(content):
        # A smaller delta beats any plain form of ordinary data, so that one is not made.
        plain = _alone(content, level)
        if cost > DELTA_SHARE * len(plain.data):
            return plain
    return StoredFrame(FrameKind.DELTA, delta)


def _alone(content: bytes, level: int) -> StoredFrame:
    if _is_dense(content, level):
        return StoredFrame(FrameKind.STORED, content)
    packed = _compressed(content, b"", level)
    if len(packed) >= len(content):
        return StoredFrame(FrameKind.STORED, content)
    return StoredFrame(FrameKind.PACKED, packed)


def _is_dense(content: bytes, level: int) -> bool:
    """Return whether samples of a large frame do not compress."""
    step = len(content) // _SAMPLES
    if step < 2 * _SAMPLE_BYTES:
        return False
    for at in range(0, step * _SAMPLES, step):
        sample = content[at : at + _SAMPLE_BYTES]
        if len(_compressed(sample, b"", level)) <= STORED_SHARE * len(sample):
            return False
    return True


def _compressed(content: bytes, prefix: bytes, level: int) -> bytes:
    total = len(content) + len(prefix)
    bits = max(_WINDOW_LEAST, total.bit_length())
    if not prefix:
        return _plain_compressor(level, bits).compress(content)
    tables = {"hash_log": bits - 2, "chain_log": bits - 3} if bits > _HASH_WORTH else {}
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level,
        source_size=total,
        dict_size=len(prefix),
        window_log=min(bits, _WINDOW_MOST),
        write_checksum=False,
        write_dict_id=False,
        **tables,
    )
    return zstandard.ZstdCompressor(compression_params=parameters, dict_data=_raw(prefix)).compress(content)


class _Plain(_local):
    """The compressors and the decompressor of frames without a prefix, those of each thread: new memory of
    their size costs some per cent of a frame."""

    def __init__(self) -> None:
        self.decoder = zstandard.ZstdDecompressor(max_window_size=_DECODED_WINDOW)
        self.made: dict[tuple[int, int], zstandard.ZstdCompressor] = {}
        """By level and bits."""


_plain = _Plain()


def _plain_compressor(level: int, bits: int) -> zstandard.ZstdCompressor:
    """Return a compressor of contents of less than 2^bits bytes without a prefix."""
    made = _plain.made
    known = made.get((level, bits))
    if known is None:
        parameters = zstandard.ZstdCompressionParameters.from_level(
            level,
            source_size=1 << bits,
            window_log=min(bits, _WINDOW_MOST),
            write_checksum=False,
            write_dict_id=False,
        )
        known = made[level, bits] = zstandard.ZstdCompressor(compression_params=parameters)
    return known


def decode(frame: StoredFrame, size: int, prefix: bytes = b"") -> bytes:
    """Return the `size` bytes that a frame has, given the bytes of its bases. Raises FrameError.

    Memory is bounded before anything is decoded: `size` is at most FRAME_BYTES, and what the frame says of
    itself has to agree.
    """
    if not 0 < size <= FRAME_BYTES or len(prefix) > PREFIX_BYTES:
        raise FrameError(f"expected at most {FRAME_BYTES} bytes against {PREFIX_BYTES}, found {size}")
    if frame.kind is FrameKind.STORED:
        if len(frame.data) != size:
            raise FrameError(f"expected {size} stored bytes, found {len(frame.data)}")
        return frame.data
    if frame.kind is FrameKind.DELTA and not prefix:
        raise FrameError("expected bases of a delta, found none")
    return inflate(frame.data, size, prefix)


def inflate(data: bytes, size: int, prefix: bytes = b"") -> bytes:
    """Return the `size` bytes that `data`, one zstd frame, decodes to. Raises FrameError."""
    try:
        if (said := zstandard.get_frame_parameters(data).content_size) != size:
            raise FrameError(f"expected {size} bytes, found a frame of {said}")
        decoder = _plain.decoder
        if prefix:
            decoder = zstandard.ZstdDecompressor(_raw(prefix), max_window_size=_DECODED_WINDOW)
        content = decoder.decompress(data, max_output_size=size)
    except zstandard.ZstdError as error:
        raise FrameError(f"it does not decode: {error}") from error
    if len(content) != size:
        raise FrameError(f"expected {size} bytes, found {len(content)}")
    return content


def _raw(prefix: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(prefix, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
