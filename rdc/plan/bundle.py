"""The layout of a bundle: many changed files treated as one.

The contents of the files lie one after another, and so do their old versions, the base. All files are
described by fingerprints of their blocks: first the long ones in long blocks, last the short ones in short
blocks. Files with blocks of one size keep their order. Both sides compute it. The search for the contents in
the old versions is BundleSearch (search.py).
"""

from __future__ import annotations

from array import array
from itertools import accumulate

from rdc.lean.records import Record
from rdc.lean.typed import NamedTuple
from rdc.protocol.messages.content import block_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class LikeFiles(NamedTuple):
    """Files `first` to `stop` of a bundle, which have blocks of `block` bytes."""

    first: int
    stop: int
    block: int


class BundleLayout(Record):
    """The order and the offsets of the files in a bundle."""

    order: tuple[int, ...]
    """Numbers of the files, as requested, in bundle order."""
    sizes: array[int]
    """Bytes of each file in bundle order (typecode 'Q')."""
    starts: array[int]
    """Offset of each file; the last item is the end of the bundle."""
    likes: tuple[LikeFiles, ...]
    """Its files by the size of their blocks, the longest first."""

    @classmethod
    def of(cls, files: Sequence[int], sizes: Sequence[int], block: int) -> BundleLayout:
        """Lay out the files with these numbers and sizes in bytes. `block`: bytes of a block, as asked
        for."""
        by_block: dict[int, list[int]] = {}
        for row, size in enumerate(sizes):
            by_block.setdefault(block_size(size, block), []).append(row)
        rows: list[int] = []
        likes: list[LikeFiles] = []
        for one in sorted(by_block, reverse=True):
            likes.append(LikeFiles(len(rows), len(rows) + len(by_block[one]), one))
            rows += by_block[one]
        lengths = array("Q", [sizes[row] for row in rows])
        starts = array("Q", accumulate(lengths, initial=0))
        return cls(tuple([files[row] for row in rows]), lengths, starts, tuple(likes))

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return self.starts[-1]
