"""An open base: it reads chunks for a rebuild and compares each with the base's signature."""

from __future__ import annotations

from array import array
from itertools import accumulate
from operator import mul

from blake3 import blake3

from rdc.errors import printable
from rdc.kernel.blake3_many import name_parts
from rdc.session.trees.errors import MismatchError
from rdc.signature.digests import DIGEST_BYTES
from rdc.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.files.root.source_file import SourceFile
    from rdc.signature.tree import SignatureTree

__all__ = ["Chunks", "OpenBase"]

READ_BYTES = 1 << 20
"""Bytes of a base read, hashed and written at a time."""


class Chunks(NamedTuple):
    """Consecutive chunks, or one repeated chunk."""

    content: bytes
    lengths: array[int]
    """Bytes of each chunk."""
    digests: bytes
    """32 bytes per chunk."""
    times: int
    """How often the content occurs in a row."""


class OpenBase:
    """A base with its signature. All content it returns was hashed in memory and fits the signature.

    Every method that reads raises MismatchError if the content changed, FileError if it cannot be read.
    """

    __slots__ = ("_offsets", "source", "tree")

    def __init__(self, source: SourceFile, tree: SignatureTree) -> None:
        self.source = source
        self.tree = tree
        self._offsets: array[int] | None = None
        """Offsets in the file of the records of level 0, computed at the first use."""

    def chunk(self, row: int, length: int) -> Chunks:
        """Returns the chunk of one record, of `length` bytes."""
        content = self.source.pread(self._offset(row), length)
        return Chunks(content, array("Q", (length,)), self._checked(content, row), 1)

    def chunks(self, first: int, stop: int) -> Iterator[Chunks]:
        """Yields the chunks of records [first, stop), about 1 MiB at a time. Repeated chunks come alone."""
        level = self.tree.levels[0]
        at, row = self._offset(first), first
        while row < stop:
            count = level.counts[row]
            if count > 1:
                length = level.lengths[row]
                content = self.source.pread(at, length)
                yield Chunks(content, array("Q", (length,)), self._checked(content, row), count)
                at += length * count
                row += 1
                continue
            end, size = row, 0
            while end < stop and level.counts[end] == 1 and (size == 0 or size < READ_BYTES):
                size += level.lengths[end]
                end += 1
            content = self.source.pread(at, size)
            lengths = array("Q", level.lengths[row:end])
            digests = name_parts(content, lengths)
            if digests != level.digests[row * DIGEST_BYTES : end * DIGEST_BYTES]:
                raise self._changed()
            yield Chunks(content, lengths, digests, 1)
            at += size
            row = end

    def lengths(self, first: int, stop: int) -> Iterator[int]:
        """Yields the length of each chunk of records [first, stop), in bytes."""
        level = self.tree.levels[0]
        for row in range(first, stop):
            yield from [level.lengths[row]] * level.counts[row]

    def _checked(self, chunk: bytes, row: int) -> bytes:
        """Returns the digest of a chunk, which has to be the signed one."""
        digest = blake3(chunk).digest()
        if digest != self.tree.levels[0].digest(row):
            raise self._changed()
        return digest

    def _offset(self, row: int) -> int:
        if self._offsets is None:
            level = self.tree.levels[0]
            self._offsets = array("Q", accumulate(map(mul, level.lengths, level.counts), initial=0))
        return self._offsets[row]

    def _changed(self) -> MismatchError:
        path = self.source.path
        return MismatchError(path, f"{printable(path)}: the old file changed while it was used")
