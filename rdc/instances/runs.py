"""Runs of equal chunks in files that differ: ranges that can be shared, aligned to blocks.

Chunks are cut where content says so, blocks lie where they lie: a run can be shared only where both sides
have it at the same distance from a block boundary. So edits in place are found (disk images, databases,
files that grew), and what an insertion moved by anything but whole blocks is not.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

from rdc.limits import RUN_CHUNKS
from rdc.model.instances import EqualRuns, Place
from rdc.records import dataclass, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.signature.tree import SignatureTree

__all__ = ["ChunkedFile", "RunFinder"]


@dataclass(frozen=True, slots=True)
class ChunkedFile:
    """One file, cut."""

    place: Place
    volume: bytes
    """Equal for files that can share blocks."""
    block_size: int
    """Bytes."""
    tree: SignatureTree
    protected: bool
    """May be shared with, not changed."""


@dataclass(frozen=True, slots=True)
class _Match:
    """A range of this file that a file before it, or this one further up, has too."""

    source: int
    source_offset: int
    offset: int
    length: int

    def joined(self, after: _Match, own: int) -> _Match | None:
        """Both as one, where they are neighbours on both sides; a run within one file (`own`) must not grow
        into itself."""
        length = self.length + after.length
        neighbours = (
            after.source == self.source
            and after.source_offset == self.source_offset + self.length
            and after.offset == self.offset + self.length
        )
        if not neighbours or (self.source == own and self.source_offset + length > self.offset):
            return None
        return _Match(self.source, self.source_offset, self.offset, length)

    def aligned(self, source: ChunkedFile, file: ChunkedFile) -> _Match | None:
        """Its whole blocks; the last may be cut short where both files end with it."""
        lead = -self.offset % file.block_size
        match = _Match(self.source, self.source_offset + lead, self.offset + lead, self.length - lead)
        ends = match.offset + match.length == file.tree.size
        source_ends = match.source_offset + match.length == source.tree.size
        length = match.length if ends and source_ends else match.length - match.length % file.block_size
        return replace(match, length=length) if length > 0 else None


@dataclass(slots=True)
class _Columns:
    source_offsets: array[int] = field(default_factory=lambda: array("Q"))
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    lengths: array[int] = field(default_factory=lambda: array("Q"))


class RunFinder:
    """Takes one file after the other, protected ones first; each is compared with all before it.

    Chunks are known by 8 bytes of their digest, since the kernel compares the bytes in any case.
    """

    def __init__(self, most_chunks: int = RUN_CHUNKS) -> None:
        self._most = most_chunks
        self._known: dict[bytes, int] = {}
        """First bytes of the digest, offset within a block, and volume, to file number and offset."""
        self._volumes: dict[bytes, int] = {}
        self._files: list[ChunkedFile] = []
        self._roots: set[tuple[bytes, bytes]] = set()
        self.forgotten = 0
        """Chunks that were not remembered for lack of room."""

    def add(self, file: ChunkedFile) -> list[EqualRuns]:
        """Runs of this file that files before it have, by source; none for a file wholly identical to one."""
        whole = (file.volume, file.tree.root)
        if whole in self._roots:
            return []
        self._roots.add(whole)
        number = len(self._files)
        self._files.append(file)
        found: dict[int, _Columns] = {}
        for run in _merged(self._matches(file, number), number):
            aligned = run.aligned(self._files[run.source], file)
            if aligned is not None and not file.protected:
                columns = found.setdefault(run.source, _Columns())
                columns.source_offsets.append(aligned.source_offset)
                columns.offsets.append(aligned.offset)
                columns.lengths.append(aligned.length)
        return [
            EqualRuns(
                self._files[source].place,
                file.place,
                columns.source_offsets,
                columns.offsets,
                columns.lengths,
            )
            for source, columns in found.items()
        ]

    def _matches(self, file: ChunkedFile, number: int) -> Iterator[_Match]:
        """Each chunk that is known already."""
        volume = self._volumes.setdefault(file.volume, len(self._volumes)).to_bytes(4, "little")
        for digest, offset, length in _chunks(file.tree):
            key = digest[:8] + (offset % file.block_size).to_bytes(4, "little") + volume
            place = self._known.get(key)
            if place is None:
                if len(self._known) < self._most:
                    self._known[key] = number << 64 | offset
                else:
                    self.forgotten += 1
                continue
            source, source_offset = place >> 64, place & ((1 << 64) - 1)
            # Within one file the kernel shares ranges that do not overlap.
            if source != number or source_offset + length <= offset:
                yield _Match(source, source_offset, offset, length)


def _chunks(tree: SignatureTree) -> Iterator[tuple[bytes, int, int]]:
    level = tree.levels[0]
    offset = 0
    for record, (length, count) in enumerate(zip(level.lengths, level.counts, strict=True)):
        digest = level.digest(record)
        for _ in range(count):
            yield digest, offset, length
            offset += length


def _merged(matches: Iterable[_Match], own: int) -> Iterator[_Match]:
    """Neighbours become one run."""
    run: _Match | None = None
    for match in matches:
        joined = None if run is None else run.joined(match, own)
        if joined is None and run is not None:
            yield run
        run = match if joined is None else joined
    if run is not None:
        yield run
