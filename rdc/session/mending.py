"""Chunks that were put together from blocks and are not what their references name: put right at the end."""

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

__all__ = ["Mending", "WrongChunk"]


@dataclass(frozen=True, slots=True)
class WrongChunk:
    """A chunk that was written as blocks made it, which is not what its reference names."""

    offset: int
    length: int
    reference: bytes


class Mending:
    """Of one file, in its order. Chunks are asked for again once, and stay as long as they were."""

    __slots__ = ("_digests", "wrong")

    def __init__(self) -> None:
        self.wrong: list[WrongChunk] = []
        self._digests: dict[int, bytes] = {}
        """Of the right chunks, by offset in the file."""

    def doubt(self, offset: int, length: int, reference: bytes) -> None:
        """This chunk, behind all that were doubted before."""
        self.wrong.append(WrongChunk(offset, length, reference))

    def rows(self) -> array[int]:
        """What is to be asked for: offset and length by turns."""
        return array("Q", (number for wrong in self.wrong for number in (wrong.offset, wrong.length)))

    def put(self, wrong: WrongChunk, digest: bytes) -> None:
        """It was written again, and has this digest."""
        self._digests[wrong.offset] = digest

    def mended(self, tree: SignatureTree, params: ChunkParams, column: Callable[[], Column]) -> SignatureTree:
        """The tree of what is written now; `tree` is of what was written at first."""
        if not self._digests:
            return tree
        builder = TreeBuilder(params, column)
        level, at, offsets = tree.levels[0], 0, list(self._digests)
        for row in range(level.records):
            digest, length = level.digest(row), level.lengths[row]
            # A run of equal chunks, of which some may have been wrong.
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
