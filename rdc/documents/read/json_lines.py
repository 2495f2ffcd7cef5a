"""Reads the rows of a JSONL file: one object a line, whose field holds the text. A file is unpacked if
its name ends in .gz or .zst.
"""

from __future__ import annotations

import json
import os
import zlib
from array import array

from rdc.documents.read.file_kinds import FileRange, Packing, json_decoder, packing_of
from rdc.documents.read.text_batch import BatchBuilder, RowProblems, TextBatch
from rdc.errors import RdcError, one_line, printable
from rdc.kernel import json_texts
from rdc.lean.typed import Protocol
from rdc.limits import (
    DOCUMENT_BYTES,
    READ_BYTES,
    UNPACKED_BYTES_LEAST,
    UNPACKED_SHARE,
    WINDOW_BYTES_LEAST,
    WINDOW_BYTES_MOST,
    WINDOW_SHARE,
)
from rdc.limits import TEXT_LINE_BYTES as LINE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from typing_extensions import Buffer


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
    """Yield the frames of a .zst file one after another. A last frame without its end is an error."""
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


def line_spans(stream: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """Yield whole lines, in spans of at most READ_BYTES: those that begin from `start` on and before `end`.

    The last one may end behind `end`. So ranges that follow one another have each line once. A range within
    one line has none, and reads no further than `end`. Raises OSError.
    """
    if start >= end:
        return
    # A line begins where the byte before it ends another one.
    at = max(start - 1, 0)
    stream.seek(at)
    begun = start == 0
    while span := stream.read(READ_BYTES):
        first = 0
        if not begun:
            newline = span.find(b"\n", 0, max(end - 1 - at, 0))
            if newline < 0:
                at += len(span)
                if at >= end - 1:
                    return
                continue
            begun, first = True, newline + 1
        last = span.find(b"\n", max(end - 1 - at, first))
        if last >= 0:
            yield span[first : last + 1]
            return
        if first < len(span):
            yield span[first:]
        at += len(span)


# Reads the rows of a JSONL file: one object a line, whose field holds the text.

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, which some programs put before the first line."""

_BAD_LINE = (KeyError, TypeError, AttributeError, ValueError, RecursionError)
"""The exceptions of a line that is no object with a text in the field."""


class JsonLines:
    """Reads the lines of a file, or those of one range of it.

    Empty lines are no rows, but count as lines. In a range, lines count from its first one.
    """

    def __init__(self, path: bytes, field: str, problems: RowProblems, range_: FileRange | None) -> None:
        self._path = path
        self._problems = problems
        self._range = range_
        self._lines = _Lines(path, field, problems)
        self.complete = True
        """False if it was not read to its end."""

    @property
    def lines(self) -> int:
        """Lines read."""
        return self._lines.row - 1

    def batches(self, stream: BinaryIO) -> Iterator[TextBatch]:
        """Yield the texts of the lines. A line without a text is added to the problems. So is the end of
        what can be read."""
        lines, range_ = self._lines, self._range
        spans = (
            spans_of(self._path, stream) if range_ is None else line_spans(stream, range_.start, range_.end)
        )
        try:
            for block in line_blocks(spans):
                yield from lines.take(block)
        except TrailingBytesError as error:
            self._problems.note(str(error))
        except UNPACK_ERRORS as error:
            self.complete = False
            text = one_line(str(error) or type(error).__name__)
            self._problems.note(f"cannot read on: {text}", lines.row)
            self._problems.count += 1
        yield from lines.batches.rest()


class _Lines:
    def __init__(self, path: bytes, field: str, problems: RowProblems) -> None:
        self.batches = BatchBuilder(path)
        self.row = 1
        """The row of the next line."""
        self._field = field
        self._name = field.encode("utf-8", "surrogatepass")
        self._problems = problems
        self._loads = json_decoder().decode

    def take(self, block: Buffer | None) -> Iterator[TextBatch]:
        """Take lines; None is one that is too long. Yields the batches that they fill."""
        if block is None:
            self._problems.add(self.row, f"a line of more than {LINE_BYTES:,} bytes")
            self.row += 1
            return
        texts, packed, left = json_texts(block, self._name, DOCUMENT_BYTES)
        bounds, lines = array("q", packed), None
        at = 0
        while at < len(left):
            end = left.find(1, at)
            end = len(left) if end < 0 else end
            if end > at:
                yield from self.batches.extend(self.row, texts, bounds[at : end + 1])
                self.row += end - at
            if end < len(left):
                lines = lines or bytes(block).split(b"\n")
                yield from self._take_line(lines[end])
            at = end + 1

    def _take_line(self, line: bytes) -> Iterator[TextBatch]:
        """Take what the kernel left: a rare line or a bad one."""
        row = self.row
        self.row += 1
        line = line.removeprefix(BYTE_ORDER_MARK)
        if not line.strip():
            return  # a file may have millions of empty ones
        try:
            text = self._loads(line.decode())[self._field].encode()
            if len(text) > DOCUMENT_BYTES:
                raise ValueError(f"{len(text):,} bytes of text, {DOCUMENT_BYTES:,} are the most")
        except _BAD_LINE as error:
            if line.decode("utf-8", "replace").strip():
                self._problems.add(row, _reason(line, self._field, self._loads, error))
            return
        yield from self.batches.add(row, text)


def line_blocks(spans: Iterator[bytes]) -> Iterator[Buffer | None]:
    """Yield all lines, some in a block. None stands for a line of more than LINE_BYTES, which is never in
    memory whole."""
    parts: list[bytes] = []
    waiting = 0
    for span in spans:
        first, end = span.find(b"\n"), span.rfind(b"\n")
        if first < 0:
            waiting += len(span)
            # Bytes after the limit are dropped, so that the line stays known as too long.
            if waiting <= LINE_BYTES + 1:
                parts.append(span)
            elif parts:
                parts = []
            continue
        start = 0
        if waiting + first > LINE_BYTES:
            yield None
            start = first + 1
        elif waiting:
            yield b"".join([*parts, span[:first]])
            start = first + 1
        if start <= end:
            yield memoryview(span)[start:end]
        parts, waiting = [span[end + 1 :]], len(span) - end - 1
    if waiting > LINE_BYTES:
        yield None
    elif waiting:
        yield b"".join(parts)


def _reason(line: bytes, field: str, loads: Callable[[str], object], error: Exception) -> str:
    """Say what was expected and found."""
    shown = printable(field)
    if isinstance(error, UnicodeDecodeError):
        return f"expected UTF-8, found byte 0x{error.object[error.start]:02x} at byte {error.start + 1}"
    if isinstance(error, UnicodeEncodeError):
        return f"expected text in '{shown}', found half of a surrogate pair"
    if isinstance(error, KeyError):
        return f"expected a field '{shown}', found none; --field names another"
    if isinstance(error, (TypeError, AttributeError)):
        found = loads(line.decode())
        if not isinstance(found, dict):
            return f"expected an object, found {_kind(found)}"
        return f"expected a text in '{shown}', found {_kind(found.get(field))}"
    if isinstance(error, RecursionError):
        return "expected an object, found values nested too deep"
    if isinstance(error, json.JSONDecodeError):
        return f"expected an object, found bad JSON at character {error.pos + 1}"
    return one_line(str(error))


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "an array", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
