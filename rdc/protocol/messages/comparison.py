"""Messages that compare two versions of a file: roots, nodes of signature trees, fingerprints of blocks."""

from __future__ import annotations

from array import array
from itertools import chain

from rdc.limits.chunks import BLOCK_SIZE_MAX, BLOCK_SIZE_MIN
from rdc.limits.wire import (
    BLOCKS_PER_MESSAGE,
    FILES_PER_GROUP,
    FILES_PER_MESSAGE,
    NODE_BYTES,
    NODES_PER_MESSAGE,
    RANGES_PER_MESSAGE,
    RECORDS_BYTES,
)
from rdc.protocol.messages.field_types import (
    REFERENCE_WIDTHS,
    ROOT_BYTES,
    Files,
    Level,
    Mtime,
    Nodes,
    Ordinal,
    Root,
    Size,
    Width,
)
from rdc.protocol.messages.ranges import Ranged, columns_of
from rdc.protocol.wire.codec import WireMessage, wire
from rdc.protocol.wire.column_fields import Column, Parts
from rdc.protocol.wire.fields import Blob, Flag, Integer
from rdc.records import dataclass
from rdc.typed import Annotated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = [
    "LEAF_WIDTH",
    "SHORTEN",
    "BlockAnswer",
    "BlockRequest",
    "NodeAnswer",
    "NodeRequest",
    "RootAnswer",
    "RootRequest",
    "TreeAnswer",
    "TreeRequest",
]


FINGERPRINT_WIDTHS = (2, 8)
LEAF_WIDTH = 3
"""Bytes of a fingerprint that comes with a tree: a chunk has few blocks, and few positions to search for
them."""
SHORTEN = 4
"""Divisor of the block size in short files."""
KEYED_WIDTH = 8
"""Widest keyed hash in bytes; a wider reference is the whole digest."""


@wire(6)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RootRequest(WireMessage):
    """D: asks for references of the root digests of these files."""

    files: Files
    width: Width = ROOT_BYTES
    """Bytes of a reference in the answer: 4 to 8 under the session's key, or the 32 of the root itself."""
    group: Annotated[int, Integer(1, FILES_PER_GROUP)] = 1
    """Files that share one reference. Above 1, the answer has no sizes."""

    def check(self) -> str | None:
        return _wrong_width(self.width)


