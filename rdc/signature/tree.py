"""The value of a signature: levels of records as columns, and the root digest over them."""

from __future__ import annotations

from rdc.records import dataclass
from rdc.signature.digests import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.chunking.params import ChunkParams

__all__ = ["Level", "SignatureTree"]


@dataclass(frozen=True, slots=True)
class Level:
    """One level's records as columns. Record i stands for `counts[i]` equal items of `lengths[i]` bytes.

    At level 0 an item is a chunk; above, it is a node of the level below, whose records are
    `starts[i]` to `starts[i] + sizes[i]` there (of a run of equal nodes, the first's).
    """

    digests: memoryview
    """32 bytes a record."""
    lengths: memoryview
    """Format 'Q': file bytes one item covers."""
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
        """Record numbers, one level below, of the node that `record` stands for."""
        start = self.starts[record]
        return range(start, start + self.sizes[record])

    @property
    def bytes(self) -> int:
        """At-rest size of the level in bytes: 48 a record."""
        return self.records * (DIGEST_BYTES + 16)

    @property
    def items(self) -> int:
        """Chunks (or nodes) that the records stand for."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class SignatureTree:
    """A file's signature. Equal roots mean equal length, parameters and content (BLAKE3)."""

    root: bytes
    """32 bytes."""
    size: int
    """File length in bytes."""
    params: ChunkParams
    levels: tuple[Level, ...]
    """Level 0, the chunk list, first; the last has at most 26 records. An empty file has one empty level."""
    traits: bytes
    """9 bytes of similarity samples, or b''."""

    @property
    def height(self) -> int:
        """Levels above the chunk list."""
        return len(self.levels) - 1

    @property
    def top(self) -> Level:
        return self.levels[-1]

    @property
    def memory(self) -> int:
        """Bytes its columns take, in memory or mapped."""
        return sum(level.bytes + 9 * level.records for level in self.levels)

    @property
    def mean(self) -> float:
        """Mean chunk length in bytes, 0 for an empty file."""
        return self.size / self.levels[0].items if self.size else 0.0
