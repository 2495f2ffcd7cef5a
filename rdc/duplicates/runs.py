"""RunFinder: finds equal ranges in files that differ, aligned to blocks so that they can be shared.

Chunk boundaries depend on content, block boundaries do not. A run of equal chunks can be shared only if it
lies at the same distance from a block boundary in both files. So edits in place are found (disk images,
databases, files that grew). Content shifted by an insertion is found only if the shift is a multiple of the
block size.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

from rdc.lean.records import dataclass, field, replace
from rdc.limits.searches import RUN_CHUNKS
from rdc.model.duplicates import EqualRuns, RootedPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.signature.tree import SignatureTree

__all__ = ["ChunkedFile", "RunFinder"]


@dataclass(frozen=True, slots=True)
class ChunkedFile:
    """One file with its chunks."""

    location: RootedPath
    volume: bytes
    """Id of the volume. Files with equal ids can share blocks."""
    block_size: int
    """Bytes."""
    tree: SignatureTree
    protected: bool
    """Whether the file may be shared with but not changed."""


@dataclass(frozen=True, slots=True)
class _Match:
    """A range of this file that an earlier file, or this one at a lower offset, contains too."""

    source: int
    source_offset: int
    offset: int
    length: int

    def joined(self, after: _Match, own: int) -> _Match | None:
        """Both matches as one if they are adjacent in both files, else None. A match within one file (`own`)
        must not overlap its source."""
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
        """The whole blocks of the match. Its last block may be short if both files end with it."""
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
    """Takes files one after another, protected ones first. Each is compared with all files before it.

    Chunks are identified by 8 bytes of their digest; the kernel compares the bytes before it shares them.
    """

    def __init__(self, most_chunks: int = RUN_CHUNKS) -> None:
        self._most = most_chunks
        self._known: dict[bytes, int] = {}
        """File number and offset, by the first bytes of the digest, the offset within a block, and the
        volume."""
        self._volumes: dict[bytes, int] = {}
        self._files: list[ChunkedFile] = []
        self._roots: set[tuple[bytes, bytes]] = set()
        self.forgotten = 0
        """Chunks that were not stored for lack of memory."""

    def add(self, file: ChunkedFile) -> list[EqualRuns]:
        """Ranges of this file that earlier files contain, grouped by source. Empty for a file identical to an
        earlier one."""
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
                self._files[source].location,
                file.location,
                columns.source_offsets,
                columns.offsets,
                columns.lengths,
            )
            for source, columns in found.items()
        ]

    def _matches(self, file: ChunkedFile, number: int) -> Iterator[_Match]:
        """The chunks that are known already."""
        volume = self._volumes.setdefault(file.volume, len(self._volumes)).to_bytes(4, "little")
        for digest, offset, length in _chunks(file.tree):
            key = digest[:8] + (offset % file.block_size).to_bytes(4, "little") + volume
            location = self._known.get(key)
            if location is None:
                if len(self._known) < self._most:
                    self._known[key] = number << 64 | offset
                else:
                    self.forgotten += 1
                continue
            source, source_offset = location >> 64, location & ((1 << 64) - 1)
            # The kernel shares ranges within one file only if they do not overlap.
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
    """Join adjacent matches."""
    run: _Match | None = None
    for match in matches:
        joined = None if run is None else run.joined(match, own)
        if joined is None and run is not None:
            yield run
        run = match if joined is None else joined
    if run is not None:
        yield run
