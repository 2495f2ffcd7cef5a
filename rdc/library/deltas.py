"""`rdc.delta`, `rdc.patch` and `rdc.signature_delta`: what turns one content into another, as bytes.
DELTA.md has the format.

The chunks of the new content that the base has become copies. What lies between them is compressed, by
`delta` against the bytes that the base has there: this finds what is equal within a chunk. A delta names its
base by the root of its signature tree and the new content by its BLAKE3 digest. `patch` compares both, and
gives nothing out before the second one has matched.
"""

from __future__ import annotations

import io
import os
import struct
from contextlib import contextmanager
from itertools import accumulate

from blake3 import blake3

from rdc.chunking import Chunker, ChunkParams, name_chunks
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.files.own.output_file import Output, OutputKind, write_output
from rdc.lean.checks import check_argument, checked_buffer, checked_count, found_type
from rdc.lean.typed import Protocol
from rdc.library import public
from rdc.library.streams import BinaryReader, sign
from rdc.signature.codec import decode_signature
from rdc.signature.tree import SignatureTree
from rdc.store.frames import FRAME_BYTES, PREFIX_BYTES, FrameError, FrameKind, StoredFrame, decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeGuard

    from typing_extensions import Buffer

MAGIC = b"RDCD"
VERSION = 1

PATCHED_BYTES = 1 << 30
"""The most bytes that `patch` makes unless its caller sets another limit: a delta of a few bytes may ask for
any number of them."""

_HEAD = struct.Struct("<4sBIIQ32s")
_COPY = struct.Struct("<QQ")
_FRAME = struct.Struct("<BIIQI")
_END = struct.Struct("<Q32s")

_TAG_END, _TAG_COPY, _TAG_FRAME = b"\0", b"\1", b"\2"

_MEAN_LEAST, _CHUNKS = 1024, 1 << 18
"""A base is cut into chunks of about 1 KiB, or into about 2^18 if it is larger than 256 MiB."""

_AROUND, _SPAN = 64 << 10, 1 << 20
"""Bytes of the base on both sides of a gap that its content is compressed against; bytes read at once."""

_LEVEL = 6


class DeltaError(RdcError):
    """Bytes that should be a delta are not one or are damaged, or it is one for another base.

    >>> import rdc
    >>> delta = rdc.delta(b"old", b"new")
    >>> try:
    ...     rdc.patch(b"another base", delta)
    ... except rdc.DeltaError as error:
    ...     print(error)
    the delta is for another base: expected 3 bytes, found 12
    """

    code = ExitCode.STREAM


