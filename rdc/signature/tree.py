"""SignatureTree: a file's chunk list, the levels of nodes above it, and the root digest."""

from __future__ import annotations

from rdc.lean.records import dataclass
from rdc.signature.digests import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.chunking.params import ChunkParams

__all__ = ["Level", "SignatureTree"]


@dataclass(frozen=True, slots=True)
class Level:
    """The records of one level as columns. Record i stands for `counts[i]` equal items of `lengths[i]` bytes.

    On level 0 an item is a chunk. Above, it is a node, which groups the records `starts[i]` to `starts[i] +
    sizes[i]` of the level below; for a run of equal nodes, these are the records of the first.
    """

    digests: memoryview
    """32 bytes per record."""
    lengths: memoryview
    """Format 'Q': bytes of the file that one item covers."""
    counts: memoryview
    """Format 'Q': at least 1."""
    starts: memoryview
    """Format 'Q'; empty at level 0."""
    sizes: memoryview
    """Format 'B'; empty at level 0."""

    @property
    def records(self) -> int:
        return len(self.lengths)

    def digest(self, record: int) -> bytes:
        return bytes(self.digests[record * DIGEST_BYTES : (record + 1) * DIGEST_BYTES])

    def children(self, record: int) -> range:
        """The record numbers, one level below, of the node that `record` stands for."""
        start = self.starts[record]
        return range(start, start + self.sizes[record])

    @property
    def bytes(self) -> int:
        """Bytes of the level's digests, lengths and counts: 48 per record."""
        return self.records * (DIGEST_BYTES + 16)

    @property
    def items(self) -> int:
        """Number of chunks or nodes that the records stand for."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class SignatureTree:
    """A file's signature. Files with equal roots have equal length, parameters and content (BLAKE3).

    >>> import rdc
    >>> tree = rdc.sign(b"content" * 1000, rdc.ChunkParams(1024, 4096))
    >>> tree.size, len(tree.root)
    (7000, 32)
    """

    root: bytes
    """32 bytes."""
    size: int
    """File length in bytes."""
    params: ChunkParams
    levels: tuple[Level, ...]
    """From level 0, the chunk list, to the top, which has at most 26 records. An empty file has one empty
    level."""
    traits: bytes
    """9 bytes of similarity samples; b'' for a file without features."""

    @property
    def height(self) -> int:
        """Number of levels above the chunk list."""
        return len(self.levels) - 1

    @property
    def top(self) -> Level:
        return self.levels[-1]

    @property
    def memory(self) -> int:
        """Bytes of all columns, in memory or mapped."""
        return sum(level.bytes + 9 * level.records for level in self.levels)

    @property
    def mean(self) -> float:
        """Mean chunk length in bytes; 0 for an empty file."""
        return self.size / self.levels[0].items if self.size else 0.0