@wire(7)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RootAnswer(WireMessage):
    """S: some or all files of the oldest RootRequest. A file that failed comes as FileFailed instead."""

    files: Files
    sizes: Annotated[tuple[int, ...], Column(FILES_PER_MESSAGE)]
    """One size per file with whole roots; empty with references, which cover the size."""
    roots: Annotated[bytes, Blob(REFERENCE_WIDTHS[0], ROOT_BYTES * FILES_PER_MESSAGE)]
    """A reference of the requested width per file or per group, in the order of `files`."""
    group: Annotated[int, Integer(1, FILES_PER_GROUP)] = 1

    @property
    def references(self) -> int:
        """Number of references."""
        return -(-len(self.files) // self.group)

    @property
    def width(self) -> int:
        return len(self.roots) // self.references

    @property
    def whole(self) -> bool:
        """Whether `roots` holds whole roots rather than references."""
        return self.group == 1 and self.width == ROOT_BYTES

    def root(self, row: int) -> bytes:
        """The reference of the file, or of the group, with this number."""
        return self.roots[row * self.width : (row + 1) * self.width]

    def check(self) -> str | None:
        if len(self.roots) % self.references or not REFERENCE_WIDTHS[0] <= self.width <= ROOT_BYTES:
            return f"roots: {len(self.roots)} bytes for {len(self.files)} files"
        if len(self.sizes) != (len(self.files) if self.whole else 0):
            return f"sizes: {len(self.sizes)} for {len(self.files)} files"
        return None


def _wrong_width(width: int) -> str | None:
    if KEYED_WIDTH < width < REFERENCE_WIDTHS[1]:
        return f"width: {width} is neither in {REFERENCE_WIDTHS[0]}..{KEYED_WIDTH} nor {REFERENCE_WIDTHS[1]}"
    return None


@wire(8)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TreeRequest(WireMessage):
    """D: asks for the top of the signature trees of these files."""

    files: Files
    width: Width
    """Bytes of a reference in the answers."""
    block: Annotated[int, Integer(0, BLOCK_SIZE_MAX)] = 0
    """Bytes of a block: files of one chunk come with the fingerprints of their blocks. 0: without
    fingerprints."""

    def check(self) -> str | None:
        if 0 < self.block < SHORTEN * BLOCK_SIZE_MIN:
            return f"block: {self.block}, the least is {SHORTEN * BLOCK_SIZE_MIN}"
        return _wrong_width(self.width)

    def block_of(self, size: int) -> int:
        """Bytes of a block in a file of `size` bytes. Blocks are shorter where a file would have hardly
        two."""
        return self.block if size >= 2 * self.block else self.block // SHORTEN


@wire(9)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TreeAnswer(WireMessage):
    """S: one file of the oldest TreeRequest."""

    file: Ordinal
    size: Size
    root: Root
    height: Level
    mtime_ns: Mtime
    records: Annotated[bytes, Blob(0, RECORDS_BYTES)]
    """Records in the signature format, opaque to the protocol. Empty if fingerprints are given."""
    fingerprints: Annotated[bytes, Blob(0, RECORDS_BYTES)] = b""
    """Keyed fingerprints of a file of one chunk, LEAF_WIDTH bytes per block, in order, if `block` asked for
    them."""


@wire(10)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NodeRequest(WireMessage):
    """D: asks for the children of these nodes of a file's tree."""

    file: Ordinal
    level: Level
    nodes: Nodes
    width: Width
    """Bytes of a reference in the answer."""

    def check(self) -> str | None:
        return _wrong_width(self.width)


@wire(11)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NodeAnswer(WireMessage):
    """S: the next nodes of the oldest NodeRequest, in its order."""

    file: Ordinal
    level: Level
    nodes: Nodes
    records: Annotated[tuple[bytes, ...], Parts(NODES_PER_MESSAGE, NODE_BYTES)]
    """Opaque records, one item per node."""

    def check(self) -> str | None:
        if len(self.records) != len(self.nodes):
            return f"records: {len(self.records)} for {len(self.nodes)} nodes"
        return None


@wire(31)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BlockRequest(Ranged, WireMessage):
    """D: asks for fingerprints of the blocks in these ranges of a file."""

    file: Ordinal
    gaps: Annotated[tuple[int, ...], Column(RANGES_PER_MESSAGE)]
    lengths: Annotated[tuple[int, ...], Column(RANGES_PER_MESSAGE, lowest=1)]
    size: Annotated[int, Integer(BLOCK_SIZE_MIN, BLOCK_SIZE_MAX)]
    """Bytes of a block, counted from the start of each range. The last block of a range may be shorter."""
    width: Annotated[int, Integer(*FINGERPRINT_WIDTHS)]
    """Bytes of a fingerprint."""
    blank: Annotated[bool, Flag()] = False
    """Whether x86 operands are masked before the fingerprints are computed."""

    @classmethod
    def of(
        cls, file: int, ranges: Sequence[tuple[int, int]], size: int, width: int, *, blank: bool = False
    ) -> BlockRequest:
        """A request for increasing, disjoint (offset, length) pairs."""
        return cls(file, *columns_of(array("Q", chain.from_iterable(ranges))), size, width, blank)

    @property
    def blocks(self) -> int:
        """Number of fingerprints in the answer."""
        size = self.size
        return sum([-(-length // size) for length in self.lengths])

    def check(self) -> str | None:
        problem = self.check_ranges()
        if problem is None and not self.lengths:
            return "lengths: none"
        # Each range has at most one block more than whole ones. Most requests are far below the limit.
        most = sum(self.lengths) // self.size + len(self.lengths)
        if problem is None and most > BLOCKS_PER_MESSAGE and self.blocks > BLOCKS_PER_MESSAGE:
            return f"lengths: {self.blocks} blocks, the limit is {BLOCKS_PER_MESSAGE}"
        return problem


@wire(32)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BlockAnswer(WireMessage):
    """S: the whole answer to the oldest BlockRequest."""

    file: Ordinal
    fingerprints: Annotated[bytes, Blob(FINGERPRINT_WIDTHS[0], FINGERPRINT_WIDTHS[1] * BLOCKS_PER_MESSAGE)]
    """Keyed fingerprints, `width` bytes per block, in order."""
