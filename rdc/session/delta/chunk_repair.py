"""Chunk repair: chunks rebuilt from blocks whose digests do not fit are fetched again at the end."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from rdc.records import dataclass
from rdc.signature.build import TreeBuilder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.chunking.params import ChunkParams
    from rdc.signature.build import Column
    from rdc.signature.tree import SignatureTree

__all__ = ["ChunkRepair", "WrongChunk"]


@dataclass(frozen=True, slots=True)
class WrongChunk:
    """A chunk that was written although its digest does not fit its reference. Offset and length in bytes."""

    offset: int
    length: int
    reference: bytes


class ChunkRepair:
    """The wrong chunks of one file, in file order. Each is requested once more and keeps its length."""

    __slots__ = ("_digests", "wrong")

    def __init__(self) -> None:
        self.wrong: list[WrongChunk] = []
        self._digests: dict[int, bytes] = {}
        """Digests of the right chunks, by offset in the file."""

    def add(self, offset: int, length: int, reference: bytes) -> None:
        """Adds a wrong chunk; it lies behind all added before."""
        self.wrong.append(WrongChunk(offset, length, reference))

    def ranges(self) -> array[int]:
        """Returns ranges (offset, length) of the wrong chunks."""
        return array("Q", (number for wrong in self.wrong for number in (wrong.offset, wrong.length)))

    def put(self, wrong: WrongChunk, digest: bytes) -> None:
        """Records the digest of a chunk that was written again."""
        self._digests[wrong.offset] = digest

    def repaired_tree(
        self, tree: SignatureTree, params: ChunkParams, column: Callable[[], Column]
    ) -> SignatureTree:
        """Returns the tree of the repaired file. `tree`: the tree of what was written at first."""
        if not self._digests:
            return tree
        builder = TreeBuilder(params, column)
        level, at, offsets = tree.levels[0], 0, list(self._digests)
        for row in range(level.records):
            digest, length = level.digest(row), level.lengths[row]
            # One record may stand for a run of equal chunks, and some of them may have been repaired.
            stop = at + length * level.counts[row]
            for offset in offsets[bisect_left(offsets, at) : bisect_left(offsets, stop)]:
                if offset > at:
                    builder.repeat(digest, length, (offset - at) // length)
                builder.repeat(self._digests[offset], length, 1)
                at = offset + length
            if stop > at:
                builder.repeat(digest, length, (stop - at) // length)
            at = stop
        return builder.finish()
