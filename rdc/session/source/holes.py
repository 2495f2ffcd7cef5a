"""Contents of the source's files with their holes, which are named and not read."""

from __future__ import annotations

from itertools import chain, islice

from blake3 import blake3

from rdc.files.facts.extents import data_bytes, holes
from rdc.files.root.source_file import SPAN_BYTES
from rdc.limits.wire import DATA_BYTES, HOLES_PER_MESSAGE
from rdc.protocol.messages import Data, Holes
from rdc.signature.tree import HollowDigest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.files.root.source_file import SourceFile


HOLLOW_BYTES = 16 << 10
"""Bytes that a file must take less than its size, to be looked at for holes."""


def has_holes(source: SourceFile) -> bool:
    """Return whether the file has a hole, and takes so much less than its size that it pays to look."""
    return source.allocated + HOLLOW_BYTES <= source.size and any(holes(source.fileno(), source.size))


def announced_holes(file: int, source: SourceFile) -> Holes | None:
    """Return what precedes the TreeAnswer of the file; None if it has no holes."""
    if not has_holes(source):
        return None
    return Holes(file, data_bytes(source.fileno(), source.size, source.allocated))


def digest_of(source: SourceFile, *, hollow: bool) -> bytes:
    """Return the digest of the whole content: the HollowDigest if the file is `hollow`, else BLAKE3. Raises
    FileError."""
    if not hollow:
        hasher = blake3()
        for span in source.spans():
            hasher.update(span)
        return hasher.digest()
    source.rest()
    digest, at = HollowDigest(), 0
    for start, end in chain(holes(source.fileno(), source.size), [(source.size, source.size)]):
        while at < start:
            span = source.pread(at, min(start - at, SPAN_BYTES))
            digest.update(span)
            at += len(span)
        digest.skip(end - start)
        at = end
    return digest.digest()


class SentContent:
    """The content of one file, as messages, and its digest.

    Where its holes are is asked while it is read, and holds for what is read: the caller calls
    `source.check_unchanged` afterwards.
    """

    def __init__(self, file: int, source: SourceFile) -> None:
        """`file`: its number in messages."""
        self._file = file
        self._source = source
        self.hollow = has_holes(source)
        """It comes with Holes."""
        self._hasher = HollowDigest() if self.hollow else blake3()

    def digest(self) -> bytes:
        """Return the digest of everything that was yielded: once, at the end."""
        return self._hasher.digest()

    def messages(self) -> Iterator[Holes | Data]:
        """Yield the content in order. Raises FileError."""
        if isinstance(self._hasher, HollowDigest):
            yield from self._with_holes(self._hasher)
            return
        for span in self._source.spans(DATA_BYTES):
            self._hasher.update(span)
            yield Data(self._file, span)

    def _with_holes(self, hasher: HollowDigest) -> Iterator[Holes | Data]:
        source = self._source
        source.rest()
        data = data_bytes(source.fileno(), source.size, source.allocated)
        found, at = holes(source.fileno(), source.size), 0
        while some := list(islice(found, HOLES_PER_MESSAGE)):
            ends = [at, *(end for _, end in some)]
            gaps = [start - end for (start, _), end in zip(some, ends, strict=False)]
            yield Holes(self._file, data, tuple(gaps), tuple([end - start for start, end in some]))
            yield from self._data_before(some, at, hasher)
            at = ends[-1]
        yield from self._data_before([(source.size, source.size)], at, hasher)

    def _data_before(self, ends: Sequence[tuple[int, int]], at: int, hasher: HollowDigest) -> Iterator[Data]:
        """Yield the content before each of these holes, from `at` on, in as few messages as possible."""
        parts, room = list[bytes](), DATA_BYTES
        for start, end in ends:
            while at < start:
                part = self._source.pread(at, min(start - at, room))
                hasher.update(part)
                parts.append(part)
                at, room = at + len(part), room - len(part)
                if not room:
                    yield Data(self._file, b"".join(parts) if len(parts) > 1 else part)
                    parts, room = [], DATA_BYTES
            hasher.skip(end - start)
            at = end
        if parts:
            yield Data(self._file, b"".join(parts))