@public
def delta(
    old: Buffer | str | os.PathLike[str] | BinaryReader,
    new: Buffer | str | os.PathLike[str] | BinaryReader,
    *,
    to: str | os.PathLike[str] | None = None,
) -> bytes:
    """Return what `patch` needs, besides `old`, to make `new`.

    Contents are bytes or another buffer, or the path of a file as str or pathlib.Path, or a binary file
    object: `old` is read anywhere, so it must be seekable; `new` only forwards. `to`: the path of a file for
    the delta; nothing is returned then. Raises TypeError, OSError and RdcError.

        >>> import rdc
        >>> old = b"".join(b"line %d\\n" % number for number in range(10_000))
        >>> new = old.replace(b"line 500\\n", b"another line\\n")
        >>> delta = rdc.delta(old, new)
        >>> len(delta) < 300
        True
        >>> rdc.patch(old, delta) == new
        True
    """
    with _opened("delta", "old", old) as base, _reading("delta", "new", new) as spans:
        params = ChunkParams.for_mean(min(max(_MEAN_LEAST, base.size // _CHUNKS), 10 << 20))
        return _result("delta", _encoded(base.signed(params), base, spans), to, _DELTA)


@public
def signature_delta(
    signature: SignatureTree | bytes,
    new: Buffer | str | os.PathLike[str] | BinaryReader,
    *,
    to: str | os.PathLike[str] | None = None,
) -> bytes:
    """Return a delta for a base of which only the signature is at hand.

    `signature`: what `rdc.sign` or `rdc.sign_file` returned, or its `to_bytes()`. The smaller its chunks, the
    smaller the delta: an edit costs the chunk that it lies in. `new` and `to` are those of `delta`. Raises
    TypeError, OSError and RdcError.

        >>> import rdc
        >>> old = b"".join(b"line %d\\n" % number for number in range(10_000))
        >>> signature = rdc.sign(old, rdc.ChunkParams.for_mean(1024)).to_bytes()
        >>> delta = rdc.signature_delta(signature, old + b"one more")
        >>> rdc.patch(old, delta)[-8:]
        b'one more'
    """
    check_argument("signature_delta", "signature", signature, SignatureTree, bytes)
    tree = decode_signature(signature) if isinstance(signature, bytes) else signature
    with _reading("signature_delta", "new", new) as spans:
        return _result("signature_delta", _encoded(tree, None, spans), to, _DELTA)


@public
def patch(
    old: Buffer | str | os.PathLike[str] | BinaryReader,
    delta: Buffer | str | os.PathLike[str] | BinaryReader,
    *,
    to: str | os.PathLike[str] | None = None,
    limit: int = PATCHED_BYTES,
) -> bytes:
    """Return the content that `delta` makes of `old`.

    `old` and `delta` are contents as those of `rdc.delta`. `to`: the path of a file for the result, which may
    be that of `old`; nothing is returned then. It is written aside and replaces the file once it is verified.
    `limit`: the most bytes of the result. Raises DeltaError for a delta that is damaged, too large or for
    another base, TypeError, OSError and RdcError.

        >>> import rdc
        >>> with open("file", "wb") as file:
        ...     _ = file.write(b"the old content")
        >>> _ = rdc.delta("file", b"the new content", to="delta")
        >>> _ = rdc.patch("file", "delta", to="file")
        >>> rdc.patch("file", rdc.delta("file", b"newer"))
        b'newer'
    """
    limit = checked_count("patch", "limit", limit, 0)
    with _opened("patch", "old", old) as base, _reading("patch", "delta", delta) as spans:
        reader = _Reader(spans)
        _check_base(reader, base)
        return _result("patch", _patched(reader, base, limit), to, _PATCHED)


# --- contents: buffers, paths and file objects --------------------------------------------------------------


class _Seekable(BinaryReader, Protocol):
    """A binary file object whose position can be set."""

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int: ...


def _is_reader(given: object) -> TypeGuard[BinaryReader]:
    """Return whether this has read(). What it returns is checked where it is read."""
    return callable(getattr(given, "read", None))


def _is_seekable(given: object) -> TypeGuard[_Seekable]:
    return callable(getattr(given, "seek", None))


def _buffer_file(function: str, name: str, given: object) -> io.BytesIO:
    """Return a buffer as a file. Raises TypeError for any other value."""
    # Only of bytes does BytesIO make no copy.
    return io.BytesIO(given if isinstance(given, bytes) else checked_buffer(function, name, given))


class _Base:
    """A content that is read anywhere."""

    def __init__(self, file: _Seekable) -> None:
        self._file = file
        self.size = file.seek(0, os.SEEK_END)

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes at an offset. Raises DeltaError if they are missing: the file became shorter."""
        self._file.seek(offset)
        found = _read_all(self._file, length)
        if len(found) < length:
            raise DeltaError(f"the base ends at byte {offset + len(found)}: it changed while it was read")
        return found

    def signed(self, params: ChunkParams) -> SignatureTree:
        self._file.seek(0)
        tree = sign(self._file, params)
        if tree.size != self.size:
            raise DeltaError(f"the base changed from {self.size} bytes to {tree.size} while it was read")
        return tree


def _read_all(file: BinaryReader, length: int) -> bytes:
    spans: list[bytes] = []
    while length:
        span = file.read(min(length, _SPAN))
        if not span:
            break
        spans.append(span)
        length -= len(span)
    return spans[0] if len(spans) == 1 else b"".join(spans)


@contextmanager
def _opened(function: str, name: str, given: object) -> Iterator[_Base]:
    if isinstance(given, (str, os.PathLike)):
        with open(given, "rb") as file:
            yield _Base(file)
    elif _is_seekable(given):
        yield _Base(given)
    elif _is_reader(given):
        raise TypeError(f"{function}.{name}: expected a file that can seek, found {found_type(given)}")
    else:
        yield _Base(_buffer_file(function, name, given))


@contextmanager
def _reading(function: str, name: str, given: object) -> Iterator[Iterator[bytes]]:
    if isinstance(given, (str, os.PathLike)):
        with open(given, "rb") as file:
            yield _spans_of(function, name, file)
    elif _is_reader(given):
        yield _spans_of(function, name, given)
    else:
        yield _spans_of(function, name, _buffer_file(function, name, given))


def _spans_of(function: str, name: str, file: BinaryReader) -> Iterator[bytes]:
    while True:
        span: object = file.read(_SPAN)
        if not isinstance(span, bytes):
            raise TypeError(f"{function}.{name}.read: expected bytes, found {found_type(span)}")
        if not span:
            return
        yield span


# --- from contents to a delta -------------------------------------------------------------------------------


class _Copies:
    """The place of a chunk in the base. Among several, it prefers the one that continues the last copy."""

    def __init__(self, tree: SignatureTree) -> None:
        level = tree.levels[0]
        self._digests, self._lengths, self._counts = level.digests, level.lengths, level.counts
        sizes = (length * count for length, count in zip(level.lengths, level.counts, strict=True))
        self._starts = list(accumulate(sizes, initial=0))
        self._records: dict[bytes, int] = {}
        for record in range(level.records - 1, -1, -1):
            self._records[level.digest(record)] = record
        self._next = (0, 0)

    def find(self, digest: bytes) -> int | None:
        """Return the offset of a chunk with this digest; None: the base has none."""
        record, item = self._next
        if record == len(self._lengths) or self._digests[record * 32 : record * 32 + 32] != digest:
            found = self._records.get(digest)
            if found is None:
                return None
            record, item = found, 0
        offset = self._starts[record] + item * self._lengths[record]
        self._next = (record, item + 1) if item + 1 < self._counts[record] else (record + 1, 0)
        return offset


class _Gap:
    """New bytes that follow byte `after` of the base."""

    def __init__(self, base: _Base | None) -> None:
        self._base = base
        self._content = bytearray()
        self.after = 0

    def add(self, view: Buffer) -> Iterator[bytes]:
        """Yield the frames that are full."""
        self._content += view
        while len(self._content) >= FRAME_BYTES:
            content = bytes(self._content[:FRAME_BYTES])
            del self._content[:FRAME_BYTES]
            yield self._frame(content, self.after + FRAME_BYTES)
            self.after += FRAME_BYTES

    def finish(self, before: int) -> Iterator[bytes]:
        """Yield the frame of the rest. `before`: where the base goes on."""
        if self._content:
            fits = 0 <= before - self.after <= PREFIX_BYTES - 2 * _AROUND
            end = before if fits else self.after + len(self._content)
            yield self._frame(bytes(self._content), end)
            self._content.clear()

    def _frame(self, content: bytes, end: int) -> bytes:
        first, prefix = 0, b""
        if self._base is not None and self._base.size:
            first = min(max(0, self.after - _AROUND), self._base.size)
            last = min(end + _AROUND, self._base.size, first + PREFIX_BYTES)
            prefix = self._base.read(first, last - first) if last > first else b""
        frame = encode(content, prefix, level=_LEVEL)
        if frame.kind is not FrameKind.DELTA:
            first, prefix = 0, b""
        head = _FRAME.pack(frame.kind, len(content), len(frame.data), first, len(prefix))
        return b"".join((_TAG_FRAME, head, frame.data))


def _encoded(tree: SignatureTree, base: _Base | None, spans: Iterator[bytes]) -> Iterator[bytes]:
    params = tree.params
    yield _HEAD.pack(MAGIC, VERSION, params.min_size, params.max_size, tree.size, tree.root)
    copies, gap = _Copies(tree), _Gap(base)
    digest, size = blake3(), 0
    start = end = -1  # the copy that may still grow
    for views in _chunks(spans, params):
        for view, name in zip(views, name_chunks(views).digests, strict=True):
            length = len(memoryview(view))
            digest.update(view)
            size += length
            offset = copies.find(name)
            if offset is not None and offset == end:
                end += length
                continue
            if end > start:
                yield _TAG_COPY + _COPY.pack(start, end - start)
                gap.after, start, end = end, -1, -1
            if offset is None:
                yield from gap.add(view)
            else:
                yield from gap.finish(offset)
                start, end = offset, offset + length
    if end > start:
        yield _TAG_COPY + _COPY.pack(start, end - start)
        gap.after = end
    yield from gap.finish(tree.size)
    yield _TAG_END + _END.pack(size, digest.digest())


def _chunks(spans: Iterable[bytes], params: ChunkParams) -> Iterator[list[Buffer]]:
    chunker = Chunker(params)
    for span in spans:
        yield chunker.chunk_views(span)
    yield chunker.last_chunk_views()


# --- from a delta to the new content ------------------------------------------------------------------------


class _Reader:
    """The bytes of a delta in order."""

    def __init__(self, spans: Iterator[bytes]) -> None:
        self._spans = spans
        self._rest = b""
        self.at = 0

    def take(self, length: int) -> bytes:
        """Return the next bytes. `length` is bounded by the caller. Raises DeltaError at the end."""
        while len(self._rest) < length:
            span = next(self._spans, b"")
            if not span:
                raise self.damaged(f"{length} more bytes", f"{len(self._rest)}")
            self._rest += span
        found, self._rest = self._rest[:length], self._rest[length:]
        self.at += length
        return found

    def check_end(self) -> None:
        if self._rest or next(self._spans, b""):
            raise self.damaged("the end", "more bytes")

    def damaged(self, expected: str, found: str) -> DeltaError:
        return DeltaError(
            f"a damaged delta: expected {expected} at byte {self.at}, found {found}; make it again"
        )


def _check_base(reader: _Reader, base: _Base) -> None:
    """Read the head, and raise DeltaError unless the delta is for this base."""
    magic, version, min_size, max_size, size, root = _HEAD.unpack(reader.take(_HEAD.size))
    if magic != MAGIC:
        raise DeltaError(f"not a delta: expected {MAGIC!r} at its begin, found {magic!r}")
    if version != VERSION:
        raise DeltaError(f"a delta of version {version}: this rdc knows {VERSION}; update rdc")
    try:
        params = ChunkParams(min_size, max_size)
    except UsageError as error:
        raise DeltaError(f"a damaged delta: {error}; make it again") from None
    if size != base.size:
        raise DeltaError(f"the delta is for another base: expected {size} bytes, found {base.size}")
    if base.signed(params).root != root:
        raise DeltaError("the delta is for another base of the same size: the digests differ")


def _patched(reader: _Reader, base: _Base, limit: int) -> Iterator[bytes]:
    """Yield the new content; raise DeltaError at the end if it is not the one that the delta is of."""
    digest, size = blake3(), 0
    while (tag := reader.take(1)) != _TAG_END:
        if tag == _TAG_COPY:
            offset, length = _COPY.unpack(reader.take(_COPY.size))
            if not (length and offset <= base.size and length <= base.size - offset):
                raise reader.damaged(f"a copy of up to {base.size} bytes", f"{length} from byte {offset}")
            _check_size(size + length, limit)
            for at in range(offset, offset + length, _SPAN):
                span = base.read(at, min(_SPAN, offset + length - at))
                digest.update(span)
                yield span
        elif tag == _TAG_FRAME:
            span = _content(reader, base, size, limit)
            length = len(span)
            digest.update(span)
            yield span
        else:
            raise reader.damaged("a copy, content or the end", f"tag {tag[0]}")
        size += length
    if _END.unpack(reader.take(_END.size)) != (size, digest.digest()):
        raise DeltaError("the result has another digest than the delta says; nothing was written")
    reader.check_end()


def _content(reader: _Reader, base: _Base, size: int, limit: int) -> bytes:
    kind, length, stored, first, prefix = _FRAME.unpack(reader.take(_FRAME.size))
    if kind > FrameKind.DELTA or not (0 < length <= FRAME_BYTES and 0 < stored <= length):
        raise reader.damaged(f"content of up to {FRAME_BYTES} bytes", f"{stored} for {length} of kind {kind}")
    if prefix > PREFIX_BYTES or first > base.size or prefix > base.size - first:
        raise reader.damaged(f"up to {PREFIX_BYTES} bytes of the base", f"{prefix} from byte {first}")
    _check_size(size + length, limit)
    frame = StoredFrame(FrameKind(kind), reader.take(stored))
    try:
        return decode(frame, length, base.read(first, prefix) if kind == FrameKind.DELTA else b"")
    except FrameError as error:
        raise DeltaError(
            f"a damaged delta: content before byte {reader.at}: {error}; make it again"
        ) from error


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise DeltaError(f"the result would have more than {limit} bytes; set limit= to allow it")


# --- results ------------------------------------------------------------------------------------------------

_DELTA = OutputKind("a delta", lambda head: head.startswith(MAGIC))
_PATCHED = OutputKind("the result of a patch", None)


def _result(
    function: str, spans: Iterator[bytes], to: str | os.PathLike[str] | None, kind: OutputKind
) -> bytes:
    """Return the joined spans; with `to`, write them there and return nothing."""
    if to is None:
        return b"".join(spans)
    check_argument(function, "to", to, str, os.PathLike)
    write_output(Output(os.fsencode(to), kind, overwrite=True if kind is _PATCHED else None), spans)
    return b""
