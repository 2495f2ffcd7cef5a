"""The bytes of a file of JSON lines, unpacked if its name ends in .gz or .zst."""

from __future__ import annotations

import os
import zlib

from rdc.documents.read.file_kinds import Packing, packing_of
from rdc.errors import RdcError
from rdc.lean.typed import Protocol
from rdc.limits.searches import (
    READ_BYTES,
    UNPACKED_BYTES_LEAST,
    UNPACKED_SHARE,
    WINDOW_BYTES_LEAST,
    WINDOW_BYTES_MOST,
    WINDOW_SHARE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["UNPACK_ERRORS", "Readable", "TrailingBytesError", "spans_of"]

UNPACK_ERRORS = (OSError, EOFError, zlib.error, RdcError)
"""The exceptions of a stream that cannot be read to its end."""

GZIP_BYTES = 4 << 10
"""Packed bytes taken at a time. Damage costs no more than what they would become."""

ZSTD_BYTES = 1 << 10
"""Bytes unpacked at a time. Four bytes can be a block of 128 KiB, so they become 32 MiB at most."""

_GZIP_MAGIC = b"\x1f\x8b"
_EXTRA, _NAME, _COMMENT, _HEADER_CRC = 4, 8, 16, 2
_HEADER_BYTES = 1 << 20
"""Bytes of a name or comment in a header of gzip, which have no length."""


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class TrailingBytesError(RdcError):
    """Bytes after the end of a packed stream that begin no other one. All before them was read."""


def spans_of(path: bytes, stream: Readable) -> Iterator[bytes]:
    """Yield the content in spans. Raises one of UNPACK_ERRORS after all that could be read."""
    packing = packing_of(path)
    if packing is Packing.GZIP:
        yield from _Members(stream).spans()
    elif packing is Packing.ZSTD:
        yield from _frames(stream)
    else:
        while span := stream.read(READ_BYTES):
            yield span


class _Members:
    """The members of a .gz file one after another (RFC 1952).

    GzipFile raises before it returns what it unpacked in front of damage, and knows no trailing bytes.
    """

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._waiting = b""

    def spans(self) -> Iterator[bytes]:
        begun = False
        while self._more(1):
            if begun and not (self._more(2) and self._waiting.startswith(_GZIP_MAGIC)):
                self._check_rest()
                return
            self._take_header()
            yield from self._member()
            begun = True

    def _member(self) -> Iterator[bytes]:
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        checksum = size = 0
        while not unpacker.eof:
            packed = self._waiting[:GZIP_BYTES] or self._stream.read(GZIP_BYTES)
            if not packed:
                raise EOFError("the compressed file ends before its end marker was reached")
            self._waiting = self._waiting[len(packed) :] if self._waiting else b""
            while packed and not unpacker.eof:
                span = unpacker.decompress(packed, READ_BYTES)
                packed = unpacker.unconsumed_tail
                checksum, size = zlib.crc32(span, checksum), size + len(span)
                if span:
                    yield span
        self._waiting = unpacker.unused_data + self._waiting
        trailer = self._take(8)
        found = checksum.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")
        if trailer != found:
            raise RdcError("the checksum or the length at its end differs from what was unpacked")

    def _take_header(self) -> None:
        head = self._take(10)
        if not head.startswith(_GZIP_MAGIC) or head[2] != zlib.DEFLATED:
            raise RdcError("expected gzip, found other bytes")
        flags = head[3]
        if flags & _EXTRA:
            self._take(int.from_bytes(self._take(2), "little"))
        for flag in (_NAME, _COMMENT):
            if flags & flag:
                self._take_text()
        if flags & _HEADER_CRC:
            self._take(2)

    def _take_text(self) -> None:
        at = -1
        while (at := self._waiting.find(b"\0")) < 0:
            if len(self._waiting) > _HEADER_BYTES or not self._more(len(self._waiting) + 1):
                raise EOFError("the header of gzip has no end")
        self._waiting = self._waiting[at + 1 :]

    def _take(self, count: int) -> bytes:
        if not self._more(count):
            raise EOFError("the compressed file ends before its end marker was reached")
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def _more(self, count: int) -> bool:
        """Return whether at least `count` bytes are left, and have them waiting."""
        while len(self._waiting) < count:
            packed = self._stream.read(GZIP_BYTES)
            if not packed:
                return False
            self._waiting += packed
        return True

    def _check_rest(self) -> None:
        """Pass over zeros, with which tapes and block devices fill up. Raises TrailingBytesError for
        others."""
        rest = self._waiting
        while rest and not rest.strip(b"\0"):
            rest = self._stream.read(READ_BYTES)
        if rest:
            raise TrailingBytesError("the bytes after the end of the compressed data are no gzip; left out")


def _frames(stream: Readable) -> Iterator[bytes]:
    """The frames of a .zst file one after another. A last frame without its end is an error."""
    # Only such files need it, and it takes some milliseconds.
    import zstandard

    most = _window_bytes()
    unpacker = zstandard.ZstdDecompressor(max_window_size=most).decompressobj()
    begun, left = False, UNPACKED_BYTES_LEAST
    while packed := stream.read(ZSTD_BYTES):
        left += UNPACKED_SHARE * len(packed)
        while packed:
            if unpacker.eof:
                unpacker = zstandard.ZstdDecompressor(max_window_size=most).decompressobj()
            try:
                span = unpacker.decompress(packed)
            except zstandard.ZstdError as error:
                raise RdcError(_zstd_reason(str(error), most)) from error
            begun = not unpacker.eof
            packed = unpacker.unused_data if unpacker.eof else b""
            if span:
                yield span
            left -= len(span)
            if left < 0:
                raise RdcError(
                    f"it becomes more than {UNPACKED_SHARE} times its size; the rest is left out; unpack it"
                    " if it is meant so"
                )
    if begun:
        raise EOFError("the last frame has no end")


def _window_bytes() -> int:
    """Return the bytes that unpacking one file may remember: WINDOW_SHARE of the memory of this machine,
    within bounds."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        memory = 0
    allowed = min(max(int(memory * WINDOW_SHARE), WINDOW_BYTES_LEAST), WINDOW_BYTES_MOST)
    return 1 << allowed.bit_length() - 1


def _zstd_reason(reason: str, most: int) -> str:
    if "too much memory" not in reason:
        return reason
    return (
        f"its window is larger than {most >> 20} MiB, a quarter of the memory here at most; compress it again"
        " without --long or --ultra"
    )
